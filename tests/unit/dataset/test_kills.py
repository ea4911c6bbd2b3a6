"""A run that is killed with SIGKILL, again and again, ends with the bytes of one that is not.

First before file-system events (opening a file to write, writing, syncing, renaming, removing),
which finds every order of writes that does not survive; then at random moments, several times in
one job. Also a disk that is full.
"""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld.dataset import _stream
from byteweld.dataset._manifest import load_manifest
from byteweld.jobs import LocalRunner
from tests.harness.kill import Events
from tests.helpers.tokenized import digests, make_tokenizer, write_corpus

JOBS = {
    "flat": {"format": "flat"},
    "shards": {"format": "flat", "validation": 0.3, "shard_tokens": 9_000},
    "shuffled": {"format": "flat", "shuffle": True, "validation": 0.3, "shard_tokens": 30_000},
    "llmc": {"format": "llmc", "shard_tokens": 7_777},
    "packed": {"format": "npy", "pack": 128, "shard_tokens": 20_000},
    "megatron": {"format": "megatron", "validation": 0.1},
    "parquet": {"format": "parquet", "shard_tokens": 30_000},
    "mds": {"format": "mds", "shard_tokens": 30_000},
    "litdata": {"format": "litdata", "shard_tokens": 30_000, "validation": 0.2},
    "hf": {"format": "hf", "validation": 0.2},
}
EXAMPLES = int(os.environ.get("BYTEWELD_EXAMPLES", "1"))


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("kills")
    make_tokenizer().save(folder / "tokenizer.json")
    write_corpus(folder / "corpus", 4, 9000)
    return folder


@pytest.fixture(scope="module")
def uninterrupted(place: Path):
    found: dict[str, dict[str, str]] = {}

    def digests_of(job: str) -> dict[str, str]:
        if job not in found:
            tokenize(place, job, place / f"once-{job}")
            found[job] = digests(place / f"once-{job}")
        return found[job]

    return digests_of


def tokenize(place: Path, job: str, out: Path, *, in_tasks: bool = False) -> None:
    tok = byteweld.load(place / "tokenizer.json")
    how: dict[str, Any] = {"num_threads": 2}
    if in_tasks:
        how = {"runner": LocalRunner(slice_bytes=400_000, num_threads=2)}
    byteweld.tokenize(place / "corpus", tok, out=out, **how, **JOBS[job])


def in_child(work) -> tuple[int, int]:
    """Run something in a forked process; returns the signal that ended it, and its exit code."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    return os.WTERMSIG(status), os.WEXITSTATUS(status)


@pytest.mark.parametrize(
    ("job", "in_tasks"),
    [
        *((job, False) for job in JOBS),
        ("shards", True),
        ("shuffled", True),
        ("llmc", True),
        ("hf", True),
    ],
)
def test_killed_before_a_file_system_event(
    place, uninterrupted, tmp_path, monkeypatch, job, in_tasks
):
    monkeypatch.setattr(_stream, "_RECORD_SECONDS", 0)
    uninterrupted(job)
    counted = tmp_path / "events"

    def count() -> None:
        events = Events()
        events.install()
        tokenize(place, job, tmp_path / "counted", in_tasks=in_tasks)
        counted.write_text(str(events.seen))

    assert in_child(count) == (0, 0)
    total = int(counted.read_text())
    assert total > 20
    draw = random.Random(job)
    for _ in range(4 * EXAMPLES):
        out = tmp_path / "out"
        kills = 0
        # Two kills: the second one also hits what a resumed run does first.
        for at in (draw.randrange(1, total), draw.randrange(1, max(2, total // 3))):

            def killed(at: int = at, out: Path = out) -> None:
                Events(at).install()
                tokenize(place, job, out, in_tasks=in_tasks)

            ended = in_child(killed)
            assert ended in ((signal.SIGKILL, 0), (0, 0))
            kills += ended[0] == signal.SIGKILL
        assert kills
        tokenize(place, job, out, in_tasks=in_tasks)
        assert digests(out) == uninterrupted(job)
        shutil.rmtree(out)


CHILD = """
import sys
from pathlib import Path
from byteweld.dataset import _stream
from tests.unit.dataset.test_kills import tokenize
_stream._RECORD_SECONDS = 0.01
print("ready", flush=True)
tokenize(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
"""


@pytest.mark.parametrize("number", range(30 if EXAMPLES == 1 else 100))
def test_killed_at_a_random_moment(place, uninterrupted, tmp_path, number):
    job = list(JOBS)[number % len(JOBS)]
    uninterrupted(job)
    draw = random.Random(number)
    out = tmp_path / "out"
    for _ in range(3):
        command = [sys.executable, "-c", CHILD, str(place), job, str(out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(draw.random() ** 2 * 0.8)
            child.kill()
        if (out / "manifest.json").exists() and load_manifest(out).is_complete:
            break
    tokenize(place, job, out)
    assert digests(out) == uninterrupted(job)


@pytest.mark.parametrize("job", ["flat", "shards", "shuffled", "parquet"])
def test_a_full_disk_is_an_error_and_the_next_run_goes_on(place, uninterrupted, tmp_path, job):
    uninterrupted(job)
    out = tmp_path / "out"
    message = tmp_path / "message"

    def fill() -> None:
        # A limit on file sizes acts like a full disk: writing fails in the same way.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
        try:
            tokenize(place, job, out)
        except OSError as error:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            message.write_text(f"{error.errno} {error.filename}")
            raise

    assert in_child(fill) == (0, 1)
    code, name = message.read_text().split(" ", 1)
    assert int(code) == errno.EFBIG and str(out) in name
    tokenize(place, job, out)
    assert digests(out) == uninterrupted(job)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_disk_that_is_really_full(place, uninterrupted, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system is not permitted")
    try:
        with pytest.raises(OSError) as failure:
            tokenize(place, "flat", disk / "out")
        assert failure.value.errno == errno.ENOSPC
        assert str(disk / "out") in str(failure.value.filename)
        shutil.copytree(disk / "out", tmp_path / "out")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    tokenize(place, "flat", tmp_path / "out")
    assert digests(tmp_path / "out") == uninterrupted("flat")
