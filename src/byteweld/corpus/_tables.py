"""Tables as streams of strings for the engine: Parquet and Arrow files, and Arrow objects.

The engine calls `open_table` when a table's turn comes, and pulls record batches from the Arrow C
stream that it returns; `failure` is what Python raised inside it.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from byteweld._extras import arrow
from byteweld._files import open_regular
from byteweld.corpus._remote import open_remote
from byteweld.errors import ByteweldError, CorpusError

_PARQUET = ".parquet"
_PARQUET_MAGIC = b"PAR1"
_ARROW_MAGIC = b"ARROW1"
_FEATHER_1_MAGIC = b"FEA1"
# An Arrow stream starts with a message of this prefix, and ends with one of length 0.
_MESSAGE = b"\xff\xff\xff\xff"
_STREAM_END = _MESSAGE + bytes(4)
# Pages are read through a buffer of this size: a column chunk may be larger than memory.
_BUFFER_BYTES = 1 << 20
_MAX_BATCH_ROWS = 1 << 16
_PROBED_ROWS = 64
_DATASET_ROWS = 256


class TableSource:
    """What the engine asks of a table."""

    name: str  # in errors
    columns: list[str] | None = None  # all of them; None: those of the stream
    first_row = 0  # of the stream
    bytes_read: int | None = None  # of the file; None: the engine counts the text
    is_part = False  # only a part of the file is read
    is_start = True  # that part is the first one
    failure: BaseException | None = None

    def open_table(self, start: int, batch_bytes: int) -> object:
        """Return an object with `__arrow_c_stream__`; rows before `start` may be left out."""
        raise NotImplementedError

    def _stream(self, schema: Any, batches: Iterator[Any]) -> object:
        """Keep the exception that ends the batches: the stream would reduce it to its message."""

        def recorded() -> Iterator[Any]:
            try:
                yield from batches
            except GeneratorExit:
                raise
            except BaseException as error:
                self.failure = error
                raise

        return arrow().RecordBatchReader.from_batches(schema, recorded())


class TableObject(TableSource):
    """A table in memory: of pyarrow, polars, duckdb, pandas, or Hugging Face's datasets."""

    def __init__(self, table: Any, field: str) -> None:
        self.name = type(table).__name__
        self._table = table
        self._field = field

    def open_table(self, start: int, batch_bytes: int) -> object:
        """Return the object itself, if it has a stream; of a dataset, a stream of its batches."""
        if hasattr(self._table, "__arrow_c_stream__"):
            return self._table
        pa = arrow()
        self.columns = self._table.column_names
        table = self._table
        if self.columns is not None and self._field in self.columns:
            table = table.select_columns([self._field])
        tables = table.with_format("arrow").iter(_DATASET_ROWS)
        batches = (batch for table in tables for batch in table.to_batches())
        first = next(batches, None)
        if first is None:
            return pa.table({self._field: pa.array([], pa.string())})
        return self._stream(first.schema, itertools.chain([first], batches))


def is_dataset(table: object) -> bool:
    """Whether an object is a Dataset of Hugging Face's datasets, which has no Arrow stream."""
    is_theirs = type(table).__module__.partition(".")[0] == "datasets"
    return is_theirs and all(hasattr(table, name) for name in ("with_format", "iter"))


class TableFile(TableSource):
    """A Parquet file, or an Arrow IPC file or stream, on disk or remote.

    Of a Parquet file, `part` selects the row groups between two fractions of its data.
    """

    def __init__(
        self,
        file: Path | str,
        extension: str,
        field: str,
        part: tuple[Fraction, Fraction] | None = None,
    ) -> None:
        self.name = os.fspath(file)
        self._local = file if isinstance(file, Path) else None
        self.bytes_read = 0
        self._is_parquet = extension == _PARQUET
        self._field = field
        self._part = part
        self.is_part = part is not None
        self.is_start = part is None or part[0] == 0

    def open_table(self, start: int, batch_bytes: int) -> object:
        """Return a stream of the column; batches have about `batch_bytes`, if that can be chosen.

        Parquet's row groups before the row `start` are not read.
        """
        arrow()  # outside of what takes its errors for those of damaged files
        self.first_row = self.bytes_read = 0
        self.failure = None
        batches = self._read(start, batch_bytes)
        return self._stream(next(batches), batches)

    def _read(self, start: int, batch_bytes: int) -> Iterator[Any]:
        """Yield the schema, then the batches."""
        with self._explained(), self._opened() as (file, size, changed):
            read = self._parquet if self._is_parquet else self._arrow
            try:
                yield from read(file, size, start, batch_bytes)
            except Exception:
                if not changed():  # or it is not damaged
                    raise
            if changed():
                raise CorpusError(
                    "the file changed while it was read; start again when nothing writes to it",
                    path=self.name,
                )

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[Any, int, Any]]:
        """Open the file: itself, its size, and whether it has changed since."""
        if self._local is None:
            with open_remote(self.name) as remote:
                size = remote.seek(0, os.SEEK_END)
                remote.seek(0)
                yield remote, size, lambda: False
            return
        try:
            descriptor = open_regular(self._local)
        except ByteweldError as error:
            raise CorpusError(f"{error.args[0]}; copy it to a file", path=self.name) from None
        with os.fdopen(descriptor, "rb") as file:
            before = _state(file)
            yield file, before[0], lambda: _state(file) != before

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what pyarrow raises for damaged files into a CorpusError."""
        try:
            yield
        except (ByteweldError, ImportError):
            raise
        except MemoryError as error:
            reason = str(error) or "not enough memory"
            raise MemoryError(f"{self.name}: {reason}; or the file is damaged") from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                if error.filename is None:
                    error.filename = self.name
                raise
            what = "Parquet" if self._is_parquet else "Arrow"
            message = str(error).strip().splitlines()
            reason = message[0][:200] if message else type(error).__name__
            raise CorpusError(f"the {what} file is damaged: {reason}", path=self.name) from error

    # ------------------------------------------------------------------ Parquet

    def _parquet(self, file: Any, size: int, start: int, batch_bytes: int) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        head = _at(file, 0, len(_PARQUET_MAGIC))
        if head != _PARQUET_MAGIC:
            raise self._other(f"a Parquet file starts with {_PARQUET_MAGIC!r}", head)
        tail = _at(file, max(0, size - len(_PARQUET_MAGIC)), len(_PARQUET_MAGIC))
        if tail != _PARQUET_MAGIC or size < 2 * len(_PARQUET_MAGIC) + 4:
            raise CorpusError("the Parquet file is truncated", path=self.name)
        table = pq.ParquetFile(
            pa.PythonFile(file, "r"),
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        self.columns = table.schema_arrow.names
        columns = [self._field] if self._field in self.columns else []
        # pyarrow takes a name also as the path of a nested column, so it may read others as well.
        wanted = [field for field in table.schema_arrow if field.name == self._field]
        groups = range(table.num_row_groups)
        rows = [table.metadata.row_group(group).num_rows for group in groups]
        first = 0
        if self._part is not None:
            chosen = self._chosen_groups(table)
            first, groups = chosen.start, groups[: chosen.stop]
            self.first_row = sum(rows[:first])
            rows = rows[: chosen.stop]
        total = sum(rows)
        while first < len(rows) and self.first_row + rows[first] <= start:
            self.first_row += rows[first]
            first += 1
        schema = pa.schema(wanted)
        yield schema if columns else _rows_only_schema(pa)
        done = self.first_row
        row_bytes = 1.0
        for group in groups[first:]:
            metadata = table.metadata.row_group(group)
            if columns and metadata.total_byte_size > 2 * row_bytes * metadata.num_rows:
                row_bytes = max(row_bytes, self._row_bytes(table, group))
            for batch in table.iter_batches(
                batch_size=max(1, min(_MAX_BATCH_ROWS, int(batch_bytes / row_bytes))),
                row_groups=[group],
                columns=columns,
                use_threads=False,
            ):
                done += batch.num_rows
                self.bytes_read = size * done // max(1, total)
                if columns:
                    row_bytes = max(row_bytes, batch.nbytes / max(1, batch.num_rows))
                    named = zip(batch.schema.names, batch.columns, strict=True)
                    arrays = [array for name, array in named if name == self._field]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
                else:
                    yield _rows_only(pa, batch.num_rows)
        if done != total:
            raise CorpusError(
                f"the Parquet file is damaged: it has {done} rows, and says {total}", path=self.name
            )

    def _chosen_groups(self, table: Any) -> range:
        """Return the row groups of this part: each group is in one part, and parts are in order."""
        assert self._part is not None
        start, stop = self._part
        count = table.num_row_groups
        sizes = [max(0, table.metadata.row_group(group).total_byte_size) for group in range(count)]
        total = max(1, sum(sizes))
        before = [Fraction(sum_, total) for sum_ in itertools.accumulate(sizes, initial=0)][:count]
        # Groups without bytes at the end are at 1, which is in the last part.
        first = 0 if start == 0 else bisect.bisect_left(before, start)
        last = count if stop == 1 else bisect.bisect_left(before, stop)
        return range(first, last)

    def _row_bytes(self, table: Any, group: int) -> float:
        """Return the mean size of the texts of a row group: of the first ones, or by the metadata.

        The metadata counts equal texts only once. If that of a column is damaged, `column()`
        aborts the process, and reading the column raises; so it is read first.
        """
        for batch in table.iter_batches(
            batch_size=_PROBED_ROWS, row_groups=[group], columns=[self._field], use_threads=False
        ):
            mean = float(batch.nbytes / max(1, batch.num_rows))
            paths = [table.schema.column(index).path for index in range(len(table.schema))]
            if self._field not in paths:  # it is nested
                return mean
            metadata = table.metadata.row_group(group)
            column = metadata.column(paths.index(self._field))
            return max(mean, float(column.total_uncompressed_size / max(1, metadata.num_rows)))
        return 1.0

    # ------------------------------------------------------------------ Arrow

    def _arrow(self, file: Any, size: int, start: int, batch_bytes: int) -> Iterator[Any]:
        import pyarrow as pa

        head = _at(file, 0, len(_ARROW_MAGIC))
        if head.startswith(_MESSAGE):
            if _at(file, max(0, size - len(_STREAM_END)), len(_STREAM_END)) != _STREAM_END:
                raise CorpusError(
                    "the Arrow stream is truncated: it does not end with an end mark",
                    path=self.name,
                )
            open_ipc = pa.ipc.open_stream
        elif head == _ARROW_MAGIC:
            open_ipc = pa.ipc.open_file
        elif head.startswith(_FEATHER_1_MAGIC):
            raise CorpusError(
                "Feather version 1 is not supported; write the table again with a recent pyarrow",
                path=self.name,
            )
        else:
            raise self._other(f"an Arrow file starts with {_ARROW_MAGIC!r}", head)
        file.seek(0)
        names = open_ipc(pa.PythonFile(file, "r")).schema.names
        self.columns = names
        columns = [index for index, name in enumerate(names) if name == self._field]
        file.seek(0)
        options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
        table = open_ipc(pa.PythonFile(file, "r"), options=options)
        fields = [(field.name, binary_type(pa, field.type)) for field in table.schema]
        schema = pa.schema(fields) if columns else None
        yield _rows_only_schema(pa) if schema is None else schema
        checked: list[Any] = []  # the last dictionary, which many batches share
        for batch in _batches(table):
            self.bytes_read = file.tell()
            if schema is None:
                yield _rows_only(pa, batch.num_rows)
                continue
            arrays = [as_binary(pa, array, checked) for array in batch.columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        self.bytes_read = size

    def _other(self, expected: str, head: bytes) -> CorpusError:
        return CorpusError(
            f"{expected}, but this one with {head!r}; give it the extension of what it is",
            path=self.name,
        )


def _batches(table: Any) -> Iterator[Any]:
    """Yield the batches of an Arrow stream or file."""
    if hasattr(table, "num_record_batches"):
        for index in range(table.num_record_batches):
            yield table.get_batch(index)
    else:
        yield from table


# Without the column, a stream of nulls still tells the number of rows.
def _rows_only_schema(pa: Any) -> Any:
    return pa.schema([("", pa.null())])


def _rows_only(pa: Any, rows: int) -> Any:
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], schema=_rows_only_schema(pa))


def binary_type(pa: Any, type_: Any) -> Any:
    """Return the type with the same layout and without UTF-8, which is checked later."""
    if pa.types.is_dictionary(type_):
        return pa.dictionary(type_.index_type, binary_type(pa, type_.value_type))
    same = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    return same.get(type_, type_)


def as_binary(pa: Any, array: Any, checked: list[Any]) -> Any:
    """Return the array as bytes, after checking all of it: a file may claim any offsets."""
    if not pa.types.is_dictionary(array.type):
        wanted = binary_type(pa, array.type)
        plain = array if wanted == array.type else array.view(wanted)
        plain.validate(full=True)
        return plain
    values = array.dictionary
    if not checked or _place(checked[0]) != _place(values):
        checked[:] = [values, as_binary(pa, values, [])]  # the first keeps its place
    array.indices.validate(full=True)
    # This checks that the indices are in the dictionary.
    return pa.DictionaryArray.from_arrays(array.indices, checked[1])


def _place(array: Any) -> tuple[Any, ...]:
    """Where the buffers of an array are, and which part of them it is."""
    addresses = tuple(buffer and buffer.address for buffer in array.buffers())
    return array.type, array.offset, len(array), addresses


def _at(file: Any, offset: int, size: int) -> bytes:
    file.seek(offset)
    data: bytes = file.read(size)
    return data


def _state(file: Any) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns
