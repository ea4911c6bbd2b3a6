"""Several tokenizers on one text, on the byte axis. Pure: offsets in, plain values out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Segment(NamedTuple):
    """The shortest stretch of bytes at whose ends every tokenizer has a boundary.

    `tokens` has, for each tokenizer, the places (from, to) of its tokens in the stretch.
    """

    start: int
    end: int
    tokens: tuple[tuple[int, int], ...]
    agrees: bool

    @property
    def spread(self) -> int:
        """How many tokens more the dearest tokenizer needs than the cheapest."""
        counts = [last - first for first, last in self.tokens]
        return max(counts) - min(counts)


def align(ends_by_tokenizer: Sequence[Sequence[int]]) -> list[Segment]:
    """Cut a text where all tokenizers cut it; `ends` are the end offsets of each one's tokens.

    >>> [(s.start, s.end, s.agrees) for s in align([[1, 3, 5], [2, 3, 5]])]
    [(0, 3, False), (3, 5, True)]
    """
    if not ends_by_tokenizer:
        return []
    common = set(ends_by_tokenizer[0]).intersection(*map(set, ends_by_tokenizer[1:]))
    places = [0] * len(ends_by_tokenizer)
    segments = []
    start = 0
    for end in sorted(common):
        spans = []
        for which, ends in enumerate(ends_by_tokenizer):
            first = last = places[which]
            while last < len(ends) and ends[last] <= end:
                last += 1
            places[which] = last
            spans.append((first, last))
        cuts = {tuple(ends[a:b]) for ends, (a, b) in zip(ends_by_tokenizer, spans, strict=True)}
        segments.append(Segment(start, end, tuple(spans), len(cuts) == 1))
        start = end
    return segments


def where_most(segments: Sequence[Segment], limit: int) -> list[int]:
    """The places of the segments that differ most in tokens, the widest spread first."""
    differing = [place for place, segment in enumerate(segments) if not segment.agrees]
    return sorted(differing, key=lambda place: -segments[place].spread)[:limit]
