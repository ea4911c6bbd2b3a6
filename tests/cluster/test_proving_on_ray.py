"""`prove` and `compare` on the real Ray: the results of one process, also if workers die."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import byteweld
from byteweld import peers, proof
from byteweld.corpus import Corpus, open_corpus
from byteweld.errors import CorpusError, TaskError
from byteweld.jobs import LocalRunner, open_runner
from byteweld.jobs.proving import WorkerPeer, prove_corpus
from tests.helpers.programs import run_byteweld
from tests.helpers.sliced import OTHER, SAME, Encoder

OURS = Encoder("ours", SAME)


class Kills(NamedTuple):
    """Opens a side; the first process that does dies."""

    marker: Path
    side: Encoder

    def __call__(self) -> Encoder:
        if "default_worker" in sys.argv[0]:  # not where the proof is started
            try:
                self.marker.touch(exist_ok=False)
            except FileExistsError:
                return self.side
            os._exit(1)
        return self.side


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    folder = tmp_path / "texts"
    folder.mkdir()
    lines = ['{"text": "ab ba"}'] * 60 + ["{broken"] * 5 + ['{"text": "ab !"}'] * 3
    (folder / "a.jsonl").write_text("\n".join(lines))
    (folder / "b.txt").write_text("ab é\n" * 50 + "abc\n" + "漢 ab\n" * 50 + "abc abc\n")
    return open_corpus(folder, unit="line", on_error="skip")


def timeless(found: Any) -> Any:
    return found._replace(proof=dataclasses.replace(found.proof, seconds=(0.0, 0.0)))


@pytest.mark.parametrize("theirs", [Encoder("theirs", tok, b"!") for tok in (SAME, OTHER)])
def test_a_proof_is_that_of_one_process(
    ray_cluster: Any, corpus: Corpus, tmp_path: Path, theirs: Encoder
) -> None:
    kills = Kills(tmp_path / "killed", theirs)
    runner = open_runner("ray", slice_bytes=100)
    with runner:
        found = prove_corpus(runner, corpus, OURS, kills, skip_failures=True)
    assert kills.marker.exists()
    here = prove_corpus(
        LocalRunner(), corpus, OURS, functools.partial(Encoder, *theirs), skip_failures=True
    )
    assert timeless(found) == timeless(here)
    assert (found.files, found.skipped, found.proof.skipped_documents) == (2, 5, 3)
    difference = found.proof.difference
    assert (difference is None) == (theirs.tok is SAME)
    assert difference is None or difference.document.number == 51


def test_a_comparison_is_that_of_one_process(ray_cluster: Any, corpus: Corpus) -> None:
    here = byteweld.compare(SAME, OTHER, corpus)
    with open_runner("ray", slice_bytes=100) as runner:
        found = byteweld.compare(SAME, OTHER, corpus, runner=runner)
    again = byteweld.compare(SAME, OTHER, corpus, runner="ray")
    for one in (found, again):
        assert dataclasses.replace(one, seconds=(0.0, 0.0)) == dataclasses.replace(
            here, seconds=(0.0, 0.0)
        )
    assert [item.document for item in found.differences] == [51, 102, 102]


def test_a_broken_record_is_the_error_of_one_process(ray_cluster: Any, corpus: Corpus) -> None:
    strict = dataclasses.replace(
        corpus, reading=dataclasses.replace(corpus.reading, on_error="fail")
    )
    errors = []
    with open_runner("ray", slice_bytes=100) as runner:
        for chosen in (None, runner):
            with pytest.raises(CorpusError, match=r"a\.jsonl:61: ") as raised:
                byteweld.compare(SAME, OTHER, strict, runner=chosen)
            errors.append(str(raised.value))
    assert errors[0] == errors[1]


def test_a_missing_file_names_the_slice(ray_cluster: Any, corpus: Corpus) -> None:
    strict = dataclasses.replace(
        corpus, reading=dataclasses.replace(corpus.reading, on_error="fail")
    )
    Path(strict.files[1]).unlink()
    Path(strict.files[0]).write_text("")
    with open_runner("ray") as runner, pytest.raises(TaskError, match=r"slice 0 \(.*a\.jsonl"):
        byteweld.compare(SAME, OTHER, strict, runner=runner)


def test_a_peer_is_opened_in_the_workers(ray_cluster: Any, tmp_path: Path) -> None:
    pytest.importorskip("tiktoken", reason="no tiktoken; run `make test-cluster`")
    tok = byteweld.train(documents=["low lower lowest"] * 3, vocab_size=262, recipe="bpetite")
    path = tmp_path / "a.tiktoken"
    tok.save(path)
    opened = peers.open_peer(path, "tiktoken", tok.vocab)
    sent = WorkerPeer(opened, path, "tiktoken", tok.vocab, num_threads=1)
    path.unlink()
    (tmp_path / "b.txt").write_text("low naïve lowest\n" * 50)
    with open_runner("ray", slice_bytes=100) as runner:
        found = prove_corpus(
            runner, open_corpus(tmp_path / "b.txt", unit="line"), Encoder("ours", tok), sent
        )
    assert (found.proof.documents, found.proof.end) == (50, None)
    assert proof.Proof() != found.proof


# ---------------------------------------------------------------------- the command line

PROGRESS = re.compile(r"^(comparing|proving): .* left\n", re.MULTILINE)  # of a slow run
RATES = re.compile(r" +\d+(?:\.\d)? m?s(?: +\d+\.\d MB/s(?: per thread)?)?$", re.MULTILINE)


def timeless_run(folder: Path, *arguments: str, **environment: str) -> tuple[int, list[str], str]:
    code, out, said = run_byteweld(folder, *arguments, **environment)
    return code, RATES.sub("", out).splitlines(), PROGRESS.sub("", said)


@pytest.mark.parametrize("where", ["its own cluster", "a cluster that is there"])
def test_the_command_prints_the_same(
    ray_cluster: Any, corpus: Corpus, tmp_path: Path, where: str
) -> None:
    pytest.importorskip("tiktoken", reason="no tiktoken; run `make test-cluster`")
    for name, tok in (("a", SAME), ("b", OTHER)):
        tok.save(tmp_path / f"{name}.tiktoken")
    ray = ["--runner", "ray", "--slice", "100B"]
    environment = {}
    if where == "its own cluster":
        environment = {"RAY_AUTH_TOKEN": "", "RAY_AUTH_MODE": ""}
    else:
        ray += ["--address", ray_cluster.get_runtime_context().gcs_address]
    reading = ["--lines", "--on-error", "skip"]
    for line in (["prove", "a.tiktoken"], ["compare", "a.tiktoken", "b.tiktoken"]):
        here = timeless_run(tmp_path, *line, "texts", *reading)
        there = timeless_run(tmp_path, *line, "texts", *reading, *ray, **environment)
        assert there == here
        assert here[2] == "skipped 5 documents\n"
        assert here[0] == (0 if line[0] == "prove" else 1)
    report = tmp_path / "proof.json"
    options = [*ray, "--out", report.name, "--work", "kept"]
    code, _, said = run_byteweld(
        tmp_path, "prove", "a.tiktoken", "texts", *reading, *options, **environment
    )
    assert (code, said.startswith("skipped 5 documents\nwrote proof.json: ")) == (0, True), said
    found = json.loads(report.read_text())
    assert [Path(file["path"]).name for file in found["corpus"]] == ["a.jsonl", "b.txt"]
    assert list((tmp_path / "kept").iterdir()) == []
