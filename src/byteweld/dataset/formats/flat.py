"""Flat files of ids without a header, as nanoGPT reads them: `train.bin` and `val.bin`.

`train.bin.index` has the end of each document, in ids, as little-endian uint64.
"""

from __future__ import annotations

from typing import Final

from byteweld.dataset.formats._raw import RawFormat
from byteweld.dataset.formats._splits import train_or_val

FLAT: Final = RawFormat(
    name="flat",
    summary="ids without a header, train.bin and val.bin, as nanoGPT reads them",
    file_names=lambda name: (f"{train_or_val(name)}.bin", f"{train_or_val(name)}.bin.index"),
    has_rows=False,
)
