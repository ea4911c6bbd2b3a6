"""Curves and charts: a point or a bar for every measurement, and labels that do not overlap."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest

import curves
import recording
import speeds


def recorded_costs() -> dict[str, list[dict[str, str]]]:
    """A record with every point, with computed seconds."""
    rows: dict[str, list[dict[str, str]]] = {}
    for corpus, megabytes in curves.CORPORA:
        for size in curves.SIZES:
            name = f"train/{corpus}-{megabytes}MB/{size}/smallest-ids/2-threads"
            seconds = megabytes / 100 + size / 100_000
            row = {"engine": "byteweld", "cpu": "a processor", "wall_seconds": str(seconds)}
            rows[name] = [row | {"peak_rss_bytes": str(megabytes << 20)}]
    return rows


def test_the_cost_curves_table_has_every_point() -> None:
    lines = curves.page_part(recorded_costs(), "the-record.md")
    assert "| 100 MB mixed | 1.01 s, 100 MiB | 1.32 s, 100 MiB | 2.28 s, 100 MiB |" in lines
    assert "| 2 GB stories | 20.01 s, 2000 MiB | 20.32 s, 2000 MiB | 21.28 s, 2000 MiB |" in lines
    assert len([line for line in lines if line.startswith("|")]) == 2 + len(curves.CORPORA)


def test_the_plot_has_a_point_for_every_training_and_no_overlapping_labels() -> None:
    costs = curves.all_costs(recorded_costs())
    root = ElementTree.fromstring(curves.plot(costs))
    svg = "{http://www.w3.org/2000/svg}"
    assert len(list(root.iter(f"{svg}circle"))) == 2 * len(costs)
    labels = [text for text in root.iter(f"{svg}text") if "label" in text.get("class", "")]
    assert sorted(text.text or "" for text in labels) == sorted(["1,000", "32,000", "128,000"] * 2)
    positions = sorted((text.get("x"), float(text.get("y", "0"))) for text in labels)
    for (x, y), (next_x, next_y) in itertools.pairwise(positions):
        assert x != next_x or next_y - y >= 15
    for element in root.iter():
        for axis, limit in (("x", 860), ("y", 380), ("cx", 860), ("cy", 380)):
            assert 0 <= float(element.get(axis, "0")) <= limit


def test_the_page_has_one_pair_of_markers_for_the_curves() -> None:
    page = curves.PAGE.read_text()
    assert page.count(curves.START) == page.count(curves.END) == 1
    assert page.index(curves.START) < page.index(curves.END)


def test_page_and_pictures_have_the_figures_of_the_record() -> None:
    path = recording.newest_record(curves.HERE / "record")
    assert path is not None
    rows = recording.last_runs(path)
    link = curves.link_to_record(path, rows)
    assert "\n".join(curves.page_part(rows, link)) in curves.PAGE.read_text("utf-8")
    assert (curves.HERE.parent / link.removeprefix(curves.REPOSITORY)).is_file()
    assert curves.PLOT.read_text("utf-8") == curves.plot(curves.all_costs(rows))
    assert speeds.CHART.read_text("utf-8") == speeds.chart(speeds.all_speeds(rows))


def test_a_plot_with_few_points_is_drawn() -> None:
    costs = {("mixed", 100, 1000): curves.Cost(1.0, 30.0)}
    root = ElementTree.fromstring(curves.plot(costs))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 2


def test_the_chart_has_a_bar_for_every_speed_with_right_ids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
