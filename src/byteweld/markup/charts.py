"""Charts as plain SVG: bars and a curve. Every mark also shows its value as text."""

from __future__ import annotations

from collections.abc import Sequence

from byteweld.markup import Child, Html, element

_WIDTH, _HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 12, 28


def bar(share: float, lane: str) -> Html:
    """Return a horizontal bar, of which a share from 0 to 1 is filled; `lane` is its color."""
    return element(
        "svg",
        element("rect", class_="track", width=100, height=6),
        element("rect", width=f"{100 * min(1, share):.2f}", height=6),
        class_=f"bar {lane}",
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


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
