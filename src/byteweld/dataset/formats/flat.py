"""Flat files of ids without a header, as nanoGPT reads them: `train.bin` and `val.bin`.

`train.bin.index` has the end of each document, in ids, as little-endian uint64.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._format import Documents, Format
from byteweld.dataset.formats._raw import RawDocuments, smallest, write_ends

_STEMS: Final = {"train": "train", "validation": "val"}


def _file_names(name: ShardName) -> tuple[str, ...]:
    stem = _STEMS[name.split]
    if not name.is_only:
        stem = f"{stem}_{name.number:06d}"
    return f"{stem}.bin", f"{stem}.bin.index"


def _write(shard: Shard, folder: Path) -> None:
    tokens, index = _file_names(shard.name)
    write_ends(shard, folder / index)
    shard.tokens.rename(folder / tokens)


def _open(folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
    tokens, index = (folder / file.name for file in entry.files)
    return RawDocuments(tokens, index, manifest.dtype)


FLAT: Final = Format(
    name="flat",
    summary="ids without a header, train.bin and val.bin, as nanoGPT reads them",
    eot="append",
    dtype=lambda n_vocab: smallest(n_vocab, "uint16", "uint32"),
    dtypes=("uint16", "uint32"),
    file_names=_file_names,
    write=_write,
    open=_open,
    has_rows=False,
)
