"""Align the tokens of several tokenizers on one text. Pure: offsets in, plain values out.

Comparing tokenizers on a whole corpus is in `corpora`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ends = Sequence[int] | NDArray[np.int64]


class Segment(NamedTuple):
    """A minimal span of bytes that starts and ends at a token boundary of every tokenizer.

    `tokens` holds, for each tokenizer, the index range of its tokens in the span.
    """

    start: int
    end: int
    tokens: tuple[tuple[int, int], ...]
    agrees: bool


class Alignment:
    """The segments of a text, stored as arrays: a megabyte of text may have a million of them."""

    def __init__(self, ends_by_tokenizer: Sequence[Ends]) -> None:
        ends = [np.asarray(given, np.int64) for given in ends_by_tokenizer]
        common = _distinct(ends[0])
        for own in ends[1:]:
            common = common[np.isin(common, own)]
        self._edges = np.concatenate([[0], common])
        # The number of tokens of each tokenizer that end at or before each edge.
        self._firsts = np.stack([np.searchsorted(own, self._edges, side="right") for own in ends])
        self._firsts[:, 0] = 0
        self._counts = np.diff(self._firsts, axis=1)
        # A segment has no shared boundary inside, so all agree only if each has one token in it.
        self._agrees = (self._counts == 1).all(axis=0)

    def __len__(self) -> int:
        return len(self._agrees)

    def __getitem__(self, index: int) -> Segment:
        if not 0 <= index < len(self):
            raise IndexError(f"segment {index} of {len(self)}")
        spans = self._firsts[:, index : index + 2].tolist()
        start, end = self._edges[index : index + 2].tolist()
        return Segment(start, end, tuple((a, b) for a, b in spans), bool(self._agrees[index]))

    @property
    def differing(self) -> int:
        """The number of segments that are cut differently."""
        return int(np.count_nonzero(~self._agrees))

    @property
    def differing_bytes(self) -> int:
        """The number of bytes in segments that are cut differently."""
        return int(np.diff(self._edges)[~self._agrees].sum())

    def first_differing(self, limit: int) -> list[int]:
        """Return the indices of the first segments that are cut differently."""
        found: list[int] = np.flatnonzero(~self._agrees)[:limit].tolist()
        return found

    def single_tokens(self) -> list[NDArray[np.int64]]:
        """Return, for each tokenizer, the indices of its tokens in segments cut the same way."""
        return [own[:-1][self._agrees] for own in self._firsts]

    def where_most(self, limit: int) -> list[int]:
        """Return the indices of the segments whose token counts differ most, widest gap first."""
        indices = np.flatnonzero(~self._agrees)
        counts = self._counts[:, indices]
        spread = counts.max(axis=0) - counts.min(axis=0) if len(indices) else indices
        chosen: list[int] = indices[np.argsort(-spread, kind="stable")[:limit]].tolist()
        return chosen


def align(ends_by_tokenizer: Sequence[Ends]) -> Alignment:
    """Cut a text at the boundaries that all tokenizers share, given their tokens' end offsets.

    >>> [(s.start, s.end, s.agrees) for s in align([[1, 3, 5], [2, 3, 5]])]
    [(0, 3, False), (3, 5, True)]
    """
    if not ends_by_tokenizer:
        raise ValueError("no tokenizer to align; expected the token ends of at least one")
    return Alignment(ends_by_tokenizer)


def _distinct(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Drop repeated offsets and 0: a token may cover no bytes at all."""
    distinct: NDArray[np.int64] = ends[np.diff(ends, prepend=0) > 0]
    return distinct
