"""What the Arrow formats share: record batches with one column of lists, and documents in them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from byteweld._extras import arrow
from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard
from byteweld.dataset.formats._documents import Documents, check_amount
from byteweld.dataset.formats._format import Format
from byteweld.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLUMN: Final = "input_ids"
DTYPES: Final = ("uint32", "uint16", "int32", "int64")
MAX_LIST: Final = (1 << 31) - 1  # offsets of lists are int32


@dataclass(frozen=True, kw_only=True)
class TableFormat(Format):
    """A format of tables with a row for each document."""

    dtypes: tuple[str, ...] = DTYPES
    default_dtypes: tuple[str, ...] = ("uint32",)
    is_raw: bool = False
    shard_tokens: int | None = 1 << 27  # 512 MiB of uint32
    requires: Sequence[tuple[str, str]] = (("pyarrow", "arrow"),)


@dataclass(frozen=True, kw_only=True)
class IpcFormat(TableFormat):
    """Files as Arrow's IPC writes them, which are mapped to be read."""

    kind: Literal["file", "stream"]

    def write(self, shard: Shard, folder: Path) -> None:
        """Write a record batch for every 2^20 ids or so."""
        (path,) = self.new_files(shard, folder)
        new = getattr(arrow().ipc, f"new_{self.kind}")
        with path.open("wb") as file, new(file, schema(shard.dtype)) as writer:
            for batch in record_batches(shard):
                writer.write_batch(batch)

    def open(self, folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
        """Map all record batches, at most a few thousand."""
        path = self.only_file(folder, entry)
        pyarrow = arrow()
        with reading(path):
            reader = getattr(pyarrow.ipc, f"open_{self.kind}")(pyarrow.memory_map(str(path)))
            check_schema(reader.schema, manifest.dtype, path)
            batches = reader
            if self.kind == "file":
                batches = map(reader.get_batch, range(reader.num_record_batches))
            parts = [lists(batch.column(0), manifest.dtype) for batch in batches]
        rows = [len(offsets) - 1 for offsets, _ in parts]
        found = ListDocuments(path, entry, manifest.dtype, rows, parts.__getitem__)
        check_amount(sum(len(ids) for _, ids in parts), "tokens", entry.tokens, path)
        return found


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

Lists = tuple["NDArray[np.int32]", "NDArray[Any]"]  # offsets, and the ids at them


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


def lists(column: Any, dtype: str) -> Lists:
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


class ListDocuments(Documents):
    """Documents in parts of a file, record batches or row groups, which `read` returns."""

    def __init__(
        self,
        path: Path,
        entry: ShardEntry,
        dtype: str,
        rows: Sequence[int],
        read: Callable[[int], Lists],
    ) -> None:
        import numpy as np

        super().__init__(entry.documents, dtype)
        check_amount(sum(rows), "documents", entry.documents, path)
        self._path, self._tokens, self._read = path, entry.tokens, read
        self._part_ends = np.cumsum(rows, dtype=np.int64)

    def find_lengths(self) -> NDArray[np.int64]:
        import numpy as np

        parts = [np.empty(0, np.int64)]
        for part in range(len(self._part_ends)):
            offsets, ids = self._read(part)
            if offsets[0] != 0 or offsets[-1] != len(ids) or (offsets[1:] < offsets[:-1]).any():
                raise FormatError(
                    f"the offsets of a batch are not in order from 0 to its {len(ids)} tokens",
                    path=self._path,
                )
            parts.append(np.diff(offsets).astype(np.int64))
        lengths = np.concatenate(parts)
        check_amount(int(lengths.sum()), "tokens", self._tokens, self._path)
        return lengths

    def find(self, number: int) -> NDArray[Any]:
        import numpy as np

        part = int(np.searchsorted(self._part_ends, number, side="right"))
        offsets, ids = self._read(part)
        number += len(offsets) - 1 - int(self._part_ends[part])
        start, end = int(offsets[number]), int(offsets[number + 1])
        if not 0 <= start <= end <= len(ids):
            raise FormatError(
                f"document {number} of a batch is at tokens {start} to {end}; expected them within "
                f"the {len(ids)} of the batch, in order",
                path=self._path,
            )
        return ids[start:end]
