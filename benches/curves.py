"""The table and plot of docs/design/training.md: cost by size of corpus and vocabulary.

Generated from the latest recorded runs, without a plotting library.

    python benches/curves.py
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import svg
from recording import last_runs, newest_record

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "design" / "training.md"
# The site does not contain the records.
REPOSITORY = "https://github.com/byteweld/byteweld/blob/main/"
PLOT = HERE.parent / "docs" / "pictures" / "training-cost.svg"
START, END = "<!-- curves:start -->", "<!-- curves:end -->"

OURS = "byteweld"
# (corpus, MB). The mixed corpus has 1 GB; the larger one is different text, drawn separately.
CORPORA = [("mixed", 10), ("mixed", 100), ("mixed", 300), ("mixed", 1000), ("stories", 2000)]
SIZES = (1000, 32_000, 128_000)
ONCE = "train/prose-100MB/32000/smallest-ids/2-threads"
TENFOLD = "train/prose-tenfold-1000MB/32000/smallest-ids/2-threads"

Rows = Mapping[str, Sequence[Mapping[str, str]]]


@dataclass(frozen=True)
class Cost:
    """The median time and the maximum peak memory of one training."""

    seconds: float
    mebibytes: float


Costs = Mapping[tuple[str, int, int], Cost]  # by corpus, MB and vocabulary


def cost_of(rows: Rows, definition: str) -> Cost | None:
    """Return our cost for a definition, or None if it was not measured."""
    mine = [row for row in rows.get(definition, ()) if row["engine"] == OURS]
    if not mine:
        return None
    return Cost(
        statistics.median(float(row["wall_seconds"]) for row in mine),
        max(int(row["peak_rss_bytes"]) for row in mine) / 2**20,
    )


def all_costs(rows: Rows) -> dict[tuple[str, int, int], Cost]:
    """Return every measured point of the curves."""
    costs = {point: cost_of(rows, name) for name, point in _definitions().items()}
    return {point: cost for point, cost in costs.items() if cost is not None}


def _definitions() -> dict[str, tuple[str, int, int]]:
    """Map the name of each definition to its point on the curves."""
    return {
        f"train/{corpus}-{megabytes}MB/{size}/smallest-ids/2-threads": (corpus, megabytes, size)
        for corpus, megabytes in CORPORA
        for size in SIZES
    }


def _megabytes(megabytes: int) -> str:
    return f"{megabytes} MB" if megabytes < 1000 else f"{megabytes // 1000} GB"


# ---------------------------------------------------------------------- the table


def table(costs: Costs) -> list[str]:
    """A Markdown table with a row per corpus and a column per vocabulary size."""
    heads = [f"{size:,} tokens" for size in SIZES]
    lines = ["| corpus | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(SIZES)]
    for corpus, megabytes in CORPORA:
        cells = [_cell(costs.get((corpus, megabytes, size))) for size in SIZES]
        if any(cells):
            lines.append(f"| {_megabytes(megabytes)} {corpus} | " + " | ".join(cells) + " |")
    return lines


def _cell(cost: Cost | None) -> str:
    return "" if cost is None else f"{cost.seconds:.2f} s, {cost.mebibytes:.0f} MiB"


def ten_times(once: Cost, tenfold: Cost) -> str:
    """A sentence on repeated text."""
    return (
        f"100 MB of prose at 32,000 take {once.seconds:.2f} s and {once.mebibytes:.0f} MiB; ten "
        f"times the same text, 1 GB, take {tenfold.seconds:.2f} s and {tenfold.mebibytes:.0f} MiB."
    )


# ---------------------------------------------------------------------- the plot

_WIDTH, _HEIGHT = 860, 380
_TOP, _BOTTOM = 52, 46
_PANEL_LEFTS = (56, 492)
_PANEL_WIDTH = 290
_LABEL_GAP = 15  # between labels at the ends of lines
_X_TICKS = (10, 100, 300, 1000, 2000)


@dataclass(frozen=True)
class _Scale:
    """A logarithmic axis: maps values to coordinates."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)


def plot(costs: Costs) -> str:
    """Seconds and peak memory side by side on logarithmic axes, for light and dark themes."""
    panels = [
        _panel(_PANEL_LEFTS[0], "Seconds, by vocabulary", costs, lambda cost: cost.seconds),
        _panel(_PANEL_LEFTS[1], "Peak MiB, by vocabulary", costs, lambda cost: cost.mebibytes),
    ]
    title = "What training costs: seconds and peak memory by size of corpus and vocabulary"
    lines = (line for panel in panels for line in panel)
    return svg.document(_WIDTH, _HEIGHT, title, lines)


def _panel(left: int, title: str, costs: Costs, value: Callable[[Cost], float]) -> list[str]:
    values = [value(cost) for cost in costs.values()]
    x = _Scale(10, 2000, left, left + _PANEL_WIDTH)
    ticks = _ticks(min(values), max(values))
    y = _Scale(ticks[0], ticks[-1], _HEIGHT - _BOTTOM, _TOP)
    lines = [f'<text class="title" x="{left}" y="22">{title}</text>']
    right = left + _PANEL_WIDTH
    for tick in ticks:
        at = y(tick)
        lines.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        lines.append(svg.text("tick", left - 8, at + 4, f"{tick:g}", anchor="end"))
    for megabytes in _X_TICKS:
        shown = _megabytes(megabytes)
        lines.append(svg.text("tick", x(megabytes), _HEIGHT - _BOTTOM + 20, shown, anchor="middle"))
    for megabytes, shown in ((100, "mixed text"), (2000, "stories")):
        lines.append(svg.text("tick", x(megabytes), _HEIGHT - _BOTTOM + 36, shown, anchor="middle"))
    ends = []
    for number, size in enumerate(SIZES):
        points = {
            (corpus, megabytes): (x(megabytes), y(value(cost)))
            for (corpus, megabytes, of), cost in costs.items()
            if of == size
        }
        lines += _curve(number, points)
        if points:
            ends.append((number, list(points.values())[-1]))
    return lines + _labels(ends)


def _curve(number: int, points: Mapping[tuple[str, int], tuple[float, float]]) -> list[str]:
    """A line through the points of the mixed corpus; other corpora are separate rings."""
    joined = [point for (corpus, _), point in points.items() if corpus == CORPORA[0][0]]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in joined)
    lines = [f'<polyline class="line s{number}" points="{path}"/>']
    lines += [f'<circle class="f{number}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in joined]
    lines += [
        f'<circle class="apart s{number}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        for (corpus, _), (x, y) in points.items()
        if corpus != CORPORA[0][0]
    ]
    return lines


def _labels(ends: Sequence[tuple[int, tuple[float, float]]]) -> list[str]:
    """The vocabulary size at the end of each line, without overlaps."""
    lines = []
    lowest = math.inf
    for number, (x, y) in sorted(ends, key=lambda end: -end[1][1]):
        y = min(y, lowest - _LABEL_GAP)
        lowest = y
        lines.append(svg.text(f"label f{number}", x + 12, y + 4, f"{SIZES[number]:,}"))
    return lines


def _ticks(low: float, high: float) -> list[float]:
    """1, 3, 10, 30, ..., covering all values."""
    every = [factor * 10.0**power for power in range(-4, 7) for factor in (1, 3)]
    first = max(n for n, tick in enumerate(every) if tick <= low)
    last = min(n for n, tick in enumerate(every) if tick >= high)
    return every[first : max(last, first + 1) + 1]


# ---------------------------------------------------------------------- the page


def page_part(rows: Rows, link: str) -> list[str]:
    """The lines between the page's markers, markers included."""
    costs = all_costs(rows)
    cpu = next(row["cpu"] for name in _definitions() for row in rows.get(name, ()))
    lines = [
        START,
        "![Seconds and peak memory of a training, by size of corpus and vocabulary]"
        "(../pictures/training-cost.svg)",
        "",
        f"Medians on {cpu}, 2 threads, GPT-2 pattern ([the record]({link})). Corpora up to 1 GB "
        "are prefixes of one mixed corpus (source code, documentation, many languages); the 2 GB "
        "corpus is different text (stories), so it is drawn separately.",
        "",
        *table(costs),
    ]
    once, tenfold = cost_of(rows, ONCE), cost_of(rows, TENFOLD)
    if once and tenfold:
        lines += ["", ten_times(once, tenfold)]
    return [*lines, END]


def link_to_record(path: Path, rows: Rows) -> str:
    """Link to the record of the last point; the newest record, `path`, may be of something else."""
    day = max(row["date"] for name in _definitions() for row in rows.get(name, ()))[:10]
    return REPOSITORY + path.with_name(f"{day}.md").relative_to(HERE.parent).as_posix()


def main() -> None:
    """Rewrite the plot and the generated part of the page."""
    path = newest_record(HERE / "record")
    rows = last_runs(path) if path else {}
    costs = all_costs(rows)
    if path is None or not costs:
        sys.exit("no cost curves in the record yet: run `make bench-train` first")
    PLOT.write_text(plot(costs))
    link = link_to_record(path, rows)
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(before + "\n".join(page_part(rows, link)) + rest.split(END)[1])
    print(f"wrote {PAGE.name} and {PLOT.name} from {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
