"""What reading may hold in memory: records, dictionaries, documents; refused by name or skipped."""

from __future__ import annotations

import contextlib
import gzip
import os
import threading

import pytest

import byteweld
from byteweld import BudgetError, CorpusError, counts
from byteweld._memory import Budget, memory_limit
from byteweld.corpus import open_corpus
from tests.harness.memory import (
    BOMBS,
    BUDGET_BYTES,
    FORMATS,
    OPENERS,
    POLICIES,
    blocks,
    count,
    write,
    xz_with_dictionary,
    zstd_with_window,
)
from tests.harness.run import Run
from tests.helpers.events import can_be_interrupted

MEGABYTE = 1 << 20


def count_within(path, *, record=MEGABYTE, dictionary=MEGABYTE, **reading):
    """Count a file within limits for a record and a dictionary."""
    limit = memory_limit(
        table_bytes=MEGABYTE,
        text_bytes=8 * MEGABYTE,
        merge_bytes=8 * MEGABYTE,
        keep_bytes=8 * MEGABYTE,
        record_bytes=record,
        dictionary_bytes=dictionary,
    )
    corpus = open_corpus(path, **reading)
    return counts.count_within(Budget(limit, 2), corpus, byteweld.RECIPES["modern"])


def test_a_record_larger_than_its_limit_is_refused_by_line_or_skipped(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    record = b'{"text": "' + b"ab " * 350_000 + b'"}'
    path.write_bytes(gzip.compress(b'{"text": "one"}\n' + record + b'\n{"text": "two"}\n', 1))
    for on_error in ("fail", "replace"):
        with pytest.raises(BudgetError) as caught:
            count_within(path, on_error=on_error)
        assert "a.jsonl.gz:2: byte 16: the record is too long, more than the 1048576" in str(
            caught.value
        )
        assert "--memory" in str(caught.value) and "--on-error skip" in str(caught.value)
    found = count_within(path, on_error="skip")
    assert (found[b"one"], found[b"two"], found.skipped_documents) == (1, 1, 1)
    assert count_within(path, record=2 * MEGABYTE)[b" ab"] == 349_999
    assert byteweld.count(path)[b" ab"] == 349_999


def test_a_budget_leaves_less_for_a_record_than_the_default(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "' + b"ab " * 10_000_000 + b'"}\n')
    measured = count(path)
    assert measured.code == 2 and "a.jsonl:1: byte 0: the record is too long" in measured.message
    assert "as --memory, or skip it with --on-error skip" in measured.message
    assert byteweld.count(path)[b" ab"] == 9_999_999


def test_replacing_may_not_make_a_text_larger_than_the_limit(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "' + b"\xff" * 400_000 + b'"}\n')
    assert count_within(path, record=2 * MEGABYTE, on_error="replace").total == 1
    with pytest.raises(
        BudgetError, match=r"a\.jsonl:1: byte 0: the text is too long after replacing"
    ):
        count_within(path, on_error="replace")


@pytest.mark.parametrize("name", ["a.txt.xz", "a.txt.zst"])
def test_a_dictionary_larger_than_its_limit_is_refused_by_name_or_skipped(name, tmp_path):
    path = tmp_path / name
    is_xz = name.endswith("xz")
    make = xz_with_dictionary if is_xz else zstd_with_window
    path.write_bytes(make(b"some words", 1 << 30 if is_xz else 30))
    found = rf"{name}: .* needs a dictionary of 1073741824 bytes, more than"
    with pytest.raises(BudgetError, match=found):
        count_within(path)
    with pytest.raises(CorpusError, match=found):
        byteweld.count(path)
    with pytest.raises(CorpusError, match=found):
        list(open_corpus(path).documents())
    assert count_within(path, on_error="skip").skipped_documents == 1
    assert count_within(path, dictionary=1 << 30)[b"some"] == 1
    # What the programs usually write: `xz -6` and `zstd -19`.
    path.write_bytes(make(b"some words", 8 << 20 if is_xz else 23))
    assert count(path).code == 0


def test_a_larger_dictionary_in_a_later_part_is_never_skipped(tmp_path):
    path = tmp_path / "a.txt.zst"
    lines = zstd_with_window(b"line\n" * 300_000, 20)
    path.write_bytes(lines + zstd_with_window(b"words", 30))
    with pytest.raises(BudgetError, match="dictionary"):
        count_within(path, on_error="skip", unit="line")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_long_documents_are_checked_without_holding_them(suffix, tmp_path):
    long = b"word " * 300_000
    documents = [b"a", long + b"good", b"b", long + b"\xff", b"bad\xff", long, long + b"\xc3"]
    content = b"<|end|>".join(documents)
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(gzip.compress(content, 1) if suffix else content)
    found = count_within(path, separator="<|end|>", on_error="skip")
    assert found == count_within(path, separator="<|end|>", on_error="skip", record=64 * MEGABYTE)
    assert found.skipped_documents == 3
    assert (found[b"good"], found[b" good"], found[b" word"]) == (0, 1, 599_998)


def test_a_pipe_cannot_be_read_twice(tmp_path):
    path = tmp_path / "a.txt"
    os.mkfifo(path)
    writer = threading.Thread(target=_write, args=(path, b"word " * 300_000))
    writer.start()
    with pytest.raises(CorpusError, match="a pipe, device or stream cannot be read twice"):
        count_within(path, on_error="skip")
    writer.join()


def _write(path, content):
    with contextlib.suppress(BrokenPipeError):
        path.write_bytes(content)


def test_blank_lines_and_empty_members_are_read_in_linear_time_and_hear_an_interrupt(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"") * 4_000_000 + gzip.compress(b"word"))
    assert can_be_interrupted(lambda: byteweld.count(path))


@pytest.mark.parametrize("suffix", OPENERS)
@pytest.mark.parametrize("kind", FORMATS)
def test_the_peak_is_within_the_budget(kind, suffix, tmp_path):
    extension, options = FORMATS[kind]
    path = tmp_path / f"a.{extension}{suffix}"
    write(path, blocks(kind, Run("test", 1, 0).random(kind), 12_000_000, bad=False))
    # A policy reads alike what comes out of any decoder: one of each kind is enough.
    for policy in POLICIES if suffix in ("", ".gz") else ("skip",):
        measured = count(path, *options, "--on-error", policy, budget=200_000_000)
        assert measured.code == 0, measured.message
        assert measured.peak <= 200_000_000


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("bomb", BOMBS, ids=[bomb.name for bomb in BOMBS])
def test_bombs_stay_within_the_budget(bomb, policy, tmp_path):
    path = tmp_path / bomb.name
    bomb.write(path, 1_000_000_000)
    measured = count(path, *bomb.options, "--on-error", policy)
    assert measured.peak <= BUDGET_BYTES
    assert measured.code in (0, 2), measured.message
