"""The pages of --html and of notebooks in a real browser: no errors, no requests, any theme.

Needs playwright and a Chromium of the system (BYTEWELD_CHROMIUM, or one on the PATH).
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld.cli import main

pytestmark = pytest.mark.browser

SPECIAL = "<img src=x onerror=window.hit=1>"
HOSTILE = (
    "<script>window.hit=1</script> <img src=x onerror=window.hit=1>\"'&amp; \u202eabc\u202c\x00 "
    "</style></title></p> low lower lowest newest 123 小船 été\n    return x\n"
)
LONG = "Donaudampfschifffahrtsgesellschaftskapitän"
PAGES = ("vocabulary", "evaluation", "comparison", "tokens", "why", "training", "bytes", "notebook")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of page, made of documents and tokens that look like markup."""
    folder = tmp_path_factory.mktemp("pages")
    text = folder / "<img src=x onerror=window.hit=1> long name of a file.txt"
    text = text.with_name(text.name.replace("/", ""))
    text.write_text(HOSTILE * 5)
    tok = byteweld.train(
        iter([HOSTILE * 20]), vocab_size=420, recipe="ck", special_tokens=[SPECIAL]
    )
    first, second = folder / "tokenizer.json", folder / "smaller.json"
    tok.save(first)
    tok.cut(300).save(second)
    lines = {
        "vocabulary": ["inspect", first],
        "evaluation": ["inspect", first, "--corpus", text, "--special-text", "text"],
        "comparison": ["compare", first, second, text, "--special-text", "text"],
        "tokens": ["tokens", "-t", first, "--show", text, "--special-text", "text"],
        "why": ["explain", "-t", first, f"{HOSTILE} {LONG}", "--special-text", "text"],
        "training": ["explain", "--train", HOSTILE],
        "bytes": ["inspect", "--bytes", text],
    }
    for name, line in lines.items():
        assert main([*map(str, line), "--html", str(folder / f"{name}.html")]) in (0, 1), name
    cells = [
        tok._repr_html_(),
        tok.show(HOSTILE, disallowed_special=())._repr_html_(),
        byteweld.explain(tok, HOSTILE, disallowed_special=())._repr_html_(),
    ]
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>cells</title><main>'
    cell = "<h1>cells</h1><p id=outside>a paragraph of the notebook</p>"
    (folder / "notebook.html").write_text(head + cell + "".join(cells) + "</main></html>")
    return folder


def opened(browser: Any, pages: Path, name: str, **settings: Any) -> tuple[Any, list[str]]:
    """An offline page, with the errors it logged and the requests it made."""
    faults: list[str] = []
    context = browser.new_context(offline=True, **settings)
    page = context.new_page()
    own = (pages / f"{name}.html").as_uri()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.on("request", lambda asked: None if asked.url == own else faults.append(asked.url))
    page.goto(own)
    return page, faults


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_alone_and_safe(browser, pages, name):
    page, faults = opened(browser, pages, name)
    assert page.evaluate("window.hit") is None
    assert page.locator("script, img, a, iframe, link, [onerror], [style]").count() == 0
    text = page.locator("body").text_content()  # collapsed parts, too
    assert "low" in text or name == "bytes"
    assert "\u202e" not in text
    # The page's own policy allows its own style: a tint or the edge of a tile is there.
    assert "255, 255, 255" not in page.evaluate(
        "getComputedStyle(document.querySelector('.byteweld')).backgroundColor"
    )
    assert faults == []
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(browser, pages, name):
    page, _ = opened(browser, pages, name, viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.context.close()


def test_the_parts_of_a_step_are_a_row_on_a_phone(browser, pages):
    page, _ = opened(browser, pages, "why", viewport={"width": 390, "height": 800})
    tops = page.eval_on_selector_all(
        "section table tbody td:nth-child(2)",
        """cells => cells.map(cell => [...cell.children].slice(0, 5))  // tiles of one character
          .filter(tiles => tiles.map(tile => tile.textContent).join("").length === 5)
          .map(tiles => new Set(tiles.map(tile => tile.getBoundingClientRect().top)).size)""",
    )
    assert tops and set(tops) == {1}
    page.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_an_accessibility_checker_finds_nothing(browser, pages, name, theme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe; `pip install --group browser`"
    )
    page, _ = opened(browser, pages, name, color_scheme=theme, bypass_csp=True)
    for summary in page.locator("summary").all():
        summary.click()
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.context.close()


def test_a_notebook_keeps_its_own_style(browser, pages):
    page, _ = opened(browser, pages, "notebook")
    outside = page.evaluate("getComputedStyle(document.querySelector('#outside')).fontFamily")
    assert "Inter" not in outside
    page.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_a_wide_merge_tree_scrolls_and_keeps_its_size(browser, pages, width, theme):
    page, _ = opened(
        browser, pages, "why", color_scheme=theme, viewport={"width": width, "height": 900}
    )
    trees = page.eval_on_selector_all(
        ".drawing",
        """boxes => boxes.map(box => {
          const svg = box.querySelector("svg"), label = box.querySelector(".node text");
          const style = getComputedStyle(label), rect = box.querySelector(".node rect");
          return {drawn: svg.getBoundingClientRect().width, own: +svg.getAttribute("width"),
                  box: box.clientWidth, inside: box.scrollWidth, font: style.fontSize,
                  ink: style.fill, paper: getComputedStyle(rect).fill};
        })""",
    )
    assert trees
    for tree in trees:
        assert tree["drawn"] == tree["own"]
        assert tree["font"] == "14px"
        assert tree["inside"] == max(tree["own"], tree["box"])
        assert tree["ink"] != tree["paper"]
    assert max(tree["own"] for tree in trees) > width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_the_page_of_a_large_vocabulary_takes_a_few_screens(browser, shared, tmp_path):
    """It was 7,305 pixels high, 8 screens of 900; 9,254 with a corpus."""
    ranks = gzip.decompress((shared / "vocabs/tiktoken/o200k_base.tiktoken.gz").read_bytes())
    (tmp_path / "o200k.tiktoken").write_bytes(ranks)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("ar", "de", "el", "hi", "ja", "ko", "ru", "th", "vi", "zh", "am", "ta"):
        text = gzip.decompress((shared / f"corpora/multilingual/{name}.txt.gz").read_bytes())
        (corpus / f"{name}.txt").write_bytes(text[:20_000])
    subject = ["inspect", str(tmp_path / "o200k.tiktoken"), "--pattern", "o200k", "--no-special"]
    for name, flags, most in (("alone", [], 2_400), ("corpus", ["--corpus", str(corpus)], 3_900)):
        assert main([*subject, *flags, "--html", str(tmp_path / f"{name}.html")]) == 0
        page, faults = opened(browser, tmp_path, name, viewport={"width": 1440, "height": 900})
        assert page.evaluate("document.documentElement.scrollHeight") < most
        first = page.locator(".figures").first.bounding_box()
        assert first["y"] + first["height"] < 450  # in the upper half of the first screen
        assert page.locator("details").count() >= 8
        assert faults == []
        page.context.close()


def test_dark_pages_are_readable(browser, pages):
    for theme, expected in (("light", "rgb(251, 250, 247)"), ("dark", "rgb(20, 22, 26)")):
        page, _ = opened(browser, pages, "comparison", color_scheme=theme)
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert color == expected
        page.context.close()
