"""Shared by the studio's tests: small tokenizers, a running server, plain requests."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import byteweld
from byteweld.studio.server import StudioServer
from byteweld.studio.session import GivenCorpus, Session
from tests.helpers.studio import open_page, running

SPECIAL = "<|endoftext|>"
CORPUS = (
    "the lowest tokenizer in the town tokenizes the newest tokens; low, lower, lowest, new, newer, "
    "newest, wide, wider, widest; token, tokens, tokenize, tokenizer; naïve café; <b>bold</b> "
    "def area(width):\n    return width * width\n"
) * 20


class Response(NamedTuple):
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Send = Callable[..., Response]
Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def trained() -> byteweld.Tokenizer:
    """A tokenizer of 400 tokens with a known training."""
    recipe = byteweld.RECIPES["modern"].replace(special_tokens=[SPECIAL])
    return byteweld.train(iter([CORPUS]), vocab_size=400, recipe=recipe)


@pytest.fixture(scope="session")
def without_pattern() -> byteweld.Tokenizer:
    """A tokenizer of recipe ck, some of whose tokens are unreachable."""
    return byteweld.train(iter([CORPUS]), vocab_size=330, recipe="ck")


@pytest.fixture(scope="module")
def server(
    trained: byteweld.Tokenizer, without_pattern: byteweld.Tokenizer
) -> Iterator[StudioServer]:
    """A running studio with two tokenizers and a corpus."""
    corpus = GivenCorpus("my books", lambda recipe: byteweld.count(iter([CORPUS]), recipe=recipe))
    tokenizers = [("small", trained), ("ck", without_pattern)]
    with running(Session(tokenizers, corpus=corpus)) as started:
        yield started


@pytest.fixture
def page(browser: Any, server: StudioServer) -> Iterator[Any]:
    """A page with the Tokens view open; fails afterwards if the page misbehaved."""
    with open_page(browser, server.url, (1280, 900), view="tokens") as opened:
        yield opened


@pytest.fixture
def send(server: StudioServer) -> Send:
    """Send a request unchanged, except for a default Host."""

    def call(
        method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        given = {"Host": f"127.0.0.1:{server.port}"} | (headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders()
            if body is not None:
                connection.send(body)
            answer = connection.getresponse()
            return Response(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    return call


@pytest.fixture
def post(server: StudioServer, send: Send) -> Send:
    """Post JSON with the token, as the page does; headers can be changed, or removed with None."""

    def call(path: str, value: object, **changes: str | None) -> Response:
        body = json.dumps(value).encode() if not isinstance(value, bytes) else value
        headers: dict[str, str | None] = {
            "Origin": f"http://127.0.0.1:{server.port}",
            "X-Token": server.token,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        } | {name.replace("_", "-"): value for name, value in changes.items()}
        return send("POST", path, body, {k: v for k, v in headers.items() if v is not None})

    return call


@pytest.fixture
def ask(post: Send) -> Ask:
    """Send a request of a view and return its answer."""

    def call(name: str, **fields: object) -> Any:
        response = post(f"/api/{name}", fields)
        assert response.status == 200, response.body
        return response.json

    return call
