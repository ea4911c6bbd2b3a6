"""Shards and datasets made from lists of ids, and what a run records of their files."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from byteweld.dataset._manifest import FileEntry, Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName, Split
from byteweld.dataset.formats import Format

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
    dtype = dtype or format.dtype(n_vocab)
    shard = make_shard(
        folder / "scratch",
        documents,
        dtype=dtype,
        header_bytes=format.header_bytes,
        name=name,
        continues=continues,
        pack=pack,
    )
    format.write(shard, folder / "scratch")
    for left in ("tokens", "lengths"):
        (folder / "scratch" / left).unlink(missing_ok=True)
    entry = ShardEntry(
        split=name.split,
        number=name.number,
        documents=shard.num_documents,
        tokens=shard.num_tokens,
        files=_moved(folder, format.file_names(name)),
        continues=continues,
    )
    manifest = make_manifest(format, [entry], dtype=dtype, n_vocab=n_vocab, pack=pack)
    return entry, _finished(format, folder, manifest)


def write_dataset(
    format: Format,
    folder: Path,
    splits: Mapping[Split, Sequence[Documents]],
    *,
    dtype: str | None = None,
    n_vocab: int = 256,
    pack: int | None = None,
    continues: Sequence[int] = (),
    **changes: Any,
) -> Manifest:
    """Write shards, given as the documents of each, and return the manifest.

    `continues` are the shards of train whose last document goes on; `changes` replace fields of
    the manifest.
    """
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    dtype = dtype or format.dtype(n_vocab)
    entries = []
    for split, shards in splits.items():
        for number, documents in enumerate(shards):
            name = ShardName(split, number, len(shards) == 1, len(splits) > 1)
            entry, _ = write_shard(
                dataclasses.replace(format, finish=None),
                folder,
                documents,
                dtype=dtype,
                name=name,
                continues=split == "train" and number in continues,
                pack=pack,
            )
            entries.append(entry)
    manifest = make_manifest(format, entries, dtype=dtype, n_vocab=n_vocab, pack=pack)
    manifest = _finished(format, folder, dataclasses.replace(manifest, **changes))
    for left in sorted(scratch.rglob("*"), reverse=True):
        left.rmdir()
    scratch.rmdir()
    return manifest


def make_manifest(
    format: Format,
    shards: Sequence[ShardEntry],
    *,
    dtype: str,
    n_vocab: int = 256,
    pack: int | None = None,
) -> Manifest:
    """Return the manifest of a complete dataset with these shards."""
    splits: dict[str, Any] = {"train": {"documents": 0, "tokens": 0}}
    for shard in shards:
        totals = splits.setdefault(shard.split, {"documents": 0, "tokens": 0})
        totals["documents"] += shard.documents - shard.continues
        totals["tokens"] += shard.tokens
    return Manifest(
        format=format.name,
        dtype=dtype,
        tokenizer={"fingerprint": "0" * 64, "n_vocab": n_vocab},
        options={"pack": pack},
        is_complete=True,
        documents=sum(split["documents"] for split in splits.values()),
        tokens=sum(split["tokens"] for split in splits.values()),
        splits=splits,
        shards=tuple(shards),
    )


def _finished(format: Format, folder: Path, manifest: Manifest) -> Manifest:
    """The manifest with the files that describe all shards, which are written."""
    if format.finish is None or not manifest.shards:
        return manifest
    names = format.finish(folder, manifest, folder / "scratch")
    return dataclasses.replace(manifest, files=_moved(folder, names))


def _moved(folder: Path, names: Iterable[str]) -> tuple[FileEntry, ...]:
    entries = []
    for name in names:
        source, target = folder / "scratch" / name, folder / name
        data = source.read_bytes()
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        digest = hashlib.sha256(data).hexdigest()
        entries.append(FileEntry(name=name, size=len(data), sha256=digest))
    return tuple(entries)
