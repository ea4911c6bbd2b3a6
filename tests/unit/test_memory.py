"""Memory budgets: parsing, what is refused, and that the process stays within them."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import byteweld
from byteweld import BudgetError, Counts, _memory
from byteweld._memory import parse_memory
from tests.helpers.events import wait_until
from tests.helpers.programs import run_python

# ---------------------------------------------------------------------- parsing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2GB", 2_000_000_000),
        ("512MiB", 512 << 20),
        ("1.5G", 1_500_000_000),
        (".5T", 500_000_000_000),
        ("1 TiB", 1 << 40),
        (" 100 mb ", 100_000_000),
        ("64kib", 64 << 10),
        ("7K", 7_000),
        ("4096", 4096),
        ("4096B", 4096),
        (4096, 4096),
        (10**30, 2**62),  # effectively no limit
        ("999999999T", 2**62),
    ],
)
def test_a_budget_is_a_number_with_a_unit(text, expected):
    assert parse_memory(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "GB", "2 XB", "two", "-2GB", "1e9", "2GBs", "1,5G", "0x10", "2iB", "1.G", "٣GB"),
        *("2\u212a", "2G\u0130B", "9" * 400),  # Kelvin sign and dotted I: K and i if case folded
    ],
)
def test_an_invalid_budget_is_a_value_error_that_shows_it(text):
    with pytest.raises(ValueError, match="such as '2GB'") as caught:
        byteweld.count(iter(["a"]), memory=text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("error", "words", "values"),
    [
        (ValueError, "greater than zero", [0, -5, "0GB", "0.0000001K"]),
        (TypeError, "memory", [True, 1.5, b"2GB", [1]]),
    ],
)
def test_a_budget_is_a_positive_amount(error, words, values):
    for memory in values:
        with pytest.raises(error, match=words):
            byteweld.count(iter(["a"]), memory=memory)


# ---------------------------------------------------------------------- what is refused


def test_a_budget_that_is_too_small_is_refused_at_once_with_the_amount_needed(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("ab " * 1000)
    for memory in (1, "1MB", _memory.resident_bytes()):
        with pytest.raises(
            BudgetError, match=r"needs [0-9.]+[MG]B in total; use at least"
        ) as caught:
            byteweld.count(file, memory=memory, num_threads=1)
        assert caught.value.needed > _memory.resident_bytes()
    with pytest.raises(BudgetError, match="fewer threads"):
        byteweld.count(file, memory="1MB", num_threads=7)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.needed == caught.value.needed


def test_the_suggested_budget_is_enough(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("ab " * 1000)
    with pytest.raises(BudgetError) as caught:
        byteweld.count(file, memory=1, num_threads=3)
    needed = caught.value.needed + (8 << 20)  # this process may have grown since
    assert byteweld.count(file, memory=needed, num_threads=3) == byteweld.count(file)


def test_a_small_budget_means_fewer_threads_unless_the_number_is_given(monkeypatch):
    monkeypatch.setattr(_memory, "_processors", lambda: 64)
    monkeypatch.setattr(_memory, "_ARROW_BYTES", 0)
    resident = _memory.resident_bytes()
    assert _memory.divide(resident + (32 << 20), None).num_threads == 1
    assert 1 < _memory.divide(resident + (400 << 20), None).num_threads < 64
    assert _memory.divide(resident + (8 << 30), None).num_threads == 64
    with pytest.raises(BudgetError):
        _memory.divide(resident + (64 << 20), 64)


def test_a_training_that_exceeds_the_budget_is_refused_with_numbers_and_advice():
    counts = Counts({b"%d" % n * 9: 1 for n in range(100_000)})
    budget = _memory.resident_bytes() + (60 << 20)
    with pytest.raises(BudgetError, match="100000 distinct pre-tokens") as caught:
        byteweld.train(counts, vocab_size=200_000, recipe="plain", memory=budget)
    assert "prune=2" in str(caught.value) and caught.value.needed > budget
    tok = byteweld.train(counts, vocab_size=300, recipe="plain", memory=caught.value.needed * 2)
    assert tok.vocab == byteweld.train(counts, vocab_size=300, recipe="plain").vocab


def test_documents_that_can_be_read_within_the_budget_can_be_merged(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory, "_MAX_MERGE_BYTES", 1 << 20)  # the real one needs larger documents
    for number in range(60):
        (tmp_path / f"{number}.txt").write_bytes(os.urandom(600_000))
    budget = _memory.resident_bytes() + (100 << 20)
    counts = byteweld.count(tmp_path, pattern=None, memory=budget, num_threads=1)
    assert len(counts) == 60


def test_an_unsplittable_document_that_exceeds_the_budget_is_named(tmp_path):
    file = tmp_path / "long.txt"
    file.write_bytes(b"a" * 60_000_000)
    memory = _memory.resident_bytes() + (80 << 20)
    with pytest.raises(BudgetError, match="cannot be cut and does not fit") as caught:
        byteweld.count(file, recipe="plain", memory=memory, num_threads=1)
    assert str(file) in str(caught.value)
    assert byteweld.count(file, recipe="plain", memory="8GB").total_bytes == 60_000_000


# ---------------------------------------------------------------------- the disk

SCRIPT = """
import sys, byteweld
counts = byteweld.count(sys.argv[1], memory=sys.argv[2], num_threads=int(sys.argv[3]))
assert counts.is_on_disk
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """40 MB of random words, whose distinct pre-tokens need a table of about 250 MB."""
    import numpy as np

    random = np.random.default_rng(7)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
    file = tmp_path_factory.mktemp("corpus") / "words.txt"
    with file.open("wb") as out:
        for _ in range(40):
            text = letters[random.integers(0, 26, 1_000_000)]
            text[random.random(len(text)) < 0.11] = ord(" ")
            out.write(text.tobytes())
    return file


@pytest.fixture(scope="module")
def counted(corpus):
    """The corpus counted without a budget."""
    return byteweld.count(corpus)


def run(code, *arguments, **options):
    return run_python("-c", code, *arguments, **options)


def test_a_missing_temporary_folder_is_named(corpus, tmp_path):
    result = run(SCRIPT, corpus, "90MB", 1, env=os.environ | {"TMPDIR": str(tmp_path / "none")})
    assert "FileNotFoundError" in result.stderr and str(tmp_path / "none") in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_temporary_folder_that_is_not_writable_is_named(corpus, tmp_path):
    tmp_path.chmod(0o500)
    result = run(SCRIPT, corpus, "90MB", 1, env=os.environ | {"TMPDIR": str(tmp_path)})
    assert "PermissionError" in result.stderr and str(tmp_path) in result.stderr


def test_a_full_disk_is_an_error_and_leaves_no_files(corpus, tmp_path):
    # A limit on file sizes simulates a full disk: writing fails in the same way.
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, 5_000_000))

    environment = os.environ | {"TMPDIR": str(tmp_path)}
    result = run(SCRIPT, corpus, "90MB", 2, env=environment, preexec_fn=limit)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == f"OSError: [Errno 27] File too large: '{tmp_path}'"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_files_are_left_when_counting_is_killed_or_interrupted(how, corpus, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, corpus, "90MB", "2"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: has_spilled(process.pid, tmp_path))
        process.send_signal(how)
        assert process.wait() != 0
    finally:
        process.kill()
    assert list(tmp_path.iterdir()) == []


def has_spilled(pid, folder):
    """Whether the process has written to an unnamed file in the folder."""
    descriptors = Path(f"/proc/{pid}/fd")
    if not descriptors.is_dir():
        pytest.skip("no /proc on this system")
    for file in descriptors.iterdir():
        try:
            if str(file.readlink()).startswith(str(folder)) and file.stat().st_size:
                return True
        except OSError:
            continue
    return False


# ---------------------------------------------------------------------- within the budget

MEASURED = """
import sys, byteweld
if sys.argv[4] == "0":
    import pyarrow.parquet  # needed to save; loaded now, so that the budget includes it
memory, threads, vocab_size = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
counts = byteweld.count(sys.argv[1], memory=memory, num_threads=threads)
if vocab_size:
    tok = byteweld.train(counts, vocab_size=vocab_size, memory=memory)
    print(tok.vocab.fingerprint)
else:
    counts.save(sys.argv[5])
print(len(counts), counts.total, counts.is_on_disk)
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print(int(line.split()[1]) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(("memory", "threads"), [("220MB", 1), ("260MB", 2), ("350MB", 7)])
def test_counting_and_saving_stay_within_the_budget(memory, threads, corpus, counted, tmp_path):
    pytest.importorskip("pyarrow", reason="saved counts are Parquet files")
    result = run(MEASURED, corpus, memory, threads, 0, tmp_path / "counts")
    assert not result.stderr
    *_, facts, peak = result.stdout.splitlines()
    assert facts.endswith("True"), "the counts fit; the test measures nothing"
    assert int(peak) <= parse_memory(memory)
    assert Counts.load(tmp_path / "counts") == counted


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_training_stays_within_the_budget_and_gives_the_same_vocabulary(corpus, counted):
    result = run(MEASURED, corpus, "800MB", 2, 3000)
    assert not result.stderr
    fingerprint, _, peak = result.stdout.splitlines()
    assert int(peak) <= 800_000_000
    assert fingerprint == byteweld.train(counted, vocab_size=3000).vocab.fingerprint
