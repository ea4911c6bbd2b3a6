"""Targets: what a record is compared with, which peer is the best, and what fails."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import recording
import run as bench_run
import targets
from tests.helpers.bench_runs import Run, read_definitions, train

NAME = "train/tiny-0.01MB/300/smallest-ids/1-thread"


def target(**keys: object) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n[[targets]]\n" + "\n".join([f'definition = "{NAME}"', *lines]) + "\n"


def line(median: float, mebibytes: float) -> object:
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


def test_targets_are_checked_and_do_not_change_the_exit_status(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld", "byteweld:iterator"], "byteweld")
    definitions += target(against="byteweld:iterator", faster=1e-6, memory=1e-6)
    definitions += target(seconds=1e-9, mebibytes=1e9)
    definitions += target(against="rustbpe", faster=1)
    run = bench(definitions, "--repeat=1", "--targets")
    assert run.status == 0
    assert "Targets: 2 pass, 2 FAIL, 1 not measured" in run.out
    checks = [line for line in run.file("*.md").read_text().splitlines() if NAME in line]
    ends = [line.rsplit("|", 2)[1].strip() for line in checks if line.count("|") == 5]
    assert ends == ["pass", "FAIL", "FAIL", "pass", "not measured"]


def test_a_target_may_compare_two_definitions() -> None:
    wanted = targets.read_targets(
        {
            "targets": [
                {"definition": "two", "against_definition": "one", "faster": 1.6},
                {"definition": "two", "against_definition": "one", "memory": 1.2},
            ]
        }
    )
    figures = {("one", "byteweld"): line(3.2, 100), ("two", "byteweld"): line(2.0, 121)}
    speed, memory = targets.check_targets(wanted, figures)
    assert speed.passed is True
    assert speed.found == "×1.60 (2 s, 3.2 s)"
    assert memory.passed is False
    assert memory.found == "×1.21 (121 MiB, 100 MiB)"
    assert [check.passed for check in targets.check_targets(wanted, {})] == [None, None]


def test_the_best_peer_is_the_fastest_exact_one() -> None:
    table = {"definition": ["a/*/x"], "against": "best", "faster": {"first": 1.3, "warm": 2}}
    wanted = targets.read_targets({"targets": [table | {"unit": "MB/s", "row": "arrays"}]})
    quick: Any = line(1.0, 10)
    figures = {
        ("a/prose/x/first", "byteweld"): line(2.0, 10),
        ("a/prose/x/first", "byteweld:other"): line(0.1, 10),
        ("a/prose/x/first", "slow"): dataclasses.replace(quick, engine="slow", median=9.0),
        ("a/prose/x/first", "quick"): dataclasses.replace(quick, engine="quick", median=3.0),
        ("a/prose/x/first", "liar"): dataclasses.replace(quick, engine="liar", mark="inexact"),
        ("a/prose/own/x/first", "byteweld"): line(2.0, 10),  # a star matches one part of a name
        ("b/prose/x/first", "byteweld"): line(2.0, 10),
    }
    first, warm = targets.check_targets(wanted, figures)
    assert first.what == "a/prose/x/first"
    assert first.limit == "at least ×1.3 the speed of quick"
    assert first.found.startswith("×1.50 (")
    assert (first.passed, first.row) == (True, "arrays")
    assert (warm.what, warm.passed) == ("a/*/x/warm", None)
    shown = targets.plain_checks([first, warm])
    assert "arrays: 1 pass, 0 FAIL, 1 not measured" in shown
    assert "a/*/x/warm" not in shown
    assert "a/*/x/warm" in targets.markdown_checks([first, warm])


def test_a_star_means_the_same_in_both_definitions() -> None:
    table = {
        "definition": "array/*/*/2-threads",
        "against_definition": "array/*/*/1-thread",
        "clock": "wall",
        "faster": {"first": 1.6},
    }
    wanted = targets.read_targets({"targets": [table]})
    figures = {
        (f"array/{text}/cl100k/{threads}/first", "byteweld"): line(seconds, 1)
        for text, threads, seconds in [
            ("prose", "2-threads", 1.0),
            ("prose", "1-thread", 1.7),
            ("code", "2-threads", 1.0),
            ("code", "1-thread", 1.5),
        ]
    }
    checks = {check.what: check.passed for check in targets.check_targets(wanted, figures)}
    assert checks == {
        "array/prose/cl100k/2-threads/first": True,
        "array/code/cl100k/2-threads/first": False,
    }


def test_braces_match_one_of_a_few_names() -> None:
    table = {
        "definition": "{array,list}/*/{prose,code}/2-threads",
        "against_definition": "*/*/*/1-thread",
        "faster": {"first": 1.6},
    }
    wanted = targets.read_targets({"targets": [table]})
    figures = {
        (f"{measure}/x/{text}/{threads}/first", "byteweld"): line(seconds, 1)
        for measure in ("array", "list", "files")
        for text in ("prose", "chat")
        for threads, seconds in (("2-threads", 1.0), ("1-thread", 1.7))
    }
    checks = {check.what: check.passed for check in targets.check_targets(wanted, figures)}
    assert checks == {
        "array/x/prose/2-threads/first": True,
        "list/x/prose/2-threads/first": True,
    }


def test_a_target_of_one_tier_takes_the_engine_that_ran_with_it() -> None:
    limits = {"definition": "a/*", "against": "best"}
    wanted = targets.read_targets(
        {
            "targets": [
                limits | {"engine": "byteweld:avx2", "otherwise": "byteweld", "faster": 1.4},
                limits | {"beside": "byteweld:avx2", "faster": 1.8},
            ]
        }
    )
    figures = {("a/x", "byteweld"): line(1.0, 1), ("a/x", "peer"): line(1.5, 1)}
    # Without AVX-512, byteweld itself is limited to AVX2.
    checks = [(check.what, check.passed) for check in targets.check_targets(wanted, figures)]
    assert checks == [("a/x", True), ("a/*", None)]
    figures["a/x", "byteweld:avx2"] = line(1.2, 1)
    checks = [(check.what, check.passed) for check in targets.check_targets(wanted, figures)]
    assert checks == [("a/x byteweld:avx2", False), ("a/x", False)]
    # Neither of ours is ever the best peer.
    figures["a/x", "byteweld:parent"] = line(0.1, 1)
    best = targets.best_peer("a/x", figures)
    assert best is not None and best.median == 1.5


def test_a_target_may_limit_nanoseconds_per_byte() -> None:
    wanted = targets.read_targets(
        {
            "targets": [
                {"definition": "a", "nanoseconds": 999},
                {"definition": "a", "nanoseconds": 1001},
            ]
        }
    )
    figures = {("a", "byteweld"): line(1.0, 1)}  # 1 MB/s
    assert [check.passed for check in targets.check_targets(wanted, figures)] == [False, True]
    assert [check.passed for check in targets.check_targets(wanted, {})] == [None, None]


def test_a_target_without_a_limit_or_a_comparison_is_rejected(bench: Callable[..., Run]) -> None:
    definitions = train(["byteweld"], "byteweld")
    nothing = bench(definitions + target(against="gigatoken"))
    assert nothing.status == 2
    assert "has no limit" in nothing.err
    nowhere = bench(definitions + target(faster=2))
    assert nowhere.status == 2
    assert "set `against` or `against_definition`" in nowhere.err


def test_every_target_names_an_existing_definition_and_engine() -> None:
    definitions = read_definitions("definitions.toml")
    known = {
        (table["label"], engine)
        for table in bench_run.expand(definitions, ["count", "train"], quick=False)
        for engine in table["engines"]
    }
    wanted = targets.read_targets(definitions)
    assert len(wanted) > 20
    for one in wanted:
        assert one.ours in known
        if one.faster is not None or one.memory is not None:
            assert one.other in known


def test_every_encoding_target_matches_existing_definitions() -> None:
    definitions = read_definitions("encoding.toml")
    measures = set(definitions) - bench_run.NOT_MEASURES
    figures = {
        (f"{table['label']}/{which}", engine): line(1.0, 1)
        for table in bench_run.expand(definitions, sorted(measures), quick=False)
        for which in table["passes"]
        for engine in table["engines"]
    }
    checks = targets.check_targets(targets.read_targets(definitions), figures)
    # gigatoken does not support every pattern; everything else is compared.
    assert [
        check.what for check in checks if check.passed is None and check.row != "peak memory"
    ] == []
    assert len({check.row for check in checks}) >= 17


def test_a_record_is_read_by_the_last_run_of_each_definition(tmp_path: Path) -> None:
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
    figures = targets.figures_of(newest, {})
    assert {key: found.median for key, found in figures.items()} == {
        ("a", "byteweld"): 3.0,
        ("a", "stranger"): 1.0,
        ("b", "byteweld"): 5.0,
    }
