"""Folders that tasks share: on a file system that all machines see, or remote through fsspec.

A file appears in such a folder whole or not at all, and never changes afterwards. Two tasks may
write the same file at the same time, as long as both write the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from byteweld._atomic import naming, sync_folder
from byteweld._files import inside
from byteweld.corpus._remote import explained, is_remote, remote_system
from byteweld.errors import FormatError

_SCRATCH: Final = "scratch"
_BLOCK_BYTES: Final = 8 << 20


def open_folder(path: str | os.PathLike[str]) -> Folder:
    """Return the folder with a path, or the URL of one."""
    if is_remote(path) and not os.path.lexists(path):
        return RemoteFolder(os.fspath(path))
    return LocalFolder(Path(path).absolute())


class LocalFolder:
    """A folder on a file system: files by name; a name may have `/`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def folder(self, name: str) -> LocalFolder:
        """Return the folder with a name in this one."""
        return LocalFolder(inside(self.path, f"{name}/file").parent)

    def names(self) -> set[str]:
        """Return the names of the files in the folder itself; empty if there is no folder."""
        try:
            with os.scandir(self.path) as entries:
                return {entry.name for entry in entries if entry.is_file()}
        except FileNotFoundError:
            return set()

    def exists(self, name: str) -> bool:
        """Whether there is a file."""
        return self.size(name) is not None

    def size(self, name: str) -> int | None:
        """Return the size of a file; None if it does not exist."""
        try:
            return inside(self.path, name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of a file from `start` to `stop`."""
        with inside(self.path, name).open("rb") as file:
            file.seek(start)
            return file.read() if stop is None else file.read(stop - start)

    def write(self, name: str, data: bytes, *, sync: bool = False) -> None:
        """Write a file, or replace it; if asked, make sure it is on disk."""
        with self.scratch() as scratch:
            file = scratch / "file"
            with naming(self.path / name):
                file.write_bytes(data)
            self.put(file, name, sync=sync)

    def put(self, file: Path, name: str, *, sync: bool = False) -> None:
        """Move a file from a scratch folder to the folder; if asked, make sure it is on disk."""
        target = inside(self.path, name)
        with naming(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            if sync:
                with file.open("rb") as opened:
                    os.fsync(opened.fileno())
            file.replace(target)
        if sync:
            sync_folder(target.parent)

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        path = inside(self.path, name)
        with naming(path):
            path.unlink(missing_ok=True)
        if "/" in name:
            with contextlib.suppress(OSError):  # other files are in it
                path.parent.rmdir()

    def remove_all(self) -> None:
        """Remove the folder with all files in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield an empty folder on a local disk for files that are not complete."""
        # In the folder itself, so that a file is moved by renaming it.
        parent = self.path / _SCRATCH
        with naming(parent):
            parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(dir=parent))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    @contextlib.contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """Yield the path of a file that has its content: itself, or a copy that is removed."""
        yield inside(self.path, name)


class RemoteFolder:
    """A folder of an object store, or of another file system of fsspec; as a LocalFolder.

    An object appears when all of it is uploaded. Credentials come from the environment, as the file
    system finds them; nothing here has or keeps any.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def __str__(self) -> str:
        return self.url

    @contextlib.contextmanager
    def _at(self, name: str) -> Iterator[tuple[Any, str]]:
        """Yield the file system and the path in it; errors name the URL of the file."""
        url = f"{self.url}/{name}"
        found = remote_system(url)
        with explained(url):
            yield found

    def folder(self, name: str) -> RemoteFolder:
        return RemoteFolder(f"{self.url}/{name}")

    def names(self) -> set[str]:
        system, path = remote_system(self.url)
        with explained(self.url):
            system.invalidate_cache()
            try:
                found = system.ls(path, detail=True)
            except FileNotFoundError:
                return set()
        return {entry["name"].rsplit("/", 1)[-1] for entry in found if entry["type"] == "file"}

    def exists(self, name: str) -> bool:
        return self.size(name) is not None

    def size(self, name: str) -> int | None:
        with self._at(name) as (system, path):
            system.invalidate_cache()
            try:
                found = system.info(path)
            except FileNotFoundError:
                return None
        return int(found["size"]) if found["type"] == "file" else None

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        with self._at(name) as (system, path):
            data: bytes = system.cat_file(path, start=start, end=stop)
            return data

    def write(self, name: str, data: bytes, *, sync: bool = False) -> None:
        with self._at(name) as (system, path):
            system.pipe_file(path, data)

    def put(self, file: Path, name: str, *, sync: bool = False) -> None:
        with self._at(name) as (system, path):
            system.put_file(str(file), path)

    def remove(self, name: str) -> None:
        with self._at(name) as (system, path), contextlib.suppress(FileNotFoundError):
            system.rm_file(path)

    def remove_all(self) -> None:
        system, path = remote_system(self.url)
        with contextlib.suppress(Exception):  # what is left is in the way of nothing
            system.rm(path, recursive=True)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="byteweld-") as made:
            yield Path(made)

    @contextlib.contextmanager
    def local(self, name: str) -> Iterator[Path]:
        with self.scratch() as scratch:
            copy = scratch / "file"
            with self._at(name) as (system, path):
                system.get_file(path, str(copy))
            yield copy


Folder = LocalFolder | RemoteFolder


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file another name without copying it, if that is possible."""
    try:
        target.hardlink_to(source)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def read_blocks(folder: Folder, name: str, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `stop`, some at a time."""
    while start < stop:
        block = folder.read(name, start, min(stop, start + _BLOCK_BYTES))
        if not block:
            raise FormatError(f"ends at byte {start}, before {stop}", path=f"{folder}/{name}")
        yield block
        start += len(block)
