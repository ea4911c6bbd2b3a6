"""What the rank formats share: tokens in base64, and recovering a merge list from ranks.

A ranked vocabulary merges the pair whose result has the lowest rank. If a merge list provably gives
the same ids, the vocabulary gets that merge list.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING

from byteweld.formats._json import show
from byteweld.formats._limits import NotHeldError, check_alphabet
from byteweld.vocab import Merge, Vocabulary

if TYPE_CHECKING:
    from byteweld._native import Table as Table


def to_base64(token: bytes) -> bytes:
    """Write bytes in base64; the empty token is a lone `=`, as in the one file that has it.

    (Python writes nothing, and no program reads a line that starts with a space.)
    """
    return base64.b64encode(token) or b"="


def from_base64(text: bytes) -> bytes | None:
    """Decode base64; None unless it is valid and canonical."""
    if text in (b"", b"="):
        return b""
    try:
        token = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return token if base64.b64encode(token) == text else None


def read_ranks(data: bytes) -> Table | None:
    """Read a rank file fast; None if anything is unusual, and the plain reader must read it."""
    from byteweld import _native  # the engine, loaded only when ranks are read or written

    return _native.Table.of_ranks(data)


def recover_merges(tokens: Mapping[int, bytes]) -> list[Merge] | None:
    """Return the merge list that gives the same ids as these ranks, or None."""
    if b"" in tokens.values():  # no merge makes it
        return None
    from byteweld import _native  # as above

    merges = _native.recover_merges(list(tokens.items()))
    return None if merges is None else [Merge(*merge) for merge in merges]


def check_ranks(vocab: Vocabulary) -> None:
    """Raise unless ranks can express a vocabulary."""
    check_alphabet(vocab)
    if vocab.ranking == "ranks":
        return
    for rank, (merge, after) in enumerate(
        zip(vocab.merge_ids, vocab.merge_ids[1:], strict=False), start=1
    ):
        if after.new <= merge.new:
            raise NotHeldError(
                f"merge {rank} makes id {after.new}, but the merge before it makes {merge.new}; "
                "ranks merge in order of id"
            )
    # Ranks merge any two parts whose bytes are a token, so no pair outside the merge list may ever
    # occur. Then merging makes every token, and `ignore_merges` makes no difference.
    recovered = recover_merges(dict(vocab.ordinary()))
    if recovered is None:
        raise NotHeldError("some of its tokens cannot be made by merging in order of id")
    if recovered != list(vocab.merge_ids):
        other = set(recovered).symmetric_difference(vocab.merge_ids)
        odd = min(other, key=lambda merge: merge.new)
        raise NotHeldError(
            f"merging in order of id makes token {odd.new}, {show(vocab.tokens[odd.new])}, "
            "from different parts than its merge list"
        )
