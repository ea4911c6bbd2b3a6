"""Atomic writes: a file or folder appears whole or not at all, never over another unless told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomic(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = False) -> None:
    """Write `data` to `path` through a temporary file in the same folder, fsync and rename.

    Raises FileExistsError when `path` exists and `overwrite` is False; then nothing is touched.
    """
    target = Path(path)
    if not overwrite and os.path.lexists(target):
        raise _exists(target)
    import tempfile  # slow to import, and only writing needs it

    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes private files
        if overwrite:
            os.replace(temporary, target)
        else:
            os.link(temporary, target)  # fails if somebody made the target meanwhile
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
    """Give a temporary folder beside `path` to write to; it becomes `path` when all went well.

    Raises FileExistsError when `path` exists (and is no empty folder) and `overwrite` is False, or
    when it is a folder that `is_ours` denies: what others put there is never removed.
    """
    check_folder(path, overwrite=overwrite, is_ours=is_ours)
    target = Path(path)
    if target.is_dir():
        target = target.resolve()  # a link to a folder stays, and so does what `.` is
    target.parent.mkdir(parents=True, exist_ok=True)
    import shutil  # as above
    import tempfile

    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o777 & ~umask)  # mkdtemp makes private folders
        check_folder(path, overwrite=overwrite, is_ours=is_ours)  # made meanwhile?
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
    """Refuse what `replace_folder` would refuse, so that it can be known before the work."""
    target = Path(path)
    if not target.exists() and not target.is_symlink():
        check_place(target)
        return
    if not target.is_dir():
        raise FileExistsError(f"{target} exists and is no folder; name another")
    if not any(target.iterdir()):
        return
    if not is_ours(target):
        raise FileExistsError(f"{target} holds other files; name a folder that is new or empty")
    if not overwrite:
        raise _exists(target)


def check_file(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse a file that cannot be written, or is there already, before the work."""
    target = Path(path)
    check_place(target)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file")
    if not overwrite and os.path.lexists(target):
        raise _exists(target)


def check_place(target: Path) -> None:
    """Refuse a file or folder that cannot be made: the nearest folder above it must let us."""
    above = next(place for place in target.absolute().parents if place.exists())
    if not above.is_dir():
        raise NotADirectoryError(
            f"{target} cannot be written: {above} is no folder; name another place"
        )
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{target} cannot be written: the folder {above} may not be changed; name another place"
        )


def _exists(target: Path) -> FileExistsError:
    return FileExistsError(f"{target} exists; pass overwrite=True (--force) to replace it")
