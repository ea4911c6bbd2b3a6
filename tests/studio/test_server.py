"""The studio's server refuses all requests but its own page's, and serves nothing by path."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from byteweld.markup import palette
from byteweld.studio.server import MAX_BODY_BYTES, StudioServer

QUESTION = {"text": "the lowest"}


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


def test_localhost_by_name_is_accepted(send, server: StudioServer):
    assert send("GET", "/", headers={"Host": f"localhost:{server.port}"}).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "file://"])
def test_another_origin_is_refused(post, origin: str):
    assert post("/api/tokens", QUESTION, Origin=origin).status == 403


def test_another_port_is_another_origin(post, server: StudioServer):
    origin = f"http://127.0.0.1:{server.port + 1}"
    assert post("/api/tokens", QUESTION, Origin=origin).status == 403


def test_a_cross_site_request_is_refused(post):
    assert post("/api/tokens", QUESTION, Sec_Fetch_Site="cross-site").status == 403
    assert post("/api/tokens", QUESTION, Sec_Fetch_Site="same-site").status == 403
    assert post("/api/tokens", QUESTION, Sec_Fetch_Site="same-origin").status == 200


@pytest.mark.parametrize("token", [None, "", "wrong", "é" * 32])
def test_requests_without_the_token_are_refused(post, token: str | None):
    encoded = None if token is None else token.encode().decode("latin-1")
    response = post("/api/tokens", QUESTION, X_Token=encoded)
    assert response.status == 403
    assert "token" in response.json["error"]


def test_the_token_is_checked_before_the_body_is_read(post):
    response = post("/api/tokens", b"x", X_Token=None, Content_Length="999999999")
    assert response.status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/page/../server.py",
        "/page/..%2fserver.py",
        "/page/%2e%2e/%2e%2e/server.py",
        "/page/",
        "/page/index.html",
        "/page/app.js?x",
        "//etc/passwd",
        "/etc/passwd",
        "/page/app.js/..",
        "/api/tokens",
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


def test_a_body_of_unknown_length_is_refused(post):
    assert post("/api/tokens", QUESTION, Content_Length=None).status == 411
    chunked = post("/api/tokens", b"0\r\n\r\n", Content_Length=None, Transfer_Encoding="chunked")
    assert chunked.status == 411
    assert post("/api/tokens", QUESTION, Content_Length="-1").status == 400
    assert post("/api/tokens", QUESTION, Content_Length="1e3").status == 400


def test_a_body_that_is_too_large_is_refused_before_it_is_read(post):
    response = post("/api/tokens", b"{}", Content_Length=str(MAX_BODY_BYTES + 1))
    assert response.status == 413
    assert response.headers["Connection"] == "close"


def test_a_text_longer_than_a_megabyte_is_refused(post):
    response = post("/api/tokens", {"text": "x" * (1 << 20) + "x"})
    assert response.status == 413
    assert response.json["error"] == "text has more than 1,048,576 bytes; use a part of it"
    assert post("/api/tokens", {"text": "é" * (1 << 19) + "x"}).status == 413


def test_only_json_is_accepted(post):
    assert post("/api/tokens", QUESTION, Content_Type="text/plain").status == 415
    assert post("/api/tokens", QUESTION, Content_Type=None).status == 415
    for body in (b"", b"{", b"\xff", b"[" * 100_000):
        assert post("/api/tokens", body).json["error"] == "the body is not JSON"
    assert post("/api/tokens", b"[1]").json["error"] == "the body is not a JSON object"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "text is missing"),
        ({"text": 1}, "text is int; expected a string"),
        ({"text": "a", "tokenizer": 2}, "tokenizer is 2; expected a number from 0 to 1"),
        ({"text": "a", "tokenizer": True}, "tokenizer is True; expected a number from 0 to 1"),
        ({"text": "a", "tokenizer": "0"}, "tokenizer is '0'; expected a number from 0 to 1"),
        ({"text": "a", "special": "yes"}, "special is 'yes'; expected true or false"),
    ],
)
def test_an_invalid_field_is_named(post, fields: dict[str, object], error: str):
    response = post("/api/tokens", fields)
    assert (response.status, response.json["error"]) == (400, error)


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


def test_a_refusal_never_echoes_html_as_html(post):
    response = post("/api/tokens", {"text": "a", "tokenizer": "<script>alert(1)</script>"})
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_too_many_concurrent_requests_are_refused(server: StudioServer, post):
    for _ in range(8):  # the previous request may still hold one
        assert server.free.acquire(timeout=10)
    try:
        assert post("/api/tokens", QUESTION).status == 503
    finally:
        server.free.release(8)
    assert post("/api/tokens", QUESTION).status == 200


def test_a_bug_is_reported_on_the_page_and_in_the_terminal(post, monkeypatch, capfd):
    def broken(session: object, fields: object) -> dict[str, object]:
        raise LookupError("a drawer is empty")

    monkeypatch.setattr("byteweld.studio.server.HANDLERS", {"tokens": broken})
    response = post("/api/tokens", QUESTION)
    assert response.status == 500
    assert response.json["error"] == (
        "the studio failed; please report this: LookupError('a drawer is empty')"
    )
    deadline = time.monotonic() + 10
    printed = ""
    while "LookupError: a drawer is empty" not in printed and time.monotonic() < deadline:
        time.sleep(0.01)
        printed += capfd.readouterr().err
    assert "Traceback" in printed


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
