"""What reading may hold in memory: records, dictionaries, documents; refused by name or skipped."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time

import pytest

import byteweld
from byteweld import BudgetError, CorpusError
from byteweld.corpus import open_corpus
from tests.harness.memory import (
    BOMBS,
    BUDGET_BYTES,
    FORMATS,
    POLICIES,
    Measured,
    blocks,
    check,
    count,
    repeated,
    xz_with_dictionary,
    zstd_bomb,
    zstd_with_window,
)
from tests.harness.run import Run

BUDGET = "300MB"


def long_record(path, size=30_000_000):
    content = b'{"text": "one"}\n{"text": "' + b"ab " * (size // 3) + b'"}\n{"text": "two"}\n'
    path.write_bytes(gzip.compress(content, 1))
    return path


def test_a_record_larger_than_the_budget_is_refused_by_line_or_skipped(tmp_path):
    path = long_record(tmp_path / "a.jsonl.gz")
    for on_error in ("fail", "replace"):
        with pytest.raises(BudgetError) as caught:
            byteweld.count(path, memory=BUDGET, on_error=on_error)
        assert "a.jsonl.gz:2: the record is too long" in str(caught.value)
        assert "--memory" in str(caught.value) and "--on-error skip" in str(caught.value)
    counts = byteweld.count(path, memory=BUDGET, on_error="skip")
    assert (counts[b"one"], counts[b"two"], counts.skipped_documents) == (1, 1, 1)
    assert byteweld.count(path)[b" ab"] == 9_999_999
    assert byteweld.count(path, memory="2GB")[b" ab"] == 9_999_999


@pytest.mark.parametrize("name", ["a.txt.xz", "a.txt.zst"])
def test_a_dictionary_larger_than_its_limit_is_refused_by_name_or_skipped(name, tmp_path):
    path = tmp_path / name
    make = xz_with_dictionary if name.endswith("xz") else zstd_with_window
    path.write_bytes(make(b"some words", 1 << 30 if name.endswith("xz") else 30))
    for kind, memory in ((BudgetError, BUDGET), (CorpusError, None)):
        with pytest.raises(kind, match=rf"{name}: .* needs a dictionary of 1073741824 bytes, more"):
            byteweld.count(path, memory=memory)
        assert byteweld.count(path, memory=memory, on_error="skip").skipped_documents == 1
    with pytest.raises(CorpusError, match="a dictionary of 1073741824 bytes"):
        list(open_corpus(path).documents())
    assert byteweld.count(path, memory="8GB")[b"some"] == 1
    # What programs usually write is read within a few hundred megabytes.
    path.write_bytes(make(b"some words", 8 << 20 if name.endswith("xz") else 23))
    assert byteweld.count(path, memory=BUDGET)[b"some"] == 1


def test_a_larger_dictionary_in_a_later_part_is_never_skipped(tmp_path):
    path = tmp_path / "a.txt.zst"
    path.write_bytes(zstd_bomb(20, 20 << 20) + zstd_with_window(b"words", 30))
    with pytest.raises(BudgetError, match="dictionary"):
        byteweld.count(path, memory=BUDGET, on_error="skip", lines=True)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_long_documents_are_checked_without_holding_them(suffix, tmp_path):
    long = b"word " * 2_000_000  # 10 MB, more than the budget leaves for a document
    documents = [b"a", long + b"good", b"b", long + b"\xff", b"bad\xff", long, long + b"\xc3"]
    content = b"<|end|>".join(documents)
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(gzip.compress(content, 1) if suffix else content)
    options = {"separator": "<|end|>", "on_error": "skip"}
    counts = byteweld.count(path, memory="150MB", **options)
    assert counts == byteweld.count(path, **options)
    assert counts.skipped_documents == 3
    assert (counts[b"good"], counts[b" good"], counts[b" word"]) == (0, 1, 3_999_998)


def test_blank_lines_and_empty_members_are_read_in_linear_time_and_hear_an_interrupt(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"") * 4_000_000 + gzip.compress(b"word"))
    program = "import byteweld, sys; print('on', flush=True); byteweld.count(sys.argv[1])"
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.1)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=60)
        assert b"KeyboardInterrupt" in error
        assert time.monotonic() - sent < 5


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", FORMATS)
def test_the_peak_is_within_the_budget(kind, policy, tmp_path):
    extension, options = FORMATS[kind]
    path = tmp_path / f"a.{extension}.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for block in blocks(kind, Run("test", 1, 0).random(kind), 60_000_000, bad=False):
            file.write(block)
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


def test_the_harness_finds_a_run_over_its_budget_and_a_wrong_end():
    run = Run("memory", 1, 0)
    check(run, "good", Measured(0, BUDGET_BYTES, ""), None)
    assert not run.findings
    check(run, "large", Measured(0, BUDGET_BYTES + 1, ""), None)
    check(run, "fails", Measured(2, 1, "byteweld: no"), None)
    check(run, "aborts", Measured(-6, 1, "memory allocation failed"), "too long")
    assert len(run.findings) == 3
    assert sum(map(len, repeated(b"ab", 3_000_000))) <= 3_000_000
