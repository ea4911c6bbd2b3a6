"""Remote files through fsspec: find them, and open them as streams that the engine reads."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from byteweld.corpus._datasets import DATASET_MARKS, MAX_BYTES, dataset_files
from byteweld.errors import CorpusError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_GLOB_CHARACTERS = frozenset("*?[")
_BLOCK_BYTES = 4 << 20
# What to install for a protocol that is not in fsspec itself.
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "hf": "hf"}
# What tells two versions of a file apart, in the terms of several file systems.
_VERSION_KEYS = ("ETag", "etag", "blob_id", "mtime", "LastModified", "last_modified", "updated")


class RemoteFile(str):
    """The URL of a remote file, with its size and what identifies its content, if known."""

    __slots__ = ("size", "version")

    size: int | None
    version: str | None

    def __new__(cls, url: str, size: int | None = None, version: str | None = None) -> Self:
        """Make one of what its file system says."""
        self = super().__new__(cls, url)
        self.size = size
        self.version = version
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (RemoteFile, (str(self), self.size, self.version))


def is_remote(source: object) -> bool:
    """Whether a source is the URL of a remote file, folder or glob."""
    return isinstance(source, str) and _SCHEME.match(source) is not None


def check_local(path: str | os.PathLike[str], hint: str = "") -> None:
    """Raise if the path of a result is a URL, of which a local folder would be made."""
    if is_remote(path) and not os.path.lexists(path):
        raise ValueError(f"{path} is a URL, but the result is a local folder; choose one{hint}")


def base_name(url: str) -> str:
    """Return the name of a remote file; what follows `?` or `#` in a web address is not part of it.

    >>> base_name("https://host/a/b.parquet?download=true")
    'b.parquet'
    """
    if _is_web(url):
        url = re.split("[?#]", url, maxsplit=1)[0]
    return url.rsplit("/", 1)[-1]


def engine_path(url: str) -> str:
    """Return a URL that ends in the name of its file, which tells the engine what is in it.

    A fragment is not sent to the server.
    """
    name = base_name(url)
    return url if url.endswith("/" + name) else f"{url}#/{name}"


def find_remote(
    url: str, wanted: Callable[[str], bool], skipped: Counter[str], extension: Callable[[str], str]
) -> list[RemoteFile]:
    """Return the files of a URL: itself, all below a folder, or all that match a glob."""
    system, path = remote_system(url)
    is_web = _is_web(url)
    is_web_folder = is_web and path.endswith("/")  # nothing else tells
    with explained(url):
        globs = _GLOB_CHARACTERS - {"?"} if is_web else _GLOB_CHARACTERS
        info = None
        if not is_web_folder:
            try:
                info = system.info(path)
            except IsADirectoryError:
                pass
            except FileNotFoundError as error:
                if is_web and not globs.intersection(path) and _failed_request(error) is not None:
                    raise
        if info is not None and info["type"] != "directory":
            return [_file(system, info, url)]
        if info is None and globs.intersection(path):
            found = system.glob(path, detail=True)
            names = [name for name, info in found.items() if info["type"] == "file"]
            if not names:
                raise FileNotFoundError(f"no file matches {url!r}")
            return [_file(system, found[name]) for name in sorted(names, key=os.fsencode)]
        if info is None and not is_web_folder:
            raise FileNotFoundError(f"{url}: no such file or folder")
        found = system.find(path, detail=True)
        datasets = _datasets(system, found)
        names = []
        for name, info in found.items():
            if info.get("size") == 0 or info["type"] != "file":
                continue
            # A page links to other folders, too, and to itself in another order.
            if is_web and not (name.startswith(path) and base_name(name) and "/../" not in name):
                continue
            if any(folder in datasets for folder in _folders(name)):
                continue
            if wanted(base_name(name)):
                names.append(name)
            else:
                skipped[extension(base_name(name))] += 1
        # A dataset's files stay in its order, at the place of its folder.
        places = {name: (os.fsencode(name), 0) for name in names}
        for folder, files in datasets.items():
            places |= {name: (os.fsencode(folder + "/"), at) for at, name in enumerate(files)}
        return [_file(system, found[name]) for name in sorted(places, key=places.__getitem__)]


def _datasets(system: Any, found: dict[str, Any]) -> dict[str, list[str]]:
    """Return the files of each Hugging Face dataset among the files, by its folder."""
    datasets: dict[str, list[str]] = {}
    listed: dict[str, list[str]] = {}
    for name in found:
        if base_name(name) in DATASET_MARKS:
            listed[name.rpartition("/")[0]] = []
    for name in found if listed else ():
        folder, _, last = name.rpartition("/")
        if folder in listed:
            listed[folder].append(last)
    for folder, names in listed.items():

        def read(name: str, folder: str = folder) -> bytes:
            data: bytes = system.cat_file(f"{folder}/{name}", start=0, end=MAX_BYTES)
            return data

        files = dataset_files(system.unstrip_protocol(folder), names, read)
        if files is not None:
            datasets[folder] = [f"{folder}/{name}" for name in files]
    return datasets


def _folders(name: str) -> Iterator[str]:
    """Yield the folders that a file is in."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def describe(url: str) -> RemoteFile:
    """Return a URL with its size and version."""
    if isinstance(url, RemoteFile):
        return url
    system, path = remote_system(url)
    with explained(url):
        return _file(system, system.info(path), url)


def list_again(urls: Iterable[str]) -> None:
    """List the folders of remote files again: file systems remember what they have seen."""
    for folder in {url.rpartition("/")[0] for url in urls if has_ranges(url)}:
        system, path = remote_system(folder)
        with contextlib.suppress(Exception):  # who needs a file of it will be told
            system.invalidate_cache(path)
            system.ls(path, detail=True)


def read_remote(url: str, start: int, stop: int) -> bytes:
    """Return the bytes of a remote file from `start` to `stop`, fewer at its end."""
    system, path = remote_system(url)
    with explained(url):
        data: bytes = system.cat_file(path, start=start, end=stop)
    return data


@contextlib.contextmanager
def open_remote(url: str) -> Iterator[RemoteTable]:
    """Open a remote file that can be read at any offset."""
    system, path = remote_system(url)
    with explained(url):
        file = system.open(path, "rb", block_size=_BLOCK_BYTES)
    with file:
        yield RemoteTable(url, file)


class RemoteTable:
    """A remote file that can be read at any offset; its errors name it."""

    closed = False

    def __init__(self, url: str, file: Any) -> None:
        self._url = url
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        with explained(self._url):
            data: bytes = self._file.read(size)
            return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset and return it."""
        with explained(self._url):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Return the offset."""
        return int(self._file.tell())


class RemoteStream:
    """A remote file, read once from an offset to another; the next block is prefetched."""

    def __init__(self, url: str, start: int = 0, stop: int | None = None) -> None:
        self._url = url
        self._read = start
        system, path = remote_system(url)
        # Not every web server has ranges: there, one request gets the whole file.
        block_bytes = 0 if _is_web(url) else _BLOCK_BYTES
        with explained(url):
            self._file = system.open(path, "rb", block_size=block_bytes, cache_type="none")
            if start:
                self._file.seek(start)
        self._stop = stop
        self._size: int | None = stop or getattr(self._file, "size", None)
        self._thread = ThreadPoolExecutor(1, "byteweld-remote")
        self._fetch()

    def _fetch(self) -> None:
        """Start to read the next block."""
        left = _BLOCK_BYTES if self._stop is None else min(_BLOCK_BYTES, self._stop - self._read)
        self._next = self._thread.submit(self._file.read, left)

    def read(self) -> bytes:
        """Return the next block; it is empty at the end."""
        try:
            with explained(self._url):
                block: bytes = self._next.result()
            self._read += len(block)
            if block:
                self._fetch()
                return block
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        self._thread.shutdown(wait=False)
        self._file.close()
        if self._size is not None and self._read != self._size:
            raise CorpusError(
                f"the file ended after {self._read} of {self._size} bytes", path=self._url
            )
        return block


def has_ranges(url: str) -> bool:
    """Whether a remote file can be read from any offset on; not every web server does that."""
    return not _is_web(url)


def _is_web(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def remote_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    match = _SCHEME.match(url)
    scheme = match[1].lower() if match else ""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(_install(url, "fsspec", _EXTRAS.get(scheme, "remote"))) from error
    with explained(url):
        try:
            system, path = url_to_fs(url)
        except ImportError as error:
            raise ImportError(
                _install(url, f"a package for {scheme}://", _EXTRAS.get(scheme, "remote"))
            ) from error
        except ValueError as error:
            raise CorpusError(f"{error}; expected s3, gs, hf, https, ...", path=url) from error
    return system, str(path)


def _install(url: str, what: str, extra: str) -> str:
    return f"{url}: reading it needs {what}; install it with: pip install 'byteweld[{extra}]'"


def _file(system: Any, info: dict[str, Any], url: str | None = None) -> RemoteFile:
    name = url if url is not None else system.unstrip_protocol(info["name"])
    size = info.get("size")
    version = next((str(info[key]) for key in _VERSION_KEYS if info.get(key) is not None), None)
    return RemoteFile(name, size if isinstance(size, int) else None, version)


def _failed_request(error: FileNotFoundError) -> Exception | None:
    """Return why a web request failed, which fsspec always calls a missing file; None if it is."""
    cause = error.__cause__
    if not isinstance(cause, Exception) or getattr(cause, "status", None) in (404, 410):
        return None
    return cause


@contextlib.contextmanager
def explained(url: str) -> Iterator[None]:
    """Name the file in the errors of a file system, each of which has its own."""
    try:
        yield
    except (CorpusError, ImportError, MemoryError):
        raise
    except FileNotFoundError as error:
        failure = _failed_request(error) if _is_web(url) else None
        if failure is not None:
            raise _unreadable(url, failure) from error
        if url in str(error):
            raise
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url) from error
    except Exception as error:
        raise _unreadable(url, error) from error


def _unreadable(url: str, error: Exception) -> OSError:
    """Return the error of a file that may exist."""
    if isinstance(error, PermissionError) or getattr(error, "status", None) in (401, 403):
        return PermissionError(errno.EACCES, str(error) or "permission denied", url)
    reason = str(error).strip() or type(error).__name__
    return OSError(errno.EIO, f"cannot be read: {reason}", url)
