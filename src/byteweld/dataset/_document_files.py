"""Encoded documents on disk: their ids in one file, their lengths in another. Both only grow."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from byteweld._atomic import naming
from byteweld.dataset import _order
from byteweld.dataset._shard import LENGTH_BYTES, mapped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SUFFIXES: Final = ".tokens", ".lengths"
_BUFFER_BYTES: Final = 1 << 17
_BATCH_TOKENS: Final = 1 << 20


class DocumentFiles:
    """The two files of some documents, open to append; `stem` is their path without the suffixes.

    Before the ids are `header_bytes`, for the format of the dataset. The files have `tokens` and
    `documents` already; what follows is dropped. If `hashed`, the SHA-256 of the ids is computed,
    if all are written here.
    """

    def __init__(
        self,
        stem: Path,
        dtype: Any,
        header_bytes: int = 0,
        tokens: int = 0,
        documents: int = 0,
        *,
        hashed: bool = False,
    ) -> None:
        self.paths = tuple(stem.with_name(stem.name + suffix) for suffix in SUFFIXES)
        self.tokens, self.documents = tokens, documents
        self._dtype = dtype
        self._open_tokens = 0  # of a document that has not ended
        self._hash = hashlib.sha256() if hashed and not tokens else None
        self._files: list[Any] = []
        size = header_bytes + tokens * dtype.itemsize
        try:
            self._files.append(_open_at(self.paths[0], size if tokens else 0))
            self._files.append(_open_at(self.paths[1], documents * LENGTH_BYTES))
            if not tokens:
                self._files[0].write(bytes(header_bytes))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self._flush()
        finally:
            self.close()

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
        data = self._write(0, ids.astype(self._dtype, copy=False))
        if self._hash is not None:
            self._hash.update(data)
        self.tokens += len(ids)

    def _write(self, which: int, values: NDArray[Any]) -> memoryview:
        data = values.data.cast("B")
        with naming(self.paths[which]):
            self._files[which].write(data)
        return data

    @property
    def digest(self) -> str | None:
        """The SHA-256 of all ids, if it was computed."""
        return None if self._hash is None else self._hash.hexdigest()

    def drop(self, tokens: int) -> None:
        """Drop the last ids, which belong to no packed row."""
        if tokens:
            self.tokens -= tokens
            self._hash = None
            file = self._files[0]
            with naming(self.paths[0]):
                file.truncate(file.seek(0, os.SEEK_END) - tokens * self._dtype.itemsize)
                file.seek(0, os.SEEK_END)

    def _flush(self) -> None:
        for path, file in zip(self.paths, self._files, strict=False):
            with naming(path):
                file.flush()

    def sync(self) -> None:
        """Put everything on disk."""
        self._flush()
        for path, file in zip(self.paths, self._files, strict=False):
            with naming(path):
                os.fdatasync(file.fileno())

    def close(self) -> None:
        """Close the files, which may lose what was appended last."""
        for file in self._files:
            with contextlib.suppress(OSError):  # it was flushed, or is cut back later
                file.close()
        self._files = []


def _open_at(path: Path, size: int) -> Any:
    """Open a file to append after its first `size` bytes; what follows them is dropped."""
    with naming(path):
        file = path.open("r+b" if path.exists() else "x+b", buffering=_BUFFER_BYTES)
        found = file.seek(0, os.SEEK_END)
        if found < size:
            file.close()
            raise OSError(
                f"{path} has {found} bytes, but {size} were written before the interruption; "
                "start again with overwrite=True (--force)"
            )
        file.truncate(size)
        file.seek(size)
        return file


def in_order(
    stem: Path, dtype: Any, header_bytes: int, tokens: int, documents: int, order: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
    """Yield the documents of files in an order, as (ids, ends)."""
    import numpy as np

    paths = [stem.with_name(stem.name + suffix) for suffix in SUFFIXES]
    ids = mapped(paths[0], dtype.str, tokens, header_bytes)
    lengths = np.array(mapped(paths[1], "int64", documents, 0))
    starts = np.cumsum(lengths) - lengths
    starts, lengths = starts[order], lengths[order]
    for some in batches(lengths):
        at = int(starts[some.start])
        if some.stop == some.start + 1:  # it may be long: no copy, no index
            yield ids[at : at + int(lengths[some.start])], lengths[some]
        else:
            yield _order.gather(ids, starts[some], lengths[some]), np.cumsum(lengths[some])


def batches(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Yield ranges of documents with up to about 2^20 ids each, or one longer document."""
    import numpy as np

    ends = np.cumsum(lengths)
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BATCH_TOKENS, side="right"))
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop
