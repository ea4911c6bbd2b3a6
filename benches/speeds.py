"""Encoding speed by kind of text: the chart of docs/benchmarks.md.

Generated from the latest recorded runs, without a plotting library.

    python benches/speeds.py
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from recording import last_runs, newest_record

HERE = Path(__file__).resolve().parent
CHART = HERE.parent / "docs" / "pictures" / "encoding-speed.svg"

ENGINES = ("byteweld", "fastokens", "gigatoken", "tiktoken")
TEXTS = {
    "English books": "prose-10MB",
    "source code": "code-10MB",
    "chat": "chat-8MB",
    "many languages": "multi-10MB",
    "Chinese, Japanese": "zh-ja-3MB",
    "Thai, Khmer": "th-km-1.6MB",
}
PASSES = {"first": "Text seen for the first time, MB/s", "warm": "The same text again, MB/s"}
VOCAB = "cl100k_base"

Rows = Mapping[str, Sequence[Mapping[str, str]]]
Speeds = Mapping[tuple[str, str, str], float]  # MB/s by text, pass and engine

_WIDTH = 860
_TOP = 74
_BAR, _GAP, _GROUP_GAP = 12, 2, 14
_LEFTS = (136, 506)
_PANEL_WIDTH = 300

_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .tick { font-size: 12px; fill: #59636e; }
  .f0 { fill: #0072b2; } .f1 { fill: #b35900; } .f2 { fill: #00704f; }
  .f3 { fill: #59636e; }
  .label { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .tick { fill: #9198a1; }
    .f0 { fill: #56b4e9; } .f1 { fill: #f0a33c; } .f2 { fill: #3fcf9f; }
    .f3 { fill: #9198a1; }
  }
"""


def definition(corpus: str, which: str) -> str:
    """Arrays out, one call per document, one core."""
    return f"array_out/{corpus}/{VOCAB}/documents/1-thread/{which}"


def all_speeds(rows: Rows) -> dict[tuple[str, str, str], float]:
    """Return every bar of the chart that was measured with the right ids."""
    found = {}
    for shown, corpus in TEXTS.items():
        for which in PASSES:
            for engine in ENGINES:
                mine = [
                    row
                    for row in rows.get(definition(corpus, which), ())
                    if row["engine"] == engine and row["ok"] == "yes"
                ]
                if mine:
                    seconds = statistics.median(float(row["cpu_seconds"]) for row in mine)
                    megabytes = int(mine[0]["text_bytes"]) / 1e6
                    found[shown, which, engine] = megabytes / max(seconds, 1e-9)
    return found


def chart(speeds: Speeds) -> str:
    """Two panels of bars, first and warm, on one scale, with a group per kind of text."""
    texts = [shown for shown in TEXTS if any(shown == key[0] for key in speeds)]
    group = len(ENGINES) * (_BAR + _GAP) + _GROUP_GAP
    height = _TOP + len(texts) * group
    most = max(speeds.values())
    lines = list(_legend())
    for left, (which, title) in zip(_LEFTS, PASSES.items(), strict=True):
        lines.append(text("title", left, 54, title))
        for number, shown in enumerate(texts):
            top = _TOP + number * group
            if left == _LEFTS[0]:
                middle = top + (group - _GROUP_GAP) / 2 + 4
                lines.append(text("tick", left - 10, middle, shown, anchor="end"))
            for engine_number, engine in enumerate(ENGINES):
                speed = speeds.get((shown, which, engine))
                if speed is not None:
                    y = top + engine_number * (_BAR + _GAP)
                    lines += _bar(engine_number, left, y, speed, speed / most)
    title = "How fast byteweld, fastokens, gigatoken and tiktoken encode, by kind of text"
    return document(_WIDTH, height, title, lines)


def _legend() -> Iterator[str]:
    x = _LEFTS[0]
    for number, engine in enumerate(ENGINES):
        yield f'<rect class="f{number}" x="{x}" y="12" width="12" height="12"/>'
        yield text("label" if number == 0 else "", x + 18, 23, engine)
        x += 100
    shown = f"{VOCAB}, arrays of ids, one core"
    yield text("tick", _LEFTS[1] + _PANEL_WIDTH, 23, shown, anchor="end")


def _bar(number: int, left: float, y: float, speed: float, part: float) -> list[str]:
    """A bar, followed by its value."""
    width = max(part * (_PANEL_WIDTH - 40), 1)
    return [
        f'<rect class="f{number}" x="{left}" y="{y}" width="{width:.1f}" height="{_BAR}"/>',
        text("tick", left + width + 5, y + _BAR - 2, f"{speed:.0f}"),
    ]


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


def main() -> None:
    """Write the chart."""
    path = newest_record(HERE / "record")
    speeds = all_speeds(last_runs(path)) if path else {}
    if path is None or not speeds:
        sys.exit("no encoding speeds in the record yet: run `make bench-encode` first")
    CHART.write_text(chart(speeds))
    print(f"wrote {CHART.name} from {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
