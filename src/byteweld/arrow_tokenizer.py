"""ArrowTokenizer: adds a column of ids to Arrow tables, as a function for Ray Data and Spark.

The engine reads the text in place; no Python object is made per document. pyarrow is imported on
first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from byteweld._cached import cached_property
from byteweld._extras import arrow
from byteweld.corpus import Corpus
from byteweld.corpus._tables import as_binary
from byteweld.dataset.formats._arrow import COLUMN, DTYPES, MAX_LIST
from byteweld.dataset.formats._format import Eot
from byteweld.dataset.options import Options, Plan, SpecialText
from byteweld.errors import (
    ByteweldError,
    CorpusError,
    SpecialTokenError,
    UnsupportedError,
    check_text,
    nearest,
)
from byteweld.loading import load
from byteweld.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_MAX_NAMES: Final = 20  # columns that an error names
_MAX_TEXT_BYTES: Final = 1 << 30  # of a row; the engine's own limit


class ArrowTokenizer:
    """Adds a column with the ids of a text column to Arrow tables.

    An instance is a function for Ray Data's `map_batches`, which passes a Table, and for Spark's
    `mapInArrow`, which passes an iterator of RecordBatches. It returns what it was given: a Table
    for a Table, a RecordBatch for a RecordBatch, an iterator for an iterator. The ids of each row
    are those of `Tokenizer.encode`; where the text is null, so is the list of ids.

    Args:
        tokenizer: a Tokenizer; or a path or name that `byteweld.load` takes. Of a path, only the
            path is pickled, and each worker loads it on first use, so the file must exist there.
        text_column: the column with the text: strings, bytes in UTF-8, or a dictionary of them.
        ids_column: the name of the new column, which becomes the last one.
        keep_columns: the columns that the result keeps besides the ids. Default: all.
        eot: where the end-of-text token goes: "append", "prepend" or "none".
        eot_token: the end-of-text token. Default: the tokenizer's eos, else its `eot_token`.
        bos: whether every document starts with the tokenizer's bos token.
        special_text: what becomes of special tokens that occur in the text: "text" encodes them as
            ordinary text, "special" as their ids, "fail" is an error.
        dtype: of the ids. Spark has no unsigned types.
        num_threads: the number of threads per call; None for one per processor. The default suits
            Ray and Spark, which start a worker per processor.

    Examples:
        >>> import pyarrow
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=266, eos="<|end|>")
        >>> tokenize = byteweld.ArrowTokenizer(tok, eot="append")
        >>> table = pyarrow.table({"text": ["hello", "hello world", None]})
        >>> tokenize(table)["input_ids"].to_pylist()
        [[263, 265], [263, 264, 265], None]
        >>> byteweld.ArrowTokenizer("tokenizer.json", keep_columns=[]).output_schema(table.schema)
        input_ids: list<item: int32>
          child 0, item: int32
    """

    def __init__(
        self,
        tokenizer: Tokenizer | str | os.PathLike[str],
        *,
        text_column: str = "text",
        ids_column: str = COLUMN,
        keep_columns: Sequence[str] | None = None,
        eot: Eot = "none",
        eot_token: str | None = None,
        bos: bool = False,
        special_text: SpecialText = "text",
        dtype: Literal["int32", "int64", "uint16", "uint32"] = "int32",
        num_threads: int | None = 1,
    ) -> None:
        if not isinstance(tokenizer, Tokenizer | str | os.PathLike):
            raise TypeError(
                f"tokenizer is {tokenizer!r}; expected a Tokenizer, or a path or name to load"
            )
        if isinstance(keep_columns, str):
            raise TypeError(f"keep_columns is {keep_columns!r}; expected a list of names")
        keep = None if keep_columns is None else tuple(keep_columns)
        for what, name in (
            ("text_column", text_column),
            ("ids_column", ids_column),
            *(("a name in keep_columns", name) for name in keep or ()),
        ):
            check_text(what, name)
        if keep is not None and len(set(keep)) < len(keep):
            raise ValueError(f"keep_columns is {list(keep)!r}, which has a name twice")
        if keep is not None and ids_column in keep:
            raise ValueError(
                f"keep_columns has {ids_column!r}, the name of the new column; choose another name "
                "as ids_column"
            )
        if dtype not in DTYPES:
            names = ", ".join(map(repr, sorted(DTYPES)))
            raise ValueError(f"dtype is {dtype!r}; expected one of {names}")
        if eot is None:  # Options has a default for it
            raise ValueError("eot is None; expected one of 'append', 'prepend', 'none'")
        if eot == "none" and eot_token is not None:
            raise ValueError(
                f"eot_token is {eot_token!r}, but eot is 'none'; pass eot='append' or 'prepend'"
            )
        if num_threads is not None and (type(num_threads) is not int or num_threads < 1):
            raise ValueError(f"num_threads is {num_threads!r}; expected an integer, at least 1")
        self._source = tokenizer if isinstance(tokenizer, Tokenizer) else os.fspath(tokenizer)
        options: dict[str, Any] = {"eot": eot, "eot_token": eot_token, "bos": bos}
        options |= {"special_text": special_text, "dtype": dtype}
        self._options = Options(format="arrow", **options)
        self._text_column = text_column
        self._ids_column = ids_column
        self._keep_columns = keep
        self._num_threads = num_threads
        self._arguments: dict[str, Any] = {
            "text_column": text_column,
            "ids_column": ids_column,
            "keep_columns": keep,
            **options,
            "num_threads": num_threads,
        }
        if isinstance(tokenizer, Tokenizer):
            _ = self._plan  # raises if the options do not fit the tokenizer

    def __call__(
        self, table: pa.Table | pa.RecordBatch | Iterator[pa.RecordBatch]
    ) -> pa.Table | pa.RecordBatch | Iterator[pa.RecordBatch]:
        """Add the ids to a Table, a RecordBatch, or each RecordBatch of an iterator.

        A list column holds less than 2^31 ids. A Table with more gets several chunks, and an
        iterator several batches.
        """
        pa = arrow()
        if isinstance(table, pa.Table):
            layout = self._layout(table.schema)
            parts = self._encode(table.column(layout.text))
            ids = pa.chunked_array(parts, layout.schema.field(-1).type)
            kept = [table.column(index) for index in layout.kept]
            return pa.Table.from_arrays([*kept, ids], schema=layout.schema)
        if isinstance(table, pa.RecordBatch):
            first, *others = self._batches(table)
            if others:
                raise UnsupportedError(
                    f"the ids of {table.num_rows:,} rows are too many for one list column, which "
                    f"holds {MAX_LIST:,}; pass smaller batches, or a Table"
                )
            return first
        if isinstance(table, Iterator):
            return self._stream(table)
        raise TypeError(
            f"found {type(table).__name__}; expected a pyarrow Table, a RecordBatch or an iterator "
            "of RecordBatches (in Ray Data, pass batch_format='pyarrow')"
        )

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the result for that of a table, without loading a tokenizer."""
        if not isinstance(schema, arrow().Schema):
            raise TypeError(f"found {type(schema).__name__}; expected a pyarrow Schema")
        return self._layout(schema).schema

    def __reduce__(self) -> tuple[object, ...]:
        # Nothing that use changes: the caches of Hugging Face's datasets hash the pickle.
        return partial(type(self), **self._arguments), (self._source,)

    def __repr__(self) -> str:
        return f"<ArrowTokenizer {self._text_column!r} to {self._ids_column!r}, {self._source!r}>"

    # ------------------------------------------------------------------ private

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return self._source if isinstance(self._source, Tokenizer) else load(self._source)

    @cached_property
    def _plan(self) -> Plan:
        return self._options.complete(self._tokenizer)

    def _layout(self, schema: Any) -> _Layout:
        """Return where the columns are, and the schema of the result; raise if they do not fit."""
        pa = arrow()
        text = _index(schema, self._text_column, "text_column")
        type_ = schema.field(text).type
        if not _is_text(pa, type_):
            raise CorpusError(
                f"the column {self._text_column!r} is of type {type_}; expected a column of strings"
            )
        if self._keep_columns is None:
            kept = list(range(len(schema)))
            if self._ids_column in schema.names:
                raise CorpusError(
                    f"the table already has a column {self._ids_column!r}; choose another name as "
                    "ids_column, or pass keep_columns without it"
                )
        else:
            kept = [_index(schema, name, "keep_columns") for name in self._keep_columns]
        ids = pa.field(self._ids_column, pa.list_(pa.from_numpy_dtype(self._options.dtype)))
        fields = [*(schema.field(index) for index in kept), ids]
        return _Layout(text, kept, pa.schema(fields, metadata=schema.metadata))

    def _stream(self, batches: Iterator[Any]) -> Iterator[Any]:
        pa = arrow()
        for batch in batches:
            if not isinstance(batch, pa.RecordBatch):
                raise TypeError(
                    f"found {type(batch).__name__} in the iterator; expected RecordBatches"
                )
            yield from self._batches(batch)

    def _batches(self, batch: Any) -> Iterator[Any]:
        """Yield a RecordBatch with its ids, in several parts if they are too many for one."""
        pa = arrow()
        layout = self._layout(batch.schema)
        start = 0
        for ids in self._encode(pa.chunked_array([batch.column(layout.text)])):
            kept = [batch.column(index).slice(start, len(ids)) for index in layout.kept]
            yield pa.RecordBatch.from_arrays([*kept, ids], schema=layout.schema)
            start += len(ids)

    def _encode(self, column: Any) -> list[Any]:
        """Return the ids of a ChunkedArray of text as arrays of lists, at least one."""
        import numpy as np

        pa = arrow()
        chunks, is_valid = self._documents(column)
        blocks: list[NDArray[np.uint32]] = [np.empty(0, np.uint32)]
        ends: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
        length = 0

        def receive(block: NDArray[np.uint32], block_ends: NDArray[np.uint64], *_: object) -> None:
            nonlocal length
            blocks.append(block)
            ends.append(block_ends.astype(np.int64) + length)
            length += len(block)

        if chunks:
            self._run(pa.chunked_array(chunks), is_valid, receive)
        # `complete` has checked that the dtype holds every id.
        ids = np.concatenate(blocks, dtype=self._options.dtype, casting="unsafe")
        offsets = np.concatenate(ends)
        if is_valid is not None:
            lengths = np.zeros(len(is_valid), np.int64)
            lengths[is_valid] = np.diff(offsets)
            offsets = np.concatenate([[0], np.cumsum(lengths)])
        return list(_lists(pa, ids, offsets, is_valid))

    def _documents(self, column: Any) -> tuple[list[Any], NDArray[np.bool_] | None]:
        """Return the chunks of text without nulls, and which rows are not null (None: all)."""
        import numpy as np

        pa = arrow()
        if pa.types.is_null(column.type):
            return [], np.zeros(len(column), np.bool_)
        checked: list[Any] = []
        try:
            # Also checks the offsets: the engine gets pointers without the sizes of buffers.
            chunks = [as_binary(pa, chunk, checked) for chunk in column.chunks]
        except pa.ArrowException as error:
            raise CorpusError(f"the column {self._text_column!r} is damaged: {error}") from error
        has_nulls = any(map(_has_nulls, chunks))
        if has_nulls or _has_views(pa, column.type):
            chunks = [_plain(pa, chunk) for chunk in chunks]
        is_valid = None
        if has_nulls:
            masks = [chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in chunks]
            is_valid = np.concatenate(masks)
            chunks = [chunk.drop_null() for chunk in chunks]
        return [chunk for chunk in chunks if len(chunk)], is_valid

    def _run(self, documents: Any, is_valid: NDArray[np.bool_] | None, receive: Any) -> None:
        """Encode documents; an error names the row."""
        plan = self._plan
        try:
            self._tokenizer._encoder.encode_corpus(
                {
                    **Corpus(table=documents).engine_arguments(),
                    "digest": False,
                    "require_utf8": True,
                },
                {
                    "start": None,
                    "documents": None,
                    "special_text": plan.options.special_text,
                    "prefix": plan.before,
                    "suffix": plan.after,
                    "marks_empty": True,
                    "num_threads": self._num_threads,
                },
                receive,
                None,
            )
        except CorpusError as error:
            number, problem = _find_problem(documents)
            if problem is None:
                raise
            raise CorpusError(f"{self._place(number, is_valid)} {problem}") from error
        except ByteweldError as error:
            document = getattr(error, "document", None)
            message = str(error)
            if isinstance(error, SpecialTokenError):
                # It names arguments of `encode`.
                message = message.partition("; pass allowed_special=")[0] + (
                    "; pass special_text='special' to encode it as its id, or special_text='text' "
                    "to encode it as ordinary text"
                )
            if document is not None:
                error.args = (f"{self._place(document, is_valid)}: {message}",)
            raise

    def _place(self, document: int, is_valid: NDArray[np.bool_] | None) -> str:
        row = document if is_valid is None else int(is_valid.nonzero()[0][document])
        return f"row {row} of the column {self._text_column!r}"


class _Layout(NamedTuple):
    """Where the columns of a table are, and the schema of the result."""

    text: int
    kept: list[int]
    schema: Any


def _index(schema: Any, name: str, argument: str) -> int:
    """Return the index of a column; raise if there is none of that name, or two."""
    found = schema.get_all_field_indices(name)
    if len(found) > 1:
        raise CorpusError(f"the column {name!r} is there {len(found)} times; rename the others")
    if not found:
        names = [repr(known) for known in schema.names[:_MAX_NAMES]]
        if len(schema.names) > _MAX_NAMES:
            names.append("...")
        hint = nearest(name, schema.names)
        raise CorpusError(
            f"no column {name!r} ({argument}); the columns are {', '.join(names) or 'none'}{hint}"
        )
    return int(found[0])


def _is_text(pa: Any, type_: Any) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    elif pa.types.is_null(type_):  # of a batch in which all rows are null
        return True
    strings = (pa.string(), pa.large_string(), pa.string_view())
    return type_ in strings or type_ in (pa.binary(), pa.large_binary(), pa.binary_view())


def _has_nulls(chunk: Any) -> bool:
    values = getattr(chunk, "dictionary", None)
    return bool(chunk.null_count or (values is not None and values.null_count))


def _has_views(pa: Any, type_: Any) -> bool:
    values = type_.value_type if pa.types.is_dictionary(type_) else type_
    return values in (pa.string_view(), pa.binary_view())


def _plain(pa: Any, chunk: Any) -> Any:
    """Return bytes with offsets: a copy of views and dictionaries.

    pyarrow cannot filter views, 18 crashes when it exports short ones, and a dictionary may have
    nulls of its own.
    """
    if pa.types.is_dictionary(chunk.type):
        return chunk.dictionary.cast(pa.large_binary()).take(chunk.indices)
    return chunk.cast(pa.large_binary()) if _has_views(pa, chunk.type) else chunk


def _lists(
    pa: Any, ids: NDArray[Any], offsets: NDArray[np.int64], is_valid: NDArray[np.bool_] | None
) -> Iterator[Any]:
    """Yield the rows as arrays of lists, each with as many ids as its offsets can count."""
    import numpy as np

    start, rows = 0, len(offsets) - 1
    while True:
        first = offsets[start]
        end = int(np.searchsorted(offsets, first + MAX_LIST, side="right")) - 1
        if end == start < rows:
            raise UnsupportedError(
                f"row {start} has {offsets[start + 1] - first:,} ids; a list column holds at most "
                f"{MAX_LIST:,}; cut its text into several rows"
            )
        yield pa.ListArray.from_arrays(
            pa.array((offsets[start : end + 1] - first).astype(np.int32)),
            pa.array(ids[first : offsets[end]]),
            mask=None if is_valid is None else pa.array(~is_valid[start:end]),
        )
        start = end
        if start >= rows:
            return


def _find_problem(documents: Any) -> tuple[int, str | None]:
    """Return which document the engine rejects, and why."""
    for number, document in enumerate(documents):
        text: bytes = document.as_py()
        if len(text) > _MAX_TEXT_BYTES:
            return number, f"has {len(text):,} bytes; expected at most {_MAX_TEXT_BYTES:,}"
        try:
            text.decode()
        except UnicodeDecodeError as error:
            return number, (
                f"is not UTF-8 at its byte {error.start}; decode it first, for example with "
                "errors='replace'"
            )
    return 0, None
