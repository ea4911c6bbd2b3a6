"""What the Arrow formats share: record batches with one column of lists, and documents in them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld.dataset._manifest import ShardEntry
from byteweld.dataset._shard import Shard
from byteweld.dataset.formats._opening import check_number
from byteweld.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLUMN: Final = "input_ids"
DTYPES: Final = ("uint32", "uint16", "int32", "int64")
MAX_LIST: Final = (1 << 31) - 1  # offsets of lists are int32
SHARD_TOKENS: Final = 1 << 27  # 512 MiB of uint32


def arrow() -> Any:
    """Import pyarrow; if it is missing, raise an error that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "Arrow and Parquet files need pyarrow; install it with: pip install 'byteweld[arrow]'"
        ) from error
    return pyarrow


def schema(dtype: str) -> Any:
    """Return the schema of all Arrow formats: a column of lists of ids."""
    pyarrow = arrow()
    return pyarrow.schema([(COLUMN, pyarrow.list_(pyarrow.from_numpy_dtype(dtype)))])


# ---------------------------------------------------------------------- writing


def record_batches(shard: Shard, max_list: int = MAX_LIST) -> Iterator[Any]:
    """Yield the documents of a shard as record batches; their ids stay in the shard's file."""
    import numpy as np

    pyarrow = arrow()
    kind = pyarrow.from_numpy_dtype(shard.dtype)
    for ids, lengths in shard.batches():
        if len(ids) > max_list:
            raise UnsupportedError(
                f"a document in shard {shard.name.number} of {shard.name.split} has {len(ids)} "
                f"tokens; this format holds at most {max_list} in a document; cut documents into "
                "rows with pack=N, or choose another format, such as flat"
            )
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, dtype=np.int32, out=offsets[1:])
        values = pyarrow.Array.from_buffers(kind, len(ids), [None, pyarrow.py_buffer(ids)])
        lists = pyarrow.ListArray.from_arrays(pyarrow.array(offsets), values)
        yield pyarrow.RecordBatch.from_arrays([lists], schema=schema(shard.dtype))


# ---------------------------------------------------------------------- reading


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what pyarrow says about a damaged file into a FormatError."""
    pyarrow = arrow()
    try:
        yield
    except FormatError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
        raise FormatError(f"this file cannot be read: {error}", path=path) from error


def check_schema(found: Any, dtype: str, path: Path) -> None:
    """Raise unless a file has exactly the column of ids, in this dtype."""
    kind = arrow().from_numpy_dtype(dtype)
    names, types = found.names, found.types
    if names != [COLUMN] or not arrow().types.is_list(types[0]) or types[0].value_type != kind:
        shown = ", ".join(f"{name}: {type}" for name, type in zip(names, types, strict=True))
        raise FormatError(
            f"the columns are {shown[:200]!r}; expected '{COLUMN}: list<{kind}>'", path=path
        )


def lists(column: Any, dtype: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the offsets and ids of an Arrow array of lists, without copying.

    Only sizes are checked: that they are in order is checked where they are used.
    """
    import numpy as np

    column.validate()
    _, offsets, nulls, ids = column.buffers()
    if column.null_count or nulls is not None or column.offset:
        raise ValueError("a document or an id is missing (null)")
    if len(column) == 0:
        return np.zeros(1, np.int32), np.empty(0, dtype)
    count = len(column.values)
    kind = np.dtype(dtype).newbyteorder("<")
    values = np.frombuffer(ids, kind, count) if count else np.empty(0, kind)
    return np.frombuffer(offsets, "<i4", len(column) + 1), values


class ArrowDocuments:
    """Documents in the record batches of a file; at most a few thousand batches."""

    def __init__(self, path: Path, batches: Iterable[Any], dtype: str, entry: ShardEntry) -> None:
        import numpy as np

        self._path = path
        with reading(path):
            self._parts = [lists(batch.column(0), dtype) for batch in batches]
        counts = [len(offsets) - 1 for offsets, _ in self._parts]
        self._ends = np.cumsum(counts, dtype=np.int64)
        found = sum(counts), sum(len(ids) for _, ids in self._parts)
        if found != (entry.documents, entry.tokens):
            raise FormatError(
                f"the file has {found[0]} documents and {found[1]} tokens; expected "
                f"{entry.documents} and {entry.tokens}, as the manifest says",
                path=path,
            )
        self._documents = entry.documents

    @property
    def lengths(self) -> NDArray[np.int64]:
        import numpy as np

        for offsets, ids in self._parts:
            check_offsets(offsets, ids, self._path)
        parts = [np.diff(offsets) for offsets, _ in self._parts]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def __getitem__(self, number: int) -> NDArray[Any]:
        import numpy as np

        check_number(number, self._documents)
        part = int(np.searchsorted(self._ends, number, side="right"))
        offsets, ids = self._parts[part]
        return document(offsets, ids, number - int(self._ends[part]) + len(offsets) - 1, self._path)


def document(
    offsets: NDArray[np.int32], ids: NDArray[Any], number: int, path: Path
) -> NDArray[Any]:
    """Return one document of a batch, after a check of its bounds."""
    start, end = int(offsets[number]), int(offsets[number + 1])
    if not 0 <= start <= end <= len(ids):
        raise FormatError(
            f"document {number} of a batch is at tokens {start} to {end}; expected them within "
            f"the {len(ids)} of the batch, in order",
            path=path,
        )
    return ids[start:end]


def check_offsets(offsets: NDArray[np.int32], ids: NDArray[Any], path: Path) -> None:
    """Raise unless the documents of a batch follow each other and cover all of its ids."""
    if offsets[0] != 0 or offsets[-1] != len(ids) or (offsets[1:] < offsets[:-1]).any():
        raise FormatError(
            f"the offsets of a batch are not in order from 0 to its {len(ids)} tokens", path=path
        )
