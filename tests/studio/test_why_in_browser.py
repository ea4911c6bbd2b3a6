"""The Why view in a real browser: every pre-token, its own step, trees that can be read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.studio import open_page, wait

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright; `pip install --group browser`"
)
pytestmark = pytest.mark.browser
expect = playwright.expect
expect.set_options(timeout=20_000)

SPECIAL = "<|endoftext|>"
SENTENCE = "the lowest tokenizer in the town, 1234567 words"
LONG_WORD = " internationalization" * 2 + "ofcounterexamplesandhyperparameters"


def listed(page: Any) -> list[str]:
    return page.locator(".of-text").all_text_contents()


def test_every_pre_token_of_what_was_typed_is_listed_and_explained(browser, server, trained):
    with open_page(browser, server.url, view="why") as page:
        page.fill("#word", SENTENCE)
        pretokens = [token.decode() for token in trained.pretokenize(SENTENCE.encode())]
        expect(page.locator(".of-text")).to_have_count(len(pretokens))
        assert listed(page) == [token.replace(" ", "·") for token in pretokens]
        expect(page.locator("#pretoken-count")).to_contain_text(f"{len(pretokens)} pre-tokens")
        for index, token in enumerate(pretokens):
            page.locator(f"#p{index}").click()
            expect(page.locator(".lead .tile").first).to_have_text(token.replace(" ", "·"))
            expect(page.locator(f"#p{index}")).to_have_attribute("aria-current", "true")
            expect(page.locator(".of-text[aria-current]")).to_have_count(1)
            parts = len(token.encode())
            expect(page.locator(".parts .part")).to_have_count(parts)


def test_only_the_start_of_a_very_long_pre_token_is_drawn(browser, server):
    # The second tokenizer has no pattern: its only pre-token is the whole text.
    text = "\x01" * 998 + "€" * 2000
    with open_page(browser, server.url, view="why", tok="1") as page:
        page.fill("#word", text)
        expect(page.locator("#error")).to_contain_text("6,998 bytes, too many to step through")
        shown = page.locator(".of-text")
        expect(shown).to_have_count(1)
        expect(shown).to_have_text(re.compile(r"^(⟨U\+0001⟩){998} … 6,000 more bytes$"))
        assert "6,000 more bytes" in shown.get_attribute("aria-label")


def test_the_text_of_the_other_views_is_explained_whole(browser, server, trained):
    with open_page(browser, server.url, view="tokens", text=f"{SENTENCE}{SPECIAL}\nlow") as page:
        page.click("#views a:has-text('Why')")
        expect(page.locator("#word")).to_have_value(f"{SENTENCE}{SPECIAL}\nlow")
        expect(page.locator(".of-text.special")).to_have_text(SPECIAL)
        page.locator(".of-text.special").click()
        expect(page.locator(".why-body")).to_contain_text("special or added token")
        # Newer text replaces what was chosen here.
        page.click("#views a:has-text('Tokens')")
        page.fill("#text", "newest town")
        expect(page.locator("#count")).to_have_text(str(trained.count("newest town")))
        page.click("#views a:has-text('Why')")
        expect(page.locator(".of-text")).to_have_text(["newest", "·town"])


def test_keys_choose_among_the_pre_tokens(browser, server):
    with open_page(browser, server.url, view="why", word="low lower lowest") as page:
        page.locator("#p0").focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#p1")).to_be_focused()
        expect(page.locator(".lead .tile").first).to_have_text("·lower")
        page.keyboard.press("End")
        expect(page.locator("#p2")).to_be_focused()
        expect(page).to_have_url(re.compile("at=9"))
        # One stop for the Tab key.
        assert page.eval_on_selector_all(".of-text", "all => all.map(b => b.tabIndex)") == [
            *(-1, -1),
            0,
        ]
        page.reload()
        wait(page)
        expect(page.locator(".lead .tile").first).to_have_text("·lowest")


def test_a_long_text_lists_all_its_pre_tokens_but_draws_few(browser, server, trained):
    text = "the lowest town 12\n" * 20_000
    with open_page(browser, server.url, view="tokens") as page:
        page.evaluate(
            """(text) => {
              const editor = document.querySelector("#text");
              editor.wrap = "off";
              editor.value = text;
              editor.dispatchEvent(new Event("input"));
            }""",
            text,
        )
        expect(page.locator("#count")).to_have_text(f"{trained.count(text):,}")
        page.click("#views a:has-text('Why')")
        total = len(trained.pretokenize(text.encode()))
        expect(page.locator("#pretoken-count")).to_contain_text(f"{total:,} pre-tokens")
        assert 0 < page.locator(".of-text").count() < 10_000
        page.locator("#p0").focus()
        page.keyboard.press("End")
        expect(page.locator(f"#p{total - 1}")).to_be_focused()
        expect(page.locator(f"#p{total - 1}")).to_be_in_viewport()


def test_a_pre_token_too_long_to_explain_leaves_the_others(browser, server):
    with open_page(browser, server.url, view="why", word=f"{'x' * 300} low") as page:
        expect(page.locator("#error")).to_contain_text("300 bytes, too many to step through")
        page.locator("#p1").click()
        expect(page.locator(".lead .tile").first).to_have_text("·low")
        expect(page.locator("#error")).to_have_count(0)


@pytest.mark.parametrize("state", [{"word": " lowest"}, {"text": "the lowest", "at": "4"}, {}])
def test_it_starts_at_the_first_step(browser, server, state):
    with open_page(browser, server.url, view="why", **state) as page:
        expect(page.locator(".step-label")).to_have_text(re.compile("^merge 0 of [1-9]"))


def test_its_step_is_its_own(browser, server):
    with open_page(browser, server.url, view="training", step="6") as page:
        expect(page.locator(".step-label")).to_have_text("merge 6 of 14")
        page.click("#views a:has-text('Why')")
        expect(page.locator(".step-label")).to_have_text(re.compile("^merge 0 of"))
        page.click("button[aria-label='One step forward']")
        expect(page).to_have_url(re.compile("[&#]step=6"))
        expect(page).to_have_url(re.compile("why_step=1"))
        page.click("#views a:has-text('Training')")
        expect(page.locator(".step-label")).to_have_text("merge 6 of 14")
        page.click("#views a:has-text('Why')")
        expect(page.locator(".step-label")).to_have_text(re.compile("^merge 1 of"))
        page.reload()
        wait(page)
        expect(page.locator(".step-label")).to_have_text(re.compile("^merge 1 of"))


def test_choosing_another_pre_token_starts_again(browser, server):
    with open_page(browser, server.url, view="why", word="lowest newest", why_step="2") as page:
        expect(page.locator(".step-label")).to_have_text(re.compile("^merge 2 of"))
        page.locator("#p1").click()
        expect(page.locator(".step-label")).to_have_text(re.compile("^merge 0 of"))
        expect(page).not_to_have_url(re.compile("why_step"))


def test_an_old_address_keeps_its_step(browser, server):
    with open_page(browser, server.url, view="why", word=" lowest", step="3") as page:
        expect(page.locator(".step-label")).to_have_text(re.compile("^merge 3 of"))


def test_an_empty_field_explains_nothing_and_says_what_to_do(browser, server):
    with open_page(browser, server.url, view="why", word=" lowest") as page:
        page.fill("#word", "")
        expect(page.locator(".why-body")).to_contain_text("Nothing to explain yet")
        expect(page.locator(".part, .of-text, svg.tree")).to_have_count(0)
        expect(page).to_have_url(re.compile("word=(&|$)"))
        page.reload()
        wait(page)
        expect(page.locator(".why-body")).to_contain_text("Nothing to explain yet")
        page.click(".nothing button >> nth=0")
        expect(page.locator("#word")).to_have_value(" tokenizer")
        expect(page.locator(".lead .tile").first).to_have_text("·tokenizer")


def test_an_empty_shared_text_explains_nothing(browser, server):
    with open_page(browser, server.url, view="tokens") as page:
        page.fill("#text", "")
        expect(page.locator("#count")).to_have_text("0")
        page.click("#views a:has-text('Why')")
        expect(page.locator(".why-body")).to_contain_text("Nothing to explain yet")


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_the_tree_of_a_long_word_scrolls_and_does_not_shrink(browser, server, size):
    with open_page(browser, server.url, size, view="why", word=LONG_WORD, tok="1") as page:
        expect(page.locator("svg.tree")).to_be_visible()
        heights = page.eval_on_selector_all(
            "svg.tree .node text",
            """all => all.map(text => parseFloat(getComputedStyle(text).fontSize) *
              text.getScreenCTM().a)""",
        )
        assert min(heights) >= 12
        box = page.locator(".tree-box").first
        wide = box.evaluate("box => [box.scrollWidth, box.clientWidth]")
        assert wide[0] > wide[1]
        assert page.evaluate("() => document.documentElement.scrollWidth") <= size[0]


def test_keys_scroll_and_zoom_the_tree(browser, server):
    with open_page(browser, server.url, (390, 844), view="why", word=LONG_WORD, tok="1") as page:
        box = page.locator(".tree-box").first
        expect(page.locator("svg.tree")).to_be_visible()
        step = page.locator(".step-label").inner_text()
        box.focus()
        left = "box => box.scrollLeft"
        page.keyboard.press("Home")
        assert box.evaluate(left) == 0
        page.keyboard.press("ArrowRight")
        first = box.evaluate(left)
        assert first > 0
        page.keyboard.press("End")
        end = box.evaluate(left)
        assert end + box.evaluate("box => box.clientWidth") >= box.evaluate(
            "box => box.scrollWidth - 1"
        )
        page.keyboard.press("ArrowLeft")
        assert box.evaluate(left) < end
        width = box.evaluate("box => box.scrollWidth")
        page.keyboard.press("+")
        assert box.evaluate("box => box.scrollWidth") > width
        page.keyboard.press("0")
        page.keyboard.press("-")
        assert box.evaluate("box => box.scrollWidth") == width  # never smaller
        expect(page.locator(".step-label")).to_have_text(step)  # the keys were the tree's


def test_other_pre_tokens_can_be_chosen_in_a_saved_page(browser, server, tmp_path: Path):
    with open_page(browser, server.url, view="why", word="low lower lowest") as page:
        with page.expect_download() as waiting:
            page.click("#save")
        waiting.value.save_as(tmp_path / "saved.html")
    context = browser.new_context(offline=True)
    alone = context.new_page()
    alone.goto((tmp_path / "saved.html").as_uri())
    alone.locator("#p2").click()
    expect(alone.locator(".lead .tile").first).to_have_text("·lowest")
    assert alone.locator("#error").count() == 0
    context.close()
