"""Remote files through fsspec: find them, and open them as streams that the engine reads."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Self

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


def base_name(url: str) -> str:
    """Return the name of a remote file; what follows `?` or `#` in a web address is not part of it.

    >>> base_name("https://host/a/b.parquet?download=true")
    'b.parquet'
    """
    if url.startswith(("http://", "https://")):
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
    system, path = _system(url)
    is_web = url.startswith(("http://", "https://"))
    with _explained(url):
        info = None
        if not (is_web and path.endswith("/")):  # on the web, only that tells a folder
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                info = system.info(path)
        if info is not None and info["type"] != "directory":
            return [_file(system, info, url)]
        globs = _GLOB_CHARACTERS - {"?"} if is_web else _GLOB_CHARACTERS
        if info is None and globs.intersection(path):
            found = system.glob(path, detail=True)
            names = [name for name, info in found.items() if info["type"] == "file"]
            if not names:
                raise FileNotFoundError(f"no file matches {url!r}")
            return [_file(system, found[name]) for name in _sorted(names)]
        if info is None and not is_web:
            raise FileNotFoundError(f"{url}: no such file or folder")
        found = system.find(path, detail=True)
        names = []
        for name, info in found.items():
            if info.get("size") == 0 or info["type"] != "file":
                continue
            if wanted(base_name(name)):
                names.append(name)
            else:
                skipped[extension(base_name(name))] += 1
        return [_file(system, found[name]) for name in _sorted(names)]


def describe(url: str) -> RemoteFile:
    """Return a URL with its size and version."""
    if isinstance(url, RemoteFile):
        return url
    system, path = _system(url)
    with _explained(url):
        return _file(system, system.info(path), url)


@contextlib.contextmanager
def open_remote(url: str) -> Iterator[Any]:
    """Open a remote file that can be read at any offset."""
    system, path = _system(url)
    with _explained(url):
        file = system.open(path, "rb", block_size=_BLOCK_BYTES)
    with file:
        yield file


class RemoteStream:
    """A remote file, read once from its start to its end; the next block is fetched meanwhile."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._read = 0
        system, path = _system(url)
        with _explained(url):
            self._file = system.open(path, "rb", block_size=_BLOCK_BYTES, cache_type="background")
        self._size: int | None = getattr(self._file, "size", None)

    def read(self) -> bytes:
        """Return the next block; it is empty at the end."""
        with _explained(self._url):
            block: bytes = self._file.read(_BLOCK_BYTES)
        self._read += len(block)
        if not block:
            self._file.close()
            if self._size is not None and self._read != self._size:
                raise CorpusError(
                    f"the file ended after {self._read} of {self._size} bytes", path=self._url
                )
        return block


def _system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    match = _SCHEME.match(url)
    scheme = match[1].lower() if match else ""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(_install(url, "fsspec", _EXTRAS.get(scheme, "remote"))) from error
    with _explained(url):
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


def _sorted(names: list[str]) -> list[str]:
    return sorted(names, key=os.fsencode)


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Name the file in the errors of a file system, each of which has its own."""
    try:
        yield
    except (CorpusError, ImportError, MemoryError):
        raise
    except FileNotFoundError as error:
        if url in str(error):
            raise
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url) from error
    except PermissionError as error:
        raise PermissionError(errno.EACCES, str(error) or "permission denied", url) from error
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        raise OSError(f"{url}: cannot be read: {reason}") from error
