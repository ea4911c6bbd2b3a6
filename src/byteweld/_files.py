"""Files of every kind: bounded reads of regular files, digests, checks of paths to write, suffixes.

Everything that byteweld reads whole goes through `read_regular`: a pipe, a device or a file that
never ends is an error with its name, never a hang or all of the memory.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from byteweld.errors import FormatError

# The engine recognizes compression by content, and skips these when it looks for `.jsonl`.
COMPRESSED_SUFFIXES: Final = (".gz", ".zst", ".xz", ".bz2")

_KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}
_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)
# Where these do not exist, neither do the files that need them.
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_LEAST_READ_BYTES: Final = 1 << 16  # if more follow than were reported


# ---------------------------------------------------------------------- reading


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor; a file of any other kind is an error.

    Looks before it opens, because opening a device can act, and again after, because the file may
    have been replaced; never waits for the other end of a pipe.
    """
    if not flags & os.O_CREAT:
        check_regular(path, os.stat(path))
    descriptor = os.open(path, flags | _NO_WAIT | _CLOEXEC | getattr(os, "O_BINARY", 0), 0o666)
    try:
        check_regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_regular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    """Raise unless a file is regular."""
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
    raise FormatError(f"expected a regular file, found {kind}", path=path)


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Read a whole regular file of at most `limit` bytes.

    The limit also holds for a file whose reported size is wrong or that grows while it is read, and
    memory is allocated for what was read, not for what was reported or allowed.
    """
    descriptor = open_regular(path)
    try:
        size = os.fstat(descriptor).st_size
        data = b"" if size > limit else read_descriptor(descriptor, size, limit + 1)
    finally:
        os.close(descriptor)
    if max(size, len(data)) > limit:
        found = f"{size} bytes" if size > limit else "more bytes than it reports"
        raise FormatError(f"the file has {found}; expected at most {limit}", path=path)
    return data


def read_start(path: str | os.PathLike[str], size: int) -> bytes:
    """Read the first bytes of a regular file."""
    descriptor = open_regular(path)
    try:
        return read_descriptor(descriptor, os.fstat(descriptor).st_size, size)
    finally:
        os.close(descriptor)


def read_part(path: str | os.PathLike[str], offset: int, limit: int) -> bytes:
    """Read a regular file from an offset to its end, or at most `limit` bytes."""
    descriptor = open_regular(path)
    try:
        rest = os.fstat(descriptor).st_size - offset
        if rest <= 0 or limit == 0:
            return b""
        os.lseek(descriptor, offset, os.SEEK_SET)
        return read_descriptor(descriptor, rest, limit)
    finally:
        os.close(descriptor)


def read_descriptor(descriptor: int, size: int, limit: int) -> bytes:
    """Read a regular file to its end, or at most `limit` bytes; `size` is what it reports."""
    wanted = min(size + 1, limit)  # if all but the last byte come, that is the end
    data = os.read(descriptor, wanted)
    if size and len(data) == min(size, wanted):
        return data
    chunks = [data]
    total = len(data)
    while total < limit:
        chunk = os.read(descriptor, min(max(total, _LEAST_READ_BYTES), limit - total))
        if not chunk:
            break
        chunks.append(chunk)
        total += len(chunk)
    return b"".join(chunks)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal."""
    import hashlib  # slow to import, and reading a file needs no hash

    return hashlib.sha256(data).hexdigest()


# ---------------------------------------------------------------------- paths to write


def check_folder(
    path: str | os.PathLike[str], *, overwrite: bool, is_ours: Callable[[Path], bool]
) -> None:
    """Raise the errors that `replace_folder` would raise, before any work is done."""
    target = Path(path)
    if not target.exists() and not target.is_symlink():
        check_parent(target)
        return
    if not target.is_dir():
        raise FileExistsError(f"{target} exists and is not a folder; choose another name")
    if not any(target.iterdir()):
        return
    if not is_ours(target):
        raise FileExistsError(f"{target} holds other files; choose a folder that is new or empty")
    if not overwrite:
        raise exists(target)


def check_file(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise if a file cannot be written, or exists already, before any work is done."""
    target = Path(path)
    check_parent(target)
    check_replaceable(target, overwrite=overwrite or target.is_dir())


def check_replaceable(target: Path, *, overwrite: bool) -> None:
    """Raise if a file may not be put at `target`.

    A link is replaced, not what it points to. A folder, pipe, socket or device never is.
    """
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    if not overwrite:
        raise exists(target)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; expected the name of a file")
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "not a file")
        raise FileExistsError(f"{target} is {kind}, which is never replaced; choose another name")


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder; raise if a link on the way to it leads elsewhere.

    The file itself may be a link: removing or replacing it leaves what it leads to, and caches of
    downloaded datasets consist of links.
    """
    path = folder / name
    for parent in path.parents:
        if parent == folder:
            break
        # A job may have millions of files: only a link is resolved.
        if parent.is_symlink() and not parent.resolve().is_relative_to(folder.resolve()):
            raise FormatError(
                f"{parent} is a link that leads out of {folder}; nothing there is read, written "
                "or removed: replace the link with a folder",
                path=path,
            )
    return path


def check_parent(target: Path) -> None:
    """Raise if a file or folder cannot be created in the nearest existing folder above it."""
    above = next(parent for parent in target.absolute().parents if parent.exists())
    if not above.is_dir():
        raise NotADirectoryError(
            f"{target} cannot be written: {above} is not a folder; choose another path"
        )
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{target} cannot be written: the folder {above} is read-only; choose another path"
        )


def exists(target: Path) -> FileExistsError:
    """Return the error for a file that may not be replaced."""
    return FileExistsError(f"{target} exists; pass overwrite=True to replace it")
