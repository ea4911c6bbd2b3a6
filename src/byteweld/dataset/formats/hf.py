"""A Hugging Face dataset on disk, as `datasets.load_from_disk` opens it, memory-mapped.

`data-00000.arrow` … are Arrow IPC streams with one row per document; `state.json` lists them. With
a validation split it is a `DatasetDict`, with a folder for each split.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset.formats._arrow import COLUMN, IpcFormat
from byteweld.dataset.formats._splits import (
    base_name,
    by_folder,
    content_hash,
    split_folder,
    write_texts,
)


def _finish(folder: Path, manifest: Manifest, scratch: Path) -> list[str]:
    """Write what describes the files: state and features of each split, and the splits."""
    splits = by_folder(manifest)
    contents: dict[str, object] = {}
    for split, entries in splits.items():
        contents[f"{split}dataset_info.json"] = _info(manifest.dtype)
        contents[f"{split}state.json"] = _state(manifest, entries)
    if "" not in splits:
        contents["dataset_dict.json"] = {"splits": [split.rstrip("/") for split in splits]}
    texts = {name: json.dumps(content, indent=2) + "\n" for name, content in contents.items()}
    return write_texts(scratch, texts)


def _info(dtype: str) -> dict[str, Any]:
    # `Sequence` is what all versions of datasets read; the newer ones write `List`.
    ids = {"feature": {"dtype": dtype, "_type": "Value"}, "_type": "Sequence"}
    empty = {"citation": "", "description": ""}
    return {**empty, "features": {COLUMN: ids}, "homepage": "", "license": ""}


def _state(manifest: Manifest, entries: Sequence[ShardEntry]) -> dict[str, Any]:
    """Return the state of a split; caches of later steps depend on its fingerprint."""
    return {
        "_data_files": [{"filename": base_name(entry)} for entry in entries],
        "_fingerprint": content_hash(manifest, entries),
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": entries[0].split,
    }


HF: Final = IpcFormat(
    name="hf",
    summary="a Hugging Face dataset on disk, which datasets.load_from_disk opens",
    file_names=lambda name: (f"{split_folder(name)}data-{name.number:05d}.arrow",),
    finish=_finish,
    kind="stream",
)
