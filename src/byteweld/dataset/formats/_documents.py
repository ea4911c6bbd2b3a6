"""The documents of one shard, opened for reading, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld.errors import FormatError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH_DOCUMENTS: Final = 1 << 20


class Documents:
    """The documents (or packed rows) of one shard: by number, and their ids as one array.

    A format passes `whole`, all ids one after another, and the ends of documents in it, where files
    have these; otherwise, it defines `find_lengths`. It checks documents where they are used:
    opening must not read 10^8 of them.
    """

    def __init__(
        self,
        count: int,
        dtype: str,
        whole: NDArray[Any] | None = None,
        ends: NDArray[Any] | None = None,
    ) -> None:
        import numpy as np

        self.count = count
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self._whole = whole
        self._ends = ends

    def find_lengths(self) -> NDArray[np.int64]:
        """Read the number of ids of each document."""
        raise NotImplementedError

    def find(self, number: int) -> NDArray[Any]:
        """Return the ids of a document that the shard has, without copying if possible."""
        raise NotImplementedError

    def __getitem__(self, number: int) -> NDArray[Any]:
        if not 0 <= number < self.count:
            raise IndexError(f"document {number} is not in a shard of {self.count}")
        return self.find(number)

    @property
    def ends(self) -> NDArray[Any]:
        """The end of each document in the shard, in ids; not checked if a file has them."""
        if self._ends is None:
            self._ends = self.find_lengths().cumsum()
        return self._ends

    def length_batches(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the number of a document, and the lengths of it and of some that follow.

        A length is negative if the file says that a document ends before it starts.
        """
        import numpy as np

        last = 0
        for start in range(0, self.count, _BATCH_DOCUMENTS):
            some = self.ends[start : start + _BATCH_DOCUMENTS]
            ends = np.where(some > self.ends[-1], -1, some.astype(np.int64))
            yield start, np.diff(ends, prepend=last)
            last = int(ends[-1])

    def ids(self, start: int, stop: int) -> NDArray[Any]:
        """Return ids `start` to `stop` of the shard, without copying if its format has no rows."""
        import numpy as np

        if self._whole is not None:
            return self._whole[start:stop]
        number = int(np.searchsorted(self.ends, start, side="right"))
        parts: list[NDArray[Any]] = []
        while start < stop and number < self.count:
            document, end = self[number], int(self.ends[number])
            first = start - (end - len(document))
            parts.append(document[first : first + stop - start])
            start, number = end, number + 1
        return joined(parts, self.dtype)

    def edges(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first and the last id of some documents, -1 for those that are empty."""
        import numpy as np

        ends = np.asarray(self.ends[start:stop]).astype(np.int64)
        starts = np.append(self.ends[start - 1] if start else 0, ends[:-1]).astype(np.int64)
        filled = np.flatnonzero(ends > starts)
        firsts, lasts = np.full((2, len(ends)), -1, np.int64)
        if self._whole is not None:
            firsts[filled] = self._whole[starts[filled]]
            lasts[filled] = self._whole[ends[filled] - 1]
        else:
            for number in filled:
                document = self[start + int(number)]
                firsts[number], lasts[number] = document[0], document[-1]
        return firsts, lasts


def joined(parts: Sequence[NDArray[Any]], dtype: str | np.dtype[Any]) -> NDArray[Any]:
    """Join arrays of ids, without copying if there is only one."""
    if len(parts) == 1:
        return parts[0]
    import numpy as np

    return np.concatenate(parts) if parts else np.empty(0, dtype)


def check_amount(found: int, what: str, expected: int, path: Path) -> None:
    """Raise unless a file has as much of something as its dataset's manifest says."""
    if found != expected:
        raise FormatError(
            f"the file has {found} {what}; expected {expected}, as the manifest says", path=path
        )
