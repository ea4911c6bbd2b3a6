"""The counts artifact: a folder of sixteen Parquet files. See docs/formats/counts.md.

Written and read batch by batch, as arrays, so that neither needs the whole table in memory. The
same counts give the same bytes, whatever they were merged from. Reading believes nothing.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byteweld import _native
from byteweld._files import check_folder, replace_folder
from byteweld.errors import FormatError

PARTS = 16
_FORMAT = "byteweld counts"
_VERSION = 1
_NAMES = tuple(f"part-{part:02}.parquet" for part in range(PARTS))
_PART_NAME = re.compile(r"part-[0-9]{2}\.parquet")
# Distinct pre-tokens, their bytes, how many in all, and their bytes.
Sums = tuple[int, int, int, int]
_ROWS = 1 << 16  # read at once; what the engine writes as one row group


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """What was left out because it is rare, and how much that can matter. Bounds add.

    A pre-token may have occurred up to `word_error` times more often than counted. The count of a
    pair of tokens, at any step of a training, is too small by `pair_error` at most: that is how
    often one pair of bytes stood in what was left out, for the pair where it is most.
    """

    threshold: int  # pre-tokens below it were left out; of merged counts the greatest
    distinct: int  # how many of them
    occurrences: int  # how often they occurred
    bytes: int  # and how many bytes that is
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
    """What is known of counts besides the counts."""

    pattern: str | None = None  # what cut the documents
    boundaries: tuple[str, ...] | None = None  # the special tokens that did; None if not known
    alphabet: str | None = None  # "ascii" if no other bytes were allowed
    skipped_documents: int = 0
    pruning: Pruning | None = None


def is_folder_of_counts(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder that holds any part of counts."""
    folder = Path(path)
    try:
        return folder.is_dir() and any((folder / name).is_file() for name in _NAMES)
    except OSError:  # text that is longer than a path can be
        return False


# ---------------------------------------------------------------------- writing


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse what `write_folder` would refuse, so that it can be known before the work."""
    arrow()
    check_folder(path, overwrite=overwrite, is_ours=_holds_only_parts)


def write_folder(
    path: str | os.PathLike[str], table: _native.Counts, facts: Facts, *, overwrite: bool
) -> None:
    """Write all parts into a temporary folder beside `path`, then rename it."""
    arrow()
    with replace_folder(path, overwrite=overwrite, is_ours=_holds_only_parts) as folder:
        whole = table.sums()
        for part, sums in enumerate(table.sums_by_part()):
            metadata = _metadata(facts, whole, part, sums)
            _write_part(folder / _NAMES[part], table, part, metadata)


def _write_part(file: Path, table: _native.Counts, part: int, metadata: dict[str, str]) -> None:
    pyarrow, parquet = arrow()
    schema = _schema()
    with file.open("wb") as out:
        with parquet.ParquetWriter(
            out,
            schema,
            compression="zstd",
            use_dictionary=False,
            store_schema=False,
            write_page_checksum=True,
        ) as writer:
            writer.add_key_value_metadata(metadata)
            for offsets, data, counts in batches(table, part):
                buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
                columns = [
                    pyarrow.Array.from_buffers(pyarrow.binary(), len(counts), buffers),
                    pyarrow.array(counts),
                ]
                rows = pyarrow.Table.from_arrays(columns, schema=schema)
                writer.write_table(rows, row_group_size=len(counts))
        out.flush()
        os.fsync(out.fileno())


def batches(table: _native.Counts, part: int) -> Iterator[tuple[Any, Any, Any]]:
    """The (offsets, data, counts) of one part, in order of the bytes."""
    position: int | None = 0
    while position is not None:
        offsets, data, counts, position = table.batch(part, position)
        if len(counts):
            yield offsets, data, counts


def _metadata(facts: Facts, whole: Sums, part: int, sums: Sums) -> dict[str, str]:
    pattern = facts.pattern
    return _common(facts, pattern) | {
        "distinct": str(whole[0]),
        "total": str(whole[2]),
        "total_bytes": str(whole[3]),
        "part": str(part),
        "part_distinct": str(sums[0]),
        "part_total": str(sums[2]),
        "part_total_bytes": str(sums[3]),
    }


def _common(facts: Facts, pattern: str | None) -> dict[str, str]:
    canonical = None if pattern is None else _native.canonical_pattern(pattern)
    pruning = None if facts.pruning is None else dataclasses.asdict(facts.pruning)
    return {
        "format": _FORMAT,
        "version": str(_VERSION),
        "partition": f"xxh3_64(bytes) % {PARTS}",
        "parts": str(PARTS),
        "pattern": json.dumps(pattern),
        "canonical_pattern": json.dumps(canonical),
        "boundaries": json.dumps(facts.boundaries),
        "alphabet": json.dumps(facts.alphabet),
        "skipped_documents": str(facts.skipped_documents),
        "pruning": json.dumps(pruning, sort_keys=True),
    }


def _holds_only_parts(folder: Path) -> bool:
    return all(_PART_NAME.fullmatch(entry.name) for entry in folder.iterdir())


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Folder:
    """A folder of counts whose footers were read and agree."""

    path: Path
    facts: Facts
    distinct: int
    distinct_bytes_at_most: int  # as far as the footers tell
    totals: tuple[int, int]  # total, total bytes
    parts: tuple[dict[str, Any], ...]


# What each footer must say, and how it is read. The first group is the same in all parts.
_COMMON_KEYS = (
    *("format", "version", "partition", "parts", "pattern", "canonical_pattern", "boundaries"),
    *("alphabet", "skipped_documents", "pruning", "distinct", "total", "total_bytes"),
)
_PART_KEYS = ("part", "part_distinct", "part_total", "part_total_bytes")


def open_folder(path: str | os.PathLike[str]) -> Folder:
    """Read the footers of all parts and hold them against each other."""
    arrow()
    folder = Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; expected a folder of counts")
    if not is_folder_of_counts(folder):
        raise FileNotFoundError(f"{folder}: no file {_NAMES[0]}; expected a folder of counts")
    strangers = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.suffix == ".parquet" and entry.name not in _NAMES
    )
    if strangers:
        raise FormatError(
            f"a folder of counts has the parts 00 to {PARTS - 1} and no other Parquet file; "
            "remove what does not belong to it",
            path=folder / strangers[0],
        )
    footers = [_footer(folder / name, part) for part, name in enumerate(_NAMES)]
    first = footers[0]
    for name, footer in zip(_NAMES, footers, strict=True):
        for key in _COMMON_KEYS:
            if footer[key] != first[key]:
                raise FormatError(
                    f"its {key} is {footer[key]!r}, but {_NAMES[0]} says {first[key]!r}: the parts "
                    "are of different counts; put back the files that were saved together",
                    path=folder / name,
                )
    for key in ("distinct", "total", "total_bytes"):
        found = sum(footer[f"part_{key}"] for footer in footers)
        if found != first[key]:
            raise FormatError(
                f"the parts have {key} {found} together, but say {first[key]}; "
                "they are not parts of the same counts",
                path=folder,
            )
    return Folder(
        folder,
        first["facts"],
        first["distinct"],
        min(first["total_bytes"], sum(footer["bytes_at_most"] for footer in footers)),
        (first["total"], first["total_bytes"]),
        tuple(footers),
    )


def read_folder(folder: Folder, limit: _native.MemoryLimit | None) -> _native.Counts:
    """Read all rows, checking each; with a limit they go to disk, not into memory."""
    loader = _native.CountLoader(limit=limit)
    for name, footer in zip(_NAMES, folder.parts, strict=True):
        file = folder.path / name
        for offsets, data, counts in _rows(file):
            wrong = loader.add(offsets, data, counts)
            if wrong is not None:
                row, message = wrong
                raise FormatError(f"row {row}: {message}", path=file)
        distinct, _, total, total_bytes = loader.end_part()
        found = {"distinct": distinct, "total": total, "total_bytes": total_bytes}
        for key, value in found.items():
            if footer[f"part_{key}"] != value:
                raise FormatError(
                    f"its rows have {key} {value}, but its footer says {footer[f'part_{key}']}",
                    path=file,
                )
    return loader.finish()


def _rows(file: Path) -> Iterator[tuple[Any, Any, Any]]:
    """The rows of a part as arrays, without copies."""
    pyarrow, parquet = arrow()
    import numpy as np

    try:
        with parquet.ParquetFile(file, page_checksum_verification=True) as opened:
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
    except (pyarrow.ArrowException, OSError) as error:
        raise FormatError(f"cannot be read as Parquet: {error}", path=file) from error


def _footer(file: Path, part: int) -> dict[str, Any]:
    """The footer of a part, read and checked by itself."""
    pyarrow, parquet = arrow()
    if not file.is_file():
        raise FormatError(
            f"the part is missing; counts are {PARTS} files, {_NAMES[0]} to {_NAMES[-1]}", path=file
        )
    try:
        with parquet.ParquetFile(file) as opened:
            schema, found = opened.schema_arrow, opened.metadata
    except (pyarrow.ArrowException, OSError) as error:
        raise FormatError(f"not a Parquet file: {error}", path=file) from error
    metadata = {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in (found.metadata or {}).items()
    }
    if metadata.get("format") != _FORMAT or metadata.get("version") != str(_VERSION):
        raise FormatError(
            f"expected counts of format {_FORMAT!r}, version {_VERSION}, found "
            f"{metadata.get('format')!r}, version {metadata.get('version')!r}",
            path=file,
        )
    if not schema.equals(_schema()):
        columns = ", ".join(f"{field.name}: {field}" for field in schema)
        raise FormatError(
            f"expected the columns bytes: binary not null, count: uint64 not null, found {columns}",
            path=file,
        )
    missing = [key for key in (*_COMMON_KEYS, *_PART_KEYS) if key not in metadata]
    if missing:
        raise FormatError(f"the footer lacks {', '.join(map(repr, missing))}", path=file)
    try:
        footer = _parse(metadata)
    except (TypeError, ValueError, KeyError) as error:
        raise FormatError(f"the footer cannot be read: {error}", path=file) from error
    if footer["parts"] != PARTS or footer["part"] != part:
        raise FormatError(
            f"it is part {footer['part']} of {footer['parts']}; its name says {part} of {PARTS}",
            path=file,
        )
    if found.num_rows != footer["part_distinct"]:
        raise FormatError(
            f"it has {found.num_rows} rows, but its footer says {footer['part_distinct']}",
            path=file,
        )
    groups = (found.row_group(n) for n in range(found.num_row_groups))
    footer["bytes_at_most"] = sum(group.total_byte_size for group in groups)
    return footer


def _parse(metadata: dict[str, str]) -> dict[str, Any]:
    """Take a footer's texts apart; what is not as it should be is a ValueError."""
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
        raise ValueError(f"pattern is {pattern!r}; expected a text or null")
    if alphabet not in (None, "ascii"):
        raise ValueError(f"alphabet is {alphabet!r}; expected 'ascii' or null")
    is_list = isinstance(boundaries, list) and all(isinstance(text, str) for text in boundaries)
    if not (boundaries is None or is_list):
        raise ValueError(f"boundaries is {boundaries!r}; expected a list of texts or null")
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
    """Import pyarrow, or say how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "saved counts are Parquet files; install pyarrow with: pip install 'byteweld[arrow]'"
        ) from error
    return pyarrow, pyarrow.parquet
