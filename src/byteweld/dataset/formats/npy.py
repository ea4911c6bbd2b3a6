"""NumPy's own files: `train.npy` has the ids, and `train.index.npy` the end of each document.

Ids are one array, or a table with a row of N ids each if packed. `np.load(..., mmap_mode="r")`
reads both.
"""

from __future__ import annotations

from typing import Final

from byteweld.dataset.formats._raw import RawFormat
from byteweld.dataset.formats._splits import train_or_val

# NumPy aligns arrays to 64 bytes; 128 are enough for a table of 2^64 rows of 2^64 ids.
_HEADER_BYTES: Final = 128


def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of a file in NumPy's format 1.0, padded with spaces."""
    import numpy as np

    descr = np.dtype(dtype).newbyteorder("<").str
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    size = _HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + f"{text:<{size - 1}}\n".encode()


NPY: Final = RawFormat(
    name="npy",
    summary="NumPy files, train.npy and train.index.npy; a table if packed",
    file_names=lambda name: (f"{train_or_val(name)}.npy", f"{train_or_val(name)}.index.npy"),
    header_bytes=_HEADER_BYTES,
    header=_header,
    index_header=_header,
)
