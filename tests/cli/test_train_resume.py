"""`byteweld train --checkpoint`: killed at any moment, it resumes and writes the same bytes.

Also Ctrl-C: how quickly each stage responds, and what it prints.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import byteweld

pytest.importorskip("pyarrow", reason="a checkpoint stores counts as Parquet files")

LINE = ("train", "corpus.txt", "--vocab-size", "6000", "--threads", "2")
INTERRUPTED = 130


@pytest.fixture(scope="module")
def corpus():
    """About 8 MB of random words: enough to be killed while reading."""
    letters = random.Random(4)
    words = [
        "".join(letters.choices("etaoinshrdlu", k=letters.randint(2, 9))) for _ in range(60_000)
    ]
    return " ".join(letters.choices(words, k=1_300_000)).encode()


@pytest.fixture
def expected(corpus, tmp_path, program):
    (tmp_path / "corpus.txt").write_bytes(corpus)
    assert program(*LINE, "--out", "whole.json").code == 0
    return (tmp_path / "whole.json").read_bytes()


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "byteweld", *LINE, "--checkpoint", "point", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def wait_for(process, moment):
    """Run the process in short steps until a condition holds, and leave it stopped.

    However busy the machine is, the moment cannot be missed.
    """
    while process.poll() is None and not moment():
        process.send_signal(signal.SIGCONT)
        time.sleep(0.002)
        process.send_signal(signal.SIGSTOP)


def size(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def moments(folder, seed):
    """Yield ten conditions to kill at: three random times, and seven stages hard to hit."""
    chance = random.Random(seed)
    point = folder / "point"
    started = time.monotonic()
    for seconds in sorted(chance.uniform(0.05, 0.4) for _ in range(3)):
        yield lambda started=started, seconds=seconds: time.monotonic() - started > seconds
        started = time.monotonic()
    yield lambda: (point / "checkpoint.json").exists()
    yield lambda: any(entry.is_dir() for entry in point.glob(".byteweld-*"))
    yield lambda: (point / "counts").exists()
    for merges in sorted(chance.randrange(1, 5700) for _ in range(3)):
        yield lambda merges=merges: size(point / "merges.log") >= 16 + 32 * merges
    yield lambda: (folder / "tokenizer.json").exists()


def test_a_training_killed_ten_times_writes_the_same_as_an_uninterrupted_one(expected, tmp_path):
    killed = 0
    for moment in moments(tmp_path, seed=11):
        process = start("--force")
        wait_for(process, moment)
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
    assert killed >= 8  # a busy machine may miss some
    process = start("--force")
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert (tmp_path / "tokenizer.json").read_bytes() == expected
    assert not (tmp_path / "point").exists()


def ended_processes_seconds():
    """CPU time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_seconds(pid):
    """CPU time of a running process, which does not depend on the load as wall time does."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        pytest.skip("no /proc on this system")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


STAGES = {
    "reading": lambda folder: (folder / "point" / "merges.log").exists(),
    "saving counts": lambda folder: any(
        entry.is_dir() for entry in (folder / "point").glob(".byteweld-*")
    ),
    "merging": lambda folder: size(folder / "point" / "merges.log") > 16 + 32 * 500,
}


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_stops_at_once_and_says_how_to_resume(expected, tmp_path, stage):
    before = ended_processes_seconds()
    process = start("--force")
    wait_for(process, lambda: STAGES[stage](tmp_path))
    spent = cpu_seconds(process.pid)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate()
    answered = ended_processes_seconds() - before - spent
    assert process.returncode == INTERRUPTED, said
    assert said.decode().endswith("interrupted; run the same command to resume from point\n")
    assert answered < 1.0  # CPU seconds, including process exit
    process = start("--force")
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert (tmp_path / "tokenizer.json").read_bytes() == expected


class Alarm(Exception):
    """Stands in for Ctrl-C, which pytest handles itself."""


def seconds_to_answer(work, after):
    """Return the CPU time that `work` takes to respond to a signal sent in the middle of it.

    The timer counts CPU time as well, so the load of the machine does not matter.
    """

    def ring(signum, frame):
        raise Alarm

    before = signal.signal(signal.SIGPROF, ring)
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, after)
    try:
        with pytest.raises(Alarm):
            work()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    # Measured from when the signal was due: the handler runs only when the engine checks signals.
    return time.process_time() - (began + after)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarms")
def test_a_signal_interrupts_reading_and_merging_at_once(corpus, tmp_path):
    (tmp_path / "corpus.txt").write_bytes(corpus)
    many = [tmp_path / "corpus.txt"] * 40
    reading = [
        seconds_to_answer(lambda n=n: byteweld.train(many, vocab_size=300, num_threads=n), 0.2)
        for n in (1, 2, 2)
    ]
    words = {f"{n * 7919 % 999983}abcdefgh{n}".encode(): n % 97 + 1 for n in range(200_000)}
    counts = byteweld.Counts(words)
    merging = [
        seconds_to_answer(lambda: byteweld.train(counts, vocab_size=60_000, recipe="plain"), after)
        for after in (0.02, 0.1, 0.15)
    ]
    # The best of three: the first may include one-time initialization.
    assert min(reading) < 0.3, reading
    assert min(merging) < 0.3, merging


def test_a_checkpoint_inside_the_corpus_folder_is_not_read(tmp_path, program, monkeypatch):
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "a.txt").write_text("low lower lowest newer newest wider widest " * 9)
    monkeypatch.chdir(tmp_path / "books")
    line = ("train", ".", "--ext", "*", "--vocab-size", "280")
    assert program(*line, "--out", "../plain.json").code == 0
    found = program(*line, "--out", "../kept.json", "--checkpoint", "point")
    assert found.code == 0
    assert "in 1 file," in found.err
    plain = (tmp_path / "plain.json").read_bytes()
    assert (tmp_path / "kept.json").read_bytes() == plain
    killed = "import os, byteweld.cli.train as verb\n"
    killed += "verb.remove_checkpoint = lambda path: os._exit(9)\n"
    killed += "from byteweld.cli import main; main()"
    rest = (*line, "--out", "../first.json", "--checkpoint", "point")
    assert subprocess.run([sys.executable, "-c", killed, *rest], check=False).returncode == 9
    found = program(*line, "--out", "../second.json", "--checkpoint", "point")
    assert found.code == 0
    assert "resuming from point" in found.err
    assert "in 1 file," in found.err
    assert (tmp_path / "second.json").read_bytes() == plain
