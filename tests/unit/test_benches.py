"""benches/: engines take turns, a wrong answer is caught and has no time, the record only grows."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

import byteweld

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
[[list_out]]
corpus = "tiny"
megabytes = 0.008
vocab = "tiny"
shape = ["documents", "string"]
threads = 1
passes = ["first", "warm"]
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
        ("byteweld:iterator", "2"),  # who begins is another one every time
        ("byteweld", "2"),
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
    assert {tuple(name.split("/")[3:]) for name in names} == {
        (shape, "1-thread", which)
        for shape in ("documents", "string")
        for which in ("first", "warm")
    }


# Encodes as tiktoken does, but for the last id.
FORGETFUL = """
DISTRIBUTION = "tiktoken"


def list_out(job):
    import tiktoken

    encoding = tiktoken.Encoding(
        "x", pat_str=job.pattern, mergeable_ranks=job.ranks(), special_tokens={}
    )
    return lambda texts: [encoding.encode_ordinary(text)[:-1] for text in texts], list
"""


def test_an_inexact_peer_is_timed_and_marked_and_never_the_best(
    bench: Callable[..., Run], tmp_path: Path
) -> None:
    pytest.importorskip("tiktoken")
    _write_vocab(tmp_path / "shared" / "vocabs", [b"lo", b"low", b"er", b" the", b"the", b"ne"])
    encode = ENCODE.replace('["documents", "string"]', '"documents"')
    definitions = f'{HEAD}{encode}engines = ["byteweld", "forgetful"]\ntruth = "tiktoken"\n'
    definitions += """
[[bars]]
definition = "list_out/*/*/documents/1-thread"
against = "best"
faster = { first = 1e-9, warm = 1e-9 }
"""
    run = bench(definitions, "--repeat=1", "--judge", forgetful=FORGETFUL)
    assert run.status == 0, run.err
    found = {(row["engine"], row["ok"], bool(row["cpu_seconds"])) for row in run.rows}
    assert found == {("byteweld", "yes", True), ("forgetful", "inexact", True)}
    assert "(inexact)" in run.out
    assert "Bars: 0 pass, 0 FAIL, 2 not measured" in run.out  # there is no other peer
    # tiktoken is no engine of this definition: it was asked once, and its answer kept.
    again = bench(definitions, "--repeat=1", forgetful=FORGETFUL)
    assert "asking tiktoken" in run.err
    assert "asking tiktoken" not in again.err


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


# ---------------------------------------------------------------------- engines by number and kind


# Learns nothing that ours learns.
STRANGER = """
DISTRIBUTION = "byteweld"


def train(job):
    return lambda: None, lambda result: [b"something else"]
"""

# Works in a process that it starts.
PARENT = """
import subprocess
import sys

DISTRIBUTION = "byteweld"

WORK = "import time; block = bytearray(150_000_000); end = time.process_time() + 0.3\\n"
WORK += "while time.process_time() < end: pass"


def train(job):
    return lambda: subprocess.run([sys.executable, "-c", WORK], check=True), lambda result: [b""]
"""

UNBUILT = """
import subprocess

VERSION = "1"
NEEDS = "sh"


def prepare(cache):
    subprocess.run(["sh", "-c", "exit 3"], check=True)


def train(job):
    raise AssertionError("it was never built")
"""


def test_a_slow_engine_runs_at_most_as_often_as_its_definition_says(
    bench: Callable[..., Run],
) -> None:
    definitions = train(["byteweld", "byteweld:iterator"], "byteweld")
    run = bench(definitions + 'at_most = { "byteweld:iterator" = 2 }\n', "--repeat=3")
    turns = [(row["engine"], row["run"]) for row in run.rows]
    assert turns.count(("byteweld:iterator", "2")) == 1
    assert [engine for engine, _ in turns].count("byteweld:iterator") == 2
    assert [engine for engine, _ in turns].count("byteweld") == 3
    assert "At most 2 runs of byteweld:iterator." in run.file("*.md").read_text()


def test_an_engine_for_context_is_timed_and_not_compared(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld", "stranger"], "byteweld")
    run = bench(definitions + 'context = ["stranger"]\n', "--repeat=2", stranger=STRANGER)
    strange = [row for row in run.rows if row["engine"] == "stranger"]
    assert [row["ok"] for row in strange] == ["unlike", "unlike"]
    assert all(row["wall_seconds"] for row in strange)
    assert "WRONG" not in run.out
    assert "For context only, not compared: stranger." in run.file("*.md").read_text()


def test_processes_that_an_engine_starts_are_measured_with_it(bench: Callable[..., Run]) -> None:
    run = bench(train(["parent"], "parent"), "--repeat=1", parent=PARENT)
    [row] = run.rows
    assert float(row["cpu_seconds"]) >= 0.3
    assert int(row["peak_rss_bytes"]) >= 150_000_000


def test_an_engine_that_cannot_be_built_is_missing(bench: Callable[..., Run]) -> None:
    run = bench(train(["byteweld", "unbuilt"], "byteweld"), "--repeat=1", unbuilt=UNBUILT)
    assert "unbuilt could not be built" in run.out
    assert [row["engine"] for row in run.rows] == ["byteweld"]


def test_the_recounting_baseline_learns_what_ours_learns(bench: Callable[..., Run]) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not here to build benches/recount")
    definitions = train(["byteweld", "recount"], "recount").replace("smallest-ids", "ck")
    run = bench(definitions + 'pattern = "none"\n', "--repeat=1")
    assert run.status == 0, run.err
    assert {row["engine"]: row["ok"] for row in run.rows} == {"byteweld": "yes", "recount": "yes"}
    assert {row["definition"] for row in run.rows} == {"train/tiny-0.01MB/300/ck/none/1-thread"}


# ---------------------------------------------------------------------- patterns


def test_a_definition_may_have_its_own_pattern(bench: Callable[..., Run]) -> None:
    head = HEAD + "\n[patterns]\nletters = '[a-z]|[^a-z]+'\n"
    table = COUNT + 'engines = ["byteweld"]\ntruth = "byteweld"\n'
    run = bench(head + table + 'pattern = ["gpt2", "letters", "none"]\n', "--repeat=1")
    assert run.status == 0, run.err
    digests = {row["definition"]: row["digest"] for row in run.rows}
    assert list(digests) == [
        "count/tiny-0.01MB/1-thread",
        "count/tiny-0.01MB/letters/1-thread",
        "count/tiny-0.01MB/none/1-thread",
    ]
    assert len(set(digests.values())) == 3  # how many pre-tokens are distinct


def test_an_unknown_pattern_is_wrong_use(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld"], "byteweld") + 'pattern = "gtp2"\n'
    run = bench(definitions)
    assert run.status == 2
    assert "unknown pattern 'gtp2'" in run.err


# ---------------------------------------------------------------------- bars

NAME = "train/tiny-0.01MB/300/smallest-ids/1-thread"


def bar(**keys: object) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n[[bars]]\n" + "\n".join([f'definition = "{NAME}"', *lines]) + "\n"


def test_bars_are_judged_and_do_not_change_the_exit_status(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld", "byteweld:iterator"], "byteweld")
    definitions += bar(against="byteweld:iterator", faster=1e-6, memory=1e-6)
    definitions += bar(seconds=1e-9, mebibytes=1e9)
    definitions += bar(against="rustbpe", faster=1)
    run = bench(definitions, "--repeat=1", "--judge")
    assert run.status == 0
    assert "Bars: 2 pass, 2 FAIL, 1 not measured" in run.out
    judged = [line for line in run.file("*.md").read_text().splitlines() if NAME in line]
    ends = [line.rsplit("|", 2)[1].strip() for line in judged if line.count("|") == 5]
    assert ends == ["pass", "FAIL", "FAIL", "pass", "not measured"]


def test_a_bar_may_compare_two_definitions(judge_module: ModuleType) -> None:
    bars = judge_module.read_bars(
        {
            "bars": [
                {"definition": "two", "against_definition": "one", "faster": 1.6},
                {"definition": "two", "against_definition": "one", "memory": 1.2},
            ]
        }
    )
    figures = {("one", "byteweld"): line(3.2, 100), ("two", "byteweld"): line(2.0, 121)}
    speed, memory = judge_module.judge(bars, figures)
    assert speed.passed is True
    assert speed.found == "×1.60 (2 s, 3.2 s)"
    assert memory.passed is False
    assert memory.found == "×1.21 (121 MiB, 100 MiB)"
    assert [j.passed for j in judge_module.judge(bars, {})] == [None, None]


def test_the_best_peer_is_the_fastest_that_is_exact(judge_module: ModuleType) -> None:
    import dataclasses

    asked = {"definition": ["a/*/x"], "against": "best", "faster": {"first": 1.3, "warm": 2}}
    bars = judge_module.read_bars({"bars": [asked | {"unit": "MB/s", "row": "arrays"}]})
    quick: Any = line(1.0, 10)
    figures = {
        ("a/prose/x/first", "byteweld"): line(2.0, 10),
        ("a/prose/x/first", "byteweld:other"): line(0.1, 10),
        ("a/prose/x/first", "slow"): dataclasses.replace(quick, engine="slow", median=9.0),
        ("a/prose/x/first", "quick"): dataclasses.replace(quick, engine="quick", median=3.0),
        ("a/prose/x/first", "liar"): dataclasses.replace(quick, engine="liar", mark="inexact"),
        ("a/prose/own/x/first", "byteweld"): line(2.0, 10),  # a star is one part of a name
        ("b/prose/x/first", "byteweld"): line(2.0, 10),
    }
    first, warm = judge_module.judge(bars, figures)
    assert first.what == "a/prose/x/first"
    assert first.asked == "at least ×1.3 of quick"
    assert first.found.startswith("×1.50 (")
    assert (first.passed, first.row) == (True, "arrays")
    assert (warm.what, warm.passed) == ("a/*/x/warm", None)
    shown = judge_module.plain_judgements([first, warm])
    assert "arrays: 1 pass, 0 FAIL, 1 not measured" in shown
    assert "a/*/x/warm" not in shown
    assert "a/*/x/warm" in judge_module.markdown_judgements([first, warm])


def test_a_star_stands_for_the_same_in_the_definition_compared_with(
    judge_module: ModuleType,
) -> None:
    asked = {
        "definition": "array/*/*/2-threads",
        "against_definition": "array/*/*/1-thread",
        "clock": "wall",
        "faster": {"first": 1.6},
    }
    bars = judge_module.read_bars({"bars": [asked]})
    figures = {
        (f"array/{text}/cl100k/{threads}/first", "byteweld"): line(seconds, 1)
        for text, threads, seconds in [
            ("prose", "2-threads", 1.0),
            ("prose", "1-thread", 1.7),
            ("code", "2-threads", 1.0),
            ("code", "1-thread", 1.5),
        ]
    }
    judged = {j.what: j.passed for j in judge_module.judge(bars, figures)}
    assert judged == {
        "array/prose/cl100k/2-threads/first": True,
        "array/code/cl100k/2-threads/first": False,
    }


def test_a_bar_may_limit_nanoseconds_a_byte(judge_module: ModuleType) -> None:
    bars = judge_module.read_bars(
        {
            "bars": [
                {"definition": "a", "nanoseconds": 999},
                {"definition": "a", "nanoseconds": 1001},
            ]
        }
    )
    figures = {("a", "byteweld"): line(1.0, 1)}  # 1 MB/s
    assert [j.passed for j in judge_module.judge(bars, figures)] == [False, True]
    assert [j.passed for j in judge_module.judge(bars, {})] == [None, None]


def test_a_bar_without_a_limit_or_a_measure_is_refused(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld"], "byteweld")
    nothing = bench(definitions + bar(against="gigatoken"))
    assert nothing.status == 2
    assert "asks for nothing" in nothing.err
    nowhere = bench(definitions + bar(faster=2))
    assert nowhere.status == 2
    assert "does not say against what" in nowhere.err


def line(median: float, mebibytes: float) -> object:
    import recording  # type: ignore[import-not-found]

    return recording.Line(
        engine="byteweld",
        version="0",
        runs=1,
        median=median,
        best=median,
        wall=median,
        cpu=median,
        megabytes_per_second=1.0,
        peak_rss_bytes=int(mebibytes * 2**20),
        median_ratio=1.0,
        best_ratio=1.0,
    )


@pytest.fixture
def judge_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHES))
    import judge  # type: ignore[import-not-found]

    return judge


def test_every_bar_names_a_definition_and_an_engine_that_are_there(
    run_module: ModuleType, judge_module: ModuleType
) -> None:
    import tomllib

    definitions = tomllib.loads((BENCHES / "definitions.toml").read_text())
    known = {
        (table["label"], engine)
        for table in run_module.expand(definitions, ["count", "train"], quick=False)
        for engine in table["engines"]
    }
    bars = judge_module.read_bars(definitions)
    assert len(bars) > 20
    for asked in bars:
        assert asked.ours in known
        if asked.faster is not None or asked.memory is not None:
            assert asked.other in known


def test_every_bar_of_encoding_fits_definitions_that_are_there(
    run_module: ModuleType, judge_module: ModuleType
) -> None:
    definitions = read_definitions("encoding.toml")
    measures = set(definitions) - run_module.NOT_MEASURES
    figures = {
        (f"{table['label']}/{which}", engine): line(1.0, 1)
        for table in run_module.expand(definitions, sorted(measures), quick=False)
        for which in table["passes"]
        for engine in table["engines"]
    }
    judged = judge_module.judge(judge_module.read_bars(definitions), figures)
    # A file has no counterpart of gigatoken's where it refuses the pattern; all else is compared.
    assert [j.what for j in judged if j.passed is None and j.row != "peak memory"] == []
    assert len({j.row for j in judged}) >= 17


def test_a_record_is_read_by_the_last_run_of_each_definition(
    judge_module: ModuleType, tmp_path: Path
) -> None:
    import recording

    machine = dict.fromkeys(["commit", "cpu", "python", "rustc"], "")

    def write(name: str, *rows: tuple[str, str, str, float, str]) -> Path:
        file = tmp_path / name
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, recording.Record.COLUMNS)
            writer.writeheader()
            for date, definition, engine, seconds, ok in rows:
                facts = {"version": "1", "corpus_sha256": "", "digest": "", "ok": ok}
                numbers = {"text_bytes": 1, "threads": 1, "run": 1, "cpu_seconds": seconds}
                times = {"wall_seconds": seconds, "peak_rss_bytes": 1 << 20}
                names = {"date": date, "definition": definition, "engine": engine}
                writer.writerow(machine | facts | numbers | times | names)
        return file

    write("2026-01-01.csv", ("1", "a", "byteweld", 9.0, "yes"), ("1", "b", "byteweld", 5.0, "yes"))
    newest = write(
        "2026-01-02.csv",
        ("2", "a", "byteweld", 8.0, "yes"),
        ("3", "a", "byteweld", 2.0, "yes"),
        ("3", "a", "byteweld", 4.0, "yes"),
        ("3", "a", "liar", 1.0, "yes"),
        ("3", "a", "liar", 1.0, "WRONG"),
        ("3", "a", "stranger", 1.0, "unlike"),
    )
    figures = judge_module.figures_of(newest, {})
    assert {key: found.median for key, found in figures.items()} == {
        ("a", "byteweld"): 3.0,
        ("a", "stranger"): 1.0,
        ("b", "byteweld"): 5.0,
    }


# ---------------------------------------------------------------------- corpora


def test_the_mixed_corpus_is_not_run_where_it_cannot_be_made(
    bench: Callable[..., Run], tmp_path: Path
) -> None:
    head = HEAD.replace("tiny =", "large = { big = 1000 }\ntiny =")
    table = TRAIN.replace('"tiny"', '["large", "tiny"]').replace("0.01", "20")
    definitions = f'{head}{table}engines = ["byteweld"]\ntruth = "byteweld"\n'
    run = bench(definitions, "--repeat=1")
    assert "train/large-20MB/300/smallest-ids/1-thread: not run: the mixed corpus needs" in run.out
    assert "make_big_corpus.py, which is not there; pass --mixed FOLDER" in run.out
    assert {row["definition"].split("/")[1] for row in run.rows} == {"tiny-0.011MB"}
    assert "not run: the mixed corpus needs" in run.file("*.md").read_text()
    # One that was made is used, all its shards in order.
    made = tmp_path / "made"
    made.mkdir()
    shards = []
    for number in range(2):
        data = f"shard {number}\n".encode() * 1_300_000
        (made / f"big-{number}.txt").write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        shards.append({"file": f"big-{number}.txt", "sha256": digest})
    (made / "MANIFEST.json").write_text(json.dumps({"shards": shards}))
    run = bench(definitions, "--repeat=1", f"--mixed={made}", "--only=large")
    assert run.status == 0, run.err
    prepared = next((tmp_path / "cache").glob("large-*[0-9a-f].txt")).read_bytes()
    text = prepared.replace(b"<|endoftext|>", b"")
    assert text == b"".join((made / f"big-{n}.txt").read_bytes() for n in range(2))[: len(text)]
    assert len(text) > 19_999_000


def test_a_tenfold_corpus_has_ten_times_each_document(
    run_module: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text("one\n<|endoftext|>two\n" + "three four\n" * 1000)
    corpora = {"text": {"file": "text.txt"}, "ten": {"corpus": "text", "times": 10}}
    inputs = run_module.Inputs({"corpora": corpora}, cache=tmp_path / "cache", shared=tmp_path)
    once = inputs.corpus("text", 10**6, warm_up=False)
    ten = inputs.corpus("ten", 10**7, warm_up=False)
    documents = once.path.read_bytes().split(b"<|endoftext|>")
    assert len(documents) > 3
    assert ten.path.read_bytes().split(b"<|endoftext|>") == documents * 10
    assert ten.text_bytes == once.text_bytes * 10


def test_a_corpus_is_the_same_whether_it_comes_in_blocks_or_whole(
    run_module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sources  # type: ignore[import-not-found]

    text = ("é" * 900 + "\n" + "word " * 300 + "\n<|endoftext|>\n" + "x\n" * 30).encode() * 40
    (tmp_path / "text.txt").write_bytes(text[:-1] + b"\xff\xc3 no newline")
    found = set()
    for block in (7, 1000, 1 << 22):
        monkeypatch.setattr(sources, "_BLOCK_BYTES", block)
        inputs = run_module.Inputs(
            {"corpora": {"text": {"file": "text.txt"}}},
            cache=tmp_path / f"cache-{block}",
            shared=tmp_path,
        )
        corpus = inputs.corpus("text", 70_001, warm_up=False)
        found.add((corpus.sha256, corpus.text_bytes))
    assert len(found) == 1


@pytest.fixture
def story_text(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The first megabyte of the stories."""
    monkeypatch.syspath_prepend(str(BENCHES))
    import stories  # type: ignore[import-not-found]

    return bytes(next(stories.stories())[:1_000_000])


def test_stories_are_the_same_bytes_on_every_machine(story_text: bytes) -> None:
    assert hashlib.sha256(story_text).hexdigest() == (
        "54463ac89ad472309fd1257b6e5d8aa7f1b8a3585be7abbb4a7a384237cef13f"
    )


def test_no_story_is_told_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHES))
    import stories

    text = b"".join(itertools.islice(stories.stories(), 2))
    documents = text.split(b"<|endoftext|>")
    assert len(documents) == len(set(documents)) == 8000
    assert all(document.endswith(b"\n") and len(document) > 100 for document in documents)
    text.decode("ascii")
    other = next(stories.stories(seed=12)).split(b"<|endoftext|>")
    assert not set(documents) & set(other)


def test_stories_never_run_out_of_new_words(story_text: bytes) -> None:
    distinct = [
        len(byteweld.count(iter([story_text[:size]]), recipe="rustbpe"))
        for size in (125_000, 250_000, 500_000, 1_000_000)
    ]
    assert distinct[-1] > 10_000
    growth = [later / earlier for earlier, later in itertools.pairwise(distinct)]
    assert all(1.3 < factor < 2 for factor in growth), distinct


def test_drawings_are_svg_and_the_same_bytes_on_every_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCHES))
    import drawings  # type: ignore[import-not-found]

    text = b"".join(itertools.islice(drawings.drawings(), 300))
    documents = text.split(b"<|endoftext|>")
    assert len(set(documents)) == 300
    for document in documents:
        assert ElementTree.fromstring(document).tag == "{http://www.w3.org/2000/svg}svg"
    assert hashlib.sha256(text).hexdigest() == (
        "bd430e9cd2c6b75a9da9d58a5810ee013904da1469b46449264a9877f7c17571"
    )


# ---------------------------------------------------------------------- cost curves


@pytest.fixture
def curves_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHES))
    import curves  # type: ignore[import-not-found]

    return curves


def recorded_costs(curves: ModuleType) -> dict[str, list[dict[str, str]]]:
    """What a record of all points would hold, with seconds that can be foretold."""
    rows: dict[str, list[dict[str, str]]] = {}
    for corpus, megabytes in curves.CORPORA:
        for size in curves.SIZES:
            name = f"train/{corpus}-{megabytes}MB/{size}/smallest-ids/2-threads"
            seconds = megabytes / 100 + size / 100_000
            row = {"engine": "byteweld", "cpu": "a processor", "wall_seconds": str(seconds)}
            rows[name] = [row | {"peak_rss_bytes": str(megabytes << 20)}]
    return rows


def test_the_cost_curves_table_has_every_point(curves_module: ModuleType) -> None:
    lines = curves_module.page_part(recorded_costs(curves_module), "the-record.md")
    assert "| 100 MB mixed | 1.01 s, 100 MiB | 1.32 s, 100 MiB | 2.28 s, 100 MiB |" in lines
    assert "| 2 GB stories | 20.01 s, 2000 MiB | 20.32 s, 2000 MiB | 21.28 s, 2000 MiB |" in lines
    assert len([line for line in lines if line.startswith("|")]) == 2 + len(curves_module.CORPORA)


def test_the_plot_has_a_point_for_every_training_and_labels_apart(
    curves_module: ModuleType,
) -> None:
    costs = curves_module.all_costs(recorded_costs(curves_module))
    root = ElementTree.fromstring(curves_module.plot(costs))
    svg = "{http://www.w3.org/2000/svg}"
    assert len(list(root.iter(f"{svg}circle"))) == 2 * len(costs)
    labels = [text for text in root.iter(f"{svg}text") if "label" in text.get("class", "")]
    assert sorted(text.text or "" for text in labels) == sorted(["1,000", "32,000", "128,000"] * 2)
    places = sorted((text.get("x"), float(text.get("y", "0"))) for text in labels)
    for (x, y), (next_x, next_y) in itertools.pairwise(places):
        assert x != next_x or next_y - y >= 15
    for element in root.iter():
        for axis, limit in (("x", 860), ("y", 380), ("cx", 860), ("cy", 380)):
            assert 0 <= float(element.get(axis, "0")) <= limit


def test_the_page_has_one_place_for_the_curves(curves_module: ModuleType) -> None:
    page = curves_module.PAGE.read_text()
    assert page.count(curves_module.START) == page.count(curves_module.END) == 1
    assert page.index(curves_module.START) < page.index(curves_module.END)


def test_a_plot_of_few_points_is_drawn_too(curves_module: ModuleType) -> None:
    costs = {("mixed", 100, 1000): curves_module.Cost(1.0, 30.0)}
    root = ElementTree.fromstring(curves_module.plot(costs))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 2


# ---------------------------------------------------------------------- the real definitions


@pytest.fixture
def run_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHES))
    import run  # type: ignore[import-not-found]

    return run


def read_definitions(name: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads((BENCHES / name).read_text())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("definitions.toml", "count train"),
        (
            "encoding.toml",
            "array_out count_tokens decode_array decode_list files_out list_out "
            "load_json load_ranks",
        ),
    ],
)
def test_every_engine_of_the_definitions_has_the_function_that_is_measured(
    run_module: ModuleType, name: str, expected: str
) -> None:
    definitions = read_definitions(name)
    measures = sorted(set(definitions) - run_module.NOT_MEASURES)
    assert measures == expected.split()
    tables = list(run_module.expand(definitions, measures, quick=False))
    assert {table["measure"] for table in tables} == set(measures)
    for table in tables:
        truth = run_module.find_engine(table["truth"], [BENCHES / "engines"])
        assert table["measure"] in truth.measures
        assert table["truth"] in table["engines"] or table.get("passes")
        assert set(table.get("at_most", ())) <= set(table["engines"])
        assert set(table.get("context", ())) <= set(table["engines"]) - {table["truth"]}
        assert table["engines"][0] == "byteweld"
        for name in table["engines"]:
            engine = run_module.find_engine(name, [BENCHES / "engines"])
            assert table["measure"] in engine.measures


def test_the_quick_form_of_encoding_is_a_handful_of_definitions(run_module: ModuleType) -> None:
    definitions = read_definitions("encoding.toml")
    tables = list(run_module.expand(definitions, ["array_out", "list_out"], quick=True))
    assert {table["label"] for table in tables} == {
        f"{measure}/{corpus}-10MB/cl100k_base/documents/1-thread"
        for measure in ("array_out", "list_out")
        for corpus in ("prose", "code", "multi")
    }
    for table in tables:
        assert table["engines"] == ["byteweld", "gigatoken", "fastokens"]
        assert table["repeat"] == 3


def test_an_engine_runs_where_it_is_installed(run_module: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "python3.11" / "site-packages" / "gigatoken-9.9.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: gigatoken\nVersion: 9.9\n")
    there = run_module.find_engine("gigatoken", [BENCHES / "engines"], tmp_path)
    assert (there.version, there.python) == ("9.9", str(tmp_path / "bin" / "python"))
    ours = run_module.find_engine("byteweld", [BENCHES / "engines"], tmp_path)
    assert ours.python == sys.executable


def test_short_strings_cover_a_text_in_order(run_module: ModuleType) -> None:
    import worker

    text = "".join(chr(0x4E00 + n) for n in range(5000))
    strings = worker.short_strings(text)
    assert len(strings) == worker.SHORT_STRINGS
    assert {len(string) for string in strings} == set(range(1, 101))
    assert "".join(strings).startswith(text * 100)
    assert worker.short_strings(text) == strings
    assert worker.short_strings("") == []


def test_lines_of_a_script_are_those_with_more_of_it_than_of_all_else(
    run_module: ModuleType,
) -> None:
    import sources  # type: ignore[import-not-found]

    lines = ["plain", "日本語 a", "日本 abcd", "", "ภาษาไทย", "ひらがな", "中文"]
    data = "\n".join([*lines, ""]).encode()
    cut = [data[n : n + 5] for n in range(0, len(data), 5)]  # in the middle of characters
    whole = sources.Source("text", "1", lambda: iter(cut))
    found = sources.lines_of_scripts(whole, ["Chinese", "Japanese"])
    assert b"".join(found.head(10**6)).decode() == "日本語 a\nひらがな\n中文\n"
    assert found.identity != whole.identity


def test_ids_have_one_digest_in_whatever_they_come(run_module: ModuleType) -> None:
    import numpy
    import worker

    expected = worker.digest_ids([[1, 2], [70000]])
    assert worker.digest_ids([numpy.array([1, 2, 70000], dtype=numpy.int32)]) == expected
    assert worker.digest_ids([numpy.array([1, 2, 70000], dtype=numpy.uint32).tobytes()]) == expected
    assert worker.digest_ids([[2, 1], [70000]]) != expected
    assert worker.digest_ids(["é"]) == worker.digest_ids(["é".encode()])


def test_a_right_answer_is_known_by_all_that_ids_depend_on(
    run_module: ModuleType, tmp_path: Path
) -> None:
    import answers  # type: ignore[import-not-found]

    kept = answers.Answers(tmp_path)
    job = {"measure": "list_out", "shape": "documents", "rank_file": "a/x.tiktoken", "pattern": "p"}
    kept.keep(job, "0" * 64, "tiktoken 1", "digest")
    alike = [job | {"measure": "array_out", "shape": "batch"}, job | {"rank_file": "b/x.tiktoken"}]
    assert {kept.find(other, "0" * 64, "tiktoken 1") for other in alike} == {"digest"}
    others = [
        job | {"shape": "string"},
        job | {"measure": "count_tokens"},
        job | {"pattern": "q"},
        job | {"rank_file": "a/y.tiktoken"},
    ]
    assert {kept.find(other, "0" * 64, "tiktoken 1") for other in others} == {None}
    assert kept.find(job, "1" * 64, "tiktoken 1") is None
    assert kept.find(job, "0" * 64, "tiktoken 2") is None


def test_the_chart_has_a_bar_for_every_speed_that_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCHES))
    import speeds  # type: ignore[import-not-found]

    def row(engine: str, seconds: str, ok: str = "yes") -> dict[str, str]:
        return {"engine": engine, "cpu_seconds": seconds, "text_bytes": "10000000", "ok": ok}

    rows = {
        speeds.definition("prose-10MB", "first"): [
            row("byteweld", "0.1"),
            row("byteweld", "0.05"),
            row("byteweld", "0.02"),
            row("gigatoken", "0.1"),
            row("tiktoken", "0.001", "inexact"),
        ],
        speeds.definition("zh-ja-3MB", "warm"): [row("byteweld", "1.0")],
    }
    found = speeds.all_speeds(rows)
    assert found == {
        ("English books", "first", "byteweld"): pytest.approx(200),
        ("English books", "first", "gigatoken"): pytest.approx(100),
        ("Chinese, Japanese", "warm", "byteweld"): pytest.approx(10),
    }
    tree = ElementTree.fromstring(speeds.chart(found))
    space = "{http://www.w3.org/2000/svg}"
    widths = [float(bar.attrib["width"]) for bar in tree.iter(f"{space}rect")]
    assert len(widths) == len(speeds.ENGINES) + len(found)
    longest, half, shortest = widths[len(speeds.ENGINES) :]
    assert longest == pytest.approx(2 * half, abs=0.2)
    assert longest == pytest.approx(20 * shortest, abs=2)
    shown = {text.text for text in tree.iter(f"{space}text")}
    assert {"200", "100", "10", "English books", "Chinese, Japanese"} <= shown


def test_without_shared_data_python_s_own_sources_stand_in(tmp_path: Path) -> None:
    places = [f"--shared={tmp_path / 'none'}", f"--cache={tmp_path / 'cache'}"]
    done = subprocess.run(
        [sys.executable, str(BENCHES / "run.py"), "train", "--quick", "--list", *places],
        capture_output=True,
        text=True,
        timeout=120,
    )
    names = set(done.stdout.splitlines())
    assert {
        "train/stdlib-1MB/1000/smallest-ids/1-thread",
        "train/stdlib-1MB/1000/smallest-ids/2-threads",
        "train/stdlib-1MB/1000/huggingface/2-threads",
    } <= names
    # What is generated needs no stand-in; nothing else is left of the shared corpora.
    assert {name.split("/")[1] for name in names} == {
        *("stdlib-1MB", "stories-1MB", "drawings-1MB"),
    }
    assert not any((tmp_path / "cache").iterdir())  # a list costs nothing


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
