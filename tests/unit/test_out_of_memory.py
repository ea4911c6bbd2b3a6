"""Out of memory: reading, counting and training raise MemoryError, whichever allocation fails."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path

import pytest

from tests.helpers.programs import run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")

# The address space is limited to what the process has after its imports, and a little more.
CHILD = """
import os, resource, sys
import numpy
import byteweld, byteweld.counts_files, byteweld.training.run
from byteweld.corpus import open_corpus

what, more, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * os.sysconf("SC_PAGE_SIZE") + more
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    if what == "count":
        byteweld.count(path, num_threads=2)
    elif what == "items":
        byteweld.count(path, num_threads=1).items()
    elif what == "common":
        byteweld.count(path, num_threads=1).most_common()
    elif what == "batches":
        list(byteweld.count(path, num_threads=1).batches())
    elif what == "train":
        byteweld.train(path, vocab_size=1000, num_threads=2)
    elif what == "plain":
        byteweld.train(path, vocab_size=300, recipe="plain", num_threads=2)
    elif what == "documents":
        for document in open_corpus(path).documents():
            pass
except (MemoryError, byteweld.BudgetError):
    os._exit(3)
os._exit(0)
"""


def run(what: str, more: int, path: Path) -> int:
    ended = run_python("-c", CHILD, what, more, path)
    assert ended.returncode in (0, 3), (what, more, ended.returncode, ended.stderr)
    return ended.returncode


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("corpora")
    rng = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(3, 25))) for _ in range(200_000)]
    text = " ".join(words)
    (folder / "a.txt").write_text(text)
    (folder / "a.txt.gz").write_bytes(gzip.compress(text.encode(), 1))
    (folder / "a.jsonl").write_text(json.dumps({"text": text + "\n"}) + "\n")
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("what", ["count", "items", "train", "plain", "documents"])
def test_an_allocation_that_fails_is_a_memory_error(what, corpora):
    codes = {run(what, megabytes << 20, corpora["a.txt"]) for megabytes in (1, 6, 12, 24, 1000)}
    assert codes == {0, 3}, "some of the limits must be too low and some enough"


def test_a_long_record_and_an_archive_are_read_or_raise(corpora):
    for name in ("a.jsonl", "a.txt.gz"):
        assert run("documents", 1 << 20, corpora[name]) == 3
        assert run("count", 4 << 20, corpora[name]) == 3


def test_the_command_ends_with_one_line_and_writes_nothing(corpora, tmp_path):
    out = tmp_path / "out"
    limited = (
        "import os, resource, sys; import numpy, byteweld.cli.count, byteweld.training.run; "
        "from byteweld.cli import main; "
        "size = int(open('/proc/self/statm').read().split()[0]) * os.sysconf('SC_PAGE_SIZE'); "
        "resource.setrlimit(resource.RLIMIT_AS, (size + (12 << 20),) * 2); sys.exit(main())"
    )
    arguments = ["count", str(corpora["a.txt"]), "--out", str(out), "--threads", "1"]
    ended = run_python("-c", limited, *arguments)
    assert ended.returncode == 2, ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    assert not out.exists()


@pytest.mark.slow
def test_every_allocation_may_fail(corpora):
    rng = random.Random(7)
    for what in ("count", "items", "common", "batches", "train", "plain", "documents"):
        for name in corpora:
            for _ in range(25):
                run(what, int(2 ** rng.uniform(20, 28)), corpora[name])
