"""Arrow IPC files: `train-00000.arrow`, one row per document; memory-mapped to read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._arrow import (
    DTYPES,
    SHARD_TOKENS,
    ArrowDocuments,
    arrow,
    check_schema,
    reading,
    record_batches,
    schema,
)
from byteweld.dataset.formats._format import Documents, Format
from byteweld.dataset.formats._opening import file_of


def _file_names(name: ShardName) -> tuple[str, ...]:
    return (f"{name.split}-{name.number:05d}.arrow",)


def _write(shard: Shard, folder: Path) -> None:
    (name,) = _file_names(shard.name)
    with (
        (folder / name).open("wb") as file,
        arrow().ipc.new_file(file, schema(shard.dtype)) as writer,
    ):
        for batch in record_batches(shard):
            writer.write_batch(batch)


def _open(folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
    path = file_of(folder, entry)
    pyarrow = arrow()
    with reading(path):
        reader = pyarrow.ipc.open_file(pyarrow.memory_map(str(path)))
        check_schema(reader.schema, manifest.dtype, path)
        batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    return ArrowDocuments(path, batches, manifest.dtype, entry)


ARROW: Final = Format(
    name="arrow",
    summary="Arrow IPC files with a column input_ids, one row per document",
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
