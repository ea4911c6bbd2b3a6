"""Nothing connects to a network unless it is told to: only `fetch` has addresses of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "byteweld"

# Raises in every thread of the process, whatever code calls it.
GUARD = """
import sys

def guard(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        raise AssertionError(f"{event} {arguments}")

sys.addaudithook(guard)
"""

LOCAL = """
import importlib, pkgutil, byteweld
assert not {"urllib.request", "http.client", "ssl", "socket"} & set(sys.modules)

def refused(call, *arguments):
    try:
        call(*arguments)
    except (OSError, ValueError, KeyError) as error:
        return str(error)
    raise AssertionError(f"{call} {arguments} succeeded")

for name in ("cl100k_base", "gpt-4o", "qwen3", "org/model", "openai-community/gpt2", "nothing"):
    refused(byteweld.load, name)
    refused(byteweld.get_encoding, name)
    refused(byteweld.encoding_for_model, name)
byteweld.list_encoding_names()
refused(byteweld.fetch, "gpt-4o")

for module in pkgutil.walk_packages(byteweld.__path__, "byteweld."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

from byteweld.cli import main
for line in (["list"], ["list", "--json"], ["fetch"], ["help", "fetch"]):
    assert main(line) == 0, line
for line in (["tokens", "-t", "cl100k_base", "x"], ["inspect", "org/model"], ["studio", "gpt-4o"]):
    assert main(line) == 2, line

from byteweld.studio.opening import open_named, start
from byteweld.studio.request import Request, Refused
from byteweld.studio.session import Session
session = Session([("bytes", byteweld.Tokenizer(
    byteweld.Vocabulary({byte: bytes([byte]) for byte in range(256)})))])
assert start(session, Request({}))["missing"]
try:
    open_named(session, Request({"name": "cl100k_base"}))
except Refused:
    pass
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_loading_and_listing_never_connect(monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    done = run(GUARD + LOCAL)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("call", ["byteweld.fetch('cl100k_base')", "main(['fetch', 'gpt2'])"])
def test_the_guard_of_this_test_works_and_fetch_connects(call, monkeypatch):
    monkeypatch.setenv("BYTEWELD_MIRROR", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "*")
    done = run(f"{GUARD}\nimport byteweld\nfrom byteweld.cli import main\n{call}")
    assert "AssertionError: socket." in done.stderr


def test_only_fetching_has_an_http_client():
    """`corpus` opens addresses that the user typed, through fsspec; the studio only listens."""
    clients = r"urllib\.request|http\.client|urllib3|requests|httpx|aiohttp|ftplib|huggingface_hub"
    found = [
        file.relative_to(SOURCE).as_posix()
        for file in SOURCE.rglob("*.py")
        if re.search(rf"^\s*(?:import|from) (?:{clients})\b", file.read_text(), re.MULTILINE)
    ]
    assert found == ["fetching.py"]
