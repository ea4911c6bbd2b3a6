"""A Hugging Face dataset on disk, as `datasets.load_from_disk` opens it, memory-mapped.

`data-00000.arrow` … are Arrow IPC streams with one row per document; `state.json` lists them. With
a validation split it is a `DatasetDict`, with a folder for each split.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._arrow import (
    COLUMN,
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
    folder = f"{name.split}/" if name.has_validation else ""
    return (f"{folder}data-{name.number:05d}.arrow",)


def _write(shard: Shard, folder: Path) -> None:
    path = folder / _file_names(shard.name)[0]
    path.parent.mkdir(exist_ok=True)
    with (
        path.open("wb") as file,
        arrow().ipc.new_stream(file, schema(shard.dtype)) as writer,
    ):
        for batch in record_batches(shard):
            writer.write_batch(batch)


def _finish(folder: Path, manifest: Manifest, scratch: Path) -> Sequence[str]:
    """Write what describes the files: state and features of each split, and the splits."""
    splits: dict[str, list[ShardEntry]] = {}
    for entry in manifest.shards:
        splits.setdefault(str(PurePosixPath(entry.files[0].name).parent), []).append(entry)
    contents: dict[str, object] = {}
    for split, entries in splits.items():
        place = "" if split == "." else f"{split}/"
        contents[f"{place}dataset_info.json"] = _info(manifest.dtype)
        contents[f"{place}state.json"] = _state(manifest, entries)
    if "." not in splits:
        contents["dataset_dict.json"] = {"splits": list(splits)}
    for name, content in contents.items():
        path = scratch / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n")
    return list(contents)


def _info(dtype: str) -> dict[str, object]:
    # `Sequence` is what all versions of datasets read; the newer ones write `List`.
    ids = {"feature": {"dtype": dtype, "_type": "Value"}, "_type": "Sequence"}
    empty = {"citation": "", "description": ""}
    return {**empty, "features": {COLUMN: ids}, "homepage": "", "license": ""}


def _state(manifest: Manifest, entries: Sequence[ShardEntry]) -> dict[str, object]:
    """Return the state of a split; caches of later steps depend on its fingerprint."""
    known = [manifest.tokenizer["fingerprint"], *(entry.files[0].sha256 for entry in entries)]
    files = [PurePosixPath(entry.files[0].name).name for entry in entries]
    return {
        "_data_files": [{"filename": name} for name in files],
        "_fingerprint": hashlib.sha256("\n".join(known).encode()).hexdigest()[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": entries[0].split,
    }


def _open(folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
    path = file_of(folder, entry)
    pyarrow = arrow()
    with reading(path):
        reader = pyarrow.ipc.open_stream(pyarrow.memory_map(str(path)))
        check_schema(reader.schema, manifest.dtype, path)
        batches = list(reader)
    return ArrowDocuments(path, batches, manifest.dtype, entry)


HF: Final = Format(
    name="hf",
    summary="a Hugging Face dataset on disk, which datasets.load_from_disk opens",
    eot="append",
    dtype=lambda n_vocab: "uint32",
    dtypes=DTYPES,
    file_names=_file_names,
    write=_write,
    open=_open,
    is_raw=False,
    shard_tokens=SHARD_TOKENS,
    finish=_finish,
    requires=(("pyarrow", "arrow"),),
)
