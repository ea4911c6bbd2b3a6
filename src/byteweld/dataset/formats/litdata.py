"""litdata's chunks of tokens: `chunk-0-0.bin` … and `index.json`, for its `TokensLoader`.

An item is a document. `TokensLoader` reads blocks of any size across documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset.formats._chunks import ChunkFormat
from byteweld.dataset.formats._splits import base_name, content_hash, split_folder, write_indexes

# litdata's codes: tensors have no uint32, arrays do.
_FORMATS: Final = {
    "int32": ("no_header_tensor:16", "tensor"),
    "uint16": ("no_header_tensor:20", "tensor"),
    "int64": ("no_header_tensor:18", "tensor"),
    "uint32": ("no_header_numpy:6", "ndarray"),
}
_ONE_LEAF: Final = '[1, {"type": null, "context": null, "children_spec": []}]'


def _index(manifest: Manifest, entries: Sequence[ShardEntry]) -> dict[str, Any]:
    data_format, kind = _FORMATS[manifest.dtype]
    chunks = [
        {
            "chunk_bytes": entry.files[0].size,
            "chunk_size": entry.documents,
            "dim": entry.tokens,
            "filename": base_name(entry),
        }
        for entry in entries
    ]
    config = {
        "chunk_bytes": max(entry.files[0].size for entry in entries),
        "chunk_size": None,
        "compression": None,
        "compression_batch_size": None,
        "compression_level": None,
        "data_format": [data_format],
        "data_spec": _ONE_LEAF,
        "encryption": None,
        "ipc_compression": None,
        "item_loader": "TokensLoader",
        "types": kind,
    }
    return {"chunks": chunks, "config": config, "updated_at": content_hash(manifest, entries)}


LITDATA: Final = ChunkFormat(
    name="litdata",
    summary="litdata's chunks and index.json, for its TokensLoader",
    file_names=lambda name: (f"{split_folder(name, 'val')}chunk-0-{name.number}.bin",),
    dtypes=tuple(_FORMATS),
    finish=write_indexes(_index),
)
