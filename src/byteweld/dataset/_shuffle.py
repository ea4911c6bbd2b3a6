"""Shuffles documents in bounded memory: into buckets on disk first, then bucket by bucket.

The bucket of a document, and its place among those of its bucket, follow from its number and the
seed. A bucket is a file of ids and a file of lengths, which only grow while the corpus is encoded.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld._atomic import naming
from byteweld.dataset import _order
from byteweld.dataset._shard import LENGTH_BYTES, mapped
from byteweld.dataset._writer import closing_on_error, open_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A bucket of about this many bytes of (stored) text; more text only makes the buckets larger.
_BUCKET_BYTES: Final = 64 << 20
_MAX_BUCKETS: Final = 128
_UNKNOWN_BUCKETS: Final = 32  # if the size of the corpus is not known
_BUFFER_BYTES: Final = 1 << 17
_BATCH_TOKENS: Final = 1 << 20


class _Bucket:
    """The documents of one bucket."""

    def __init__(self, stem: Path, dtype: Any, state: list[int]) -> None:
        self._paths = stem.with_suffix(".tokens"), stem.with_suffix(".lengths")
        self._dtype = dtype
        self.tokens, self.documents = state
        self._open_tokens = 0
        sizes = self.tokens * dtype.itemsize, self.documents * LENGTH_BYTES
        self._files: list[Any] = []
        with closing_on_error(self):
            for path, size in zip(self._paths, sizes, strict=True):
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
        with naming(self._paths[which]):
            self._files[which].write(values.data.cast("B"))

    def state(self) -> list[int]:
        return [self.tokens, self.documents]

    def sync(self) -> None:
        for path, file in zip(self._paths, self._files, strict=True):
            with naming(path):
                file.flush()
                os.fdatasync(file.fileno())

    def close(self) -> None:
        for file in self._files:
            with contextlib.suppress(OSError):  # it was synced, or is cut back later
                file.close()
        self._files = []

    def batches(
        self, order: NDArray[Any], start: int
    ) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
        """Yield documents in an order, from number `start` on, as (ids, ends)."""
        import numpy as np

        ids = mapped(self._paths[0], self._dtype.str, self.tokens, 0)
        lengths = np.array(mapped(self._paths[1], "int64", self.documents, 0))
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


@contextlib.contextmanager
def _explaining(count: int) -> Iterator[None]:
    """Say how many files must be open at once if the system does not allow that."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise OSError(
            error.errno,
            f"too many open files: shuffling this corpus needs {count} at once, and some more; "
            f"raise the limit (ulimit -n {2 * count}), or leave shuffle out",
            error.filename,
        ) from None


class Buckets:
    """All buckets: those of the first split, then those of the second."""

    def __init__(
        self,
        work: Path,
        dtype: str,
        num_splits: int,
        total_bytes: int | None,
        seed: int,
        state: dict[str, Any] | None = None,
    ) -> None:
        """Start, or go back to an earlier state."""
        import numpy as np

        self._seed = seed
        self._count = _UNKNOWN_BUCKETS
        if total_bytes is not None:
            self._count = min(max(1, -(-total_bytes // _BUCKET_BYTES)), _MAX_BUCKETS)
        kind = np.dtype(dtype).newbyteorder("<")
        states = [[0, 0]] * (self._count * num_splits) if state is None else state["buckets"]
        self._buckets: list[_Bucket] = []
        with closing_on_error(self), _explaining(2 * len(states)):
            for number, saved in enumerate(states):
                self._buckets.append(_Bucket(work / f"bucket-{number:03d}", kind, saved))
        # The bucket to shuffle next, and the document in it.
        self._next: list[int] = [0, 0] if state is None else list(state["next"])

    def __getitem__(self, target: int) -> _Bucket:
        return self._buckets[target]

    def targets(self, numbers: NDArray[np.uint64], splits: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the bucket of each document."""
        return splits * self._count + _order.bucket_of(numbers, self._seed, self._count)

    def documents(self) -> Iterator[tuple[int, int, NDArray[Any], NDArray[np.int64]]]:
        """Yield (documents so far, split, ids, ends) in random order, from where it was."""
        self.sync()
        done = sum(bucket.documents for bucket in self._buckets[: self._next[0]])
        for number in range(self._next[0], len(self._buckets)):
            bucket = self._buckets[number]
            order = _order.order_in_bucket(number, bucket.documents, self._seed)
            first = self._next[1] if number == self._next[0] else 0
            self._next = [number, first]
            for ids, ends in bucket.batches(order, first):
                self._next[1] += len(ends)
                yield done + self._next[1], number // self._count, ids, ends
            done += bucket.documents
        self._next = [len(self._buckets), 0]

    def state(self) -> dict[str, Any]:
        """Return how long the buckets are, and which documents were shuffled."""
        return {"buckets": [bucket.state() for bucket in self._buckets], "next": self._next}

    def sync(self) -> None:
        """Put all buckets on disk."""
        for bucket in self._buckets:
            bucket.sync()

    def close(self) -> None:
        """Close all files."""
        for bucket in self._buckets:
            bucket.close()
