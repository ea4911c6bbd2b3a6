"""Reads string merges whose tokens contain spaces, as ck-bpe-train writes them in ASCII mode.

`"a b c"` may be `a` and `b c`, or `a b` and `c`, so `tokenizers` rejects such a file. But ck gives
the merges the last ids of the vocabulary, in their order, so the token that each merge makes is
known, and the earlier merges leave only one way to make it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from pathlib import Path

from byteweld.errors import FormatError
from byteweld.formats._json import show


def read_spaced_merges(
    merges: Sequence[str], ids: Mapping[str, int], path: Path
) -> list[tuple[str, str]]:
    """Return the merges as pairs; a merge that cannot be told apart is a FormatError."""
    tokens = sorted(ids, key=ids.__getitem__)[-len(merges) :] if merges else []
    if len(tokens) < len(merges):
        raise FormatError(
            f"it has {len(merges)} merges and {len(tokens)} tokens; merges whose tokens contain "
            "spaces can only be read if the last ids are theirs, in order",
            path=path,
        )
    ranks: dict[tuple[str, str], int] = {}
    for rank, (merge, token) in enumerate(zip(merges, tokens, strict=True)):
        pair = _split(merge, token, ranks)
        if pair is None:
            raise FormatError(
                f"merge {rank} is {show(merge)}; expected the two parts that the earlier merges "
                f"leave of token {ids[token]}, {show(token)}, with one space between them",
                path=path,
            )
        ranks[pair] = rank
    return list(ranks)


def _split(merge: str, token: str, ranks: Mapping[tuple[str, str], int]) -> tuple[str, str] | None:
    """Return the two parts of a merge that makes `token`, or None if it does not."""
    if merge.count(" ") == 1:
        left, _, right = merge.partition(" ")
        middle = len(left) if left + right == token else None
    else:
        middle = _boundary(token, ranks)
    if not middle or middle == len(token) or merge != f"{token[:middle]} {token[middle:]}":
        return None
    return token[:middle], token[middle:]


def _boundary(token: str, ranks: Mapping[tuple[str, str], int]) -> int | None:
    """Merge the characters of a token; return where the two parts meet, or None if not two remain.

    The lowest rank goes first, and of equal ranks the leftmost.
    """
    size = len(token)
    ends = list(range(1, size + 1))  # start of a part -> its end; 0 once it is merged into another
    starts = list(range(-1, size))  # end of a part -> its start
    heap: list[tuple[int, int, int, int]] = []  # rank, start, middle, end

    def consider(start: int, middle: int, end: int) -> None:
        rank = ranks.get((token[start:middle], token[middle:end]))
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
