"""What MDS and litdata share: a file of items with their offsets as uint32 in front.

The number of items, the offset of each item and of the end of the file, then the items.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from byteweld.dataset._manifest import ShardEntry
from byteweld.dataset._shard import Shard
from byteweld.dataset.formats._opening import check_number
from byteweld.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK_TOKENS: Final = 16_000_000  # of 4 bytes: 64 MB, the frameworks' own default
FOLDERS: Final = {"train": "train/", "validation": "val/"}  # if there are two splits
_MAX_BYTES: Final = (1 << 32) - 1


def write_offsets(
    file: IO[bytes],
    shard: Shard,
    sizes: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    config: bytes = b"",
) -> None:
    """Write the number of items, their offsets, and the bytes between those and the items.

    `sizes` gives the bytes of items from the lengths of documents.
    """
    import numpy as np

    end = 4 * (shard.num_documents + 2) + len(config)
    _check_end(end, shard)
    file.write(np.array([shard.num_documents, end], "<u4").tobytes())
    for lengths in shard.length_batches():
        ends = np.cumsum(sizes(lengths)) + end
        end = int(ends[-1])
        _check_end(end, shard)
        file.write(ends.astype("<u4").tobytes())
    file.write(config)


def _check_end(end: int, shard: Shard) -> None:
    if end > _MAX_BYTES:
        raise UnsupportedError(
            f"shard {shard.name.number} of {shard.name.split} has {shard.num_tokens} tokens in "
            f"{shard.num_documents} documents, which need more than the {_MAX_BYTES} bytes of a "
            "file of this format; use smaller shards (shard_tokens=), and if one document is "
            "that long, cut documents into rows with pack=N"
        )


class Chunk:
    """The items of a file, memory-mapped. Offsets are checked where they are used."""

    def __init__(self, path: Path, entry: ShardEntry, config: bytes = b"") -> None:
        import numpy as np

        self.path = path
        self.items = entry.documents
        self._start = 4 * (self.items + 2) + len(config)
        size = path.stat().st_size
        if size < self._start:
            raise FormatError(
                f"the file has {size} bytes; expected at least {self._start} for the offsets of "
                f"{self.items} documents",
                path=path,
            )
        self._bytes = np.asarray(np.memmap(path, np.uint8, "r"))  # slices of a memmap are slow
        self._offsets = self._bytes[4 : self._start - len(config)].view("<u4")
        found = int(self._bytes[:4].view("<u4")[0])
        if found != self.items:
            raise FormatError(
                f"the file has {found} documents; expected {self.items}, as the manifest says",
                path=path,
            )
        if self._bytes[self._start - len(config) : self._start].tobytes() != config:
            raise FormatError(
                f"the header of the file differs; expected {config.decode()!r}", path=path
            )
        first, end = int(self._offsets[0]), int(self._offsets[-1])
        if (first, end) != (self._start, size):
            raise FormatError(
                f"the offsets are from {first} to {end}; expected {self._start} to {size}",
                path=path,
            )

    def __getitem__(self, number: int) -> NDArray[np.uint8]:
        check_number(number, self.items)
        start, end = int(self._offsets[number]), int(self._offsets[number + 1])
        if not self._start <= start <= end <= len(self._bytes):
            raise FormatError(
                f"document {number} is at bytes {start} to {end}; expected them in order, from "
                f"{self._start} to {len(self._bytes)}",
                path=self.path,
            )
        return self._bytes[start:end]

    def sizes(self) -> NDArray[np.int64]:
        """Return the bytes of each item."""
        import numpy as np

        offsets = self._offsets.astype(np.int64)
        sizes = offsets[1:] - offsets[:-1]
        if (sizes < 0).any():
            number = int(np.argmax(sizes < 0))
            raise FormatError(
                f"document {number} ends at byte {int(self._offsets[number + 1])}, before it "
                f"starts at {int(self._offsets[number])}",
                path=self.path,
            )
        return sizes


def odd_size(number: int, size: int, dtype: str, path: Path) -> FormatError:
    """Return the error for an item that cannot be a document in this dtype."""
    return FormatError(
        f"document {number} has {size} bytes, which is no number of {dtype} ids", path=path
    )


def as_ids(data: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return the bytes of a file as ids, whatever their alignment."""
    import numpy as np

    return data.view(np.dtype(dtype).newbyteorder("<"))
