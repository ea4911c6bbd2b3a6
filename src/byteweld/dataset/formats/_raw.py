"""What formats share whose main file is the ids one after another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.errors import FormatError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENDS_DTYPE: Final = "<u8"
_STEMS: Final = {"train": "train", "validation": "val"}


# ---------------------------------------------------------------------------- names and dtypes


def smallest(n_vocab: int, *dtypes: str) -> str:
    """Return the first of several dtypes that can hold all ids.

    >>> smallest(65_536, "uint16", "uint32"), smallest(65_537, "uint16", "uint32")
    ('uint16', 'uint32')
    """
    import numpy as np

    for dtype in dtypes:
        if n_vocab - 1 <= np.iinfo(dtype).max:
            return dtype
    return dtypes[-1]


def train_or_val(name: ShardName) -> str:
    """Return `train` or `val`, and the number of the shard unless it is the only one."""
    stem = _STEMS[name.split]
    return stem if name.is_only else f"{stem}_{name.number:06d}"


def split_folder(name: ShardName) -> str:
    """Return `train/` or `validation/`, for formats whose readers take a folder for a split.

    Empty if the dataset has one split.
    """
    return f"{name.split}/" if name.has_validation else ""


# ---------------------------------------------------------------------------- writing


def end_batches(shard: Shard) -> Iterator[NDArray[np.int64]]:
    """Yield the end of each document, in ids, some documents at a time."""
    import numpy as np

    total = 0
    for lengths in shard.length_batches():
        ends = np.cumsum(lengths) + total
        total = int(ends[-1])
        yield ends


def write_ends(shard: Shard, file: IO[bytes]) -> None:
    """Write the end of each document, in ids, as uint64."""
    for ends in end_batches(shard):
        file.write(ends.astype(ENDS_DTYPE).tobytes())


def write_index(shard: Shard, path: Path) -> None:
    """Write a file with the end of each document, in ids, as uint64."""
    with path.open("wb") as file:
        write_ends(shard, file)


def publish(shard: Shard, path: Path, header: bytes = b"") -> None:
    """Fill in the header of the tokens file, then give it its name."""
    if len(header) != shard.header_bytes:
        raise ValueError(f"the header has {len(header)} bytes; {shard.header_bytes} are reserved")
    if header:
        with shard.tokens.open("r+b") as file:
            file.write(header)
    shard.tokens.rename(path)


# ---------------------------------------------------------------------------- reading


def open_raw(
    folder: Path, entry: ShardEntry, manifest: Manifest, *, files: int = 2, header_bytes: int = 0
) -> RawDocuments:
    """Open a shard whose first file has the ids, and whose last file has the ends."""
    tokens, *_, index = paths(folder, entry, files)
    ids = map_exactly(tokens, manifest.dtype, entry.tokens, header_bytes)
    ends = map_exactly(index, ENDS_DTYPE, entry.documents)
    return RawDocuments(ids, ends, index)


def paths(folder: Path, entry: ShardEntry, count: int) -> list[Path]:
    """Return the files of a shard, or raise if their number is wrong."""
    if len(entry.files) != count:
        raise FormatError(
            f"the manifest lists {len(entry.files)} files for shard {entry.number} of "
            f"{entry.split}; expected {count}",
            path=folder,
        )
    return [folder / file.name for file in entry.files]


def map_exactly(path: Path, dtype: str, count: int, offset: int = 0) -> NDArray[Any]:
    """Map a file that must have exactly `offset` bytes and then `count` numbers."""
    import numpy as np

    kind = np.dtype(dtype).newbyteorder("<")
    size, expected = path.stat().st_size, offset + count * kind.itemsize
    if size != expected:
        raise FormatError(
            f"has {size} bytes; expected {expected}: {offset} of header, then {count} numbers of "
            f"{kind.itemsize} bytes",
            path=path,
        )
    if count == 0:  # an empty file cannot be mapped
        return np.empty(0, kind)
    # A plain array: every slice of a memmap takes longer.
    return np.asarray(np.memmap(path, kind, "r", offset, (count,)))


class RawDocuments:
    """Documents in an array of ids, by their ends.

    Opening does not read the ends: there may be 10^8. They are checked where they are used.
    """

    def __init__(self, ids: NDArray[Any], ends: NDArray[Any], index: Path) -> None:
        self._ids = ids
        self._ends = ends
        self._index = index
        last = int(ends[-1]) if len(ends) else 0
        if last != len(ids):
            raise FormatError(
                f"the last document ends at {last}; expected {len(ids)}, the number of ids",
                path=index,
            )

    @property
    def ids(self) -> NDArray[Any]:
        """All ids, one after another."""
        return self._ids

    @property
    def ends(self) -> NDArray[Any]:
        """The end of each document, in ids; not checked."""
        return self._ends

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of ids of each document."""
        import numpy as np

        ends = self._ends
        decreases = ends[1:] < ends[:-1]
        if decreases.any():
            raise self._wrong(1 + int(np.argmax(decreases)))
        return np.diff(ends, prepend=ends.dtype.type(0)).astype(np.int64)

    def __getitem__(self, number: int) -> NDArray[Any]:
        if not 0 <= number < len(self._ends):
            raise IndexError(f"document {number} is not in a shard of {len(self._ends)}")
        start = int(self._ends[number - 1]) if number else 0
        end = int(self._ends[number])
        if not start <= end <= len(self._ids):
            raise self._wrong(number)
        return self._ids[start:end]

    def _wrong(self, number: int) -> FormatError:
        start = int(self._ends[number - 1]) if number else 0
        return FormatError(
            f"document {number} is from {start} to {int(self._ends[number])}; expected ends that "
            f"do not decrease, up to {len(self._ids)}",
            path=self._index,
            offset=8 * number,
        )
