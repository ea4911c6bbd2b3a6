"""benches/dataset.py: times and memory of whole process trees, and the digest of the ids."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dataset

from .conftest import BENCHES, read_definitions

# A child process that holds 60 MB for half a second, while its parent holds as much.
FAMILY = """
import subprocess, sys
one = bytearray(60_000_000)
subprocess.run([sys.executable, "-c", "import time; b = bytearray(60_000_000); time.sleep(0.5)"])
open(sys.argv[1] + "/tokens.bin", "wb").write(b"12")
"""
# A child process that needs half a second of CPU time, and whose end its parent does not collect.
ORPHAN = """
import os, time
from pathlib import Path
child = os.fork()
if child == 0:
    while time.process_time() < 0.6:
        pass
    os._exit(0)
while ") Z" not in Path(f"/proc/{child}/stat").read_text():
    time.sleep(0.05)
"""
PIPELINE = """
import numpy as np

def tokenize(job):
    np.array(job.ids, "u2").tofile(job.out)

def documents(job):
    yield np.fromfile(job.out, "u2"), np.array(job.lengths)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_a_run_is_measured_with_all_its_processes_and_a_failure_says_why(tmp_path):
    found = dataset.measure([sys.executable, "-c", FAMILY, str(tmp_path)], tmp_path, 1)
    assert found.error == ""
    assert 120e6 < found.peak < 300e6 and found.cpu > 0
    assert dataset.measure([sys.executable, "-c", ORPHAN], tmp_path, 1).cpu > 0.5
    command = [sys.executable, "-c", "import sys; print('so far'); sys.exit('no such corpus')"]
    assert dataset.measure(command, tmp_path, 1).error == "exit 1: no such corpus"


def test_the_digest_is_of_ids_and_documents(tmp_path):
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    worker = [sys.executable, "-P", BENCHES / "dataset_worker.py", tmp_path / "pipeline.py"]

    def digest(ids, lengths):
        job = json.dumps({"ids": ids, "lengths": lengths, "out": str(tmp_path / "out")})
        subprocess.run([*worker, "tokenize", job], check=True)
        done = subprocess.run([*worker, "digest", job], check=True, capture_output=True)
        return json.loads(done.stdout)

    found = digest([1, 2, 3], [1, 2])
    assert (found["documents"], found["tokens"]) == (2, 3)
    others = [digest([1, 2, 4], [1, 2]), digest([1, 2, 3], [2, 1])]
    assert len({found["digest"], *(other["digest"] for other in others)}) == 3


def test_every_pipeline_of_the_definitions_exists():
    definitions = read_definitions("datasets.toml")
    for name in [*definitions["pipelines"], definitions["truth"]]:
        source = (BENCHES / "pipelines" / f"{name}.py").read_text()
        assert "def tokenize(job)" in source and "def documents(job)" in source
    assert dataset.read_targets(definitions)
