"""Parts of large files, so that several tasks can share one file.

A part is planned by bytes alone: from `start` to `stop`. The task that reads it moves both to the
next place where the file may be divided: after a line or a separator, at a row group of Parquet,
or, if only pre-tokens are counted, where no pre-token changes. Every task finds the same places, so
each document is in exactly one part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from byteweld._files import COMPRESSED_SUFFIXES
from byteweld._native import CountBuilder, decompress_head, is_compressed
from byteweld.corpus._chunks import first_free
from byteweld.corpus._files import TABLE_EXTENSIONS, File, extension_of, file_name
from byteweld.corpus._remote import describe, has_ranges, read_remote
from byteweld.errors import CorpusError

_WINDOW_BYTES = 1 << 16
_MAX_WINDOW_BYTES = 1 << 22
_HEAD_BYTES = 1 << 12
_UNDIVIDED = (".warc", ".wet", *(name for name in TABLE_EXTENSIONS if name != ".parquet"))

# Returns the first place at or after an offset, and before another, where a file may be divided.
Finder = Callable[["FilePart", int, int], int | None]


class FilePart(NamedTuple):
    """The bytes of a file from `start` to `stop`, and how many lines are before it, if known."""

    file: File
    start: int
    stop: int
    size: int  # of the file
    line: int = 0

    @property
    def is_table(self) -> bool:
        """Whether it is a part of a Parquet file."""
        return extension_of(file_name(self.file)) in TABLE_EXTENSIONS

    @property
    def share(self) -> tuple[Fraction, Fraction]:
        """Where it starts and stops, as fractions of the file."""
        return Fraction(self.start, self.size), Fraction(self.stop, self.size)

    def __str__(self) -> str:
        return f"{self.file}, bytes {self.start:,} to {self.stop:,}"


def whole_file(file: File | FilePart) -> File:
    """Return the file of a part, or the file itself."""
    return file.file if isinstance(file, FilePart) else file


def may_divide(file: File, *, has_places: bool) -> bool:
    """Whether a file can be divided, judged by its name; text, if it has places to divide it at."""
    name = file_name(file).lower()
    extension = extension_of(name)
    if isinstance(file, str) and not has_ranges(file):
        return False
    if extension == ".parquet":
        return True
    return has_places and extension not in _UNDIVIDED and not name.endswith(COMPRESSED_SUFFIXES)


def exact_part(part: FilePart, find: Finder) -> FilePart | File | None:
    """Return what a task reads of a planned part; None if it is nothing.

    A file that turns out to be compressed, or another format, is read as a whole by the task that
    has its start.
    """
    size = _size(part.file)
    if size is not None and size != part.size:
        raise CorpusError(
            f"the file has {size} bytes now and had {part.size} when the work was planned; start "
            "again when nothing writes to it",
            path=part.file,
        )
    if size is None:  # it cannot be opened; the reader says so, or skips it, once
        return part.file if part.start == 0 else None
    if part.is_table:
        return part
    if not _is_plain(part.file):
        return part.file if part.start == 0 else None
    start = 0 if part.start == 0 else find(part, part.start, part.stop)
    if start is None:
        return None
    stop = part.size if part.stop >= part.size else find(part, part.stop, part.size)
    return part._replace(start=start, stop=part.size if stop is None else stop)


def _size(file: File) -> int | None:
    if isinstance(file, str):
        return describe(file).size
    try:
        return os.stat(file).st_size if os.access(file, os.R_OK) else None  # noqa: PTH116
    except OSError:
        return None


def _is_plain(file: File) -> bool:
    """Whether the bytes of a file are those of its documents, judged by its first bytes."""
    head = read_at(file, 0, _HEAD_BYTES)
    if is_compressed(head):
        return False
    try:
        return decompress_head(head, len(head)) == head
    except ValueError:  # an archive that cannot be read
        return False


def lines_before(part: FilePart) -> int:
    """Return the number of line ends before a part."""
    return sum(window.count(b"\n") for _, window in _windows(part.file, 0, part.start))


# ---------------------------------------------------------------------- places


def after_line(part: FilePart, start: int, stop: int) -> int | None:
    """Find the first start of a line."""
    for offset, window in _windows(part.file, start - 1, stop - 1):
        found = window.find(b"\n")
        if found != -1:
            return offset + found + 1
    return None


def after_separator(separator: bytes) -> Finder:
    """Return a function that finds the first end of a separator that overlaps no earlier one."""

    def find(part: FilePart, start: int, stop: int) -> int | None:
        # The separator that ends at `start` begins before it.
        begin = start - len(separator)
        windows = _windows(part.file, max(0, begin - len(separator) + 1), stop)
        found = first_free(windows, separator, begin)
        if found is None or found + len(separator) >= stop:
            return None
        return found + len(separator)

    return find


def at_cut(builder: CountBuilder) -> Finder:
    """Return a function that finds the first place where no pre-token and no count changes."""
    context = builder.context_bytes

    def find(part: FilePart, start: int, stop: int) -> int | None:
        first = max(0, start - context)
        window = b""
        # Some bytes after the last place are needed to judge it.
        for offset, block in _windows(part.file, first, min(stop + context, part.size)):
            window += block
            is_end = offset + len(block) == part.size
            cut = builder.first_cut(window, start - first, is_end)
            if cut is not None:
                return first + cut if first + cut < stop else None
            # The last places cannot be judged yet; go on with them, and what is before them.
            start = max(start, first + len(window) + 1 - context)
            done = max(0, start - context - first)
            first, window = first + done, window[done:]
        return None

    return find


def _windows(file: File, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes from `start` to `stop` as (offset, bytes), in growing windows."""
    size = _WINDOW_BYTES
    while start < stop:
        window = read_at(file, start, min(size, stop - start))
        if not window:
            return
        yield start, window
        start += len(window)
        size = min(2 * size, _MAX_WINDOW_BYTES)


def read_at(file: File, start: int, size: int) -> bytes:
    """Return `size` bytes of a file from an offset on, fewer at its end."""
    if isinstance(file, str):
        return read_remote(file, start, start + size)
    with open(file, "rb", buffering=0) as opened:  # noqa: PTH123
        opened.seek(start)
        data = b""
        while len(data) < size and (block := opened.read(size - len(data))):
            data += block
        return data
