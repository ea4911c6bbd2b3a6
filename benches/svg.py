"""Shared by the charts of docs/: colors for light and dark themes, text elements, the document."""

from __future__ import annotations

from collections.abc import Iterable

_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .tick { font-size: 12px; fill: #59636e; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
  .s0 { stroke: #0072b2; } .s1 { stroke: #b35900; } .s2 { stroke: #00704f; }
  .f0 { fill: #0072b2; } .f1 { fill: #b35900; } .f2 { fill: #00704f; }
  .f3 { fill: #59636e; }
  .label { font-weight: 600; }
  .apart { fill: none; stroke-width: 2.5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .tick { fill: #9198a1; }
    .grid { stroke: #3d444d; }
    .s0 { stroke: #56b4e9; } .s1 { stroke: #f0a33c; } .s2 { stroke: #3fcf9f; }
    .f0 { fill: #56b4e9; } .f1 { fill: #f0a33c; } .f2 { fill: #3fcf9f; }
    .f3 { fill: #9198a1; }
  }
"""


def document(width: int, height: int, title: str, lines: Iterable[str]) -> str:
    """A complete SVG file; the title is for screen readers."""
    whole = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style>",
        *lines,
        "</svg>",
    ]
    return "\n".join(whole) + "\n"


def text(kind: str, x: float, y: float, shown: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>'
