"""MosaicML's MDS shards: `shard.00000.mds` … and `index.json`, for its `StreamingDataset`.

One column, `tokens`, a one-dimensional array, as llm-foundry reads it. A sample is the size of its
datum as uint32; a byte of 4 plus the code for the type of the length; the length; the ids.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset.formats._chunks import ChunkFormat
from byteweld.dataset.formats._splits import base_name, split_folder, write_indexes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HEADER_SIZES: Final = (6, 7, 9)  # the size, the code and a length of one, two or four bytes
_ONE_AXIS: Final = 1 << 2


def _config(dtype: str) -> dict[str, Any]:
    return {
        "column_encodings": [f"ndarray:{dtype}"],
        "column_names": ["tokens"],
        "column_sizes": [None],
        "compression": None,
        "format": "mds",
        "hashes": ["sha256"],
        "size_limit": None,
        "version": 2,
    }


def _index(manifest: Manifest, entries: Sequence[ShardEntry]) -> dict[str, Any]:
    shards = []
    for entry in entries:
        (file,) = entry.files
        raw = {"basename": base_name(entry), "bytes": file.size, "hashes": {"sha256": file.sha256}}
        more = {"raw_data": raw, "samples": entry.documents, "zip_data": None}
        shards.append(_config(manifest.dtype) | more)
    return {"shards": shards, "version": 2}


class _Mds(ChunkFormat):
    def config(self, dtype: str) -> bytes:
        return json.dumps(_config(dtype), sort_keys=True).encode()

    def header_size(self, length: Any) -> Any:
        return 6 + (length >= 1 << 8) + 2 * (length >= 1 << 16)

    def headers(self, lengths: NDArray[np.int64], itemsize: int) -> NDArray[np.uint8]:
        import numpy as np

        sizes = self.header_size(lengths)
        rows = np.zeros((len(lengths), max(_HEADER_SIZES)), np.uint8)
        rows[:, :4] = (lengths * itemsize + sizes - 4).astype("<u4").view(np.uint8).reshape(-1, 4)
        rows[:, 4] = _ONE_AXIS + (lengths >= 1 << 8) + (lengths >= 1 << 16)
        rows[:, 5:] = lengths.astype("<u4").view(np.uint8).reshape(-1, 4)  # little-endian: a prefix
        headers: NDArray[np.uint8] = rows[np.arange(rows.shape[1]) < sizes[:, None]]
        return headers


MDS: Final = _Mds(
    name="mds",
    summary="MosaicML's MDS shards and index.json, for its StreamingDataset",
    file_names=lambda name: (f"{split_folder(name, 'val')}shard.{name.number:05d}.mds",),
    dtypes=("int32", "uint32", "uint16", "int64"),
    header_sizes=_HEADER_SIZES,
    finish=write_indexes(_index),
)
