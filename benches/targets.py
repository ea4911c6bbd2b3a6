"""Performance targets, and whether they are met. Timing never changes the exit status.

A target names a definition, or many with `*`, and what byteweld is compared with: a peer in the
same definition, the best of the peers, the same engine in another definition, or a number.
`run.py --targets` checks a run; this script checks the newest record:

    python benches/targets.py [--definitions FILE] [RECORD.csv]
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

from recording import Line, as_row, last_runs, newest_record, summarize_rows
from worker import SHORT_STRINGS

HERE = Path(__file__).resolve().parent
OURS = "byteweld"
BEST = "best"  # the fastest peer with the right answer

Figures = Mapping[tuple[str, str], Line]  # by definition and engine


@dataclass(frozen=True)
class Target:
    """The limits for one definition; None means no limit."""

    # `*` matches any part of a name between two slashes, `{a,b}` one of a few.
    definition: str
    engine: str = OURS
    otherwise: str | None = None  # the engine to check where `engine` was not measured
    beside: str | None = None  # check only where this engine was measured as well
    against: str | None = None  # another engine, or BEST
    against_definition: str | None = None  # each `*` is what `*` or `{}` matched, in order
    faster: float | None = None  # minimum speedup
    memory: float | None = None  # maximum ratio of peak memory
    seconds: float | None = None  # maximum
    nanoseconds: float | None = None  # per byte, maximum
    mebibytes: float | None = None  # peak, maximum
    clock: str | None = None  # "wall" overrides the clock of the definition
    unit: str = "s"  # how speeds are shown: s, MB/s or calls/s
    row: str = ""  # the row of the table it belongs to

    def __post_init__(self) -> None:
        limits = (self.faster, self.memory, self.seconds, self.nanoseconds, self.mebibytes)
        if all(limit is None for limit in limits):
            raise ValueError(f"the target for {self.definition} has no limit")
        is_relative = self.faster is not None or self.memory is not None
        if is_relative and self.against is None and self.against_definition is None:
            raise ValueError(
                f"the target for {self.definition} is relative: "
                "set `against` or `against_definition`"
            )

    @property
    def ours(self) -> tuple[str, str]:
        return self.definition, self.engine

    @property
    def other(self) -> tuple[str, str]:
        return self.against_definition or self.definition, self.against or self.engine

    def single(self, figures: Figures) -> Iterator[Target]:
        """Yield this target for each measured definition that matches; itself if none does."""
        parts = {"*": "([^/]*)", "{": "(", ",": "|", "}": ")"}
        pattern = re.compile("".join(parts.get(c) or re.escape(c) for c in self.definition))
        found = False
        for name in dict.fromkeys(name for name, _ in figures):
            match = pattern.fullmatch(name)
            engine = self.engine if (name, self.engine) in figures else self.otherwise
            if match is None or (name, engine) not in figures:
                continue
            if self.beside is not None and (name, self.beside) not in figures:
                continue
            found = True
            other = self.against_definition
            if other is not None:
                for part in match.groups():
                    other = other.replace("*", part, 1)
            yield dataclasses.replace(
                self, definition=name, engine=engine, against_definition=other
            )
        if not found:
            yield self


@dataclass(frozen=True)
class Check:
    """One limit of a target, and the figure found; `passed` is None if it was not measured."""

    what: str
    limit: str
    found: str
    passed: bool | None
    row: str = ""

    @property
    def word(self) -> str:
        return {True: "pass", False: "FAIL", None: "not measured"}[self.passed]


def read_targets(definitions: Mapping[str, Any]) -> list[Target]:
    """Read the `[[targets]]` of a definitions file; an unknown key is an error.

    `definition` may be a list; `faster` may be a table with a value per pass.
    """
    return [
        Target(**single)
        for table in definitions.get("targets", [])
        for single in _single_tables(table)
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


def check_targets(targets: Iterable[Target], figures: Figures) -> list[Check]:
    """Compare the figures with every limit of every target."""
    return [
        dataclasses.replace(check, row=target.row)
        for target in targets
        for single in target.single(figures)
        for check in _checks(single, figures)
    ]


def best_peer(definition: str, figures: Figures, clock: str | None = None) -> Line | None:
    """The fastest peer with the right answer."""
    peers = [
        line
        for (name, engine), line in figures.items()
        if name == definition and engine.partition(":")[0] != OURS and not line.mark
    ]
    return min(peers, key=lambda line: _time(line, clock), default=None)


def _checks(target: Target, figures: Figures) -> Iterator[Check]:
    ours = figures.get(target.ours)
    if target.against == BEST:
        other = best_peer(target.other[0], figures, target.clock)
    else:
        other = figures.get(target.other)
    other_name = _other_name(target, other)
    if target.faster is not None:
        limit = f"at least ×{target.faster:g} the speed {other_name}"
        if ours and other:
            mine, its = _time(ours, target.clock), _time(other, target.clock)
            speeds = f"{_speed(target.unit, ours, mine)}, {_speed(target.unit, other, its)}"
            found = f"×{its / mine:.2f} ({speeds})"
            yield Check(_name(target), limit, found, its >= target.faster * mine)
        else:
            yield Check(_name(target), limit, "", None)
    if target.memory is not None:
        limit = f"at most ×{target.memory:g} the memory {other_name}"
        if ours and other:
            ratio = ours.peak_rss_bytes / max(other.peak_rss_bytes, 1)
            found = f"×{ratio:.2f} ({_memory(ours)}, {_memory(other)})"
            yield Check(_name(target), limit, found, ratio <= target.memory)
        else:
            yield Check(_name(target), limit, "", None)
    if target.seconds is not None:
        passed = ours.median <= target.seconds if ours else None
        found = f"{_seconds(ours.median)}, {_memory(ours)}" if ours else ""
        yield Check(_name(target), f"at most {target.seconds:g} s", found, passed)
    if target.nanoseconds is not None:
        taken = 1000 / ours.megabytes_per_second if ours else 0.0
        found = f"{taken:.1f} ns" if ours else ""
        limit = f"at most {target.nanoseconds:g} ns per byte"
        yield Check(_name(target), limit, found, taken <= target.nanoseconds if ours else None)
    if target.mebibytes is not None:
        passed = ours.peak_rss_bytes <= target.mebibytes * 2**20 if ours else None
        found = f"{_memory(ours)}, {_seconds(ours.median)}" if ours else ""
        yield Check(_name(target), f"at most {target.mebibytes:g} MiB", found, passed)


def _name(target: Target) -> str:
    return target.definition if target.engine == OURS else f"{target.definition} {target.engine}"


def _other_name(target: Target, other: Line | None) -> str:
    """What byteweld is compared with; the best peer by name, once it is known."""
    who = other.engine if target.against == BEST and other else target.against
    names = (who, target.against_definition)
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


# ---------------------------------------------------------------------- output


def plain_checks(checks: Sequence[Check]) -> str:
    """For a terminal: a heading per row, each target, its limit, and the figure found.

    Rows with no measurement are only counted: a partial run has many of them.
    """
    lines = [f"Targets: {_counted(checks)}"]
    for row, group in groupby(checks, key=lambda check: check.row):
        members = list(group)
        if not row:
            lines += [line for check in members for line in _two_lines(check)]
        elif any(check.passed is not None for check in members):
            lines += ["", f"{row}: {_counted(members)}"]
            lines += _one_line_each([j for j in members if j.passed is not None])
    return "\n".join(lines)


def _two_lines(check: Check) -> list[str]:
    found = f": {check.found}" if check.found else ""
    return [
        f"  {check.word:<12}  {check.what}",
        f"                {check.limit}{found}",
    ]


def _one_line_each(checks: Sequence[Check]) -> list[str]:
    widest = max(len(check.what) for check in checks)
    return [f"  {j.word}  {j.what:<{widest}}  {j.found}, {j.limit}" for j in checks]


def markdown_checks(checks: Sequence[Check]) -> str:
    """For the record's summary."""
    lines = ["", f"Targets: {_counted(checks)}"]
    for row, group in groupby(checks, key=lambda check: check.row):
        members = list(group)
        lines += ["", f"{row}: {_counted(members)}"] if row else []
        lines += ["", "| target | limit | found | |", "|---|---|---|---|"]
        lines += [f"| {j.what} | {j.limit} | {j.found} | {j.word} |" for j in members]
    return "\n".join(lines) + "\n"


def _counted(checks: Sequence[Check]) -> str:
    words = [check.word for check in checks]
    kinds = ("pass", "FAIL", "not measured")
    return ", ".join(f"{words.count(word)} {word}" for word in kinds)


# ---------------------------------------------------------------------- the record


def figures_of(path: Path, definitions: Mapping[str, Any]) -> dict[tuple[str, str], Line]:
    """The figures of the last run of every definition."""
    return {
        (name, line.engine): line
        for name, rows in last_runs(path).items()
        for line in summarize_rows([as_row(row) for row in rows], _clock(name, definitions), OURS)
    }


def _clock(name: str, definitions: Mapping[str, Any]) -> str:
    """The clock of the definition with this name."""
    for table in definitions.get(name.partition("/")[0], ()):
        threads = table["threads"] if isinstance(table["threads"], list) else [table["threads"]]
        if any(f"/{number}-thread" in name for number in threads):
            return str(table["clock"])
    return "wall"


def main() -> None:
    """Check a record."""
    parser = argparse.ArgumentParser(description="Show which targets a record meets.")
    parser.add_argument("record", type=Path, nargs="?", help="a CSV file; the newest by default")
    parser.add_argument("--definitions", type=Path, default=HERE / "definitions.toml")
    chosen = parser.parse_args()
    path = chosen.record or newest_record(HERE / "record")
    if path is None:
        parser.error("no record yet: run `make bench-train` first")
    definitions = tomllib.loads(chosen.definitions.read_text())
    print(plain_checks(check_targets(read_targets(definitions), figures_of(path, definitions))))


if __name__ == "__main__":
    main()
