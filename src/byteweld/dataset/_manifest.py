"""The manifest of a dataset: what it was made from, how, and what its files must be.

It has no times and no dates, so an interrupted and an uninterrupted run write the same bytes. Its
last line is the SHA-256 of all lines before it.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

from byteweld._files import read_regular, read_start
from byteweld._saves import write_atomic
from byteweld._typed import WrongError, parse, read_dict, reader, to_json
from byteweld.dataset._shard import Split
from byteweld.errors import FormatError

MANIFEST: Final = "manifest.json"
VERSION: Final = "byteweld dataset 1"
MAX_LISTED_SKIPS: Final = 1000
_MAX_BYTES: Final = 1 << 30
_START: Final = re.compile(rb'\s*\{\s*"version"\s*:\s*"byteweld dataset ')
_CHECKSUM: Final = re.compile(rb' "sha256": "([0-9a-f]{64})"\n\}\n')
_CHECKSUM_BYTES: Final = 80


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

    @property
    def ended(self) -> int:
        """The number of documents that end in the shard."""
        return self.documents - self.continues


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

    @property
    def all_files(self) -> Iterator[FileEntry]:
        """The files of all shards, and those that describe them."""
        return chain(*(shard.files for shard in self.shards), self.files)

    def shards_of(self, split: str) -> list[ShardEntry]:
        """Return the shards of a split."""
        return [shard for shard in self.shards if shard.split == split]

    def to_json(self) -> bytes:
        """Return the manifest as JSON, the same bytes for the same manifest."""
        members = [("version", VERSION), *((f.name, getattr(self, f.name)) for f in _FIELDS)]
        lines = "".join(f" {to_json(name)}: {_listed(value)},\n" for name, value in members)
        # Names of files that are not UTF-8 have lone surrogates, which JSON can only write out.
        content = ("{\n" + lines).encode("utf-8", "backslashreplace")
        digest = hashlib.sha256(content).hexdigest()
        return content + f' "sha256": "{digest}"\n}}\n'.encode()

    def save(self, folder: Path) -> None:
        """Write the manifest of a dataset, atomically."""
        write_atomic(folder / MANIFEST, self.to_json(), overwrite=True)


_FIELDS: Final = dataclasses.fields(Manifest)


def _listed(value: object) -> str:
    """Return a value as JSON, a list of entries with one entry per line."""
    if not isinstance(value, tuple) or not value:
        return to_json(value)
    return "[\n" + ",\n".join(f"  {to_json(entry)}" for entry in value) + "\n ]"


# ---------------------------------------------------------------------- reading


def dataset_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of a dataset, which may be named by its manifest, too."""
    given = Path(path)
    return given.parent if given.name == MANIFEST and not given.is_dir() else given


def is_dataset(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is a dataset, complete or not, judged by the manifest's first line."""
    folder = Path(path)
    try:
        return _START.match(read_start(folder / MANIFEST, 256)) is not None
    except FileNotFoundError:
        return _is_begun(folder)
    except (OSError, ValueError):  # a name may contain a NUL
        return False


def _is_begun(folder: Path) -> bool:
    """Whether a run was interrupted before it wrote a manifest."""
    from byteweld.dataset._job import WORK

    return (folder / WORK).is_dir() and not (folder / MANIFEST).exists()


def load_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of the dataset in a folder, and check it."""
    file = Path(path) / MANIFEST
    try:
        data = read_regular(file, _MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        what = "not a dataset: there is no folder"
        hint = "expected a folder made by `byteweld tokenize`"
        if Path(path).is_dir():
            what = "not a dataset: this folder has no manifest.json"
            if _is_begun(Path(path)):
                what = "this dataset has no complete shard yet"
                hint = "run the same `byteweld tokenize` again to go on"
        raise FileNotFoundError(errno.ENOENT, f"{what}; {hint}", os.fspath(path)) from None
    return parse_manifest(data, file)


def parse_manifest(data: bytes, path: str | os.PathLike[str]) -> Manifest:
    """Parse a manifest strictly; anything else is a FormatError that names `path`."""
    from byteweld.dataset._checks import check_manifest

    try:
        content = read_dict(parse(data))
        version = content.pop("version", None)
        if version != VERSION:
            raise WrongError(f"expected version {VERSION!r}, found {version!r:.100}")
        digest = content.pop("sha256", None)
        manifest: Manifest = reader(Manifest)(content)
        check_manifest(manifest)
        found = _CHECKSUM.fullmatch(data[-_CHECKSUM_BYTES:])
        made = hashlib.sha256(memoryview(data)[:-_CHECKSUM_BYTES]).hexdigest()
        if found is None or found[1].decode() != digest or digest != made:
            raise WrongError(
                f"its SHA-256 is {made}, but its last line says {digest!r:.100}; the file was "
                "damaged or edited: restore it, or make the dataset again"
            )
    except WrongError as error:
        raise FormatError(
            f"not the manifest of a dataset: {error}", path=path, offset=error.offset
        ) from None
    return manifest
