"""Datasets of a small tokenizer, made from lists of ids through the real formats."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from byteweld import Tokenizer
from byteweld.dataset._manifest import FileEntry, Manifest, ShardEntry
from byteweld.dataset._shard import ShardName, Split
from byteweld.dataset.formats import FORMATS
from tests.helpers.shards import Documents, write_shard

BYTES = Tokenizer.from_merges(
    {byte: bytes([byte]) for byte in range(256)} | {256: b"ab"},
    [(b"a", b"b")],
    special_tokens=["<|endoftext|>"],
)
EOT = BYTES.eot_token


def with_eot(*texts: str) -> list[list[int]]:
    """Encode strings as documents that end with the end-of-text token."""
    return [[*BYTES.encode_ordinary(text), EOT] for text in texts]


def make_dataset(
    folder: Path,
    shards: Sequence[Documents] = (),
    validation: Sequence[Documents] = (),
    *,
    format: str = "flat",
    continues: Sequence[int] = (),
    **changes: Any,
) -> Manifest:
    """Write a dataset of `BYTES`; `continues` are the shards of train whose last document goes on.

    `changes` replace fields of the manifest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pack = dict(changes.get("options", ())).get("pack")
    entries: list[ShardEntry] = []
    every: Mapping[Split, Sequence[Documents]] = {"train": shards, "validation": validation}
    for split, members in every.items():
        for number, documents in enumerate(members):
            name = ShardName(
                split=split,
                number=number,
                is_only=len(members) == 1,
                has_validation=bool(validation),
            )
            entry, _ = write_shard(
                FORMATS[format],
                folder,
                documents,
                name=name,
                n_vocab=BYTES.n_vocab,
                continues=split == "train" and number in continues,
                pack=pack,
            )
            entries.append(entry)
    totals = {
        split: {
            "documents": sum(e.documents - e.continues for e in entries if e.split == split),
            "tokens": sum(e.tokens for e in entries if e.split == split),
        }
        for split, members in every.items()
        if members or split == "train"
    }
    manifest = Manifest(
        format=format,
        dtype=FORMATS[format].dtype(BYTES.n_vocab),
        tokenizer={
            "fingerprint": BYTES.vocab.fingerprint,
            "n_vocab": BYTES.n_vocab,
            "eot": {"text": "<|endoftext|>", "id": EOT},
        },
        options={"eot": "append", "pack": None},
        is_complete=True,
        documents=sum(split["documents"] for split in totals.values()),
        tokens=sum(split["tokens"] for split in totals.values()),
        splits=totals,
        shards=tuple(entries),
    )
    manifest = dataclasses.replace(manifest, **changes)
    manifest = dataclasses.replace(manifest, files=_finish(folder, manifest))
    shutil.rmtree(folder / "scratch", ignore_errors=True)
    manifest.save(folder)
    return manifest


def _finish(folder: Path, manifest: Manifest) -> tuple[FileEntry, ...]:
    """Write the files that describe all shards."""
    finish = FORMATS[manifest.format].finish if manifest.format in FORMATS else None
    if finish is None or not manifest.shards:
        return ()
    files = []
    for name in finish(folder, manifest, folder / "scratch"):
        (folder / "scratch" / name).replace(folder / name)
        data = (folder / name).read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        files.append(FileEntry(name=name, size=len(data), sha256=sha256))
    return tuple(files)
