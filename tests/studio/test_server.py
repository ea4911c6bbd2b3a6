"""The studio's server refuses all requests but its own page's, and serves nothing by path."""

from __future__ import annotations

import io
import json
import socket
from pathlib import Path

import pytest

from byteweld.markup import palette
from byteweld.studio.server import MAX_BODY_BYTES, StudioServer
from tests.helpers.events import wait_until

QUESTION = {"text": "the lowest"}
LONG = "text has more than 1,048,576 bytes; use a part of it"


def test_the_page_is_served_with_a_policy_that_forbids_everything_else(send):
    response = send("GET", "/")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "no-store"
    assert b"<script>" not in response.body  # no inline script, so none can be injected


def test_the_server_listens_on_loopback_only(server: StudioServer):
    assert server.server_address[0] == "127.0.0.1"


def test_the_token_is_in_the_fragment_and_never_served(server: StudioServer, send):
    assert server.url == f"http://127.0.0.1:{server.port}/#token={server.token}"
    assert len(server.token) >= 32
    for path in ("/", "/page/app.js", "/page/api.js"):
        assert server.token.encode() not in send("GET", path).body


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80", ""]
)
def test_another_host_is_refused(send, server: StudioServer, host: str):
    for path in ("/", "/page/app.js"):
        assert send("GET", path, headers={"Host": host}).status == 421
    assert send("GET", "/", headers={"Host": f"localhost:{server.port}"}).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        *(({"Origin": f"http://127.0.0.1:{port}"}, 403) for port in (1, 80)),
        *(({"Origin": o}, 403) for o in ("http://evil.example", "null", "https://127.0.0.1")),
        *(({"Sec_Fetch_Site": site}, 403) for site in ("cross-site", "same-site")),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        *(({"X_Token": token}, 403) for token in (None, "", "wrong", "\xc3\xa9" * 32)),
        # The token is checked before the body is read.
        ({"X_Token": None, "Content_Length": "999999999"}, 403),
        ({"Content_Length": None}, 411),
        ({"Content_Length": None, "Transfer_Encoding": "chunked"}, 411),
        ({"Content_Length": "-1"}, 400),
        ({"Content_Length": "1e3"}, 400),
        ({"Content_Length": str(MAX_BODY_BYTES + 1)}, 413),
        *(({"Content_Type": kind}, 415) for kind in ("text/plain", None)),
    ],
)
def test_only_the_pages_own_requests_are_answered(post, headers, status: int):
    response = post("/api/tokens", QUESTION, **headers)
    assert response.status == status
    assert status != 413 or response.headers["Connection"] == "close"
    assert "X_Token" not in headers or "token" in response.json["error"]


@pytest.mark.parametrize(
    "path",
    [
        *("/../../etc/passwd", "/page/../server.py", "/page/..%2fserver.py"),
        *("/page/%2e%2e/%2e%2e/server.py", "/page/", "/page/index.html", "/page/app.js?x"),
        *("//etc/passwd", "/etc/passwd", "/page/app.js/..", "/api/tokens"),
        "http://127.0.0.1/etc/passwd",
    ],
)
def test_no_file_is_served_by_path(send, path: str):
    response = send("GET", path)
    assert response.status == 404
    assert b"root:" not in response.body


def test_every_file_of_the_page_is_served_by_its_name(send):
    folder = Path(__file__).parents[2] / "src" / "byteweld" / "studio" / "page"
    names = [file.name for file in folder.iterdir() if file.suffix in (".js", ".css")]
    assert len(names) > 10
    for name in names:
        colors = palette().encode() if name == "style.css" else b""
        assert send("GET", f"/page/{name}").body == colors + (folder / name).read_bytes()


def test_head_has_no_body_and_other_methods_are_not_implemented(send):
    assert send("HEAD", "/").body == b""
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert send(method, "/").status == 501


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b"[" * 100_000, "the body is not JSON"),
        (b"[1]", "the body is not a JSON object"),
        ({"text": "x" * (1 << 20) + "x"}, LONG),
        ({"text": "é" * (1 << 19) + "x"}, LONG),
        ({}, "text is missing"),
        ({"text": 1}, "text is int; expected a string"),
        ({"text": "a", "tokenizer": 2}, "tokenizer is 2; expected a number from 0 to 1"),
        ({"text": "a", "tokenizer": "<b>"}, "tokenizer is '<b>'; expected a number from 0 to 1"),
        ({"text": "a", "tokenizer": True}, "tokenizer is True; expected a number from 0 to 1"),
        ({"text": "a", "tokenizer": "0"}, "tokenizer is '0'; expected a number from 0 to 1"),
        (
            {"text": "a", "special_text": "yes"},
            "special_text is 'yes'; expected one of special, text",
        ),
    ],
)
def test_an_invalid_body_says_why_and_is_never_html(post, fields: object, error: str):
    response = post("/api/tokens", fields)
    assert response.json["error"] == error
    assert response.status == (413 if error == LONG else 400)
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_an_unknown_request_is_not_found(post):
    for path in ("/api/", "/api/none", "/api/../api/tokens", "/tokens"):
        assert post(path, QUESTION).status == 404


def test_malformed_http_is_refused_without_html(server: StudioServer):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
        plain.sendall(b"<script>alert(1)</script> / HTTP/9.9\r\n\r\n")
        answer = plain.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/json" in head
    assert b"<script>" not in body.replace(b"\\u003c", b"")


def test_too_many_concurrent_requests_are_refused(server: StudioServer, post):
    for _ in range(8):  # the previous request may still hold one
        assert server.free.acquire(timeout=10)
    try:
        assert post("/api/tokens", QUESTION).status == 503
    finally:
        server.free.release(8)
    assert post("/api/tokens", QUESTION).status == 200


def test_a_bug_is_reported_on_the_page_and_in_the_terminal(post, monkeypatch):
    def broken(session: object, fields: object) -> dict[str, object]:
        raise LookupError("a drawer is empty")

    monkeypatch.setattr("byteweld.studio.server.HANDLERS", {"tokens": broken})
    terminal = io.StringIO()  # capfd loses what comes while it is read
    monkeypatch.setattr("sys.stderr", terminal)
    response = post("/api/tokens", QUESTION)
    assert response.status == 500
    assert response.json["error"] == (
        "the studio failed; please report this: LookupError('a drawer is empty')"
    )
    wait_until(lambda: "LookupError: a drawer is empty" in terminal.getvalue())
    assert "Traceback" in terminal.getvalue()


def test_a_client_that_hangs_up_is_ignored(server: StudioServer, post, capfd):
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
            plain.sendall(b"POST /api/tokens HTTP/1.1\r\nContent-Length: 10\r\n")
    assert post("/api/tokens", QUESTION).status == 200
    assert capfd.readouterr().err == ""


def test_many_requests_share_a_connection(server: StudioServer):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {"X-Token": server.token, "Content-Type": "application/json"}
    for text in ("one", "two"):
        connection.request("POST", "/api/tokens", json.dumps({"text": text}), headers)
        assert connection.getresponse().read().startswith(b'{"ids":{"width":')
    connection.close()
