"""Arabic and Hebrew in a real browser: tokens are drawn in the order in which the text is read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

import byteweld
from byteweld.render import visible
from tests.helpers.browser import expect
from tests.helpers.studio import open_page, serving

pytestmark = pytest.mark.browser

ARABIC_FIRST = "في عام 2024، بلغت النسبة 45.7% من 2,700"
LATIN_FIRST = "Year عام 2024 done"
HEBREW = "שלום עולם 123, abc"
WIDE = (1600, 900)
TEXT = f"{ARABIC_FIRST}\n{LATIN_FIRST}\n{HEBREW}"


@pytest.fixture(scope="module")
def words() -> byteweld.Tokenizer:
    """A tokenizer with Arabic and Hebrew words as tokens; numbers have several."""
    corpus = [*(ARABIC_FIRST, LATIN_FIRST, HEBREW) * 6, "مرحبا بالعالم " * 9]
    return byteweld.train(iter(corpus), vocab_size=400, recipe="modern")


@pytest.fixture(scope="module")
def letters() -> byteweld.Tokenizer:
    """A tokenizer of bytes, for which every letter is several tokens."""
    return byteweld.Tokenizer(byteweld.Vocabulary({byte: bytes([byte]) for byte in range(256)}))


@pytest.fixture(scope="module")
def url(words: byteweld.Tokenizer, letters: byteweld.Tokenizer) -> Iterator[str]:
    """The address of a studio with both tokenizers."""
    with serving(words=words, letters=letters) as address:
        yield address


class Drawn(NamedTuple):
    """A token as it is drawn: its text, the edges of its first box, and how many boxes it has."""

    text: str
    left: float
    right: float
    top: float
    boxes: int


def drawn(page: Any, selector: str) -> list[Drawn]:
    found = page.eval_on_selector_all(
        selector,
        """all => all.map(element => {
          const boxes = [...element.getClientRects()].filter(box => box.width > 0);
          const {left, right, top} = boxes[0];
          const text = element.textContent.replace(/[\\n\\t]/g, "");
          return [text, left, right, top, boxes.length];
        })""",
    )
    return [Drawn(*each) for each in found]


def plain_order(page: Any, line: str, lengths: list[int]) -> list[int]:
    """The pieces of a line from left to right, as the browser draws the line as plain text."""
    return page.evaluate(
        """([line, lengths]) => {
          const box = document.createElement("div");
          box.dir = "auto";
          box.append(line);
          document.body.append(box);
          let at = 0;
          const middles = lengths.map(length => {
            const range = document.createRange();
            range.setStart(box.firstChild, at);
            range.setEnd(box.firstChild, at += length);
            const {left, right} = range.getBoundingClientRect();
            return (left + right) / 2;
          });
          box.remove();
          return middles.map((_, n) => n).sort((a, b) => middles[a] - middles[b]);
        }""",
        [line, lengths],
    )


def left_to_right(tokens: list[Drawn]) -> list[int]:
    return sorted(range(len(tokens)), key=lambda n: tokens[n].left)


@pytest.mark.parametrize("show", ["text", "ids", "bytes"])
@pytest.mark.parametrize("line", [ARABIC_FIRST, HEBREW])
def test_a_line_is_drawn_in_the_order_of_plain_text(browser, url, words, line: str, show: str):
    with open_page(browser, url, WIDE, view="tokens", text=line, show=show) as page:
        tokens = words.decode_tokens_bytes(words.encode(line))
        assert b"".join(tokens).decode() == line
        selector = "#tokens .t" if show == "text" else "#tokens .t .text"
        shown = drawn(page, selector)
        assert [each.text for each in shown] == [visible(token) for token in tokens]
        assert {each.boxes for each in shown} == {1}  # no token is torn apart
        lengths = [len(token.decode()) for token in tokens]
        assert left_to_right(shown) == plain_order(page, line, lengths)
        # A line that starts with Arabic starts on the right.
        assert shown[0].right == max(each.right for each in shown)


@pytest.mark.parametrize("show", ["text", "ids"])
def test_a_number_after_arabic_is_drawn_after_it(browser, url, words, show: str):
    """In plain text, the number would be left of the Arabic, and its tokens before those."""
    with open_page(browser, url, view="tokens", text=LATIN_FIRST, show=show) as page:
        tokens = words.decode_tokens_bytes(words.encode(LATIN_FIRST))
        assert [token.decode() for token in tokens][1].strip() == "عام"
        assert left_to_right(drawn(page, "#tokens .t")) == list(range(len(tokens)))


@pytest.mark.parametrize("tok", ["0", "1"])
def test_each_line_has_its_own_direction_and_tokens_do_not_overlap(browser, url, tok: str):
    with open_page(browser, url, view="tokens", text=TEXT, tok=tok) as page:
        directions = page.eval_on_selector_all("#tokens .line", "all => all.map(line => line.dir)")
        assert directions == ["rtl", "ltr", "rtl"]
        shown = drawn(page, "#tokens .t")
        lines: dict[int, list[Drawn]] = {}
        for each in shown:
            lines.setdefault(round(each.top / 20), []).append(each)
        for line in lines.values():
            line.sort(key=lambda each: each.left)
            for first, second in pairwise(line):
                assert first.right <= second.left + 0.6, (first, second)


def test_arrow_keys_move_in_the_direction_of_the_line(browser, url):
    with open_page(browser, url, view="tokens", text=ARABIC_FIRST) as page:
        page.locator("#tokens").focus()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#t1")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#t0")).to_have_attribute("aria-selected", "true")


def test_the_parts_of_an_arabic_word_run_from_right_to_left_in_why(browser, url):
    with open_page(browser, url, view="why", word="مرحبا", tok="1") as page:
        parts = drawn(page, ".parts .part")
        assert len(parts) == 10  # two bytes for each letter
        assert left_to_right(parts) == list(range(10))[::-1]


def test_pre_tokens_are_listed_in_the_order_of_the_text_in_why(browser, url, words):
    with open_page(browser, url, view="why", word=LATIN_FIRST) as page:
        pretokens = words.pretokenize(LATIN_FIRST.encode())
        shown = drawn(page, ".of-text")
        assert [each.text for each in shown] == [visible(token) for token in pretokens]
        assert left_to_right(shown) == list(range(len(pretokens)))


def test_segments_are_compared_in_the_order_of_the_text(browser, url):
    with open_page(browser, url, view="compare", text=f"{LATIN_FIRST}\n{ARABIC_FIRST}") as page:
        directions = page.eval_on_selector_all(".lane-line", "all => all.map(line => line.dir)")
        assert directions == ["ltr", "rtl"]
        first = drawn(page, ".lane-line:first-child .segment")
        assert left_to_right(first) == list(range(len(first)))
        second = drawn(page, ".lane-line:last-child .segment")
        assert second[0].right == max(each.right for each in second)


@pytest.mark.parametrize("view", ["training", "how"])
def test_rows_of_parts_run_in_the_direction_of_their_text(browser, url, view: str):
    corpus = "سلام 12\nab سلام 12"
    state = {"training": {"corpus": corpus, "recipe": "plain"}, "how": {"how_corpus": corpus}}
    with open_page(browser, url, view=view, **state[view]) as page:
        rows = page.locator(".word-parts")
        order = """row => {
          const parts = [...row.querySelectorAll(".part")];
          const lefts = parts.map(part => part.getBoundingClientRect().left);
          return parts.map((_, n) => n).sort((a, b) => lefts[a] - lefts[b]);
        }"""
        arabic, mixed = sorted((rows.nth(n).evaluate(order) for n in range(2)), key=len)
        size = len("سلام".encode())
        # The number keeps its own direction.
        assert arabic == [size + 1, size + 2, size, *reversed(range(size))]
        # After Latin letters, the word is drawn from right to left, and the number after it.
        assert mixed == [0, 1, 2, *reversed(range(3, 3 + size)), *range(3 + size, 6 + size)]


def test_a_tile_is_isolated_from_the_words_around_it(browser, url):
    with open_page(browser, url, view="vocabulary", v_query="عام") as page:
        kinds = page.eval_on_selector_all(
            ".vocab .tile", "all => all.map(tile => getComputedStyle(tile).unicodeBidi)"
        )
        assert kinds and set(kinds) == {"isolate"}
