"""Rendering: everything is visible, and no meaning depends on color alone."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld.markup import joined
from byteweld.render import Span, columns, spans, tile, to_ansi, visible, visible_name, width
from byteweld.report import Tokens
from byteweld.vocab import Vocabulary

EOT = "<|endoftext|>"
VOCAB = Vocabulary(
    {byte: bytes([byte]) for byte in range(256)} | {256: b" the", 257: EOT.encode(), 258: b"a\n"},
    special_tokens={EOT: 257},
)
SGR = re.compile(r"\x1b\[[0-9;]*m")


def test_spaces_newlines_and_tabs_become_marks():
    assert visible(b" a\tb\n") == "·a⇥b⏎"


def test_partial_characters_are_shown_as_bytes():
    euro = "€".encode()
    assert visible(euro) == "€"
    assert visible(b" " + euro[:2]) == "·⟨e2⟩⟨82⟩"
    assert visible(euro[2:] + b"x") == "⟨ac⟩x"


def test_only_characters_that_hide_or_reorder_text_are_written_out():
    for hidden in "\x00\x1b\r\u00a0\u200d\u202e\u2066\u2028\ufeff\U000e0001":
        assert visible(hidden.encode()) == f"⟨U+{ord(hidden):04X}⟩"
    assert visible("é🦊".encode()) == "é🦊"


def test_a_mark_in_the_text_is_not_mistaken_for_a_space():
    assert visible("·".encode()) == "⟨U+00B7⟩"
    assert visible("⟨e2⟩".encode()) == "⟨U+27E8⟩e2⟨U+27E9⟩"


def test_a_leading_combining_mark_is_put_on_a_circle():
    assert visible("\u0301a".encode()) == "◌\u0301a"
    assert visible("e\u0301".encode()) == "e\u0301"


@given(st.binary(max_size=40))
def test_visible_text_has_no_invisible_characters(token):
    assert all(unicodedata.category(c)[0] not in "CZ" for c in visible(token))


@given(st.binary(max_size=12), st.binary(max_size=12))
def test_different_bytes_look_different(one, other):
    assert (visible(one) == visible(other)) == (one == other)


def test_spans_hold_id_bytes_text_and_whether_special():
    assert spans(VOCAB, [256, 257]) == [
        Span(256, b" the", "·the", False),
        Span(257, EOT.encode(), EOT, True),
    ]


def test_an_unknown_id_is_a_key_error_that_names_it():
    with pytest.raises(KeyError, match="id 999"):
        spans(VOCAB, [999])


def test_without_color_bars_separate_tokens_and_specials_are_in_brackets():
    shown = to_ansi(spans(VOCAB, [104, 105, 256, 257, 124]), color=False)
    assert shown == "h|i|·the|⟦<|endoftext|>⟧|⟨|⟩"
    assert "\x1b" not in shown


def test_a_token_that_ends_with_a_newline_breaks_the_line_unless_it_is_last():
    assert to_ansi(spans(VOCAB, [258, 98, 10]), color=False) == "a⏎\nb|⏎"


def test_equal_tokens_have_equal_colors_and_a_bar_separates_equal_colors():
    shown = to_ansi(spans(VOCAB, [97, 98, 97, 97]), color=True)
    parts = re.findall(r"\x1b\[([0-9;]*)m(\w)\x1b\[0m(\|?)", shown)
    assert [part[1:] for part in parts] == [("a", ""), ("b", ""), ("a", "|"), ("a", "")]
    assert parts[0][0] == parts[2][0] != parts[1][0]


def test_every_color_code_is_closed_and_removing_them_leaves_the_text():
    shown = to_ansi(spans(VOCAB, [256, 257, 258, 98]), color=True)
    codes = SGR.findall(shown)
    assert codes[1::2] == ["\x1b[0m"] * 4
    assert SGR.sub("", shown) == "·the<|endoftext|>a⏎\nb"


def test_columns_are_aligned_by_terminal_width():
    rows = [["漢字", "1"], ["a", "22"], ["\x1b[1mbold\x1b[0m", "333"]]
    assert list(columns(rows, right=[1])) == ["漢字    1", "a      22", "\x1b[1mbold\x1b[0m  333"]
    assert list(columns([["a", ""], ["bb", "c"]])) == ["a", "bb  c"]
    assert list(columns([])) == []
    assert (width("🙂"), width("ก\u0e34"), width("")) == (2, 1, 0)


def test_names_keep_spaces_and_show_invisible_characters():
    assert visible_name("a b/c.txt") == "a b/c.txt"
    assert visible_name("a\u202e\udcff\n") == "a⟨U+202E⟩⟨ff⟩⏎"


def test_a_tile_describes_its_id_and_bytes():
    assert tile(65, b'"<') == ('<span class="t c8" title="id 65, 2 bytes: 22 3c">&quot;&lt;</span>')
    assert 'class="t special"' in tile(257, b"x", is_special=True)
    assert "61 61 …" in tile(1, b"a" * 17)


def test_a_token_that_ends_with_a_newline_breaks_the_line_in_html():
    assert joined(Tokens(spans(VOCAB, [258, 98])).html()).count("<br>") == 1
    assert "and 1 more token<" in joined(Tokens(spans(VOCAB, [97, 98]), 1).html())
