"""A web server on the loopback interface that answers as a test says, plainly or with TLS."""

from __future__ import annotations

import contextlib
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers a path with what the server has for it; 404 for any other."""

    server: Web

    def do_GET(self) -> None:
        """Answer a request, and record it."""
        self.server.seen.append(self.path)
        self.server.headers.append(dict(self.headers))
        answer = self.server.answers.get(self.path)
        with contextlib.suppress(OSError):  # the client may be gone
            if answer is None:
                self.send_error(404)
            else:
                answer(self)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class Web(ThreadingHTTPServer):
    """A server with its answers by path, and the requests it has seen."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Answer] = {}
        self.seen: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.over = threading.Event()  # for answers that wait
        self.scheme = "http"

    @property
    def url(self) -> str:
        """The address of the server, without a final slash."""
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing about clients that hang up."""


@contextlib.contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Web]:
    """Run a server; with TLS, if there is a context."""
    web = Web()
    if context is not None:
        web.scheme = "https"
        web.socket = context.wrap_socket(
            web.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=web.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield web
    finally:
        web.over.set()
        web.shutdown()
        thread.join()
        web.server_close()


def sending(
    data: bytes, *, announced: int | str | None = "all", status: int = 200, **headers: str
) -> Answer:
    """Return an answer with a body; `announced` is its Content-Length, None for none."""

    def answer(handler: Handler) -> None:
        handler.send_response(status)
        if announced is not None:
            length = len(data) if announced == "all" else announced
            handler.send_header("Content-Length", str(length))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def redirecting(url: str, status: int = 302) -> Answer:
    """Return an answer that redirects to another address."""
    return sending(b"", status=status, Location=url)


def stalling(data: bytes, size: int) -> Answer:
    """Return an answer that announces `size` bytes, sends a part of them, and then waits."""

    def answer(handler: Handler) -> None:
        sending(data, announced=size)(handler)
        handler.wfile.flush()
        handler.server.over.wait(60)

    return answer


def make_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Make a self-signed certificate for 127.0.0.1; return its file, and a server's context."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context
