"""The studio in a real browser: every view works, offline, in light and dark, at any width.

Needs playwright and a Chromium (BYTEWELD_CHROMIUM, or one on the PATH).
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld.evaluation import unreachable
from byteweld.render import visible
from byteweld.studio.examples import FILES
from byteweld.studio.server import StudioServer
from byteweld.studio.views import VIEWS

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright; `pip install --group browser`"
)
pytestmark = pytest.mark.browser
expect = playwright.expect
expect.set_options(timeout=20_000)  # generous, for a busy machine

SPECIAL = "<|endoftext|>"
HOSTILE = (
    "<script>window.hit=1</script><img src=x onerror=window.hit=1>\"'&amp; \u202eabc\u202c\x00"
)


class Watch:
    """Records what a page must never do: log errors, or contact any server but its own."""

    def __init__(self, page: Any, server: StudioServer) -> None:
        self.faults: list[str] = []
        own = f"http://127.0.0.1:{server.port}/"
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._heard)
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((own, "data:", "blob:"))
                else self.faults.append(request.url)
            ),
        )

    def _heard(self, message: Any) -> None:
        # A refusal is shown on the page; the browser also logs its status.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.faults.append(message.text)


@pytest.fixture
def page(browser: Any, server: StudioServer) -> Iterator[Any]:
    """A page with the studio open; fails afterwards if the page misbehaved."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    watch = Watch(opened, server)
    opened.goto(f"{server.url}&view=tokens")
    expect(opened.locator("#tokens .t").first).to_be_visible()
    yield opened
    context.close()
    assert watch.faults == []


def go(page: Any, view: str, fields: str = "") -> None:
    page.evaluate("(hash) => { location.hash = hash; }", f"#view={view}{fields}")
    page.locator(f"main.view-{view}").wait_for()


def shown_tokens(page: Any) -> list[str]:
    return page.eval_on_selector_all("#tokens .t", "all => all.map(t => t.textContent)")


# ---------------------------------------------------------------------------- the page


def test_the_token_is_removed_from_the_address_and_a_reload_works(page, server):
    assert "token=" not in page.url
    page.reload()
    expect(page.locator("#tokens .t").first).to_be_visible()


def test_without_a_token_the_page_says_what_to_do(browser, server):
    context = browser.new_context()
    fresh = context.new_page()
    fresh.goto(f"http://127.0.0.1:{server.port}/")
    expect(fresh.locator("#error")).to_contain_text("open the address printed in the terminal")
    context.close()


def test_the_header_names_the_tokenizer_its_size_pattern_and_fingerprint(page, trained):
    header = page.locator("#tokenizer")
    for words in (
        "small",
        f"{len(trained)} tokens",
        "pattern o200k",
        trained.vocab.fingerprint[:8],
    ):
        expect(header).to_contain_text(words)


def test_a_tokenizer_is_chosen_in_the_header(page):
    page.click("#tokenizer")
    page.click("#choose button:has-text('ck')")
    expect(page.locator("#tokenizer")).to_contain_text("pattern gpt2")
    assert "tok=1" in page.url
    page.go_back()
    expect(page.locator("#tokenizer")).to_contain_text("small")


def test_a_tokenizer_file_is_opened_from_the_page(page, without_pattern, tmp_path: Path):
    without_pattern.save(tmp_path / "given.json")
    page.click("#tokenizer")
    page.set_input_files("#tokenizer-file", tmp_path / "given.json")
    expect(page.locator("#tokenizer")).to_contain_text("ck")  # it is open already, under that name
    page.click("#tokenizer")
    (tmp_path / "wrong.json").write_text("{}")
    page.set_input_files("#tokenizer-file", tmp_path / "wrong.json")
    expect(page.locator("#choose-error")).to_contain_text("wrong.json")


def test_keys_switch_views_and_back_returns(page):
    page.locator("#tokens").focus()
    for number, view in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        page.locator(f"main.view-{view}").wait_for()
        expect(page).to_have_url(re.compile(f"view={view}"))
    page.go_back()
    page.locator(f"main.view-{VIEWS[-2]}").wait_for()


def test_a_late_answer_for_another_view_is_ignored(page):
    page.route("**/api/*", lambda route: (page.wait_for_timeout(60), route.continue_())[1])
    for view in (*VIEWS, *reversed(VIEWS), "tokens"):
        page.evaluate("(hash) => { location.hash = hash; }", f"#view={view}")
    page.locator("main.view-tokens").wait_for()
    page.wait_for_load_state("networkidle")
    expect(page.locator("#tokens .t").first).to_be_visible()
    assert page.locator("#error").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_view_fits_its_screen(browser, server, scheme: str, width: int, tmp_path: Path):
    folder = Path(os.environ.get("BYTEWELD_SCREENSHOTS") or tmp_path)  # to look at
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    watch = Watch(page, server)
    page.goto(server.url)
    for view in VIEWS:
        go(page, view)
        page.wait_for_load_state("networkidle")
        wide = page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= width, f"{view} is {wide} wide"
        paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        channels = [int(n) for n in re.findall(r"\d+", paper)[:3]]
        assert (sum(channels) > 600) == (scheme == "light")
        page.screenshot(path=folder / f"{view}-{scheme}-{width}.png")
    context.close()
    assert watch.faults == []


def test_the_theme_is_remembered(page):
    before = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    page.click("#theme")
    expect(page.locator("#theme")).to_have_text("Theme: dark")
    page.reload()
    expect(page.locator("#theme")).to_have_text("Theme: dark")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") != before


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing(page, view: str, theme: str):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe; `pip install --group browser`"
    )
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    go(page, view, {"tokens": "&sel=2", "how": "&how_step=8&how_walk=5"}.get(view, ""))
    page.wait_for_load_state("networkidle")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


# ---------------------------------------------------------------------------- how it works

WEATHER = FILES[0].text.split("\n")
LOOP, WALK = "#stage-3 > .loop-controls", "#stage-5 .player"


def roles(page: Any) -> list[str]:
    """The roles of seq_a and seq_b."""
    return page.locator(".buffer .role").all_inner_texts()


def sequences(page: Any, buffer: int) -> list[str]:
    """The files of a buffer, their symbols separated by spaces."""
    return (
        page.locator(".buffer")
        .nth(buffer)
        .locator(".sequences li")
        .evaluate_all(
            """all => all.map(
              li => [...li.querySelectorAll(".part")].map(part => part.textContent).join(" "))"""
        )
    )


def test_the_corpus_that_the_studio_was_started_with_is_trained_on(page, trained):
    go(page, "training")
    page.locator("#given-corpus").click()
    expect(page.locator(".note")).to_contain_text("bytes of my books")
    first = trained.training.total_bytes
    expect(page.locator(".note")).to_contain_text(f"{first:,}")
    page.get_by_role("button", name="Who eats?").click()
    expect(page.locator(".note")).not_to_contain_text("my books")


def test_somebody_without_a_tokenizer_starts_with_how_it_works(browser, trained):
    import threading

    from byteweld.studio.session import Session

    with StudioServer(Session([("quickstart", trained)], first_view="how")) as fresh:
        threading.Thread(target=fresh.serve_forever, args=(0.02,), daemon=True).start()
        context = browser.new_context()
        page = context.new_page()
        page.goto(fresh.url)
        expect(page.locator("#views [aria-current]")).to_have_text("How it works")
        expect(page.locator(".pipeline li")).to_have_count(5)
        context.close()
        fresh.shutdown()


def test_the_pipeline_shows_the_users_text_and_leads_to_each_stage(page):
    go(page, "how")
    page.fill("#how-corpus", "aa ab\naab")
    stages = page.locator(".pipeline button")
    expect(stages.nth(0)).to_contain_text("aa·ab")
    expect(stages.nth(0)).to_contain_text("2 files, 8 bytes")
    expect(stages.nth(1)).to_contain_text("61 61 20 61 62")
    expect(stages.nth(3)).to_contain_text("260 tokens")
    expect(page.locator(".how-bytes li").first).to_have_text("a61101")
    # (a, a) and (a, b) occur twice; the smaller right id wins.
    page.click(f"{LOOP} button:text-is('Select')")
    expect(page.locator(".loop-text")).to_contain_text("right id 101 is smaller than 102")
    expect(stages.nth(2)).to_contain_text("a + a")
    page.click(f"{LOOP} button[aria-label='To the end']")
    expect(stages.nth(3)).to_contain_text("261 tokens")
    expect(stages.nth(4)).to_contain_text("260, 36, 101, 102")
    for number in range(1, 6):
        stages.nth(number - 1).click()
        expect(page.locator(f"#stage-{number}")).to_be_focused()
        expect(page.locator(f"#stage-{number} h2").first).to_be_in_viewport()


def test_the_buffers_are_counted_rewritten_and_flipped(page):
    go(page, "how")
    current = page.locator(f"{LOOP} [aria-current]")
    expect(current).to_have_text("Count")
    assert roles(page) == ["read", "write"]
    assert sequences(page, 0)[0] == "t h e · w e a t h e r · t h e r e"
    expect(page.locator(".buffer").nth(1)).to_contain_text("empty")
    expect(page.locator(".pool .works")).to_have_count(3)
    expect(page.locator(".pool .thread").nth(2)).to_contain_text("line 3, line 4")
    forward = page.locator(f"{LOOP} button[aria-label='One step forward']")
    forward.click()
    expect(current).to_have_text("Merge tables")
    expect(page.locator(".loop-text")).to_contain_text("27 different pairs")
    expect(page.locator("#stage-3 .pairs tbody tr").first.locator(".n")).to_have_text("12")
    forward.click()
    expect(current).to_have_text("Select")
    expect(page.locator(".loop-text")).to_contain_text("3 + 3 + 6 = 12 times")
    expect(page.locator(".loop-text .tie")).to_contain_text("left id 108 is smaller than 120")
    expect(page.locator(".buffer.reads .part.next")).to_have_count(24)
    forward.click()
    expect(current).to_have_text("Replace")
    assert roles(page) == ["read", "write"]
    assert sequences(page, 1)[0] == "t he · w e a t he r · t he r e"
    expect(page.locator(".buffer .fresh")).to_have_count(12)
    forward.click()
    expect(current).to_have_text("Flip")
    assert roles(page) == ["write", "read"]
    expect(page.locator(".buffer").nth(0)).to_contain_text("old")
    forward.click()
    expect(current).to_have_text("Count")
    assert roles(page) == ["write", "read"]
    expect(page.locator(".phase-round")).to_have_text("merge 2 of 10")
    expect(page).to_have_url(re.compile("how_step=5"))


def test_the_loop_is_played_to_the_engines_merges(page):
    tok = byteweld.train(iter(WEATHER), vocab_size=272, recipe="ck")
    merged = [visible(tok.vocab.tokens[merge.new]) for merge in tok.vocab.merge_ids]
    go(page, "how")
    page.click("#stage-4 .learned .tile >> nth=9")
    expect(page.locator(f"{LOOP} [aria-current]")).to_have_text("Select")
    page.click(f"{LOOP} button[aria-label='Play']")
    expect(page.locator(".loop-text")).to_contain_text("Stopped after 10 merges: no pair occurs")
    learned = page.locator("#stage-4 .learned .tile")
    assert learned.all_inner_texts() == merged
    expect(page.locator("#stage-4 .learned .later")).to_have_count(0)
    expect(page.locator("#stage-4")).to_contain_text("10 learned = 270 tokens")


def test_the_trees_grow_with_the_merges(page):
    go(page, "how")
    expect(page.locator("#stage-4 svg.tree")).to_have_count(0)
    boxes = page.locator("#stage-4 svg.tree .node")
    for merges, nodes in ((1, 3), (2, 5), (4, 9), (5, 12)):  # the fifth, space + w, is a new tree
        page.evaluate("(hash) => { location.hash = hash; }", f"#view=how&how_step={5 * merges}")
        expect(boxes).to_have_count(nodes)


def test_every_worker_count_learns_the_same(page):
    go(page, "how")
    seen = set()
    for workers in (1, 2, 7):
        page.fill("label:has-text('Threads') input", str(workers))
        page.locator("label:has-text('Threads') input").press("Enter")
        expect(page.locator(".pool .thread")).to_have_count(workers)
        seen.add(tuple(page.locator("#stage-4 .learned .tile").all_inner_texts()))
    assert len(seen) == 1


def test_longest_match_and_bpe_differ_on_a_word_of_the_text(page):
    go(page, "how")
    ways = page.locator(".way")
    expect(page.locator("#match-text")).to_have_value(" there")
    assert [ways.nth(n).locator(".tile").all_inner_texts() for n in range(3)] == [
        ["·the", "r", "e"],
        ["·the", "r", "e"],
        ["·", "ther", "e"],
    ]
    expect(ways.nth(0)).to_contain_text("6 lookups")
    expect(ways.nth(1)).to_contain_text("8 steps")
    expect(ways.nth(2)).to_contain_text("3 merges")
    expect(page.locator(".verdict")).to_contain_text("Longest match is wrong here")
    page.fill("#match-text", "the")
    expect(page.locator(".verdict")).to_contain_text("All three agree on this text: 1 token")
    page.click("button:has-text('abc, with only')")
    expect(ways.nth(1).locator(".ids")).to_have_text("257 99")
    expect(ways.nth(2).locator(".ids")).to_have_text("97 256")
    page.click("button:text-is('Back to your vocabulary')")
    expect(page.locator("#match-text")).to_have_value(" there")


def test_a_walk_through_the_trie_takes_the_tokens(page):
    go(page, "how")
    step = page.locator("#stage-5 .step-text")
    forward = page.locator(f"{WALK} button[aria-label='One step forward']")
    for words in ("Follow · to ·, which is a token.", "Follow t to ·t."):
        forward.click()
        expect(step).to_have_text(words)
    expect(page.locator(".trie .node.on")).to_have_count(3)  # with the root
    for _ in range(3):
        forward.click()
    expect(step).to_have_text("No r follows ·the: take the last token, ·the, id 265.")
    expect(page.locator(".trie .taken")).to_have_count(1)
    page.click(f"{WALK} button[aria-label='To the end']")
    expect(step).to_have_text("Follow e to e, which is a token; the text ends: take e, id 105.")


def test_keys_step_through_the_loop_and_the_walk(page):
    go(page, "how")
    expect(page.locator(f"{LOOP} .step-label")).to_have_text("phase 0 of 50")
    expect(page.locator(f"{WALK} .step-label")).to_have_text("step 0 of 8")
    page.locator("#stage-3").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(f"{LOOP} .step-label")).to_have_text("phase 1 of 50")
    page.keyboard.press("End")
    expect(page.locator(f"{LOOP} .step-label")).to_have_text("phase 50 of 50")
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    expect(page.locator(f"{LOOP} .step-label")).to_have_text(re.compile("phase [1-9]"))
    page.keyboard.press(" ")  # pause
    paused = page.locator(f"{LOOP} .step-label").inner_text()
    page.locator("#stage-5").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(f"{WALK} .step-label")).to_have_text("step 1 of 8")
    expect(page.locator(f"{LOOP} .step-label")).to_have_text(paused)


def test_a_button_keeps_the_focus_while_steps_are_shown(page):
    go(page, "how")
    for button in (
        f"{LOOP} button:text-is('Select')",
        "#stage-4 .learned .tile >> nth=3",
        f"{LOOP} button[aria-label='One step forward']",
    ):
        page.locator(button).focus()
        page.keyboard.press("Enter")
        expect(page.locator(button)).to_be_focused()
    expect(page.locator(f"{LOOP} .step-label")).to_have_text("phase 18 of 50")
    page.locator(".pipeline button").first.focus()
    page.locator(f"{LOOP} input").evaluate(
        "input => { input.value = 30; input.dispatchEvent(new Event('input')); }"
    )
    expect(page.locator(f"{LOOP} .step-label")).to_have_text("phase 30 of 50")
    expect(page.locator(".pipeline button").first).to_be_focused()


def test_the_users_files_are_read_and_a_large_one_shows_a_message(page, tmp_path: Path):
    (tmp_path / "b.txt").write_text("ab\nab")
    (tmp_path / "a \u202ename.txt").write_text("abab")
    (tmp_path / "large.txt").write_text("x" * 20_001)
    (tmp_path / "binary.bin").write_bytes(b"\xff\xfe")
    go(page, "how")
    page.set_input_files("#how-files", [tmp_path / "b.txt", tmp_path / "a \u202ename.txt"])
    expect(page.locator("#stage-1 .tile")).to_have_text(
        ["a ⟨U+202E⟩name.txt: 4 bytes", "b.txt: 5 bytes"]
    )
    assert sequences(page, 0) == ["a b a b", "a b ⏎ a b"]
    page.set_input_files("#how-files", [tmp_path / "large.txt"])
    expect(page.locator("#error")).to_contain_text("more than 20,000 bytes")
    page.set_input_files("#how-files", [tmp_path / "binary.bin"])
    expect(page.locator("#error")).to_contain_text("binary.bin is not UTF-8 text")
    page.click("button:text-is('Type instead')")
    expect(page.locator("#how-corpus")).to_have_value("\n".join(WEATHER))
    expect(page.locator("#error")).to_have_count(0)


def test_text_outside_ascii_shows_what_to_do(page):
    go(page, "how")
    page.select_option("#stage-1 select", "ck-ascii")
    expect(page.locator("#stage-2")).to_contain_text("98 byte values")
    page.fill("#how-corpus", "low\nna\u00efve")
    expect(page.locator("#error")).to_contain_text("no token for ï (U+00EF) in line 2")
    page.select_option("#stage-1 select", "ck")
    expect(page.locator("#error")).to_have_count(0)


@pytest.mark.parametrize("corpus", [FILES[2].text, "a" * 4000, HOSTILE * 3])
def test_how_it_works_fits_a_phone_at_every_step(browser, server, corpus: str):
    context = browser.new_context(viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    page = context.new_page()
    watch = Watch(page, server)
    page.goto(server.url)
    go(page, "how")
    page.locator(".buffers").wait_for()
    page.fill("#how-corpus", corpus)
    size = len(corpus.encode()) - corpus.count("\n")
    expect(page.locator(".pipeline button").first).to_contain_text(f"{size:,} bytes")
    page.wait_for_load_state("networkidle")
    last = int(page.locator(f"{LOOP} input").get_attribute("max"))
    assert last >= 50
    for step in sorted({*range(0, last, 7), last}):
        page.locator(f"{LOOP} input").fill(str(step))
        wide = page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= 390, f"{wide} wide at step {step}"
    assert "\u202e" not in page.locator("#stage-3").inner_text()
    assert page.evaluate("() => window.hit") is None
    context.close()
    assert watch.faults == []


# ---------------------------------------------------------------------------- tokens


def test_typing_updates_the_tokens(page, trained):
    text = "the lowest tokenizer\n\tnaïve 🙂"
    page.fill("#text", text)
    ids = trained.encode(text)
    expect(page.locator("#count")).to_have_text(str(len(ids)))
    tokens = trained.decode_tokens_bytes(ids)
    shown = [s.replace("\n", "").replace("\t", "") for s in shown_tokens(page)]
    # The bytes of a character that several tokens share are below it, without brackets.
    assert shown == [re.sub("[⟨⟩]", "", visible(t).replace("⟩⟨", " ")) for t in tokens]
    expect(page.locator("#counts")).to_contain_text(f"{len(text)} characters")
    expect(page.locator("#counts")).to_contain_text(f"{len(text.encode())} bytes")
    expect(page).to_have_url(re.compile("text=the[+]lowest"))


def test_special_tokens_are_highlighted_or_plain(page, trained):
    page.fill("#text", f"low{SPECIAL}low")
    expect(page.locator("#tokens .special")).to_have_text(SPECIAL)
    page.uncheck(".check input")
    expect(page.locator("#tokens .special")).to_have_count(0)
    assert "".join(shown_tokens(page)) == f"low{SPECIAL}low"


def test_selecting_a_token_shows_its_details(page, trained):
    page.fill("#text", "the lowest lowest")
    expect(page.locator("#count")).to_have_text(str(trained.count("the lowest lowest")))
    last = trained.encode("the lowest lowest")[-1]
    page.locator("#tokens .t").last.click()
    panel = page.locator("#panel")
    expect(panel).to_contain_text(f"{last}")
    expect(panel).to_contain_text("times in this text")
    expect(panel.locator("svg.tree")).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_hovering_a_token_shows_its_id_and_bytes_and_marks_its_occurrences(page, trained):
    page.fill("#text", "the lowest lowest")
    ids = trained.encode("the lowest lowest")
    expect(page.locator("#count")).to_have_text(str(len(ids)))
    page.locator("#tokens .t").last.hover()
    status = page.locator("#status")
    expect(status).to_contain_text(f"id {ids[-1]}")
    expect(status).to_contain_text(trained.vocab.tokens[ids[-1]].hex(" "))
    expect(page.locator("#tokens .same")).to_have_count(ids.count(ids[-1]))


def test_arrow_keys_select_tokens_and_a_screen_reader_announces_them(page, trained):
    page.fill("#text", "the lowest tokenizer")
    ids = trained.encode("the lowest tokenizer")
    expect(page.locator("#count")).to_have_text(str(len(ids)))
    page.locator("#tokens").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#t1")).to_have_attribute("aria-selected", "true")
    assert page.locator("#tokens").get_attribute("aria-activedescendant") == "t1"
    expect(page.locator("#announcement")).to_contain_text(f"id {ids[1]}")
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


def test_tokens_can_be_shown_with_ids_or_bytes(page, trained):
    page.fill("#text", "low")
    page.click("button:text-is('With ids')")
    expect(page.locator("#tokens small").first).to_have_text(str(trained.encode("low")[0]))
    page.click("button:text-is('With bytes')")
    expect(page.locator("#tokens small").first).to_have_text(
        trained.vocab.tokens[trained.encode("low")[0]].hex(" ")
    )


def test_ids_are_copied(browser, server, trained):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server.url}&view=tokens")
    page.fill("#text", "the lowest")
    expect(page.locator("#count")).to_have_text(str(trained.count("the lowest")))
    page.click("#copy")
    expect(page.locator("#copy")).to_have_text("Copied")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == str(trained.encode("the lowest"))
    context.close()


def test_a_megabyte_of_text_is_shown_without_drawing_it_all(page, trained):
    text = ("the lowest tokenizer in the town 1234\n" * 40_000)[: 1 << 20]
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
    drawn = page.locator("#tokens .t").count()
    assert 0 < drawn < 10_000
    page.locator("#tokens").focus()
    page.keyboard.press("End")
    last = trained.count(text) - 1
    expect(page.locator(f"#t{last}")).to_be_in_viewport()
    assert page.locator("#tokens .t").count() < 20_000


def test_packed_numbers_are_read_with_and_without_native_base64(page):
    read = """async (native) => {
      const {unpacked} = await import("/page/api.js");
      if (!native) Uint8Array.fromBase64 = undefined;
      return ["AQID", "AQACAP//", "AQAAAP////8=", ""].map(
        (data, n) => [...unpacked({width: [1, 2, 4, 1][n], data})]);
    }"""
    expected = [[1, 2, 3], [1, 2, 65_535], [1, 2**32 - 1], []]
    for native in (True, False):
        assert page.evaluate(read, native) == expected


def test_hostile_text_stays_text(page, trained):
    page.fill("#text", HOSTILE)
    expect(page.locator("#count")).to_have_text(str(trained.count(HOSTILE)))
    assert page.evaluate("() => window.hit") is None
    assert page.locator("main script, main img").count() == 0
    shown = "".join(shown_tokens(page))
    assert "<script>" in shown.replace("·", " ")
    assert "\u202e" not in shown and "\x00" not in shown
    for view in VIEWS:
        page.click(f"#views a:has-text('{view.capitalize()}')")
        page.locator(f"main.view-{view}").wait_for()
        page.wait_for_load_state("networkidle")
        assert page.evaluate("() => window.hit") is None


def test_a_dropped_file_is_read(page, trained):
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["the newest"], "a.txt"));
          document.querySelector("main").dispatchEvent(
            new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }"""
    )
    expect(page.locator("#text")).to_have_value("the newest")
    expect(page.locator("#count")).to_have_text(str(trained.count("the newest")))


def test_dropping_a_binary_or_long_file_shows_a_message(page):
    drop = """([content, times]) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(content), "é".repeat(times)], "a.bin"));
      document.querySelector("main").dispatchEvent(
        new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
    }"""
    page.evaluate(drop, [[0xFF, 0xFE], 1])
    expect(page.locator("#error")).to_contain_text("a.bin is not UTF-8 text")
    page.evaluate(drop, [[0x61], 600_000])  # the megabyte ends inside a character
    expect(page.locator("#error")).to_contain_text("only its first megabyte is shown")
    assert page.evaluate("() => document.querySelector('#text').value.length") == 1 << 19


def test_a_text_that_is_too_long_shows_a_message(page):
    fill = """(size) => {
      const editor = document.querySelector("#text");
      editor.wrap = "off";
      editor.value = "x".repeat(size);
      editor.dispatchEvent(new Event("input"));
    }"""
    for size in ((1 << 20) + 1, 7 << 20):
        page.evaluate(fill, size)
        expect(page.locator("#error")).to_contain_text("use a part of it")
        page.fill("#text", "low")
        expect(page.locator("#error")).to_have_count(0)


def test_an_invalid_address_opens_the_tokens(page):
    for hash in ("#view=constructor", "#view=none&tok=99&sel=x", "#view=tokens&sel=999999"):
        page.evaluate("(hash) => { location.hash = hash; }", hash)
        page.locator("main.view-tokens").wait_for()
        expect(page.locator("#tokens .t").first).to_be_visible()


def test_bytes_look_the_same_on_the_page_and_in_the_terminal(page, nasty_texts):
    # The browser and this Python may have different Unicode versions.
    texts = [t for t in nasty_texts if len(t) < 2000 and "Cn" not in map(unicodedata.category, t)]
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [text.encode("utf-8", "surrogatepass") for text in texts]
    tokens += [
        "€".encode()[:2],
        b" \xff\n",
        "\u0301a".encode(),
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
    ]
    shown = page.evaluate(
        """async (all) => {
          const {visible, fromHex} = await import("/page/glyphs.js");
          return all.map((hex) => visible(fromHex(hex)));
        }""",
        [token.hex() for token in tokens],
    )
    for token, seen in zip(tokens, shown, strict=True):
        assert seen == visible(token), token


# ---------------------------------------------------------------------------- why


def test_why_steps_through_the_merges_of_a_word(page, trained):
    go(page, "why")
    page.fill("#word", " lowest")
    merges = len(b" lowest") - len(trained.encode(" lowest"))
    expect(page.locator(".step-label")).to_have_text(f"merge 0 of {merges}")
    expect(page.locator(".part")).to_have_count(7)
    expect(page.locator(".ranks tbody tr").first).to_contain_text("lowest: merges next")
    ranks = page.eval_on_selector_all(".ranks td.n", "all => all.map(t => Number(t.textContent))")
    assert ranks == sorted(ranks)
    page.locator("main h2").first.click()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".part")).to_have_count(6)
    expect(page).to_have_url(re.compile("why_step=1"))
    page.click("button[aria-label='Play']")
    expect(page.locator(".step-label")).to_have_text(f"merge {merges} of {merges}")
    expect(page.locator(".part")).to_have_count(len(trained.encode(" lowest")))


def test_a_pair_stays_on_one_line_on_a_phone(page):
    page.set_viewport_size({"width": 320, "height": 844})  # the narrowest phone
    go(page, "why", "&word=+tokenizer&step=0")
    page.locator(".ranks tbody tr").first.wait_for()
    tops = page.eval_on_selector_all(
        ".ranks tbody td:first-child",
        """cells => cells.map(cell => new Set([...cell.querySelectorAll(".tile")].map(
          tile => tile.getBoundingClientRect().top)).size)""",
    )
    assert set(tops) == {1}


def test_why_shows_what_longest_match_would_do(page):
    go(page, "why")
    expect(page.locator(".greedy")).to_contain_text("longest token from the left")
    expect(page.locator(".greedy .tile").first).to_be_visible()


def test_a_token_links_to_why_and_on_to_the_vocabulary(page, trained):
    page.fill("#text", "the lowest tokenizer")
    expect(page.locator("#count")).to_have_text(str(trained.count("the lowest tokenizer")))
    page.locator("#tokens .t").nth(1).click()
    page.click("#why-here")
    expect(page.locator(".sentence [aria-current]")).to_have_text("·lowest")
    page.click(".sentence [aria-label='why space tokenizer']")
    expect(page.locator(".lead .tile").first).to_have_text("·tokenizer")
    page.click(".sentence [aria-label='why space lowest']")
    expect(page.locator(".lead .tile").first).to_have_text("·lowest")
    page.locator(".lead .tile").last.click()
    page.click("#panel button:has-text('Show in vocabulary')")
    page.locator("main.view-vocabulary").wait_for()
    expect(page.locator("#panel h2")).to_be_visible()


# ---------------------------------------------------------------------------- training


def test_a_training_is_stepped_through(page):
    go(page, "training")
    expect(page.locator("#corpus-tokens")).to_have_text("92")
    expect(page.locator(".pairs tbody tr").first).to_contain_text("wins")
    expect(page.locator(".tie")).to_contain_text("A tie with 1 other pair")
    page.click("button[aria-label='One step forward']")
    expect(page.locator("#corpus-tokens")).to_have_text("83")
    page.click("button[aria-label='To the end']")
    expect(page.locator(".step-text")).to_contain_text("Stopped after 14 merges")
    page.locator(".learned .tile").nth(2).click()
    expect(page.locator(".step-label")).to_have_text("merge 3 of 14")


def test_the_user_can_train_on_a_corpus(page):
    go(page, "training")
    page.click(".settings summary")
    page.fill("#corpus", "aaa aaa aaa")
    expect(page.locator(".pairs tbody tr").first).to_contain_text("6")
    page.select_option(".settings select", "plain")
    expect(page.locator(".step-text")).to_contain_text("occurs 6 times")


def test_the_user_can_train_with_recipe_ck(page):
    page.set_viewport_size({"width": 390, "height": 844})
    go(page, "training")
    page.click(".settings summary")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    page.select_option(".settings select", "ck-ascii")
    expect(page.locator(".counts")).to_contain_text("102 in the vocabulary, 0 learned")
    page.fill("#corpus", "na\u00efve")
    expect(page.locator("#error")).to_contain_text("use recipe ck")
    page.select_option(".settings select", "ck")
    expect(page.locator("#error")).to_have_count(0)
    expect(page.locator(".counts")).to_contain_text("260 in the vocabulary, 0 learned")


def test_the_merge_log_has_counts_and_a_curve(page, trained):
    go(page, "training")
    log = page.locator(".log")
    expect(log).to_contain_text("A full-size tokenizer: small")
    expect(log.locator("tbody tr").first).to_contain_text(f"{trained.training.merge_counts[0]:,}")
    expect(log.locator("svg.curve")).to_be_visible()
    log.locator("input").fill("20")
    log.locator("input").press("Enter")
    expect(log.locator("tbody tr").first.locator("td").first).to_have_text("20")
    log.locator("button:has-text('Earlier')").click()
    expect(log.locator("tbody tr").first.locator("td").first).to_have_text("0")


# ---------------------------------------------------------------------------- bytes


def test_the_byte_map_counts_and_explains(page):
    page.fill("#text", "aaé")
    expect(page.locator("#tokens .t").first).to_have_text("a")
    go(page, "bytes", "&text=aa%C3%A9")
    expect(page.locator(".counts")).to_contain_text("4 bytes")
    expect(page.locator("#b97")).to_have_attribute("aria-label", "byte 61 a, 2 times, very hot")
    page.click("#b32")
    expect(page.locator(".byte-detail")).to_contain_text("Ġ")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#b33")).to_be_focused()
    page.click('button:text-is("GPT-2\'s letters")')
    expect(page.locator("#b32")).to_have_text("Ġ")
    expect(page.locator(".warning")).to_contain_text("2 bytes")
    expect(page.locator("main")).to_contain_text("218 merges instead of 60")


def test_the_bytes_of_large_files_and_folders_are_counted_whole(page, browser, tmp_path: Path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "large.bin").write_bytes(b"ab\xff" * 3_000_000)  # more than two chunks
    (folder / "small.txt").write_text("a")
    go(page, "bytes")
    page.set_input_files("#byte-file", folder / "large.bin")
    expect(page.locator(".counts")).to_contain_text("9,000,000 bytes of large.bin — 3 of 256")
    expect(page.locator("#b97")).to_have_attribute("aria-label", re.compile("3,000,000 times"))
    page.set_input_files("#byte-folder", folder)
    expect(page.locator(".counts")).to_contain_text("9,000,001 bytes of 2 files")
    expect(page.locator(".warning")).to_contain_text("3,000,000 bytes")
    with page.expect_download() as waiting:
        page.click("#save")
    waiting.value.save_as(tmp_path / "saved.html")
    expect(page.locator(".counts")).to_contain_text("9,000,001 bytes of 2 files")
    context = browser.new_context(offline=True)
    alone = context.new_page()
    alone.goto((tmp_path / "saved.html").as_uri())
    expect(alone.locator(".counts")).to_contain_text("9,000,001 bytes of 2 files")
    context.close()
    page.click("button:text-is('English only')")
    expect(page.locator(".counts")).not_to_contain_text("files")


# ---------------------------------------------------------------------------- vocabulary


def test_two_clicks_find_an_unreachable_token(page, without_pattern):
    go(page, "vocabulary", "&tok=1")
    count = sum(reason != "part" for reason in unreachable(without_pattern).values())
    page.click(f"button:text-is('{count} unreachable tokens')")
    expect(page.locator("#found")).to_have_text(str(count))
    page.locator(".vocab .tile").first.click()
    expect(page.locator("#panel .warning")).to_contain_text("Unreachable")


def test_the_vocabulary_is_searched_and_filtered(page, trained):
    go(page, "vocabulary")
    page.fill("#query", "est")
    found = sum(b"est" in token for token in trained.vocab.tokens.values())
    expect(page.locator("#found")).to_have_text(str(found))
    page.click("button:text-is('Regex')")
    page.fill("#query", "^ ?low$")
    found = sum(token in (b"low", b" low") for token in trained.vocab.tokens.values())
    expect(page.locator("#found")).to_have_text(str(found))
    page.fill("#query", "(")
    expect(page.locator("#error")).to_contain_text("does not compile")
    page.fill("#query", "")
    page.click(".bars button:text-is('digits')")
    expect(page.locator(".vocab tbody tr").first).to_contain_text("digits")
    expect(page).to_have_url(re.compile("v_script=digits"))


def test_the_vocabulary_is_filtered_by_rank_and_length(page, trained):
    go(page, "vocabulary")
    page.click("button:text-is('Rank')")
    page.fill("#query", "10-19")
    expect(page.locator("#found")).to_have_text("10")
    page.click("button:text-is('Text')")
    page.fill("#query", "")
    page.fill("label:has-text('Min bytes') input", "4")
    page.fill("label:has-text('Max bytes') input", "6")
    tokens = [*trained.vocab.tokens.values(), *map(str.encode, trained.vocab.special_tokens)]
    found = sum(4 <= len(token) <= 6 for token in tokens)
    expect(page.locator("#found")).to_have_text(str(found))
    expect(page).to_have_url(re.compile("v_min=4&v_max=6"))


def test_a_tokens_details_link_to_its_parts(page, trained):
    low = trained.vocab.ids[b" low"]
    go(page, "vocabulary", f"&token={low}")
    expect(page.locator("#panel h2")).to_have_text("·low")
    page.locator("#panel .merges .tile").first.click()
    expect(page.locator("#panel h2")).not_to_have_text("·low")


# ---------------------------------------------------------------------------- compare


def test_tokenizers_are_compared_on_a_text(page, trained, without_pattern):
    text = "the lowest tokenizer in the newest town"
    page.fill("#text", text)
    expect(page.locator("#count")).to_have_text(str(trained.count(text)))
    page.click("#views a:has-text('Compare')")
    totals = page.locator(".totals")
    expect(totals).to_contain_text(f"{trained.count(text)} tokens")
    expect(totals).to_contain_text(f"{without_pattern.count(text)} tokens")
    lanes = page.eval_on_selector_all(
        ".segment",
        "all => all.map(s => [...s.children].map(lane => lane.textContent))",
    )
    assert all(first == second for first, second in lanes)
    assert "".join(first for first, _ in lanes) == visible(text.encode())
    expect(page.locator(".languages tbody tr")).to_have_count(29)


def test_one_click_shows_where_tokenizers_differ_most(page, trained, without_pattern):
    text = "a, b; " * 40 + "the newest town"
    page.fill("#text", text)
    expect(page.locator("#count")).to_have_text(str(trained.count(text)))
    page.click("#views a:has-text('Compare')")
    spots = page.locator(".spots li")
    expect(spots.first).to_be_visible()
    counts = [
        [int(number) for number in re.findall(r"[A-D] (\d+)", spot)]
        for spot in spots.all_inner_texts()
    ]
    gaps = [max(each) - min(each) for each in counts]
    assert gaps and gaps == sorted(gaps, reverse=True)
    spots.first.locator("button").click()
    expect(page.locator(".segment.differs:focus")).to_be_in_viewport()


def test_tokenizers_are_compared_on_the_users_files(page, trained, without_pattern, tmp_path: Path):
    texts = {"first.txt": "the lowest town", "second.txt": "naïve café tokens"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    go(page, "compare")
    expect(page.locator(".languages tbody tr")).to_have_count(29)
    page.set_input_files("#files", [tmp_path / name for name in texts])
    rows = page.locator(".languages tbody tr")
    expect(rows).to_have_count(2)
    for name, text in texts.items():
        row = page.locator(f".languages tr:has-text('{name}')")
        expect(row).to_contain_text(f"{trained.count(text)} / {without_pattern.count(text)}")


def test_a_single_tokenizer_is_compared_with_a_smaller_cut_of_itself(browser, trained):
    import threading

    from byteweld.studio.session import Session

    with StudioServer(Session([("only", trained)])) as alone:
        threading.Thread(target=alone.serve_forever, args=(0.02,), daemon=True).start()
        context = browser.new_context()
        page = context.new_page()
        page.goto(alone.url)
        go(page, "compare")
        expect(page.locator(".totals")).to_contain_text("only at ")
        context.close()
        alone.shutdown()


# ---------------------------------------------------------------------------- saving


@pytest.mark.parametrize("view", VIEWS)
def test_a_saved_page_shows_the_same_offline(page, browser, view: str, tmp_path: Path):
    page.fill("#text", f"the lowest {HOSTILE}")
    expect(page.locator("#tokens")).to_contain_text("script")
    page.click(f"#views a:has-text('{view.capitalize()}')")
    page.locator(f"main.view-{view}").wait_for()
    if view == "tokens":
        page.locator("#tokens .t").nth(1).click()
        expect(page.locator("#panel h2")).to_be_visible()
    page.wait_for_load_state("networkidle")
    with page.expect_download() as waiting:
        page.click("#save")
    saved = tmp_path / "saved.html"
    waiting.value.save_as(saved)
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    alone = context.new_page()
    faults: list[str] = []
    asked: list[str] = []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    alone.on("request", lambda r: asked.append(r.url) if r.url.startswith("http") else None)
    alone.goto(saved.as_uri())
    alone.locator(f"main.view-{view}").wait_for()
    expect(alone.locator(".stamp")).to_have_text("saved page")
    picked = {
        "how": ".buffers",
        "tokens": "#tokens",
        "why": ".parts",
        "training": ".pairs",
        "bytes": ".heat-map",
        "vocabulary": ".vocab",
        "compare": ".lanes",
    }[view]
    expect(alone.locator(picked)).to_have_text(page.locator(picked).text_content())
    assert alone.locator("#error").count() == 0
    assert alone.evaluate("() => window.hit") is None
    if view == "how":  # can be played
        alone.click("#stage-3 button[aria-label='To the end']")
        expect(alone.locator(".loop-text")).to_contain_text("Stopped after 10 merges")
    if view == "training":  # can be stepped through
        alone.click("button[aria-label='One step forward']")
        expect(alone.locator("#corpus-tokens")).to_have_text("83")
    if view == "tokens":
        expect(alone.locator("#panel h2")).to_have_text(page.locator("#panel h2").text_content())
        alone.locator("#tokens .t").nth(3).click()  # other tokens can be selected
        expect(alone.locator("#panel h2")).to_have_text(shown_tokens(alone)[3])
    context.close()
    assert (faults, asked) == ([], [])
