"""`--html`: what the pages of all verbs have in common."""

from __future__ import annotations

import json
import shlex

import pytest

import byteweld

COMPARE = "compare tokenizer.json smaller.json"
HOSTILE = "<script>alert(1)</script> <img/src=x/onerror=alert(1)>\u202e\x1b[31m lower newest\n"
NAME = "<img src=x onerror=alert(1)>\u202e.txt"

PAGES = {
    "inspect tokenizer.json": [
        "Longest tokens",
        "Unreachable tokens",
        "The same sentence in 29 languages",
    ],
    "inspect tokenizer.json --corpus texts": [
        "tokenizer on 2 files",
        "Words by script",
        "cyrillic",
        "Scripts",
    ],
    "inspect tokenizer.json --merges": ["rank", "·newest"],
    "inspect tokenizer.json --tree low": ["├── ", "rank 1"],
    "inspect --bytes texts/a.txt": ["0x6_", "--ascii-only starts from 98 base tokens"],
    "explain lowest": ["<title>Why these tokens</title>", "no pair can merge", "├── "],
    "explain --train 'low <script>'": ["&lt;- merged"],
    "tokens texts --show": ["texts/a.txt, document 1", "2.00", "Tokens of texts"],
    f"{COMPARE} texts": ["spans are cut differently", "texts/a.txt", "cyrillic", "·lower"],
}


@pytest.mark.parametrize(("line", "facts"), PAGES.items())
def test_a_page_is_written_alone_or_with_json_and_replaces_nothing(
    run, saved, tiny, tmp_path, line, facts
):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("low lowest\nnewest 12\n")
    (tmp_path / "texts" / "b.md").write_text("Вот lower\n")
    tiny.cut(262).save("smaller.json")
    code = int(line.startswith("compare"))  # the ids differ
    line = (*shlex.split(line), "--html", "page.html")
    result = run(*line)
    assert (result.code, result.out) == (code, b"")
    assert "wrote page.html: " in result.err and result.err.count("\n") == 1
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>") and "<script" not in page
    for fact in facts:
        assert fact in page
    refused = run(*line)
    assert refused == (2, b"", "byteweld: page.html exists; pass --force to replace it\n")
    again = run(*line, "--force", "--json")
    assert again.code == code and json.loads(again.out)


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("inspect tokenizer.json --corpus", ["&lt;script&gt;", "&lt;svg/onload=x&gt;"]),
        ("tokens --show", ["&lt;img src=x"]),
        ("explain", ["onerror"]),
        (COMPARE, ["&lt;img src=x"]),
    ],
)
def test_markup_and_control_characters_stay_text(run, tmp_path, line, facts):
    tok = byteweld.train(
        iter([HOSTILE * 20]), vocab_size=330, recipe="ck", special_tokens=["<svg/onload=x>"]
    )
    tok.save("tokenizer.json")
    tok.cut(300).save("smaller.json")
    (tmp_path / NAME).write_bytes(HOSTILE.encode() + b"\xff")
    line = (*line.split(), NAME)
    assert run(*line, "--html", "page.html").code in (0, 1)
    page = (tmp_path / "page.html").read_text()
    for hostile in ("<script", "<img", "<svg/", "\u202e", "\x1b"):
        assert hostile not in page
    for fact in (*facts, "⟨U+202E⟩"):
        assert fact in page
    shown = run(*line).text
    assert "\u202e" not in shown and "\x1b" not in shown
