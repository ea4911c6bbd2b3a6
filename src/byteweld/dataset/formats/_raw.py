"""Formats whose main file is the ids one after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld._files import check_regular, read_start
from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, mapped, running
from byteweld.dataset.formats._documents import Documents
from byteweld.dataset.formats._format import Format
from byteweld.errors import FormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENDS_DTYPE: Final = "<u8"


def _no_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    return b""


@dataclass(frozen=True, kw_only=True)
class RawFormat(Format):
    """A format whose first file has the ids, and whose last file the end of each document.

    Attributes:
        header: returns the header of the ids, for their dtype and shape.
        index_header: returns the header of the ends.
        shown: how an error shows a header.
    """

    header: Callable[[str, tuple[int, ...]], bytes] = _no_header
    index_header: Callable[[str, tuple[int, ...]], bytes] = _no_header
    shown: Callable[[bytes], str] = repr

    def write(self, shard: Shard, folder: Path) -> None:
        """Write the ends, then give the ids their header and name."""
        tokens, *_, index = self.new_files(shard, folder)
        shape = _shape(shard.num_documents, shard.num_tokens, shard.pack)
        header = self.header(shard.dtype, shape)
        with index.open("wb") as file:
            file.write(self.index_header(_ENDS_DTYPE, (shard.num_documents,)))
            for _, ends in running(shard.length_batches()):
                file.write(ends.astype(_ENDS_DTYPE).tobytes())
        publish(shard, tokens, header)

    def open(self, folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
        """Map the ids and the ends."""
        tokens, *_, index = self.files(folder, entry)
        index_header = self.index_header(_ENDS_DTYPE, (entry.documents,))
        ids = map_exactly(tokens, manifest.dtype, entry.tokens, self.header_bytes)
        ends = map_exactly(index, _ENDS_DTYPE, entry.documents, len(index_header))
        shape = _shape(entry.documents, entry.tokens, manifest.options.get("pack"))
        self._check_header(tokens, self.header(manifest.dtype, shape))
        self._check_header(index, index_header)
        return _RawDocuments(ids, ends, index)

    def _check_header(self, path: Path, expected: bytes) -> None:
        found = read_start(path, len(expected))
        if found != expected:
            raise FormatError(
                f"the header is {self.shown(found)}; expected {self.shown(expected)}", path=path
            )


def _shape(documents: int, tokens: int, pack: int | None) -> tuple[int, ...]:
    return (tokens,) if pack is None else (documents, pack)


def publish(shard: Shard, path: Path, header: bytes = b"") -> None:
    """Fill in the header of the tokens file, then give it its name."""
    if len(header) != shard.header_bytes:
        raise ValueError(f"the header has {len(header)} bytes; {shard.header_bytes} are reserved")
    if header:
        with shard.tokens.open("r+b") as file:
            file.write(header)
    shard.tokens.rename(path)


def map_exactly(path: Path, dtype: str, count: int, offset: int = 0) -> NDArray[Any]:
    """Map a file that must have exactly `offset` bytes and then `count` numbers."""
    import numpy as np

    kind = np.dtype(dtype).newbyteorder("<")
    status, expected = path.stat(), offset + count * kind.itemsize
    check_regular(path, status)
    if status.st_size != expected:
        raise FormatError(
            f"has {status.st_size} bytes; expected {expected}: {offset} of header, then {count} "
            f"numbers of {kind.itemsize} bytes",
            path=path,
        )
    # A plain array: every slice of a memmap takes longer.
    return np.asarray(mapped(path, dtype, count, offset))


class _RawDocuments(Documents):
    """Documents in an array of ids, by their ends."""

    def __init__(self, ids: NDArray[Any], ends: NDArray[Any], index: Path) -> None:
        super().__init__(len(ends), ids.dtype.name, ids, ends)
        self._ids, self._index = ids, index
        last = int(ends[-1]) if len(ends) else 0
        if last != len(ids):
            raise FormatError(
                f"the last document ends at {last}; expected {len(ids)}, the number of ids",
                path=index,
            )

    def find(self, number: int) -> NDArray[Any]:
        start = int(self.ends[number - 1]) if number else 0
        end = int(self.ends[number])
        if not start <= end <= len(self._ids):
            raise FormatError(
                f"document {number} is from {start} to {end}; expected ends that do not decrease, "
                f"up to {len(self._ids)}",
                path=self._index,
                offset=8 * number,
            )
        return self._ids[start:end]
