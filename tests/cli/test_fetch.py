"""`byteweld fetch`: from a server on this machine, with its complete output."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest

import byteweld
from byteweld import encodings, fetching
from byteweld.cli import fetch, listing
from byteweld.known_encodings import PublicFile
from tests.helpers.events import wait_until
from tests.helpers.web import Web, sending, serving, stalling

LISTING = """\
name     size  license  from                   here
tiny   5.5 kB  MIT      example.com/org/tiny   no
other  7.0 MB  Other    example.com/org/other  no

Run `byteweld fetch NAME` to download one; several names may share a file.
"""


@pytest.fixture
def web():
    with serving() as running:
        yield running


@pytest.fixture
def data(tmp_path):
    tok = byteweld.train(iter(["low lower lowest"]), vocab_size=260, special_tokens=["<|end|>"])
    tok.save(tmp_path / "made.json")
    return (tmp_path / "made.json").read_bytes()


@pytest.fixture
def table(monkeypatch, tmp_path, web: Web, data):
    """Two vocabularies to fetch; the mirror has the first."""
    digest = hashlib.sha256(data).hexdigest()
    made = {
        "tiny": PublicFile(
            "tiny.json",
            "https://example.com/tiny",
            digest,
            len(data),
            "example.com/org/tiny",
            "MIT",
        ),
        "other": PublicFile(
            *("other.json", "https://example.com/other", "0" * 64, 7_000_000),
            *("example.com/org/other", "Other"),
        ),
    }
    for module in (encodings, fetching, fetch, listing):
        monkeypatch.setattr(module, "FETCHABLE", made)
    monkeypatch.setattr(encodings, "_loaded", {})
    monkeypatch.setenv("BYTEWELD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BYTEWELD_MIRROR", web.url)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    web.answers["/tiny.json"] = sending(data)
    return made


def test_without_a_name_it_lists_what_can_be_fetched_and_asks_nobody(run, table, web, data):
    listed = LISTING.replace("5.5 kB", f"{len(data) / 1000:.1f} kB")
    assert run("fetch") == (0, listed.encode(), "")
    assert web.seen == []
    run("fetch", "tiny")
    assert run("fetch").text.splitlines()[1].endswith("byteweld's folder")


def test_a_vocabulary_is_fetched_once_and_then_loaded(run, table, web, data, tmp_path):
    path = tmp_path / "home" / "vocabularies" / "tiny.json"
    size = f"{len(data) / 1000:.1f} kB"
    missing = run("encode", "-t", "tiny", "--text", "low")
    assert (missing.code, missing.out) == (2, b"")
    assert missing.err.endswith("; run `byteweld fetch tiny` to download it\n")
    assert run("fetch", "tiny") == (
        0,
        f"tiny: wrote {path} ({size})\n".encode(),
        f"fetching {web.url}/tiny.json\n",
    )
    assert path.read_bytes() == data
    assert run("encode", "-t", "tiny", "--text", "low").code == 0
    assert run("fetch", "tiny") == (0, f"tiny is already here: {path}\n".encode(), "")
    assert len(web.seen) == 1
    assert run("fetch", "tiny", "--force", "tiny").text == f"tiny: wrote {path} ({size})\n"
    assert len(web.seen) == 2


def test_every_name_is_checked_before_the_first_download(run, table, web):
    result = run("fetch", "tiny", "tinny")
    assert result.code == 2 and web.seen == []
    assert result.err == (
        "byteweld: 'tinny' is not a vocabulary to fetch; expected one of tiny, other; did you mean "
        "'tiny'?\n"
    )
    assert run("fetch", "gpt-4o").err.endswith("the encoding of that model is 'o200k_base'\n")


def test_a_failure_is_one_line_and_leaves_nothing(run, table, web, tmp_path):
    result = run("fetch", "other")
    assert (result.code, result.out) == (2, b"")
    first, second = result.err.splitlines()
    assert first == f"fetching {web.url}/other.json"
    assert second == (
        f"byteweld: {web.url}/other.json: the server answered 404 Not Found; nothing was written. "
        "Check the network and the proxy settings (HTTPS_PROXY), name a mirror with "
        "BYTEWELD_MIRROR, or download https://example.com/other by hand and save it as "
        f"{tmp_path}/home/vocabularies/other.json"
    )
    assert not (tmp_path / "home").exists()


def test_the_timeout_is_an_option(run, table, web, data):
    web.answers["/tiny.json"] = stalling(data[:9], len(data))
    assert "no answer for 1 seconds" in run("fetch", "tiny", "--timeout", "1").err


def test_an_interrupt_leaves_nothing_and_says_so(table, web, data, tmp_path):
    web.answers["/tiny.json"] = stalling(data[:9], len(data))
    code = (
        "import json, sys\n"
        "from byteweld import cli, encodings, fetching\n"
        "from byteweld.cli import fetch\n"
        "from byteweld.known_encodings import PublicFile\n"
        "made = {'tiny': PublicFile(*json.loads(sys.argv.pop()))}\n"
        "fetching.FETCHABLE = encodings.FETCHABLE = fetch.FETCHABLE = made\n"
        "sys.exit(cli.main())\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, "fetch", "tiny", json.dumps(table["tiny"])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    wait_until(lambda: web.seen)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert err == f"fetching {web.url}/tiny.json\ninterrupted\n"
    assert not (tmp_path / "home").exists()
