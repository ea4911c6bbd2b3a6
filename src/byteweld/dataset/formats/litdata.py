"""litdata's chunks of tokens: `chunk-0-0.bin` … and `index.json`, for its `TokensLoader`.

An item is a document. `TokensLoader` reads blocks of any size across documents.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._chunks import (
    CHUNK_TOKENS,
    FOLDERS,
    Chunk,
    as_ids,
    odd_size,
    write_offsets,
)
from byteweld.dataset.formats._format import Documents, Format
from byteweld.dataset.formats._opening import file_of
from byteweld.dataset.formats._raw import smallest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# litdata's codes: tensors have no uint32, arrays do.
_FORMATS: Final = {
    "int32": ("no_header_tensor:16", "tensor"),
    "uint16": ("no_header_tensor:20", "tensor"),
    "int64": ("no_header_tensor:18", "tensor"),
    "uint32": ("no_header_numpy:6", "ndarray"),
}
_ONE_LEAF: Final = '[1, {"type": null, "context": null, "children_spec": []}]'
_COPY_BYTES: Final = 1 << 20


def _file_names(name: ShardName) -> tuple[str, ...]:
    folder = FOLDERS[name.split] if name.has_validation else ""
    return (f"{folder}chunk-0-{name.number}.bin",)


def _write(shard: Shard, folder: Path) -> None:
    import numpy as np

    path = folder / _file_names(shard.name)[0]
    path.parent.mkdir(exist_ok=True)
    size = np.dtype(shard.dtype).itemsize
    with path.open("wb") as file, shard.tokens.open("rb") as tokens:
        write_offsets(file, shard, lambda lengths: lengths * size)
        tokens.seek(shard.header_bytes)
        shutil.copyfileobj(tokens, file, _COPY_BYTES)


def _finish(folder: Path, manifest: Manifest, scratch: Path) -> Sequence[str]:
    """Write `index.json` of each split."""
    splits: dict[str, list[ShardEntry]] = {}
    for entry in manifest.shards:
        splits.setdefault(str(PurePosixPath(entry.files[0].name).parent), []).append(entry)
    names = []
    for split, entries in splits.items():
        name = "index.json" if split == "." else f"{split}/index.json"
        path = scratch / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(_index(manifest, entries), sort_keys=True))
        names.append(name)
    return names


def _index(manifest: Manifest, entries: Sequence[ShardEntry]) -> dict[str, object]:
    data_format, kind = _FORMATS[manifest.dtype]
    chunks = [
        {
            "chunk_bytes": entry.files[0].size,
            "chunk_size": entry.documents,
            "dim": entry.tokens,
            "filename": PurePosixPath(entry.files[0].name).name,
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
    # litdata names its caches by this: the same files, the same name.
    known = [manifest.tokenizer["fingerprint"], *(entry.files[0].sha256 for entry in entries)]
    version = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
    return {"chunks": chunks, "config": config, "updated_at": version}


class _LitdataDocuments:
    def __init__(self, chunk: Chunk, dtype: str) -> None:
        import numpy as np

        self._chunk, self._dtype = chunk, dtype
        self._itemsize = np.dtype(dtype).itemsize

    @property
    def lengths(self) -> NDArray[np.int64]:
        import numpy as np

        sizes = self._chunk.sizes()
        odd = np.flatnonzero(sizes % self._itemsize)
        if len(odd):
            raise odd_size(int(odd[0]), int(sizes[odd[0]]), self._dtype, self._chunk.path)
        return sizes // self._itemsize

    def __getitem__(self, number: int) -> NDArray[Any]:
        data = self._chunk[number]
        if len(data) % self._itemsize:
            raise odd_size(number, len(data), self._dtype, self._chunk.path)
        return as_ids(data, self._dtype)


def _open(folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
    return _LitdataDocuments(Chunk(file_of(folder, entry), entry), manifest.dtype)


LITDATA: Final = Format(
    name="litdata",
    summary="litdata's chunks and index.json, for its TokensLoader",
    eot="append",
    dtype=lambda n_vocab: smallest(n_vocab, "int32", "uint32"),
    dtypes=tuple(_FORMATS),
    file_names=_file_names,
    write=_write,
    open=_open,
    is_raw=False,
    shard_tokens=CHUNK_TOKENS,
    finish=_finish,
)
