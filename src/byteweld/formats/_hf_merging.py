"""Finds the two parts of a token by merging it, lowest rank first."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import AnyStr


def split_in_two(token: AnyStr, rank_of: Callable[[AnyStr, AnyStr], int | None]) -> int | None:
    """Merge the parts of a token by rank, except the last two; return where these meet, or None.

    The lowest rank goes first, and of equal ranks the leftmost.
    """
    size = len(token)
    ends = list(range(1, size + 1))  # start of a part -> its end; 0 once it is merged into another
    starts = list(range(-1, size))  # end of a part -> its start
    heap: list[tuple[int, int, int, int]] = []  # rank, start, middle, end

    def consider(start: int, middle: int, end: int) -> None:
        if end - start == size:
            return
        rank = rank_of(token[start:middle], token[middle:end])
        if rank is not None:
            heapq.heappush(heap, (rank, start, middle, end))

    for start in range(size - 1):
        consider(start, start + 1, start + 2)
    while heap:
        _, start, middle, end = heapq.heappop(heap)
        if ends[start] != middle or ends[middle] != end:
            continue  # one of its parts was merged
        ends[start], ends[middle], starts[end] = end, 0, start
        if start > 0:
            consider(starts[start], start, end)
        if end < size:
            consider(start, end, ends[end])
    return ends[0] if size > 1 and ends[0] < size and ends[ends[0]] == size else None
