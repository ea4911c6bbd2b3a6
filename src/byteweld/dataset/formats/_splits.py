"""How formats name the files of a split, and the files that describe its shards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import ShardName

_STEMS: Final = {"train": "train", "validation": "val"}


def train_or_val(name: ShardName) -> str:
    """Return `train` or `val`, and the number of the shard unless it is the only one."""
    stem = _STEMS[name.split]
    return stem if name.is_only else f"{stem}_{name.number:06d}"


def split_folder(name: ShardName, validation: str = "validation") -> str:
    """Return `train/` or `validation/`, for readers that take a folder for a split.

    Empty if the dataset has one split.
    """
    split = "train" if name.split == "train" else validation
    return f"{split}/" if name.has_validation else ""


def by_folder(manifest: Manifest) -> dict[str, list[ShardEntry]]:
    """Return the shards in each folder, such as `train/`, or empty for the dataset's own."""
    splits: dict[str, list[ShardEntry]] = {}
    for entry in manifest.shards:
        parent = str(PurePosixPath(entry.files[0].name).parent)
        splits.setdefault("" if parent == "." else f"{parent}/", []).append(entry)
    return splits


def base_name(entry: ShardEntry) -> str:
    """Return the name of a shard's main file within its folder."""
    return PurePosixPath(entry.files[0].name).name


def content_hash(manifest: Manifest, entries: Sequence[ShardEntry]) -> str:
    """Return what frameworks name their caches by: the same files, the same name."""
    known = [manifest.tokenizer["fingerprint"], *(entry.files[0].sha256 for entry in entries)]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


def write_texts(scratch: Path, texts: Mapping[str, str]) -> list[str]:
    """Write text files into a scratch folder, and return their names."""
    for name, text in texts.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return list(texts)


def write_indexes(
    index: Callable[[Manifest, Sequence[ShardEntry]], object],
) -> Callable[[Path, Manifest, Path], list[str]]:
    """Return a `finish` that writes an index.json for each split."""

    def finish(folder: Path, manifest: Manifest, scratch: Path) -> list[str]:
        indexes = {
            f"{split}index.json": json.dumps(index(manifest, entries), sort_keys=True)
            for split, entries in by_folder(manifest).items()
        }
        return write_texts(scratch, indexes)

    return finish
