"""Encoding a stream of pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import byteweld


def streamed(
    tok: byteweld.Tokenizer, pieces: Iterable[str | bytes], **options: Any
) -> Iterator[int]:
    """Yield the ids of all pieces, as soon as each is certain."""
    stream = tok.encode_stream(**options)
    for piece in pieces:
        yield from stream.feed(piece)
    yield from stream.finish()
