"""Streams of texts and of ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import byteweld


def pieces(text: Any, size: int) -> list[Any]:
    """Cut a text into pieces of one size."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def streamed(
    tok: byteweld.Tokenizer, pieces: Iterable[str | bytes], **options: Any
) -> Iterator[int]:
    """Yield the ids of all pieces, as soon as each is certain."""
    stream = tok.encode_stream(**options)
    for piece in pieces:
        yield from stream.feed(piece)
    yield from stream.finish()


def decoded(tok: byteweld.Tokenizer, ids: Iterable[int]) -> str:
    """Decode ids one by one."""
    stream = tok.decode_stream()
    return "".join(map(stream.feed, ids)) + stream.finish()
