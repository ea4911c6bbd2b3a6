"""Saved counts: a folder of sixteen Parquet files and a manifest. See docs/formats/counts.md.

Written and read in batches of arrays, so that the whole table need not fit in memory. Equal counts
give identical files, whatever they were merged from. Reading verifies everything.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from byteweld import _native
from byteweld._atomic import naming, replace_folder, settle_folder
from byteweld._extras import arrow
from byteweld._files import check_folder, open_regular
from byteweld._typed import WrongError, reader
from byteweld.errors import FormatError
from byteweld.formats._json import MAX_BESIDE_BYTES, parse_object, read_file, show

PARTS = 16
MANIFEST = "counts.json"
# The first keys of a manifest.
_HEAD = {"format": "byteweld counts", "version": 2, "partition": f"xxh3_64(bytes) % {PARTS}"}
_BITS = 128  # counts have 64 bits, but sums of them may have more
PART_NAMES = tuple(f"part-{part:02}.parquet" for part in range(PARTS))
_PART_NAME = re.compile(r"part-[0-9]{2}\.parquet")
# Distinct pre-tokens and their bytes; all pre-tokens, repetitions included, and their bytes.
Sums = tuple[int, int, int, int]
_SUMS = ("distinct", "distinct_bytes", "total", "total_bytes")
_ROWS = 1 << 16  # per read; the size of the engine's row groups


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """Which rare pre-tokens were left out, and bounds on the error. Adding counts adds the bounds.

    A pre-token's count is too small by at most `word_error`. The count of a pair of tokens, at any
    step of training, is too small by at most `pair_error`: the count of the most frequent pair of
    bytes in the pre-tokens that were left out.
    """

    threshold: int  # pre-tokens that occur less often were left out; the maximum after a merge
    distinct: int  # distinct pre-tokens left out
    occurrences: int  # their total count
    bytes: int  # their total bytes, repetitions included
    word_error: int
    pair_error: int

    def __add__(self, other: Pruning) -> Pruning:
        if not isinstance(other, Pruning):
            return NotImplemented
        sums = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in dataclasses.fields(self)
        }
        return Pruning(**sums | {"threshold": max(self.threshold, other.threshold)})


@dataclass(frozen=True, kw_only=True)
class CountFacts:
    """How the counts were made."""

    pattern: str | None = None  # that split the documents
    boundaries: tuple[str, ...] | None = None  # special tokens that split them; None if unknown
    alphabet: Literal["ascii"] | None = None  # if no other bytes were allowed
    skipped_documents: int = 0
    pruning: Pruning | None = None

    def __post_init__(self) -> None:
        if self.boundaries is not None:
            object.__setattr__(self, "boundaries", tuple(sorted(set(self.boundaries))))


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder of counts."""
    return [folder / name for name in (MANIFEST, *PART_NAMES)]


def is_folder_of_counts(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder with at least one file of saved counts."""
    folder = settle_folder(Path(path))
    try:
        return folder.is_dir() and any(file.is_file() for file in files_in(folder))
    except OSError:  # not a path: a string longer than any path
        return False


# ---------------------------------------------------------------------- writing


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise if `write_folder` could not write to `path`, before the work is done."""
    arrow()
    check_folder(path, overwrite=overwrite, is_ours=_holds_only_ours)


def write_folder(
    path: str | os.PathLike[str], table: _native.Counts, facts: CountFacts, *, overwrite: bool
) -> None:
    """Write counts into a temporary folder next to `path`, then rename it."""
    arrow()
    with new_counts(path, facts, table.sums_by_part(), overwrite=overwrite) as folder:
        for part, name in enumerate(PART_NAMES):
            with naming(Path(path) / name):
                write_part(folder / name, table, part)


@contextmanager
def new_counts(
    path: str | os.PathLike[str], facts: CountFacts, sums: Sequence[Sums], *, overwrite: bool
) -> Iterator[Path]:
    """Yield a temporary folder for the parts, which becomes the folder at `path` with a manifest.

    `sums` are those of each part.
    """
    with replace_folder(path, overwrite=overwrite, is_ours=_holds_only_ours) as folder:
        yield folder
        digests = []
        for name in PART_NAMES:
            with naming(Path(path) / name), (folder / name).open("rb") as opened:
                digests.append(hashlib.file_digest(opened, "sha256").hexdigest())
                os.fsync(opened.fileno())
        parts = [
            {"file": name, **dict(zip(_SUMS, of_part, strict=True)), "sha256": digest}
            for name, of_part, digest in zip(PART_NAMES, sums, digests, strict=True)
        ]
        totals = dict(zip(_SUMS, _totals(sums), strict=True))
        manifest = _HEAD | dataclasses.asdict(facts) | totals | {"parts": parts}
        manifest["sha256"] = _digest(manifest)
        data = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        with naming(Path(path) / MANIFEST), (folder / MANIFEST).open("x", encoding="utf-8") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())


def _totals(sums: Sequence[Sums]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*sums, strict=True)))


def _digest(manifest: Mapping[str, object]) -> str:
    """Return the SHA-256 of the other keys of a manifest, in compact JSON."""
    others = {key: value for key, value in manifest.items() if key != "sha256"}
    data = json.dumps(others, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(data.encode()).hexdigest()


def write_part(file: Path, table: _native.Counts, part: int) -> None:
    """Write a part of a table."""
    pyarrow = arrow()
    with (
        file.open("xb") as out,
        pyarrow.parquet.ParquetWriter(
            out,
            _schema(),
            compression="zstd",
            use_dictionary=False,
            store_schema=False,
            write_page_checksum=True,
        ) as writer,
    ):
        for offsets, data, counts in batches(table, part):
            buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
            columns = [
                pyarrow.Array.from_buffers(pyarrow.binary(), len(counts), buffers),
                pyarrow.array(counts),
            ]
            rows = pyarrow.Table.from_arrays(columns, schema=_schema())
            writer.write_table(rows, row_group_size=len(rows))


def batches(table: _native.Counts, part: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the (offsets, data, counts) of one part, ordered by pre-token."""
    # Otherwise the engine imports numpy for the first array, and Ctrl-C during that is a panic.
    import numpy as np  # noqa: F401

    position: int | None = 0
    while position is not None:
        offsets, data, counts, position = table.batch(part, position)
        if len(counts):
            yield offsets, data, counts


def _holds_only_ours(folder: Path) -> bool:
    return all(
        entry.name == MANIFEST or _PART_NAME.fullmatch(entry.name) for entry in folder.iterdir()
    )


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True, kw_only=True)
class _Sums:
    distinct: int
    distinct_bytes: int
    total: int
    total_bytes: int

    @property
    def sums(self) -> Sums:
        return self.distinct, self.distinct_bytes, self.total, self.total_bytes


@dataclass(frozen=True, kw_only=True)
class _Part(_Sums):
    file: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class _Manifest(CountFacts, _Sums):
    parts: tuple[_Part, ...]


@dataclass(frozen=True)
class Folder:
    """A folder of counts, as its manifest describes it."""

    path: Path
    facts: CountFacts
    sums: Sums
    parts: tuple[_Part, ...]


def open_folder(path: str | os.PathLike[str]) -> Folder:
    """Read the manifest of a folder of counts, and check it."""
    folder = settle_folder(Path(path))
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; expected a folder of counts")
    if not is_folder_of_counts(folder):
        raise FileNotFoundError(f"{folder}: no file {MANIFEST}; expected a folder of counts")
    file = folder / MANIFEST
    if not file.exists():
        raise FormatError(
            "the manifest of the counts is missing; restore it, or count again: earlier versions "
            "of byteweld wrote none, and their counts cannot be read",
            path=file,
        )
    manifest = parse_object(read_file(file, MAX_BESIDE_BYTES), file)
    found = {key: manifest.get(key) for key in _HEAD}
    if found != _HEAD:
        raise FormatError(
            f"expected {', '.join(f'{key} {value!r}' for key, value in _HEAD.items())}, found "
            f"{', '.join(map(show, found.values()))}",
            path=file,
        )
    if manifest.get("sha256") != _digest(manifest):
        raise FormatError("the manifest is damaged: its SHA-256 is another one", path=file)
    try:
        read: _Manifest = reader(_Manifest, _BITS)(
            {key: value for key, value in manifest.items() if key not in (*_HEAD, "sha256")}
        )
        names = [part.file for part in read.parts]
        if names != list(PART_NAMES) or read.sums != _totals([part.sums for part in read.parts]):
            named = f"{PART_NAMES[0]!r} to {PART_NAMES[-1]!r}"
            raise WrongError(f"expected {PARTS} parts, {named}, that add up to the totals")
    except WrongError as error:
        raise FormatError(f"not the manifest of counts: {error}", path=file) from None
    foreign = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.suffix == ".parquet" and entry.name not in PART_NAMES
    )
    if foreign:
        raise FormatError(
            f"not one of the parts 00 to {PARTS - 1} of a folder of counts; remove this file",
            path=folder / foreign[0],
        )
    facts = {field.name: getattr(read, field.name) for field in dataclasses.fields(CountFacts)}
    return Folder(folder, CountFacts(**facts), read.sums, read.parts)


def read_folder(folder: Folder, limit: _native.MemoryLimit | None) -> _native.Counts:
    """Read and check all rows; with a limit, they go to disk instead of memory."""
    arrow()
    loader = _native.CountLoader(limit=limit)
    for name, part in zip(PART_NAMES, folder.parts, strict=True):
        load_part(loader, folder.path / name, part.sums, part.sha256)
    return loader.finish()


def read_part(
    file: Path, part: int, sums: Sums, limit: _native.MemoryLimit | None
) -> _native.Counts:
    """Read and check the rows of one part; the other parts of the result are empty."""
    loader = _native.CountLoader(limit=limit)
    for _ in range(part):
        loader.end_part()
    load_part(loader, file, sums)
    return loader.finish()


def load_part(
    loader: _native.CountLoader, file: Path, sums: Sums, sha256: str | None = None
) -> None:
    """Read and check the rows of the next part."""
    if not file.is_file():
        raise FormatError(
            f"this part is missing; expected {PARTS} files, {PART_NAMES[0]} to {PART_NAMES[-1]}",
            path=file,
        )
    with closing(_rows(file, sums[0], sha256)) as rows:  # pyarrow may abort if closed at exit
        for offsets, data, counts in rows:
            wrong = loader.add(offsets, data, counts)
            if wrong is not None:
                row, message = wrong
                raise FormatError(f"row {row}: {message}", path=file)
    for key, value, expected in zip(_SUMS, loader.end_part(), sums, strict=True):
        if value != expected:
            raise FormatError(f"{key} is {value} in the rows; expected {expected}", path=file)


def _rows(
    file: Path, num_rows: int, sha256: str | None
) -> Generator[tuple[Any, Any, Any], None, None]:
    """Yield the rows of a part as arrays, without copying."""
    parquet = arrow().parquet
    import numpy as np

    with _readable(file), os.fdopen(open_regular(file), "rb") as source:
        if sha256 is not None and hashlib.file_digest(source, "sha256").hexdigest() != sha256:
            raise FormatError(
                f"this part is damaged, or belongs to other counts: its SHA-256 is not that in "
                f"{MANIFEST}; restore the files that were saved together",
                path=file,
            )
        with parquet.ParquetFile(source, page_checksum_verification=True) as opened:
            schema = opened.schema_arrow
            if not schema.equals(_schema()):
                columns = ", ".join(f"{field.name}: {field}" for field in schema)
                raise FormatError(
                    "expected the columns bytes: binary not null, count: uint64 not null, found "
                    + columns,
                    path=file,
                )
            if opened.metadata.num_rows != num_rows:
                raise FormatError(
                    f"found {opened.metadata.num_rows} rows; expected {num_rows}", path=file
                )
            for batch in opened.iter_batches(batch_size=_ROWS, use_threads=False):
                pretokens, counts = batch.column(0), batch.column(1)
                if pretokens.null_count or counts.null_count:
                    raise FormatError("a row has no bytes or no count", path=file)
                _, offsets, data = pretokens.buffers()
                start, stop = pretokens.offset, pretokens.offset + len(pretokens) + 1
                yield (
                    np.frombuffer(offsets, np.int32)[start:stop],
                    np.frombuffer(b"" if data is None else data, np.uint8),
                    counts.to_numpy(),
                )


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn whatever pyarrow raises for a damaged file into a FormatError; it has no fixed list."""
    try:
        yield
    except (FormatError, MemoryError):
        raise
    except Exception as error:
        raise FormatError(f"cannot be read as Parquet: {error}", path=file) from error


def _schema() -> Any:
    pyarrow = arrow()
    return pyarrow.schema(
        [
            pyarrow.field("bytes", pyarrow.binary(), nullable=False),
            pyarrow.field("count", pyarrow.uint64(), nullable=False),
        ]
    )
