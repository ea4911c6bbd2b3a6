"""What is read from the record: tables, the chart and targets, from right answers only."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import recording
import speeds
import table as tables
import targets
from plan import with_pass

from .conftest import Bench, all_definitions, read_definitions, table

TRAIN = tables.README_TABLE.lines[0].definition
ENCODE = tables.README_TABLE.lines[2].definition
DATASET = tables.DATASETS.lines[0].definition


def row(definition: str, engine: str, seconds: float, **changes: str) -> dict[str, str]:
    values = dict.fromkeys(recording.Record.COLUMNS, "")
    values |= {"date": "2026-11-16T10:00:00Z", "cpu": "a processor", "version": "1.0", "ok": "yes"}
    values |= {"definition": definition, "engine": engine, "threads": "1", "run": "1"}
    values |= {"wall_seconds": str(seconds), "cpu_seconds": str(seconds / 2)}
    return values | {"text_bytes": "10000000", "peak_rss_bytes": str(100 << 20)} | changes


def written(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, recording.Record.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


# ---------------------------------------------------------------------- tables, the chart


def test_a_cell_is_the_median_of_right_answers() -> None:
    runs = {
        TRAIN: [row(TRAIN, "byteweld", seconds) for seconds in (3.0, 1.0, 2.0)],
        ENCODE: [
            row(ENCODE, "byteweld", 0.2),
            row(ENCODE, "tiktoken", 2.0),
            row(ENCODE, "fastokens", 0.1, ok="inexact"),
        ],
    }
    assert tables.markdown(tables.README_TABLE, runs) == [
        "| | byteweld 1.0 | tiktoken 1.0 |",
        "|---|---:|---:|",
        "| train: 1 GB mixed, 32k, 2 threads | 2.00 s, 100 MiB |  |",
        "| encode: prose, 1 core | 100 MB/s | 10 MB/s |",
        "",
    ]
    assert tables.markdown(tables.README_TABLE, {}) == []


def test_the_last_run_with_a_peer_is_the_one_that_is_compared(tmp_path: Path) -> None:
    later = {"date": "2026-11-16T12:00:00Z"}
    path = written(
        tmp_path / "2026-11-16.csv",
        row(TRAIN, "byteweld", 1.0),
        row(TRAIN, "rustbpe", 2.0),
        row(TRAIN, "byteweld", 9.0, date="2026-11-16T11:00:00Z"),
        row(TRAIN, "byteweld", 8.0, **later),
        row(TRAIN, "rustbpe", 7.0, **later, ok="WRONG"),
    )
    assert [found["wall_seconds"] for found in recording.last_runs(path)[TRAIN]] == ["8.0"]
    compared = recording.last_runs(path, compared=True)[TRAIN]
    assert [found["wall_seconds"] for found in compared] == ["1.0", "2.0"]


def test_pages_and_the_chart_have_the_figures_of_the_record() -> None:
    path = recording.newest_record(tables.HERE / "record")
    assert path is not None
    folder = path.parent.relative_to(tables.HERE.parent).as_posix()
    runs = recording.last_runs(path, compared=True)
    for page in (tables.README, tables.PAGE):
        text = page.read_text("utf-8")
        assert text.count(tables.START) == text.count(tables.END) == 1
        assert text.index(tables.START) < text.index(tables.END)
    assert tables.replaced(text, tables.page_part(runs, tables.REPOSITORY + folder)) == text
    linked = [part.split(")")[0] for part in text.split(f"({tables.REPOSITORY}{folder}/")[1:]]
    assert linked and all((path.parent / name).is_file() for name in linked)
    drawn = speeds.chart(speeds.all_speeds(recording.last_runs(path)))
    assert speeds.CHART.read_text("utf-8") == drawn


def test_every_definition_of_a_table_is_measured_or_in_the_record() -> None:
    measured = {
        with_pass(definition["label"], which)
        for file in ("definitions.toml", "encoding.toml")
        for definition in all_definitions(file)
        for which in definition.get("passes", [""])
    }
    path = recording.newest_record(tables.HERE / "record")
    assert path is not None
    measured |= recording.last_runs(path, compared=True).keys()
    shown = [tables.README_TABLE, tables.TRAINING, tables.COUNTING, tables.MEMORY, tables.DATASETS]
    for part in [*shown, *tables.ENCODING]:
        assert {line.definition for line in part.lines} <= measured


# ---------------------------------------------------------------------- targets


def line(median: float, mebibytes: float = 1, **changes: Any) -> recording.Line:
    keys = dict.fromkeys(("median", "best", "wall", "cpu"), median)
    keys |= {"engine": "byteweld", "version": "0", "runs": 1, "megabytes_per_second": 1.0}
    keys |= {"peak_rss_bytes": int(mebibytes * 2**20), "median_ratio": 1.0, "best_ratio": 1.0}
    return recording.Line(**(keys | changes))


def checked(figures: dict[tuple[str, str], recording.Line], *given: dict[str, Any]):
    return targets.check_targets(targets.read_targets({"targets": [*given]}), figures)


def test_targets_are_checked_and_do_not_change_the_exit_status(bench: Bench) -> None:
    name = "train/tiny-0.01MB/300/smallest-ids/1-thread"
    head = f'\n[[targets]]\ndefinition = "{name}"\n'
    definitions = table("train", ["byteweld", "byteweld:iterator"], "byteweld")
    definitions += f'{head}against = "byteweld:iterator"\nfaster = 1e-6\nmemory = 1e-6\n'
    definitions += f"{head}seconds = 1e-9\nmebibytes = 1e9\n"
    definitions += f'{head}against = "rustbpe"\nfaster = 1\n'
    run = bench(definitions, "--targets")
    assert run.status == 0
    assert "Targets: 2 pass, 2 FAIL, 1 not measured" in run.out
    checks = [line for line in run.file("*.md").read_text().splitlines() if name in line]
    ends = [line.rsplit("|", 2)[1].strip() for line in checks if line.count("|") == 5]
    assert ends == ["pass", "FAIL", "FAIL", "pass", "not measured"]


TWO = {"definition": "two", "against_definition": "one"}
TIER = {"definition": "a/*", "against": "best"}
PARTS = {
    "definition": "{array,list}/*/2-threads",
    "against_definition": "*/*/1-thread",
    "clock": "wall",
    "faster": {"first": 1.6},
}
THREADS = {
    (f"{measure}/{text}/{threads}/first", "byteweld"): seconds
    for measure in ("array", "list", "files")
    for text, slow in (("prose", 1.7), ("code", 1.5))
    for threads, seconds in (("2-threads", 1.0), ("1-thread", slow))
}
AVX2 = {"engine": "byteweld:avx2", "otherwise": "byteweld", "faster": 1.4}
BESIDE = {"beside": "byteweld:avx2", "faster": 1.8}
PEER = {("a/x", "byteweld"): 1.0, ("a/x", "peer"): 1.5}


@pytest.mark.parametrize(
    ("wanted", "figures", "expected"),
    [
        (  # with the speed or the memory of another definition
            *([TWO | {"faster": 1.6}, TWO | {"memory": 1.2}],),
            *({("one", "byteweld"): 3.2, ("two", "byteweld"): 2.0},),
            [("two", True), ("two", True)],
        ),
        ([TWO | {"faster": 1.7}], {("one", "byteweld"): 3.2, ("two", "byteweld"): 2}, [("two", 0)]),
        ([TWO | {"faster": 1.6}], {}, [("two", None)]),
        (  # stars and braces match parts of names
            *([PARTS], THREADS),
            [
                (f"{measure}/{text}/2-threads/first", text == "prose")
                for measure in ("array", "list")
                for text in ("prose", "code")
            ],
        ),
        # Without AVX-512, byteweld itself is limited to AVX2.
        ([TIER | AVX2, TIER | BESIDE], PEER, [("a/x", True), ("a/*", None)]),
        (
            *([TIER | AVX2, TIER | BESIDE], PEER | {("a/x", "byteweld:avx2"): 1.2}),
            [("a/x byteweld:avx2", False), ("a/x", False)],
        ),
        (  # 1 MB/s
            *([{"definition": "a", "nanoseconds": limit} for limit in (999, 1001)],),
            *({("a", "byteweld"): 1.0}, [("a", False), ("a", True)]),
        ),
    ],
    ids="definitions slower none parts portable tier nanoseconds".split(),
)
def test_what_a_target_compares(wanted, figures, expected) -> None:
    found = checked({key: line(median) for key, median in figures.items()}, *wanted)
    assert sorted((check.what, check.passed) for check in found) == sorted(expected)


def test_the_best_peer_is_the_fastest_exact_one() -> None:
    given = {"definition": ["a/*/x"], "against": "best", "faster": {"first": 1.3}, "unit": "MB/s"}
    figures = {
        ("a/prose/x/first", "byteweld"): line(2.0),
        ("a/prose/x/first", "byteweld:other"): line(0.1),
        ("a/prose/x/first", "slow"): line(9.0, engine="slow"),
        ("a/prose/x/first", "quick"): line(3.0, engine="quick"),
        ("a/prose/x/first", "liar"): line(1.0, engine="liar", mark="inexact"),
    }
    [check] = checked(figures, given)
    assert check.limit == "at least ×1.3 the speed of quick" and check.found.startswith("×1.50 (")


@pytest.mark.parametrize("name", ["definitions.toml", "encoding.toml"])
def test_every_target_matches_existing_definitions(name: str) -> None:
    figures = {
        (with_pass(table["label"], which), engine): line(1.0, engine=engine)
        for table in all_definitions(name)
        for which in table.get("passes", [""])
        for engine in table["engines"]
    }
    checks = targets.check_targets(targets.read_targets(read_definitions(name)), figures)
    # gigatoken does not support every pattern; everything else is compared.
    wrong = [check.what for check in checks if check.passed is None and check.row != "peak memory"]
    assert wrong == [] and len(checks) > 20


def test_a_record_is_read_by_the_last_run_of_each_definition(tmp_path: Path) -> None:
    written(tmp_path / "2026-01-01.csv", row("a", "byteweld", 9.0), row("b", "byteweld", 5.0))
    newest = written(
        tmp_path / "2026-01-02.csv",
        row("a", "byteweld", 8.0, date="2"),
        row("a", "byteweld", 2.0, date="3"),
        row("a", "byteweld", 4.0, date="3"),
        row("a", "liar", 1.0, date="3"),
        row("a", "liar", 1.0, date="3", ok="WRONG"),
        row("a", "stranger", 1.0, date="3", ok="unlike"),
    )
    figures = targets.figures_of(newest, {})
    assert {key: found.median for key, found in figures.items()} == {
        ("a", "byteweld"): 3.0,
        ("a", "stranger"): 1.0,
        ("b", "byteweld"): 5.0,
    }
