"""Opening the only file of a shard: what the formats with rows check first."""

from __future__ import annotations

from pathlib import Path

from byteweld._files import check_regular
from byteweld.dataset._manifest import ShardEntry
from byteweld.dataset.formats._raw import paths
from byteweld.errors import FormatError


def file_of(folder: Path, entry: ShardEntry) -> Path:
    """Return the path of a shard's only file: regular, and of the size that the manifest states."""
    (path,) = paths(folder, entry, 1)
    status = path.stat()
    check_regular(path, status)
    if status.st_size != entry.files[0].size:
        raise FormatError(
            f"the file has {status.st_size} bytes; expected {entry.files[0].size}, as the "
            "manifest says",
            path=path,
        )
    return path


def check_number(number: int, documents: int) -> None:
    """Raise IndexError unless `number` is that of one of the documents of a shard."""
    if not 0 <= number < documents:
        raise IndexError(f"document {number} is not in a shard of {documents}")
