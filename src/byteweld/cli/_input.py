"""What a verb reads: standard input, files whole or by line, and texts given as arguments.

Nothing is stripped from anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

STDIN = "-"
_BLOCK_BYTES = 1 << 20
_BATCH_BYTES = 8 << 20


def read(source: str) -> bytes:
    """Read a file, or standard input for `-`, as it is."""
    return sys.stdin.buffer.read() if source == STDIN else _path(source).read_bytes()


def read_lines(source: str) -> Iterator[bytes]:
    """Read lines lazily; each keeps its line ending."""
    if source == STDIN:
        yield from sys.stdin.buffer
        return
    with _path(source).open("rb") as file:
        yield from file


def _path(source: str) -> Path:
    if not source:  # Path("") would be the current folder
        raise FileNotFoundError("'': no such file; the name is empty")
    return Path(source)


def stdin_documents(*, lines: bool, separator: str | None) -> Iterator[bytes]:
    """Standard input as one document, or one a line, or as those between separators."""
    if separator is not None:
        yield from _between(sys.stdin.buffer, argument_bytes(separator))
    elif lines:
        yield from read_lines(STDIN)
    else:
        yield read(STDIN)


def _between(stream: BinaryIO, separator: bytes) -> Iterator[bytes]:
    if not separator:
        raise ValueError("separator is empty; it must be at least one byte")
    rest = bytearray()
    searched = 0  # no separator starts before this
    while block := stream.read(_BLOCK_BYTES):
        rest += block
        start = 0
        while (end := rest.find(separator, searched)) >= 0:
            yield bytes(rest[start:end])
            start = searched = end + len(separator)
        del rest[:start]
        searched = max(0, len(rest) - len(separator) + 1)
    if rest:
        yield bytes(rest)


def batches(documents: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Documents in lists of a few megabytes."""
    batch: list[bytes] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def argument_bytes(text: str) -> bytes:
    """The bytes of an argument: what is not UTF-8 comes back as it was given."""
    return text.encode("utf-8", "surrogateescape")
