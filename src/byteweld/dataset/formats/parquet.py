"""Parquet files with zstd: `train-00000.parquet`, one row per document."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from byteweld._extras import arrow
from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard
from byteweld.dataset.formats._arrow import (
    ListDocuments,
    Lists,
    TableFormat,
    check_schema,
    lists,
    reading,
    record_batches,
    schema,
)
from byteweld.dataset.formats._documents import Documents
from byteweld.errors import FormatError

_GROUP_TOKENS: Final = 1 << 24  # 64 MiB of uint32, before compression
_GROUP_DOCUMENTS: Final = 1 << 20
# A document is in one row group, which is in memory while it is written, and in one page, whose
# size is an int32.
_MAX_LIST: Final = 1 << 27


class _Parquet(TableFormat):
    def write(self, shard: Shard, folder: Path) -> None:
        pyarrow = arrow()
        (path,) = self.new_files(shard, folder)
        with (
            path.open("wb") as file,
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
                table = pyarrow.Table.from_batches(group)
                writer.write_table(table, row_group_size=_GROUP_DOCUMENTS)

    def open(self, folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
        path = self.only_file(folder, entry)
        parquet = arrow().parquet
        with reading(path), parquet.ParquetFile(path) as file:
            check_schema(file.schema_arrow, manifest.dtype, path)
            metadata = file.metadata
            # Not `column()` of a row group: pyarrow aborts if that is damaged.
            rows = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
        if min(rows, default=0) < 0:
            raise FormatError(f"a row group has {min(rows)} documents", path=path)

        @functools.lru_cache(1)  # the row group that was read last stays in memory
        def read(group: int) -> Lists:
            # A file of its own, because other threads may read, too.
            with (
                reading(path),
                parquet.ParquetFile(
                    path, metadata=metadata, page_checksum_verification=True
                ) as file,
            ):
                column = file.read_row_group(group).column(0).combine_chunks()
                found = lists(column, manifest.dtype)
                if len(column) != rows[group]:
                    raise ValueError(f"row group {group} has {len(column)} rows")
            return found

        return ListDocuments(path, entry, manifest.dtype, rows, read)


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


PARQUET: Final = _Parquet(
    name="parquet",
    summary="Parquet files with a column input_ids, one row per document",
    file_names=lambda name: (f"{name.split}-{name.number:05d}.parquet",),
)
