"""The harness finds what is planted, and what it once found stays fixed."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from random import Random

import pytest

from byteweld import Tokenizer, _saves, formats
from byteweld.formats import tiktoken_ranks
from tests.harness import allocations, kill, soak, specials
from tests.harness.cost import measure
from tests.harness.files import __main__ as files_program
from tests.harness.files import kinds
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


# ---------------------------------------------------------------------- fuzz-files


@pytest.mark.parametrize(
    "case", sorted(FINDINGS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_a_file_that_once_failed_is_read_or_refused(case, tmp_path):
    kind, files = kinds.KINDS[case.parent.name], read_folder(case)
    kind.make(Random(0))  # what it needs is made before the child is
    watch = Watch(lambda number: run_case(kind, files, tmp_path, 0))
    assert [event.what for event in watch.run(0, 1)] == []


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


# ---------------------------------------------------------------------- allocations


def test_an_abort_for_lack_of_memory_is_found():
    run = Run("allocations", 0, 0)
    allocations.try_once(run, "large", lambda: lambda: bytes(1 << 30), 1 << 20)
    allocations.try_once(run, "small", lambda: lambda: bytes(1 << 20), 1 << 30)
    assert run.findings == []
    assert dict(run.executions) == {"large: refused": 1, "small: done": 1}
    allocations.try_once(run, "planted", lambda: os.abort, 1 << 20)
    assert [finding.partition(";")[0] for finding in run.findings] == [
        f"planted: with {1 << 20:,} bytes: ended with -{signal.SIGABRT:d}"
    ]


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


# ---------------------------------------------------------------------- kill


def kill_a_writer(most: int) -> Run:
    pair = kill._tokenizers("modern")
    writer = next(kill._saver("tiktoken", "a.tiktoken", "tiktoken", pair))
    made = Run("kill", 60, 0)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # for a reader without rights
        kill.run_all(made, [writer], Path(folder), 1, most)
    return made


def test_a_rank_file_and_its_sidecar_survive_every_kill():
    made = kill_a_writer(8)
    assert made.findings == []
    assert sorted(made.executions.values()) == [1, 8]


def test_files_written_one_after_the_other_are_found(monkeypatch):
    def one_by_one(files, *, overwrite, merged):
        for path, data in files.items():
            _saves.write_atomic(path, data, overwrite=overwrite)

    monkeypatch.setattr(formats, "write_together", one_by_one)
    found = kill_a_writer(8).findings
    assert any("the sidecar belongs to a file" in what for what in found)


# ---------------------------------------------------------------------- fuzz-specials

encode_spans = Tokenizer.encode_spans


def joined(spans):
    return b"".join(specials._raw(text) for text, _ in spans)


def trusts_everything(tok, spans):
    return tok.encode(joined(spans), allowed_special="all")


def keeps_shared_ids(tok, spans):
    """What `encode_spans` did before it knew of shared ids."""
    if any(trusted for _, trusted in spans):
        return encode_spans(tok, spans)
    return tok.encode(joined(spans), disallowed_special=())


def joins_spans(tok, spans):
    return encode_spans(tok, [(joined(spans), any(trusted for _, trusted in spans))])


@pytest.mark.parametrize("hole", [None, trusts_everything, keeps_shared_ids, joins_spans])
def test_holes_in_encode_spans_are_found(hole, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(Tokenizer, "encode_spans", hole or encode_spans)
    given = ["--turns", "2", "--seed", "3", "--data", str(tmp_path)]
    assert specials.main(given) == (hole is not None)
    out = capsys.readouterr().out
    assert ("FINDING" in out) == (hole is not None)
    assert hole or "trained huggingface, shared ids" in out
