"""MosaicML's MDS shards: `shard.00000.mds` … and `index.json`, for its `StreamingDataset`.

One column, `tokens`, a one-dimensional array, as llm-foundry reads it. A sample is the size of its
datum as uint32; a byte of 4 plus the code for the type of the length; the length; the ids.
"""

from __future__ import annotations

import json
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
from byteweld.errors import FormatError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_HEADER: Final = 9  # the size, the code and a length of four bytes
_ONE_AXIS: Final = 1 << 2
_COPY_TOKENS: Final = 1 << 20


def _file_names(name: ShardName) -> tuple[str, ...]:
    folder = FOLDERS[name.split] if name.has_validation else ""
    return (f"{folder}shard.{name.number:05d}.mds",)


def _config(dtype: str) -> dict[str, object]:
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


def _config_bytes(dtype: str) -> bytes:
    return json.dumps(_config(dtype), sort_keys=True).encode()


# ---------------------------------------------------------------------- samples


def _header_sizes(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bytes before the ids: 5, and those of the smallest type for the length."""
    return 6 + (lengths >= 1 << 8) + 2 * (lengths >= 1 << 16)


def _headers(lengths: NDArray[np.int64], itemsize: int) -> NDArray[np.uint8]:
    """Return the headers of samples one after another."""
    import numpy as np

    sizes = _header_sizes(lengths)
    rows = np.zeros((len(lengths), _MAX_HEADER), np.uint8)
    rows[:, :4] = (lengths * itemsize + sizes - 4).astype("<u4").view(np.uint8).reshape(-1, 4)
    rows[:, 4] = _ONE_AXIS + (lengths >= 1 << 8) + (lengths >= 1 << 16)
    rows[:, 5:] = lengths.astype("<u4").view(np.uint8).reshape(-1, 4)  # little-endian: a prefix
    headers: NDArray[np.uint8] = rows[np.arange(_MAX_HEADER) < sizes[:, None]]
    return headers


def _write(shard: Shard, folder: Path) -> None:
    import numpy as np

    path = folder / _file_names(shard.name)[0]
    path.parent.mkdir(exist_ok=True)
    itemsize = np.dtype(shard.dtype).itemsize
    with path.open("wb") as file:
        write_offsets(
            file,
            shard,
            lambda lengths: _header_sizes(lengths) + lengths * itemsize,
            _config_bytes(shard.dtype),
        )
        for ids, lengths in shard.batches():
            headers = _headers(lengths, itemsize)
            if len(lengths) == 1:  # of any length
                file.write(headers.data)
                for start in range(0, len(ids), _COPY_TOKENS):
                    file.write(ids[start : start + _COPY_TOKENS].data)
                continue
            # Headers and ids take turns.
            runs = np.stack([_header_sizes(lengths), lengths * itemsize], axis=1).ravel()
            is_header = np.repeat(np.tile([True, False], len(lengths)), runs)
            samples = np.empty(len(is_header), np.uint8)
            samples[is_header] = headers
            samples[~is_header] = ids.view(np.uint8)
            file.write(samples.data)


def _finish(folder: Path, manifest: Manifest, scratch: Path) -> Sequence[str]:
    """Write `index.json` of each split."""
    splits: dict[str, list[object]] = {}
    for entry in manifest.shards:
        place = PurePosixPath(entry.files[0].name)
        raw = {
            "basename": place.name,
            "bytes": entry.files[0].size,
            "hashes": {"sha256": entry.files[0].sha256},
        }
        shard = _config(manifest.dtype) | {
            "raw_data": raw,
            "samples": entry.documents,
            "zip_data": None,
        }
        splits.setdefault(str(place.parent), []).append(shard)
    names = []
    for split, shards in splits.items():
        name = "index.json" if split == "." else f"{split}/index.json"
        path = scratch / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"shards": shards, "version": 2}, sort_keys=True))
        names.append(name)
    return names


# ---------------------------------------------------------------------- reading


class _MdsDocuments:
    def __init__(self, chunk: Chunk, dtype: str) -> None:
        import numpy as np

        self._chunk, self._dtype = chunk, dtype
        self._itemsize = np.dtype(dtype).itemsize

    @property
    def lengths(self) -> NDArray[np.int64]:
        import numpy as np

        sizes = self._chunk.sizes()
        lengths = self._lengths(sizes)
        odd = np.flatnonzero(lengths < 0)
        if len(odd):
            raise odd_size(int(odd[0]), int(sizes[odd[0]]), self._dtype, self._chunk.path)
        return lengths

    def _lengths(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lengths of documents from the bytes of their samples; -1 for none."""
        import numpy as np

        found = np.full(len(sizes), -1, np.int64)
        for header in (6, 7, 9):
            lengths, odd = np.divmod(sizes - header, self._itemsize)
            fits = (odd == 0) & (lengths >= 0) & (_header_sizes(lengths) == header)
            found[fits] = lengths[fits]
        return found

    def __getitem__(self, number: int) -> NDArray[Any]:
        import numpy as np

        data = self._chunk[number]
        lengths = self._lengths(np.array([len(data)]))
        if lengths[0] < 0:
            raise odd_size(number, len(data), self._dtype, self._chunk.path)
        header = _headers(lengths, self._itemsize)
        if not np.array_equal(data[: len(header)], header):
            raise FormatError(
                f"document {number} starts with bytes {data[: len(header)].tobytes().hex()}; "
                f"expected {header.tobytes().hex()} for {lengths[0]} ids",
                path=self._chunk.path,
            )
        return as_ids(data[len(header) :], self._dtype)


def _open(folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
    path = file_of(folder, entry)
    return _MdsDocuments(Chunk(path, entry, _config_bytes(manifest.dtype)), manifest.dtype)


MDS: Final = Format(
    name="mds",
    summary="MosaicML's MDS shards and index.json, for its StreamingDataset",
    eot="append",
    dtype=lambda n_vocab: smallest(n_vocab, "int32", "uint32"),
    dtypes=("int32", "uint32", "uint16", "int64"),
    file_names=_file_names,
    write=_write,
    open=_open,
    is_raw=False,
    shard_tokens=CHUNK_TOKENS,
    finish=_finish,
)
