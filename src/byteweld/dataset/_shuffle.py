"""Shuffles documents in bounded memory: into buckets on disk first, then bucket by bucket.

The bucket of a document, and its place among those of its bucket, follow from its number and the
seed. A bucket is a file of ids and a file of lengths, which only grow while the corpus is encoded.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld.dataset import _order
from byteweld.dataset._document_files import DocumentFiles
from byteweld.dataset._writer import closing_on_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A bucket of about this many bytes of (stored) text; more text only makes the buckets larger.
_BUCKET_BYTES: Final = 64 << 20
_MAX_BUCKETS: Final = 128
_UNKNOWN_BUCKETS: Final = 32  # if the size of the corpus is not known


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


def num_buckets(total_bytes: int | None) -> int:
    """Return the number of buckets of each split, for a corpus of this size."""
    if total_bytes is None:
        return _UNKNOWN_BUCKETS
    return min(max(1, -(-total_bytes // _BUCKET_BYTES)), _MAX_BUCKETS)


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
        self._count = num_buckets(total_bytes)
        kind = np.dtype(dtype).newbyteorder("<")
        states = [[0, 0]] * (self._count * num_splits) if state is None else state["buckets"]
        self._buckets: list[DocumentFiles] = []
        with closing_on_error(self), _explaining(2 * len(states)):
            for number, saved in enumerate(states):
                stem = work / f"bucket-{number:03d}"
                self._buckets.append(DocumentFiles(stem, kind, saved))
        # The bucket to shuffle next, and the document in it.
        self._next: list[int] = [0, 0] if state is None else list(state["next"])

    def __getitem__(self, target: int) -> DocumentFiles:
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
