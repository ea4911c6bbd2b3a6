"""Reads string merges whose tokens contain spaces, as ck-bpe-train writes them in ASCII mode.

`"a b c"` may be `a` and `b c`, or `a b` and `c`, so `tokenizers` rejects such a file. But ck gives
the merges the last ids of the vocabulary, in their order, so the token that each merge makes is
known, and the earlier merges leave only one way to make it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from byteweld.errors import FormatError
from byteweld.formats._hf_merging import split_in_two
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
        middle = split_in_two(token, lambda left, right: ranks.get((left, right)))
    if not middle or middle == len(token) or merge != f"{token[:middle]} {token[middle:]}":
        return None
    return token[:middle], token[middle:]
