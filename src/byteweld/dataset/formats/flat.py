"""Flat files of ids without a header, as nanoGPT reads them: `train.bin` and `val.bin`.

`train.bin.index` has the end of each document, in ids, as little-endian uint64.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._format import Format
from byteweld.dataset.formats._raw import open_raw, publish, smallest, train_or_val, write_index


def _file_names(name: ShardName) -> tuple[str, ...]:
    stem = train_or_val(name)
    return f"{stem}.bin", f"{stem}.bin.index"


def _write(shard: Shard, folder: Path) -> None:
    tokens, index = _file_names(shard.name)
    write_index(shard, folder / index)
    publish(shard, folder / tokens)


FLAT: Final = Format(
    name="flat",
    summary="ids without a header, train.bin and val.bin, as nanoGPT reads them",
    eot="append",
    dtype=lambda n_vocab: smallest(n_vocab, "uint16", "uint32"),
    dtypes=("uint16", "uint32"),
    file_names=_file_names,
    write=_write,
    open=open_raw,
    has_rows=False,
)
