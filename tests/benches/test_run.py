"""benches/run.py: engines run in turn, a wrong answer has no time, the record only grows."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy
import pytest

import answers
import run as bench_run
import worker

from .conftest import BENCHES, Bench, all_definitions, read_definitions, table

HEAD = 'DISTRIBUTION = "byteweld"\n\n\ndef train(job):\n'
STUBS = {
    # Trains like byteweld, but drops the last token.
    "liar": """
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
""",
    "broken": HEAD + "    raise RuntimeError('no luck today')\n",
    "sleeper": HEAD + "    import time\n    return lambda: time.sleep(600), lambda result: []\n",
    "absent": HEAD.replace("byteweld", "no-such-distribution") + "    import no_such\n",
    "stranger": HEAD + "    return lambda: None, lambda result: [b'something else']\n",
    "unbuilt": """
import subprocess
VERSION, NEEDS = "1", "sh"

def prepare(cache):
    subprocess.run(["sh", "-c", "exit 3"], check=True)

def train(job):
    raise AssertionError("it was never built")
""",
    # Does its work in a child process.
    "parent": HEAD
    + """    import subprocess, sys
    work = "import time; block = bytearray(150_000_000); end = time.process_time() + 0.3\\n"
    work += "while time.process_time() < end: pass"
    return lambda: subprocess.run([sys.executable, "-c", work], check=True), lambda result: [b""]
""",
    # Encodes like tiktoken, but drops the last id.
    "forgetful": """
DISTRIBUTION = "tiktoken"

def list_out(job):
    import tiktoken
    how = {"pat_str": job.pattern, "mergeable_ranks": job.ranks(), "special_tokens": {}}
    encoding = tiktoken.Encoding("x", **how)
    return lambda texts: [encoding.encode_ordinary(text)[:-1] for text in texts], list
""",
}
NAME = "train/tiny-0.01MB/300/smallest-ids/1-thread"


def test_engines_run_in_turn_and_only_right_answers_have_a_time(bench: Bench) -> None:
    engines = "byteweld byteweld:iterator liar broken absent unbuilt stranger".split()
    changes = {"context": ["stranger"], "at_most": {"byteweld:iterator": 1}}
    definitions = table("train", engines, "byteweld:iterator", **changes)
    stubs = {name: source for name, source in STUBS.items() if name in engines}
    run = bench(definitions, "--repeat=2", **stubs)
    assert run.status == 0, run.err  # a peer's mistake is not our failure
    # The engine whose answer is the right one begins, and then another one every time.
    assert ", ".join(map(" ".join, run.turns)) == (
        "byteweld:iterator 1 yes, byteweld 1 yes, liar 1 WRONG, broken 1 error, stranger 1 unlike, "
        "stranger 2 unlike, byteweld 2 yes"
    )
    for words in (
        *("liar 0.1.0: WRONG, not timed", "RuntimeError: no luck today"),
        *("absent not installed: pip install no-such-distribution", "unbuilt could not be built"),
        *("At most 1 run of byteweld:iterator.", "For context only, not compared: stranger.", NAME),
    ):
        assert words in run.out + run.file("*.md").read_text()
    for row in run.rows:
        assert row["definition"] == NAME
        times = [row["wall_seconds"], row["cpu_seconds"], row["peak_rss_bytes"]]
        assert all(times) if row["ok"] in ("yes", "unlike") else times == ["", "", ""]


@pytest.mark.parametrize(
    ("engines", "truth", "arguments", "status", "turns", "words"),
    [
        ("byteweld liar", "liar", "", 1, "liar 1 yes, byteweld 1 WRONG", "WRONG, not timed"),
        ("sleeper", "sleeper", "--timeout=1", 0, "sleeper 1 timeout", "stopped after 1 s"),
        ("byteweld absent", "absent", "", 0, "", "not run: no answer to check against"),
        ("parent", "parent", "", 0, "parent 1 yes", NAME),
    ],
)
def test_the_engine_with_the_right_answer(
    bench: Bench, engines, truth, arguments, status, turns, words
) -> None:
    definitions = table("train", engines.split(), truth)
    run = bench(definitions, *arguments.split(), **{truth: STUBS[truth]})
    assert run.status == status, run.err
    assert ", ".join(map(" ".join, run.turns)) == turns
    assert words in run.out + run.file("*.md").read_text()
    if engines == "parent":  # what an engine starts is measured with it
        assert float(run.rows[0]["cpu_seconds"]) >= 0.3
        assert int(run.rows[0]["peak_rss_bytes"]) >= 150_000_000


def test_a_stored_answer_counts_for_its_own_corpus_only(bench: Bench) -> None:
    definitions = table("train", ["byteweld"], "byteweld")
    [row] = bench(definitions).rows
    for corpus, digest, status in (
        (row["corpus_sha256"][:16], row["digest"], 0),
        (row["corpus_sha256"][:16], "0" * 16, 1),
        ("0" * 16, "0" * 16, 0),
    ):
        answer = f'{{ corpus = "{corpus}", digest = "{digest}" }}'
        stored = f'\n[answers]\n"train/tiny-0.01MB/300/smallest-ids" = {answer}\n'
        assert bench(definitions + stored).status == status


def test_the_record_only_grows_and_does_not_name_the_machine(bench: Bench) -> None:
    definitions = table("train", ["byteweld"], "byteweld")
    first = bench(definitions)
    before = [first.file(name).read_text() for name in ("*.csv", "*.md")]
    second = bench(definitions)
    after = [second.file(name).read_text() for name in ("*.csv", "*.md")]
    assert all(new.startswith(old) and new > old for old, new in zip(before, after, strict=True))
    assert re.fullmatch(r"\w+-\d+cpu", second.file("*.csv").parent.name)


@pytest.mark.parametrize(
    ("definitions", "needs"),
    [
        (table("count", ["byteweld", "byteweld:iterator", "rustbpe"], "rustbpe"), "rustbpe"),
        (
            table("train", ["byteweld", "recount"], "recount", tie_rule="ck", pattern="none"),
            "cargo",
        ),
    ],
    ids=["count", "recount"],
)
def test_our_answers_are_those_of_peers(bench: Bench, definitions, needs) -> None:
    if needs == "cargo" and shutil.which("cargo") is None:
        pytest.skip("cargo is not here to build benches/recount")
    elif needs != "cargo":
        pytest.importorskip(needs)
    run = bench(definitions)
    assert run.status == 0, run.err
    assert {ok for _, _, ok in run.turns} == {"yes"} and len(run.turns) >= 2


# ---------------------------------------------------------------------- encoding


def test_encoding_is_checked_against_tiktoken_and_an_inexact_peer_is_marked_and_never_the_best(
    bench: Bench, tiny_vocab
) -> None:
    passes, shapes = ["first", "warm"], ["documents", "string"]
    keys = {"passes": passes, "shape": shapes, "megabytes": 0.008}
    definitions = table("list_out", ["byteweld", "forgetful"], "tiktoken", **keys)
    target = "list_out/*/*/documents/1-thread"
    definitions += f'[[targets]]\ndefinition = "{target}"\nagainst = "best"\n'
    run = bench(definitions + "faster = { first = 1e-9 }\n", "--targets", **STUBS)
    assert run.status == 0, run.err
    found = {(row["engine"], row["ok"]) for row in run.rows}
    assert found == {("byteweld", "yes"), ("forgetful", "inexact")}
    assert {tuple(row["definition"].split("/")[3:]) for row in run.rows} == {
        (shape, "1-thread", which) for shape in shapes for which in passes
    }
    assert all(row["cpu_seconds"] for row in run.rows) and "(inexact)" in run.out
    assert "Targets: 0 pass, 0 FAIL, 1 not measured" in run.out  # the only other peer is inexact
    # tiktoken is not an engine of this definition: it ran once, and its answer was stored.
    assert "computing the answer with tiktoken" in run.err
    assert "computing the answer with tiktoken" not in bench(definitions).err


def test_a_fresh_process_times_loading_and_encoding(bench: Bench, tiny_vocab) -> None:
    passes = ["load", "encode", "total"]
    engines = ["byteweld", "byteweld:parent", "tiktoken"]
    keys = {"fresh": True, "passes": passes, "megabytes": 0.008}
    definitions = table("array_out", engines, "tiktoken", **keys)
    run = bench(definitions, "--only=fresh", f"--parent={sys.prefix}")
    assert run.status == 0, run.err
    for engine in engines:
        rows = [row for row in run.rows if row["engine"] == engine]
        assert [row["definition"].rpartition("/")[2] for row in rows] == passes
        for clock in ("wall_seconds", "cpu_seconds"):
            load, encode, total = (float(row[clock]) for row in rows)
            assert load > 0 and encode > 0
            assert total == pytest.approx(load + encode, abs=3e-6)
    assert "byteweld:parent not installed: pass --parent VENV" in bench(definitions).out


# ---------------------------------------------------------------------- engines, answers


def test_a_digest_is_of_ids_whatever_holds_them_and_of_tokens_where_each_ends() -> None:
    expected = worker.digest_ids([[1, 2], [70000]])
    for dtype in (numpy.int32, numpy.uint32):
        assert worker.digest_ids([numpy.array([1, 2, 70000], dtype)]) == expected
    assert worker.digest_ids([numpy.array([1, 2, 70000], "uint32").tobytes()]) == expected
    assert worker.digest_ids([[2, 1], [70000]]) != expected
    assert worker.digest_ids(["é"]) == worker.digest_ids(["é".encode()])
    assert worker.digest([b"ab", b"c"]) != worker.digest([b"a", b"bc"])
    assert worker.digest([[1, 2], [3]]) != worker.digest([[1], [2, 3]])


def test_the_key_of_an_answer_covers_all_that_ids_depend_on(tmp_path: Path) -> None:
    kept = answers.Answers(tmp_path)
    job = {"measure": "list_out", "shape": "documents", "rank_file": "a/x.tiktoken", "pattern": "p"}
    kept.store(job, "0" * 64, "tiktoken 1", "digest")
    for change in ({"measure": "array_out", "shape": "batch"}, {"rank_file": "b/x.tiktoken"}):
        assert kept.find(job | change, "0" * 64, "tiktoken 1") == "digest"
    others = [{"shape": "string"}, {"measure": "count_tokens"}, {"pattern": "q"}]
    for change in [*others, {"rank_file": "a/y.tiktoken"}]:
        assert kept.find(job | change, "0" * 64, "tiktoken 1") is None
    assert kept.find(job, "1" * 64, "tiktoken 1") is kept.find(job, "0" * 64, "tiktoken 2") is None


# ---------------------------------------------------------------------- definitions


@pytest.mark.parametrize("name", ["definitions.toml", "encoding.toml"])
def test_every_engine_has_the_functions_that_its_definitions_measure(name: str) -> None:
    engines = [BENCHES / "engines"]
    for one in all_definitions(name):
        names = [*one["engines"], one["truth"]]
        found = [bench_run.find_engine(name, engines) for name in names]
        assert all(one["measure"] in engine.measures for engine in found)
        assert one["truth"] in one["engines"] or one.get("passes")
        assert {*one.get("at_most", ()), *one.get("context", ())} <= set(one["engines"])
        assert one["truth"] not in one.get("context", ())
        assert one["engines"][0] == "byteweld"
        for engine in found if one["fresh"] else ():
            assert hasattr(worker.load_engine(engine.file), "IMPORTS")
    assert set(read_definitions(name)) - bench_run.NOT_MEASURES
