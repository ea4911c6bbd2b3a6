"""Files of ids as OLMo-core and dolma read them: named `.npy`, but without NumPy's header.

`X.csv.gz` has a row `start,end` for each document, as OLMo-core writes it. It cannot be read from
the middle, so `X.npy.index` has the ends as little-endian uint64, for us.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

from byteweld.dataset._shard import Shard, ShardName, running
from byteweld.dataset.formats._raw import RawFormat
from byteweld.dataset.formats._splits import split_folder

_DTYPES: Final = ("uint8", "uint16", "uint32")  # OLMo-core has uint64 too; no id needs it
_SHARD_TOKENS: Final = 512 * 1024 * 1024  # dolma's default


def _file_names(name: ShardName) -> tuple[str, ...]:
    stem = f"{split_folder(name)}part-0-{name.number:05d}"
    return f"{stem}.npy", f"{stem}.csv.gz", f"{stem}.npy.index"


class _Olmo(RawFormat):
    def write(self, shard: Shard, folder: Path) -> None:
        _, rows, _ = self.new_files(shard, folder)
        # Without name and time, the same documents give the same bytes. Level 1 is several times as
        # fast as level 6, and the file is small next to the ids.
        with rows.open("wb") as raw, gzip.GzipFile("", "wb", 1, raw, mtime=0) as file:
            for lengths, ends in running(shard.length_batches()):
                full = lengths > 0  # OLMo-core rejects empty documents at the end
                spans = zip((ends - lengths)[full].tolist(), ends[full].tolist(), strict=True)
                file.write("".join(map("%d,%d\n".__mod__, spans)).encode())
        super().write(shard, folder)


OLMO: Final = _Olmo(
    name="olmo",
    summary="ids without a header named .npy, with .csv.gz, as OLMo-core and dolma read them",
    file_names=_file_names,
    dtypes=_DTYPES,
    default_dtypes=_DTYPES,
    shard_tokens=_SHARD_TOKENS,
)
