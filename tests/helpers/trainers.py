"""Trainers to compare ours with: tokenizers, rustbpe, and the CS336 rule in plain Python.

The last is incremental, so that it can train on real corpora; a test compares it with the
reference.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from byteweld import PATTERNS, Vocabulary
from byteweld._byte_letters import bytes_to_chars

# ---------------------------------------------------------------------- tokenizers


def huggingface_peer(
    documents: Iterable[str] | None = None,
    *,
    files: Sequence[Path] | None = None,
    size: int,
    pattern: str = "gpt2",
    specials: Sequence[str] = (),
    min_frequency: int = 0,
    limit: int | None = None,
    letters: Sequence[str] | None = None,
) -> Any:
    """A tokenizer trained by the real tokenizers; `letters=None` means all 256."""
    import tokenizers

    level = tokenizers.pre_tokenizers.ByteLevel
    peer = tokenizers.Tokenizer(tokenizers.models.BPE())
    if pattern == "gpt2":
        peer.pre_tokenizer = level(add_prefix_space=False)
    else:
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERNS[pattern]), "isolated")
        peer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [split, level(add_prefix_space=False, use_regex=False)]
        )
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=list(specials),
        initial_alphabet=level.alphabet() if letters is None else list(letters),
        show_progress=False,
        **({} if limit is None else {"max_token_length": limit}),
    )
    if files is None:
        peer.train_from_iterator(documents, trainer)
    else:
        peer.train([str(file) for file in files], trainer)
    return peer


def in_letters(peer: Any) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """The merges and the vocabulary of a tokenizer of the tokenizers library."""
    model = json.loads(peer.to_str())["model"]
    return [tuple(merge) for merge in model["merges"]], model["vocab"]


def in_its_letters(vocab: Vocabulary) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Our merges and vocabulary as tokenizers writes them."""
    merges = [(bytes_to_chars(left), bytes_to_chars(right)) for left, right in vocab.merges]
    tokens = {bytes_to_chars(token): token_id for token_id, token in vocab.ordinary()}
    return merges, tokens | dict(vocab.special_tokens)


# ---------------------------------------------------------------------- rustbpe


def rustbpe_peer(documents: Iterable[str], size: int, pattern: str = "gpt2") -> Any:
    """A tokenizer trained by the real rustbpe."""
    import rustbpe

    peer = rustbpe.Tokenizer()
    peer.train_from_iterator(iter(documents), size, pattern=PATTERNS[pattern])
    return peer


def ranks_of(peer: Any) -> dict[bytes, int]:
    """The tokens of a rustbpe tokenizer, which are its merges in order."""
    return {bytes(token): rank for token, rank in peer.get_mergeable_ranks()}


# ---------------------------------------------------------------------- CS336


def train_by_greatest_bytes(
    counts: Mapping[bytes, int], merges: int
) -> Iterator[tuple[bytes, bytes, int]]:
    """Learn (left, right, count): always `max(pairs, key=lambda p: (count[p], p))`.

    Only the pre-tokens that contain the chosen pair are counted again. A heap entry may be stale,
    but then it is too high, because the count of a pair only falls: it is corrected when popped.
    """
    words = [[bytes([byte]) for byte in word] for word in counts]
    weights = list(counts.values())
    pair_counts: Counter[tuple[bytes, bytes]] = Counter()
    holders: defaultdict[tuple[bytes, bytes], set[int]] = defaultdict(set)
    for index, word in enumerate(words):
        for pair in pairwise(word):
            pair_counts[pair] += weights[index]
            holders[pair].add(index)
    heap = [_entry(pair, count) for pair, count in pair_counts.items() if count]
    heapq.heapify(heap)
    while heap and merges:
        negative, _, _, pair = heapq.heappop(heap)
        count = pair_counts[pair]
        if count != -negative:
            if count:
                heapq.heappush(heap, _entry(pair, count))
            continue
        yield (*pair, count)
        merges -= 1
        born: set[tuple[bytes, bytes]] = set()
        for index in holders.pop(pair):
            for old, fresh in _merge(words[index], pair):
                pair_counts[old] -= weights[index]
                if fresh is not None:
                    pair_counts[fresh] += weights[index]
                    holders[fresh].add(index)
                    born.add(fresh)
        for fresh in born:
            if pair_counts[fresh]:
                heapq.heappush(heap, _entry(fresh, pair_counts[fresh]))


def _entry(pair: tuple[bytes, bytes], count: int) -> tuple[int, str, str, tuple[bytes, bytes]]:
    """The highest count first, then the greatest bytes, in a heap that gives the least first."""
    return -count, _reversed(pair[0]), _reversed(pair[1]), pair


_REVERSED = {byte: 255 - byte for byte in range(256)}


def _reversed(token: bytes) -> str:
    """A str that sorts in reverse order of the bytes; a prefix sorts after what it begins."""
    return token.decode("latin-1").translate(_REVERSED) + "\u0100"


def _merge(
    word: list[bytes], pair: tuple[bytes, bytes]
) -> Iterator[tuple[tuple[bytes, bytes], tuple[bytes, bytes] | None]]:
    """Merge a pair in a pre-token; yields each pair that goes and the one that replaces it."""
    left, right = pair
    new = left + right
    at = 0
    while True:
        try:
            at = word.index(left, at)
        except ValueError:
            return
        if word[at + 1 : at + 2] == [right]:
            yield pair, None
            if at > 0:
                yield (word[at - 1], left), (word[at - 1], new)
            if at + 2 < len(word):
                yield (right, word[at + 2]), (new, word[at + 2])
            word[at : at + 2] = [new]
        at += 1
