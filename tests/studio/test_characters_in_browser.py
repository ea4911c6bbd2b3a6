"""Characters that several tokens share, in a real browser: each is drawn across its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import byteweld
from tests.helpers.browser import check_width, expect, type_long
from tests.helpers.studio import open_page, serving, wait

pytestmark = pytest.mark.browser

CHINESE = "吞吐量"


@pytest.fixture(scope="module")
def single() -> byteweld.Tokenizer:
    """A tokenizer of single bytes."""
    return byteweld.Tokenizer(byteweld.Vocabulary({byte: bytes([byte]) for byte in range(256)}))


@pytest.fixture(scope="module")
def shifted() -> byteweld.Tokenizer:
    """A tokenizer with tokens that end one character and start the next."""
    tokens = {byte: bytes([byte]) for byte in range(256)}
    text = CHINESE.encode()
    merges = [(text[2:3], text[3:4]), (text[5:6], text[6:7]), (b"a", text[:1])]
    tokens |= {256 + n: left + right for n, (left, right) in enumerate(merges)}
    return byteweld.Tokenizer.from_merges(tokens, merges)


@pytest.fixture(scope="module")
def url(single: byteweld.Tokenizer, shifted: byteweld.Tokenizer) -> Iterator[str]:
    """The address of a studio with both tokenizers."""
    with serving(single=single, shifted=shifted) as address:
        yield address


def slices(page: Any, selector: str = "#tokens .t") -> list[list[dict[str, Any]]]:
    """For each token, its slices: the character, its bytes, and where they are drawn."""
    return page.eval_on_selector_all(
        selector,
        """all => all.map(token => [...token.querySelectorAll(".slice")].map(slice => {
          const {left, right, top} = slice.getBoundingClientRect();
          const glyph = getComputedStyle(slice, "::before");
          return {
            character: glyph.content.split(" / ")[0].slice(1, -1),
            // Where the whole glyph starts and ends: every slice must say the same.
            from: left + parseFloat(glyph.marginInlineStart),
            to: left + parseFloat(glyph.marginInlineStart) + parseFloat(glyph.width),
            bytes: slice.textContent, left, right, top,
          };
        }))""",
    )


def check_characters(tokens: list[list[dict[str, Any]]]) -> list[str]:
    """Check that the slices of a character touch and agree where it is; return the characters."""
    found: list[list[dict[str, Any]]] = []
    need = 0
    for piece in (piece for token in tokens for piece in token):
        if need == 0:
            found.append([])
            need = len(piece["character"].encode())
        found[-1].append(piece)
        need -= len(bytes.fromhex(piece["bytes"]))
    assert need == 0
    for group in found:
        assert len({piece["character"] for piece in group}) == 1
        if len({piece["top"] for piece in group}) == 1:  # on one line
            assert max(piece["from"] for piece in group) - group[0]["from"] < 1
            assert abs(group[0]["left"] - group[0]["from"]) < 1
            assert abs(group[-1]["right"] - group[0]["to"]) < 1
            for first, second in pairwise(group):
                assert abs(first["right"] - second["left"]) < 1
        whole = bytes.fromhex("".join(piece["bytes"] for piece in group))
        assert whole.decode() == group[0]["character"]
    return [group[0]["character"] for group in found]


@pytest.mark.parametrize("show", ["text", "ids", "bytes"])
def test_a_character_is_drawn_across_its_tokens_with_the_bytes_below(browser, url, show: str):
    text = f"a{CHINESE}é🙂b"
    with open_page(browser, url, view="tokens", text=text, show=show) as page:
        tokens = slices(page)
        assert len(tokens) == len(text.encode())
        assert check_characters(tokens) == [*CHINESE, "é", "🙂"]
        assert "⟨" not in page.locator("#tokens").text_content()


def test_every_slice_shows_some_of_the_glyph(browser, url):
    with open_page(browser, url, view="tokens", text="一", show="bytes") as page:
        boxes = page.eval_on_selector_all(
            "#tokens .slice",
            """all => all.map(slice => {
              slice.style.setProperty("--unit", "7px"); // the glyph is as wide as all slices
              return slice;
            }).map(slice => slice.getBoundingClientRect()).map(
              ({x, y, width, height}) => ({x, y, width, height}))""",
        )
        drawn = [page.screenshot(clip=box) for box in boxes]
        page.eval_on_selector_all(
            "#tokens .slice", "all => all.forEach(slice => { slice.dataset.character = ' '; })"
        )
        empty = [page.screenshot(clip=box) for box in boxes]
        assert len(boxes) == 3
        assert all(one != other for one, other in zip(drawn, empty, strict=True))


def test_a_token_may_end_one_character_and_start_the_next(browser, url, shifted):
    text = f"a{CHINESE}"
    with open_page(browser, url, view="tokens", tok="1", text=text) as page:
        tokens = slices(page)
        expected = shifted.decode_tokens_bytes(shifted.encode(text))
        assert [len(token) for token in expected] == [2, 1, 2, 1, 2, 1, 1]
        assert [[piece["bytes"] for piece in token] for token in tokens] == [
            ["e5"],  # and a
            ["90"],
            ["9e", "e5"],
            ["90"],
            ["90", "e9"],
            ["87"],
            ["8f"],
        ]
        assert check_characters(tokens) == [*CHINESE]
        expect(page.locator("#t0")).to_have_text("ae5")
        expect(page.locator("#t2")).to_have_attribute(
            "aria-label", f"byte 9e of 吞, byte e5 of 吐, id {shifted.encode(text)[2]}"
        )


def test_every_token_can_be_selected_by_mouse_and_keyboard(browser, url):
    with open_page(browser, url, view="tokens", tok="1", text=CHINESE) as page:
        total = page.locator("#tokens .t").count()
        assert total == 7
        for index in range(total):
            page.locator(f"#t{index}").click()
            expect(page.locator(f"#t{index}")).to_have_attribute("aria-selected", "true")
            expect(page.locator("#panel")).to_contain_text(f"token {index + 1} of {total}")
            expect(page.locator("#panel")).to_contain_text("part of")
        page.locator("#tokens").focus()
        page.keyboard.press("Home")
        for index in range(1, total):
            page.keyboard.press("ArrowRight")
            expect(page.locator(f"#t{index}")).to_have_attribute("aria-selected", "true")
            assert page.locator("#tokens").get_attribute("aria-activedescendant") == f"t{index}"


@pytest.mark.parametrize(("tok", "show"), [("0", "text"), ("0", "ids"), ("1", "text")])
def test_long_text_wraps_between_characters_if_it_can_and_fits_a_phone(browser, url, tok, show):
    text, size = CHINESE * 60, (390, 844)
    with open_page(browser, url, size, view="tokens", tok=tok, text=text, show=show) as page:
        check_width(page, 390)
        tokens = slices(page)
        assert len({piece["top"] for token in tokens for piece in token}) > 9
        assert all(0 <= p["left"] < p["right"] <= 390 for token in tokens for p in token)
        assert check_characters(tokens) == [*text]
        if tok == "0":  # no token is part of two characters: each stays on one line
            tops = [token[0]["top"] for token in tokens]
            assert all(len({*tops[at : at + 3]}) == 1 for at in range(0, len(tops), 3))


def test_bytes_that_are_not_a_character_stay_bytes(page_bytes):
    shown = page_bytes(["ff", "e590", "61", "9e", "c3", "28", "eda080"])
    assert shown == ["⟨ff⟩", "⟨e5⟩⟨90⟩", "a", "⟨9e⟩", "⟨c3⟩", "(", "⟨ed⟩⟨a0⟩⟨80⟩"]
    # A character next to them is whole, and a row may have very many tokens.
    assert page_bytes(["80e5", "909e", "80"]) == ["⟨80⟩e5", "90 9e", "⟨80⟩"]
    assert len(page_bytes(["61"] * 150_000)) == 150_000


@pytest.fixture
def page_bytes(browser: Any, url: str) -> Iterator[Any]:
    """Draw tokens, given in hex, in a row, and return their text."""
    with open_page(browser, url, view="tokens") as page:

        def draw(tokens: list[str]) -> list[str]:
            return page.evaluate(
                """async (tokens) => {
                  const {fillRow} = await import("/page/row.js");
                  const {glyphsIn} = await import("/page/characters.js");
                  const {fromHex} = await import("/page/glyphs.js");
                  const row = fillRow(document.createElement("div"), tokens.map(fromHex),
                    (n, ...range) => {
                      const part = document.createElement("b");
                      part.append(...glyphsIn(...range));
                      return part;
                    });
                  return [...row.querySelectorAll("b")].map(part => part.textContent);
                }""",
                tokens,
            )

        yield draw


@pytest.mark.parametrize(
    ("state", "row"),
    [
        ({"view": "why", "word": CHINESE}, ".parts .part"),
        ({"view": "training", "corpus": CHINESE, "recipe": "plain"}, ".corpus .part"),
        ({"view": "how", "how_corpus": CHINESE}, ".buffer:first-child .part"),
        ({"view": "how", "how_corpus": CHINESE, "how_text": CHINESE}, ".walk-text .part"),
        ({"view": "compare", "text": CHINESE}, ".lane:first-child .t"),
    ],
)
def test_characters_are_whole_in_every_view(browser, url, state, row):
    with open_page(browser, url, **state) as page:
        tokens = slices(page, row)
        assert len(tokens) == len(CHINESE.encode())
        # Segments that differ have a margin.
        characters = [token[0]["character"] for token in tokens]
        assert characters == [c for c in CHINESE for _ in c.encode()]
        if state["view"] != "compare":
            assert check_characters(tokens) == [*CHINESE]


def test_of_a_megabyte_of_shared_characters_only_a_part_is_drawn(browser, url):
    text = (CHINESE * 120_000).encode()[: 1 << 20].decode("utf-8", "ignore")
    with open_page(browser, url, view="tokens", text="a") as page:
        type_long(page, text)
        expect(page.locator("#count")).to_have_text(f"{len(text.encode()):,}")
        wait(page)
        assert 0 < page.locator("#tokens .t").count() < 10_000
        page.locator("#tokens").focus()
        page.keyboard.press("End")
        last = len(text.encode()) - 1
        expect(page.locator(f"#t{last}")).to_be_in_viewport()
