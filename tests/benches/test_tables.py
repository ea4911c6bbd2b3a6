"""The tables of README.md and docs/benchmarks.md: from the record, with right answers only."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import recording
import table
from plan import with_pass
from tests.helpers.bench_runs import all_definitions

TRAIN = table.README_TABLE.lines[0].definition
ENCODE = table.README_TABLE.lines[2].definition
DATASET = table.DATASETS.lines[0].definition


def row(definition: str, engine: str, seconds: float, **changes: str) -> dict[str, str]:
    values = dict.fromkeys(recording.Record.COLUMNS, "")
    return values | {
        "date": "2026-11-16T10:00:00Z",
        "cpu": "a processor",
        "engine": engine,
        "version": "1.0",
        "definition": definition,
        "text_bytes": "10000000",
        "wall_seconds": str(seconds),
        "cpu_seconds": str(seconds / 2),
        "peak_rss_bytes": str(100 << 20),
        "ok": "yes",
        **changes,
    }


def test_a_cell_is_the_median_of_right_answers() -> None:
    runs = {
        TRAIN: [row(TRAIN, "byteweld", seconds) for seconds in (3.0, 1.0, 2.0)],
        ENCODE: [
            row(ENCODE, "byteweld", 0.2),
            row(ENCODE, "tiktoken", 2.0),
            row(ENCODE, "fastokens", 0.1, ok="inexact"),
        ],
    }
    assert table.markdown(table.README_TABLE, runs) == [
        "| | byteweld 1.0 | tiktoken 1.0 |",
        "|---|---:|---:|",
        "| train: 1 GB mixed, 32k, 2 threads | 2.00 s, 100 MiB |  |",
        "| encode: prose, 1 core | 100 MB/s | 10 MB/s |",
        "",
    ]


def test_a_table_without_figures_is_left_out() -> None:
    assert table.markdown(table.README_TABLE, {}) == []


def test_links_are_to_the_records_of_the_rows() -> None:
    older = {"date": "2026-11-15T10:00:00Z"}
    runs = {
        TRAIN: [row(TRAIN, "byteweld", 1.0, **older), row(TRAIN, "rustbpe", 2.0, **older)],
        ENCODE: [row(ENCODE, "byteweld", 1.0)],
        DATASET: [row(DATASET, "byteweld", 1.0, date="2026-11-17T10:00:00Z")],
    }
    text = "\n".join(table.page_part(runs, "record"))
    assert (
        "records of [2026-11-15](record/2026-11-15.md), [2026-11-16](record/2026-11-16.md)" in text
    )
    assert "record of [2026-11-17](record/2026-11-17-dataset.md)." in text


def test_the_last_run_with_a_peer_is_the_one_that_is_compared(tmp_path: Path) -> None:
    rows = [
        row(TRAIN, "byteweld", 1.0),
        row(TRAIN, "rustbpe", 2.0),
        row(TRAIN, "byteweld", 9.0, date="2026-11-16T11:00:00Z"),
        row(TRAIN, "byteweld", 8.0, date="2026-11-16T12:00:00Z"),
        row(TRAIN, "rustbpe", 7.0, date="2026-11-16T12:00:00Z", ok="WRONG"),
    ]
    path = tmp_path / "2026-11-16.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, recording.Record.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    assert [found["wall_seconds"] for found in recording.last_runs(path)[TRAIN]] == ["8.0"]
    compared = recording.last_runs(path, compared=True)[TRAIN]
    assert [found["wall_seconds"] for found in compared] == ["1.0", "2.0"]


@pytest.mark.parametrize("page", [table.README, table.PAGE])
def test_a_page_has_one_pair_of_markers(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.count(table.START) == text.count(table.END) == 1
    assert text.index(table.START) < text.index(table.END)


def test_the_page_has_the_figures_of_the_record() -> None:
    path = recording.newest_record(table.HERE / "record")
    assert path is not None
    folder = path.parent.relative_to(table.HERE.parent).as_posix()
    runs = recording.last_runs(path, compared=True)
    text = table.PAGE.read_text("utf-8")
    assert table.replaced(text, table.page_part(runs, table.REPOSITORY + folder)) == text
    linked = [part.split(")")[0] for part in text.split(f"({table.REPOSITORY}{folder}/")[1:]]
    assert linked and all((path.parent / name).is_file() for name in linked)


def test_every_definition_of_a_table_is_measured() -> None:
    measured = {
        with_pass(definition["label"], which)
        for file in ("definitions.toml", "encoding.toml")
        for definition in all_definitions(file)
        for which in definition.get("passes", [""])
    }
    tables = [table.README_TABLE, table.TRAINING, table.COUNTING, *table.ENCODING, table.MEMORY]
    for part in tables:
        for line in part.lines:
            assert line.definition in measured, line.definition
    path = recording.newest_record(table.HERE / "record")
    assert path is not None
    runs = recording.last_runs(path, compared=True)
    for line in table.DATASETS.lines:
        assert line.definition in runs, line.definition
