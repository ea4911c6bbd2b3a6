"""The chart of docs/guides/scale.md: distinct pre-tokens by size of text, makespan by slice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import svg
from scaling import heaps

WIDTH, HEIGHT = 900, 380
_TOP, _BOTTOM = 52, 50
_LEFT, _RIGHT = (62, 340), (560, 760)  # the two panels
_COLORS = {"mixed": 0, "multi40": 1, "code40": 2, "prose100": 3}
_LABEL_GAP = 15


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


def draw(points: Mapping[str, Sequence[heaps.Point]], found: Mapping[int, tuple[Any, Any]]) -> str:
    """Two panels side by side, for light and dark themes."""
    title = "Distinct pre-tokens by bytes of text, and minutes of 1,000 workers by size of slice"
    lines = [*_growth(points), *_makespans(found)]
    return svg.document(WIDTH, HEIGHT, title, lines)


def _growth(points: Mapping[str, Sequence[heaps.Point]]) -> list[str]:
    x = _Scale(1e6, 1e15, *_LEFT)
    y = _Scale(1e4, 3e10, HEIGHT - _BOTTOM, _TOP)
    lines = [svg.text("title", _LEFT[0], 22, "Distinct pre-tokens, by text")]
    ticks = {1e4: "10 k", 1e6: "1 M", 1e8: "100 M", 1e10: "10 G"}
    lines += _grid(_LEFT, y, ticks)
    for size, shown in ((1e6, "1 MB"), (1e9, "1 GB"), (1e12, "1 TB"), (1e15, "1 PB")):
        lines.append(svg.text("tick", x(size), HEIGHT - _BOTTOM + 20, shown, anchor="middle"))
    ends = []
    for name, measured in points.items():
        color = _COLORS.get(name, 3)
        at = [(x(point.bytes), y(point.distinct)) for point in measured]
        lines += [f'<circle class="f{color}" cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in at]
        if name == "mixed":
            whole, tail = heaps.fits(measured, lambda point: point.distinct)
            for law, shown in ((whole, "all points"), (tail, "tail")):
                lines.append(_dashes(color, x, y, law, measured[0].bytes))
                label = f"mixed, {shown}"
                ends.append((color, x(1e15), y(law(1e15)), label))
        else:
            _, tail = heaps.fits(measured, lambda point: point.distinct)
            lines.append(_dashes(color, x, y, tail, measured[0].bytes))
            ends.append((color, x(1e15), y(tail(1e15)), _NAMES.get(name, name)))
    return lines + _labels(ends)


_NAMES = {"multi40": "many languages", "code40": "code", "prose100": "prose"}


def _dashes(color: int, x: _Scale, y: _Scale, law: heaps.Fit, first: float) -> str:
    # The shared style has three colors of lines; the fourth is that of ticks, in both themes.
    style = "stroke-width:1.2" + (";stroke:#7d8590" if color == 3 else "")
    return (
        f'<line class="line s{color}" style="{style}" stroke-dasharray="4 3" '
        f'x1="{x(first):.1f}" y1="{y(law(first)):.1f}" x2="{x(1e15):.1f}" y2="{y(law(1e15)):.1f}"/>'
    )


def _makespans(found: Mapping[int, tuple[Any, Any]]) -> list[str]:
    series = [
        ("count + reduce", [(mib, c.makespan + r.median) for mib, (c, r) in found.items()]),
        ("reduce", [(mib, r.median) for mib, (_, r) in found.items()]),
        ("count", [(mib, c.makespan) for mib, (c, _) in found.items()]),
    ]
    every = [max(seconds / 60, 1e-3) for _, line in series for _, seconds in line]
    low, high = _around(min(every), max(every))
    x = _Scale(min(found), max(found), *_RIGHT)
    y = _Scale(low, high, HEIGHT - _BOTTOM, _TOP)
    lines = [svg.text("title", _RIGHT[0], 22, "Minutes, by size of slice (simulated)")]
    powers = (10.0**power * factor for power in range(-4, 6) for factor in (1, 3))
    lines += _grid(_RIGHT, y, {tick: f"{tick:g}" for tick in powers if low <= tick <= high})
    for number, mib in enumerate(found):
        if number % 2 == 0 or len(found) < 5:
            shown = f"{mib:g} MiB" if mib < 1024 else f"{mib / 1024:g} GiB"
            lines.append(svg.text("tick", x(mib), HEIGHT - _BOTTOM + 20, shown, anchor="middle"))
    ends = []
    for color, (name, line) in enumerate(series):
        at = [(x(mib), y(seconds / 60)) for mib, seconds in line]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in at)
        lines.append(f'<polyline class="line s{color}" points="{path}"/>')
        lines += [f'<circle class="f{color}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>' for a, b in at]
        ends.append((color, *at[-1], name))
    return lines + _labels(ends)


def _around(low: float, high: float) -> tuple[float, float]:
    """The next 1 or 3 times a power of ten below and above."""
    ticks = [10.0**power * factor for power in range(-4, 6) for factor in (1, 3)]
    return max(t for t in ticks if t <= low), min(t for t in ticks if t >= high)


def _grid(panel: tuple[int, int], y: _Scale, ticks: Mapping[float, str]) -> list[str]:
    lines = []
    for tick, shown in ticks.items():
        at = y(tick)
        lines.append(
            f'<line class="grid" x1="{panel[0]}" x2="{panel[1]}" y1="{at:.1f}" y2="{at:.1f}"/>'
        )
        lines.append(svg.text("tick", panel[0] - 8, at + 4, shown, anchor="end"))
    return lines


def _labels(ends: Sequence[tuple[int, float, float, str]]) -> list[str]:
    """Names at the ends of lines, without overlaps."""
    lines, lowest = [], math.inf
    for color, x, y, name in sorted(ends, key=lambda end: -end[2]):
        y = min(y, lowest - _LABEL_GAP)
        lowest = y
        lines.append(svg.text(f"label f{color}", x + 10, y + 4, name))
    return lines
