"""What MDS and litdata share: a file of items with their offsets as uint32 in front.

The number of items, the offset of each item and of the end of the file, then the items.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, running
from byteweld.dataset.formats._documents import Documents, check_amount
from byteweld.dataset.formats._format import Format
from byteweld.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COPY_TOKENS: Final = 1 << 20
_MAX_BYTES: Final = (1 << 32) - 1


@dataclass(frozen=True, kw_only=True)
class ChunkFormat(Format):
    """A format of chunks, whose items are documents, each after a header.

    Attributes:
        header_sizes: the sizes that a header may have.
    """

    default_dtypes: tuple[str, ...] = ("int32", "uint32")
    is_raw: bool = False
    shard_tokens: int | None = 16_000_000  # of 4 bytes: 64 MB, the frameworks' own default
    header_sizes: tuple[int, ...] = (0,)

    def config(self, dtype: str) -> bytes:
        """Return what stands between the offsets and the items."""
        return b""

    def header_size(self, length: Any) -> Any:
        """Return the bytes of the header of a document, or of each of some, by their lengths."""
        return length * 0

    def headers(self, lengths: NDArray[np.int64], itemsize: int) -> NDArray[np.uint8]:
        """Return the headers of documents one after another."""
        import numpy as np

        return np.empty(0, np.uint8)

    def write(self, shard: Shard, folder: Path) -> None:
        """Write the offsets, then the items."""
        import numpy as np

        (path,) = self.new_files(shard, folder)
        itemsize = np.dtype(shard.dtype).itemsize
        config = self.config(shard.dtype)
        start = 4 * (shard.num_documents + 2) + len(config)
        sizes = (
            self.header_size(lengths) + lengths * itemsize for lengths in shard.length_batches()
        )
        _check_end(start, shard)
        with path.open("wb") as file:
            file.write(np.array([shard.num_documents, start], "<u4").tobytes())
            for _, ends in running(sizes):
                _check_end(start + int(ends[-1]), shard)
                file.write((ends + start).astype("<u4").tobytes())
            file.write(config)
            for ids, lengths in shard.batches():
                headers = self.headers(lengths, itemsize)
                if len(lengths) == 1 or not len(headers):
                    file.write(headers.data)
                    for at in range(0, len(ids), _COPY_TOKENS):  # one may be of any length
                        file.write(ids[at : at + _COPY_TOKENS].data)
                    continue
                # Headers and ids take turns.
                runs = np.stack([self.header_size(lengths), lengths * itemsize], axis=1).ravel()
                is_header = np.repeat(np.tile([True, False], len(lengths)), runs)
                items = np.empty(len(is_header), np.uint8)
                items[is_header] = headers
                items[~is_header] = ids.view(np.uint8)
                file.write(items.data)

    def open(self, folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
        """Map the offsets and the items."""
        return _ChunkDocuments(self, self.only_file(folder, entry), entry, manifest.dtype)


def _check_end(end: int, shard: Shard) -> None:
    if end > _MAX_BYTES:
        raise UnsupportedError(
            f"shard {shard.name.number} of {shard.name.split} has {shard.num_tokens} tokens in "
            f"{shard.num_documents} documents, which need more than the {_MAX_BYTES} bytes of a "
            "file of this format; use smaller shards (shard_tokens=), and if one document is "
            "that long, cut documents into rows with pack=N"
        )


class _ChunkDocuments(Documents):
    """The items of a file, memory-mapped."""

    def __init__(self, format: ChunkFormat, path: Path, entry: ShardEntry, dtype: str) -> None:
        import numpy as np

        super().__init__(entry.documents, dtype)
        self._format, self._path = format, path
        config = format.config(dtype)
        offsets = 4 * (self.count + 2)
        self._start = offsets + len(config)
        size = path.stat().st_size
        if size < self._start:
            raise FormatError(
                f"the file has {size} bytes; expected at least {self._start} for the offsets of "
                f"{self.count} documents",
                path=path,
            )
        self._bytes = np.asarray(np.memmap(path, np.uint8, "r"))  # slices of a memmap are slow
        check_amount(int(self._bytes[:4].view("<u4")[0]), "documents", self.count, path)
        if self._bytes[offsets : self._start].tobytes() != config:
            raise FormatError(
                f"the header of the file differs; expected {config.decode()!r}", path=path
            )
        self._offsets = self._bytes[4:offsets].view("<u4")
        first, end = int(self._offsets[0]), int(self._offsets[-1])
        if (first, end) != (self._start, size):
            raise FormatError(
                f"the offsets are from {first} to {end}; expected {self._start} to {size}",
                path=path,
            )

    def find_lengths(self) -> NDArray[np.int64]:
        import numpy as np

        offsets = self._offsets.astype(np.int64)
        sizes = offsets[1:] - offsets[:-1]
        if (sizes < 0).any():
            number = int(np.argmax(sizes < 0))
            raise FormatError(
                f"document {number} ends at byte {int(self._offsets[number + 1])}, before it "
                f"starts at {int(self._offsets[number])}",
                path=self._path,
            )
        some, at = np.unique(sizes, return_inverse=True)
        lengths = np.array([self._length(size) for size in some.tolist()], np.int64)[at]
        if (lengths < 0).any():
            number = int(np.argmax(lengths < 0))
            raise self._odd(number, int(sizes[number]))
        return lengths

    def _length(self, size: int) -> int:
        """Return the length of a document from the bytes of its item; -1 if it cannot be one."""
        for header in self._format.header_sizes:
            length, odd = divmod(size - header, self.dtype.itemsize)
            if not odd and length >= 0 and self._format.header_size(length) == header:
                return length
        return -1

    def _odd(self, number: int, size: int) -> FormatError:
        return FormatError(
            f"document {number} has {size} bytes, which is no number of {self.dtype.name} ids",
            path=self._path,
        )

    def find(self, number: int) -> NDArray[Any]:
        import numpy as np

        start, end = int(self._offsets[number]), int(self._offsets[number + 1])
        if not self._start <= start <= end <= len(self._bytes):
            raise FormatError(
                f"document {number} is at bytes {start} to {end}; expected them in order, from "
                f"{self._start} to {len(self._bytes)}",
                path=self._path,
            )
        length = self._length(end - start)
        if length < 0:
            raise self._odd(number, end - start)
        ids = end - length * self.dtype.itemsize
        if ids > start:
            header = self._bytes[start:ids].tobytes()
            expected = self._format.headers(np.array([length]), self.dtype.itemsize).tobytes()
            if header != expected:
                raise FormatError(
                    f"document {number} starts with bytes {header.hex()}; expected "
                    f"{expected.hex()} for {length} ids",
                    path=self._path,
                )
        return self._bytes[ids:end].view(self.dtype)  # whatever its alignment
