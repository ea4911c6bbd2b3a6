"""What the formats of ranks share: tokens in base64, and the merge list that some ranks stand for.

A file of ranks merges by the rank of the result. Where that is provably the same as a merge list,
the vocabulary has the merge list.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING

from byteweld.formats._json import show
from byteweld.vocab import Merge, Vocabulary

if TYPE_CHECKING:
    from byteweld._native import Table as Table


def to_base64(token: bytes) -> bytes:
    """Write bytes in base64; no bytes are a lone `=`, as in the one file known to hold them.

    (Python writes nothing there, and a line that begins with its space is read by nobody.)
    """
    return base64.b64encode(token) or b"="


def from_base64(text: bytes) -> bytes | None:
    """Decode base64; None unless it is a way to write these bytes that some program has."""
    if text in (b"", b"="):
        return b""
    try:
        token = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return token if base64.b64encode(token) == text else None


def read_ranks(data: bytes) -> Table | None:
    """Read a rank file in one pass; None if anything is unusual, so that the plain reader does."""
    from byteweld import _native  # as below

    return _native.Table.of_ranks(data)


def recover_merges(tokens: Mapping[int, bytes]) -> list[Merge] | None:
    """Return the merge list that is the same tokenizer as these ranks, or None if there is none."""
    if b"" in tokens.values():  # it is made of nothing, and nothing becomes it
        return None
    from byteweld import _native  # the engine, loaded only when ranks are read or written

    merges = _native.recover_merges(list(tokens.items()))
    return None if merges is None else [Merge(*merge) for merge in merges]


def find_rank_obstacle(vocab: Vocabulary) -> str | None:
    """Return what ranks cannot say of a vocabulary, in words, or None."""
    if vocab.alphabet != "bytes":
        return f"its alphabet is {vocab.alphabet!r}, not 'bytes'"
    if vocab.ranking == "ranks":
        return None
    for rank, (merge, after) in enumerate(
        zip(vocab.merge_ids, vocab.merge_ids[1:], strict=False), start=1
    ):
        if after.new <= merge.new:
            return (
                f"merge {rank} makes id {after.new} and the merge before it makes {merge.new}; "
                "ranks merge in order of id"
            )
    # Ranks join any two parts whose bytes are a token. They are this vocabulary only if no other
    # pair can ever be joined. If that holds, every token is reached by merging, so that
    # `ignore_merges` changes nothing and need not be held.
    recovered = recover_merges(dict(vocab.ordinary()))
    if recovered is None:
        return "some of its tokens cannot be made by merging in order of id"
    if recovered != list(vocab.merge_ids):
        other = set(recovered).symmetric_difference(vocab.merge_ids)
        odd = min(other, key=lambda merge: merge.new)
        return (
            f"by the order of its ids, token {odd.new}, {show(vocab.tokens[odd.new])}, "
            "is made in another way than by its merge list"
        )
    return None
