"""Datasets of several shards and splits, written as a run writes them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from byteweld.dataset._manifest import FileEntry, Manifest, ShardEntry
from byteweld.dataset._shard import ShardName, Split
from byteweld.dataset.formats import Format
from tests.helpers.shards import Documents, make_manifest, make_shard

Splits = Mapping[Split, Sequence[Documents]]


def write_dataset(
    format: Format,
    folder: Path,
    splits: Splits,
    *,
    dtype: str | None = None,
    n_vocab: int = 256,
    pack: int | None = None,
) -> Manifest:
    """Write shards, given as the documents of each, and return the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    dtype = dtype or format.dtype(n_vocab)
    entries = []
    for split, shards in splits.items():
        for number, documents in enumerate(shards):
            name = ShardName(split, number, len(shards) == 1, len(splits) > 1)
            entries.append(_write(format, folder, documents, name, dtype))
    manifest = make_manifest(format, entries, dtype=dtype, n_vocab=n_vocab, pack=pack)
    scratch = folder / "scratch"
    if format.finish is not None:
        names = format.finish(folder, manifest, scratch)
        files = tuple(_move(scratch, folder, file) for file in names)
        manifest = dataclasses.replace(manifest, files=files)
    for left in sorted(scratch.rglob("*"), reverse=True):
        left.rmdir()
    scratch.rmdir()
    return manifest


def _write(
    format: Format, folder: Path, documents: Documents, name: ShardName, dtype: str
) -> ShardEntry:
    scratch = folder / "scratch"
    shard = make_shard(scratch, documents, dtype=dtype, name=name)
    format.write(shard, scratch)
    for left in ("tokens", "lengths"):
        (scratch / left).unlink()
    return ShardEntry(
        split=name.split,
        number=name.number,
        documents=shard.num_documents,
        tokens=shard.num_tokens,
        files=tuple(_move(scratch, folder, file) for file in format.file_names(name)),
    )


def _move(scratch: Path, folder: Path, name: str) -> FileEntry:
    data = (scratch / name).read_bytes()
    (folder / name).parent.mkdir(exist_ok=True)
    (scratch / name).rename(folder / name)
    return FileEntry(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
