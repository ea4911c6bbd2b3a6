"""fetch(): downloads a public vocabulary into byteweld's folder, where it is then found by name.

This is the only code of byteweld that connects to an address the user did not type, and it runs
only when it is called: by `byteweld.fetch` and `byteweld fetch`. The table FETCHABLE says what is
downloaded from where: no more bytes are read than it declares, and nothing is written unless they
have the SHA-256 it declares. So a server, a proxy or a mirror can withhold a file, not change it.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import ipaddress
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, NoReturn, Self
from urllib.parse import SplitResult, urlsplit

from byteweld._files import check_file, read_regular
from byteweld._places import is_model_name, own_folder
from byteweld._saves import complete, write_atomic
from byteweld.encodings import find_model_encoding
from byteweld.errors import FetchError, FormatError, nearest
from byteweld.known_encodings import FETCHABLE, PublicFile

MIRROR: Final = "BYTEWELD_MIRROR"
TIMEOUT_SECONDS: Final = 30.0
MAX_TIMEOUT_SECONDS: Final = 86_400
_BLOCK_BYTES: Final = 1 << 16
_LEAST_BYTES_PER_SECOND: Final = 1000  # on average; a server may send a byte now and then forever

Progress = Callable[[int], None]


def fetch(
    name: str,
    *,
    overwrite: bool = False,
    timeout: float = TIMEOUT_SECONDS,
    progress: Progress | None = None,
) -> Path:
    """Download a public vocabulary into byteweld's folder, and return the path of its file.

    Then `byteweld.load(name)`, `byteweld.get_encoding(name)` and `-t name` find it. A file that is
    there already and intact is not downloaded again, unless `overwrite`.

    The folder is `vocabularies` in BYTEWELD_HOME or, by default, in the user's data folder. With
    BYTEWELD_MIRROR=https://host/path, files come from there. Proxies are those of HTTPS_PROXY and
    NO_PROXY. `byteweld fetch` lists the names.

    Args:
        name: one of the names that `byteweld fetch` lists.
        overwrite: replace a file that is there already.
        timeout: how long to wait for the server each time, in seconds.
        progress: called with the number of bytes so far.

    Raises:
        FetchError: if the file cannot be downloaded, or is not the published one.
        FileExistsError: if the file there is another one.
        ValueError: if the name is unknown, or the timeout is not positive or more than a day.

    Examples:
        >>> byteweld.fetch("cl100k_base")  # doctest: +SKIP
        PosixPath('/home/me/.local/share/byteweld/vocabularies/cl100k_base.tiktoken')
        >>> byteweld.load("cl100k_base").encode("hello world")  # doctest: +SKIP
        [15339, 1917]
    """
    if not 0 < timeout <= MAX_TIMEOUT_SECONDS:
        raise ValueError(
            f"timeout is {timeout!r}; it must be a positive number of seconds, at most "
            f"{MAX_TIMEOUT_SECONDS} (a day)"
        )
    file, target = find_file(name), find_target(name)
    if not overwrite and is_fetched(name):
        return target
    check_file(target, overwrite=True)  # before the download, not after it
    data = _download(file, find_url(file), target, timeout, progress or (lambda done: None))
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, data, overwrite=True)
    return target


# ---------------------------------------------------------------------- names and paths


def find_file(name: str) -> PublicFile:
    """Return what is downloaded for a name; ValueError if there is none."""
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}; it must be the name of a vocabulary")
    if name in FETCHABLE:
        return FETCHABLE[name]
    raise ValueError(
        f"{name!r} is not a vocabulary to fetch; expected one of {', '.join(FETCHABLE)}"
        f"{_suggestion(name)}"
    )


def _suggestion(name: str) -> str:
    """Return the end of an error about a name that cannot be fetched: what to do instead."""
    encoding = find_model_encoding(name)
    if encoding is not None:
        return f"; the encoding of that model is {encoding!r}"
    for known, file in FETCHABLE.items():
        if file.source == f"huggingface.co/{name}":
            return f"; the vocabulary of that model is {known!r}"
    if "/" in name and is_model_name(name):
        return (
            f"; `hf download {name} tokenizer.json` puts the tokenizer of that model into Hugging "
            "Face's cache, where byteweld finds it"
        )
    return nearest(name, FETCHABLE)


def find_target(name: str) -> Path:
    """Return the path in byteweld's folder of what is downloaded for a name."""
    folder = own_folder()
    if folder is None:
        raise FileNotFoundError(
            "there is no home directory to keep vocabularies in; set BYTEWELD_HOME to a folder"
        )
    return folder / find_file(name).name


def is_fetched(name: str) -> bool:
    """Whether byteweld's folder has the file; FileExistsError if it has another of that name."""
    file, target = find_file(name), find_target(name)
    complete(target)
    if not os.path.lexists(target):
        return False
    try:
        found = hashlib.sha256(read_regular(target, file.size)).hexdigest()
    except (OSError, FormatError) as error:  # a folder, a device, a broken link, a larger file
        _other(target, error.message if isinstance(error, FormatError) else str(error.strerror))
    if found != file.sha256:
        _other(target, f"it has sha256 {found}, expected {file.sha256}")
    return True


def _other(target: Path, why: str) -> NoReturn:
    raise FileExistsError(
        f"{target} is damaged or another file ({why}); pass overwrite=True to replace it"
    )


def find_url(file: PublicFile) -> str:
    """Return where a file is downloaded from: its publisher, or the mirror of BYTEWELD_MIRROR."""
    mirror = os.environ.get(MIRROR, "")
    if not mirror:
        return file.url
    try:
        parts = urlsplit(mirror)
        is_usable = bool(parts.hostname) and not parts.query and not parts.fragment
        is_usable = is_usable and parts.port != 0 and _is_safe(parts)
        has_user = parts.username is not None or parts.password is not None
    except ValueError:
        is_usable = has_user = False
    if has_user:
        raise FetchError(
            f"{MIRROR} has a user name or password, which is not supported; leave it out"
        )
    if not is_usable:
        # A password is before an @, a signature after a question mark: neither is shown.
        shown = "not an address" if set(mirror) & set("@?#") else repr(mirror)
        raise FetchError(
            f"{MIRROR} is {shown}; expected https://host/path, or http:// on this machine "
            "(127.0.0.1, ::1, localhost)"
        )
    return f"{mirror.rstrip('/')}/{file.name}"


def _is_safe(parts: SplitResult) -> bool:
    """Whether an address is https, or http to this machine."""
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))


def _is_loopback(host: str | None) -> bool:
    if host is None or host == "localhost":
        return host is not None
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# ---------------------------------------------------------------------- downloading


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https only; from http on this machine, to http on this machine, too."""

    def redirect_request(
        self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request; FetchError if it would leave https."""
        fp.close()  # or urllib would read the whole body, however long it is
        new = urlsplit(newurl)
        if new.scheme != "https" and (req.type != "http" or not _is_safe(new)):
            raise FetchError(f"it redirects to {newurl[:200]!r}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Deadline:
    """Ends all connections that are made, after some seconds, whatever a server sends.

    A timeout limits each wait, and a server may keep sending headers, or interim answers.
    """

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        for opened in self._sockets:
            opened.close()

    def connect(self, *args: Any, **options: Any) -> socket.socket:
        """Connect a socket."""
        made = socket.create_connection(*args, **options)
        self._sockets.append(made.dup())  # TLS takes over the socket itself
        if self.is_over:
            self._end()
        return made

    def _end(self) -> None:
        self.is_over = True
        for opened in self._sockets:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)


def _opener(deadline: _Deadline) -> urllib.request.OpenerDirector:
    """Return an opener for http and https, without those for files, FTP and data: URLs."""

    def connection(kind: Any) -> Any:
        def make(*args: Any, **options: Any) -> Any:
            made = kind(*args, **options)
            made._create_connection = deadline.connect
            return made

        return make

    class Http(urllib.request.HTTPHandler):
        def http_open(self, req: Any) -> Any:
            return self.do_open(connection(http.client.HTTPConnection), req)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, req: Any) -> Any:
            return self.do_open(connection(http.client.HTTPSConnection), req)

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        Http(),
        Https(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def _download(
    file: PublicFile, url: str, target: Path, timeout: float, progress: Progress
) -> bytes:
    """Return the bytes of a file, whose SHA-256 is checked; FetchError says what to do by hand."""
    request = urllib.request.Request(
        url, headers={"Accept-Encoding": "identity", "User-Agent": "byteweld"}
    )
    seconds = timeout + file.size / _LEAST_BYTES_PER_SECOND
    deadline = _Deadline(seconds)
    try:
        with deadline, _opener(deadline).open(request, timeout=timeout) as response:
            data = _read(response, file.size, timeout, progress)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = _reason(error, timeout)
        if deadline.is_over:
            reason = f"the server did not send the file in {seconds:.0f} seconds"
        raise FetchError(
            f"{url}: {reason}; nothing was written. Check the network and the "
            f"proxy settings (HTTPS_PROXY), name a mirror with {MIRROR}, or download {file.url} by "
            f"hand and save it as {target}"
        ) from None
    found = hashlib.sha256(data).hexdigest()
    if found != file.sha256:
        raise FetchError(
            f"{url}: the file that was received has sha256 {found}; expected {file.sha256}, the "
            "published one; nothing was written. Something between here and its publisher changed "
            f"it: try another network, or name a mirror with {MIRROR}"
        )
    return data


def _read(response: Any, size: int, timeout: float, progress: Progress) -> bytes:
    """Read exactly `size` bytes of a response; FetchError if there are fewer or more."""
    if response.status != 200:
        raise FetchError(f"the server answered with status {response.status}, expected 200")
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise FetchError(f"the server sent it with the encoding {encoding[:40]!r}")
    announced = response.headers.get("Content-Length")
    if announced is not None and announced.strip() != str(size):
        raise FetchError(f"the server has a file of {announced[:40]} bytes; expected {size}")
    blocks = []
    done = 0
    started = time.monotonic()
    while done <= size:
        # One read of the socket at a time: a full block may take a slow server very long.
        block = response.read1(min(_BLOCK_BYTES, size + 1 - done))
        if not block:
            break
        blocks.append(block)
        done += len(block)
        progress(min(done, size))
        if time.monotonic() - started > timeout + done / _LEAST_BYTES_PER_SECOND:
            raise FetchError(
                f"the server is too slow: {done} of {size} bytes, fewer than "
                f"{_LEAST_BYTES_PER_SECOND} per second"
            )
    if done > size:
        raise FetchError(f"the server sent more than the expected {size} bytes")
    if done < size:
        raise FetchError(f"the connection ended after {done} of {size} bytes")
    return b"".join(blocks)


def _reason(error: Exception, timeout: float) -> str:
    """Return why a download failed, in a few words."""
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {_on_one_line(error.reason)}".rstrip()
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no answer for {timeout:g} seconds"
    if isinstance(cause, http.client.IncompleteRead):
        return "the connection ended before the file did"
    return _on_one_line(getattr(cause, "strerror", None) or cause) or type(cause).__name__


def _on_one_line(words: object) -> str:
    return " ".join(str(words)[:400].split())
