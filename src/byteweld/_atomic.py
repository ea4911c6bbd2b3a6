"""The parts of atomic writes: temporary files and folders, locks, and renames.

A temporary is named after its target and locked by the process that writes it, so that the next
save can tell what a killed process left from what another one is writing. Nothing changes the
umask, which belongs to the whole process: what is created here gets it from the system.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

from byteweld._files import check_folder, sha256

PREFIX: Final = ".byteweld-"
_TEMPORARY: Final = r"\.byteweld-([0-9a-f]{16})-[0-9]+-[0-9a-f]{8}(\.old)?"
_OLD: Final = ".old"
_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_AT_FDCWD: Final = -100
# What a system or a file system answers that does not have an operation.
_CANNOT: Final = frozenset(
    (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM, errno.EMLINK)
)
CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


# ---------------------------------------------------------------------- errors and locks


@contextlib.contextmanager
def naming(target: str | os.PathLike[str]) -> Iterator[None]:
    """Make errors name the file that is being written, not a temporary one or none.

    A full disk (ENOSPC, EDQUOT), for example, is reported without a name by the system.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(target)) from None


def lock(descriptor: int) -> bool | None:
    """Lock an open file or folder until it is closed; False if another process has it locked.

    None if the system cannot tell: there are file systems without locks.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def user() -> int:
    """Return the user that owns what this process creates; 0 where there are no users."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# ---------------------------------------------------------------------- temporaries


def is_temporary(name: str, target: str) -> bool:
    """Whether a name is that of a temporary for `target`."""
    match = re.fullmatch(_TEMPORARY, name)
    return match is not None and match[1] == _mark(target) and not match[2]


def is_leftover(name: str) -> bool:
    """Whether a name is that of a temporary for any target, or of a journal."""
    return name.startswith(f"{PREFIX}journal-") or re.fullmatch(_TEMPORARY, name) is not None


def _mark(name: str) -> str:
    """Return what stands for a target in the names of its temporaries.

    A hash, because a name with a few letters more may be too long.
    """
    return sha256(os.fsencode(name))[:16]


def _new_name(target: Path) -> Path:
    name = f"{PREFIX}{_mark(target.name)}-{os.getpid()}-{os.urandom(4).hex()}"
    return target.with_name(name)


def _new_locked(target: Path, *, folder: bool = False) -> tuple[Path, int]:
    """Create a temporary file or folder next to `target`; return it locked, with its descriptor."""
    flags = os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | os.O_EXCL | NOFOLLOW
    while True:
        path = _new_name(target)
        if folder:
            path.mkdir()
        descriptor = os.open(path, flags | CLOEXEC, 0o666)
        # Another process may have found it before it was locked, and removed it.
        if lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)


class Temporary:
    """A locked file next to its target, with its content on disk; removed when closed."""

    def __init__(self, target: Path, data: bytes, mode: int | None = None) -> None:
        with naming(target):
            self.path, self._descriptor = _new_locked(target)
            try:
                write_synced(self._descriptor, data, mode)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Remove the file, unless it has been renamed, and unlock it."""
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`; the system may take it in parts."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def write_synced(descriptor: int, data: bytes, mode: int | None) -> None:
    """Write the content of a file to the disk, and set its mode unless it is None."""
    write_all(descriptor, data)
    if mode is not None:
        os.fchmod(descriptor, mode)
    os.fsync(descriptor)


def remove_stale(folder: Path, targets: Collection[str] | None = None) -> None:
    """Remove the temporaries that killed processes left in a folder, for these targets or all.

    Those that are locked, or owned by others, stay.
    """
    marks = None if targets is None else set(map(_mark, targets))
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = [entry.name for entry in entries if entry.name.startswith(PREFIX)]
        for name in found:
            match = re.fullmatch(_TEMPORARY, name)
            if match is not None and (marks is None or match[1] in marks):
                with contextlib.suppress(OSError):
                    _remove_unlocked(folder / name)


def _remove_unlocked(path: Path) -> None:
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return
    descriptor = os.open(path, os.O_RDONLY | NOFOLLOW | CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != user() or not lock(descriptor):
            return
        if stat.S_ISDIR(mode):
            import shutil  # slow to import, and rarely needed

            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------------- renames


def _rename2(source: Path, target: Path, flag: int) -> bool:
    """Rename with a flag of Linux; False where the system or the file system does not have it."""
    try:
        import ctypes

        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (ImportError, OSError, TypeError, AttributeError):
        return False
    path, flags = ctypes.c_char_p, ctypes.c_uint
    function.argtypes = [ctypes.c_int, path, ctypes.c_int, path, flags]
    if function(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), os.fspath(source), None, os.fspath(target))


def publish(source: Path, target: Path) -> bool:
    """Rename a file unless `target` exists, which is a FileExistsError.

    False if the file system can neither rename like this nor make hard links.
    """
    if _rename2(source, target, _NOREPLACE):
        return True
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno in _CANNOT:
            return False
        raise
    source.unlink()
    return True


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders atomically; False if the system or the file system cannot."""
    try:
        return _rename2(first, second, _EXCHANGE)
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.EBUSY, errno.EACCES):
            return False
        raise


# ---------------------------------------------------------------------- folders


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a locked temporary folder next to `target`; what is left of it is removed."""
    import shutil  # slow to import, and only writing needs it

    with naming(target):
        temporary, descriptor = _new_locked(target, folder=True)
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(descriptor)


@contextlib.contextmanager
def replace_folder(
    path: str | os.PathLike[str], *, overwrite: bool = False, is_ours: Callable[[Path], bool]
) -> Iterator[Path]:
    """Yield a temporary folder next to `path` to write to; on success, it becomes `path`.

    Raises FileExistsError if `path` exists, is not an empty folder, and `overwrite` is False; or if
    it is a folder that `is_ours` rejects: files that byteweld did not write are never removed.

    The two folders are exchanged, so there is an old or a new one at any time. Where the file
    system cannot do that, the old one is renamed first, and `settle_folder` undoes that if the
    process is killed in between.
    """
    target = Path(path)
    settle_folder(target)
    check_folder(target, overwrite=overwrite, is_ours=is_ours)
    if target.is_dir():
        target = target.resolve()  # keeps a link to a folder, and the working directory
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(target.parent, [target.name])
    with new_folder(target) as temporary:
        yield temporary
        sync_folder(temporary)
        check_folder(target, overwrite=overwrite, is_ours=is_ours)  # it may have appeared since
        with naming(target):
            if not (target.is_dir() and any(target.iterdir())):
                temporary.replace(target)
            elif not exchange(temporary, target):
                _replace_in_steps(temporary, target)
        sync_folder(target.parent)


def _replace_in_steps(temporary: Path, target: Path) -> None:
    import shutil

    old = temporary.with_name(temporary.name + _OLD)
    descriptor = os.open(target, os.O_RDONLY | CLOEXEC)
    try:
        lock(descriptor)  # so that nobody undoes the next step
        target.replace(old)
        try:
            temporary.replace(target)
        except BaseException:
            old.replace(target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        os.close(descriptor)


def settle_folder(path: Path) -> Path:
    """Undo what a process did that was killed while it replaced the folder `path` in steps.

    Returns `path`, or where the folder is if it cannot be renamed.
    """
    try:
        if os.path.lexists(path):
            return path
        names = sorted(entry.name for entry in os.scandir(path.parent))
    except (OSError, ValueError):
        return path
    for name in names:
        match = re.fullmatch(_TEMPORARY, name)
        if match is None or not match[2] or match[1] != _mark(path.name):
            continue
        old = path.with_name(name)
        try:
            descriptor = os.open(old, os.O_RDONLY | NOFOLLOW | CLOEXEC)
        except OSError:
            continue
        try:
            if os.fstat(descriptor).st_uid != user() or lock(descriptor) is False:
                return old if old.is_dir() else path
            old.rename(path)
        except OSError:
            return old if old.is_dir() else path
        finally:
            os.close(descriptor)
        return path
    return path
