"""Rendering: everything can be seen, and no meaning is in colour alone."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld.render import (
    Span,
    color_number,
    columns,
    namer,
    spans,
    tile,
    to_ansi,
    to_html,
    visible,
    visible_name,
    width,
)
from byteweld.vocab import Vocabulary

EOT = "<|endoftext|>"
VOCAB = Vocabulary(
    {byte: bytes([byte]) for byte in range(256)} | {256: b" the", 257: EOT.encode(), 258: b"a\n"},
    special_tokens={EOT: 257},
)
SGR = re.compile(r"\x1b\[[0-9;]*m")


def test_spaces_newlines_and_tabs_are_marks():
    assert visible(b" a\tb\n") == "·a⇥b⏎"


def test_parts_of_a_character_are_shown_as_bytes():
    euro = "€".encode()
    assert visible(euro) == "€"
    assert visible(b" " + euro[:2]) == "·⟨e2⟩⟨82⟩"
    assert visible(euro[2:] + b"x") == "⟨ac⟩x"


@pytest.mark.parametrize(
    ("character", "shown"),
    [
        ("\x00", "⟨U+0000⟩"),
        ("\x1b", "⟨U+001B⟩"),
        ("\r", "⟨U+000D⟩"),
        ("\u00a0", "⟨U+00A0⟩"),
        ("\u200d", "⟨U+200D⟩"),
        ("\u202e", "⟨U+202E⟩"),
        ("\u2066", "⟨U+2066⟩"),
        ("\u2028", "⟨U+2028⟩"),
        ("\ufeff", "⟨U+FEFF⟩"),
        ("\U000e0001", "⟨U+E0001⟩"),
        ("é", "é"),
        ("🦊", "🦊"),
    ],
)
def test_characters_that_hide_or_reorder_are_escaped_and_others_are_not(character, shown):
    assert visible(character.encode()) == shown


def test_a_mark_in_the_text_is_not_taken_for_a_space():
    assert visible("·".encode()) == "⟨U+00B7⟩"
    assert visible("⟨e2⟩".encode()) == "⟨U+27E8⟩e2⟨U+27E9⟩"


def test_a_combining_mark_at_the_start_stands_on_a_circle():
    assert visible("\u0301a".encode()) == "◌\u0301a"
    assert visible("e\u0301".encode()) == "e\u0301"


@given(st.binary(max_size=40))
def test_what_is_shown_has_nothing_invisible(token):
    assert all(unicodedata.category(c)[0] not in "CZ" for c in visible(token))


@given(st.binary(max_size=12), st.binary(max_size=12))
def test_different_bytes_look_different(one, other):
    assert (visible(one) == visible(other)) == (one == other)


def test_spans_carry_id_bytes_text_and_whether_special():
    assert spans(VOCAB, [256, 257]) == [
        Span(256, b" the", "·the", False),
        Span(257, EOT.encode(), EOT, True),
    ]


def test_an_unknown_id_is_a_key_error_that_names_it():
    with pytest.raises(KeyError, match="id 999"):
        spans(VOCAB, [999])


def test_without_colour_a_bar_stands_between_tokens_and_specials_are_in_brackets():
    shown = to_ansi(spans(VOCAB, [104, 105, 256, 257, 124]), color=False)
    assert shown == "h|i|·the|⟦<|endoftext|>⟧|⟨|⟩"
    assert "\x1b" not in shown


def test_a_line_break_follows_a_token_that_ends_with_one_but_not_the_last():
    assert to_ansi(spans(VOCAB, [258, 98, 10]), color=False) == "a⏎\nb|⏎"


def test_the_same_token_has_the_same_colour_and_neighbours_of_one_colour_have_a_bar():
    shown = to_ansi(spans(VOCAB, [97, 98, 97, 97]), color=True)
    parts = re.findall(r"\x1b\[([0-9;]*)m(\w)\x1b\[0m(\|?)", shown)
    assert [part[1:] for part in parts] == [("a", ""), ("b", ""), ("a", "|"), ("a", "")]
    assert parts[0][0] == parts[2][0] != parts[1][0]
    assert color_number(97) == color_number(97 + 12)


def test_every_colour_is_closed_and_without_it_the_text_stays():
    shown = to_ansi(spans(VOCAB, [256, 257, 258, 98]), color=True)
    codes = SGR.findall(shown)
    assert codes[1::2] == ["\x1b[0m"] * 4
    assert SGR.sub("", shown) == "·the<|endoftext|>a⏎\nb"


def test_no_tokens_are_no_text():
    assert to_ansi([], color=True) == to_ansi([], color=False) == ""


def test_columns_are_as_wide_as_a_terminal_shows_them():
    rows = [["漢字", "1"], ["a", "22"], ["\x1b[1mbold\x1b[0m", "333"]]
    assert list(columns(rows, right=[1])) == [
        "漢字    1",
        "a      22",
        "\x1b[1mbold\x1b[0m  333",
    ]
    assert list(columns([["a", ""], ["bb", "c"]])) == ["a", "bb  c"]
    assert list(columns([])) == []
    assert (width("🙂"), width("ก\u0e34"), width("")) == (2, 1, 0)


def test_a_named_token_has_its_colour_or_is_plain():
    assert namer(VOCAB.tokens, color=False)(256) == "·the"
    colored = namer(VOCAB.tokens, color=True)(256)
    assert SGR.sub("", colored) == "·the" and colored != "·the"


def test_names_keep_their_spaces_and_hide_nothing():
    assert visible_name("a b/c.txt") == "a b/c.txt"
    assert visible_name("a\u202e\udcff\n") == "a⟨U+202E⟩⟨ff⟩⏎"


def test_a_tile_is_an_element_with_id_and_bytes_in_words():
    assert tile(65, b'"<') == ('<span class="t c8" title="id 65, 2 bytes: 22 3c">&quot;&lt;</span>')
    assert 'class="t special"' in tile(257, b"x", is_special=True)
    assert "61 61 …" in tile(1, b"a" * 17)


def test_a_line_break_follows_a_token_that_ends_with_one_in_html_too():
    assert to_html(spans(VOCAB, [258, 98])).count("<br>") == 1
    assert "and 1 tokens more" in to_html(spans(VOCAB, [97, 98]), 1)
