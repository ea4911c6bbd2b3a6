"""Saving and reading files that belong together: old or new, never a mixture.

`write_together` writes several files of one folder, `write_atomic` one. Killed at any moment, what
`read_together` reads afterwards is all of the old files or all of the new ones:

1. `.byteweld-journal-USER` is created in the folder and locked: one save of a user at a time.
2. Each file is written to a temporary file next to its target, and synced.
3. The journal is written: for each target its temporary file, and the SHA-256 of the old and the
   new content. From here on the new files count; its own checksum tells a complete journal.
4. The temporary files are renamed, the main file (the last) missing until the end, so that a
   program that knows no journals finds it missing rather than with the wrong files beside it.
5. The journal is removed.

Whoever reads or saves next completes a journal that it finds after step 3, and removes one from
before. A reader that may not write reads the files as if it had: through the journal. If a target
is neither old nor new by then, somebody else has written it, and the journal is dropped.

A journal is data like any other file. It can name only files of its own folder: temporary ones of
the right name, owner and content that become, or links and files with exactly the stated content
that are replaced or removed. It is completed only by the user to whom it belongs, and read through
only if that is also the owner of the file that is read, or root.

A single file needs no journal to be atomic, only the lock, except for a new one where the file
system has neither a rename that keeps an existing file nor hard links.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from byteweld._atomic import (
    CLOEXEC,
    NOFOLLOW,
    PREFIX,
    Temporary,
    exchange,
    is_temporary,
    lock,
    naming,
    new_folder,
    publish,
    remove_stale,
    sync_folder,
    user,
    write_all,
    write_synced,
)
from byteweld._files import check_replaceable, exists, read_descriptor, read_regular, sha256
from byteweld.errors import ByteweldError

NO_FILES: Final[Mapping[Path, bytes]] = MappingProxyType({})
_FORMAT: Final = "byteweld journal 1"
_MAX_JOURNAL_BYTES: Final = 1 << 16
_MAX_KEPT_BYTES: Final = 1 << 30  # an old file that is larger cannot be restored
_WAIT_SECONDS: Final = 10.0  # for another process that is saving
_PAUSE_SECONDS: Final = 0.005
_TRIES: Final = 20  # to read files that another process replaces

_Result = TypeVar("_Result")


def journal_path(folder: Path, owner: int | None = None) -> Path:
    """Return the path of a user's journal in a folder; of this user's by default."""
    return folder / f"{PREFIX}journal-{user() if owner is None else owner}"


class _Renaming(NamedTuple):
    """An entry of a journal: one file; `temporary` and `new` are None if it is removed."""

    name: str
    temporary: str | None
    old: str | None  # digest; None if there was no such file
    new: str | None


# ---------------------------------------------------------------------- writing


def write_atomic(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = False) -> None:
    """Write one file, which appears whole or not at all.

    Raises FileExistsError if `path` exists and `overwrite` is False, without touching anything.
    An overwritten file keeps its permissions; a link is replaced, not what it points to.
    """
    write_together({Path(path): data}, overwrite=overwrite)


def write_together(
    files: Mapping[Path, bytes | None], *, overwrite: bool, merged: Collection[Path] = ()
) -> None:
    """Write files of one folder, all or none; those without content are removed.

    The main file comes last. Only the files in `merged` may exist without `overwrite`: their new
    content includes the old.
    """
    main = list(files)[-1]
    folder = main.parent
    for path in files:
        check_replaceable(path, overwrite=overwrite or path in merged)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{main} cannot be written: there is no folder {folder}; create it first"
        )
    with contextlib.ExitStack() as stack:
        with naming(main):
            journal = stack.enter_context(_locked_journal(folder))
        remove_stale(folder, [path.name for path in files])
        writes = []
        for path, data in files.items():
            replaces = overwrite or path in merged
            check_replaceable(path, overwrite=replaces)  # again: it may have appeared
            temporary = None
            if data is not None:
                made = Temporary(path, data, _mode_to_keep(path))
                stack.callback(made.close)
                temporary = made.path
            writes.append(_Write(path, data, temporary, replaces))
        if len(writes) == 1 and _put(path, temporary, replaces=replaces, journaled=False):
            sync_folder(folder)
        else:
            _put_all(writes, journal)


class _Write(NamedTuple):
    """A file to write or, without data, to remove."""

    path: Path
    data: bytes | None
    temporary: Path | None
    replaces: bool  # whether it may exist


def _mode_to_keep(path: Path) -> int | None:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None
    return stat.S_IMODE(mode) & 0o777 if stat.S_ISREG(mode) else None


def _put(path: Path, temporary: Path | None, *, replaces: bool, journaled: bool = True) -> bool:
    """Rename a temporary file to its target, or remove the target if there is none.

    Where a rename cannot keep a file that exists, an empty file takes the name first; that takes a
    journal, and without one the result is False.
    """
    with naming(path):
        if temporary is None:
            path.unlink(missing_ok=True)
        elif replaces:
            temporary.replace(path)
        else:
            try:
                if publish(temporary, path):
                    return True
                if not journaled:
                    return False
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOEXEC, 0o666))
            except FileExistsError:
                raise exists(path) from None
            temporary.replace(path)
    return True


def _put_all(writes: Sequence[_Write], journal: int) -> None:
    """Write the journal, then rename; if a rename fails, restore the old files."""
    kept = {write.path: _keep(write.path) for write in writes}
    entries = [
        _Renaming(
            write.path.name,
            None if write.temporary is None else write.temporary.name,
            _digest(write.path),
            None if write.data is None else sha256(write.data),
        )
        for write in writes
    ]
    for write, entry in zip(writes, entries, strict=True):
        if entry.old is not None and not write.replaces:
            raise exists(write.path)  # it has appeared since
    main = writes[-1].path
    with naming(main):
        write_all(journal, _render(entries))
        os.fsync(journal)
    sync_folder(main.parent)
    done: list[Path] = []
    try:
        if len(writes) > 1 and entries[-1].old is not None:
            done.append(main)
            main.unlink()
        for path, _, temporary, replaces in writes:
            done.append(path)
            _put(path, temporary, replaces=replaces)
        sync_folder(main.parent)
    except BaseException as error:
        # What exists is somebody else's.
        _restore(done[:-1] if isinstance(error, FileExistsError) else done, kept)
        raise


def _keep(path: Path) -> bytes | str | None:
    """Return the content of a file to restore; a str is what a link points to."""
    try:
        if path.is_symlink():
            return str(path.readlink())
        return read_regular(path, _MAX_KEPT_BYTES)
    except (OSError, ByteweldError):
        return None


def _restore(done: Sequence[Path], kept: Mapping[Path, bytes | str | None]) -> None:
    for path in dict.fromkeys(reversed(done)):
        old = kept[path]
        with contextlib.suppress(OSError):
            if isinstance(old, bytes):
                with contextlib.closing(Temporary(path, old, _mode_to_keep(path))) as temporary:
                    temporary.path.replace(path)
            else:
                path.unlink(missing_ok=True)
                if old is not None:
                    path.symlink_to(old)


def write_folder(folder: Path, files: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Write files into a folder, which is created if missing; the main file comes last.

    A new folder appears with all of its files. An existing one that holds no others is exchanged
    for a new one, so that no program can see half of it. Files of others stay: then, and where
    folders cannot be exchanged, `write_together` writes the files.
    """
    paths = {folder / name: data for name, data in files.items()}
    is_new = not os.path.lexists(folder)
    if not is_new:
        if not folder.is_dir():
            raise FileExistsError(f"{folder} exists and is not a folder; choose another name")
        for path in paths:
            check_replaceable(path, overwrite=overwrite)
    real = folder.resolve()
    if is_new or _is_exchangeable(real, files):
        remove_stale(real.parent, [real.name])
        try:
            if _put_folder(real, files, is_new=is_new):
                return
        except PermissionError:
            if is_new:
                raise
    write_together(paths, overwrite=overwrite)


def _is_exchangeable(folder: Path, names: Collection[str]) -> bool:
    """Whether a folder has files, only files of these names, and is not the working directory."""
    found = list(os.scandir(folder))
    if not found or folder == Path.cwd():
        return False
    return all(entry.name in names and entry.is_file(follow_symlinks=False) for entry in found)


def _put_folder(folder: Path, files: Mapping[str, bytes], *, is_new: bool) -> bool:
    """Write a folder next to its place, and put it there; False if it cannot be exchanged."""
    with new_folder(folder) as made:
        if not is_new:
            made.chmod(stat.S_IMODE(folder.stat().st_mode))
        for name, data in files.items():
            mode = None if is_new else _mode_to_keep(folder / name)
            with naming(folder / name), (made / name).open("xb") as file:
                write_synced(file.fileno(), data, mode)
        sync_folder(made)
        with naming(folder):
            if not is_new and not exchange(made, folder):
                return False
            try:
                if is_new:
                    made.rename(folder)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise exists(folder) from None  # it has appeared since
                raise
        sync_folder(folder.parent)
    return True


# ---------------------------------------------------------------------- journals


@contextlib.contextmanager
def _locked_journal(folder: Path) -> Iterator[int]:
    """Yield the descriptor of a new, empty, locked journal, after completing an old one."""
    path = journal_path(folder)
    while True:
        if not _settle(folder, _WAIT_SECONDS):
            raise PermissionError(
                f"{path} belongs to another process that is saving to this folder, "
                "or to another user; wait for it, or remove this file"
            )
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NOFOLLOW | CLOEXEC
            descriptor = os.open(path, flags, 0o666)
        except FileExistsError:
            continue
        # Another process may have found it before it was locked, and removed it.
        if lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)
    try:
        yield descriptor
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def complete(path: Path) -> None:
    """Complete an interrupted save of a file or folder, if there is one and it is possible here.

    For checks that a file exists; `read_together` does the same.
    """
    _settle(path if path.is_dir() else path.parent, _PAUSE_SECONDS)


def settle(folder: Path) -> None:
    """Complete or remove what killed processes left in a folder: its journal and temporaries."""
    _settle(folder, _PAUSE_SECONDS)
    remove_stale(folder)


def _settle(folder: Path, wait_seconds: float) -> bool:
    """Complete or remove this user's journal; False if that is not possible here and now."""
    end = time.monotonic() + wait_seconds
    while (is_settled := _settle_once(folder)) is None:
        if time.monotonic() >= end:
            return False
        time.sleep(_PAUSE_SECONDS)
    return is_settled


def _settle_once(folder: Path) -> bool | None:
    """Do the same without waiting; None if another process is saving."""
    path = journal_path(folder)
    try:
        with _open_journal(path, os.O_RDWR, user()) as descriptor:
            is_free = lock(descriptor)
            if is_free is None:  # as long as a process would wait
                is_free = time.time() - os.fstat(descriptor).st_mtime > _WAIT_SECONDS
            if not is_free:
                return None
            if os.fstat(descriptor).st_nlink:
                _complete(folder, _parse(_read(descriptor)))
                path.unlink(missing_ok=True)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:  # read-only, a link, or another user's
        return False
    return True


@contextlib.contextmanager
def _open_journal(path: Path, flags: int, owner: int) -> Iterator[int]:
    descriptor = os.open(path, flags | NOFOLLOW | CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
            raise PermissionError(errno.EPERM, "not a journal of that user", str(path))
        yield descriptor
    finally:
        os.close(descriptor)


def _complete(folder: Path, entries: Sequence[_Renaming]) -> None:
    """Finish the renames of a journal; if a file is neither old nor new, drop it instead."""
    found = [(entry, _digest(folder / entry.name)) for entry in entries]
    todo = [(entry, now) for entry, now in found if now != entry.new]
    if all(_may_follow(now, entry) and _has_new(folder, entry) for entry, now in todo):
        for entry, _ in todo:
            target = folder / entry.name
            temporary = None if entry.temporary is None else folder / entry.temporary
            replaces = entry.old is not None or os.path.lexists(target)
            with contextlib.suppress(FileExistsError):
                _put(target, temporary, replaces=replaces)
        sync_folder(folder)
    remove_stale(folder, [entry.name for entry in entries])


def _may_follow(now: str | None, entry: _Renaming) -> bool:
    """Whether the new file may replace what is there: the old one, or what step 4 leaves."""
    return now in (entry.old, None) or (entry.old is None and now == sha256(b""))


def _has_new(folder: Path, entry: _Renaming) -> bool:
    if entry.temporary is None:
        return True
    file = folder / entry.temporary
    try:
        status = file.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == user() and _digest(file) == entry.new


def _digest(path: Path) -> str | None:
    """Return the SHA-256 of a file, or of what a link points to; None if there is neither.

    A file larger than any of ours is identified without reading it.
    """
    import hashlib

    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return "link " + sha256(os.fsencode(path.readlink()))
        if not stat.S_ISREG(status.st_mode):
            return "other"
        if status.st_size > _MAX_KEPT_BYTES:
            return f"large {status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
        descriptor = os.open(path, os.O_RDONLY | NOFOLLOW | CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123  # links are not followed
        return hashlib.file_digest(file, "sha256").hexdigest()


def _render(entries: Sequence[_Renaming]) -> bytes:
    import json

    body = json.dumps([_FORMAT, *entries]).encode() + b"\n"
    return body + sha256(body).encode() + b"\n"


def _parse(data: bytes) -> list[_Renaming]:
    """Return the entries of a journal; none if it is incomplete or not one of ours."""
    import json  # slow to import, and journals are rare

    body, _, check = data.removesuffix(b"\n").rpartition(b"\n")
    body += b"\n"
    if check != sha256(body).encode():
        return []
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, list) or found[:1] != [_FORMAT]:
        return []
    entries = [_entry(item) for item in found[1:]]
    names = {entry.name for entry in entries if entry is not None}
    return [entry for entry in entries if entry] if len(names) == len(entries) else []


def _entry(item: Any) -> _Renaming | None:
    if not isinstance(item, list) or len(item) != len(_Renaming._fields):
        return None
    if not all(isinstance(field, str | None) for field in item) or not isinstance(item[0], str):
        return None
    entry = _Renaming(*item)
    name, temporary = entry.name, entry.temporary
    try:
        is_name = b"\0" not in os.fsencode(name) and Path(name).name == name
    except ValueError:
        return None
    is_sound = (
        is_name
        and name not in ("", "..")
        and not name.startswith(PREFIX)
        and (temporary is None) == (entry.new is None)
        and (temporary is None or is_temporary(temporary, name))
    )
    return entry if is_sound else None


def _read(descriptor: int) -> bytes:
    return read_descriptor(descriptor, os.fstat(descriptor).st_size, _MAX_JOURNAL_BYTES)


# ---------------------------------------------------------------------- reading


def read_together(
    path: Path, files: Callable[[Path], Sequence[Path]], read: Callable[[Path], _Result]
) -> _Result:
    """Return `read(path)`; the files that it reads are all old or all new.

    `files` returns those files for a path, in one folder: that of the file `path`, or the folder
    `path` itself. If they change while they are read, everything is read again, a few times.
    """
    for _ in range(_TRIES):
        folder = path if path.is_dir() else path.parent
        _settle(folder, _PAUSE_SECONDS)
        entries = _pending(folder, path)
        if entries:
            with _view(path, folder, files(path), entries) as seen:
                if seen is not None:
                    return _read_as(path, folder, seen, read)
            time.sleep(_PAUSE_SECONDS)  # a save that is just finishing
            continue
        those = files(path)
        before = _stamps(those)
        try:
            result = read(path)
        except (OSError, ByteweldError):
            if _is_unchanged(folder, path, those, before):
                raise
            continue
        if _is_unchanged(folder, path, those, before):
            return result
    raise OSError(errno.EAGAIN, "the file keeps changing while it is read; try again", str(path))


def _stamps(files: Sequence[Path]) -> list[tuple[int, ...] | None]:
    stamps: list[tuple[int, ...] | None] = []
    for file in files:
        try:
            status = file.stat()
        except (OSError, ValueError):
            stamps.append(None)
            continue
        times = (status.st_mtime_ns, status.st_ctime_ns)
        stamps.append((status.st_dev, status.st_ino, status.st_size, *times))
    return stamps


def _is_unchanged(
    folder: Path, path: Path, files: Sequence[Path], before: list[tuple[int, ...] | None]
) -> bool:
    # In this order: a save that finishes in between has changed the files.
    return not _pending(folder, path) and _stamps(files) == before


def _pending(folder: Path, path: Path) -> list[_Renaming]:
    """Return the entries of a journal that counts for a reader; usually there is none."""
    for owner in {user(), 0, _owner(path, folder)}:
        entries = _entries_of(folder, owner)
        if entries and all(
            entry.new == now or _may_follow(now, entry)
            for entry in entries
            for now in [_digest(folder / entry.name)]
        ):
            return entries
    return []


def _owner(path: Path, folder: Path) -> int:
    """Return the owner of a file or, if it is missing, of its folder."""
    for place in (path, folder):
        with contextlib.suppress(OSError, ValueError):
            return place.stat().st_uid
    return 0


def _entries_of(folder: Path, owner: int) -> list[_Renaming]:
    try:
        with _open_journal(journal_path(folder, owner), os.O_RDONLY, owner) as descriptor:
            return _parse(_read(descriptor))
    except (OSError, ValueError):
        return []


@contextlib.contextmanager
def _view(
    path: Path, folder: Path, files: Sequence[Path], entries: Sequence[_Renaming]
) -> Iterator[Path | None]:
    """Yield a copy of `path` as it will be once the journal is completed; None if it is by now."""
    import tempfile

    known = {entry.name: entry for entry in entries}
    with tempfile.TemporaryDirectory(prefix="byteweld-") as copy:
        for file in files:
            entry = known.get(file.name)
            if entry is None:
                if file.is_file():
                    (Path(copy) / file.name).symlink_to(file.absolute())
                continue
            if entry.temporary is None:
                continue
            data = _content(folder, entry)
            if data is None:
                yield None
                return
            (Path(copy) / file.name).write_bytes(data)
        yield Path(copy) if path == folder else Path(copy) / path.name


def _content(folder: Path, entry: _Renaming) -> bytes | None:
    for name in (entry.temporary, entry.name):
        try:
            data = read_regular(folder / str(name), _MAX_KEPT_BYTES)
        except (OSError, ByteweldError):
            continue
        if sha256(data) == entry.new:
            return data
    return None


def _read_as(path: Path, folder: Path, seen: Path, read: Callable[[Path], _Result]) -> _Result:
    """Return `read(seen)`; errors name `path`."""
    try:
        return read(seen)
    except (OSError, ByteweldError) as error:
        here = str(seen if path == folder else seen.parent)
        error.args = tuple(
            item.replace(here, str(folder)) if isinstance(item, str) else item
            for item in error.args
        )
        for name in ("path", "message", "filename"):
            value = getattr(error, name, None)
            if isinstance(value, str):
                setattr(error, name, value.replace(here, str(folder)))
        raise
