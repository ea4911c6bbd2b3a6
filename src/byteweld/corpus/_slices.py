"""Slices: a corpus divided into parts of about equal size, each a task's share.

Slices are planned from the names and sizes of the files alone. Together and in order, they have
all documents of the corpus, each once and in the same order.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from byteweld._native import CountBuilder
from byteweld.corpus._files import RECORD_EXTENSIONS, File, extension_of, file_name, file_size
from byteweld.corpus._parts import (
    FilePart,
    Finder,
    after_line,
    after_separator,
    at_cut,
    exact_part,
    lines_before,
    may_divide,
    whole_file,
)
from byteweld.errors import CorpusError

if TYPE_CHECKING:
    from byteweld.corpus import Corpus, Reading

Result = TypeVar("Result")

# A corpus has about this many slices, unless they would be smaller or larger than this.
_SLICES = 4096
_MIN_SLICE_BYTES = 128 << 20
_MAX_SLICE_BYTES = 4 << 30


class Slice(NamedTuple):
    """Consecutive files of a corpus, or parts of files."""

    number: int
    first_file: int  # the number of the first file in the corpus
    files: tuple[File | FilePart, ...]
    size: int  # in stored bytes
    start: tuple[int, ...] | None = None  # where to begin in the first file

    def __str__(self) -> str:
        first = self.files[0]
        more = f" and {len(self.files) - 1:,} more" if len(self.files) > 1 else ""
        return f"slice {self.number:,} ({first}{more})"


def divide(
    corpus: Corpus, slice_bytes: int | None = None, *, builder: CountBuilder | None = None
) -> list[Slice]:
    """Divide the files of a corpus into slices of about `slice_bytes` stored bytes.

    The default is a 4,096th of the corpus, at least 128 MiB and at most 4 GiB. With a `builder`,
    documents need not stay whole: they are only counted, with it.
    """
    whole_files = [whole_file(file) for file in corpus.files]
    sizes = [file_size(file) for file in whole_files]
    if slice_bytes is None:
        slice_bytes = min(max(sum(sizes) // _SLICES, _MIN_SLICE_BYTES), _MAX_SLICE_BYTES)
    slices: list[Slice] = []
    files: list[File | FilePart] = []
    first = filled = 0

    def end(next_file: int) -> None:
        nonlocal first, filled
        if files:
            slices.append(Slice(len(slices), first, tuple(files), filled))
        files.clear()
        first, filled = next_file, 0

    has_cuts = builder is not None and builder.has_cuts()
    for number, (file, size) in enumerate(zip(whole_files, sizes, strict=True)):
        places = _finder(corpus.reading, file, builder if has_cuts else None)
        if size > slice_bytes and may_divide(file, has_places=places is not None):
            end(number)
            for part in _parts(file, size, slice_bytes):
                files.append(part)
                filled = part.stop - part.start
                end(number)
            first = number + 1
            continue
        if filled + size > slice_bytes:
            end(number)
        files.append(file)
        filled += size
    end(len(corpus.files))
    return slices


def slice_corpus(corpus: Corpus, part: Slice, *, builder: CountBuilder | None = None) -> Corpus:
    """Return the documents of a slice, without files if there are none.

    Only the reading of `corpus` counts, not its files.
    """
    files: list[File | FilePart] = []
    for file in part.files:
        if not isinstance(file, FilePart):
            files.append(file)
            continue
        find = _finder(corpus.reading, file.file, builder)
        exact = exact_part(file, after_line if find is None else find)
        if exact is not None:
            files.append(exact)
    return dataclasses.replace(corpus, files=tuple(files))


def on_slice(
    corpus: Corpus,
    part: Slice,
    function: Callable[[Corpus], Result],
    builder: CountBuilder | None = None,
) -> Result:
    """Return what a function makes of the documents of a slice."""
    documents = slice_corpus(corpus, part, builder=builder)
    try:
        return function(documents)
    except CorpusError:
        # Once more, with the lines of the file instead of those of the slice in the message.
        numbered = _with_lines(documents)
        if numbered == documents:
            raise
    return function(numbered)


def _with_lines(corpus: Corpus) -> Corpus:
    """Return a slice whose errors have the lines of the files, which takes reading them.

    It is the same slice if it starts where a file does, or has no lines.
    """
    files = [
        file._replace(line=lines_before(file))
        if isinstance(file, FilePart) and file.start and not file.is_table
        else file
        for file in corpus.files
    ]
    return dataclasses.replace(corpus, files=tuple(files))


def _parts(file: File, size: int, slice_bytes: int) -> Iterator[FilePart]:
    count = -(-size // slice_bytes)
    edges = [size * number // count for number in range(count + 1)]
    for start, stop in itertools.pairwise(edges):
        yield FilePart(file, start, stop, size)


def _finder(reading: Reading, file: File, builder: CountBuilder | None) -> Finder | None:
    """Return what finds the places where a text file may be divided; None if there are none."""
    is_record = extension_of(file_name(file).lower()) in RECORD_EXTENSIONS
    if reading.json_lines or is_record:
        return after_line
    if reading.separator is not None:
        return after_separator(reading.separator.encode())
    if reading.unit == "line":
        return after_line
    # Of a whole document, nothing is skipped or replaced without knowing the rest of it.
    if builder is not None and reading.on_error == "fail":
        return at_cut(builder)
    return None
