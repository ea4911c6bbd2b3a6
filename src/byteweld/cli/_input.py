"""What a verb reads: standard input, files whole or by line, and texts given as arguments.

Nothing is stripped from anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

STDIN = "-"
_BLOCK_BYTES = 1 << 20


def read(source: str) -> bytes:
    """Read a file, or standard input for `-`, as it is."""
    return sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()


def read_lines(source: str) -> Iterator[bytes]:
    """Read lines lazily; each keeps its line ending."""
    if source == STDIN:
        yield from sys.stdin.buffer
        return
    with Path(source).open("rb") as file:
        yield from file


def read_documents(source: str, *, lines: bool, separator: str | None) -> Iterator[bytes]:
    """Read documents: one, or one a line, or those between separators (lazily where it can be)."""
    if separator is not None:
        yield from _between(sys.stdin.buffer, argument_bytes(separator))
    elif lines:
        yield from read_lines(source)
    else:
        yield read(source)


def _between(stream: BinaryIO, separator: bytes) -> Iterator[bytes]:
    if not separator:
        raise ValueError("separator is empty; it must be at least one byte")
    pieces: list[bytes] = []  # of the document being read, without the end that may start a separator
    tail = b""
    while block := stream.read(_BLOCK_BYTES):
        *whole, tail = (tail + block).split(separator)
        for document in whole:
            yield b"".join([*pieces, document])
            pieces = []
        keep = len(separator) - 1
        pieces.append(tail[: len(tail) - keep] if keep else tail)
        tail = tail[len(tail) - keep :] if keep and len(tail) > keep else (tail if keep else b"")
        if keep and len(tail) <= keep and pieces and not pieces[-1]:
            pieces.pop()
    last = b"".join([*pieces, tail])
    if last:
        yield last


def argument_bytes(text: str) -> bytes:
    """The bytes of an argument: what is not UTF-8 comes back as it was given."""
    return text.encode("utf-8", "surrogateescape")
