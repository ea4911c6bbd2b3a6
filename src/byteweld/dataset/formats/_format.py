"""What a format of token datasets is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Eot = Literal["append", "prepend", "none"]


class Documents(Protocol):
    """The documents (or packed rows) of one shard, opened for reading.

    They may also have `ids`, an array of all ids one after another, and `ends`, an array of the end
    of each document in it, where the format has these in a file.
    """

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of ids of each document."""

    def __getitem__(self, number: int) -> NDArray[Any]:
        """Return the ids of a document, by its number in the shard, without copying if possible."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a dataset is laid out in files.

    Attributes:
        name: of the format, for `--format`.
        summary: one line for `--help`.
        eot: where this format's users expect the end-of-text token.
        dtype: returns the dtype for a number of ids, by the framework's own rule.
        dtypes: all dtypes that the format can hold.
        file_names: the files of a shard, relative to the dataset's folder, the main file first.
        write: writes the files of a shard into a scratch folder, under those names.
        open: opens the files of a shard in a dataset's folder for reading.
        is_raw: the main file is the shard's tokens file, renamed: `header_bytes` (filled in by
            `write`, through `shard.tokens` before it renames) and the ids. `write` must leave the
            ids as they are.
        header_bytes: bytes to reserve before the ids; only if `is_raw`.
        shard_tokens: default size of a shard, in tokens; None for one shard of any size.
        max_shard_tokens: the largest size of a shard that its header can hold.
        splits_documents: shards have exactly `shard_tokens` tokens; documents continue in the next.
        has_rows: whether documents or packed rows can be told apart by the format's own readers,
            so that packing means something.
        has_prefix: whether file names start with a prefix of the user's choice.
        marks_empty: whether a document without text gets its end-of-text and bos tokens.
        finish: finish(folder, manifest, scratch) writes the files that describe all shards of the
            dataset in `folder`, such as index.json, into a scratch folder, and returns their names
            relative to it.
        requires: packages that writing needs, as (import name, extra), to be checked beforehand.
    """

    name: str
    summary: str
    eot: Eot
    dtype: Callable[[int], str]
    dtypes: tuple[str, ...]
    file_names: Callable[[ShardName], tuple[str, ...]]
    write: Callable[[Shard, Path], None]
    open: Callable[[Path, ShardEntry, Manifest], Documents]
    is_raw: bool = True
    header_bytes: int = 0
    shard_tokens: int | None = None
    max_shard_tokens: int | None = None
    splits_documents: bool = False
    has_rows: bool = True
    has_prefix: bool = False
    marks_empty: bool = True
    finish: Callable[[Path, Manifest, Path], Sequence[str]] | None = None
    requires: Sequence[tuple[str, str]] = ()
