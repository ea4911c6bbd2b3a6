"""Bars: what the figures are to be, and whether they are. Timing never changes an exit status.

A bar names a definition, or many with `*`, and what ours is measured against: a peer in the same
definition or the best of them, the same engine in another one, or a plain number. run.py --judge
judges a run; by itself this judges the newest record:

    python benches/judge.py [--definitions FILE] [RECORD.csv]
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from recording import Line, as_row, last_runs, newest_record, summarise_rows
from worker import SHORT_STRINGS

HERE = Path(__file__).resolve().parent
OURS = "byteweld"
BEST = "best"  # of the peers that are right

Figures = Mapping[tuple[str, str], Line]  # by definition and engine


@dataclass(frozen=True)
class Bar:
    """One thing that is asked. Limits that are None are not asked."""

    definition: str  # `*` stands for any part of a name between two slashes
    engine: str = OURS
    against: str | None = None  # another engine, or BEST
    against_definition: str | None = None  # `*` stands for what it stood for in the definition
    faster: float | None = None  # at least so many times as fast
    memory: float | None = None  # at most so many times the peak memory
    seconds: float | None = None  # at most
    nanoseconds: float | None = None  # for each byte, at most
    mebibytes: float | None = None  # peak, at most
    clock: str | None = None  # "wall", where the definition's own clock is not meant
    unit: str = "s"  # what speeds are shown in: s, MB/s or calls/s
    row: str = ""  # of the table that it belongs to

    def __post_init__(self) -> None:
        limits = (self.faster, self.memory, self.seconds, self.nanoseconds, self.mebibytes)
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

    def single(self, figures: Figures) -> Iterator[Bar]:
        """This bar for each definition that was measured and fits; itself if none does."""
        if "*" not in self.definition:
            yield self
            return
        fits = re.compile("([^/]*)".join(map(re.escape, self.definition.split("*"))))
        names = dict.fromkeys(name for name, engine in figures if engine == self.engine)
        found = [(name, match.groups()) for name in names if (match := fits.fullmatch(name))]
        for name, stars in found:
            other = self.against_definition
            for star in stars if other else ():
                other = other.replace("*", star, 1) if other else None
            yield dataclasses.replace(self, definition=name, against_definition=other)
        if not found:
            yield self


@dataclass(frozen=True)
class Judgement:
    """One limit of a bar: what was asked, what was found; `passed` is None if not measured."""

    what: str
    asked: str
    found: str
    passed: bool | None
    row: str = ""

    @property
    def word(self) -> str:
        return {True: "pass", False: "FAIL", None: "not measured"}[self.passed]


def read_bars(definitions: Mapping[str, Any]) -> list[Bar]:
    """The bars of definitions.toml; an unknown key is an error.

    `definition` may be a list of many; `faster` may say how much for each pass.
    """
    return [
        Bar(**single) for table in definitions.get("bars", []) for single in _single_tables(table)
    ]


def _single_tables(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    many = table["definition"]
    faster = table.get("faster")
    for definition in many if isinstance(many, list) else [many]:
        if not isinstance(faster, Mapping):
            yield {**table, "definition": definition}
            continue
        for which, limit in faster.items():
            names = {"definition": f"{definition}/{which}", "faster": limit}
            if "against_definition" in table:
                names["against_definition"] = f"{table['against_definition']}/{which}"
            yield {**table, **names}


def judge(bars: Iterable[Bar], figures: Figures) -> list[Judgement]:
    """Hold every limit of every bar against the figures."""
    return [
        dataclasses.replace(judgement, row=bar.row)
        for bar in bars
        for single in bar.single(figures)
        for judgement in _limits(single, figures)
    ]


def best_peer(definition: str, figures: Figures, clock: str | None = None) -> Line | None:
    """The fastest of the others whose answer is right."""
    peers = [
        line
        for (name, engine), line in figures.items()
        if name == definition and engine.partition(":")[0] != OURS and not line.mark
    ]
    return min(peers, key=lambda line: _time(line, clock), default=None)


def _limits(bar: Bar, figures: Figures) -> Iterator[Judgement]:
    ours = figures.get(bar.ours)
    if bar.against == BEST:
        other = best_peer(bar.other[0], figures, bar.clock)
    else:
        other = figures.get(bar.other)
    asked_of = _other_name(bar, other)
    if bar.faster is not None:
        asked = f"at least ×{bar.faster:g} {asked_of}"
        if ours and other:
            mine, its = _time(ours, bar.clock), _time(other, bar.clock)
            speeds = f"{_speed(bar.unit, ours, mine)}, {_speed(bar.unit, other, its)}"
            found = f"×{its / mine:.2f} ({speeds})"
            yield Judgement(_name(bar), asked, found, its >= bar.faster * mine)
        else:
            yield Judgement(_name(bar), asked, "", None)
    if bar.memory is not None:
        asked = f"memory at most ×{bar.memory:g} {asked_of}"
        if ours and other:
            ratio = ours.peak_rss_bytes / max(other.peak_rss_bytes, 1)
            found = f"×{ratio:.2f} ({_memory(ours)}, {_memory(other)})"
            yield Judgement(_name(bar), asked, found, ratio <= bar.memory)
        else:
            yield Judgement(_name(bar), asked, "", None)
    if bar.seconds is not None:
        passed = ours.median <= bar.seconds if ours else None
        found = f"{_seconds(ours.median)}, {_memory(ours)}" if ours else ""
        yield Judgement(_name(bar), f"at most {bar.seconds:g} s", found, passed)
    if bar.nanoseconds is not None:
        taken = 1000 / ours.megabytes_per_second if ours else 0.0
        found = f"{taken:.1f} ns" if ours else ""
        asked = f"at most {bar.nanoseconds:g} ns a byte"
        yield Judgement(_name(bar), asked, found, taken <= bar.nanoseconds if ours else None)
    if bar.mebibytes is not None:
        passed = ours.peak_rss_bytes <= bar.mebibytes * 2**20 if ours else None
        found = f"{_memory(ours)}, {_seconds(ours.median)}" if ours else ""
        yield Judgement(_name(bar), f"at most {bar.mebibytes:g} MiB", found, passed)


def _name(bar: Bar) -> str:
    return bar.definition if bar.engine == OURS else f"{bar.definition} {bar.engine}"


def _other_name(bar: Bar, other: Line | None) -> str:
    """What is asked against; the best peer is named once it is known."""
    who = other.engine if bar.against == BEST and other else bar.against
    names = (who, bar.against_definition)
    return "of " + " in ".join(name for name in names if name is not None)


def _time(line: Line, clock: str | None) -> float:
    return line.wall if clock == "wall" else line.median


def _speed(unit: str, line: Line, seconds: float) -> str:
    if unit == "MB/s":
        return f"{line.megabytes_per_second * line.median / seconds:.0f} MB/s"
    if unit == "calls/s":
        return f"{SHORT_STRINGS / seconds / 1000:.0f} thousand calls/s"
    return _seconds(seconds)


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s"


def _memory(line: Line) -> str:
    return f"{line.peak_rss_bytes / 2**20:.0f} MiB"


# ---------------------------------------------------------------------- showing


def plain_judgements(judgements: Sequence[Judgement]) -> str:
    """For a terminal: a heading for each row, the bar, and what was asked and found.

    Rows of which nothing was measured are counted only: they are many when a part is run.
    """
    lines = [f"Bars: {_counted(judgements)}"]
    for row, group in groupby(judgements, key=lambda judgement: judgement.row):
        members = list(group)
        if not row:
            lines += [line for judgement in members for line in _two_lines(judgement)]
        elif any(judgement.passed is not None for judgement in members):
            lines += ["", f"{row}: {_counted(members)}"]
            lines += _one_line_each([j for j in members if j.passed is not None])
    return "\n".join(lines)


def _two_lines(judgement: Judgement) -> list[str]:
    found = f": {judgement.found}" if judgement.found else ""
    return [
        f"  {judgement.word:<12}  {judgement.what}",
        f"                {judgement.asked}{found}",
    ]


def _one_line_each(judgements: Sequence[Judgement]) -> list[str]:
    widest = max(len(judgement.what) for judgement in judgements)
    return [f"  {j.word}  {j.what:<{widest}}  {j.found}, {j.asked}" for j in judgements]


def markdown_judgements(judgements: Sequence[Judgement]) -> str:
    """For the record's summary."""
    lines = ["", f"Bars: {_counted(judgements)}"]
    for row, group in groupby(judgements, key=lambda judgement: judgement.row):
        members = list(group)
        lines += ["", f"{row}: {_counted(members)}"] if row else []
        lines += ["", "| bar | asked | found | |", "|---|---|---|---|"]
        lines += [f"| {j.what} | {j.asked} | {j.found} | {j.word} |" for j in members]
    return "\n".join(lines) + "\n"


def _counted(judgements: Sequence[Judgement]) -> str:
    words = [judgement.word for judgement in judgements]
    kinds = ("pass", "FAIL", "not measured")
    return ", ".join(f"{words.count(word)} {word}" for word in kinds)


# ---------------------------------------------------------------------- the record


def figures_of(path: Path, definitions: Mapping[str, Any]) -> dict[tuple[str, str], Line]:
    """Every definition's figures, of its last run."""
    return {
        (name, line.engine): line
        for name, rows in last_runs(path).items()
        for line in summarise_rows([as_row(row) for row in rows], _clock(name, definitions), OURS)
    }


def _clock(name: str, definitions: Mapping[str, Any]) -> str:
    """The clock that the definition of this name has."""
    for table in definitions.get(name.partition("/")[0], ()):
        threads = table["threads"] if isinstance(table["threads"], list) else [table["threads"]]
        if any(f"/{number}-thread" in name for number in threads):
            return str(table["clock"])
    return "wall"


def main() -> None:
    """Judge a record."""
    parser = argparse.ArgumentParser(description="Which bars a record meets.")
    parser.add_argument("record", type=Path, nargs="?", help="a CSV file; the newest by default")
    parser.add_argument("--definitions", type=Path, default=HERE / "definitions.toml")
    chosen = parser.parse_args()
    path = chosen.record or newest_record(HERE / "record")
    if path is None:
        parser.error("no record yet: run `make bench-train` first")
    definitions = tomllib.loads(chosen.definitions.read_text())
    print(plain_judgements(judge(read_bars(definitions), figures_of(path, definitions))))


if __name__ == "__main__":
    main()
