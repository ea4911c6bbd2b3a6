"""Resolve paths, folders and globs to files, and say how the engine reads documents from them.

Folders are searched recursively, in byte order of the paths; symbolic links and empty files in
them are ignored. A text file is one document unless lines or a separator split it; `.jsonl` and
`.ndjson` files, or with `json_lines` all text files, hold one document per line, WARC files one per
conversion record. Of Parquet and Arrow files, each row of a column is a document. gzip, zstd, xz
and bzip2 are recognized by their first bytes. Remote files go through fsspec.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypedDict, TypeGuard

from byteweld._extras import arrow
from byteweld._files import COMPRESSED_SUFFIXES
from byteweld._native import Documents, count_bytes, file_digest
from byteweld.corpus._chunks import find_chunk_boundaries
from byteweld.corpus._files import (
    DICTIONARY_SUFFIXES,
    FOLDER_EXTENSIONS,
    RECORD_EXTENSIONS,
    TABLE_EXTENSIONS,
    File,
    Source,
    extension_of,
    extensions,
    file_name,
    file_size,
    file_state,
    find_files,
)
from byteweld.corpus._parts import FilePart, whole_file
from byteweld.corpus._remote import (
    RemoteStream,
    check_local,
    describe,
    engine_path,
    is_remote,
    list_again,
    open_remote,
)
from byteweld.corpus._tables import TableFile, TableObject, is_dataset
from byteweld.errors import CorpusError, check_text

__all__ = [
    "FOLDER_EXTENSIONS",
    "ArrowTable",
    "ByteCounts",
    "Corpus",
    "File",
    "OnError",
    "Outside",
    "Reading",
    "ReadingOptions",
    "Source",
    "Unit",
    "check_local",
    "describe",
    "digest_file",
    "file_state",
    "find_chunk_boundaries",
    "is_remote",
    "is_table",
    "open_corpus",
    "open_remote",
    "whole_file",
]

OnError = Literal["fail", "skip", "replace"]
Unit = Literal["file", "line"]


class ArrowTable(Protocol):
    """An object with the Arrow C stream interface: of pyarrow, polars, duckdb, pandas, ..."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule with the stream."""


class ReadingOptions(TypedDict, total=False):
    """The keyword arguments of every function that reads a corpus; see `Reading`."""

    ext: str | Sequence[str] | None
    lines: bool
    separator: str | None
    field: str | None
    json_lines: bool
    on_error: OnError


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How documents are read from files.

    Attributes:
        ext: extensions of the files to read in folders, as a list or comma-separated; "*" for all,
            None for `FOLDER_EXTENSIONS`.
        unit: whether a text file is one document, or each of its lines (with its line ending).
        separator: a string that separates the documents of a file; None if a file has only one.
        field: the field of a JSON line, or the column of a table, that holds the text.
        json_lines: whether every text file holds JSON lines, whatever its name.
        on_error: "fail" on broken records; "skip" them, and documents that are not UTF-8; or
            "replace" invalid UTF-8 by U+FFFD.
    """

    ext: str | Sequence[str] | None = None
    unit: Unit = "file"
    separator: str | None = None
    field: str = "text"
    json_lines: bool = False
    on_error: OnError = "fail"

    def __post_init__(self) -> None:
        check_text("field", self.field)
        check_text("on_error", self.on_error)
        if self.separator is not None:
            check_text("separator", self.separator)
        if self.separator == "":
            raise ValueError("separator is empty; it must be at least one byte")

    @classmethod
    def of(
        cls, options: ReadingOptions, *, unit: Unit = "file", ext: str | Sequence[str] | None = None
    ) -> Reading:
        """Make a Reading from keyword arguments; `unit` and `ext` are their defaults."""
        unknown = options.keys() - ReadingOptions.__annotations__.keys()
        if unknown:
            known = ", ".join(ReadingOptions.__annotations__)
            raise TypeError(f"unknown option {min(unknown)!r}; expected one of {known}")
        given = {name: value for name, value in options.items() if value is not None}
        is_lines = given.pop("lines", False)
        if given.get("json_lines") and (is_lines or "separator" in given):
            other = "lines" if is_lines else "separator"
            raise ValueError(
                f"json_lines= and {other}= cannot be combined: each line is a record, and a "
                "document; leave one out"
            )
        defaults: dict[str, Any] = {"ext": ext, "unit": "line" if is_lines else unit}
        return cls(**defaults | given)


class Outside(NamedTuple):
    """A byte that is not in an alphabet, its file, and its offset in it.

    The offset is None in JSON lines, tables and replaced text: their bytes are not the file's.
    """

    file: str
    offset: int | None
    byte: int


class ByteCounts(NamedTuple):
    """How often each of the 256 byte values occurs, and which are not in an alphabet."""

    counts: list[int]
    first_outside: Outside | None
    files_outside: int  # with such bytes
    skipped_documents: int


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Files, or a table in memory, and how to read documents from them.

    A file is a Path, the URL of a remote file, or a part of a file (in a slice of a corpus).
    """

    files: tuple[File | FilePart, ...] = ()
    table: ArrowTable | None = None
    reading: Reading = Reading()
    # Extension -> number of files in searched folders that `ext` excludes.
    skipped_files: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def total_bytes(self) -> int:
        """Size of all files on disk; a file that has vanished counts as 0."""
        return sum(
            file.stop - file.start if isinstance(file, FilePart) else file_size(file)
            for file in self.files
        )

    def states(self, *, anew: bool = False) -> Iterator[list[object]]:
        """Yield the name of each file, its size, and what changes when it is modified.

        What is known of remote files is what it was when they were found, unless `anew`.
        """
        files = [whole_file(file) for file in self.files]
        if anew:
            list_again(file for file in files if isinstance(file, str))
        for name, file in zip(self.names(), files, strict=True):
            yield [name, *file_state(str(file) if anew and isinstance(file, str) else file)]

    def names(self) -> list[str]:
        """Return the name of each file as text."""
        files = map(whole_file, self.files)
        return [os.fsencode(file).decode("utf-8", "replace") for file in files]

    @property
    def has_records(self) -> bool:
        """Whether a document must be held in memory: a record, or one that may be skipped."""
        return (
            self.table is not None
            or self.reading.on_error == "skip"
            or self.reading.json_lines
            or self._has(*RECORD_EXTENSIONS, *TABLE_EXTENSIONS)
        )

    @property
    def has_tables(self) -> bool:
        """Whether any file is a table."""
        return self._has(*TABLE_EXTENSIONS)

    @property
    def has_compressed(self) -> bool:
        """Whether any file is compressed, so that its size is not the size of its text."""
        return self.has_tables or any(name.endswith(COMPRESSED_SUFFIXES) for name in self._names())

    @property
    def num_dictionaries(self) -> int:
        """Number of dictionaries in memory at once, to decompress the files; two to skip."""
        if not any(name.endswith(DICTIONARY_SUFFIXES) for name in self._names()):
            return 0
        return 2 if self.reading.on_error == "skip" else 1

    def _has(self, *extensions: str) -> bool:
        return any(extension_of(name) in extensions for name in self._names())

    def _names(self) -> Iterator[str]:
        return (file_name(whole_file(file)).lower() for file in self.files)

    def documents(self, *, digest: bool = False) -> Documents:
        """Iterate over the documents, reading the files as needed.

        With `digest`, its `take_finished` gives the size and XXH3-128 of files read to their end.
        """
        return Documents({**self.engine_arguments(), "digest": digest})

    def by_file(self) -> Iterator[tuple[str, Documents]]:
        """Yield each file's name and its documents; a table's name is its type."""
        if self.table is not None:
            yield type(self.table).__name__, self.documents()
        for file in self.files:
            yield str(whole_file(file)), dataclasses.replace(self, files=(file,)).documents()

    def count_bytes(
        self, alphabet: bytes = b"", progress: Callable[[int], object] | None = None
    ) -> ByteCounts:
        """Count the byte values of all documents; find those that are not in `alphabet`.

        Nothing is held in memory but a block and, of JSON lines, a record. `progress` is called
        with the bytes read.
        """
        given = self.engine_arguments()
        counts, outside, *rest = count_bytes(given, alphabet=alphabet, progress=progress)
        return ByteCounts(counts, outside and Outside(*outside), *rest)

    def engine_arguments(self) -> dict[str, Any]:
        """Return what the engine reads, and how; all its functions take these arguments."""
        reading = self.reading
        return {
            "inputs": self._inputs(),
            "open_remote": RemoteStream,
            "unit": reading.unit,
            "separator": None if reading.separator is None else reading.separator.encode(),
            "field": reading.field,
            "json_lines": reading.json_lines,
            "on_error": reading.on_error,
        }

    def _inputs(self) -> Sequence[Input]:
        if self.table is not None:
            return [TableObject(self.table, self.reading.field)]
        inputs: list[Input] = []
        for given, name in zip(self.files, self._names(), strict=True):
            part = given if isinstance(given, FilePart) else None
            file = whole_file(given)
            extension = extension_of(name)
            path = engine_path(file) if isinstance(file, str) else file
            if extension in TABLE_EXTENSIONS:
                share = None if part is None else part.share
                inputs.append(TableFile(file, extension, self.reading.field, share))
            elif part is not None:
                inputs.append((path, part.start, part.stop, part.line))
            else:
                inputs.append(path)
        return inputs


Input = File | tuple[File, int, int, int] | TableFile | TableObject


def digest_file(file: File) -> tuple[int, str]:
    """Return the size of a file and the XXH3-128 of its bytes, as they are stored."""
    size, digest = file_digest(file, RemoteStream)
    return size, f"{digest:032x}"


def is_table(source: object) -> TypeGuard[ArrowTable]:
    """Whether an object is a table: it has an Arrow C stream, or is a dataset of Hugging Face."""
    return hasattr(source, "__arrow_c_stream__") or is_dataset(source)


def open_corpus(
    sources: Source | Sequence[Source] | ArrowTable,
    reading: Reading = Reading(),  # noqa: B008 (immutable)
    *,
    without: Source | None = None,
    **changes: Any,
) -> Corpus:
    """Resolve paths, folders and globs to a Corpus; a source that matches no file is an error.

    Args:
        sources: a path, folder, glob or URL, or a list of them; or a table in memory.
        reading: how to read them.
        without: a folder to exclude, even if it is inside a source.
        **changes: fields of `reading` to change.

    Returns:
        The Corpus; its `documents()` yields the bytes of each document.

    Examples:
        >>> import pathlib, tempfile
        >>> from byteweld.corpus import open_corpus
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.txt").write_text("first")
        ...     _ = pathlib.Path(folder, "b.jsonl").write_text('{"text": "second"}\\n')
        ...     corpus = open_corpus(folder)
        ...     len(corpus.files), corpus.total_bytes, list(corpus.documents())
        (2, 24, [b'first', b'second'])
    """
    reading = dataclasses.replace(reading, **changes)
    if is_table(sources):
        return Corpus(table=sources, reading=reading)
    # is_table has ruled tables out.
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)  # type: ignore[arg-type]
    wanted = extensions(reading.ext)
    files, skipped = find_files(paths, wanted, without)
    if not files:
        where = ", ".join(os.fspath(path) for path in paths) or "an empty list"
        if without is not None and find_files(paths, wanted, None)[0]:
            raise CorpusError(
                f"all files of {where} are inside {os.fspath(without) or '.'}, where the result is "
                "written, so they are not read; choose a folder for the result that is not the "
                "corpus or above it"
            )
        which = f" with extension {', '.join(sorted(wanted))}" if wanted else ""
        raise CorpusError(
            f"no files in {where}{which}; choose other extensions with ext=, '*' for all"
        )
    corpus = Corpus(files=tuple(files), reading=reading, skipped_files=skipped)
    if corpus.has_tables:
        arrow()  # now, not after hours; and so that a memory budget includes it
    return corpus
