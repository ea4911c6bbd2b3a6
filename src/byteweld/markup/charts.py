"""Charts as plain SVG: bars and a curve. Every mark also shows its value as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from byteweld.markup import Child, Html, element, table

_WIDTH, _HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 12, 28


class Bar(NamedTuple):
    """A row of a bar chart: its name, each lane's value with its label, and further columns."""

    name: Child
    values: Sequence[float | None]
    labels: Sequence[str]
    figures: Sequence[Child] = ()


def bars(
    heads: Sequence[str],
    rows: Sequence[Bar],
    most: float | None = None,
    numbers: Sequence[int] | None = None,
) -> Html:
    """Return horizontal bars; the lanes of a row are stacked, each in its own color.

    `heads` names the rows, the values and any further columns. Of the latter, those with an index
    in `numbers` (by default all) are aligned right.
    """
    highest = most or highest_of(rows)
    further = range(len(heads) - 2) if numbers is None else numbers
    return table(
        [heads[0], "", *heads[1:]],
        [[row.name, _lanes(row, highest), _labels(row), *row.figures] for row in rows],
        numbers=[2, *(3 + n for n in further)],
    )


def highest_of(rows: Iterable[Bar]) -> float:
    """Return the value of the longest bar, so that several charts can have one scale."""
    return max((v for row in rows for v in row.values if v is not None), default=0) or 1


def _lanes(row: Bar, highest: float) -> list[Html]:
    return [
        element(
            "svg",
            element("rect", class_="track", width=100, height=6),
            element("rect", width=f"{100 * min(1, (value or 0) / highest):.2f}", height=6),
            class_=f"bar lane{lane % 4}{' narrow' if row.figures else ''}",
            viewBox="0 0 100 6",
            preserveAspectRatio="none",
            aria_hidden="true",
        )
        for lane, value in enumerate(row.values)
    ]


def _labels(row: Bar) -> list[Html]:
    return [element("div", label, class_="lane-label") for label in row.labels]


def curve(points: Sequence[tuple[float, float]], label: str, units: tuple[str, str]) -> Html:
    """Return a curve through points sorted by x; `units` name the two axes."""
    last = max((x for x, _ in points), default=0) or 1
    low, high = min(y for _, y in points), max(y for _, y in points)
    span = high - low or 1

    def px(x: float) -> str:
        return f"{_LEFT + (_WIDTH - _LEFT - _RIGHT) * x / last:.1f}"

    def py(y: float) -> str:
        return f"{_TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - (y - low) / span):.1f}"

    line = "".join(f"{'L' if n else 'M'}{px(x)} {py(y)}" for n, (x, y) in enumerate(points))
    grid: list[Child] = []
    for part in (0.0, 0.5, 1.0):
        height = py(low + part * span)
        anchor = ("", "middle", "end")[round(2 * part)]
        grid += [
            element("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=height, y2=height),
            element("text", f"{low + part * span:.2f}", x=_LEFT - 8, y=height, class_="end mid"),
            element("text", f"{part * last:,.0f}", x=px(part * last), y=_HEIGHT - 8, class_=anchor),
        ]
    drawn = element(
        "svg",
        element("title", label),
        grid,
        element("path", class_="curve-line", d=line),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=label,
        class_="curve",
    )
    caption = [element("span", f"↑ {units[1]}"), element("span", f"{units[0]} →")]
    return element("figure", drawn, element("figcaption", caption))
