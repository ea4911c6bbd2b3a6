"""Opening the files of a shard: what every format checks first."""

from __future__ import annotations

from pathlib import Path

from byteweld._files import check_regular
from byteweld.dataset._manifest import FileEntry
from byteweld.errors import FormatError


def file_of(folder: Path, file: FileEntry) -> Path:
    """Return the path of a regular file of the size that the manifest states."""
    path = folder / file.name
    status = path.stat()
    check_regular(path, status)
    if status.st_size != file.size:
        raise FormatError(
            f"the file has {status.st_size} bytes; expected {file.size}, as the manifest says",
            path=path,
        )
    return path


def check_number(number: int, documents: int) -> None:
    """Raise IndexError unless a shard of so many documents has one of this number."""
    if not 0 <= number < documents:
        raise IndexError(f"no document {number} in a shard of {documents}")
