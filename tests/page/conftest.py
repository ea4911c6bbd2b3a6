"""Shared by the tests of the static page: the page, built from its sources, open in a browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import byteweld
from scripts.make_page import find_compiler

ROOT = Path(__file__).parents[2]
SPECIAL = "<|endoftext|>"
CORPUS = (
    "the lowest tokenizer in the town tokenizes the newest tokens; low, lower, lowest, new, newer, "
    "newest, wide, wider, widest; token, tokens, tokenize, tokenizer; naïve café 小船 🙂🙂; "
    "<b>bold</b> <script>alert(1)</script> def area(width):\n    return width * width\n"
) * 20


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, as `make page` makes it."""
    if find_compiler() is None:
        pytest.skip("no Rust compiler for WebAssembly; scripts/make_page.py says how to get one")
    out = tmp_path_factory.mktemp("page") / "byteweld.html"
    command = [sys.executable, str(ROOT / "scripts" / "make_page.py"), "--out", str(out)]
    subprocess.run(command, check=True, timeout=1200)
    return out


@pytest.fixture(scope="session")
def trained() -> byteweld.Tokenizer:
    """A tokenizer of 500 tokens."""
    recipe = byteweld.RECIPES["modern"].replace(special_tokens=[SPECIAL])
    return byteweld.train(iter([CORPUS]), vocab_size=500, recipe=recipe)


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, page_file: Path) -> Iterator[Open]:
    """Open the page from its file, offline; fails afterwards if the page misbehaved."""
    from tests.helpers.browser import Watch

    contexts: list[Any] = []
    watches: list[Any] = []

    def call(*, watched: bool = True, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.set_default_timeout(60_000)
        if watched:
            watches.append(Watch(page, page_file.as_uri()))
        page.goto(page_file.as_uri())
        return page

    yield call
    for context in contexts:
        context.close()
    assert [fault for watch in watches for fault in watch.faults] == []


@pytest.fixture
def page(open_page: Open, trained: byteweld.Tokenizer, tmp_path: Path) -> Any:
    """The page with a small vocabulary open."""
    trained.save(tmp_path / "small.json")
    opened = open_page()
    opened.set_input_files("#vocabulary-file", tmp_path / "small.json")
    opened.wait_for_selector("#tokens .t")
    return opened
