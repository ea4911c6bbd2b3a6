"""fetch(): what it downloads, writes and refuses. Every server is a real one on this machine."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import byteweld
from byteweld import FetchError, Tokenizer, encodings, fetching
from byteweld.known_encodings import FETCHABLE, PublicFile
from tests.helpers.events import wait_until
from tests.helpers.web import (
    Web,
    make_certificate,
    redirecting,
    sending,
    serving,
    stalling,
)

NAME = "tiny"
FILE = "tiny.json"


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """A private folder, no proxies, nothing loaded yet."""
    for variable in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.upper(), raising=False)
    monkeypatch.setenv("BYTEWELD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setattr(encodings, "_loaded", {})


@pytest.fixture(scope="module")
def tok():
    return byteweld.train(iter(["low lower lowest " * 9]), vocab_size=264)


@pytest.fixture(scope="module")
def data(tok, tmp_path_factory):
    """The bytes of a small tokenizer.json."""
    path = tmp_path_factory.mktemp("made") / FILE
    tok.save(path)
    return path.read_bytes()


@pytest.fixture
def web():
    with serving() as running:
        yield running


@pytest.fixture
def target(tmp_path):
    return tmp_path / "home" / "vocabularies" / FILE


@pytest.fixture
def tiny(monkeypatch, web: Web, data):
    """The small tokenizer as a vocabulary to fetch, and a mirror that has it."""
    digest = hashlib.sha256(data).hexdigest()
    file = PublicFile(FILE, "https://nowhere.invalid/x", digest, len(data), "nowhere", "MIT")
    for module in (fetching, encodings):
        monkeypatch.setattr(module, "FETCHABLE", {NAME: file})
    web.answers[f"/{FILE}"] = sending(data)
    monkeypatch.setenv("BYTEWELD_MIRROR", web.url)
    return file


def left_in(tmp_path: Path) -> list[str]:
    home = tmp_path / "home"
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


def refused(match: str) -> None:
    with pytest.raises(FetchError, match=match) as caught:
        byteweld.fetch(NAME, timeout=5)
    assert "nothing was written" in str(caught.value)


# ---------------------------------------------------------------------- success


def test_a_vocabulary_is_fetched_and_then_found_by_its_name(tiny, web, tok, data, target, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"`byteweld fetch {NAME}`"):
        byteweld.load(NAME)
    steps: list[int] = []
    assert byteweld.fetch(NAME, progress=steps.append) == target
    assert target.read_bytes() == data
    assert left_in(tmp_path) == ["vocabularies", f"vocabularies/{FILE}"]
    assert steps == sorted(steps) and steps[-1] == len(data)
    assert byteweld.load(NAME) is byteweld.get_encoding(NAME)
    assert byteweld.load(NAME) == tok
    assert byteweld.list_encoding_names()[-1] == NAME
    assert web.seen == [f"/{FILE}"]
    assert web.headers[0]["Accept-Encoding"] == "identity"


def test_what_is_here_and_intact_is_not_fetched_again(tiny, web, target):
    byteweld.fetch(NAME)
    before = target.stat()
    assert byteweld.fetch(NAME) == target
    assert target.stat().st_mtime_ns == before.st_mtime_ns
    assert len(web.seen) == 1
    byteweld.fetch(NAME, overwrite=True)
    assert len(web.seen) == 2
    assert target.stat().st_ino != before.st_ino


@pytest.mark.parametrize("found", [b"", b"other", b"x" * 100_000, "same size"])
def test_another_file_of_that_name_is_replaced_only_on_demand(found, tiny, web, data, target):
    other = data[:-1] + b" " if found == "same size" else found
    target.parent.mkdir(parents=True)
    target.write_bytes(other)
    with pytest.raises(FileExistsError, match=r"damaged or another file .* overwrite=True"):
        byteweld.fetch(NAME)
    assert target.read_bytes() == other and web.seen == []
    byteweld.fetch(NAME, overwrite=True)
    assert target.read_bytes() == data


@pytest.mark.parametrize("kind", ["folder", "pipe", "broken link", "link to /dev/zero"])
def test_what_is_not_a_file_is_an_error_and_never_read(kind, tiny, web, data, target):
    target.parent.mkdir(parents=True)
    if kind == "folder":
        target.mkdir()
    elif kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to("nothing" if kind == "broken link" else "/dev/zero")
    with pytest.raises(FileExistsError, match="damaged or another file"):
        byteweld.fetch(NAME)
    if kind in ("folder", "pipe"):  # never replaced
        with pytest.raises(OSError, match="is a"):
            byteweld.fetch(NAME, overwrite=True)
        assert web.seen == []
    else:
        byteweld.fetch(NAME, overwrite=True)
        assert not target.is_symlink() and target.read_bytes() == data


# ---------------------------------------------------------------------- wrong answers


WRONG = {  # what the server answers, given the right data, and the words of the error
    "another file": (
        lambda data: sending(b"x" * len(data)),
        "the file that was received has sha256 .*; expected .*, the publish",
    ),
    "one bit": (lambda data: sending(bytes([data[0] ^ 1]) + data[1:]), "has sha256"),
    "truncated": (
        lambda data: sending(data[:-1], announced=len(data)),
        "the connection ended after .* of .* bytes",
    ),
    "truncated, no length": (
        lambda data: sending(data[:-1], announced=None),
        "the connection ended after",
    ),
    "empty": (lambda data: sending(b"", announced=None), "the connection ended after 0 of"),
    "announced too large": (
        lambda data: sending(data, announced=len(data) + 1),
        "the server has a file of .* bytes; expected",
    ),
    "announced too small": (lambda data: sending(data[:-1]), "the server has a file of"),
    "announced nonsense": (lambda data: sending(data, announced="many"), "a file of many bytes"),
    "too large, no length": (
        lambda data: sending(data + b"\n", announced=None),
        "the server sent more than the expected",
    ),
    "compressed": (lambda data: sending(data, Content_Encoding="gzip"), "the encoding 'gzip'"),
    "partial": (lambda data: sending(data, status=206), "status 206"),
    "no content": (lambda data: sending(b"", status=204, announced=None), "status 204"),
    "no file": (lambda data: sending(b"gone", status=404), "the server answered 404 Not Found"),
    "forbidden": (lambda data: sending(b"no", status=403), "the server answered 403"),
    "server error": (lambda data: sending(b"oops", status=500), "the server answered 500"),
    "no location": (lambda data: sending(b"", status=302), "the server answered 302"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_answer_is_an_error_and_nothing_is_written(kind, tiny, web, data, target, tmp_path):
    answer, words = WRONG[kind]
    web.answers[f"/{FILE}"] = answer(data)
    refused(words)
    assert left_in(tmp_path) == []
    target.parent.mkdir(parents=True)
    target.write_bytes(b"mine")
    with pytest.raises(FetchError, match=words):
        byteweld.fetch(NAME, overwrite=True, timeout=5)
    assert target.read_bytes() == b"mine"
    assert left_in(tmp_path) == ["vocabularies", f"vocabularies/{FILE}"]


def flooding(sent, **options):
    """Return an answer of far more than a file, which counts what it has sent."""

    def answer(handler):
        sending(b"", announced=None, **options)(handler)
        while sum(sent) < 100 << 20:
            handler.wfile.write(b"x" * 65536)
            sent.append(65536)

    return answer


def test_no_more_is_read_than_the_declared_size(tiny, web, data):
    sent = []
    web.answers[f"/{FILE}"] = flooding(sent)
    refused("the server sent more than the expected")
    assert sum(sent) < 20 << 20  # what buffers hold


def test_a_failure_says_what_to_do_by_hand(tiny, web, target):
    web.answers.clear()
    with pytest.raises(FetchError) as caught:
        byteweld.fetch(NAME)
    for words in (f"{web.url}/{FILE}: ", "HTTPS_PROXY", "BYTEWELD_MIRROR", tiny.url, str(target)):
        assert words in str(caught.value)
    assert isinstance(caught.value, OSError)


def test_no_server_and_no_network_are_the_same_kind_of_error(tiny, monkeypatch, tmp_path):
    with serving() as gone:
        address = gone.url
    monkeypatch.setenv("BYTEWELD_MIRROR", address)
    refused("Connection refused")
    monkeypatch.setenv("BYTEWELD_MIRROR", "https://nowhere.invalid")
    refused("https://nowhere.invalid/tiny.json: ")
    monkeypatch.delenv("BYTEWELD_MIRROR")
    refused("https://nowhere.invalid/x: ")
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("name", ["cl100k", "../x", "", "gpt2.tiktoken"])
def test_an_unknown_name_is_an_error_before_any_request(name, web, monkeypatch):
    monkeypatch.setenv("BYTEWELD_MIRROR", web.url)
    with pytest.raises(ValueError, match="is not a vocabulary to fetch; expected one of gpt2"):
        byteweld.fetch(name)
    assert web.seen == []


def test_the_name_of_a_model_suggests_its_encoding():
    with pytest.raises(ValueError, match="the encoding of that model is 'o200k_base'"):
        byteweld.fetch("gpt-4o")
    with pytest.raises(ValueError, match="the encoding of that model is 'cl100k_base'"):
        byteweld.fetch("gpt4")
    with pytest.raises(ValueError, match="the vocabulary of that model is 'qwen3'"):
        byteweld.fetch("Qwen/Qwen3-0.6B")
    with pytest.raises(ValueError, match=r"`hf download google/gemma-7b tokenizer\.json` puts"):
        byteweld.fetch("google/gemma-7b")
    with pytest.raises(ValueError, match="did you mean 'cl100k_base'"):
        byteweld.fetch("cl100_base")
    with pytest.raises(TypeError, match="name is None"):
        byteweld.fetch(None)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 1e10, 10**30])
def test_a_timeout_is_positive_and_at_most_a_day(timeout, tiny, web):
    with pytest.raises(ValueError, match=r"timeout is .*; it must be a positive number"):
        byteweld.fetch(NAME, timeout=timeout)
    assert web.seen == []


# ---------------------------------------------------------------------- time


def test_a_server_that_does_not_answer_or_stops_sending_is_given_up(tiny, web, data, tmp_path):
    for answer in (lambda handler: handler.server.over.wait(60), stalling(data[:10], len(data))):
        web.answers[f"/{FILE}"] = answer
        with pytest.raises(FetchError, match=r"no answer for 0\.3 seconds; nothing was written"):
            byteweld.fetch(NAME, timeout=0.3)
        assert left_in(tmp_path) == []


def test_a_server_that_drips_is_given_up(tiny, web, data, monkeypatch):
    # Each byte comes in time, so no single wait is too long; the clock makes each take ten seconds.
    def drip(handler):
        sending(b"", announced=len(data))(handler)
        for byte in data:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            if handler.server.over.wait(0.01):
                return

    web.answers[f"/{FILE}"] = drip
    ticks = itertools.count(0, 10)
    monkeypatch.setattr(fetching.time, "monotonic", lambda: next(ticks))
    with pytest.raises(FetchError, match=r"the server is too slow: .* fewer than 1000 per second"):
        byteweld.fetch(NAME, timeout=60)


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"a"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n"),
    ],
    ids=["a header", "interim answers", "trailers"],
)
def test_a_server_that_answers_without_end_is_given_up(start, again, tiny, web, monkeypatch):
    """Something comes all the time, so no single wait is too long."""

    def answer(handler):
        handler.wfile.write(start)
        while not handler.server.over.wait(0.01):
            handler.wfile.write(again)

    web.answers[f"/{FILE}"] = answer
    monkeypatch.setattr(fetching, "_LEAST_BYTES_PER_SECOND", 1e9)
    with pytest.raises(FetchError, match="did not send the file in 1 seconds; nothing was written"):
        byteweld.fetch(NAME, timeout=1)


# ---------------------------------------------------------------------- redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_on_this_machine_is_followed(status, tiny, web, data, target):
    web.answers[f"/{FILE}"] = redirecting("/other", status)
    web.answers["/other"] = sending(data)
    byteweld.fetch(NAME)
    assert target.read_bytes() == data and web.seen == [f"/{FILE}", "/other"]


@pytest.mark.parametrize(
    "url",
    [
        # The first would leave the machine unencrypted.
        *("http://example.com/x", "ftp://127.0.0.1/x", "file:///etc/passwd"),
        *("data:text/plain,x", "http://127.0.0.1.example.com/x", "gopher://127.0.0.1/x"),
    ],
)
def test_a_redirect_to_another_scheme_is_refused(url, tiny, web, tmp_path):
    web.answers[f"/{FILE}"] = redirecting(url)
    refused("it redirects to .*, which is not https|the server answered 302")
    assert web.seen == [f"/{FILE}"] and left_in(tmp_path) == []


def test_a_loop_of_redirects_ends(tiny, web):
    web.answers[f"/{FILE}"] = redirecting(f"/{FILE}")
    refused(r"^[^\n]* the server answered 302 [^\n]*$")
    assert len(web.seen) <= 11


def test_the_body_of_a_redirect_is_not_read(tiny, web, data, target):
    sent = []
    web.answers[f"/{FILE}"] = flooding(sent, status=302, Location="/other")
    web.answers["/other"] = sending(data)
    byteweld.fetch(NAME)
    assert target.read_bytes() == data
    assert sum(sent) < 20 << 20  # what buffers hold


# ---------------------------------------------------------------------- TLS, proxies, mirrors


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"))


def test_a_certificate_that_nobody_vouches_for_is_refused(tiny, data, certificate, monkeypatch):
    file, context = certificate
    with serving(context) as secure:
        secure.answers[f"/{FILE}"] = sending(data)
        monkeypatch.setenv("BYTEWELD_MIRROR", secure.url)
        refused("certificate verify failed")
        assert secure.seen == []
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        byteweld.fetch(NAME)
        assert secure.seen == [f"/{FILE}"]


def test_a_redirect_from_https_to_http_is_refused_even_on_this_machine(
    tiny, web, data, certificate, monkeypatch
):
    file, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with serving(context) as secure:
        secure.answers[f"/{FILE}"] = redirecting(f"{web.url}/{FILE}")
        monkeypatch.setenv("BYTEWELD_MIRROR", secure.url)
        refused("it redirects to 'http://127.0.0.1:.*', which is not https")
        assert web.seen == []
        # The other way round is fine.
        secure.answers["/there"] = sending(data)
        web.answers[f"/{FILE}"] = redirecting(f"{secure.url}/there")
        monkeypatch.setenv("BYTEWELD_MIRROR", web.url)
        byteweld.fetch(NAME)


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY"])
def test_a_proxy_of_the_environment_is_used(variable, tiny, web, data, monkeypatch):
    with serving() as proxy:
        asked = f"{web.url}/{FILE}"
        proxy.answers[asked] = sending(data)
        monkeypatch.setenv(variable, proxy.url)
        byteweld.fetch(NAME)
        assert proxy.seen == [asked] and web.seen == []
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        byteweld.fetch(NAME, overwrite=True)
        assert len(proxy.seen) == 1 and web.seen == [f"/{FILE}"]


@pytest.mark.parametrize(
    "mirror",
    [
        *("http://example.com/x", "http://10.0.0.1", "http://localhost.example.com"),
        *("ftp://127.0.0.1/x", "file:///srv/mirror", "/srv/mirror", "mirror", "https://"),
        *("https:///path", "https://host/path?key=1", "https://host/#x", "https://[::1"),
        "https://host:99999/",
    ],
)
def test_a_mirror_is_https_or_on_this_machine(mirror, tiny, monkeypatch):
    monkeypatch.setenv("BYTEWELD_MIRROR", mirror)
    with pytest.raises(FetchError, match=r"BYTEWELD_MIRROR is .*; expected"):
        byteweld.fetch(NAME)


@pytest.mark.parametrize(
    "mirror",
    [
        "https://me:secret@host/path",
        "https://me:secret@host:99999/path",
        "https://me:secret@[bad/path",
        "https://me:a/secret@host/path",
        "https://host/path?signature=secret",
        "https://host/path#secret",
    ],
)
def test_a_secret_in_the_address_of_a_mirror_is_refused_and_not_shown(mirror, tiny, monkeypatch):
    monkeypatch.setenv("BYTEWELD_MIRROR", mirror)
    with pytest.raises(FetchError, match=r"has a user name or password|is not an") as caught:
        byteweld.fetch(NAME)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "[::1]", "localhost"])
def test_addresses_of_this_machine(host, tiny, monkeypatch):
    monkeypatch.setenv("BYTEWELD_MIRROR", f"http://{host}:1/x/")
    assert fetching.find_url(tiny) == f"http://{host}:1/x/{FILE}"


# ---------------------------------------------------------------------- folders


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no users")
def test_a_folder_that_is_read_only_is_an_error_before_the_download(
    tiny, web, target, monkeypatch, tmp_path
):
    # The superuser may write everywhere, so ask as the check does.
    target.parent.mkdir(parents=True)
    target.parent.chmod(0o500)
    real = os.access
    if os.geteuid() == 0:
        monkeypatch.setattr(
            os, "access", lambda path, mode: Path(path) != target.parent and real(path, mode)
        )
    try:
        with pytest.raises(PermissionError, match=r"the folder .*vocabularies is read-only"):
            byteweld.fetch(NAME)
    finally:
        target.parent.chmod(0o700)
    assert web.seen == []


def test_a_home_that_is_a_file_is_an_error_before_the_download(tiny, web, tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        byteweld.fetch(NAME)
    assert web.seen == []


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    assert fetching.find_target("gpt2") == tmp_path / "home/vocabularies/r50k_base.tiktoken"
    monkeypatch.setenv("BYTEWELD_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert fetching.find_target("gpt2").parent == tmp_path / "data/byteweld/vocabularies"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")  # to be ignored, as its rules say
    folder = tmp_path / "me/.local/share/byteweld/vocabularies"
    assert fetching.find_target("gpt2").parent == folder
    monkeypatch.delenv("XDG_DATA_HOME")
    assert fetching.find_target("gpt2").parent == folder
    monkeypatch.setattr(sys, "platform", "darwin")
    folder = tmp_path / "me/Library/Application Support/byteweld/vocabularies"
    assert fetching.find_target("gpt2").parent == folder


def test_without_a_home_the_error_says_what_to_set(monkeypatch):
    def no_home():
        raise RuntimeError("no home directory")

    monkeypatch.delenv("BYTEWELD_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(FileNotFoundError, match="set BYTEWELD_HOME"):
        byteweld.fetch("gpt2")
    with pytest.raises(FileNotFoundError, match="set BYTEWELD_HOME"):
        byteweld.get_encoding("gpt2")  # and nothing else fails


# ---------------------------------------------------------------------- several processes

CHILD = """
import json, sys
from byteweld import fetching
from byteweld.known_encodings import PublicFile
fetching.FETCHABLE = {"tiny": PublicFile(*json.loads(sys.argv[1]))}
print("ready", flush=True)
fetching.fetch("tiny", overwrite=True)
"""


def start(tiny):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(tiny)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_concurrent_fetches_all_succeed(tiny, web, data, target, tmp_path):
    together = threading.Barrier(4)

    def answer(handler):
        together.wait(60)
        sending(data)(handler)

    web.answers[f"/{FILE}"] = answer
    children = [start(tiny) for _ in range(4)]
    for child in children:
        _, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
    assert target.read_bytes() == data
    assert left_in(tmp_path) == ["vocabularies", f"vocabularies/{FILE}"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_fetch_that_is_killed_leaves_nothing(number, tiny, web, data, target, tmp_path):
    web.answers[f"/{FILE}"] = stalling(data[:100], len(data))
    child = start(tiny)
    wait_until(lambda: web.seen)
    assert child.poll() is None  # it waits for the rest
    child.send_signal(number)
    child.communicate(timeout=60)
    assert child.returncode != 0
    assert left_in(tmp_path) == []
    web.answers[f"/{FILE}"] = sending(data)
    byteweld.fetch(NAME)
    assert target.read_bytes() == data


# ---------------------------------------------------------------------- the real table


def test_every_vocabulary_has_a_published_address_that_cannot_change():
    for name, file in FETCHABLE.items():
        assert file.url.startswith("https://")
        assert len(file.sha256) == 64 and file.size < 100 << 20
        assert file.license and file.source
        assert Path(file.name).name == file.name
        assert file.source.partition("/")[0] in file.url
        if "huggingface.co" in file.url:
            assert len(file.url.split("/resolve/")[1].split("/")[0]) == 40, name  # a commit
    names = {file.name: file for file in FETCHABLE.values()}
    assert len(names) == len({file.sha256 for file in FETCHABLE.values()})


REAL = {
    "qwen": "tiktoken/qwen.tiktoken",
    "qwen2_5": "hf/qwen2_5.tokenizer.json",
    "qwen3": "hf/qwen3.tokenizer.json",
    "deepseek_v3": "hf/deepseek_v3.tokenizer.json",
    "gpt_neox": "hf/gpt_neox.tokenizer.json",
    "modernbert": "hf/modernbert.tokenizer.json",
    "tekken_240718": "tekken/tekken_240718.json",
} | {name: f"tiktoken/{file.ranks}.tiktoken" for name, file in encodings.PUBLIC_ENCODINGS.items()}


@pytest.mark.parametrize("name", FETCHABLE)
def test_every_vocabulary_is_fetched_and_loads(name, web, shared, monkeypatch, tmp_path):
    real = gzip.decompress((shared / "vocabs" / f"{REAL[name]}.gz").read_bytes())
    file = FETCHABLE[name]
    web.answers[f"/{file.name}"] = sending(real)
    monkeypatch.setenv("BYTEWELD_MIRROR", web.url)
    path = byteweld.fetch(name)
    assert path == tmp_path / "home" / "vocabularies" / file.name
    tok = byteweld.load(name)
    assert tok.decode(tok.encode("hello world")) == "hello world"
    assert isinstance(tok, Tokenizer) and tok.name == name
    [found] = [one for one in encodings.find_encodings() if one.name == name]
    assert (found.place, found.path, found.size) == ("byteweld's folder", path, file.size)
