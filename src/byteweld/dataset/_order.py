"""Which documents are for validation, and in which order they are shuffled: functions of a seed.

Everything follows from the number of a document in the corpus and the seed by integer arithmetic,
so it is the same on every machine and after every interruption.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np  # slow to import
    from numpy.typing import NDArray

_GOLDEN = 0x9E37_79B9_7F4A_7C15
_MASK = (1 << 64) - 1
# A bucket of about this many bytes of (stored) text; more text only makes the buckets larger.
_BUCKET_BYTES: Final = 64 << 20
_MAX_BUCKETS: Final = 128
_UNKNOWN_BUCKETS: Final = 32  # if the size of the corpus is not known


def mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Return a pseudorandom 64-bit number for each number (SplitMix64's finalizer)."""
    import numpy as np

    with np.errstate(over="ignore"):
        state = (numbers + np.uint64((seed * 2 + 1) & _MASK)) * np.uint64(_GOLDEN)
        state ^= state >> np.uint64(30)
        state *= np.uint64(0xBF58_476D_1CE4_E5B9)
        state ^= state >> np.uint64(27)
        state *= np.uint64(0x94D0_49BB_1331_11EB)
        state ^= state >> np.uint64(31)
    return state


def is_validation(numbers: NDArray[np.uint64], seed: int, fraction: float) -> NDArray[np.bool_]:
    """Whether each document, by its number in the corpus, is for validation.

    >>> import numpy as np
    >>> int(is_validation(np.arange(10_000, dtype=np.uint64), 0, 0.1).sum())
    1049
    """
    import numpy as np

    if fraction >= 1:
        return np.ones(len(numbers), np.bool_)
    threshold = np.uint64(int(fraction * 2**64))
    return mixed(numbers, seed) < threshold


def num_buckets(total_bytes: int | None) -> int:
    """Return the number of buckets of each split, for a corpus of this size."""
    if total_bytes is None:
        return _UNKNOWN_BUCKETS
    return min(max(1, -(-total_bytes // _BUCKET_BYTES)), _MAX_BUCKETS)


@dataclass(frozen=True)
class Targets:
    """Where documents belong: in a split or, if they are shuffled, in a bucket of a split."""

    seed: int
    validation: float
    buckets: int | None  # of each split; None: documents are not shuffled

    @property
    def is_one(self) -> bool:
        """Whether all documents belong to one split and are not shuffled."""
        return not self.validation and self.buckets is None

    @property
    def count(self) -> int:
        """The number of targets."""
        return (2 if self.validation else 1) * (self.buckets or 1)

    def of(self, numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the target of each document, by its number in the corpus."""
        import numpy as np

        found = np.zeros(len(numbers), np.int64)
        if self.validation:
            found += is_validation(numbers, self.seed, self.validation)
        if self.buckets is not None:
            bucket = mixed(numbers, self.seed ^ 0x5A5A) % np.uint64(self.buckets)
            found = found * self.buckets + bucket.astype(np.int64)
        return found


def order_in_bucket(bucket: int, num_documents: int, seed: int) -> NDArray[Any]:
    """Return the order of a bucket's documents, as indices."""
    import numpy as np

    numbers = np.arange(num_documents, dtype=np.uint64) + np.uint64(bucket << 40)
    return np.argsort(mixed(numbers, seed ^ 0xA5A5), kind="stable")


def grouped(
    ids: NDArray[Any],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> Iterator[tuple[int, NDArray[Any], NDArray[np.int64]]]:
    """Yield (target, ids, ends) for each target: its documents in order, one after another."""
    import numpy as np

    if not len(targets):
        return
    if (targets == targets[0]).all():
        yield int(targets[0]), ids, stops
        return
    order = np.argsort(targets, kind="stable")
    lengths = (stops - starts)[order]
    gathered = gather(ids, starts[order], lengths)
    ends = np.cumsum(lengths)
    sorted_targets = targets[order]
    firsts = np.flatnonzero(np.diff(sorted_targets, prepend=-1))
    for first, last in zip(firsts, [*firsts[1:], len(order)], strict=True):
        start = int(ends[first] - lengths[first])
        part = ends[first:last] - start
        yield int(sorted_targets[first]), gathered[start : start + int(part[-1])], part


def gather(
    ids: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the parts of `ids` that start and are as long as given, one after another."""
    import numpy as np

    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    shifts = np.repeat(starts - (ends - lengths), lengths)
    return ids[shifts + np.arange(total)]
