"""`byteweld tokens`: counts by file and in total."""

from __future__ import annotations

import json
import re

import pytest


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_bytes(b"low lowest\n")
    (tmp_path / "texts" / "b.md").write_bytes(b"lower")
    (tmp_path / "texts" / "empty.txt").write_bytes(b"")
    return tmp_path / "texts"


def row(name, tokens, num_bytes, skipped=0):
    return {
        "name": name,
        "tokens": tokens,
        "bytes": num_bytes,
        "bytes_per_token": num_bytes / tokens if tokens else None,
        "skipped_documents": skipped,
    }


def test_files_are_counted_one_by_one_and_in_total(program, saved, corpus):
    assert program("tokens", "texts", "-", stdin=b"low\n") == (
        0,
        b"tokens  bytes  bytes/token  file\n"
        b"     4     11         2.75  texts/a.txt\n"
        b"     2      5         2.50  texts/b.md\n"
        b"     2      4         2.00  -\n"
        b"     8     20         2.50  total\n",
        "",
    )


def test_one_file_needs_no_total(run, saved, corpus):
    assert run("tokens", "texts/b.md").text == (
        "tokens  bytes  bytes/token  file\n     2      5         2.50  texts/b.md\n"
    )


def test_the_json_report(run, saved, corpus):
    result = run("tokens", "texts", "--json")
    assert json.loads(result.out) == {
        "files": [
            row("texts/a.txt", 4, 11),
            row("texts/b.md", 2, 5),
        ],
        "total": row("total", 6, 16),
    }


def test_text_comes_from_files_standard_input_or_an_argument(run, saved, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"lower")
    for source in (["a.txt"], ["-"], [], ["--text", "lower"]):
        report = json.loads(run("tokens", *source, "--json", stdin=b"lower").out)
        assert report["total"] == row("total", 2, 5)
    assert run("tokens", "--text", "low\nlow", "--lines", "--json").code == 0


def test_skipped_documents_are_reported(run, saved, tmp_path):
    (tmp_path / "a.jsonl").write_text('broken\n{"text": "low"}\nbroken too\n')
    (tmp_path / "b.txt").write_bytes(b"\xff")
    (tmp_path / "c.txt").write_bytes(b"lower")
    line = ("tokens", "a.jsonl", "b.txt", "c.txt", "--on-error", "skip")
    result = run(*line, "--json")
    assert result.err == "skipped 3 documents\n"
    assert json.loads(result.out) == {
        "files": [row("a.jsonl", 1, 3, 2), row("b.txt", 0, 0, 1), row("c.txt", 2, 5)],
        "total": row("total", 3, 8, 3),
    }
    assert run(*line).err == "skipped 3 documents\n"


# ---------------------------------------------------------------------------- --show


def test_the_tokens_are_shown_before_the_numbers(program, saved, corpus):
    assert program("tokens", "texts", "--show") == (
        0,
        b"texts/a.txt, document 1\nlow|\xc2\xb7low|est|\xe2\x8f\x8e\n\n"
        b"texts/b.md, document 1\nlow|er\n\n"
        b"tokens  bytes  bytes/token  file\n"
        b"     4     11         2.75  texts/a.txt\n"
        b"     2      5         2.50  texts/b.md\n"
        b"     6     16         2.67  total\n",
        "",
    )


def test_shown_tokens_in_json_have_ids_and_offsets(run, saved, corpus, tiny):
    report = json.loads(run("tokens", "texts", "--show", "--json").out)
    first, second = report["documents"]
    assert (first["name"], first["document"], first["bytes"]) == ("texts/a.txt", 1, 11)
    assert [token["id"] for token in second["tokens"]] == tiny.encode("lower")
    assert second["tokens"][1] == {
        "id": tiny.encode("er")[0], "bytes": "6572", "text": "er", "start": 3, "end": 5,
        "is_special": False,
    }  # fmt: skip
    assert report["total"] == row("total", 6, 16)
    assert "documents" not in json.loads(run("tokens", "texts", "--json").out)


def test_the_page_has_the_numbers_and_the_tokens(run, saved, corpus, tmp_path):
    result = run("tokens", "texts", "--show", "--html", "page.html")
    assert result.code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count('class="t ') == 6 and "2.67" in page
    facts = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page)
    assert facts == [
        ("tokenizer", "tokenizer"),
        ("file", "<code>tokenizer.json</code>"),
        ("vocabulary", "272 tokens"),
        ("pattern", "<code>gpt2</code>"),
    ]
    assert run("tokens", "texts", "--html", "page.html", "--force").code == 0
    assert 'class="t ' not in (tmp_path / "page.html").read_text()


def test_a_page_of_many_documents_stops_and_says_so(run, saved, tmp_path):
    (tmp_path / "many.txt").write_bytes(b"x\n" * 10_500)
    run("tokens", "many.txt", "--lines", "--show", "--html", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count('class="t ') == 20_000
    assert "and 500 more documents" in page


def test_a_huge_document_is_not_shown(run, saved, tmp_path):
    (tmp_path / "big.txt").write_bytes(b"a" * 1_000_001)
    assert run("tokens", "big.txt").code == 0
    assert run("tokens", "big.txt", "--show").err == (
        "byteweld: big.txt: document 1 has 1,000,001 bytes, too many to --show "
        "(at most 1,000,000); use a part of it, or leave --show out\n"
    )


def test_special_tokens_in_the_text_are_said(run, saved):
    line = ("tokens", "--text", "low<|endoftext|>")
    said = "1 special token in the text, each one id; --special-text text counts them as text\n"
    assert run(*line).err == said
    assert run(*line, "--special-text", "text").err == ""
