"""A shard of a dataset before it has its format: ids in one file, document lengths in another.

Both files only grow while a corpus is encoded, so a killed run continues by cutting them back to
the last checkpoint. A format turns them into its own files when the shard is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from byteweld.errors import FormatError

if TYPE_CHECKING:
    import numpy as np  # slow to import
    from numpy.typing import NDArray

Split = Literal["train", "validation"]

LENGTH_BYTES: Final = 8
_BATCH_TOKENS: Final = 1 << 20
_BATCH_DOCUMENTS: Final = 1 << 16


class ShardName(NamedTuple):
    """Which shard of which dataset: all that the names of its files depend on."""

    split: Split = "train"
    number: int = 0  # within its split
    is_only: bool = True  # the split has one shard, whatever its size
    has_validation: bool = False  # the dataset has both splits
    prefix: str | None = None  # for formats whose file names start with one
    is_shuffled: bool = False  # for formats whose file names say so


@dataclass(frozen=True, kw_only=True)
class Shard:
    """The ids and document lengths of a complete shard.

    Attributes:
        name: which shard it is.
        tokens: the file with `header_bytes` bytes that the format fills in, then the ids.
        lengths: the file with the number of ids of each document, or of each row if packed.
        dtype: of the ids: "uint16", "uint32" or another integer type, little-endian.
        continues: whether the last document goes on in the next shard.
        pack: the length of every row, if packed.
    """

    name: ShardName
    tokens: Path
    lengths: Path
    dtype: str
    header_bytes: int
    num_tokens: int
    num_documents: int
    continues: bool = False
    pack: int | None = None

    def length_batches(self) -> Iterator[NDArray[np.int64]]:
        """Yield the number of ids of each document, some documents at a time.

        Read, not mapped: the lengths of 10^8 documents would stay resident.
        """
        import numpy as np

        left, tokens = self.num_documents, 0
        with self.lengths.open("rb") as file:
            while left:
                batch = np.fromfile(file, "<i8", min(left, _BATCH_DOCUMENTS))
                if not len(batch):
                    break
                left -= len(batch)
                tokens += int(batch.sum())
                yield batch
        if left or tokens != self.num_tokens:
            raise FormatError(
                f"has {self.num_documents - left} documents with {tokens} tokens; expected "
                f"{self.num_documents} with {self.num_tokens}",
                path=self.lengths,
            )

    def batches(
        self, max_tokens: int = _BATCH_TOKENS
    ) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
        """Yield whole documents as (ids, lengths): about `max_tokens` ids, or one longer document.

        Whatever the sizes, only the part of the files in a batch is in memory.
        """
        import numpy as np

        size = np.dtype(self.dtype).itemsize
        document = token = 0
        while document < self.num_documents:
            # Few lengths at a time: there may be more documents than fit in memory.
            count = min(_BATCH_DOCUMENTS, self.num_documents - document)
            some = np.fromfile(self.lengths, "<i8", count, offset=LENGTH_BYTES * document)
            ends = np.cumsum(some)
            count = max(1, int(np.searchsorted(ends, max_tokens, side="right")))
            tokens = int(ends[count - 1])
            # Mapped by itself, so that what is done does not stay in memory.
            offset = self.header_bytes + size * token
            yield mapped(self.tokens, self.dtype, tokens, offset), some[:count]
            document, token = document + count, token + tokens


def running(
    batches: Iterable[NDArray[np.int64]],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield each batch of numbers, and where they end if they follow each other from 0."""
    total = 0
    for batch in batches:
        ends = batch.cumsum() + total
        total = int(ends[-1]) if len(ends) else total
        yield batch, ends


def mapped(path: Path, dtype: str, count: int, offset: int) -> NDArray[Any]:
    """Map `count` little-endian values of a file, from an offset on."""
    import numpy as np

    kind = np.dtype(dtype).newbyteorder("<")
    if count == 0:  # an empty file cannot be mapped
        return np.empty(0, kind)
    return np.memmap(path, kind, "r", offset, (count,))
