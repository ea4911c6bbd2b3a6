"""Megatron-LM's indexed datasets: ids in `X_text_document.bin`, an index in `X_text_document.idx`.

| offset in .idx | type     | content                                                     |
|----------------|----------|-------------------------------------------------------------|
| 0              | 9 bytes  | `MMIDIDX`, two zeros                                        |
| 9              | u64      | version, 1                                                  |
| 17             | u8       | code of the dtype: 4 int32, 8 uint16                        |
| 18             | u64      | number of sequences S                                       |
| 26             | u64      | number of documents D, plus 1                               |
| 34             | i32[S]   | length of each sequence, in ids                             |
| 34 + 4 S       | i64[S]   | offset of each sequence in .bin, in bytes                   |
| 34 + 12 S      | i64[D+1] | first sequence of each document, then S                     |

All is little-endian. A document is one sequence; an empty document has none, as with Megatron-LM's
own script, and one that is too long for an i32 has several.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld._files import read_start
from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName, mapped, running
from byteweld.dataset.formats._documents import Documents
from byteweld.dataset.formats._format import Format
from byteweld.dataset.formats._raw import map_exactly, publish
from byteweld.errors import FormatError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CODES: Final = {"int32": 4, "uint16": 8}
_HEADER: Final = struct.Struct("<9sQBQQ")
_MAGIC: Final = b"MMIDIDX\0\0"
_VERSION: Final = 1
_MAX_LENGTH = 2**31 - 1  # of a sequence
_SPLITS: Final = {"train": "train", "validation": "valid"}  # as in --train-data-path


def _file_names(name: ShardName) -> tuple[str, ...]:
    end = "text_document"
    prefix = name.prefix
    if prefix is not None and prefix.endswith("_document"):
        # The whole name, such as books_content_document, with the key of the JSON records.
        prefix, end = _cut_end(prefix)
    parts = [] if prefix is None else [prefix]
    if prefix is None or name.has_validation:
        parts.append(_SPLITS[name.split])
    if not name.is_only:
        parts.append(str(name.number))
    stem = "_".join([*parts, end])
    return f"{stem}.bin", f"{stem}.idx"


def _cut_end(prefix: str) -> tuple[str, str]:
    """Cut `X_KEY_document` into `X` and `KEY_document`."""
    start, _, key = prefix.removesuffix("_document").rpartition("_")
    return (start, f"{key}_document") if start else (prefix, "text_document")


# ---------------------------------------------------------------------------- writing


class _Megatron(Format):
    def dtype(self, n_vocab: int) -> str:
        return "uint16" if n_vocab < 65_500 else "int32"  # Megatron-LM's own rule

    def write(self, shard: Shard, folder: Path) -> None:
        tokens, index = self.new_files(shard, folder)
        _write_index(shard, index)
        publish(shard, tokens)

    def open(self, folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
        tokens, index = self.files(folder, entry)
        ids = map_exactly(tokens, manifest.dtype, entry.tokens)
        return _MegatronDocuments(ids, index, entry.documents)


def _write_index(shard: Shard, path: Path) -> None:
    import numpy as np

    size = np.dtype(shard.dtype).itemsize
    count = sum(int(_sequences(lengths).sum()) for lengths in shard.length_batches())
    with path.open("wb") as file:
        code = _CODES[shard.dtype]
        file.write(_HEADER.pack(_MAGIC, _VERSION, code, count, shard.num_documents + 1))
        for lengths in _sequence_lengths(shard):
            file.write(lengths.astype("<i4").tobytes())
        for lengths, ends in running(_sequence_lengths(shard)):
            file.write(((ends - lengths) * size).astype("<i8").tobytes())
        file.write(bytes(8))
        for _, firsts in running(map(_sequences, shard.length_batches())):
            file.write(firsts.astype("<i8").tobytes())


def _sequences(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of sequences of each document."""
    return -(-lengths // _MAX_LENGTH)


def _sequence_lengths(shard: Shard) -> Iterator[NDArray[np.int64]]:
    """Yield the length of each sequence, some documents at a time."""
    import numpy as np

    for lengths in shard.length_batches():
        counts = _sequences(lengths)
        found = np.full(int(counts.sum()), _MAX_LENGTH, np.int64)
        full = counts > 0
        # The last sequence of a document has the rest.
        found[np.cumsum(counts)[full] - 1] = (lengths - (counts - 1) * _MAX_LENGTH)[full]
        yield found


# ---------------------------------------------------------------------------- reading


class _MegatronDocuments(Documents):
    """Documents in a .bin file, by the .idx file."""

    def __init__(self, ids: NDArray[Any], index: Path, documents: int) -> None:
        super().__init__(documents, ids.dtype.name, ids)
        header = read_start(index, _HEADER.size)
        if len(header) < _HEADER.size:
            raise FormatError(
                f"has {len(header)} bytes; expected a header of {_HEADER.size}", path=index
            )
        magic, version, code, sequences, firsts = _HEADER.unpack(header)
        found = (magic, version, code, firsts)
        expected = (_MAGIC, _VERSION, _CODES[ids.dtype.name], documents + 1)
        if found != expected:
            raise FormatError(
                "the magic bytes, version, code of the dtype and number of document indices are "
                f"{found}; expected {expected}",
                path=index,
            )
        numbers = map_exactly(index, "i8", sequences + firsts, _HEADER.size + 4 * sequences)
        self._ids, self._index, self._sequences = ids, index, sequences
        self._offsets, self._firsts = numbers[:sequences], numbers[sequences:]
        if (self._firsts[0], self._firsts[-1], self._start(0)) != (0, sequences, 0):
            raise FormatError(
                f"the documents are sequences {self._firsts[0]} to {self._firsts[-1]} from byte "
                f"{self._start(0)}; expected 0 to {sequences} from byte 0",
                path=index,
            )

    def find_lengths(self) -> NDArray[np.int64]:
        import numpy as np

        starts = np.append(self._offsets, self._ids.nbytes)
        sizes = np.diff(starts)
        stored = mapped(self._index, "int32", self._sequences, _HEADER.size)
        wrong = (sizes < 0) | (sizes != stored.astype(np.int64) * self.dtype.itemsize)
        if wrong.any():
            sequence = int(np.argmax(wrong))
            raise FormatError(
                f"sequence {sequence} has {stored[sequence]} ids but {sizes[sequence]} bytes of "
                f"the .bin file; expected {self.dtype.itemsize} bytes for each id",
                path=self._index,
                offset=_HEADER.size + 4 * sequence,
            )
        decreases = self._firsts[1:] < self._firsts[:-1]
        if decreases.any():
            raise self._wrong(int(np.argmax(decreases)))
        lengths: NDArray[np.int64] = np.diff(starts[self._firsts]) // self.dtype.itemsize
        return lengths

    def find(self, number: int) -> NDArray[Any]:
        first, after = int(self._firsts[number]), int(self._firsts[number + 1])
        if not 0 <= first <= after <= self._sequences:
            raise self._wrong(number)
        size = self.dtype.itemsize
        start, end = self._start(first), self._start(after)
        if not 0 <= start <= end <= self._ids.nbytes or start % size or end % size:
            raise self._wrong(number)
        return self._ids[start // size : end // size]

    def _start(self, sequence: int) -> int:
        """Return the offset of a sequence in the .bin file, which ends where the last one does."""
        return int(self._offsets[sequence]) if sequence < self._sequences else self._ids.nbytes

    def _wrong(self, number: int) -> FormatError:
        return FormatError(
            f"document {number} is from sequence {self._firsts[number]} to "
            f"{self._firsts[number + 1]}; expected sequences in order, with offsets in order up "
            f"to {self._ids.nbytes}",
            path=self._index,
        )


MEGATRON: Final = _Megatron(
    name="megatron",
    summary="ids and an index, X_text_document.bin and .idx, as Megatron-LM reads them",
    file_names=_file_names,
    dtypes=("uint16", "int32"),
    has_prefix=True,
    marks_empty=False,
)
