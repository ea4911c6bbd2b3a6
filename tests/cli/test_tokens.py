"""`byteweld tokens`: how many, by file and in all."""

from __future__ import annotations

import json

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


def test_files_are_counted_one_by_one_and_in_all(program, saved, corpus):
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


def test_an_empty_text_has_no_rate(run, saved):
    assert run("tokens", "-").text.splitlines()[1] == "     0      0            -  -"


def test_the_report_for_programs(run, saved, corpus):
    result = run("tokens", "texts", "--json")
    assert json.loads(result.out) == {
        "files": [
            row("texts/a.txt", 4, 11),
            row("texts/b.md", 2, 5),
        ],
        "total": row("total", 6, 16),
    }


def test_special_tokens_follow_the_same_rule_and_name_the_file(run, saved, tmp_path):
    (tmp_path / "s.txt").write_bytes(b"low<|endoftext|>")
    refused = run("tokens", "s.txt")
    assert refused.code == 2
    assert refused.err.startswith("byteweld: s.txt: text holds the special token '<|endoftext|>'; ")
    assert (
        json.loads(run("tokens", "s.txt", "--json", "--allowed-special", "all").out)["total"][
            "tokens"
        ]
        == 2
    )
    plain = json.loads(run("tokens", "s.txt", "--json", "--plain").out)
    assert plain["total"]["tokens"] > 2


def test_json_lines_are_counted_by_their_text(run, saved, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "low"}\n{"text": "lower"}\n')
    assert json.loads(run("tokens", "a.jsonl", "--json").out)["total"] == row("total", 3, 8)


def test_skipped_documents_are_told(run, saved, tmp_path):
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


def test_a_wrong_source_shows_before_any_is_read(run, saved, corpus):
    assert run("tokens", "texts", "nowhere") == (
        2, b"", "byteweld: nowhere: no such file or folder\n"
    )  # fmt: skip
