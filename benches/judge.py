"""Bars: what the figures are to be, and whether they are. Timing never changes an exit status.

A bar names a definition and what ours is measured against: a peer in the same definition, the same
engine in another one, or a plain number. run.py --judge judges a run; by itself this judges the
newest record:

    python benches/judge.py [RECORD.csv]
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recording import Line, as_row, last_runs, newest_record, summarise_rows

HERE = Path(__file__).resolve().parent
OURS = "byteweld"

Figures = Mapping[tuple[str, str], Line]  # by definition and engine


@dataclass(frozen=True)
class Bar:
    """One thing that is asked. Limits that are None are not asked."""

    definition: str
    engine: str = OURS
    against: str | None = None  # another engine
    against_definition: str | None = None
    faster: float | None = None  # at least so many times as fast
    memory: float | None = None  # at most so many times the peak memory
    seconds: float | None = None  # at most
    mebibytes: float | None = None  # peak, at most

    def __post_init__(self) -> None:
        limits = (self.faster, self.memory, self.seconds, self.mebibytes)
        if all(limit is None for limit in limits):
            raise ValueError(f"the bar for {self.definition} asks for nothing")
        is_relative = self.faster is not None or self.memory is not None
        if is_relative and self.against is None and self.against_definition is None:
            raise ValueError(f"the bar for {self.definition} does not say against what")

    @property
    def ours(self) -> tuple[str, str]:
        return self.definition, self.engine

    @property
    def other(self) -> tuple[str, str]:
        return self.against_definition or self.definition, self.against or self.engine


@dataclass(frozen=True)
class Judgement:
    """One limit of a bar: what was asked, what was found; `passed` is None if not measured."""

    what: str
    asked: str
    found: str
    passed: bool | None

    @property
    def word(self) -> str:
        return {True: "pass", False: "FAIL", None: "not measured"}[self.passed]


def read_bars(definitions: Mapping[str, Any]) -> list[Bar]:
    """The bars of definitions.toml; an unknown key is an error."""
    return [Bar(**table) for table in definitions.get("bars", [])]


def judge(bars: Iterable[Bar], figures: Figures) -> list[Judgement]:
    """Hold every limit of every bar against the figures."""
    return [judgement for bar in bars for judgement in _limits(bar, figures)]


def _limits(bar: Bar, figures: Figures) -> Iterator[Judgement]:
    ours, other = figures.get(bar.ours), figures.get(bar.other)
    if bar.faster is not None:
        asked = f"at least ×{bar.faster:g} {_other_name(bar)}"
        if ours and other:
            found = f"×{other.median / ours.median:.2f} ({_seconds(ours)}, {_seconds(other)})"
            yield Judgement(_name(bar), asked, found, other.median >= bar.faster * ours.median)
        else:
            yield Judgement(_name(bar), asked, "", None)
    if bar.memory is not None:
        asked = f"memory at most ×{bar.memory:g} {_other_name(bar)}"
        if ours and other:
            ratio = ours.peak_rss_bytes / other.peak_rss_bytes
            found = f"×{ratio:.2f} ({_memory(ours)}, {_memory(other)})"
            yield Judgement(_name(bar), asked, found, ratio <= bar.memory)
        else:
            yield Judgement(_name(bar), asked, "", None)
    if bar.seconds is not None:
        passed = ours.median <= bar.seconds if ours else None
        found = f"{_seconds(ours)}, {_memory(ours)}" if ours else ""
        yield Judgement(_name(bar), f"at most {bar.seconds:g} s", found, passed)
    if bar.mebibytes is not None:
        passed = ours.peak_rss_bytes <= bar.mebibytes * 2**20 if ours else None
        found = f"{_memory(ours)}, {_seconds(ours)}" if ours else ""
        yield Judgement(_name(bar), f"at most {bar.mebibytes:g} MiB", found, passed)


def _name(bar: Bar) -> str:
    return bar.definition if bar.engine == OURS else f"{bar.definition} {bar.engine}"


def _other_name(bar: Bar) -> str:
    names = (bar.against, bar.against_definition)
    return "of " + " in ".join(name for name in names if name is not None)


def _seconds(line: Line) -> str:
    return f"{line.median:.3g} s"


def _memory(line: Line) -> str:
    return f"{line.peak_rss_bytes / 2**20:.0f} MiB"


# ---------------------------------------------------------------------- showing


def plain_judgements(judgements: Sequence[Judgement]) -> str:
    """For a terminal: the bar, and below it what was asked and found."""
    lines = [_counted(judgements)]
    for judgement in judgements:
        lines.append(f"  {judgement.word:<12}  {judgement.what}")
        found = f": {judgement.found}" if judgement.found else ""
        lines.append(f"                {judgement.asked}{found}")
    return "\n".join(lines)


def markdown_judgements(judgements: Sequence[Judgement]) -> str:
    """For the record's summary."""
    lines = ["", _counted(judgements), "", "| bar | asked | found | |", "|---|---|---|---|"]
    lines += [f"| {j.what} | {j.asked} | {j.found} | {j.word} |" for j in judgements]
    return "\n".join(lines) + "\n"


def _counted(judgements: Sequence[Judgement]) -> str:
    words = [judgement.word for judgement in judgements]
    return "Bars: " + ", ".join(
        f"{words.count(word)} {word}" for word in ("pass", "FAIL", "not measured")
    )


# ---------------------------------------------------------------------- the record


def figures_of(path: Path) -> dict[tuple[str, str], Line]:
    """Every definition's figures, of its last run."""
    return {
        (definition, line.engine): line
        for definition, rows in last_runs(path).items()
        for line in summarise_rows([as_row(row) for row in rows], "wall", OURS)
    }


def main() -> None:
    """Judge a record."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else newest_record(HERE / "record")
    if path is None:
        sys.exit("no record yet: run `make bench-train` first")
    bars = read_bars(tomllib.loads((HERE / "definitions.toml").read_text()))
    print(plain_judgements(judge(bars, figures_of(path))))


if __name__ == "__main__":
    main()
