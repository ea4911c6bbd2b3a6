"""The studio in a real browser: the first visit, keys, themes, phones, files, saved pages."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld import encodings
from byteweld.known_encodings import FETCHABLE
from byteweld.render import visible
from byteweld.studio.session import Session
from byteweld.studio.views import VIEWS
from tests.helpers.browser import (
    HOSTILE,
    check_accessibility,
    check_paper,
    check_width,
    drop,
    expect,
    saved,
    type_long,
)
from tests.helpers.studio import click_view, go, open_page, running, serving, token_texts, wait

pytestmark = pytest.mark.browser
PHONE = (390, 844)
CURRENT = "#views [aria-current]"
SCREENSHOTS = os.environ.get("BYTEWELD_SCREENSHOTS")  # to look at


def colors(page: Any, selector: str) -> list[str]:
    return page.eval_on_selector_all(selector, "all => all.map(e => getComputedStyle(e).color)")


# ---------------------------------------------------------------------------- opening


def test_the_token_leaves_the_address_and_without_one_the_page_says_what_to_do(
    page, browser, server
):
    assert "token=" not in page.url
    page.reload()
    expect(page.locator("#tokens .t").first).to_be_visible()
    fresh = browser.new_context().new_page()
    fresh.goto(f"http://127.0.0.1:{server.port}/")
    expect(fresh.locator("#error")).to_contain_text("open the address printed in the terminal")
    expect(fresh.locator(".skeleton")).to_have_count(0)
    fresh.context.close()


@pytest.mark.parametrize(("first_view", "later"), [("tokens", "Tokens"), ("how", "How it works")])
def test_the_first_visit_starts_with_what_bpe_is(browser, trained, first_view: str, later: str):
    with running(Session([("quickstart", trained)], first_view=first_view)) as server:
        with open_page(browser, server.url) as page:
            for _ in range(2):
                expect(page.locator(CURRENT)).to_have_text("How it works")
                first = page.locator("main p").first.inner_text()
                assert first.startswith("Byte pair encoding (BPE) turns text into ")
                page.reload()  # still the first visit
                wait(page)
            again = page.context.new_page()
            again.goto(server.url)
            expect(again.locator(CURRENT)).to_have_text(later)


def test_without_storage_the_page_works(browser, server):
    page = browser.new_context().new_page()
    page.add_init_script(
        "for (const name of ['getItem', 'setItem', 'removeItem'])"
        " Storage.prototype[name] = () => { throw new Error('no storage'); };"
    )
    page.goto(server.url)
    expect(page.locator(CURRENT)).to_have_text("How it works")
    page.click("#theme")
    expect(page.locator("#theme")).to_have_text("Theme: light")
    page.context.close()


def test_a_skeleton_is_shown_while_the_page_loads(browser, server):
    page = browser.new_context().new_page()
    held: list[Any] = []
    page.route("**/api/start", lambda route: held.append(route))
    page.goto(f"{server.url}&view=tokens")
    expect(page.locator(".skeleton")).to_have_text("Loading…")
    expect(page.locator(".brand")).to_have_text("byteweld studio")
    page.route("**/api/tokens", lambda route: held.append(route))
    held.pop(0).continue_()
    expect(page.locator("main[aria-busy=true] #tokens")).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    box = page.locator("#tokens")
    assert box.evaluate("box => box.getBoundingClientRect().height") > 100  # something to see
    assert "gradient" in box.evaluate("box => getComputedStyle(box).backgroundImage")
    held.pop(0).continue_()
    expect(page.locator("#tokens .t").first).to_be_visible()
    expect(page.locator("main[aria-busy]")).to_have_count(0)
    page.context.close()


def test_an_invalid_address_opens_the_tokens(page):
    for hash in ("#view=constructor", "#view=none&tok=99&sel=x", "#view=tokens&sel=999999"):
        page.evaluate("(hash) => { location.hash = hash; }", hash)
        page.locator("main.view-tokens").wait_for()
        expect(page.locator("#tokens .t").first).to_be_visible()


def test_a_late_answer_for_another_view_is_ignored(page):
    page.route("**/api/*", lambda route: (page.wait_for_timeout(60), route.continue_())[1])
    for view in (*VIEWS, *reversed(VIEWS), "tokens"):
        page.evaluate("(hash) => { location.hash = hash; }", f"#view={view}")
    page.locator("main.view-tokens").wait_for()
    page.wait_for_load_state("networkidle")
    expect(page.locator("#tokens .t").first).to_be_visible()
    assert page.locator("#error").count() == 0


# ---------------------------------------------------------------------------- keys, themes


def test_keys_switch_views_and_back_returns(page):
    shown = page.eval_on_selector_all(
        "#views a", "all => all.map(a => getComputedStyle(a, '::after').content)"
    )
    keys = [re.sub(r"\D", "", each) for each in shown]
    assert keys == [str(number) for number in range(1, len(VIEWS) + 1)]
    page.locator("#tokens").focus()
    for key, view in zip(keys, VIEWS, strict=True):
        page.keyboard.press(key)
        page.locator(f"main.view-{view}").wait_for()
        expect(page).to_have_url(re.compile(f"view={view}"))
    page.go_back()
    page.locator(f"main.view-{VIEWS[-2]}").wait_for()


def test_the_shortcuts_are_listed_by_a_key_and_by_a_button(page):
    keys = page.locator("#keys")
    page.locator("#text").focus()
    page.keyboard.press("?")  # in a field, it is text
    expect(keys).to_be_hidden()
    assert "?" in page.input_value("#text")
    for how in ("key", "button"):
        if how == "key":
            page.locator("#tokens").focus()
            page.keyboard.press("?")
        else:
            page.get_by_role("button", name="Keyboard shortcuts").click()
        for words in ("switch views", "explain it in the Why view", "play or pause"):
            expect(keys).to_contain_text(words)
        page.keyboard.press("3")  # the dialog is open: no view is switched
        expect(page.locator("main.view-tokens")).to_have_count(1)
        check_accessibility(page)
        page.keyboard.press("Escape")
        expect(keys).to_be_hidden()


def test_the_theme_button_says_what_it_is_and_does_and_is_remembered(page):
    page.emulate_media(color_scheme="light")
    for now, then in (("system", "light"), ("light", "dark"), ("dark", "system")):
        button = page.get_by_role("button", name=f"Theme: {now}, switch to {then}", exact=True)
        expect(button).to_have_text(f"Theme: {now}")
        check_paper(page, "dark" if now == "dark" else "light")
        page.reload()
        expect(button).to_have_text(f"Theme: {now}")
        button.click()
    expect(page.locator("#theme")).to_have_text("Theme: system")


# ---------------------------------------------------------------------------- every view


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits_its_screen_and_can_be_read(browser, server, view, scheme, tmp_path):
    state = {"tokens": {"sel": "2"}, "how": {"how_step": "8", "how_walk": "5"}}.get(view, {})
    for size in ((1280, 844), PHONE):
        with open_page(browser, server.url, size, scheme, view=view, **state) as page:
            check_width(page, size[0], view)
            check_paper(page, scheme)
            check_accessibility(page)
            page.screenshot(path=Path(SCREENSHOTS or tmp_path) / f"{view}-{scheme}-{size[0]}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing_in_hard_text(browser, server, scheme: str):
    text = "في عام 2024، naïve 吞吐量 🙂\nשלום 123"
    for view, fields in (("tokens", {"sel": "3"}), ("why", {"at": "0"}), ("compare", {})):
        with open_page(browser, server.url, scheme=scheme, view=view, text=text, **fields) as page:
            check_accessibility(page)


@pytest.mark.parametrize("width", [390, 320])
def test_all_tabs_are_in_view_on_a_phone(browser, server, width: int):
    with open_page(browser, server.url, (width, 844), view="tokens") as page:
        boxes = page.eval_on_selector_all(
            "#views a",
            """all => all.map(a => a.getBoundingClientRect()).map(
              ({left, right, top, height}) => ({left, right, top, height}))""",
        )
        assert len(boxes) == len(VIEWS)
        for box in boxes:
            assert 0 <= box["left"] < box["right"] <= width
            assert box["height"] >= 28  # a finger can hit it
        for view in VIEWS:
            page.locator(f"#views a[href*='view={view}']").click()
            page.locator(f"main.view-{view}").wait_for()
            wait(page)
            check_width(page, width, view)


def test_the_vocabulary_can_be_read_on_a_phone(browser, server):
    with open_page(browser, server.url, PHONE, view="vocabulary", tok="1") as page:
        page.click("button:has-text('unreachable token')")  # the longest words in a row
        expect(page.locator(".vocab tbody tr").first).to_be_visible()
        cut = page.eval_on_selector_all(
            ".vocab th, .vocab td",
            """cells => cells.filter(cell => cell.getClientRects().length &&
              cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)""",
        )
        assert cut == []
        heads = page.eval_on_selector_all(
            ".vocab th",
            """heads => heads.filter(head => head.getClientRects().length).map(head => {
              const range = document.createRange();
              range.selectNodeContents(head);
              const {left, right} = range.getBoundingClientRect();
              return [head.textContent, left, right];
            })""",
        )
        assert [name for name, *_ in heads] == ["token", "id", "bytes", "kind"]
        for (_, _, right), (_, left, _) in itertools.pairwise(heads):
            assert left - right >= 4  # headings do not run into each other
        sizes = page.eval_on_selector_all(
            ".vocab td", "cells => cells.map(cell => parseFloat(getComputedStyle(cell).fontSize))"
        )
        assert min(sizes) >= 12
        fields = page.eval_on_selector_all(
            ".filters .field", "all => all.map(field => field.getBoundingClientRect().right)"
        )
        assert max(fields) <= PHONE[0]


# ---------------------------------------------------------------------------- hostile, long text


def test_hostile_text_stays_text_in_every_view(page, trained):
    page.fill("#text", HOSTILE)
    expect(page.locator("#count")).to_have_text(str(trained.count(HOSTILE)))
    assert page.locator("main script, main img").count() == 0
    shown = "".join(token_texts(page))
    assert "<script>" in shown.replace("·", " ")
    assert "\u202e" not in shown and "\x00" not in shown
    for view in VIEWS:
        click_view(page, view)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("() => window.hit") is None


def test_dropped_files_are_read_and_what_is_too_long_or_binary_shows_a_message(page, trained):
    drop(page, "a.txt", b"the newest")
    expect(page.locator("#text")).to_have_value("the newest")
    expect(page.locator("#count")).to_have_text(str(trained.count("the newest")))
    error = page.locator("#error")
    drop(page, "a.bin", b"\xff\xfe")
    expect(error).to_contain_text("a.bin is not UTF-8 text")
    drop(page, "a.bin", b"a" + "é".encode() * 600_000)  # the megabyte ends inside a character
    expect(error).to_contain_text("only its first megabyte is shown")
    assert page.evaluate("() => document.querySelector('#text').value.length") == 1 << 19
    for size in ((1 << 20) + 1, 7 << 20):
        type_long(page, "x" * size)
        expect(error).to_contain_text("use a part of it")
        page.fill("#text", "low")
        expect(error).to_have_count(0)


def test_bytes_look_the_same_on_the_page_and_in_the_terminal(page, nasty_texts):
    # The browser and this Python may have different Unicode versions.
    texts = [t for t in nasty_texts if len(t) < 2000 and "Cn" not in map(unicodedata.category, t)]
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [text.encode("utf-8", "surrogatepass") for text in texts]
    tokens += [b"\xe2\x82", b" \xff\n", "\u0301a".encode(), b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
    shown = page.evaluate(
        """async (all) => {
          const {visible, fromHex} = await import("/page/glyphs.js");
          return all.map((hex) => visible(fromHex(hex)));
        }""",
        [token.hex() for token in tokens],
    )
    assert shown == [visible(token) for token in tokens]


def test_packed_numbers_are_read_with_and_without_native_base64(page):
    read = """async (native) => {
      const {unpacked} = await import("/page/api.js");
      if (!native) Uint8Array.fromBase64 = undefined;
      return ["AQID", "AQACAP//", "AQAAAP////8=", ""].map(
        (data, n) => [...unpacked({width: [1, 2, 4, 1][n], data})]);
    }"""
    expected = [[1, 2, 3], [1, 2, 65_535], [1, 2**32 - 1], []]
    assert [page.evaluate(read, native) for native in (True, False)] == [expected] * 2


# ---------------------------------------------------------------------------- the tokenizer


def test_a_tokenizer_is_chosen_or_opened_in_the_header(page, trained, without_pattern, tmp_path):
    header = page.locator("#tokenizer")
    fingerprint = trained.vocab.fingerprint[:8]
    for words in ("small", f"{len(trained)} tokens", "pattern o200k", fingerprint):
        expect(header).to_contain_text(words)
    page.click("#tokenizer")
    page.click("#choose button:has-text('ck')")
    expect(header).to_contain_text("pattern gpt2")
    assert "tok=1" in page.url
    page.go_back()
    expect(header).to_contain_text("small")
    without_pattern.save(tmp_path / "given.json")
    page.click("#tokenizer")
    page.set_input_files("#tokenizer-file", tmp_path / "given.json")
    expect(header).to_contain_text("ck")  # it is open already, under that name
    (tmp_path / "wrong.json").write_text("{}")
    page.click("#tokenizer")
    page.set_input_files("#tokenizer-file", tmp_path / "wrong.json")
    expect(page.locator("#choose-error")).to_contain_text("wrong.json")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trained: byteweld.Tokenizer) -> Path:
    """Byteweld's folder, still empty."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setenv("BYTEWELD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(encodings, "_loaded", {})
    folder = tmp_path / "home" / "vocabularies"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def alone(browser: Any, folder: Path, without_pattern: byteweld.Tokenizer) -> Iterator[Any]:
    """A page with a tokenizer that is none of those to choose."""
    with serving(ck=without_pattern) as url, open_page(browser, url, view="tokens") as page:
        yield page


def open_dialog(page: Any) -> None:
    page.click("#tokenizer")
    expect(page.locator("#choose")).to_be_visible()


def listed(page: Any, selector: str) -> list[str]:
    return page.locator(f"#choose {selector}").all_text_contents()


def test_what_is_not_here_has_the_command_that_fetches_it_and_then_works_without_a_reload(
    alone, folder, trained, monkeypatch
):
    open_dialog(alone)
    assert listed(alone, ".tiles button") == []
    assert listed(alone, ".missing button") == list(FETCHABLE)
    assert listed(alone, ".missing code") == [f"byteweld fetch {name}" for name in FETCHABLE]
    for button in alone.locator("#choose .missing button").all():
        expect(button).to_be_disabled()
    clickable = colors(alone, "#choose .known strong")
    assert not set(colors(alone, "#choose .missing button")) & set(clickable)
    alone.click("#choose .close")
    byteweld.Tokenizer(trained.vocab).save(folder / "ranks.tiktoken")
    data = (folder / "ranks.tiktoken").read_bytes()
    for file in folder.iterdir():
        file.unlink()
    public = encodings.PublicEncoding("cl100k_base", "o200k", trained.vocab.special_tokens)
    monkeypatch.setattr(encodings, "PUBLIC_ENCODINGS", {"cl100k_base": public})
    digest = hashlib.sha256(data).hexdigest()
    monkeypatch.setattr(encodings, "RANK_FILES", {"cl100k_base": digest})
    (folder / "cl100k_base.tiktoken").write_bytes(data)  # as `byteweld fetch` does
    open_dialog(alone)
    assert listed(alone, ".tiles button") == ["cl100k_base"]
    assert "cl100k_base" not in listed(alone, ".missing button")
    alone.click("#choose .tiles button")
    expect(alone.locator("#tokenizer")).to_contain_text("cl100k_base")
    expect(alone.locator("#tokenizer")).to_contain_text(f"{len(trained)} tokens")


def test_models_of_the_cache_and_files_of_your_folders_can_be_chosen(
    alone, folder, trained, tmp_path
):
    snapshot = tmp_path / "hub" / "models--org--model" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    trained.save(snapshot / "tokenizer.json")
    hostile = "<img src=x onerror=window.hit=1>"
    byteweld.Tokenizer(trained.vocab).save(folder / f"{hostile}.json")
    (folder / "cl100k_base.tiktoken").write_bytes(b"YQ== 0\n")
    open_dialog(alone)
    assert set(listed(alone, ".tiles button")) == {hostile, "org/model", "cl100k_base"}
    alone.click("#choose .tiles button:has-text('cl100k_base')")
    expect(alone.locator("#choose-error")).to_contain_text("damaged or a different file")
    alone.click("#choose .tiles button:has-text('org/model')")
    expect(alone.locator("#tokenizer")).to_contain_text("org/model")
    assert alone.evaluate("window.hit") is None


def test_the_dialog_opens_once_fits_any_width_and_keeps_nothing_of_the_last(alone, tmp_path):
    (tmp_path / "wrong.json").write_text("{}")
    alone.evaluate("for (let n = 0; n < 3; n++) document.getElementById('tokenizer').click()")
    expect(alone.locator("#choose")).to_be_visible()
    assert len(listed(alone, "h2")) == 1
    for width in (320, 390, 1280):
        alone.set_viewport_size({"width": width, "height": 700})
        assert alone.locator("#choose").evaluate("d => d.scrollWidth - d.clientWidth") <= 0
    alone.keyboard.press("Escape")
    alone.route("**/api/start", lambda route: (alone.wait_for_timeout(500), route.continue_())[1])
    alone.click("#tokenizer")
    alone.set_input_files("#tokenizer-file", tmp_path / "wrong.json")
    expect(alone.locator("#choose")).to_be_visible()
    expect(alone.locator("#choose-error")).to_contain_text("wrong.json", timeout=3000)


# ---------------------------------------------------------------------------- saving

# What each view shows most.
SHOWN = {
    "how": ".buffers",
    "tokens": "#tokens",
    "why": ".parts",
    "training": ".pairs",
    "bytes": ".heat-map",
    "vocabulary": ".vocab",
    "compare": ".lanes",
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_saved_page_shows_the_same_offline_and_can_be_used(page, browser, view, tmp_path):
    page.fill("#text", f"the lowest {HOSTILE}")
    expect(page.locator("#tokens")).to_contain_text("script")
    click_view(page, view)
    if view == "tokens":
        page.locator("#tokens .t").nth(1).click()
        expect(page.locator("#panel h2")).to_be_visible()
    page.wait_for_load_state("networkidle")
    with saved(page, browser, tmp_path / "saved.html") as alone:
        alone.locator(f"main.view-{view}").wait_for()
        expect(alone.locator(".stamp")).to_have_text("saved page")
        picked = SHOWN[view]
        expect(alone.locator(picked)).to_have_text(page.locator(picked).text_content())
        assert alone.evaluate("() => window.hit") is None
        if view == "how":
            alone.click("#stage-3 button[aria-label='To the end']")
            expect(alone.locator(".loop-text")).to_contain_text("Stopped after 10 merges")
        elif view == "training":
            alone.click("button[aria-label='One step forward']")
            expect(alone.locator("#corpus-tokens")).to_have_text("83")
        elif view == "why":
            alone.locator("#p1").click()
            expect(alone.locator(".lead .tile").first).to_have_text("·lowest")
        elif view == "tokens":
            title = page.locator("#panel h2").text_content()
            expect(alone.locator("#panel h2")).to_have_text(title)
            alone.locator("#tokens .t").nth(3).click()  # other tokens can be selected
            expect(alone.locator("#panel h2")).to_have_text(token_texts(alone)[3])


def test_the_bytes_of_large_files_and_folders_are_counted_whole_and_saved(
    page, browser, tmp_path: Path
):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "large.bin").write_bytes(b"ab\xff" * 3_000_000)  # more than two chunks
    (folder / "small.txt").write_text("a")
    go(page, "bytes")
    counts = page.locator(".counts")
    page.set_input_files("#byte-file", folder / "large.bin")
    expect(counts).to_contain_text("9,000,000 bytes of large.bin — 3 of 256")
    expect(page.locator("#b97")).to_have_attribute("aria-label", re.compile("3,000,000 times"))
    page.set_input_files("#byte-folder", folder)
    expect(counts).to_contain_text("9,000,001 bytes of 2 files")
    expect(page.locator(".warning")).to_contain_text("3,000,000 bytes")
    with saved(page, browser, tmp_path / "saved.html") as alone:
        expect(counts).to_contain_text("9,000,001 bytes of 2 files")
        expect(alone.locator(".counts")).to_contain_text("9,000,001 bytes of 2 files")
    page.click("button:text-is('English only')")
    expect(counts).not_to_contain_text("files")
