"""The tokenizer dialog in a real browser: what is here, what is not, and the command to get it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld import encodings
from byteweld.known_encodings import FETCHABLE
from byteweld.studio.server import StudioServer
from byteweld.studio.session import Session

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright; `pip install --group browser`"
)
pytestmark = pytest.mark.browser
expect = playwright.expect
expect.set_options(timeout=20_000)  # generous, for a busy machine

HOSTILE = "<img src=x onerror=window.hit=1>"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trained: byteweld.Tokenizer) -> Path:
    """Byteweld's folder, still empty, and a public encoding whose file is known."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setenv("BYTEWELD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(encodings, "_loaded", {})
    folder = tmp_path / "home" / "vocabularies"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def page(browser: Any, folder: Path, without_pattern: byteweld.Tokenizer) -> Iterator[Any]:
    """A page with the studio open, and a tokenizer that is none of those to choose."""
    with StudioServer(Session([("ck", without_pattern)])) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        context = browser.new_context(viewport={"width": 1000, "height": 800})
        opened = context.new_page()
        opened.set_default_timeout(20_000)
        faults: list[str] = []
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.goto(f"{server.url}&view=tokens")
        expect(opened.locator("#tokens .t").first).to_be_visible()
        yield opened
        context.close()
        server.shutdown()
        thread.join()
    assert faults == []


def open_dialog(page: Any) -> None:
    page.click("#tokenizer")
    expect(page.locator("#choose")).to_be_visible()


def names(page: Any, selector: str) -> list[str]:
    return page.eval_on_selector_all(f"#choose {selector}", "all => all.map(e => e.textContent)")


def test_what_is_not_here_is_greyed_out_with_the_command_that_fetches_it(page):
    open_dialog(page)
    assert names(page, ".tiles button") == []
    assert names(page, ".missing button") == list(FETCHABLE)
    assert names(page, ".missing code") == [f"byteweld fetch {name}" for name in FETCHABLE]
    for button in page.locator("#choose .missing button").all():
        expect(button).to_be_disabled()
    # Greyed out: not the color of what can be clicked.
    colors = page.evaluate(
        "[...document.querySelectorAll('#choose .missing button, #choose .known strong')]"
        ".map(e => getComputedStyle(e).color)"
    )
    assert colors[0] != colors[-1]
    expect(page.locator("#choose .missing code").first).to_be_visible()


def test_after_fetching_it_works_without_a_reload(page, folder, trained, monkeypatch):
    trained.save(folder / "ranks.tiktoken")
    data = (folder / "ranks.tiktoken").read_bytes()
    (folder / "ranks.tiktoken").unlink()
    (folder / "ranks.tiktoken.byteweld.json").unlink()
    public = encodings.PublicEncoding("cl100k_base", "o200k", trained.vocab.special_tokens, 400)
    monkeypatch.setattr(encodings, "PUBLIC_ENCODINGS", {"cl100k_base": public})
    digest = hashlib.sha256(data).hexdigest()
    monkeypatch.setattr(encodings, "RANK_FILES", {"cl100k_base": digest})
    open_dialog(page)
    assert "cl100k_base" in names(page, ".missing button")
    page.click("#choose .close")
    (folder / "cl100k_base.tiktoken").write_bytes(data)  # as `byteweld fetch` does
    open_dialog(page)
    assert names(page, ".tiles button") == ["cl100k_base"]
    assert "cl100k_base" not in names(page, ".missing button")
    page.click("#choose .tiles button")
    expect(page.locator("#tokenizer")).to_contain_text("cl100k_base")
    expect(page.locator("#tokenizer")).to_contain_text(f"{len(trained)} tokens")


def test_models_of_the_cache_and_files_of_your_folders_can_be_chosen(
    page, folder, trained, tmp_path
):
    snapshot = tmp_path / "hub" / "models--org--model" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    trained.save(snapshot / "tokenizer.json")
    byteweld.Tokenizer(trained.vocab).save(folder / f"{HOSTILE}.json")
    open_dialog(page)
    assert names(page, ".tiles button") == [HOSTILE, "org/model"]
    page.click("#choose .tiles button:has-text('org/model')")
    expect(page.locator("#tokenizer")).to_contain_text("org/model")
    assert page.evaluate("window.hit") is None


def test_a_damaged_file_is_an_error_in_the_dialog(page, folder):
    (folder / "cl100k_base.tiktoken").write_bytes(b"YQ== 0\n")
    open_dialog(page)
    page.click("#choose .tiles button:has-text('cl100k_base')")
    expect(page.locator("#choose-error")).to_contain_text("damaged or a different file")


def test_a_slow_answer_leaves_nothing_of_the_last_dialog(page: Any, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text("{}")
    page.click("#tokenizer")
    expect(page.locator("#choose")).to_be_visible()
    page.keyboard.press("Escape")
    page.route("**/api/start", lambda route: (page.wait_for_timeout(500), route.continue_())[1])
    page.click("#tokenizer")
    page.set_input_files("#tokenizer-file", tmp_path / "wrong.json")
    expect(page.locator("#choose")).to_be_visible()
    expect(page.locator("#choose-error")).to_contain_text("wrong.json", timeout=3000)


def test_clicking_twice_opens_one_dialog(page):
    page.evaluate("for (let n = 0; n < 3; n++) document.getElementById('tokenizer').click()")
    expect(page.locator("#choose")).to_be_visible()
    assert len(names(page, "h2")) == 1


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_dialog_fits_any_width(page, width):
    page.set_viewport_size({"width": width, "height": 700})
    open_dialog(page)
    overflow = page.evaluate(
        "(() => { const d = document.getElementById('choose');"
        " return d.scrollWidth - d.clientWidth; })()"
    )
    assert overflow <= 0
