"""NumPy's own files: `train.npy` has the ids, and `train.index.npy` the end of each document.

Ids are one array, or a table with a row of N ids each if packed. `np.load(..., mmap_mode="r")`
reads both.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._format import Documents, Format
from byteweld.dataset.formats._raw import (
    ENDS_DTYPE,
    RawDocuments,
    map_exactly,
    paths,
    publish,
    smallest,
    train_or_val,
    write_ends,
)
from byteweld.errors import FormatError

# NumPy aligns arrays to 64 bytes; 128 are enough for a table of 2^64 rows of 2^64 ids.
_HEADER_BYTES: Final = 128


def _file_names(name: ShardName) -> tuple[str, ...]:
    stem = train_or_val(name)
    return f"{stem}.npy", f"{stem}.index.npy"


def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of a file in NumPy's format 1.0, padded with spaces."""
    import numpy as np

    descr = np.dtype(dtype).newbyteorder("<").str
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    size = _HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + f"{text:<{size - 1}}\n".encode()


def _shape(documents: int, tokens: int, pack: int | None) -> tuple[int, ...]:
    return (tokens,) if pack is None else (documents, pack)


def _write(shard: Shard, folder: Path) -> None:
    tokens, index = (folder / name for name in _file_names(shard.name))
    with index.open("wb") as file:
        file.write(_header(ENDS_DTYPE, (shard.num_documents,)))
        write_ends(shard, file)
    shape = _shape(shard.num_documents, shard.num_tokens, shard.pack)
    publish(shard, tokens, _header(shard.dtype, shape))


def _open(folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
    tokens, index = paths(folder, entry, 2)
    ids = map_exactly(tokens, manifest.dtype, entry.tokens, _HEADER_BYTES)
    ends = map_exactly(index, ENDS_DTYPE, entry.documents, _HEADER_BYTES)
    shape = _shape(entry.documents, entry.tokens, manifest.options.get("pack"))
    with tokens.open("rb") as tokens_file, index.open("rb") as index_file:
        _check_header(tokens_file, tokens, _header(manifest.dtype, shape))
        _check_header(index_file, index, _header(ENDS_DTYPE, (entry.documents,)))
    return RawDocuments(ids, ends, index)


def _check_header(file: IO[bytes], path: Path, expected: bytes) -> None:
    found = file.read(_HEADER_BYTES)
    if found != expected:
        raise FormatError(f"the header is {found!r}; expected {expected!r}", path=path)


NPY: Final = Format(
    name="npy",
    summary="NumPy files, train.npy and train.index.npy; a table if packed",
    eot="append",
    dtype=lambda n_vocab: smallest(n_vocab, "uint16", "uint32"),
    dtypes=("uint16", "uint32"),
    file_names=_file_names,
    write=_write,
    open=_open,
    header_bytes=_HEADER_BYTES,
)
