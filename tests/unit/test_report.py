"""Reports: the same words as aligned text and as HTML, in which a table has its name first."""

from __future__ import annotations

import re

from byteweld.report import (
    Facts,
    InText,
    Listing,
    OnPage,
    Report,
    Section,
    Share,
    Table,
    Text,
    Token,
    html_of,
    text_of,
)

TABLE = Table(
    ("tokens", "rate A", "rate B", "file"),
    [[1200, 4.0, 1.0, "a<b"], [7, None, 2.0, "c"]],
    "file",
    charted=[1, 2],
)


def test_numbers_have_separators_or_two_places():
    assert text_of([1200, " ", 1.5, " ", None, " ", Share(0.5), " ", Share(None)]) == (
        "1,200 1.50 - 50.0% -"
    )


def test_a_token_is_colored_only_if_told_and_truncated():
    assert text_of(Token(1, b" a")) == "·a"
    assert text_of(Token(1, b"abc", 2), color=True).endswith("mab\x1b[0m")
    assert "abc" not in str(html_of(Token(1, b"abc", 2))).partition(">")[2]


def test_a_table_is_aligned_on_a_terminal():
    assert list(TABLE.lines(color=False)) == [
        "tokens  rate A  rate B  file",
        " 1,200    4.00    1.00  a<b",
        "     7       -    2.00  c",
    ]


def test_a_table_on_a_page_has_its_name_first_then_bars_to_one_scale():
    made = str(Report("", TABLE).html())
    assert re.findall(r"<th[ c][^>]*>(.*?)</th>", made) == ["file", "rate", "tokens"]
    assert re.findall(r"<tbody><tr><td>(.*?)</td>", made) == ["a&lt;b"]
    assert re.findall(r'<rect width="([\d.]+)"', made) == ["100.00", "25.00", "0.00", "50.00"]
    assert re.findall(r'lane-label">([\d.-]+)', made) == ["4.00", "1.00", "-", "2.00"]


def test_rows_that_are_left_out_are_counted():
    rows = [[n, "x"] for n in range(30)]
    table = Table(("n", "name"), rows, "row", in_text=2, on_page=20, shown=5)
    assert list(table.lines(color=False))[-2:] == ["1  x", "... and 28 more rows"]
    made = str(Report("", table).html())
    assert "<summary>15 more rows</summary>" in made and "… and 10 more rows" in made


def test_a_column_without_text_is_left_out_and_a_bar_follows_its_column():
    table = Table(("n", "", "name"), [[2, "", "x"], [4, "", "y"]], charted=[0], bar="####")
    assert list(table.lines(color=False)) == ["n        name", "2  ##    x", "4  ####  y"]


def test_sections_follow_blank_lines_and_are_indented():
    report = Report(
        "title",
        Facts([("a", 1), ("long", 2)]),
        OnPage(Text(["only on the page"])),
        Section("part", Listing(["x"]), Section("inner", Text(["y"]))),
        InText(Text(["only in text"])),
    )
    lines = ["title", "  a     1", "  long  2", "", "part", "  x", "  inner", "    y", ""]
    assert list(report.lines(color=False)) == [*lines, "  only in text"]
    made = report.html()
    assert "only on the page" in made and "only in text" not in made and "title" not in made
    assert "<h2>Part</h2>" in made
