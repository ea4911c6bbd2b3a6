"""The studio's server: the standard library's HTTP server, on loopback, safe by default.

Every request is checked before its body is read: Host (against DNS rebinding), Origin and
Sec-Fetch-Site (against other pages), the token (against other users), the size. No file is
served by path: the page's own files are constants, and everything else is computed.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from byteweld.errors import ByteweldError
from byteweld.studio.assets import ASSETS, SERVED_HEAD, index_html
from byteweld.studio.opening import MAX_FILE_BYTES, open_file
from byteweld.studio.request import MAX_TEXT_BYTES, Refused, Request
from byteweld.studio.saved import page
from byteweld.studio.session import Session
from byteweld.studio.views import HANDLERS

LOOPBACK: Final = "127.0.0.1"
# In JSON, one byte of text may take six characters, such as \u0000.
MAX_BODY_BYTES: Final = 6 * MAX_TEXT_BYTES + (1 << 16)
MAX_PAGE_BYTES: Final = 64 << 20  # of a saved page
_TIMEOUT_SECONDS = 20.0
_MAX_CONCURRENT = 8
_JSON = "application/json"
_BINARY = "application/octet-stream"

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class StudioServer(ThreadingHTTPServer):
    """Serves one session. `url` opens the page; every request must carry `token`."""

    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(24)
        self.free = threading.BoundedSemaphore(_MAX_CONCURRENT)
        self.when_used: Callable[[], object] = lambda: None  # called when a request has the token
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The URL of the page. The token is in the fragment, which browsers never send."""
        return f"http://{LOOPBACK}:{self.port}/#token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report our own bugs; ignore clients that hang up."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: StudioServer
    protocol_version = "HTTP/1.1"
    server_version = "byteweld"
    sys_version = ""
    timeout = _TIMEOUT_SECONDS

    def do_GET(self) -> None:
        self._guarded(self._get)

    def do_HEAD(self) -> None:
        self._guarded(self._get)

    def do_POST(self) -> None:
        self._guarded(self._post)

    def _get(self) -> None:
        if self.path == "/":
            self._send(200, index_html(SERVED_HEAD).encode(), "text/html; charset=utf-8")
            return
        name = self.path.removeprefix("/page/")
        if self.path.startswith("/page/") and name in ASSETS:
            self._send(200, *ASSETS[name])
            return
        raise Refused(404, "not found")

    def _post(self) -> None:
        name = self.path.removeprefix("/api/")
        if not self.path.startswith("/api/") or name not in (*HANDLERS, "page", "upload"):
            raise Refused(404, "not found")
        self._check_token()
        if name == "upload":
            body = self._body(_BINARY, MAX_FILE_BYTES)
            self._answer(open_file(self.server.session, body, self.headers.get("X-Name", "")))
            return
        fields = self._fields(MAX_PAGE_BYTES if name == "page" else MAX_BODY_BYTES)
        if name == "page":
            self._send(200, _saved(Request(fields)).encode(), "text/plain; charset=utf-8")
        else:
            self._answer(HANDLERS[name](self.server.session, Request(fields)))

    def _guarded(self, respond: Callable[[], None]) -> None:
        """Check the origin of the request, then respond; errors are sent as one line of JSON."""
        if not self.server.free.acquire(blocking=False):
            self._refuse(Refused(503, "too many concurrent requests; try again"))
            return
        try:
            self._check_source()
            respond()
        except Refused as refused:
            self._refuse(refused)
        except (ByteweldError, ValueError) as error:
            self._refuse(Refused(400, str(error)))
        except (OSError, MemoryError) as error:
            self._refuse(Refused(500, str(error)))
        except Exception as error:  # our bug: the page reports it, the terminal shows the traceback
            self._refuse(Refused(500, f"the studio failed; please report this: {error!r}"))
            raise
        finally:
            self.server.free.release()

    def _check_source(self) -> None:
        port = self.server.port
        hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        given = self.headers.get_all("Host") or []
        if len(given) != 1 or given[0] not in hosts:
            raise Refused(421, "this server only answers requests to the local machine")
        origins = self.headers.get_all("Origin") or []
        if any(origin not in {f"http://{host}" for host in hosts} for origin in origins):
            raise Refused(403, "requests from other pages are refused")
        site = self.headers.get("Sec-Fetch-Site", "none")
        if self.command == "POST" and site not in ("same-origin", "none"):
            raise Refused(403, "requests from other pages are refused")

    def _check_token(self) -> None:
        given = self.headers.get("X-Token", "")
        if not secrets.compare_digest(given.encode("utf-8", "replace"), self.server.token.encode()):
            raise Refused(
                403, "the token is missing or wrong; open the address printed in the terminal"
            )
        self.server.when_used()

    def _body(self, kind: str, limit: int) -> bytes:
        if self.headers.get_content_type() != kind:
            raise Refused(415, f"the body must be {kind}")
        length = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding") is not None or length is None:
            raise Refused(411, "Content-Length is missing")
        if not (length.isascii() and length.isdigit()) or len(length) > 12:
            raise Refused(400, f"Content-Length is {length!r:.20}; expected a number")
        if int(length) > limit:
            raise Refused(413, f"the body has {int(length):,} bytes; at most {limit:,} are allowed")
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise Refused(400, "the body ended early")
        return body

    def _fields(self, limit: int) -> dict[str, Any]:
        try:
            fields = json.loads(self._body(_JSON, limit))
        except (ValueError, RecursionError):
            raise Refused(400, "the body is not JSON") from None
        if not isinstance(fields, dict):
            raise Refused(400, "the body is not a JSON object")
        return fields

    def _answer(self, value: dict[str, Any]) -> None:
        body = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
        self._send(200, body.encode(), f"{_JSON}; charset=utf-8")

    def _refuse(self, refused: Refused) -> None:
        # The rest of the body is not read, so the connection cannot be reused.
        self.close_connection = True
        body = json.dumps({"error": str(refused)}).encode()
        try:
            self._send(refused.status, body, f"{_JSON}; charset=utf-8")
        except OSError:
            pass  # the client is gone

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the standard library's own errors as JSON instead of HTML."""
        self.close_connection = True
        if not hasattr(self, "command") or self.command is None:
            self.command = "GET"
        self.request_version = "HTTP/1.1"
        self._refuse(Refused(code, message or HTTPStatus(code).phrase.lower()))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def _saved(fields: Request) -> str:
    answers = fields.answers("answers")
    state = fields.text("state", limit=MAX_BODY_BYTES)  # JSON with up to a megabyte of text
    return page(state, answers, fields.text("title", "byteweld studio", 200))
