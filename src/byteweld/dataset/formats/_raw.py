"""What formats share whose main file is the ids one after another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld.dataset._shard import Shard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BATCH_DOCUMENTS: Final = 1 << 16


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


def write_ends(shard: Shard, path: Path) -> None:
    """Write the end of each document, in ids, as uint64."""
    import numpy as np

    lengths = shard.document_lengths()
    total = 0
    with path.open("wb") as file:
        for start in range(0, shard.num_documents, _BATCH_DOCUMENTS):
            ends = np.cumsum(lengths[start : start + _BATCH_DOCUMENTS]) + total
            total = int(ends[-1])
            file.write(ends.astype("<u8").tobytes())


class RawDocuments:
    """Documents in a file of ids, with a file of their ends."""

    def __init__(self, tokens: Path, ends: Path, dtype: str, header_bytes: int = 0) -> None:
        import numpy as np

        self._ids = _map(tokens, np.dtype(dtype).newbyteorder("<"), header_bytes)
        self._ends = _map(ends, np.dtype("<u8"), 0)

    @property
    def lengths(self) -> NDArray[np.int64]:
        import numpy as np

        return np.diff(self._ends, prepend=np.uint64(0)).astype(np.int64)

    def __getitem__(self, number: int) -> NDArray[Any]:
        start = int(self._ends[number - 1]) if number else 0
        return self._ids[start : int(self._ends[number])]


def _map(path: Path, dtype: np.dtype[Any], offset: int) -> NDArray[Any]:
    import numpy as np

    if path.stat().st_size <= offset:  # an empty file cannot be mapped
        return np.empty(0, dtype)
    return np.memmap(path, dtype, "r", offset)
