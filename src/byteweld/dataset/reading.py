"""Reading a dataset: its documents by number, or all of its ids as one long array.

Files are opened when they are first used and mapped where the format allows it, so that opening
takes no longer for more documents, and processes share the memory.
"""

from __future__ import annotations

import functools
import operator
import os
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, get_args, overload

from byteweld._cached import cached_property
from byteweld.dataset._manifest import MANIFEST, Manifest, ShardEntry, dataset_folder, load_manifest
from byteweld.dataset._shard import Split
from byteweld.dataset.formats import FORMATS
from byteweld.dataset.formats._documents import Documents, joined
from byteweld.errors import FormatError, UnsupportedError, nearest
from byteweld.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_OPEN_SHARDS: Final = 128  # each has up to two file descriptors, and 1024 is a common limit


def open_dataset(
    path: str | os.PathLike[str], tokenizer: Tokenizer | None = None, *, split: Split = "train"
) -> Dataset:
    """Open a dataset for reading.

    Args:
        path: the folder, or its manifest.
        tokenizer: needed for `Dataset.text` only. A tokenizer with another fingerprint than the one
            that made the dataset is refused.
        split: "train" or "validation".

    Raises:
        FormatError: if the dataset is damaged or not complete.
        UnsupportedError: if it was made with another tokenizer.

    Examples:
        >>> import tempfile
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=266, eos="<|end|>")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = byteweld.tokenize(documents=["hello", "hello world"], tokenizer=tok, out=folder)
        ...     data = byteweld.open_dataset(folder, tok)
        ...     len(data), data[1].tolist(), data.text(1)
        (2, [263, 264, 265], 'hello world<|end|>')
    """
    folder = dataset_folder(path)
    manifest = load_manifest(folder)
    if not manifest.is_complete:
        raise FormatError(
            "this dataset is not complete; run the same `byteweld tokenize` again to finish it",
            path=folder,
        )
    if split not in get_args(Split):
        known = " or ".join(map(repr, get_args(Split)))
        raise ValueError(f"split is {split!r}; it must be {known}{nearest(split, get_args(Split))}")
    if split not in manifest.splits:
        raise ValueError(
            f"{folder} has no split {split!r}, only {', '.join(map(repr, manifest.splits))}"
        )
    if tokenizer is not None:
        check_tokenizer(tokenizer, manifest, folder)
    return Dataset(folder.absolute(), manifest, split, tokenizer)


def check_tokenizer(tokenizer: Tokenizer, manifest: Manifest, folder: Path) -> None:
    """Raise unless this is the tokenizer that made a dataset."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"tokenizer is a {type(tokenizer).__name__}; it must be a Tokenizer")
    expected, found = manifest.tokenizer["fingerprint"], tokenizer.vocab.fingerprint
    if found != expected:
        raise UnsupportedError(
            f"{folder} was made with the tokenizer of fingerprint {expected}, but this one has "
            f"{found}, so its ids mean other tokens; pass the tokenizer that made the dataset"
        )


class Dataset:
    """The documents of one split, each an array of ids; packed datasets have rows instead.

    Made by `byteweld.open_dataset`. `data[0]` is the ids of a document, `data[-1]` of the last one,
    `data[10:20]` a list of them, and `len(data)` their number. Immutable; may be used from several
    threads and after a fork. A pickled dataset is reopened by its path, so it can be sent to worker
    processes.

    Examples:
        >>> import tempfile
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=266, eos="<|end|>")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = byteweld.tokenize(documents=["hello", "hello world"], tokenizer=tok, out=folder)
        ...     data = byteweld.open_dataset(folder, tok)
        ...     len(data), data.num_tokens, data.lengths.tolist(), str(data.dtype)
        ...     [ids.tolist() for ids in data]
        ...     data.head(1, 2).tolist(), data.text(1), data.shard_of(1).files[0].name
        ...     data.tokens(1, 4).tolist()  # across documents
        ...     [lengths.tolist() for lengths in data.length_batches()]
        (2, 5, [2, 3], 'uint16')
        [[263, 265], [263, 264, 265]]
        ([263, 264], 'hello world<|end|>', 'train.bin')
        [265, 263, 264]
        [[2, 3]]
    """

    def __init__(
        self, path: Path, manifest: Manifest, split: Split, tokenizer: Tokenizer | None = None
    ) -> None:
        self._path = path
        self._manifest = manifest
        self._split = split
        self._tokenizer = tokenizer
        self._shards = shards = manifest.shards_of(split)
        # The number of the document to which the first piece of each shard belongs. Documents that
        # continue in the next shard have a piece in both.
        *self._first_documents, self._len = accumulate((s.ended for s in shards), initial=0)
        *self._first_tokens, self._num_tokens = accumulate((s.tokens for s in shards), initial=0)
        # lru_cache has no lock that a fork could leave taken.
        self._open = functools.lru_cache(_MAX_OPEN_SHARDS)(
            lambda number: open_shard(path, shards[number], manifest)
        )

    def __len__(self) -> int:
        return self._len

    @property
    def num_tokens(self) -> int:
        """Number of ids of the split, end-of-text tokens included."""
        return self._num_tokens

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the ids."""
        import numpy as np

        return np.dtype(self._manifest.dtype)

    @property
    def manifest(self) -> Manifest:
        """What the dataset was made from, and how."""
        return self._manifest

    @property
    def path(self) -> Path:
        """The folder of the dataset."""
        return self._path

    @property
    def split(self) -> Split:
        """Which split this is."""
        return self._split

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of ids of each document, 8 bytes in memory for each."""
        import numpy as np

        for number in range(len(self._shards)):  # before memory is allocated for all
            self._open(number)
        result = np.empty(self._len, np.int64)
        end = 0
        for lengths in self.length_batches():
            result[end : end + len(lengths)] = lengths
            end += len(lengths)
        return result

    def length_batches(self) -> Iterator[NDArray[np.int64]]:
        """Yield the number of ids of all documents, some documents at a time.

        For datasets with too many documents for `lengths` to fit in memory.
        """
        before = 0  # ids of a document that continues
        for number, entry in enumerate(self._shards):
            for start, lengths in self._open(number).length_batches():
                if (lengths < 0).any():
                    raise FormatError(
                        f"document {start + int((lengths < 0).argmax())} of the shard ends before "
                        "it starts; run `byteweld verify` to find what is damaged",
                        path=self._path / entry.files[-1].name,
                    )
                lengths[0] += before
                before = 0
                if entry.continues and start + len(lengths) == entry.documents:
                    before = int(lengths[-1])
                    lengths = lengths[:-1]
                yield lengths

    # ------------------------------------------------------------------ documents

    @overload
    def __getitem__(self, index: SupportsIndex) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[NDArray[Any]]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> NDArray[Any] | list[NDArray[Any]]:
        """Return the ids of a document, counted from the end if negative; a list for a slice.

        The array is read-only and mapped from the file where the format allows it.
        """
        if isinstance(index, slice):
            return [self._document(number) for number in range(*index.indices(self._len))]
        number = operator.index(index)
        if not -self._len <= number < self._len:
            raise IndexError(f"document {number} of {self._len}")
        return self._document(number % self._len)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return map(self._document, range(self._len))

    def _document(self, number: int) -> NDArray[Any]:
        return self.head(number, self._num_tokens)

    def head(self, number: int, limit: int) -> NDArray[Any]:
        """Return the first ids of a document, at most `limit`; the rest is not read."""
        first = last = bisect_right(self._first_documents, number) - 1
        while (
            first > 0
            and self._first_documents[first] == number
            and self._shards[first - 1].continues
        ):
            first -= 1
        pieces: list[NDArray[Any]] = []  # one from each shard that has some of it
        for shard in range(first, last + 1):
            pieces.append(self._open(shard)[number - self._first_documents[shard]][:limit])
            limit -= len(pieces[-1])
            if limit <= 0:
                break
        return joined(pieces, self._manifest.dtype)

    def shard_of(self, number: int) -> ShardEntry:
        """Return the shard in which a document ends: its files, documents and tokens."""
        return self._shards[bisect_right(self._first_documents, number) - 1]

    def text(self, index: SupportsIndex) -> str:
        """Return a document as text, special tokens included; needs the tokenizer."""
        if self._tokenizer is None:
            raise ValueError("text needs the tokenizer; pass it to open_dataset")
        return self._tokenizer.decode(self[index].astype("uint32"))

    # ------------------------------------------------------------------ ids

    def tokens(self, start: int, stop: int) -> NDArray[Any]:
        """Return ids `start` to `stop` of the split, as if its documents were one long array.

        Raises:
            IndexError: if the split does not have all of them.
        """
        start, stop = operator.index(start), operator.index(stop)
        if not 0 <= start <= stop <= self._num_tokens:
            raise IndexError(f"ids {start} to {stop} of {self._num_tokens}")
        parts = []
        shard = bisect_right(self._first_tokens, start) - 1
        while start < stop:
            first, size = self._first_tokens[shard], self._shards[shard].tokens
            end = min(stop, first + size)
            if start < end:
                parts.append(self._open(shard).ids(start - first, end - first))
            start, shard = end, shard + 1
        return joined(parts, self._manifest.dtype)

    def __reduce__(self) -> tuple[object, ...]:
        reopen = functools.partial(open_dataset, split=self._split)
        return reopen, (self._path, self._tokenizer)

    def __repr__(self) -> str:
        what = "documents" if self._manifest.options.get("pack") is None else "rows"
        return (
            f"<Dataset {str(self._path)!r} {self._split}: {self._len} {what}, "
            f"{self._num_tokens} tokens, {self._manifest.dtype}>"
        )


def open_shard(folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
    """Open a shard of any format."""
    format = FORMATS.get(manifest.format)
    if format is None:
        raise UnsupportedError(
            f"{folder} has the format {manifest.format!r:.100}, which this version of byteweld "
            f"cannot read; it knows {', '.join(FORMATS)}"
        )
    if manifest.dtype not in format.dtypes:
        raise FormatError(
            f"the dtype is {manifest.dtype!r}; format {format.name!r} has "
            f"{', '.join(format.dtypes)}",
            path=folder / MANIFEST,
        )
    return format.open(folder, entry, manifest)
