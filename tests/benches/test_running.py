"""benches/run.py: engines are interleaved, a wrong answer has no time, the record only grows."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

import answers
import run as bench_run
import worker
from tests.helpers.bench_runs import BENCHES, COUNT, HEAD, Run, read_definitions, train

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


# Trains like byteweld, but drops the last token.
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


# Encodes like tiktoken, but drops the last id.
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
[[targets]]
definition = "list_out/*/*/documents/1-thread"
against = "best"
faster = { first = 1e-9, warm = 1e-9 }
"""
    run = bench(definitions, "--repeat=1", "--targets", forgetful=FORGETFUL)
    assert run.status == 0, run.err
    found = {(row["engine"], row["ok"], bool(row["cpu_seconds"])) for row in run.rows}
    assert found == {("byteweld", "yes", True), ("forgetful", "inexact", True)}
    assert "(inexact)" in run.out
    assert "Targets: 0 pass, 0 FAIL, 2 not measured" in run.out  # the only other peer is inexact
    # tiktoken is not an engine of this definition: it ran once, and its answer was stored.
    again = bench(definitions, "--repeat=1", forgetful=FORGETFUL)
    assert "computing the answer with tiktoken" in run.err
    assert "computing the answer with tiktoken" not in again.err


def _write_vocab(
    folder: Path, tokens: list[bytes], special_tokens: dict[str, int] | None = None
) -> None:
    every = [bytes([byte]) for byte in range(256)] + tokens
    ranks = b"".join(base64.b64encode(token) + b" %d\n" % n for n, token in enumerate(every))
    entry = {
        "name": "tiny",
        "file": "tiny.tiktoken.gz",
        "sha256": hashlib.sha256(ranks).hexdigest(),
        "pat_str": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        "special_tokens": special_tokens or {},
    }
    folder.mkdir()
    (folder / "tiny.tiktoken.gz").write_bytes(gzip.compress(ranks))
    (folder / "index.json").write_text(json.dumps({"vocabs": [entry]}))


# ---------------------------------------------------------------------- new processes


FRESH = """
[[array_out]]
corpus = "tiny"
megabytes = 0.008
vocab = "tiny"
shape = "documents"
threads = 1
fresh = true
passes = ["load", "encode", "total"]
clock = "cpu"
about = "A tiny corpus."
engines = ["byteweld", "byteweld:parent", "tiktoken"]
truth = "tiktoken"
"""


FIRST_IDS = """
[[first_ids]]
corpus = "tiny"
megabytes = 0.008
vocab = "tiny"
threads = 1
passes = ["start"]
clock = "cpu"
about = "A line."
engines = ["byteweld", "tiktoken"]
truth = "tiktoken"
"""


SAFE = """
[[encode]]
corpus = "tiny"
megabytes = 0.008
vocab = "tiny"
shape = "short"
threads = 1
passes = ["first"]
clock = "cpu"
about = "Short strings."
engines = ["byteweld", "tiktoken"]
truth = "tiktoken"
"""


def test_a_fresh_process_times_loading_and_encoding(
    bench: Callable[..., Run], tmp_path: Path
) -> None:
    pytest.importorskip("tiktoken")
    _write_vocab(tmp_path / "shared" / "vocabs", [b"lo", b"low", b"er", b" the", b"the", b"ne"])
    run = bench(HEAD + FRESH, "--repeat=1", "--only=fresh", f"--parent={sys.prefix}")
    assert run.status == 0, run.err
    name = "array_out/tiny-0.008MB/tiny/documents/fresh/1-thread"
    assert {row["definition"] for row in run.rows} == {
        f"{name}/{which}" for which in ("load", "encode", "total")
    }
    for engine in ("byteweld", "byteweld:parent", "tiktoken"):
        rows = {row["definition"]: row for row in run.rows if row["engine"] == engine}
        assert {row["ok"] for row in rows.values()} == {"yes"}
        for clock in ("wall_seconds", "cpu_seconds"):
            load, encode, total = (
                float(rows[f"{name}/{which}"][clock]) for which in ("load", "encode", "total")
            )
            assert load > 0
            assert encode > 0
            assert total == pytest.approx(load + encode, abs=3e-6)


def test_the_parent_runs_where_it_is_installed(bench: Callable[..., Run], tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    _write_vocab(tmp_path / "shared" / "vocabs", [b"lo", b"low"])
    run = bench(HEAD + FRESH, "--repeat=1")
    assert "byteweld:parent not installed: pass --parent VENV" in run.out
    assert {row["engine"] for row in run.rows} == {"byteweld", "tiktoken"}

    folder = tmp_path / "clone" / ".venv" / "lib" / "python3.11" / "site-packages"
    (folder / "byteweld-9.9.dist-info").mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: byteweld\nVersion: 9.9\n"
    (folder / "byteweld-9.9.dist-info" / "METADATA").write_text(metadata)
    parent = tmp_path / "clone" / ".venv"
    engine = bench_run.find_engine("byteweld:parent", [BENCHES / "engines"], None, parent)
    assert (engine.version, engine.python) == ("9.9 at unknown", str(parent / "bin" / "python"))
    assert engine.variant == "parent"


def test_a_fresh_engine_imports_its_libraries_before_the_clock_starts(tmp_path: Path) -> None:
    code = """
import importlib, sys
import worker

engine = worker.load_engine(worker.Path(sys.argv[1]))
for name in engine.IMPORTS:
    importlib.import_module(name)
before = {name.partition(".")[0] for name in sys.modules}
job = worker.Job(variant=None, shape="documents", threads=1, pattern=None, rank_file=sys.argv[2])
call, answer = engine.array_out(job)
call(["a"])
print({name.partition(".")[0] for name in sys.modules} - before - sys.stdlib_module_names)
"""
    engine = str(BENCHES / "engines" / "byteweld.py")
    done = subprocess.run(
        [sys.executable, "-c", code, engine, _byte_ranks(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(BENCHES)},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")


def _byte_ranks(folder: Path) -> str:
    """A rank file with a token for every byte."""
    lines = [base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256)]
    (folder / "bytes.tiktoken").write_bytes(b"".join(lines))
    return str(folder / "bytes.tiktoken")


def test_first_ids_are_those_of_a_bare_interpreter(
    bench: Callable[..., Run], tmp_path: Path
) -> None:
    pytest.importorskip("tiktoken")
    _write_vocab(tmp_path / "shared" / "vocabs", [b"lo", b"low", b"er", b" the", b"the", b"ne"])
    run = bench(HEAD + FIRST_IDS, "--repeat=1")
    assert run.status == 0, run.err
    assert {(row["engine"], row["ok"]) for row in run.rows} == {
        ("byteweld", "yes"),
        ("tiktoken", "yes"),
    }
    assert {row["definition"] for row in run.rows} == {"first_ids/tiny-0.008MB/tiny/1-thread/start"}
    # The first run filled the cache.
    assert list((tmp_path / "cache" / "compiled-best").glob("*.byteweld"))
    # What first_ids.py needs is imported after the clock has stopped.
    stub = tmp_path / "stub.py"
    stub.write_text(
        "import sys\n\n\ndef first_ids(job):\n"
        "    return lambda: None, lambda _: [[name in sys.modules for name in job.names]]\n"
    )
    names = ["json", "re", "pathlib", "types", "enum", "typing", "importlib.util"]
    done = subprocess.run(
        [sys.executable, "-I", str(BENCHES / "first_ids.py"), str(stub), repr({"names": names})],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["digest"] == worker.digest_ids([[0] * len(names)])


def test_an_engine_that_fails_to_start_says_why(bench: Callable[..., Run], tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    _write_vocab(tmp_path / "shared" / "vocabs", [b"lo"])
    definitions = (HEAD + FIRST_IDS).replace('["byteweld", "tiktoken"]', '["byteweld", "broken"]')
    run = bench(definitions, "--repeat=1", broken=BROKEN.replace("train", "first_ids"))
    assert "RuntimeError: no luck today" in run.out
    assert {row["engine"]: row["ok"] for row in run.rows} == {"byteweld": "yes", "broken": "error"}


def test_short_strings_are_encoded_with_the_safety_check(
    bench: Callable[..., Run], tmp_path: Path
) -> None:
    pytest.importorskip("tiktoken")
    vocabs = tmp_path / "shared" / "vocabs"
    _write_vocab(vocabs, [b"lo", b"low"], {"<|end|>": 300})
    run = bench(HEAD + SAFE, "--repeat=1")
    assert {row["ok"] for row in run.rows} == {"yes"}, run.out
    # A special token in the text is refused by both, and their answer is not wrong but missing.
    text = (tmp_path / "shared" / "tiny.txt").read_text()
    (tmp_path / "shared" / "tiny.txt").write_text(text.replace("newer", "<|end|>"))
    run = bench(HEAD + SAFE.replace('truth = "tiktoken"', 'truth = "byteweld"'), "--repeat=1")
    assert run.status != 0
    assert "<|end|>" in run.err


UNAVAILABLE = """
DISTRIBUTION = "byteweld"


def unavailable(variant):
    return f"no {variant} here" if variant == "avx2" else ""


def train(job):
    return lambda: None, lambda result: [b"answer"]
"""


def test_a_variant_that_cannot_run_is_skipped_with_its_reason(bench: Callable[..., Run]) -> None:
    definitions = train(["tiered", "tiered:avx2", "tiered:portable"], "tiered")
    run = bench(definitions, "--repeat=1", tiered=UNAVAILABLE)
    assert "tiered:avx2 skipped: no avx2 here" in run.out
    assert [row["engine"] for row in run.rows] == ["tiered", "tiered:portable"]


def test_avx2_is_a_variant_only_where_avx512_is_the_best_tier(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from byteweld import _native

    engine = worker.load_engine(BENCHES / "engines" / "byteweld.py")
    assert engine.unavailable("parent") == ""
    monkeypatch.delattr(_native, "limit_tier", raising=False)
    assert engine.unavailable("avx2") == "this build cannot limit its tier"
    limits: list[str] = []
    monkeypatch.setattr(_native, "limit_tier", limits.append, raising=False)
    monkeypatch.setattr(_native, "tiers", lambda: ["portable", "avx2"], raising=False)
    assert engine.unavailable("avx2") == "byteweld itself runs without AVX-512 here"
    monkeypatch.setattr(_native, "tiers", lambda: ["portable", "avx2", "avx512"], raising=False)
    assert engine.unavailable("avx2") == ""
    jobs = [
        worker.Job(
            variant=variant, shape="documents", pattern=None, rank_file=_byte_ranks(tmp_path)
        )
        for variant in (None, "avx2", "parent")
    ]
    for job in jobs:
        engine.array_out(job)
    assert limits == ["avx2"]


def test_an_unknown_measure_or_name_is_a_usage_error(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld"], "byteweld")
    unknown = bench(definitions, "decode")
    assert unknown.status == 2
    assert "unknown measure 'decode'; expected one of train" in unknown.err
    nothing = bench(definitions, "--only=nothing like it")
    assert nothing.status == 2
    assert "no definition name contains 'nothing like it'" in nothing.err


# ---------------------------------------------------------------------- special engines


# Learns something unrelated.
STRANGER = """
DISTRIBUTION = "byteweld"


def train(job):
    return lambda: None, lambda result: [b"something else"]
"""


# Does its work in a child process.
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


def test_the_recounting_baseline_learns_the_same_merges(bench: Callable[..., Run]) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not here to build benches/recount")
    definitions = train(["byteweld", "recount"], "recount").replace("smallest-ids", "ck")
    run = bench(definitions + 'pattern = "none"\n', "--repeat=1")
    assert run.status == 0, run.err
    assert {row["engine"]: row["ok"] for row in run.rows} == {"byteweld": "yes", "recount": "yes"}
    assert {row["definition"] for row in run.rows} == {"train/tiny-0.01MB/300/ck/none/1-thread"}


# ---------------------------------------------------------------------- definitions


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
    assert len(set(digests.values())) == 3  # numbers of distinct pre-tokens


def test_an_unknown_pattern_is_a_usage_error(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld"], "byteweld") + 'pattern = "gtp2"\n'
    run = bench(definitions)
    assert run.status == 2
    assert "unknown pattern 'gtp2'" in run.err


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("definitions.toml", "count train"),
        (
            "encoding.toml",
            "array_out count_tokens decode_array decode_list encode files_out first_ids list_out "
            "load_json load_ranks",
        ),
    ],
)
def test_every_engine_has_the_functions_that_its_definitions_measure(
    name: str, expected: str
) -> None:
    definitions = read_definitions(name)
    measures = sorted(set(definitions) - bench_run.NOT_MEASURES)
    assert measures == expected.split()
    tables = list(bench_run.expand(definitions, measures, quick=False))
    assert {table["measure"] for table in tables} == set(measures)
    for table in tables:
        truth = bench_run.find_engine(table["truth"], [BENCHES / "engines"])
        assert table["measure"] in truth.measures
        assert table["truth"] in table["engines"] or table.get("passes")
        assert set(table.get("at_most", ())) <= set(table["engines"])
        assert set(table.get("context", ())) <= set(table["engines"]) - {table["truth"]}
        assert table["engines"][0] == "byteweld"
        for name in table["engines"]:
            engine = bench_run.find_engine(name, [BENCHES / "engines"])
            assert table["measure"] in engine.measures
            assert not table["fresh"] or hasattr(worker.load_engine(engine.file), "IMPORTS")


def test_the_quick_form_of_encoding_is_a_handful_of_definitions() -> None:
    definitions = read_definitions("encoding.toml")
    tables = list(bench_run.expand(definitions, ["array_out", "list_out"], quick=True))
    assert {table["label"] for table in tables} == {
        f"{measure}/{corpus}-10MB/{vocab}/documents/1-thread"
        for measure in ("array_out", "list_out")
        for corpus in ("prose", "code", "multi")
        for vocab in ("cl100k_base", "o200k_base")
    }
    for table in tables:
        assert table["engines"] == ["byteweld", "byteweld:avx2", "gigatoken", "fastokens"]
        assert table["repeat"] == 3


def test_an_engine_runs_where_it_is_installed(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "python3.11" / "site-packages" / "gigatoken-9.9.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: gigatoken\nVersion: 9.9\n")
    there = bench_run.find_engine("gigatoken", [BENCHES / "engines"], tmp_path)
    assert (there.version, there.python) == ("9.9", str(tmp_path / "bin" / "python"))
    ours = bench_run.find_engine("byteweld", [BENCHES / "engines"], tmp_path)
    assert ours.python == sys.executable


def test_ids_have_the_same_digest_in_every_container() -> None:
    import worker

    expected = worker.digest_ids([[1, 2], [70000]])
    assert worker.digest_ids([numpy.array([1, 2, 70000], dtype=numpy.int32)]) == expected
    assert worker.digest_ids([numpy.array([1, 2, 70000], dtype=numpy.uint32).tobytes()]) == expected
    assert worker.digest_ids([[2, 1], [70000]]) != expected
    assert worker.digest_ids(["é"]) == worker.digest_ids(["é".encode()])


def test_the_key_of_an_answer_covers_all_that_ids_depend_on(tmp_path: Path) -> None:
    kept = answers.Answers(tmp_path)
    job = {"measure": "list_out", "shape": "documents", "rank_file": "a/x.tiktoken", "pattern": "p"}
    kept.store(job, "0" * 64, "tiktoken 1", "digest")
    same = [job | {"measure": "array_out", "shape": "batch"}, job | {"rank_file": "b/x.tiktoken"}]
    assert {kept.find(other, "0" * 64, "tiktoken 1") for other in same} == {"digest"}
    others = [
        job | {"shape": "string"},
        job | {"measure": "count_tokens"},
        job | {"pattern": "q"},
        job | {"rank_file": "a/y.tiktoken"},
    ]
    assert {kept.find(other, "0" * 64, "tiktoken 1") for other in others} == {None}
    assert kept.find(job, "1" * 64, "tiktoken 1") is None
    assert kept.find(job, "0" * 64, "tiktoken 2") is None


def test_a_digest_depends_on_where_each_answer_ends() -> None:
    assert worker.digest([b"ab", b"c"]) != worker.digest([b"a", b"bc"])
    assert worker.digest([[1, 2], [3]]) != worker.digest([[1], [2, 3]])
    assert worker.digest([[1, 2], [3]]) == worker.digest(iter([[1, 2], [3]]))
