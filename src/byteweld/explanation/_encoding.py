"""Explain how a text is encoded: every merge of every pre-token."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from byteweld._amounts import amount
from byteweld._text import utf8
from byteweld.explanation._report import MAX_ROWS
from byteweld.explanation._tree import MAX_PRETOKEN_BYTES, Tree, TreeNode, check_length, tree_of
from byteweld.reference.encode import EncodeStep, encode_greedy, encode_steps
from byteweld.reference.train import Ids
from byteweld.render import token_names, visible
from byteweld.report import Displayable, Report
from byteweld.vocab import Vocabulary

Specials = Literal["all"] | Set[str] | Sequence[str]


class _Tokenizer(Protocol):
    """The part of a tokenizer that `explain` needs."""

    @property
    def vocab(self) -> Vocabulary: ...

    def pretokenize(self, text: str | bytes) -> list[bytes]: ...

    def encode_with_offsets(
        self, text: str | bytes, *, allowed_special: Specials, disallowed_special: Specials
    ) -> tuple[list[int], list[tuple[int, int]]]: ...


@dataclass(frozen=True)
class PairRow:
    """A pair that can merge: the index of its left part, both ids, its rank, the id it becomes."""

    at: int
    left: int
    right: int
    rank: int
    new: int


@dataclass(frozen=True)
class Step:
    """One step: the parts before it, the pairs that can merge (lowest rank first), the choice."""

    parts: Ids
    rows: tuple[PairRow, ...]
    total_pairs: int
    chosen: PairRow | None


@dataclass(frozen=True)
class PretokenExplanation:
    """How one pre-token becomes ids.

    `looked_up` is the id of a pre-token that was found whole, before any merge; the steps then show
    what merging alone would give, `merged_ids`. `greedy_ids` is what longest match would give; it
    first differs at byte `greedy_differs_at` of the pre-token, or not at all (None). A special
    token has no steps.
    """

    pretoken: bytes
    start: int
    ids: tuple[int, ...]
    looked_up: int | None
    steps: tuple[Step, ...]
    tree: Tree
    greedy_ids: tuple[int, ...]
    greedy_differs_at: int | None
    is_special: bool = False

    @property
    def merged_ids(self) -> tuple[int, ...]:
        """The ids that merging alone gives."""
        return self.steps[-1].parts if self.steps else self.ids


@dataclass(frozen=True, repr=False)
class Explanation(Displayable):
    """How a text becomes ids; made by `byteweld.explain`.

    `str()` is for people, `to_dict()` for programs, and a notebook shows it as HTML.

    Attributes:
        pretokens: for each pre-token, its steps, its merge tree, its ids, and what longest match
            would give.
        tokens: the bytes of every id mentioned.

    Examples:
        >>> tok = byteweld.train(documents=["low low"], vocab_size=258)
        >>> found = byteweld.explain(tok, "low lo")
        >>> found.ids, [pretoken.pretoken for pretoken in found.pretokens]
        ([257, 32, 256], [b'low', b' lo'])
        >>> found.pretokens[0].steps[0].chosen.rank
        0
    """

    pretokens: tuple[PretokenExplanation, ...]
    tokens: Mapping[int, bytes]  # of every id mentioned

    def __repr__(self) -> str:
        pretokens = amount(len(self.pretokens), "pre-token")
        return f"<{type(self).__name__}: {pretokens}, {amount(len(self.ids), 'id')}>"

    @property
    def ids(self) -> list[int]:
        """The ids of the whole text."""
        return [token_id for pretoken in self.pretokens for token_id in pretoken.ids]

    def report(self) -> Report:
        """Return what is shown of the explanation."""
        from byteweld.explanation._report import explanation

        return explanation(self)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-serializable values; `tokens` maps the ids used everywhere else to bytes."""
        return {
            "ids": self.ids,
            "tokens": token_names(self.tokens),
            "pretokens": [_pretoken_to_dict(pretoken) for pretoken in self.pretokens],
        }


def explain(
    tok: _Tokenizer,
    text: str | bytes,
    *,
    allowed_special: Specials = frozenset(),
    disallowed_special: Specials = "all",
    max_pretoken_bytes: int = MAX_PRETOKEN_BYTES,
) -> Explanation:
    """Explain how a tokenizer encodes a text: every merge of every pre-token.

    Args:
        tok: a Tokenizer.
        text: what to encode; special tokens are treated as in `encode`.
        allowed_special: as in `encode`.
        disallowed_special: as in `encode`.
        max_pretoken_bytes: the longest pre-token to explain; the steps of n bytes take n² time and
            space.

    Raises:
        ValueError: if a pre-token is longer than `max_pretoken_bytes`.

    Examples:
        >>> tok = byteweld.train(documents=["low low"], vocab_size=258)
        >>> print(byteweld.explain(tok, "low"))
        pre-token 1: low  (byte 0)
          bytes: 6c 6f 77
          step 1: [l o] w
            rank 0  l o  -> 256  <- merged
          step 2: [lo w]
            rank 1  lo w  -> 257  <- merged
          end: low  (no pair can merge)
          tree:
            low  257  rank 1
            ├── lo  256  rank 0
            │   ├── l  108
            │   └── o  111
            └── w  119
          ids: 257
          longest match: the same
        <BLANKLINE>
        ids: 257
    """
    vocab = getattr(tok, "vocab", None)
    if not isinstance(vocab, Vocabulary):
        raise TypeError(f"expected a Tokenizer, found {type(tok).__name__}")
    explained = []
    start = 0
    pretokens = find_pretokens(
        tok, text, allowed_special=allowed_special, disallowed_special=disallowed_special
    )
    for pretoken, added_id in pretokens:
        explained.append(_explain_pretoken(vocab, pretoken, added_id, start, max_pretoken_bytes))
        start += len(pretoken)
    return _explanation(vocab, explained)


def find_pretokens(
    tok: _Tokenizer,
    text: str | bytes,
    *,
    allowed_special: Specials = frozenset(),
    disallowed_special: Specials = "all",
) -> Iterator[tuple[bytes, int | None]]:
    """Yield the pre-tokens of a text, each with its id if it is a special or added token."""
    data = utf8(text)
    # Flags decide where an added token is, so look where the tokenizer finds it.
    ids, offsets = tok.encode_with_offsets(
        data, allowed_special=allowed_special, disallowed_special=disallowed_special
    )
    added_ids = {
        token.id
        for token in tok.vocab.added_tokens
        if not token.special or allowed_special == "all" or token.text in allowed_special
    }
    start = 0
    for token_id, (first, last) in zip(ids, offsets, strict=True):
        if token_id in added_ids:
            yield from ((pretoken, None) for pretoken in tok.pretokenize(data[start:first]))
            yield data[first:last], token_id
            start = last
    yield from ((pretoken, None) for pretoken in tok.pretokenize(data[start:]))


def explain_pretoken(
    vocab: Vocabulary,
    pretoken: bytes,
    added_id: int | None = None,
    *,
    max_pretoken_bytes: int = MAX_PRETOKEN_BYTES,
) -> Explanation:
    """Explain one of the pre-tokens of a text as it is: it is not split or rewritten again.

    `added_id` is the id of the special or added token that it is, which is never merged.
    """
    found = _explain_pretoken(vocab, pretoken, added_id, 0, max_pretoken_bytes)
    return _explanation(vocab, [found])


def _explanation(vocab: Vocabulary, explained: Sequence[PretokenExplanation]) -> Explanation:
    used: set[int] = set()
    for part in explained:
        used.update(part.ids, part.greedy_ids, part.tree.tokens)
        used.update(row.new for step in part.steps for row in step.rows)
    return Explanation(tuple(explained), {i: vocab.tokens[i] for i in sorted(used)})


def _explain_pretoken(
    vocab: Vocabulary, pretoken: bytes, added_id: int | None, start: int, limit: int
) -> PretokenExplanation:
    if added_id is not None:
        tree = Tree((TreeNode(added_id),), (0,), {added_id: pretoken})
        one = (added_id,)
        return PretokenExplanation(pretoken, start, one, None, (), tree, one, None, is_special=True)
    check_length(pretoken, limit)
    whole = next(encode_steps(vocab, pretoken, offset=start)).parts
    was_found = len(pretoken) > 1 and whole == (vocab.ids.get(pretoken),)
    shown: list[Step] = []
    tree = tree_of(_record(encode_steps(vocab, pretoken, whole_first=False), shown), vocab.tokens)
    ids = whole if was_found else shown[-1].parts
    greedy = tuple(encode_greedy(vocab, pretoken))
    return PretokenExplanation(
        pretoken=pretoken,
        start=start,
        ids=ids,
        looked_up=whole[0] if was_found else None,
        steps=tuple(shown),
        tree=tree,
        greedy_ids=greedy,
        greedy_differs_at=_first_difference(vocab, pretoken, ids, greedy),
    )


def _record(steps: Iterable[EncodeStep], shown: list[Step]) -> Iterator[EncodeStep]:
    """Yield the steps unchanged, and append what is displayed of each to `shown`.

    That is the rows of lowest rank only: all rows of all steps would be n².
    """
    for step in steps:
        lowest = heapq.nsmallest(MAX_ROWS, step.candidates, key=lambda c: (c.rank, c.at))
        rows = tuple(
            PairRow(c.at, step.parts[c.at], step.parts[c.at + 1], c.rank, c.new) for c in lowest
        )
        chosen = None if step.chosen is None else rows[0]
        shown.append(Step(step.parts, rows, len(step.candidates), chosen))
        yield step


def _first_difference(
    vocab: Vocabulary, pretoken: bytes, ids: Sequence[int], other: Sequence[int]
) -> int | None:
    """Return the byte offset at which two encodings of a pre-token start to differ."""
    offset = 0
    for ours, theirs in zip(ids, other, strict=False):
        if ours != theirs:
            return offset
        if ours == vocab.roles.get("unk"):  # covers one character, whatever its own bytes are
            character = pretoken[offset : offset + 4].decode("utf-8", "surrogateescape")[0]
            offset += len(character.encode("utf-8", "surrogateescape"))
        else:
            offset += len(vocab.tokens[ours])
    return None


def _pretoken_to_dict(pretoken: PretokenExplanation) -> dict[str, Any]:
    return {
        "bytes": pretoken.pretoken.hex(),
        "text": visible(pretoken.pretoken),
        "start": pretoken.start,
        "is_special": pretoken.is_special,
        "ids": list(pretoken.ids),
        "looked_up": pretoken.looked_up,
        "merged_ids": list(pretoken.merged_ids),
        "steps": [
            {
                "parts": list(step.parts),
                "pairs": [asdict(row) for row in step.rows],
                "total_pairs": step.total_pairs,
                "chosen": None if step.chosen is None else step.chosen.at,
            }
            for step in pretoken.steps
        ],
        "tree": pretoken.tree.to_dict(),
        "greedy_ids": list(pretoken.greedy_ids),
        "greedy_differs_at": pretoken.greedy_differs_at,
    }
