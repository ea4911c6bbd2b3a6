"""The manifest of a dataset: what it was made from, how, and what its files must be.

It has no times and no dates, so an interrupted and an uninterrupted run write the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from byteweld._files import read_regular
from byteweld._saves import write_atomic
from byteweld.dataset._shard import Split
from byteweld.errors import FormatError

MANIFEST: Final = "manifest.json"
VERSION: Final = "byteweld dataset 1"
MAX_LISTED_SKIPS: Final = 1000
_MAX_BYTES: Final = 1 << 30


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """A file of the dataset."""

    name: str  # relative to the folder, with /
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ShardEntry:
    """A shard: one or more files with documents (or packed rows)."""

    split: Split
    number: int
    documents: int
    tokens: int
    files: tuple[FileEntry, ...]
    continues: bool = False  # the last document goes on in the next shard


@dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """A source: a file with its size and the XXH3-128 of its bytes, or documents in memory."""

    name: str
    size: int | None
    xxh3_128: str | None
    documents: int


@dataclass(frozen=True, kw_only=True)
class SkipEntry:
    """A record that was skipped."""

    source: str
    reason: str
    line: int | None = None
    row: int | None = None
    offset: int | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All about a dataset.

    Attributes:
        format: the name of its format.
        dtype: of the ids.
        tokenizer: fingerprint, n_vocab, the eot and bos tokens ({"text", "id"}) where used.
        options: the options that the bytes depend on; `pack` is a length or None.
        documents, tokens, text_bytes: of all splits; tokens include eot and bos.
        splits: documents and tokens of each split (rows, if packed).
        special_text: how often each special token occurs in the text.
        skipped_documents: number of records that were skipped; `skipped` lists the first ones.
        dropped_tokens: at the end of each split, fewer than a packed row.
        shards: in order, those of train first.
        files: that describe all shards.
        is_complete: False while the run goes on, or after it was interrupted; then there are no
            sources and totals.
    """

    format: str
    dtype: str
    tokenizer: Mapping[str, Any]
    options: Mapping[str, Any]
    is_complete: bool = False
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    splits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    special_text: Mapping[str, int] = field(default_factory=dict)
    skipped_documents: int = 0
    skipped: tuple[SkipEntry, ...] = ()
    dropped_tokens: int = 0
    shards: tuple[ShardEntry, ...] = ()
    files: tuple[FileEntry, ...] = ()
    sources: tuple[SourceEntry, ...] = ()

    def to_json(self) -> bytes:
        """Return the manifest as JSON, the same bytes for the same manifest."""
        content = {"version": VERSION, **dataclasses.asdict(self)}
        return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"

    def save(self, folder: Path) -> None:
        """Write the manifest of a dataset, atomically."""
        write_atomic(folder / MANIFEST, self.to_json(), overwrite=True)


def is_dataset(path: str | os.PathLike[str]) -> bool:
    """Whether a folder has the manifest of a dataset."""
    try:
        load_manifest(path)
    except (OSError, FormatError):
        return False
    return True


def load_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of the dataset in a folder, and check it."""
    file = Path(path) / MANIFEST
    data = read_regular(file, _MAX_BYTES)
    try:
        content = json.loads(data)
        if content.pop("version") != VERSION:
            raise ValueError("another version")
        content["shards"] = tuple(_shard(entry) for entry in content["shards"])
        content["files"] = tuple(FileEntry(**entry) for entry in content["files"])
        content["sources"] = tuple(SourceEntry(**entry) for entry in content["sources"])
        content["skipped"] = tuple(SkipEntry(**entry) for entry in content["skipped"])
        return Manifest(**content)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FormatError(f"not the manifest of a dataset ({error})", path=file) from None


def _shard(entry: dict[str, Any]) -> ShardEntry:
    files = tuple(FileEntry(**file) for file in entry.pop("files"))
    return ShardEntry(**entry, files=files)
