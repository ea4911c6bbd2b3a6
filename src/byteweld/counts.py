"""Counts: pre-token bytes -> how many. Adding tables is all that parallel and distributed mean."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

from byteweld import _native
from byteweld.corpus import Corpus
from byteweld.errors import FormatError
from byteweld.recipes import ALPHABETS, Recipe

# Documents of an iterable are handed to the engine in batches of about this many bytes.
_BATCH_BYTES = 8 << 20
_FILE = "counts.parquet"
_FORMAT = b"byteweld counts 1"


class Counts:
    """How often each pre-token occurs (64-bit). Immutable.

    >>> counts = Counts({b"low": 5, b"lower": 2})
    >>> counts[b"low"], len(counts), counts.total
    (5, 2, 7)
    >>> (counts + Counts({b"low": 1}))[b"low"]
    6
    """

    __slots__ = ("_table", "boundaries", "pattern", "skipped_documents")

    _table: _native.Counts
    pattern: str | None  # what cut the documents
    boundaries: tuple[str, ...] | None  # the special tokens that did; None if it is not known
    skipped_documents: int  # how many were left out because of on_error="skip"

    def __init__(
        self,
        counts: Mapping[bytes, int],
        *,
        pattern: str | None = None,
        boundaries: Sequence[str] | None = None,
        skipped_documents: int = 0,
    ) -> None:
        if not isinstance(counts, Mapping):
            raise TypeError(f"expected a mapping of pre-token to count, found {counts!r}")
        for pretoken, count in counts.items():
            if not isinstance(pretoken, bytes) or not pretoken:
                raise TypeError(f"pre-tokens are non-empty bytes, found {pretoken!r}")
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**64:
                raise ValueError(
                    f"the count of {pretoken!r} is {count!r}; expected a whole number below 2^64"
                )
        table = _native.Counts(sorted(counts.items()))
        self._set(table, pattern, boundaries, skipped_documents)

    def _set(
        self,
        table: _native.Counts,
        pattern: str | None,
        boundaries: Sequence[str] | None,
        skipped_documents: int,
    ) -> None:
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "pattern", pattern)
        known = None if boundaries is None else tuple(sorted(set(boundaries)))
        object.__setattr__(self, "boundaries", known)
        object.__setattr__(self, "skipped_documents", skipped_documents)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Counts are immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Counts are immutable")

    @classmethod
    def _of(
        cls,
        table: _native.Counts,
        pattern: str | None,
        boundaries: Sequence[str] | None,
        skipped_documents: int,
    ) -> Self:
        counts = cls.__new__(cls)
        counts._set(table, pattern, boundaries, skipped_documents)
        return counts

    @property
    def total(self) -> int:
        """How many pre-tokens were counted in all."""
        return self._table.total

    @property
    def total_bytes(self) -> int:
        """How many bytes the counted pre-tokens have in all."""
        return sum(len(pretoken) * count for pretoken, count in self.items())

    def items(self) -> list[tuple[bytes, int]]:
        """All (pre-token, count) pairs in order of the bytes."""
        return self._table.items()

    def most_common(self, n: int | None = None) -> list[tuple[bytes, int]]:
        """The n most frequent pre-tokens; ties in order of the bytes."""
        return sorted(self.items(), key=lambda item: -item[1])[:n]

    @staticmethod
    def merge(tables: Iterable[Counts]) -> Counts:
        """Add any number of tables; the order does not matter."""
        tables = list(tables)
        patterns = {table.pattern for table in tables}
        if len(patterns) > 1:
            raise ValueError(
                f"counts of different patterns cannot be added: {sorted(map(repr, patterns))}"
            )
        boundaries = {table.boundaries for table in tables}
        if len(boundaries) > 1:
            raise ValueError(
                "counts cut at different special tokens cannot be added: "
                f"{sorted(map(repr, boundaries))}"
            )
        return Counts._of(
            _native.Counts.merge([table._table for table in tables]),
            patterns.pop() if patterns else None,
            boundaries.pop() if boundaries else None,
            sum(table.skipped_documents for table in tables),
        )

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts.merge([self, other])

    def __getitem__(self, pretoken: bytes) -> int:
        return self._table.get(pretoken)

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[bytes]:
        return (pretoken for pretoken, _ in self.items())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return (
            self.pattern == other.pattern
            and self.boundaries == other.boundaries
            and self.items() == other.items()
        )

    __hash__ = None  # type: ignore[assignment]  # equality reads every entry

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.items(), self.pattern, self.boundaries, self.skipped_documents))

    def __repr__(self) -> str:
        return f"<Counts {len(self)} pre-tokens, {self.total} in all>"

    # ------------------------------------------------------------------ the artifact

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a folder with `counts.parquet`: sorted, with pattern and totals in its metadata."""
        pyarrow, parquet = _arrow()
        from byteweld._files import write_atomic

        items = self.items()
        schema = pyarrow.schema(
            [
                pyarrow.field("bytes", pyarrow.binary(), nullable=False),
                pyarrow.field("count", pyarrow.uint64(), nullable=False),
            ],
            metadata={
                b"format": _FORMAT,
                b"pattern": json.dumps(self.pattern).encode(),
                b"boundaries": json.dumps(self.boundaries).encode(),
                b"skipped_documents": b"%d" % self.skipped_documents,
                b"distinct": b"%d" % len(items),
                b"total": b"%d" % self.total,
            },
        )
        columns = [
            pyarrow.array([pretoken for pretoken, _ in items], pyarrow.binary()),
            pyarrow.array([count for _, count in items], pyarrow.uint64()),
        ]
        buffer = pyarrow.BufferOutputStream()
        table = pyarrow.Table.from_arrays(columns, schema=schema)
        parquet.write_table(table, buffer, compression="zstd")
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / _FILE, buffer.getvalue().to_pybytes(), overwrite=overwrite)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Counts:
        """Read a folder that `save` wrote."""
        pyarrow, parquet = _arrow()
        file = Path(path) / _FILE
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file; expected a folder of counts")
        try:
            table = parquet.read_table(file)
        except (pyarrow.ArrowException, OSError) as error:
            raise FormatError(f"not a Parquet file: {error}", path=file) from error
        metadata = table.schema.metadata or {}
        if metadata.get(b"format") != _FORMAT or table.column_names != ["bytes", "count"]:
            raise FormatError(
                f"expected counts of format {_FORMAT.decode()!r}, "
                f"found {metadata.get(b'format')!r} with columns {table.column_names}",
                path=file,
            )
        pretokens = cast("list[bytes]", table["bytes"].to_pylist())
        numbers = cast("list[int]", table["count"].to_pylist())
        items = dict(zip(pretokens, numbers, strict=True))
        if len(items) != len(pretokens):
            twice = len(pretokens) - len(items)
            raise FormatError(f"{twice} of {len(pretokens)} rows repeat a pre-token", path=file)
        try:
            counts = Counts(
                items,
                pattern=json.loads(metadata[b"pattern"]),
                boundaries=json.loads(metadata[b"boundaries"]),
                skipped_documents=int(metadata[b"skipped_documents"]),
            )
        except KeyError as error:
            raise FormatError(f"the metadata lacks {error}", path=file) from error
        except (TypeError, ValueError) as error:
            raise FormatError(str(error), path=file) from error
        if metadata.get(b"total") != b"%d" % counts.total:
            raise FormatError(
                f"the counts add up to {counts.total}; the file says {metadata.get(b'total')!r}",
                path=file,
            )
        return counts

    @staticmethod
    def is_saved_at(path: str | os.PathLike[str]) -> bool:
        """Whether `path` is a folder that `save` wrote."""
        return (Path(path) / _FILE).is_file()


def _rebuild(
    items: list[tuple[bytes, int]],
    pattern: str | None,
    boundaries: tuple[str, ...] | None,
    skipped_documents: int,
) -> Counts:
    return Counts(
        dict(items), pattern=pattern, boundaries=boundaries, skipped_documents=skipped_documents
    )


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "saved counts are Parquet files; install pyarrow with: pip install 'byteweld[arrow]'"
        ) from error
    return pyarrow, pyarrow.parquet


# ---------------------------------------------------------------------- counting


def count_corpus(
    corpus: Corpus | Iterable[str | bytes],
    recipe: Recipe,
    *,
    num_threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Counts:
    """Count the pre-tokens of files or of documents in memory; `progress` hears of bytes read."""
    alphabet = ALPHABETS["ascii"] if recipe.alphabet == "ascii" else None
    builder = _native.CountBuilder(
        pattern=recipe.pattern,
        boundaries=recipe.boundaries,
        alphabet=alphabet,
        num_threads=num_threads,
    )
    skipped = 0
    if isinstance(corpus, Corpus):
        skipped = builder.add_files(
            corpus.files,
            unit=corpus.unit,
            separator=None if corpus.separator is None else corpus.separator.encode(),
            field=corpus.field,
            on_error=corpus.on_error,
            progress=progress,
        )
    else:
        _count_documents(corpus, builder, progress)
    return Counts._of(builder.finish(), recipe.pattern, recipe.boundaries, skipped)


def _count_documents(
    documents: Iterable[str | bytes],
    builder: _native.CountBuilder,
    progress: Callable[[int], object] | None,
) -> None:
    batch: list[str | bytes] = []
    size = total = 0
    for document in documents:
        if not isinstance(document, str | bytes):
            raise TypeError(f"documents are str or bytes, found {type(document).__name__}")
        batch.append(document)
        size += len(document)
        if size >= _BATCH_BYTES:
            builder.add_documents(batch)
            total += size
            batch, size = [], 0
            if progress is not None:
                progress(total)
    if batch:
        builder.add_documents(batch)
        if progress is not None:
            progress(total + size)
