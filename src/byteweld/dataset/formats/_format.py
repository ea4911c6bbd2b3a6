"""What a format of token datasets is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from byteweld._files import check_regular, inside
from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats._documents import Documents, check_amount
from byteweld.errors import FormatError

Eot = Literal["append", "prepend", "none"]


@dataclass(frozen=True, kw_only=True)
class Format(ABC):
    """How a dataset is laid out in files.

    Attributes:
        name: of the format, for `--format`.
        summary: one line for `--help`.
        file_names: the files of a shard, relative to the dataset's folder, the main file first.
        dtypes: all dtypes that the format can hold.
        default_dtypes: the default is the first of them that holds all ids.
        eot: where this format's users expect the end-of-text token.
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
    file_names: Callable[[ShardName], tuple[str, ...]]
    dtypes: tuple[str, ...] = ("uint16", "uint32")
    default_dtypes: tuple[str, ...] = ("uint16", "uint32")
    eot: Eot = "append"
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

    @abstractmethod
    def write(self, shard: Shard, folder: Path) -> None:
        """Write the files of a shard into a scratch folder, under their names."""

    @abstractmethod
    def open(self, folder: Path, entry: ShardEntry, manifest: Manifest) -> Documents:
        """Open the files of a shard in a dataset's folder for reading."""

    def dtype(self, n_vocab: int) -> str:
        """Return the dtype for a number of ids, by the framework's own rule."""
        import numpy as np

        fitting = (name for name in self.default_dtypes if n_vocab - 1 <= np.iinfo(name).max)
        return next(fitting, self.default_dtypes[-1])

    def new_files(self, shard: Shard, folder: Path) -> list[Path]:
        """Return where to write the files of a shard, in folders that exist."""
        paths = [folder / name for name in self.file_names(shard.name)]
        paths[0].parent.mkdir(exist_ok=True)
        return paths

    def files(self, folder: Path, entry: ShardEntry) -> list[Path]:
        """Return the files of a shard, or raise if their number is wrong."""
        expected = len(self.file_names(ShardName()))
        if len(entry.files) != expected:
            raise FormatError(
                f"the manifest lists {len(entry.files)} files for shard {entry.number} of "
                f"{entry.split}; expected {expected}",
                path=folder,
            )
        return [inside(folder, file.name) for file in entry.files]

    def only_file(self, folder: Path, entry: ShardEntry) -> Path:
        """Return the only file of a shard: regular, and of the size that the manifest states."""
        (path,) = self.files(folder, entry)
        status = path.stat()
        check_regular(path, status)
        check_amount(status.st_size, "bytes", entry.files[0].size, path)
        return path
