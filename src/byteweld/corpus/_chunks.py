"""Where a large file can be divided for workers: at special tokens, without reading all of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from byteweld.errors import check_text

_WINDOW_BYTES = 1 << 16


def find_chunk_boundaries(
    file: str | os.PathLike[str] | BinaryIO,
    desired_num_chunks: int,
    split_special_token: str | bytes,
) -> list[int]:
    """Return offsets that divide a file into chunks, each of which starts at a special token.

    Evenly spaced offsets are moved to the next special token; duplicates are dropped, so there
    may be fewer chunks than desired. The first offset is 0, the last the size of the file. Only
    the parts between an even offset and the next special token are read. Counting every chunk
    with this special token and adding the counts gives the counts of the file.

    Args:
        file: a path, or a seekable file opened in binary mode, whose position is restored.
        desired_num_chunks: how many chunks to make, at most.
        split_special_token: a special token that is not part of a longer one.

    Examples:
        >>> import io
        >>> from byteweld.corpus import find_chunk_boundaries
        >>> find_chunk_boundaries(io.BytesIO(b"one<|end|>two<|end|>three"), 2, "<|end|>")
        [0, 13, 25]
    """
    if type(desired_num_chunks) is not int or desired_num_chunks < 1:
        raise ValueError(
            f"desired_num_chunks is {desired_num_chunks!r}; it must be a whole number, at least 1"
        )
    if not isinstance(split_special_token, bytes):
        check_text("split_special_token", split_special_token)
        split_special_token = split_special_token.encode()
    if not split_special_token:
        raise ValueError("split_special_token is empty; it must have at least one byte")
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as opened:  # noqa: PTH123 (a str or a PathLike)
            return _find(opened, desired_num_chunks, split_special_token)
    if not all(hasattr(file, name) for name in ("seek", "tell", "read")):
        raise TypeError(f"file is {file!r}; expected a path or a file opened in binary mode")
    before = file.tell()
    try:
        return _find(file, desired_num_chunks, split_special_token)
    finally:
        file.seek(before)


def _find(file: BinaryIO, num_chunks: int, delimiter: bytes) -> list[int]:
    size = file.seek(0, os.SEEK_END)
    boundaries = [0]
    num_chunks = min(num_chunks, max(1, size))
    for number in range(1, num_chunks):
        even = size // num_chunks * number
        if even > boundaries[-1]:
            boundaries.append(_next_delimiter(file, even, delimiter, size))
    return sorted({*boundaries, size})


def _next_delimiter(file: BinaryIO, start: int, delimiter: bytes, size: int) -> int:
    """Return the first delimiter at or after `start` that overlaps no earlier one, or `size`.

    One that overlaps an earlier occurrence (as in `aaa` for `aa`) may not be a delimiter when the
    file is split from its beginning.
    """
    found = first_free(_windows(file, max(0, start - len(delimiter) + 1)), delimiter, start)
    return size if found is None else found


def first_free(windows: Iterable[tuple[int, bytes]], delimiter: bytes, start: int) -> int | None:
    """Return the first delimiter at or after `start` that overlaps no earlier occurrence, or None.

    `windows` are the bytes of a file from `start - len(delimiter) + 1` on, with their offsets.
    """
    free_from = 0  # an occurrence from here on overlaps no earlier one
    for offset in _occurrences(windows, delimiter):
        if offset >= start and offset >= free_from:
            return offset
        free_from = offset + len(delimiter)
    return None


def _windows(file: BinaryIO, start: int) -> Iterator[tuple[int, bytes]]:
    file.seek(start)
    while block := file.read(_WINDOW_BYTES):
        if not isinstance(block, bytes):
            raise TypeError("file is opened as text; open it in binary mode")
        yield start, block
        start += len(block)


def _occurrences(windows: Iterable[tuple[int, bytes]], delimiter: bytes) -> Iterator[int]:
    """Yield the offset of every occurrence, also of those that straddle two windows."""
    kept = b""
    for offset, block in windows:
        window, first = kept + block, offset - len(kept)
        found = window.find(delimiter)
        while found != -1:
            yield first + found
            found = window.find(delimiter, found + 1)
        kept = window[len(window) - min(len(window), len(delimiter) - 1) :]
