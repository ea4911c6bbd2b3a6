"""Encoded documents on disk: their ids in one file, their lengths in another."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld._atomic import naming
from byteweld.dataset import _order
from byteweld.dataset._shard import LENGTH_BYTES, mapped
from byteweld.dataset._writer import closing_on_error, open_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BUFFER_BYTES: Final = 1 << 17
_BATCH_TOKENS: Final = 1 << 20


class DocumentFiles:
    """Documents in two files, which only grow."""

    def __init__(self, stem: Path, dtype: Any, state: Sequence[int] = (0, 0)) -> None:
        """Start, or go back to an earlier state."""
        self.paths = stem.with_suffix(".tokens"), stem.with_suffix(".lengths")
        self._dtype = dtype
        self.tokens, self.documents = state
        self._open_tokens = 0
        sizes = self.tokens * dtype.itemsize, self.documents * LENGTH_BYTES
        self._files: list[Any] = []
        with closing_on_error(self):
            for path, size in zip(self.paths, sizes, strict=True):
                self._files.append(open_at(path, size, _BUFFER_BYTES))

    def append(self, ids: NDArray[Any], ends: NDArray[np.int64]) -> None:
        """Append ids; `ends` are the offsets in them where documents end."""
        import numpy as np

        if len(ends):
            lengths = np.diff(ends, prepend=0)
            lengths[0] += self._open_tokens
            self._open_tokens = len(ids) - int(ends[-1])
            self._write(1, lengths.astype("<i8"))
            self.documents += len(lengths)
        else:
            self._open_tokens += len(ids)
        self._write(0, ids.astype(self._dtype, copy=False))
        self.tokens += len(ids)

    def _write(self, which: int, values: NDArray[Any]) -> None:
        with naming(self.paths[which]):
            self._files[which].write(values.data.cast("B"))

    def state(self) -> list[int]:
        """Return the numbers of tokens and documents."""
        return [self.tokens, self.documents]

    def sync(self) -> None:
        """Put everything on disk."""
        for path, file in zip(self.paths, self._files, strict=True):
            with naming(path):
                file.flush()
                os.fdatasync(file.fileno())

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            with contextlib.suppress(OSError):  # it was synced, or is cut back later
                file.close()
        self._files = []

    def batches(
        self, order: NDArray[Any], start: int
    ) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
        """Yield documents in an order, from number `start` on, as (ids, ends)."""
        import numpy as np

        ids = mapped(self.paths[0], self._dtype.str, self.tokens, 0)
        lengths = np.array(mapped(self.paths[1], "int64", self.documents, 0))
        starts = np.cumsum(lengths) - lengths
        starts, lengths = starts[order], lengths[order]
        ends = np.cumsum(lengths)
        while start < self.documents:
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + _BATCH_TOKENS, side="right"))
            stop = max(stop, start + 1)
            some = lengths[start:stop]
            if stop == start + 1:  # it may be long: no copy, no index
                at = int(starts[start])
                yield ids[at : at + int(some[0])], some
            else:
                yield _order.gather(ids, starts[start:stop], some), np.cumsum(some)
            start = stop
