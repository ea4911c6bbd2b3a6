"""benches/dataset.py: its pipelines, and the digest of the ids."""

from __future__ import annotations

import json
import subprocess
import sys

import dataset

from .conftest import BENCHES, read_definitions

PIPELINE = """
import numpy as np

def tokenize(job):
    np.array(job.ids, "u2").tofile(job.out)

def documents(job):
    yield np.fromfile(job.out, "u2"), np.array(job.lengths)
"""


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
