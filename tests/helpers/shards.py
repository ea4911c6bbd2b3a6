"""Shards made from lists of ids, and what a run records when a format has written their files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from byteweld.dataset._manifest import FileEntry, Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats import Format
from byteweld.dataset.formats._documents import Documents as Opened

Documents = Sequence[Sequence[int]]
TRAIN = ShardName()


def make_shard(
    folder: Path,
    documents: Documents,
    *,
    dtype: str = "uint16",
    header_bytes: int = 0,
    name: ShardName = TRAIN,
    continues: bool = False,
    pack: int | None = None,
) -> Shard:
    """Write what a run leaves behind when a shard is complete: its tokens and lengths files."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = np.dtype(dtype).newbyteorder("<")
    lengths = np.array([len(document) for document in documents], "<i8")
    ids = [np.asarray(document, kind) for document in documents]
    tokens = np.concatenate(ids) if ids else np.empty(0, kind)
    (folder / "tokens").write_bytes(bytes(header_bytes) + tokens.tobytes())
    (folder / "lengths").write_bytes(lengths.tobytes())
    return Shard(
        name=name,
        tokens=folder / "tokens",
        lengths=folder / "lengths",
        dtype=dtype,
        header_bytes=header_bytes,
        num_tokens=len(tokens),
        num_documents=len(documents),
        continues=continues,
        pack=pack,
    )


def write_shard(
    format: Format,
    folder: Path,
    documents: Documents,
    *,
    dtype: str | None = None,
    name: ShardName = TRAIN,
    continues: bool = False,
    n_vocab: int = 256,
    pack: int | None = None,
) -> tuple[ShardEntry, Manifest]:
    """Write a shard in a format into a dataset's folder, and return its entry and the manifest.

    The manifest has this shard alone, and the files of `finish`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dtype = dtype or format.dtype(n_vocab)
    scratch = folder / "scratch"
    shard = make_shard(
        scratch,
        documents,
        dtype=dtype,
        header_bytes=format.header_bytes,
        name=name,
        continues=continues,
        pack=pack,
    )
    format.write(shard, scratch)
    entry = ShardEntry(
        split=name.split,
        number=name.number,
        documents=shard.num_documents,
        tokens=shard.num_tokens,
        files=tuple(_move(scratch, folder, file) for file in format.file_names(name)),
        continues=continues,
    )
    manifest = make_manifest(format, [entry], dtype=dtype, n_vocab=n_vocab, pack=pack)
    if format.finish is not None:
        names = format.finish(folder, manifest, scratch)
        files = tuple(_move(scratch, folder, file) for file in names)
        manifest = Manifest(**{**vars(manifest), "files": files})
    for left in ("tokens", "lengths"):
        (scratch / left).unlink(missing_ok=True)
    return entry, manifest


def lengths_of(documents: Opened) -> list[int]:
    """Return the number of ids of each document of a shard that was opened."""
    return [int(length) for _, lengths in documents.length_batches() for length in lengths]


def make_manifest(
    format: Format,
    shards: Sequence[ShardEntry],
    *,
    dtype: str,
    n_vocab: int = 256,
    pack: int | None = None,
) -> Manifest:
    """Return the manifest of a complete dataset with these shards."""
    splits: dict[str, Any] = {}
    for shard in shards:
        totals = splits.setdefault(shard.split, {"documents": 0, "tokens": 0})
        totals["documents"] += shard.documents
        totals["tokens"] += shard.tokens
    return Manifest(
        format=format.name,
        dtype=dtype,
        tokenizer={"fingerprint": "0" * 64, "n_vocab": n_vocab},
        options={"pack": pack},
        is_complete=True,
        documents=sum(shard.documents for shard in shards),
        tokens=sum(shard.tokens for shard in shards),
        splits=splits,
        shards=tuple(shards),
    )


def _move(scratch: Path, folder: Path, name: str) -> FileEntry:
    source, target = scratch / name, folder / name
    data = source.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)
    return FileEntry(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
