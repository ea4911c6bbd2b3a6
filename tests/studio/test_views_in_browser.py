"""Every view of the studio in a real browser: what it shows, and what clicks and keys do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld.evaluation import unreachable
from byteweld.render import visible
from byteweld.studio.examples import FILES
from tests.helpers.browser import HOSTILE, check_width, expect, type_long
from tests.helpers.studio import click_view, go, open_page, serving, token_texts, wait

pytestmark = pytest.mark.browser
PHONE = (390, 844)
SPECIAL = "<|endoftext|>"
WEATHER = FILES[0].text.split("\n")
LOOP, WALK = "#stage-3 > .loop-controls", "#stage-5 .player"
FORWARD, PLAY, END = (
    f"button[aria-label='{name}']" for name in ("One step forward", "Play", "To the end")
)
SENTENCE = "the lowest tokenizer in the town, 1234567 words"
LONG_WORD = " internationalization" * 2 + "ofcounterexamplesandhyperparameters"


def has(page: Any, selector: str, *words: str | re.Pattern[str]) -> None:
    for each in words:
        expect(page.locator(selector)).to_contain_text(each)


def reads(page: Any, selector: str, text: Any) -> None:
    expect(page.locator(selector)).to_have_text(text)


def number(page: Any, selector: str, count: int) -> None:
    expect(page.locator(selector)).to_have_count(count)


# ---------------------------------------------------------------------------- how it works


def buffers(page: Any) -> tuple[list[str], list[str]]:
    """The roles of seq_a and seq_b, and the first file of each, its symbols by spaces."""
    roles = page.locator(".buffer .role").all_inner_texts()
    files = page.eval_on_selector_all(
        ".buffer",
        """all => all.map(buffer => [...buffer.querySelectorAll(".sequences li")].map(
          li => [...li.querySelectorAll(".part")].map(part => part.textContent).join(" "))[0])""",
    )
    return roles, files


def test_the_pipeline_shows_the_users_text_and_leads_to_each_stage(page):
    go(page, "how")
    page.fill("#how-corpus", "aa ab\naab")
    number(page, ".pipeline li", 5)
    stage = [f".pipeline button >> nth={n}" for n in range(5)]
    has(page, stage[0], "aa·ab", "2 files, 8 bytes")
    has(page, stage[1], "61 61 20 61 62")
    has(page, stage[3], "260 tokens")
    reads(page, ".how-bytes li >> nth=0", "a61101")
    # (a, a) and (a, b) occur twice; the smaller right id wins.
    page.click(f"{LOOP} button:text-is('Select')")
    has(page, ".loop-text", "right id 101 is smaller than 102")
    has(page, stage[2], "a + a")
    page.click(f"{LOOP} {END}")
    has(page, stage[3], "261 tokens")
    has(page, stage[4], "260, 36, 101, 102")
    for stage_number, button in enumerate(stage, 1):
        page.click(button)
        expect(page.locator(f"#stage-{stage_number}")).to_be_focused()
        expect(page.locator(f"#stage-{stage_number} h2").first).to_be_in_viewport()


def test_the_buffers_are_counted_rewritten_and_flipped(page):
    go(page, "how")
    current, forward = f"{LOOP} [aria-current]", f"{LOOP} {FORWARD}"
    reads(page, current, "Count")
    assert buffers(page)[0] == ["read", "write"]
    assert buffers(page)[1][0] == "t h e · w e a t h e r · t h e r e"
    has(page, ".buffer >> nth=1", "empty")
    number(page, ".pool .works", 3)
    has(page, ".pool .thread >> nth=2", "line 3, line 4")
    page.click(forward)
    reads(page, current, "Merge tables")
    has(page, ".loop-text", "27 different pairs")
    reads(page, "#stage-3 .pairs tbody tr >> nth=0 >> .n", "12")
    page.click(forward)
    reads(page, current, "Select")
    has(page, ".loop-text", "3 + 3 + 6 = 12 times")
    has(page, ".loop-text .tie", "left id 108 is smaller than 120")
    number(page, ".buffer.reads .part.next", 24)
    page.click(forward)
    reads(page, current, "Replace")
    assert buffers(page)[0] == ["read", "write"]
    assert buffers(page)[1][1] == "t he · w e a t he r · t he r e"
    number(page, ".buffer .fresh", 12)
    page.click(forward)
    reads(page, current, "Flip")
    assert buffers(page)[0] == ["write", "read"]
    has(page, ".buffer >> nth=0", "old")
    page.click(forward)
    reads(page, current, "Count")
    assert buffers(page)[0] == ["write", "read"]
    reads(page, ".phase-round", "merge 2 of 10")
    expect(page).to_have_url(re.compile("how_step=5"))


def test_the_loop_is_played_to_the_engines_merges(page):
    tok = byteweld.train(iter(WEATHER), vocab_size=272, recipe="ck")
    merged = [visible(tok.vocab.tokens[merge.new]) for merge in tok.vocab.merge_ids]
    go(page, "how")
    learned = "#stage-4 .learned .tile"
    page.click(f"{learned} >> nth=9")
    reads(page, f"{LOOP} [aria-current]", "Select")
    page.click(f"{LOOP} {PLAY}")
    has(page, ".loop-text", "Stopped after 10 merges: no pair occurs")
    assert page.locator(learned).all_inner_texts() == merged
    number(page, "#stage-4 .learned .later", 0)
    has(page, "#stage-4", "10 learned = 270 tokens")
    for workers in (1, 2, 7):  # every number of workers learns the same
        page.fill("label:has-text('Threads') input", str(workers))
        page.locator("label:has-text('Threads') input").press("Enter")
        number(page, ".pool .thread", workers)
        assert page.locator(learned).all_inner_texts() == merged


def test_the_trees_grow_with_the_merges(page):
    go(page, "how")
    number(page, "#stage-4 svg.tree", 0)
    for merges, nodes in ((1, 3), (2, 5), (4, 9), (5, 12)):  # the fifth, space + w, is a new tree
        go(page, "how", f"&how_step={5 * merges}")
        number(page, "#stage-4 svg.tree .node", nodes)


def test_longest_match_and_bpe_differ_on_a_word_of_the_text(page):
    go(page, "how")
    way = [f".way >> nth={n}" for n in range(3)]
    expect(page.locator("#match-text")).to_have_value(" there")
    for each, tiles, cost in (
        (way[0], ["·the", "r", "e"], "6 lookups"),
        (way[1], ["·the", "r", "e"], "8 steps"),
        (way[2], ["·", "ther", "e"], "3 merges"),
    ):
        reads(page, f"{each} >> .tile", tiles)
        has(page, each, cost)
    has(page, ".verdict", "Longest match is wrong here")
    page.fill("#match-text", "the")
    has(page, ".verdict", "All three agree on this text: 1 token")
    page.click("button:has-text('abc, with only')")
    reads(page, f"{way[1]} >> .ids", "257 99")
    reads(page, f"{way[2]} >> .ids", "97 256")
    page.click("button:text-is('Back to your vocabulary')")
    expect(page.locator("#match-text")).to_have_value(" there")


def test_a_walk_through_the_trie_takes_the_tokens(page):
    go(page, "how")
    step, forward = "#stage-5 .step-text", f"{WALK} {FORWARD}"
    for words in ("Follow · to ·, which is a token.", "Follow t to ·t."):
        page.click(forward)
        reads(page, step, words)
    number(page, ".trie .node.on", 3)  # with the root
    for _ in range(3):
        page.click(forward)
    reads(page, step, "No r follows ·the: take the last token, ·the, id 265.")
    number(page, ".trie .taken", 1)
    page.click(f"{WALK} {END}")
    reads(page, step, "Follow e to e, which is a token; the text ends: take e, id 105.")


def test_keys_step_through_the_loop_and_the_walk_and_buttons_keep_the_focus(page):
    go(page, "how")
    loop, walk = f"{LOOP} .step-label", f"{WALK} .step-label"
    reads(page, loop, "phase 0 of 50")
    reads(page, walk, "step 0 of 8")
    page.locator("#stage-3").focus()
    for key, phase in (("ArrowRight", 1), ("End", 50)):
        page.keyboard.press(key)
        reads(page, loop, f"phase {phase} of 50")
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    reads(page, loop, re.compile("phase [1-9]"))
    page.keyboard.press(" ")  # pause
    paused = page.locator(loop).inner_text()
    page.locator("#stage-5").focus()
    page.keyboard.press("ArrowRight")
    reads(page, walk, "step 1 of 8")
    reads(page, loop, paused)
    for button in (
        f"{LOOP} button:text-is('Select')",
        "#stage-4 .learned .tile >> nth=3",
        f"{LOOP} {FORWARD}",
    ):
        page.locator(button).focus()
        page.keyboard.press("Enter")
        expect(page.locator(button)).to_be_focused()
    reads(page, loop, "phase 18 of 50")
    page.locator(".pipeline button").first.focus()
    page.locator(f"{LOOP} input").evaluate(
        "input => { input.value = 30; input.dispatchEvent(new Event('input')); }"
    )
    reads(page, loop, "phase 30 of 50")
    expect(page.locator(".pipeline button").first).to_be_focused()


def test_the_users_files_are_read_and_what_cannot_be_read_shows_a_message(page, tmp_path: Path):
    (tmp_path / "b.txt").write_text("ab\nab")
    (tmp_path / "a \u202ename.txt").write_text("abab")
    (tmp_path / "large.txt").write_text("x" * 20_001)
    (tmp_path / "binary.bin").write_bytes(b"\xff\xfe")
    go(page, "how")
    page.set_input_files("#how-files", [tmp_path / "b.txt", tmp_path / "a \u202ename.txt"])
    reads(page, "#stage-1 .tile", ["a ⟨U+202E⟩name.txt: 4 bytes", "b.txt: 5 bytes"])
    assert buffers(page)[1][0] == "a b a b"
    page.set_input_files("#how-files", [tmp_path / "large.txt"])
    has(page, "#error", "more than 20,000 bytes")
    page.set_input_files("#how-files", [tmp_path / "binary.bin"])
    has(page, "#error", "binary.bin is not UTF-8 text")
    page.click("button:text-is('Type instead')")
    expect(page.locator("#how-corpus")).to_have_value("\n".join(WEATHER))
    number(page, "#error", 0)
    page.select_option("#stage-1 select", "ck-ascii")
    has(page, "#stage-2", "98 byte values")
    page.fill("#how-corpus", "low\nna\u00efve")
    has(page, "#error", "no token for ï (U+00EF) in line 2")
    page.select_option("#stage-1 select", "ck")
    number(page, "#error", 0)


@pytest.mark.parametrize("corpus", [FILES[2].text, "a" * 4000, HOSTILE * 3])
def test_how_it_works_fits_a_phone_at_every_step(browser, server, corpus: str):
    with open_page(browser, server.url, PHONE, view="how") as page:
        page.locator(".buffers").wait_for()
        page.fill("#how-corpus", corpus)
        size = len(corpus.encode()) - corpus.count("\n")
        has(page, ".pipeline button >> nth=0", f"{size:,} bytes")
        page.wait_for_load_state("networkidle")
        last = int(page.locator(f"{LOOP} input").get_attribute("max"))
        assert last >= 50
        for step in sorted({*range(0, last, 7), last}):
            page.locator(f"{LOOP} input").fill(str(step))
            check_width(page, PHONE[0], step)
        assert "\u202e" not in page.locator("#stage-3").inner_text()
        assert page.evaluate("() => window.hit") is None


# ---------------------------------------------------------------------------- tokens


def test_typing_updates_the_tokens(page, trained):
    text = "the lowest tokenizer\n\tnaïve 🙂"
    page.fill("#text", text)
    ids = trained.encode(text)
    reads(page, "#count", str(len(ids)))
    tokens = trained.decode_tokens_bytes(ids)
    shown = [s.replace("\n", "").replace("\t", "") for s in token_texts(page)]
    # The bytes of a character that several tokens share are below it, without brackets.
    assert shown == [re.sub("[⟨⟩]", "", visible(t).replace("⟩⟨", " ")) for t in tokens]
    has(page, "#counts", f"{len(text)} characters", f"{len(text.encode())} bytes")
    expect(page).to_have_url(re.compile("text=the[+]lowest"))
    page.fill("#text", f"low{SPECIAL}low")
    reads(page, "#tokens .special", SPECIAL)
    page.uncheck(".check input")
    number(page, "#tokens .special", 0)
    assert "".join(token_texts(page)) == f"low{SPECIAL}low"
    low = trained.encode("low")[0]
    for button, shown in (
        ("With ids", str(low)),
        ("With bytes", trained.vocab.tokens[low].hex(" ")),
    ):
        page.click(f"button:text-is('{button}')")
        reads(page, "#tokens small >> nth=0", shown)


def test_pointing_at_a_token_shows_its_details_and_its_occurrences(page, trained):
    page.fill("#text", "the lowest lowest")
    ids = trained.encode("the lowest lowest")
    reads(page, "#count", str(len(ids)))
    page.locator("#tokens .t").last.hover()
    has(page, "#status", f"id {ids[-1]}", trained.vocab.tokens[ids[-1]].hex(" "))
    number(page, "#tokens .same", ids.count(ids[-1]))
    page.locator("#tokens .t").last.click()
    has(page, "#panel", f"{ids[-1]}", "times in this text")
    expect(page.locator("#panel svg.tree")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()


def test_arrow_keys_select_tokens_and_a_screen_reader_announces_them(page, trained):
    page.fill("#text", "the lowest tokenizer")
    ids = trained.encode("the lowest tokenizer")
    reads(page, "#count", str(len(ids)))
    page.locator("#tokens").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#t1")).to_have_attribute("aria-selected", "true")
    assert page.locator("#tokens").get_attribute("aria-activedescendant") == "t1"
    has(page, "#announcement", f"id {ids[1]}")
    page.keyboard.press("Enter")
    page.locator("main.view-why").wait_for()
    assert page.input_value("#word").strip() in "the lowest tokenizer"


def test_on_a_phone_the_panel_does_not_cover_the_token(browser, server):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(f"{server.url}&view=tokens")
    page.locator("#tokens .t").nth(12).tap()
    expect(page.locator("#panel h2")).to_be_visible()
    top = page.locator("#panel").bounding_box()["y"]
    token = page.locator("#t12").bounding_box()
    assert 0 <= token["y"] < token["y"] + token["height"] <= top
    context.close()


def test_ids_are_copied(browser, server, trained):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server.url}&view=tokens")
    page.fill("#text", "the lowest")
    reads(page, "#count", str(trained.count("the lowest")))
    page.click("#copy")
    reads(page, "#copy", "Copied")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == str(trained.encode("the lowest"))
    context.close()


@pytest.mark.parametrize("view", ["tokens", "why"])
def test_a_megabyte_of_text_is_shown_without_drawing_it_all(page, trained, view: str):
    text = ("the lowest tokenizer in the town 1234\n" * 40_000)[: 1 << 20]
    type_long(page, text)
    reads(page, "#count", f"{trained.count(text):,}")
    total, parts, prefix = trained.count(text), "#tokens .t", "t"
    if view == "why":
        click_view(page, "why")
        total, parts, prefix = len(trained.pretokenize(text.encode())), ".of-text", "p"
        has(page, "#pretoken-count", f"{total:,} pre-tokens")
    assert 0 < page.locator(parts).count() < 10_000
    page.locator("#tokens" if view == "tokens" else "#p0").focus()
    page.keyboard.press("End")
    expect(page.locator(f"#{prefix}{total - 1}")).to_be_in_viewport()
    assert page.locator(parts).count() < 20_000


# ---------------------------------------------------------------------------- why


def test_every_pre_token_of_what_was_typed_is_listed_and_explained(page, trained):
    go(page, "why")
    page.fill("#word", SENTENCE)
    pretokens = [token.decode() for token in trained.pretokenize(SENTENCE.encode())]
    reads(page, ".of-text", [token.replace(" ", "·") for token in pretokens])
    has(page, "#pretoken-count", f"{len(pretokens)} pre-tokens")
    for index, token in enumerate(pretokens):
        page.click(f"#p{index}")
        reads(page, ".lead .tile >> nth=0", token.replace(" ", "·"))
        expect(page.locator(f"#p{index}")).to_have_attribute("aria-current", "true")
        number(page, ".of-text[aria-current]", 1)
        number(page, ".parts .part", len(token.encode()))


def test_why_steps_through_the_merges_of_a_word(page, trained):
    go(page, "why")
    has(page, ".greedy", "longest token from the left")
    expect(page.locator(".greedy .tile").first).to_be_visible()
    page.fill("#word", " lowest")
    merges = len(b" lowest") - len(trained.encode(" lowest"))
    reads(page, ".step-label", f"merge 0 of {merges}")
    number(page, ".part", 7)
    has(page, ".ranks tbody tr >> nth=0", "lowest: merges next")
    ranks = page.eval_on_selector_all(".ranks td.n", "all => all.map(t => Number(t.textContent))")
    assert ranks == sorted(ranks)
    page.locator("main h2").first.click()
    page.keyboard.press("ArrowRight")
    number(page, ".part", 6)
    expect(page).to_have_url(re.compile("why_step=1"))
    page.click(PLAY)
    reads(page, ".step-label", f"merge {merges} of {merges}")
    number(page, ".part", len(trained.encode(" lowest")))


def test_only_the_start_of_a_very_long_pre_token_is_drawn_and_the_others_can_be_explained(
    browser, server
):
    # The second tokenizer has no pattern: its only pre-token is the whole text.
    with open_page(browser, server.url, view="why", tok="1") as page:
        page.fill("#word", "\x01" * 998 + "€" * 2000)
        has(page, "#error", "6,998 bytes, too many to step through")
        number(page, ".of-text", 1)
        reads(page, ".of-text", re.compile(r"^(⟨U\+0001⟩){998} … 6,000 more bytes$"))
        assert "6,000 more bytes" in page.locator(".of-text").get_attribute("aria-label")
    with open_page(browser, server.url, view="why", word=f"{'x' * 300} low") as page:
        has(page, "#error", "300 bytes, too many to step through")
        page.click("#p1")
        reads(page, ".lead .tile >> nth=0", "·low")
        number(page, "#error", 0)


def test_the_text_of_the_other_views_is_explained_whole(page, trained):
    whole = f"{SENTENCE}{SPECIAL}\nlow"
    page.fill("#text", whole)
    reads(page, "#count", str(trained.count(whole, allowed_special="all")))
    click_view(page, "why")
    expect(page.locator("#word")).to_have_value(whole)
    reads(page, ".of-text.special", SPECIAL)
    page.click(".of-text.special")
    has(page, ".why-body", "special or added token")
    # Newer text replaces what was chosen here.
    for text, shown in (("newest town", ["newest", "·town"]), ("", [])):
        click_view(page, "tokens")
        page.fill("#text", text)
        reads(page, "#count", str(trained.count(text)))
        click_view(page, "why")
        reads(page, ".of-text", shown)
    has(page, ".why-body", "Nothing to explain yet")


def test_keys_choose_among_the_pre_tokens(browser, server):
    with open_page(browser, server.url, view="why", word="low lower lowest") as page:
        page.locator("#p0").focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#p1")).to_be_focused()
        reads(page, ".lead .tile >> nth=0", "·lower")
        page.keyboard.press("End")
        expect(page.locator("#p2")).to_be_focused()
        expect(page).to_have_url(re.compile("at=9"))
        # One stop for the Tab key.
        stops = page.eval_on_selector_all(".of-text", "all => all.map(b => b.tabIndex)")
        assert stops == [-1, -1, 0]
        page.reload()
        wait(page)
        reads(page, ".lead .tile >> nth=0", "·lowest")


@pytest.mark.parametrize(
    ("state", "step"),
    [
        ({"word": " lowest"}, 0),
        ({"text": "the lowest", "at": "4"}, 0),
        ({}, 0),
        ({"word": "lowest newest", "why_step": "2"}, 2),
        ({"word": " lowest", "step": "3"}, 3),  # an old address
    ],
)
def test_it_starts_at_the_first_step_or_that_of_the_address(browser, server, state, step: int):
    with open_page(browser, server.url, view="why", **state) as page:
        reads(page, ".step-label", re.compile(f"^merge {step} of [1-9]"))
        if "why_step" in state:  # another pre-token starts again
            page.click("#p1")
            reads(page, ".step-label", re.compile("^merge 0 of"))
            expect(page).not_to_have_url(re.compile("why_step"))


def test_its_step_is_its_own(browser, server):
    with open_page(browser, server.url, view="training", step="6") as page:
        reads(page, ".step-label", "merge 6 of 14")
        click_view(page, "why")
        reads(page, ".step-label", re.compile("^merge 0 of"))
        page.click(FORWARD)
        expect(page).to_have_url(re.compile("[&#]step=6"))
        expect(page).to_have_url(re.compile("why_step=1"))
        click_view(page, "training")
        reads(page, ".step-label", "merge 6 of 14")
        click_view(page, "why")
        page.reload()
        wait(page)
        reads(page, ".step-label", re.compile("^merge 1 of"))


def test_an_empty_field_explains_nothing_and_says_what_to_do(browser, server):
    with open_page(browser, server.url, view="why", word=" lowest") as page:
        page.fill("#word", "")
        has(page, ".why-body", "Nothing to explain yet")
        number(page, ".part, .of-text, svg.tree", 0)
        expect(page).to_have_url(re.compile("word=(&|$)"))
        page.reload()
        wait(page)
        has(page, ".why-body", "Nothing to explain yet")
        page.click(".nothing button >> nth=0")
        expect(page.locator("#word")).to_have_value(" tokenizer")
        reads(page, ".lead .tile >> nth=0", "·tokenizer")


@pytest.mark.parametrize("size", [(1440, 900), PHONE])
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
        assert box.evaluate("box => box.scrollWidth > box.clientWidth")
        check_width(page, size[0])


def test_keys_scroll_and_zoom_the_tree(browser, server):
    with open_page(browser, server.url, PHONE, view="why", word=LONG_WORD, tok="1") as page:
        box = page.locator(".tree-box").first
        expect(page.locator("svg.tree")).to_be_visible()
        step = page.locator(".step-label").inner_text()
        box.focus()

        def after(key: str, value: str) -> Any:
            page.keyboard.press(key)
            return box.evaluate(f"box => box.{value}")

        assert after("Home", "scrollLeft") == 0
        assert after("ArrowRight", "scrollLeft") > 0
        end = after("End", "scrollLeft")
        assert box.evaluate("box => box.scrollLeft + box.clientWidth >= box.scrollWidth - 1")
        assert after("ArrowLeft", "scrollLeft") < end
        width = box.evaluate("box => box.scrollWidth")
        assert after("+", "scrollWidth") > width
        page.keyboard.press("0")
        assert after("-", "scrollWidth") == width  # never smaller
        reads(page, ".step-label", step)  # the keys were the tree's


def test_a_pair_stays_on_one_line_on_the_narrowest_phone(browser, server):
    with open_page(browser, server.url, (320, 844), view="why", word=" tokenizer") as page:
        page.locator(".ranks tbody tr").first.wait_for()
        tops = page.eval_on_selector_all(
            ".ranks tbody td:first-child",
            """cells => cells.map(cell => new Set([...cell.querySelectorAll(".tile")].map(
              tile => tile.getBoundingClientRect().top)).size)""",
        )
        assert set(tops) == {1}


def test_a_token_links_to_why_and_on_to_the_vocabulary(page, trained):
    page.fill("#text", "the lowest tokenizer")
    reads(page, "#count", str(trained.count("the lowest tokenizer")))
    page.locator("#tokens .t").nth(1).click()
    page.click("#why-here")
    reads(page, ".sentence [aria-current]", "·lowest")
    for word in ("tokenizer", "lowest"):
        page.click(f".sentence [aria-label='why space {word}']")
        reads(page, ".lead .tile >> nth=0", f"·{word}")
    page.locator(".lead .tile").last.click()
    page.click("#panel button:has-text('Show in vocabulary')")
    page.locator("main.view-vocabulary").wait_for()
    expect(page.locator("#panel h2")).to_be_visible()


# ---------------------------------------------------------------------------- training


def test_a_training_is_stepped_through(page):
    go(page, "training")
    reads(page, "#corpus-tokens", "92")
    has(page, ".pairs tbody tr >> nth=0", "wins")
    has(page, ".tie", "A tie with 1 other pair")
    page.click(FORWARD)
    reads(page, "#corpus-tokens", "83")
    page.click(END)
    has(page, ".step-text", "Stopped after 14 merges")
    page.locator(".learned .tile").nth(2).click()
    reads(page, ".step-label", "merge 3 of 14")


def test_the_user_can_train_on_a_corpus_with_any_recipe(page, trained):
    page.set_viewport_size({"width": 390, "height": 844})
    go(page, "training")
    # The corpus that the studio was started with.
    page.click("#given-corpus")
    has(page, ".note", "bytes of my books", f"{trained.training.total_bytes:,}")
    page.get_by_role("button", name="Who eats?").click()
    expect(page.locator(".note")).not_to_contain_text("my books")
    page.click(".settings summary")
    check_width(page, 390)
    page.fill("#corpus", "aaa aaa aaa")
    has(page, ".pairs tbody tr >> nth=0", "6")
    page.select_option(".settings select", "plain")
    has(page, ".step-text", "occurs 6 times")
    page.select_option(".settings select", "ck-ascii")
    has(page, ".counts", "102 in the vocabulary, 0 learned")
    page.fill("#corpus", "na\u00efve")
    has(page, "#error", "use recipe ck")
    page.select_option(".settings select", "ck")
    number(page, "#error", 0)
    has(page, ".counts", "260 in the vocabulary, 0 learned")


def test_the_merge_log_has_counts_and_a_curve(page, trained):
    go(page, "training")
    first = ".log tbody tr >> nth=0"
    has(page, ".log", "A full-size tokenizer: small")
    has(page, first, f"{trained.training.merge_counts[0]:,}")
    expect(page.locator(".log svg.curve")).to_be_visible()
    page.locator(".log input").fill("20")
    page.locator(".log input").press("Enter")
    reads(page, f"{first} >> td >> nth=0", "20")
    page.click(".log button:has-text('Earlier')")
    reads(page, f"{first} >> td >> nth=0", "0")


# ---------------------------------------------------------------------------- bytes


def test_the_byte_map_counts_and_explains(page):
    page.fill("#text", "aaé")
    reads(page, "#tokens .t >> nth=0", "a")
    go(page, "bytes", "&text=aa%C3%A9")
    has(page, ".counts", "4 bytes")
    expect(page.locator("#b97")).to_have_attribute("aria-label", "byte 61 a, 2 times, very hot")
    page.click("#b32")
    has(page, ".byte-detail", "Ġ")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#b33")).to_be_focused()
    page.click('button:text-is("GPT-2\'s letters")')
    reads(page, "#b32", "Ġ")
    has(page, ".warning", "2 bytes")
    has(page, "main", "218 merges instead of 60")


# ---------------------------------------------------------------------------- vocabulary


def test_two_clicks_find_an_unreachable_token(page, without_pattern):
    go(page, "vocabulary", "&tok=1")
    count = sum(reason != "part" for reason in unreachable(without_pattern).values())
    page.click(f"button:text-is('{count} unreachable tokens')")
    reads(page, "#found", str(count))
    page.locator(".vocab .tile").first.click()
    has(page, "#panel .warning", "Unreachable")


def test_the_vocabulary_is_searched_and_filtered(page, trained):
    tokens = [*trained.vocab.tokens.values()]
    go(page, "vocabulary")
    page.fill("#query", "est")
    reads(page, "#found", str(sum(b"est" in token for token in tokens)))
    page.click("button:text-is('Regex')")
    page.fill("#query", "^ ?low$")
    reads(page, "#found", str(sum(token in (b"low", b" low") for token in tokens)))
    page.fill("#query", "(")
    has(page, "#error", "does not compile")
    page.fill("#query", "")
    page.click(".bars button:text-is('digits')")
    has(page, ".vocab tbody tr >> nth=0", "digits")
    expect(page).to_have_url(re.compile("v_script=digits"))


def test_the_vocabulary_is_filtered_by_rank_and_length_and_details_link_to_parts(page, trained):
    go(page, "vocabulary")
    page.click("button:text-is('Rank')")
    page.fill("#query", "10-19")
    reads(page, "#found", "10")
    page.click("button:text-is('Text')")
    page.fill("#query", "")
    page.fill("label:has-text('Min bytes') input", "4")
    page.fill("label:has-text('Max bytes') input", "6")
    tokens = [*trained.vocab.tokens.values(), *map(str.encode, trained.vocab.special_tokens)]
    reads(page, "#found", str(sum(4 <= len(token) <= 6 for token in tokens)))
    expect(page).to_have_url(re.compile("v_min=4&v_max=6"))
    go(page, "vocabulary", f"&token={trained.vocab.ids[b' low']}")
    reads(page, "#panel h2", "·low")
    page.locator("#panel .merges .tile").first.click()
    expect(page.locator("#panel h2")).not_to_have_text("·low")


# ---------------------------------------------------------------------------- compare


def test_tokenizers_are_compared_on_a_text(page, trained, without_pattern):
    text = "a, b; " * 40 + "the newest town"
    page.fill("#text", text)
    reads(page, "#count", str(trained.count(text)))
    click_view(page, "compare")
    for tok in (trained, without_pattern):
        has(page, ".totals", f"{tok.count(text)} tokens")
    lanes = page.eval_on_selector_all(
        ".segment", "all => all.map(s => [...s.children].map(lane => lane.textContent))"
    )
    assert all(first == second for first, second in lanes)
    assert "".join(first for first, _ in lanes) == visible(text.encode())
    # One click shows where they differ most.
    spots = page.locator(".spots li")
    expect(spots.first).to_be_visible()
    counts = [list(map(int, re.findall(r"[A-D] (\d+)", s))) for s in spots.all_inner_texts()]
    gaps = [max(each) - min(each) for each in counts]
    assert gaps and gaps == sorted(gaps, reverse=True)
    spots.first.locator("button").click()
    expect(page.locator(".segment.differs:focus")).to_be_in_viewport()


def test_tokenizers_are_compared_on_the_users_files(page, trained, without_pattern, tmp_path: Path):
    texts = {"first.txt": "the lowest town", "second.txt": "naïve café tokens"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    go(page, "compare")
    number(page, ".languages tbody tr", 29)
    page.set_input_files("#files", [tmp_path / name for name in texts])
    number(page, ".languages tbody tr", 2)
    for name, text in texts.items():
        both = f"{trained.count(text)} / {without_pattern.count(text)}"
        has(page, f".languages tr:has-text('{name}')", both)


def test_a_single_tokenizer_is_compared_with_a_smaller_cut_of_itself(browser, trained):
    with serving(only=trained) as url, open_page(browser, url, view="compare") as page:
        has(page, ".totals", "only at ")
