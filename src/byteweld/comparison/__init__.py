"""Several tokenizers on one text, on the byte axis. Pure: offsets in, plain values out.

Two tokenizers on a whole corpus are in `corpora`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ends = Sequence[int] | NDArray[np.int64]


class Segment(NamedTuple):
    """The shortest stretch of bytes at whose ends every tokenizer has a boundary.

    `tokens` has, for each tokenizer, the places (from, to) of its tokens in the stretch.
    """

    start: int
    end: int
    tokens: tuple[tuple[int, int], ...]
    agrees: bool


class Alignment:
    """The segments of a text, in columns: a text of a megabyte may have a million of them."""

    def __init__(self, ends_by_tokenizer: Sequence[Ends]) -> None:
        ends = [np.asarray(given, np.int64) for given in ends_by_tokenizer]
        common = _without_twins(ends[0])
        for own in ends[1:]:
            common = common[np.isin(common, own)]
        self._edges = np.concatenate([[0], common])
        # Of each tokenizer, how many tokens end at or before each edge.
        self._places = np.stack([np.searchsorted(own, self._edges, side="right") for own in ends])
        self._places[:, 0] = 0
        self._counts = np.diff(self._places, axis=1)
        # No boundary inside is everybody's: so all cut alike where each has a single token.
        self._agrees = (self._counts == 1).all(axis=0)

    def __len__(self) -> int:
        return len(self._agrees)

    def __getitem__(self, place: int) -> Segment:
        if not 0 <= place < len(self):
            raise IndexError(f"segment {place} of {len(self)}")
        spans = self._places[:, place : place + 2].tolist()
        start, end = self._edges[place : place + 2].tolist()
        return Segment(start, end, tuple((a, b) for a, b in spans), bool(self._agrees[place]))

    @property
    def differing(self) -> int:
        """How many segments are cut differently."""
        return int(np.count_nonzero(~self._agrees))

    @property
    def differing_bytes(self) -> int:
        """How many bytes these have."""
        return int(np.diff(self._edges)[~self._agrees].sum())

    def first_differing(self, limit: int) -> list[int]:
        """The first segments that are cut differently."""
        found: list[int] = np.flatnonzero(~self._agrees)[:limit].tolist()
        return found

    def single_tokens(self) -> list[NDArray[np.int64]]:
        """Of each tokenizer, the places of its tokens in the segments that are cut alike."""
        return [own[:-1][self._agrees] for own in self._places]

    def where_most(self, limit: int) -> list[int]:
        """The segments whose numbers of tokens differ most, the widest spread first."""
        places = np.flatnonzero(~self._agrees)
        counts = self._counts[:, places]
        spread = counts.max(axis=0) - counts.min(axis=0) if len(places) else places
        chosen: list[int] = places[np.argsort(-spread, kind="stable")[:limit]].tolist()
        return chosen


def align(ends_by_tokenizer: Sequence[Ends]) -> Alignment:
    """Cut a text where all tokenizers cut it; `ends` are the end offsets of each one's tokens.

    >>> [(s.start, s.end, s.agrees) for s in align([[1, 3, 5], [2, 3, 5]])]
    [(0, 3, False), (3, 5, True)]
    """
    if not ends_by_tokenizer:
        raise ValueError("there is no tokenizer to align; expected the ends of at least one")
    return Alignment(ends_by_tokenizer)


def _without_twins(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each offset once, and not that of the start: a token may stand for no bytes at all."""
    kept: NDArray[np.int64] = ends[np.diff(ends, prepend=0) > 0]
    return kept
