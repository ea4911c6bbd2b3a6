"""The first minute in a real browser: where it starts, what it says, themes, keys, a phone."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from byteweld.studio.views import VIEWS
from tests.helpers.studio import open_page, wait

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright; `pip install --group browser`"
)
pytestmark = pytest.mark.browser
expect = playwright.expect
expect.set_options(timeout=20_000)

PHONE = (390, 844)


def check_accessibility(page: Any) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe; `pip install --group browser`"
    )
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


# ---------------------------------------------------------------------------- the first view


def test_the_first_visit_starts_with_how_it_works_and_what_bpe_is(browser, server):
    with open_page(browser, server.url) as page:
        expect(page.locator("#views [aria-current]")).to_have_text("How it works")
        first = page.locator("main p").first.inner_text()
        assert first.startswith("Byte pair encoding (BPE) turns text into ")
        page.reload()  # still the first visit
        wait(page)
        expect(page.locator("#views [aria-current]")).to_have_text("How it works")


def test_later_visits_start_with_the_tokens(browser, server):
    with open_page(browser, server.url) as page:
        again = page.context.new_page()
        again.goto(server.url)
        expect(again.locator("#views [aria-current]")).to_have_text("Tokens")


@pytest.mark.parametrize("view", ["tokens", "vocabulary"])
def test_an_address_that_names_a_view_wins(browser, server, view: str):
    with open_page(browser, server.url, view=view) as page:
        page.locator(f"main.view-{view}").wait_for()


def test_without_storage_the_page_works(browser, server):
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script(
        "for (const name of ['getItem', 'setItem', 'removeItem'])"
        " Storage.prototype[name] = () => { throw new Error('no storage'); };"
    )
    page.goto(server.url)
    expect(page.locator("#views [aria-current]")).to_have_text("How it works")
    page.click("#theme")
    expect(page.locator("#theme")).to_have_text("Theme: light")
    context.close()


# ---------------------------------------------------------------------------- loading


def test_a_skeleton_is_shown_while_the_page_loads(browser, server):
    context = browser.new_context()
    page = context.new_page()
    held: list[Any] = []
    page.route("**/api/start", lambda route: held.append(route))
    page.goto(f"{server.url}&view=tokens")
    expect(page.locator(".skeleton")).to_be_visible()
    expect(page.locator(".skeleton")).to_have_text("Loading…")
    expect(page.locator(".brand")).to_have_text("byteweld studio")
    page.route("**/api/tokens", lambda route: held.append(route))
    held.pop(0).continue_()
    expect(page.locator("main[aria-busy=true] #tokens")).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    height = page.locator("#tokens").evaluate("box => box.getBoundingClientRect().height")
    assert height > 100  # there is something to see
    image = page.locator("#tokens").evaluate("box => getComputedStyle(box).backgroundImage")
    assert "gradient" in image
    held.pop(0).continue_()
    expect(page.locator("#tokens .t").first).to_be_visible()
    expect(page.locator("main[aria-busy]")).to_have_count(0)
    context.close()


def test_an_error_replaces_the_skeleton(browser, server):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/")
    expect(page.locator("#error")).to_contain_text("open the address printed in the terminal")
    expect(page.locator(".skeleton")).to_have_count(0)
    context.close()


# ---------------------------------------------------------------------------- shortcuts, theme


@pytest.mark.parametrize("how", ["key", "button"])
def test_the_shortcuts_are_listed(browser, server, how: str):
    with open_page(browser, server.url, view="tokens") as page:
        if how == "key":
            page.locator("#tokens").focus()
            page.keyboard.press("?")
        else:
            page.get_by_role("button", name="Keyboard shortcuts").click()
        keys = page.locator("#keys")
        expect(keys).to_be_visible()
        for words in ("switch views", "explain it in the Why view", "play or pause"):
            expect(keys).to_contain_text(words)
        page.keyboard.press("3")  # the dialog is open: no view is switched
        expect(page.locator("main.view-tokens")).to_have_count(1)
        check_accessibility(page)
        page.keyboard.press("Escape")
        expect(keys).to_be_hidden()


def test_a_question_mark_in_a_field_is_text(browser, server):
    with open_page(browser, server.url, view="tokens") as page:
        page.locator("#text").focus()
        page.keyboard.press("End")
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_hidden()
        assert "?" in page.input_value("#text")


def test_views_show_their_keys(browser, server):
    with open_page(browser, server.url, view="tokens") as page:
        shown = page.eval_on_selector_all(
            "#views a", "all => all.map(a => getComputedStyle(a, '::after').content)"
        )
        assert [re.sub(r"\D", "", each) for each in shown] == [
            str(n) for n in range(1, len(VIEWS) + 1)
        ]


def test_the_theme_button_says_what_it_is_and_does(browser, server):
    with open_page(browser, server.url, view="tokens") as page:
        page.emulate_media(color_scheme="light")
        paper = "() => getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(paper)
        for now, then in (("system", "light"), ("light", "dark"), ("dark", "system")):
            button = page.get_by_role("button", name=f"Theme: {now}, switch to {then}", exact=True)
            expect(button).to_have_text(f"Theme: {now}")
            assert (page.evaluate(paper) == light) == (now != "dark")
            button.click()
        expect(page.locator("#theme")).to_have_text("Theme: system")


# ---------------------------------------------------------------------------- a phone


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
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width, view


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
        # Headings do not run into each other.
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
            assert left - right >= 4
        sizes = page.eval_on_selector_all(
            ".vocab td", "cells => cells.map(cell => parseFloat(getComputedStyle(cell).fontSize))"
        )
        assert min(sizes) >= 12
        fields = page.eval_on_selector_all(
            ".filters .field", "all => all.map(field => field.getBoundingClientRect().right)"
        )
        assert max(fields) <= PHONE[0]


@pytest.mark.parametrize("view", VIEWS)
def test_an_accessibility_checker_finds_nothing_on_a_phone(browser, server, view: str):
    with open_page(browser, server.url, PHONE, view=view) as page:
        check_accessibility(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing_in_hard_text(browser, server, scheme: str):
    text = "في عام 2024، naïve 吞吐量 🙂\nשלום 123"
    for view, fields in (("tokens", {"sel": "3"}), ("why", {"at": "0"}), ("compare", {})):
        with open_page(browser, server.url, view=view, text=text, **fields) as page:
            page.emulate_media(color_scheme=scheme)
            check_accessibility(page)
