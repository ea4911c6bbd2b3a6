"""`byteweld count`: the most common pre-tokens, saved counts."""

from __future__ import annotations

import json

import pytest

import byteweld


def test_the_most_common_are_shown_so_that_nothing_hides(program, tmp_path):
    (tmp_path / "a.txt").write_bytes("low low\nlow é \tx\n".encode())
    assert program("count", "a.txt") == (
        0,
        "2  ⏎\n2  low\n1  ⇥x\n1  ·\n1  ·low\n1  ·é\n".encode(),
        "counted 8 pre-tokens, 6 distinct, in 1 file, 18 bytes (TIME)\n",
    )


def test_long_pretokens_are_shortened(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a" * 1000)
    result = run("count", "a.txt")
    assert result.text == f"1  {'a' * 59}…\n"


def test_the_report_for_programs(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab")
    result = run("count", "a.txt", "--recipe", "bpetite", "--top", "1", "--json")
    assert json.loads(result.out) == {
        "out": None,
        "pattern": byteweld.PATTERNS["gpt2"],
        "files": 1,
        "bytes": 8,
        "pretokens": 3,
        "distinct_pretokens": 2,
        "skipped_documents": 0,
        "pruning": None,
        "most_common": [{"bytes": "206162", "text": "·ab", "count": 2}],
    }


def test_special_tokens_are_boundaries(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab<|x|>ab")
    assert run("count", "a.txt", "--special", "<|x|>").text == "2  ab\n"


def test_counts_are_saved_and_not_overwritten(run, tmp_path):
    pytest.importorskip("pyarrow", reason="saved counts are Parquet files")
    (tmp_path / "a.txt").write_bytes(b"ab ab ab")
    result = run("count", "a.txt", "--out", "counts")
    assert result == (
        0,
        b"",
        "counted 3 pre-tokens, 2 distinct, in 1 file, 8 bytes (TIME)\n"
        "wrote counts: 2 distinct pre-tokens\n",
    )
    assert byteweld.Counts.load("counts").items() == [(b" ab", 2), (b"ab", 1)]
    assert run("count", "a.txt", "--out", "counts") == (
        2,
        b"",
        "byteweld: counts holds counts already; pass --force to replace them\n",
    )
    assert run("count", "a.txt", "a.txt", "--out", "counts", "--force").code == 0
    assert byteweld.Counts.load("counts").total == 6


def test_saving_without_pyarrow_is_refused_before_counting(run, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("count", "nowhere", "--out", "counts")
    assert result == (
        2,
        b"",
        "byteweld: saved counts are Parquet files; "
        "install pyarrow with: pip install 'byteweld[arrow]'\n",
    )


def test_the_talk_and_the_data_are_kept_apart(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab")
    result = run("count", "a.txt", "--json")
    json.loads(result.out)
    assert result.err.startswith("counted 3 pre-tokens")


def test_skipped_documents_are_told(run, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "ab"}\nbroken\n{"text": "ab"}\n')
    result = run("count", "a.jsonl", "--on-error", "skip", "--json")
    assert json.loads(result.out)["skipped_documents"] == 1
    assert result.err.endswith("(TIME); skipped 1 document\n")
