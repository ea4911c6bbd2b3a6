"""Parquet files with zstd: `train-00000.parquet`, one row per document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._arrow import (
    DTYPES,
    SHARD_TOKENS,
    arrow,
    check_offsets,
    check_schema,
    document,
    lists,
    reading,
    record_batches,
    schema,
)
from byteweld.dataset.formats._format import Documents, Format
from byteweld.dataset.formats._opening import check_number, file_of
from byteweld.errors import FormatError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_GROUP_TOKENS: Final = 1 << 24  # 64 MiB of uint32, before compression
_GROUP_DOCUMENTS: Final = 1 << 20
# A document is in one row group, which is in memory while it is written, and in one page, whose
# size is an int32.
_MAX_LIST: Final = 1 << 27


def _file_names(name: ShardName) -> tuple[str, ...]:
    return (f"{name.split}-{name.number:05d}.parquet",)


def _write(shard: Shard, folder: Path) -> None:
    pyarrow = arrow()
    (name,) = _file_names(shard.name)
    with (
        (folder / name).open("wb") as file,
        pyarrow.parquet.ParquetWriter(
            file,
            schema(shard.dtype),
            compression="zstd",
            use_dictionary=False,  # ids are many and small: smaller and faster without
            store_schema=False,  # Parquet's own types are the same
            write_page_checksum=True,
        ) as writer,
    ):
        for group in _groups(record_batches(shard, _MAX_LIST)):
            writer.write_table(pyarrow.Table.from_batches(group), row_group_size=_GROUP_DOCUMENTS)


def _groups(batches: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield batches for one row group at a time."""
    group: list[Any] = []
    tokens = documents = 0
    for batch in batches:
        more = len(batch.column(0).values)
        is_full = tokens + more > _GROUP_TOKENS or documents + len(batch) > _GROUP_DOCUMENTS
        if group and is_full:
            yield group
            group, tokens, documents = [], 0, 0
        group.append(batch)
        tokens, documents = tokens + more, documents + len(batch)
    if group:
        yield group


class _ParquetDocuments:
    """Documents in a Parquet file; the row group that was read last stays in memory."""

    def __init__(self, path: Path, dtype: str, entry: ShardEntry) -> None:
        import numpy as np

        self._path, self._dtype = path, dtype
        with reading(path), arrow().parquet.ParquetFile(path) as file:
            check_schema(file.schema_arrow, dtype, path)
            self._metadata = file.metadata
            # Not `column()` of a row group: pyarrow aborts if that is damaged.
            groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
            rows = [group.num_rows for group in groups]
        if sum(rows) != entry.documents or min(rows, default=0) < 0:
            raise FormatError(
                f"the file has {sum(rows)} documents; expected {entry.documents}, as the manifest "
                "says",
                path=path,
            )
        self._documents, self._tokens = entry.documents, entry.tokens
        self._ends = np.cumsum(rows, dtype=np.int64)
        self._last: tuple[int, NDArray[np.int32], NDArray[Any]] | None = None

    @property
    def lengths(self) -> NDArray[np.int64]:
        import numpy as np

        parts = [np.empty(0, np.int64)]
        for group in range(len(self._ends)):
            offsets, ids = self._read(group)
            check_offsets(offsets, ids, self._path)
            parts.append(np.diff(offsets).astype(np.int64))
        lengths = np.concatenate(parts)
        if int(lengths.sum()) != self._tokens:
            raise FormatError(
                f"the file has {int(lengths.sum())} tokens; expected {self._tokens}, as the "
                "manifest says",
                path=self._path,
            )
        return lengths

    def __getitem__(self, number: int) -> NDArray[Any]:
        import numpy as np

        check_number(number, self._documents)
        group = int(np.searchsorted(self._ends, number, side="right"))
        offsets, ids = self._read(group)
        first = int(self._ends[group]) - len(offsets) + 1
        return document(offsets, ids, number - first, self._path)

    def _read(self, group: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        last = self._last
        if last is not None and last[0] == group:
            return last[1], last[2]
        # A file of its own, because other threads may read, too.
        with (
            reading(self._path),
            arrow().parquet.ParquetFile(
                self._path, metadata=self._metadata, page_checksum_verification=True
            ) as file,
        ):
            column = file.read_row_group(group).column(0).combine_chunks()
            offsets, ids = lists(column, self._dtype)
            if len(offsets) - 1 != self._metadata.row_group(group).num_rows:
                raise ValueError(f"row group {group} has {len(offsets) - 1} rows")
        self._last = group, offsets, ids
        return offsets, ids


def _open(folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
    return _ParquetDocuments(file_of(folder, entry), manifest.dtype, entry)


PARQUET: Final = Format(
    name="parquet",
    summary="Parquet files with a column input_ids, one row per document",
    eot="append",
    dtype=lambda n_vocab: "uint32",
    dtypes=DTYPES,
    file_names=_file_names,
    write=_write,
    open=_open,
    is_raw=False,
    shard_tokens=SHARD_TOKENS,
    requires=(("pyarrow", "arrow"),),
)
