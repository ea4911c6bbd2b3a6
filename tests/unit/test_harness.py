"""The harness finds what is planted, and what it once found stays fixed."""

from __future__ import annotations

import os
import signal
import time
from random import Random

import pytest

import byteweld
from byteweld import Tokenizer
from byteweld.formats import tiktoken_ranks
from tests.fuzz import paths, rounds, subjects, texts
from tests.harness import soak
from tests.harness.cost import measure
from tests.harness.cost.__main__ import main as fuzz_cost
from tests.harness.cost.__main__ import run_cases
from tests.harness.cost.cases import every_name, find, others
from tests.harness.files import __main__ as files_program
from tests.harness.files import kinds, mutate
from tests.harness.files.__main__ import FINDINGS, run_case
from tests.harness.files.__main__ import main as fuzz_files
from tests.harness.files.bases import read_folder
from tests.harness.files.kind import Kind
from tests.harness.run import Run
from tests.harness.watch import Limits, Watch

# ---------------------------------------------------------------------- children


def test_a_child_that_dies_names_its_case_and_the_next_continues():
    def case(number):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 4:
            while True:
                pass
        if number == 6:
            return 0, ("planted", "a signature")
        return number % 2, None

    watch = Watch(case, limits=Limits(cpu_seconds=0.2))
    found = [(event.number, event.what.split(";")[0]) for event in watch.run(0, 9)]
    assert found == [
        (2, "killed by SIGKILL"),
        (4, "takes too long"),
        (6, "planted"),
    ]
    assert watch.done == 7
    assert (watch.counter(0), watch.counter(1)) == (3, 4)


def test_a_child_that_waits_forever_is_ended():
    watch = Watch(lambda number: (time.sleep(100), None)[0], limits=Limits(wall_seconds=0.5))
    assert [event.what for event in watch.run(0, 1)] == ["does not end"]


def test_a_child_cannot_take_more_memory_than_its_limit():
    def case(number):
        try:
            bytes(1 << 29)
        except MemoryError:
            return 1, None
        return 0, None

    watch = Watch(case, limits=Limits(memory_bytes=1 << 28))
    assert list(watch.run(0, 1)) == []
    assert watch.counter(1) == 1


# ---------------------------------------------------------------------- fuzz-files


@pytest.mark.parametrize(
    "case", sorted(FINDINGS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_a_file_that_once_failed_is_read_or_refused(case, tmp_path):
    kind, files = kinds.KINDS[case.parent.name], read_folder(case)
    kind.make(Random(0))  # what it needs is made before the child is
    watch = Watch(lambda number: run_case(kind, files, tmp_path, 0))
    assert [event.what for event in watch.run(0, 1)] == []


@pytest.mark.parametrize("name", ["bpe1", "checkpoint", "jsonl"])
def test_the_same_seed_draws_the_same_files_and_another_seed_others(name):
    kind = kinds.KINDS[name]
    drawn = [[kind.make(Random(f"{seed} {n}")) for n in range(8)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("name", ["bpe1", "bpetite", "tekken", "counts", "archive"])
def test_bases_are_valid(name, tmp_path):
    kind = kinds.KINDS[name]
    for number in range(3):
        assert kind.run(kind.make(Random(number), times=0), tmp_path, 0)


def test_a_planted_error_is_found_shrunk_and_kept(monkeypatch, tmp_path, capsys):
    def planted(files, folder, number):
        if files["v.bpe1"].startswith(b"BPE1"):
            raise IndexError("planted")
        return True

    kind = kinds.KINDS["bpe1"]
    broken = Kind("bpe1", kind.bases, kind.changes, planted)
    monkeypatch.setitem(kinds.KINDS, "bpe1", broken)
    monkeypatch.setattr(files_program, "SHRINK_TRIES", 6)
    monkeypatch.setattr(files_program, "KEPT_OF_A_SIGNATURE", 1)
    given = ["--kind", "bpe1", "--cases", "5", "--keep", str(tmp_path)]
    assert fuzz_files(given) == 1
    out = capsys.readouterr().out
    assert "FINDING bpe1: IndexError: planted" in out
    assert "--kind bpe1 --seed 0 --case " in out
    kept = [path.read_bytes() for path in tmp_path.rglob("v.bpe1")]
    assert kept and all(data.startswith(b"BPE1") and len(data) < 900 for data in kept)


def test_a_fast_reader_that_reads_something_else_is_found(monkeypatch, tmp_path):
    read = tiktoken_ranks.read_ranks

    def wrong(data):
        return read(data.replace(b"dGhl ", b"dGhm "))  # "the" becomes "thf"

    kind = kinds.KINDS["tiktoken"]
    (files, *_) = (files for files in kind.bases() if b"dGhl " in files["r.tiktoken"])
    assert run_case(kind, files, tmp_path, 1)[1] is None
    monkeypatch.setattr(tiktoken_ranks, "read_ranks", wrong)
    assert "fast and plain reader" in run_case(kind, files, tmp_path, 1)[1][0]


def test_json_is_changed_in_ways_that_python_values_cannot_be():
    made = [
        mutate.dump(mutate.change_json(Random(seed), {"a": [1, {"b": "c"}]})) for seed in range(900)
    ]
    everything = b"\n".join(made)
    for odd in (b"NaN", b"\\ud800", b'"a": [1, {"b": "c"}], "a"', b"18446744073709551616", b"[[[["):
        assert odd in everything, odd


# ---------------------------------------------------------------------- fuzz-cost


def busy(steps):
    total = 0
    for step in range(steps):
        total += step
    return total


@pytest.mark.parametrize(
    ("steps", "is_found"),
    [(lambda n: n, False), (lambda n: n * n // 500, True), (lambda n: n * n.bit_length(), False)],
)
def test_superlinear_time_is_found(steps, is_found, monkeypatch):
    monkeypatch.setattr(measure, "RETRIES", 1 if is_found else measure.RETRIES)
    found = measure.measure(lambda n: lambda: busy(steps(n)), start=500, floor=0.0005)
    assert (found.problem is not None) == is_found, found


def test_superlinear_memory_is_found(monkeypatch):
    monkeypatch.setattr(measure, "FLOOR_BYTES", 8 << 20)
    prepare = lambda n: lambda: b"x" * (n * n)  # noqa: E731
    found = measure.measure(prepare, start=1000, cap=1000, floor=100.0)
    assert "times the memory" in found.problem


def test_a_slow_case_is_reported_by_a_name_that_repeats_it(capsys, monkeypatch):
    def prepare(name, folder):
        return lambda n: lambda: busy(n * n // 500 if name == "slow" else n)

    monkeypatch.setattr(measure, "FLOOR_SECONDS", 0.0005)
    monkeypatch.setattr(measure, "RETRIES", 1)
    run = Run("fuzz-cost", 20, 0)
    run_cases(run, ["fine", "slow"], prepare)
    assert run.finish() == 1
    assert "fuzz-cost --case 'slow'" in capsys.readouterr().out
    assert len(run.findings) == 1


def test_there_are_thousands_of_cases_and_one_can_be_named(capsys):
    assert len(others()) > 1000 and sum(1 for _ in every_name()) > 100_000
    assert find("encode/o200k/spaces") is not None
    assert fuzz_cost(["--case", "no such case"]) == 2
    assert fuzz_cost(["--case", "separator/-/many", "--seconds", "5"]) == 0


# ---------------------------------------------------------------------- soak


def test_a_leak_is_found_and_a_table_that_grows_once_is_not():
    kept: list[bytes] = []
    assert soak.slope(lambda: kept.append(bytes(3000)), 0.5).is_leak
    once: list[bytearray] = []
    calls = iter(range(10**9))

    def grow_once():
        if next(calls) == 20_000:
            once.append(bytearray(b"x" * (8 << 20)))

    assert not soak.slope(grow_once, 0.3).is_leak


def test_a_wrong_answer_on_a_thread_is_found():
    tok = Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, [])
    right = soak.Call("count/plain", lambda tok, text: tok.count(text), tok, "abc", 3)
    threads = soak.Threads([right, right._replace(answer=4)], [right], [])
    threads.run(0.3, 0, number=4)
    assert any("gives a wrong answer for 'abc'" in what for what in threads.findings)
    assert "a forked child gives a wrong answer" in threads.findings


def test_a_child_that_hangs_or_dies_is_found():
    assert soak.fork_and_check(lambda: True) is None
    assert soak.fork_and_check(lambda: time.sleep(9) is None, seconds=0.2) == "hangs"
    assert soak.fork_and_check(lambda: os.kill(os.getpid(), signal.SIGKILL)) == "ends with -9"


def test_every_operation_of_the_soak_is_right_on_one_thread():
    plain = byteweld.train(documents=["the cat sat on the mat"] * 3, vocab_size=270).vocab
    every = soak.calls({"plain": plain}, soak.OPERATIONS | soak.LARGE, 1)
    assert all(call.is_right() for call in every)


# ---------------------------------------------------------------------- fuzz-encode


def test_long_texts_that_are_wrong_on_threads_are_found(monkeypatch):
    monkeypatch.setattr(rounds, "FLOOD_WORDS", {15: 1000, 31: 1000})
    monkeypatch.setattr(rounds, "shrink", lambda whole, fails: whole)
    monkeypatch.setattr(texts, "HUGE_BYTES", (150_000,))
    right = paths.MANY["encode_ragged on 3"]

    def wrong(asked):
        found, expected = right(asked)
        return (found[:-1] if sum(map(len, asked.texts)) > 2 * 65536 else found), expected

    for name in paths.MANY:
        if name not in paths.SINGLE:
            monkeypatch.setitem(paths.MANY, name, wrong)
    made = rounds.Rounds(subjects.random_ranks(1), texts.own_samples(), seed=1)
    mismatch = made._check_threads(rounds.Case(0), Random(1))
    assert mismatch is not None and mismatch.case.path in paths.MANY


def test_huge_batches_are_long_enough_for_threads_and_hard_where_they_are_cut():
    made = texts.Texts(texts.own_samples(), tokens=[b"ab"], specials=["<|a|>"], max_bytes=10**6)
    batches = [made.huge(Random(seed)) for seed in range(3)]
    assert all(sum(map(len, batch)) > 128_000 / 4 for batch in batches)
    assert any("<|a|>" in str(text) for batch in batches for text in batch)
