"""benches/: engines take turns, a wrong answer is caught and has no time, the record only grows."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

BENCHES = Path(__file__).parents[2] / "benches"

TEXT = "low lower lowest, newer and wider; the lower the newer\n" * 200

HEAD = """
[corpora]
tiny = { file = "tiny.txt" }

[vocabs]
tiny = "gpt2"
"""

COUNT = """
[[count]]
corpus = "tiny"
megabytes = 0.01
threads = 1
clock = "wall"
about = "A tiny corpus."
"""

TRAIN = """
[[train]]
corpus = "tiny"
megabytes = 0.01
vocab_size = 300
tie_rule = "smallest-ids"
threads = 1
clock = "wall"
about = "A tiny corpus."
"""

ENCODE = """
[[encode]]
corpus = "tiny"
megabytes = 0.008
vocab = "tiny"
shape = ["documents", "string"]
threads = 1
clock = "cpu"
about = "A tiny corpus."
"""

# Trains as ours does, then forgets the last token.
LIAR = """
import byteweld

DISTRIBUTION = "byteweld"


def train(job):
    print("noise on stdout")

    def call():
        return byteweld.train(job.documents(), vocab_size=job.vocab_size, recipe="rustbpe")

    def answer(tokenizer):
        tokens = tokenizer.vocab.tokens
        return [tokens[token_id] for token_id in sorted(tokens)][256:-1]

    return call, answer
"""

BROKEN = """
DISTRIBUTION = "byteweld"


def train(job):
    raise RuntimeError("no luck today")
"""

SLEEPER = """
import time

DISTRIBUTION = "byteweld"


def train(job):
    return lambda: time.sleep(600), lambda result: []
"""

ABSENT = """
DISTRIBUTION = "no-such-distribution"


def train(job):
    import no_such_distribution
"""


@dataclass
class Run:
    """What a run printed, and the record that it left."""

    status: int
    out: str
    err: str
    folder: Path

    @property
    def rows(self) -> list[dict[str, str]]:
        with self.file("*.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def file(self, pattern: str) -> Path:
        [file] = self.folder.glob(f"*/{pattern}")
        return file


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Run]:
    """Run benches/run.py on a tiny corpus, with engines written here beside the real ones."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "tiny.txt").write_text(TEXT)
    engines = tmp_path / "engines"
    engines.mkdir()

    def run(definitions: str, *arguments: str, **stubs: str) -> Run:
        (tmp_path / "definitions.toml").write_text(definitions)
        for name, source in stubs.items():
            (engines / f"{name}.py").write_text(source)
        places = {
            "definitions": tmp_path / "definitions.toml",
            "engines": engines,
            "record": tmp_path / "record",
            "cache": tmp_path / "cache",
            "shared": shared,
        }
        options = [f"--{name}={path}" for name, path in places.items()]
        done = subprocess.run(
            [sys.executable, str(BENCHES / "run.py"), *options, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Run(done.returncode, done.stdout, done.stderr, tmp_path / "record")

    return run


def train(engines: list[str], truth: str) -> str:
    return f"{HEAD}{TRAIN}engines = {json.dumps(engines)}\ntruth = {json.dumps(truth)}\n"


def test_the_engines_take_turns_and_every_run_is_recorded(bench: Callable[..., Run]) -> None:
    run = bench(train(["byteweld", "byteweld:iterator"], "byteweld:iterator"), "--repeat=2")
    assert run.status == 0, run.err
    turns = [(row["engine"], row["run"]) for row in run.rows]
    assert turns == [
        ("byteweld", "1"),
        ("byteweld:iterator", "1"),
        ("byteweld", "2"),
        ("byteweld:iterator", "2"),
    ]
    assert {row["ok"] for row in run.rows} == {"yes"}
    assert len({row["digest"] for row in run.rows}) == 1
    assert all(float(row["wall_seconds"]) > 0 for row in run.rows)
    assert all(int(row["peak_rss_bytes"]) > 1 << 20 for row in run.rows)
    assert {row["definition"] for row in run.rows} == {
        "train/tiny-0.01MB/300/smallest-ids/1-thread"
    }
    assert "byteweld:iterator" in run.out
    assert "train/tiny-0.01MB/300/smallest-ids/1-thread" in run.file("*.md").read_text()


def test_a_wrong_answer_is_reported_and_not_timed(bench: Callable[..., Run]) -> None:
    run = bench(train(["byteweld", "liar"], "byteweld"), "--repeat=2", liar=LIAR)
    assert "liar 0" in run.out
    assert "WRONG, not timed" in run.out
    assert "WRONG" in run.file("*.md").read_text()
    [wrong] = [row for row in run.rows if row["engine"] == "liar"]  # one round, then no more
    assert wrong["ok"] == "WRONG"
    assert [wrong["wall_seconds"], wrong["cpu_seconds"], wrong["peak_rss_bytes"]] == ["", "", ""]
    assert [row["ok"] for row in run.rows if row["engine"] == "byteweld"] == ["yes", "yes"]
    assert run.status == 0  # a peer's mistake is a finding, not our failure


def test_a_wrong_answer_of_ours_fails_the_run(bench: Callable[..., Run]) -> None:
    run = bench(train(["byteweld", "liar"], "liar"), "--repeat=1", liar=LIAR)
    assert run.status == 1
    assert {row["engine"]: row["ok"] for row in run.rows} == {"byteweld": "WRONG", "liar": "yes"}


def test_a_stored_answer_counts_for_its_own_corpus_only(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld"], "byteweld")
    [row] = bench(definitions, "--repeat=1").rows
    answer = (
        '\n[answers]\n"train/tiny-0.01MB/300/smallest-ids" = '
        '{{ corpus = "{corpus}", digest = "{digest}" }}\n'
    )
    right = answer.format(corpus=row["corpus_sha256"][:16], digest=row["digest"])
    wrong = answer.format(corpus=row["corpus_sha256"][:16], digest="0" * 16)
    other = answer.format(corpus="0" * 16, digest="0" * 16)
    assert bench(definitions + right, "--repeat=1").status == 0
    assert bench(definitions + wrong, "--repeat=1").status == 1
    assert bench(definitions + other, "--repeat=1").status == 0


def test_an_engine_that_fails_does_not_stop_the_others(bench: Callable[..., Run]) -> None:
    run = bench(train(["broken", "byteweld"], "byteweld"), "--repeat=2", broken=BROKEN)
    assert "RuntimeError: no luck today" in run.out
    verdicts = [(row["engine"], row["ok"]) for row in run.rows]
    assert verdicts == [("broken", "error"), ("byteweld", "yes"), ("byteweld", "yes")]


def test_an_engine_that_takes_too_long_is_stopped(bench: Callable[..., Run]) -> None:
    run = bench(train(["sleeper"], "sleeper"), "--timeout=1", "--repeat=1", sleeper=SLEEPER)
    assert [row["ok"] for row in run.rows] == ["timeout"]
    assert "stopped after 1 s" in run.out


def test_a_missing_peer_is_named_with_its_remedy(bench: Callable[..., Run]) -> None:
    run = bench(train(["byteweld", "absent"], "byteweld"), "--repeat=1", absent=ABSENT)
    assert "absent not installed: pip install no-such-distribution" in run.out
    assert [row["engine"] for row in run.rows] == ["byteweld"]


def test_nothing_is_timed_without_an_answer_to_check_against(bench: Callable[..., Run]) -> None:
    run = bench(train(["byteweld", "absent"], "absent"), "--repeat=1", absent=ABSENT)
    assert "not run: no answer to check against without absent" in run.out
    assert run.rows == []


def test_the_record_only_grows_and_does_not_name_the_machine(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld"], "byteweld")
    first = bench(definitions, "--repeat=1")
    before = [first.file("*.csv").read_text(), first.file("*.md").read_text()]
    second = bench(definitions, "--repeat=1")
    after = [second.file("*.csv").read_text(), second.file("*.md").read_text()]
    for old, new in zip(before, after, strict=True):
        assert new.startswith(old)
        assert len(new) > len(old)
    assert re.fullmatch(r"\w+-\d+cpu", second.file("*.csv").parent.name)


def test_counting_is_checked_against_rustbpe(bench: Callable[..., Run]) -> None:
    pytest.importorskip("rustbpe")
    engines = '["byteweld", "byteweld:iterator", "rustbpe"]'
    run = bench(f'{HEAD}{COUNT}engines = {engines}\ntruth = "rustbpe"\n', "--repeat=1")
    assert run.status == 0, run.err
    assert [(row["engine"], row["ok"]) for row in run.rows] == [
        ("byteweld", "yes"),
        ("byteweld:iterator", "yes"),
        ("rustbpe", "yes"),
    ]
    assert {row["definition"] for row in run.rows} == {"count/tiny-0.01MB/1-thread"}


def test_encoding_is_checked_against_tiktoken(bench: Callable[..., Run], tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    _write_vocab(tmp_path / "shared" / "vocabs", [b"lo", b"low", b"er", b" the", b"the", b"ne"])
    definitions = f'{HEAD}{ENCODE}engines = ["byteweld", "tiktoken"]\ntruth = "tiktoken"\n'
    run = bench(definitions, "--repeat=1")
    assert run.status == 0, run.err
    assert {(row["engine"], row["ok"]) for row in run.rows} == {
        ("byteweld", "yes"),
        ("tiktoken", "yes"),
    }
    names = {row["definition"] for row in run.rows}
    assert {name.split("/")[3] for name in names} == {"documents", "string"}


def _write_vocab(folder: Path, tokens: list[bytes]) -> None:
    every = [bytes([byte]) for byte in range(256)] + tokens
    ranks = b"".join(base64.b64encode(token) + b" %d\n" % n for n, token in enumerate(every))
    entry = {
        "name": "tiny",
        "file": "tiny.tiktoken.gz",
        "sha256": hashlib.sha256(ranks).hexdigest(),
        "pat_str": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    }
    folder.mkdir()
    (folder / "tiny.tiktoken.gz").write_bytes(gzip.compress(ranks))
    (folder / "index.json").write_text(json.dumps({"vocabs": [entry]}))


def test_an_unknown_measure_or_name_is_wrong_use(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld"], "byteweld")
    unknown = bench(definitions, "decode")
    assert unknown.status == 2
    assert "unknown measure 'decode'; known are train" in unknown.err
    nothing = bench(definitions, "--only=nothing like it")
    assert nothing.status == 2
    assert "no definition has 'nothing like it' in its name" in nothing.err


# ---------------------------------------------------------------------- the real definitions


@pytest.fixture
def run_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHES))
    import run  # type: ignore[import-not-found]

    return run


def test_every_engine_of_the_definitions_has_the_function_that_is_measured(
    run_module: ModuleType,
) -> None:
    import tomllib

    definitions = tomllib.loads((BENCHES / "definitions.toml").read_text())
    measures = sorted(set(definitions) - run_module.NOT_MEASURES)
    assert measures == ["count", "encode", "train"]
    tables = list(run_module.expand(definitions, measures, quick=False))
    assert {table["measure"] for table in tables} == set(measures)
    for table in tables:
        assert table["truth"] in table["engines"]
        assert set(table.get("once", ())) <= set(table["engines"])
        assert table["engines"][0] == "byteweld"
        for name in table["engines"]:
            engine = run_module.find_engine(name, [BENCHES / "engines"])
            assert table["measure"] in engine.measures


def test_without_shared_data_python_s_own_sources_stand_in(tmp_path: Path) -> None:
    places = [f"--shared={tmp_path / 'none'}", f"--cache={tmp_path / 'cache'}"]
    done = subprocess.run(
        [sys.executable, str(BENCHES / "run.py"), "train", "--quick", "--list", *places],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines() == [
        f"train/stdlib-1MB/1000/{rule}/{threads}"
        for rule in ("smallest-ids", "huggingface")
        for threads in ("1-thread", "2-threads")
    ]


def test_documents_are_whole_lines_and_hold_no_separator(
    run_module: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text(("é" * 3000 + "\n" + "<|endoftext|>" + "x\n") * 50)
    inputs = run_module.Inputs(
        {"corpora": {"text": {"file": "text.txt"}}}, cache=tmp_path / "cache", shared=tmp_path
    )
    corpus = inputs.corpus("text", 10**6, warm_up=False)
    documents = corpus.path.read_bytes().split(b"<|endoftext|>")
    assert b"".join(documents) == (("é" * 3000 + "\n" + "x\n") * 50).encode()
    assert sum(map(len, documents)) == corpus.text_bytes
    assert all(document.endswith(b"\n") for document in documents)


def test_a_digest_tells_where_one_answer_ends_and_the_next_begins(run_module: ModuleType) -> None:
    import worker  # type: ignore[import-not-found]

    assert worker.digest([b"ab", b"c"]) != worker.digest([b"a", b"bc"])
    assert worker.digest([[1, 2], [3]]) != worker.digest([[1], [2, 3]])
    assert worker.digest([[1, 2], [3]]) == worker.digest(iter([[1, 2], [3]]))
