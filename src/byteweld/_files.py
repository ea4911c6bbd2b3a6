"""Files of every kind: atomic writes, and the suffixes of compressed files.

A file or folder appears whole or not at all, and replaces nothing by default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# The engine recognizes compression by content, and skips these when it looks for `.jsonl`.
COMPRESSED_SUFFIXES: Final = (".gz", ".zst", ".xz")


def write_atomic(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = False) -> None:
    """Write `data` to `path` through a temporary file in the same folder, fsync and rename.

    Raises FileExistsError if `path` exists and `overwrite` is False, without touching anything.
    """
    target = Path(path)
    if not overwrite and os.path.lexists(target):
        raise _exists(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{target} cannot be written: there is no folder {target.parent}; create it first"
        )
    import tempfile  # slow to import, and only writing needs it

    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp creates private files
        if overwrite:
            os.replace(temporary, target)
        else:
            os.link(temporary, target)  # fails if the target has appeared meanwhile
            os.unlink(temporary)
    except FileExistsError:
        os.unlink(temporary)
        raise _exists(target) from None
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


@contextmanager
def replace_folder(
    path: str | os.PathLike[str], *, overwrite: bool = False, is_ours: Callable[[Path], bool]
) -> Iterator[Path]:
    """Yield a temporary folder next to `path` to write to; on success, it becomes `path`.

    Raises FileExistsError if `path` exists, is not an empty folder, and `overwrite` is False; or if
    it is a folder that `is_ours` rejects: files that byteweld did not write are never removed.
    """
    check_folder(path, overwrite=overwrite, is_ours=is_ours)
    target = Path(path)
    if target.is_dir():
        target = target.resolve()  # keeps a link to a folder, and the working directory
    target.parent.mkdir(parents=True, exist_ok=True)
    import shutil  # as above
    import tempfile

    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o777 & ~umask)  # mkdtemp creates private folders
        check_folder(path, overwrite=overwrite, is_ours=is_ours)  # it may have appeared meanwhile
        if target.is_dir() and any(target.iterdir()):
            old = temporary.with_name(f"{temporary.name}.old")
            os.replace(target, old)
            try:
                os.replace(temporary, target)
            except BaseException:
                os.replace(old, target)
                raise
            shutil.rmtree(old)
        else:
            os.replace(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


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
        raise _exists(target)


def check_file(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise if a file cannot be written, or exists already, before any work is done."""
    target = Path(path)
    check_parent(target)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; expected the name of a file")
    if not overwrite and os.path.lexists(target):
        raise _exists(target)


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


def _exists(target: Path) -> FileExistsError:
    return FileExistsError(f"{target} exists; pass overwrite=True (--force) to replace it")
