"""Train: count the pairs, pick the most frequent one, merge it everywhere, repeat.

Takes documents or counts of pre-tokens; returns a vocabulary with the log of its merges. Ties are
broken in `in_tie_order` and nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from byteweld.errors import CorpusError
from byteweld.recipes import Recipe, TieBreak
from byteweld.reference.pretokenize import pretokenize, split_specials
from byteweld.training import Stop
from byteweld.training.plan import LearnedMerge, make_plan
from byteweld.vocab import Vocabulary

Pair = tuple[int, int]
Ids = tuple[int, ...]  # a pre-token as the ids of its tokens so far


class TrainStep(NamedTuple):
    """One iteration of the training loop, as `watch` receives it."""

    pair_counts: dict[Pair, int]  # every pair that could merge, before the merge
    merge: LearnedMerge
    tokens: Mapping[int, bytes]  # including the new one
    corpus: dict[Ids, int]  # after the merge


class Trained(NamedTuple):
    """The result: the vocabulary, its merges with their counts, and why training stopped."""

    vocab: Vocabulary
    merges: tuple[LearnedMerge, ...]
    stopped: Stop


def count_pretokens(documents: Iterable[bytes], recipe: Recipe) -> dict[bytes, int]:
    """Count the pre-tokens of a corpus. Boundaries split the text and are not counted.

    Examples:
        >>> from byteweld import RECIPES, reference
        >>> reference.count_pretokens([b"low low", b"low"], RECIPES["bpetite"])
        {b'low': 2, b' low': 1}
    """
    if isinstance(documents, str | bytes):
        raise TypeError(
            "documents is a single string; expected a list or another iterable of documents"
        )
    counts: Counter[bytes] = Counter()
    for document in documents:
        for segment in split_specials(document, recipe.boundaries):
            if isinstance(segment, bytes):
                counts.update(pretokenize(segment, recipe.pattern))
    return dict(counts)


def count_pairs(corpus: Mapping[Ids, int]) -> dict[Pair, int]:
    """Count every adjacent pair, including overlapping ones: `aaa` has the pair (a, a) twice.

    >>> count_pairs({(97, 97, 97): 10})
    {(97, 97): 20}
    """
    counts: Counter[Pair] = Counter()
    for ids, count in corpus.items():
        for pair in pairwise(ids):
            counts[pair] += count
    return dict(counts)


def in_tie_order(
    pairs: Iterable[Pair], tokens: Mapping[int, bytes], tie_break: TieBreak
) -> list[Pair]:
    """Sort pairs of equal count, winner first, by one of the three rules."""
    if tie_break == "smallest-ids":
        return sorted(pairs)
    descending = tie_break == "greatest-bytes"  # or "smallest-bytes"
    return sorted(pairs, key=lambda p: (tokens[p[0]], tokens[p[1]]), reverse=descending)


def pick(pair_counts: Mapping[Pair, int], tokens: Mapping[int, bytes], tie_break: TieBreak) -> Pair:
    """Return the pair with the highest count; on a tie, the first in tie order."""
    best = max(pair_counts.values())
    tied = [pair for pair, count in pair_counts.items() if count == best]
    return in_tie_order(tied, tokens, tie_break)[0]


def merge(ids: Ids, pair: Pair, new: int) -> Ids:
    """Replace a pair with its new id, left to right, without overlap.

    >>> merge((97, 97, 97), (97, 97), 256)
    (256, 97)
    """
    merged, i = [], 0
    while i < len(ids):
        found = ids[i : i + 2] == pair
        merged.append(new if found else ids[i])
        i += 2 if found else 1
    return tuple(merged)


def train(
    corpus: Iterable[bytes] | Mapping[bytes, int],
    vocab_size: int,
    recipe: Recipe,
    watch: Callable[[TrainStep], object] = lambda step: None,
) -> Trained:
    """Train on documents or on counts of pre-tokens.

    Args:
        corpus: the documents, or the count of each pre-token.
        vocab_size: as in `byteweld.train`.
        recipe: how to train.
        watch: called after every merge.

    Examples:
        >>> from byteweld import RECIPES, reference
        >>> trained = reference.train({b"low": 5, b"lower": 2}, 260, RECIPES["from-scratch"])
        >>> trained.vocab.merges
        [(b'o', b'w'), (b'l', b'ow'), (b'low', b'e'), (b'lowe', b'r')]
        >>> [merge.pair_count for merge in trained.merges]
        [7, 7, 2, 2]
    """
    counts = corpus if isinstance(corpus, Mapping) else count_pretokens(corpus, recipe)
    recipe = recipe.with_letters({byte for p, count in counts.items() if count for byte in p})
    plan = make_plan(vocab_size, recipe)
    tokens = dict(plan.base.tokens)
    new_ids_left = plan.max_new_ids

    pretokens: dict[Ids, int] = {
        _to_ids(p, plan.base.ids): count for p, count in counts.items() if count
    }
    merges: list[LearnedMerge] = []
    stopped: Stop = "size"
    while new_ids_left:
        pair_counts = {
            (left, right): count
            for (left, right), count in count_pairs(pretokens).items()
            if (plan.token_limit is None or len(tokens[left] + tokens[right]) <= plan.token_limit)
            and tokens[left] + tokens[right] not in plan.forbidden
        }
        if not pair_counts:
            stopped = "no pairs"
            break
        pair = pick(pair_counts, tokens, recipe.tie_break)
        if pair_counts[pair] < recipe.min_frequency:
            stopped = "min frequency"
            break
        token = tokens[pair[0]] + tokens[pair[1]]
        new = plan.reserved.get(token)  # Hugging Face: may share the id of a special token
        if new is None:
            new = len(tokens)
            tokens[new] = token
            new_ids_left -= 1
        pretokens = {merge(ids, pair, new): count for ids, count in pretokens.items()}
        merges.append(LearnedMerge(*pair, new, pair_counts[pair]))
        watch(TrainStep(pair_counts, merges[-1], tokens, pretokens))
    return Trained(plan.vocabulary([learned[:3] for learned in merges]), tuple(merges), stopped)


def _to_ids(pretoken: bytes, ids: Mapping[bytes, int]) -> Ids:
    for offset, byte in enumerate(pretoken):
        if bytes([byte]) not in ids:
            raise CorpusError(
                f"byte 0x{byte:02X} at offset {offset} of the pre-token {pretoken[:20]!r}... is "
                "outside the ascii alphabet (tab, newline, return, 0x20-0x7E); use alphabet 'bytes'"
            )
    return tuple(ids[bytes([byte])] for byte in pretoken)
