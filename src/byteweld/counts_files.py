"""Saved counts: a folder of sixteen Parquet files. See docs/formats/counts.md.

Written and read in batches of arrays, so that the whole table need not fit in memory. Equal counts
give identical files, whatever they were merged from. Reading verifies everything.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byteweld import _native
from byteweld._atomic import naming, replace_folder, settle_folder
from byteweld._files import check_folder, open_regular
from byteweld.errors import FormatError

PARTS = 16
_FORMAT = "byteweld counts"
_VERSION = 1
_NAMES = tuple(f"part-{part:02}.parquet" for part in range(PARTS))
_PART_NAME = re.compile(r"part-[0-9]{2}\.parquet")
# Distinct pre-tokens and their bytes; all pre-tokens, repetitions included, and their bytes.
Sums = tuple[int, int, int, int]
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
class Facts:
    """How the counts were made."""

    pattern: str | None = None  # that split the documents
    boundaries: tuple[str, ...] | None = None  # special tokens that split them; None if unknown
    alphabet: str | None = None  # "ascii" if no other bytes were allowed
    skipped_documents: int = 0
    pruning: Pruning | None = None


def files_in(folder: Path) -> list[Path]:
    """Return the parts of a folder of counts."""
    return [folder / name for name in _NAMES]


def part_name(part: int) -> str:
    """Return the name of the file of a part."""
    return _NAMES[part]


def is_folder_of_counts(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder with at least one part of saved counts."""
    folder = settle_folder(Path(path))
    try:
        return folder.is_dir() and any((folder / name).is_file() for name in _NAMES)
    except OSError:  # not a path: a string longer than any path
        return False


# ---------------------------------------------------------------------- writing


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise if `write_folder` could not write to `path`, before the work is done."""
    arrow()
    check_folder(path, overwrite=overwrite, is_ours=_holds_only_parts)


def write_folder(
    path: str | os.PathLike[str], table: _native.Counts, facts: Facts, *, overwrite: bool
) -> None:
    """Write all parts into a temporary folder next to `path`, then rename it."""
    arrow()
    with replaced_folder(path, overwrite=overwrite) as folder:
        whole = table.sums()
        for part, sums in enumerate(table.sums_by_part()):
            with naming(Path(path) / _NAMES[part]):
                write_part(folder / _NAMES[part], table, part, facts, whole, sums)
                sync_file(folder / _NAMES[part])


def replaced_folder(
    path: str | os.PathLike[str], *, overwrite: bool
) -> contextlib.AbstractContextManager[Path]:
    """Yield a temporary folder for parts, which becomes the folder at `path`."""
    return replace_folder(path, overwrite=overwrite, is_ours=_holds_only_parts)


def write_part(
    file: Path, table: _native.Counts, part: int, facts: Facts, whole: Sums, sums: Sums
) -> None:
    """Write a part of a table; `whole` are the sums of all parts, `sums` those of this one."""
    pyarrow, _ = arrow()

    def rows() -> Iterator[Any]:
        for offsets, data, counts in batches(table, part):
            buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
            columns = [
                pyarrow.Array.from_buffers(pyarrow.binary(), len(counts), buffers),
                pyarrow.array(counts),
            ]
            yield pyarrow.Table.from_arrays(columns, schema=_schema())

    _write_rows(file, rows(), _metadata(facts, whole, part, sums))


def rewrite_part(
    file: Path, source: Path, part: int, facts: Facts, whole: Sums, sums: Sums
) -> None:
    """Write a part again, with another footer."""
    _, parquet = arrow()
    with parquet.ParquetFile(source, page_checksum_verification=True) as opened:
        groups = range(opened.num_row_groups)
        rows = (opened.read_row_group(group, use_threads=False) for group in groups)
        rows = (group.replace_schema_metadata(None).cast(_schema()) for group in rows)
        _write_rows(file, rows, _metadata(facts, whole, part, sums))


def _write_rows(file: Path, groups: Iterator[Any], metadata: dict[str, str]) -> None:
    _, parquet = arrow()
    with (
        file.open("xb") as out,
        parquet.ParquetWriter(
            out,
            _schema(),
            compression="zstd",
            use_dictionary=False,
            store_schema=False,
            write_page_checksum=True,
        ) as writer,
    ):
        writer.add_key_value_metadata(metadata)
        for rows in groups:
            writer.write_table(rows, row_group_size=len(rows))


def sync_file(file: Path) -> None:
    """Put a file on disk."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def batches(table: _native.Counts, part: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the (offsets, data, counts) of one part, ordered by pre-token."""
    # Otherwise the engine imports numpy for the first array, and Ctrl-C during that is a panic.
    import numpy as np  # noqa: F401

    position: int | None = 0
    while position is not None:
        offsets, data, counts, position = table.batch(part, position)
        if len(counts):
            yield offsets, data, counts


def _metadata(facts: Facts, whole: Sums, part: int, sums: Sums) -> dict[str, str]:
    canonical = None if facts.pattern is None else _native.canonical_pattern(facts.pattern)
    pruning = None if facts.pruning is None else dataclasses.asdict(facts.pruning)
    return {
        "format": _FORMAT,
        "version": str(_VERSION),
        "partition": f"xxh3_64(bytes) % {PARTS}",
        "parts": str(PARTS),
        "pattern": json.dumps(facts.pattern),
        "canonical_pattern": json.dumps(canonical),
        "boundaries": json.dumps(facts.boundaries),
        "alphabet": json.dumps(facts.alphabet),
        "skipped_documents": str(facts.skipped_documents),
        "pruning": json.dumps(pruning, sort_keys=True),
        "distinct": str(whole[0]),
        "total": str(whole[2]),
        "total_bytes": str(whole[3]),
        "part": str(part),
        "part_distinct": str(sums[0]),
        "part_total": str(sums[2]),
        "part_total_bytes": str(sums[3]),
    }


def _holds_only_parts(folder: Path) -> bool:
    return all(_PART_NAME.fullmatch(entry.name) for entry in folder.iterdir())


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Folder:
    """A folder of counts whose footers have been read and found consistent."""

    path: Path
    facts: Facts
    distinct: int
    total: int
    distinct_bytes_at_most: int  # an upper bound from the footers
    parts: tuple[dict[str, Any], ...]


# The keys that a footer must have. The common ones are the same in all parts.
_COMMON_KEYS = (
    *("format", "version", "partition", "parts", "pattern", "canonical_pattern", "boundaries"),
    *("alphabet", "skipped_documents", "pruning", "distinct", "total", "total_bytes"),
)
_PART_KEYS = ("part", "part_distinct", "part_total", "part_total_bytes")


def open_folder(path: str | os.PathLike[str]) -> Folder:
    """Read the footers of all parts and check that they are consistent."""
    arrow()
    folder = settle_folder(Path(path))
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; expected a folder of counts")
    if not is_folder_of_counts(folder):
        raise FileNotFoundError(f"{folder}: no file {_NAMES[0]}; expected a folder of counts")
    foreign = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.suffix == ".parquet" and entry.name not in _NAMES
    )
    if foreign:
        raise FormatError(
            f"not one of the parts 00 to {PARTS - 1} of a folder of counts; remove this file",
            path=folder / foreign[0],
        )
    footers = [_footer(folder / name, part) for part, name in enumerate(_NAMES)]
    first = footers[0]
    for name, footer in zip(_NAMES, footers, strict=True):
        for key in _COMMON_KEYS:
            if footer[key] != first[key]:
                raise FormatError(
                    f"{key} is {footer[key]!r} here and {first[key]!r} in {_NAMES[0]}: the parts "
                    "belong to different counts; restore the files that were saved together",
                    path=folder / name,
                )
    for key in ("distinct", "total", "total_bytes"):
        found = sum(footer[f"part_{key}"] for footer in footers)
        if found != first[key]:
            raise FormatError(
                f"the sum of {key} over all parts is {found}, but their footers say {first[key]}; "
                "the parts belong to different counts",
                path=folder,
            )
    return Folder(
        folder,
        first["facts"],
        first["distinct"],
        first["total"],
        min(first["total_bytes"], sum(footer["bytes_at_most"] for footer in footers)),
        tuple(footers),
    )


def read_folder(folder: Folder, limit: _native.MemoryLimit | None) -> _native.Counts:
    """Read and check all rows; with a limit, they go to disk instead of memory."""
    loader = _native.CountLoader(limit=limit)
    for name, footer in zip(_NAMES, folder.parts, strict=True):
        _load_part(loader, folder.path / name, footer)
    return loader.finish()


def read_part(file: Path, part: int, limit: _native.MemoryLimit | None) -> _native.Counts:
    """Read and check the rows of one part; the other parts of the result are empty."""
    footer = _footer(file, part)
    loader = _native.CountLoader(limit=limit)
    for _ in range(part):
        loader.end_part()
    _load_part(loader, file, footer)
    return loader.finish()


def _load_part(loader: _native.CountLoader, file: Path, footer: dict[str, Any]) -> None:
    with closing(_rows(file)) as rows:  # pyarrow may abort if it is closed when Python exits
        for offsets, data, counts in rows:
            wrong = loader.add(offsets, data, counts)
            if wrong is not None:
                row, message = wrong
                raise FormatError(f"row {row}: {message}", path=file)
    distinct, _, total, total_bytes = loader.end_part()
    found = {"distinct": distinct, "total": total, "total_bytes": total_bytes}
    for key, value in found.items():
        if footer[f"part_{key}"] != value:
            raise FormatError(
                f"{key} is {value} in the rows, but {footer[f'part_{key}']} in the footer",
                path=file,
            )


def _rows(file: Path) -> Generator[tuple[Any, Any, Any], None, None]:
    """Yield the rows of a part as arrays, without copying."""
    _, parquet = arrow()
    import numpy as np

    with (
        _readable(file),
        os.fdopen(open_regular(file), "rb") as source,
        parquet.ParquetFile(source, page_checksum_verification=True) as opened,
    ):
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


def _footer(file: Path, part: int) -> dict[str, Any]:
    """Read the footer of a part and check it on its own."""
    _, parquet = arrow()
    if not file.is_file():
        raise FormatError(
            f"this part is missing; expected {PARTS} files, {_NAMES[0]} to {_NAMES[-1]}", path=file
        )
    with _readable(file):
        with (
            os.fdopen(open_regular(file), "rb") as source,
            parquet.ParquetFile(source) as opened,
        ):
            schema, found = opened.schema_arrow, opened.metadata
        metadata = {
            key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
            for key, value in (found.metadata or {}).items()
        }
        is_ours = schema.equals(_schema())
        columns = ", ".join(f"{field.name}: {field}" for field in schema)
        groups = [found.row_group(n) for n in range(found.num_row_groups)]
        num_rows, bytes_at_most = found.num_rows, sum(group.total_byte_size for group in groups)
    if metadata.get("format") != _FORMAT or metadata.get("version") != str(_VERSION):
        raise FormatError(
            f"expected format {_FORMAT!r}, version {_VERSION}, found "
            f"{metadata.get('format')!r}, version {metadata.get('version')!r}",
            path=file,
        )
    if not is_ours:
        raise FormatError(
            f"expected the columns bytes: binary not null, count: uint64 not null, found {columns}",
            path=file,
        )
    missing = [key for key in (*_COMMON_KEYS, *_PART_KEYS) if key not in metadata]
    if missing:
        raise FormatError(f"the footer lacks {', '.join(map(repr, missing))}", path=file)
    try:
        footer = _parse(metadata)
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise FormatError(f"the footer cannot be read: {error}", path=file) from error
    if footer["parts"] != PARTS or footer["part"] != part:
        raise FormatError(
            f"this is part {footer['part']} of {footer['parts']}, but its name says {part} of "
            f"{PARTS}",
            path=file,
        )
    if num_rows != footer["part_distinct"]:
        raise FormatError(
            f"found {num_rows} rows, but its footer says {footer['part_distinct']}",
            path=file,
        )
    footer["bytes_at_most"] = bytes_at_most
    return footer


def _parse(metadata: dict[str, str]) -> dict[str, Any]:
    """Parse the strings of a footer; raise ValueError if one is invalid."""
    footer: dict[str, Any] = {key: metadata[key] for key in (*_COMMON_KEYS, *_PART_KEYS)}
    for key in (
        *("parts", "part", "skipped_documents", "distinct", "total", "total_bytes"),
        *("part_distinct", "part_total", "part_total_bytes"),
    ):
        if not re.fullmatch(r"[0-9]{1,60}", metadata[key]):
            raise ValueError(f"{key} is {metadata[key]!r}; expected a whole number")
        footer[key] = int(metadata[key])
    pattern = json.loads(metadata["pattern"])
    boundaries = json.loads(metadata["boundaries"])
    alphabet = json.loads(metadata["alphabet"])
    pruning = json.loads(metadata["pruning"])
    if not (pattern is None or isinstance(pattern, str)):
        raise ValueError(f"pattern is {pattern!r}; expected a string or null")
    if alphabet not in (None, "ascii"):
        raise ValueError(f"alphabet is {alphabet!r}; expected 'ascii' or null")
    is_list = isinstance(boundaries, list) and all(isinstance(text, str) for text in boundaries)
    if not (boundaries is None or is_list):
        raise ValueError(f"boundaries is {boundaries!r}; expected a list of strings or null")
    footer["facts"] = Facts(
        pattern=pattern,
        boundaries=None if boundaries is None else tuple(sorted(set(boundaries))),
        alphabet=alphabet,
        skipped_documents=footer["skipped_documents"],
        pruning=None if pruning is None else _pruning(pruning),
    )
    return footer


def _pruning(found: object) -> Pruning:
    names = {field.name for field in dataclasses.fields(Pruning)}
    if isinstance(found, dict) and found.keys() == names:
        if all(type(value) is int and value >= 0 for value in found.values()):
            return Pruning(**found)
    raise ValueError(f"pruning is {found!r}; expected whole numbers for {sorted(names)}")


def _schema() -> Any:
    pyarrow, _ = arrow()
    return pyarrow.schema(
        [
            pyarrow.field("bytes", pyarrow.binary(), nullable=False),
            pyarrow.field("count", pyarrow.uint64(), nullable=False),
        ]
    )


def arrow() -> tuple[Any, Any]:
    """Import pyarrow; if it is missing, raise an error that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "saved counts are Parquet files; install pyarrow with: pip install 'byteweld[arrow]'"
        ) from error
    return pyarrow, pyarrow.parquet
