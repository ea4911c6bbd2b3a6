"""`byteweld count`: showing the most common pre-tokens, and saving counts."""

from __future__ import annotations

import json
import re
import sys

import pytest

import byteweld
from byteweld.cli._errors import message_for_people


def test_the_most_common_are_shown_with_visible_whitespace(program, tmp_path):
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


def test_the_json_report(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab")
    result = run("count", "a.txt", "--recipe", "bpetite", "--top", "1", "--json")
    assert result.err.startswith("counted 3 pre-tokens")
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
        "byteweld: counts exists; pass --force to replace it\n",
    )
    assert run("count", "a.txt", "a.txt", "--out", "counts", "--force").code == 0
    assert byteweld.Counts.load("counts").total == 6


def test_saving_without_pyarrow_is_refused_before_counting(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    result = run("count", "nowhere", "--out", "counts")
    assert result == (
        2,
        b"",
        "byteweld: what reads or writes Parquet files (saved counts are some) or Arrow tables "
        "needs pyarrow; install it with: pip install 'byteweld[arrow]'\n",
    )


def test_skipped_documents_are_reported(run, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "ab"}\nbroken\n{"text": "ab"}\n')
    result = run("count", "a.jsonl", "--on-error", "skip", "--json")
    assert json.loads(result.out)["skipped_documents"] == 1
    assert result.err.endswith("(TIME); skipped 1 document\n")


def test_folders_of_counts_and_files_are_added(run, tmp_path):
    pytest.importorskip("pyarrow", reason="saved counts are Parquet files")
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name} ab ab\n" * 50)
    run("count", "a.txt", "--out", "a")
    run("count", "b.txt", "--out", "b")
    run("count", "a.txt", "b.txt", "c.txt", "--out", "expected")
    assert run("count", "b", "a", "c.txt", "--out", "all", "--memory", "8GB") == (
        0,
        b"",
        "counted 600 pre-tokens, 5 distinct, in 1 file, 400 bytes and 2 tables of counts (TIME)\n"
        "wrote all: 5 distinct pre-tokens\n",
    )
    for part in range(16):
        name = f"part-{part:02}.parquet"
        assert (tmp_path / "all" / name).read_bytes() == (tmp_path / "expected" / name).read_bytes()
    trained = run("train", "all", "--vocab-size", "260", "--memory", "8GB", "--out", "tok.json")
    assert trained.code == 0
    run("train", "a.txt", "b.txt", "c.txt", "--vocab-size", "260", "--out", "expected.json")
    assert (tmp_path / "tok.json").read_bytes() == (tmp_path / "expected.json").read_bytes()


def test_pruning_is_reported(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab ab ab xab xab aab")
    result = run("count", "a.txt", "--recipe", "bpetite", "--prune", "2", "--json")
    assert result.err == (
        "counted 4 pre-tokens, 2 distinct, in 1 file, 20 bytes (TIME); pruned "
        "2 distinct pre-tokens below 2, 2 in total: pair counts are too small by at most 2\n"
    )
    assert json.loads(result.out)["pruning"] == {
        "threshold": 2,
        "distinct": 2,
        "occurrences": 2,
        "bytes": 6,
        "word_error": 1,
        "pair_error": 2,
    }


@pytest.mark.parametrize("verb", [("count",), ("train", "--vocab-size", "300")])
def test_an_invalid_or_too_small_budget_is_refused_before_the_work(verb, run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab")
    result = run(*verb, "a.txt", "--memory", "lots")
    assert result.code == 2 and "memory is 'lots'" in result.err
    result = run(*verb, "a.txt", "--memory", "1MB")
    assert result.code == 2
    needed = re.match(r"byteweld: --memory is '1MB', which is too little: .*'(\d+)MB'", result.err)
    assert needed is not None and int(needed[1]) > 1
    result = run(*verb, "a.txt", "--memory", "4")
    assert result.err.startswith(
        "byteweld: --memory is '4' (bytes, since it has no unit), which is"
    )
    result = run(*verb, "a.txt", "--prune", "0")
    assert result.code == 2 and "--prune" in result.err


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("notes", "notes holds other files; choose a folder that is new or empty"),
        (".", ". holds other files; choose a folder that is new or empty"),
        ("a.txt", "a.txt exists and is not a folder; choose another name"),
        ("a.txt/counts", "a.txt/counts cannot be written: "),
    ],
)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_counts_that_cannot_be_saved_are_refused_before_the_work(
    program, tmp_path, out, message, force
):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.txt").write_bytes(b"low low\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_bytes(b"mine")
    found = program("count", "a.txt", "--out", out, *force)
    assert found.code == 2
    assert found.err.startswith(f"byteweld: {message}")
    assert (tmp_path / "notes" / "mine.txt").read_bytes() == b"mine"


def test_counts_are_saved_to_the_target_of_a_link(program, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.txt").write_bytes(b"low low\n")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for force in ((), ("--force",)):
        assert program("count", "a.txt", "--out", "link", *force).code == 0
        assert (tmp_path / "link").is_symlink()
        assert byteweld.Counts.load(tmp_path / "real")[b"low"] == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "link", "real"]


def test_an_overflowing_sum_of_counts_is_a_one_line_error(program, tmp_path):
    pytest.importorskip("pyarrow")
    pattern = byteweld.PATTERNS["o200k"]
    byteweld.Counts({b"ab": 2**63}, pattern=pattern, boundaries=()).save(tmp_path / "counts")
    for memory in ((), ("--memory", "8GB")):
        found = program("count", "counts", "counts", *memory)
        assert found == (2, b"", 'byteweld: the count of pre-token "ab" exceeds 2^64 - 1\n')


def test_errors_name_options_not_arguments(run, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "\\ud800"}\n')
    result = run("count", "a.jsonl")
    assert result.code == 2
    assert "on_error" not in result.err
    assert result.err.endswith("; pass --on-error replace or skip\n")


def test_a_memory_error_says_what_to_do():
    hint = "; use a smaller corpus, --memory, or fewer --threads"
    assert message_for_people(MemoryError()) == f"not enough memory{hint}"
    assert message_for_people(MemoryError("a.parquet: no\nroom")) == f"a.parquet: no room{hint}"
