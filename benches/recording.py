"""The record: every run is a line of record/<host>/<date>.csv, with a summary in <date>.md.

Both files are append-only. <host> is the kind of machine, not its name.
"""

from __future__ import annotations

import csv
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Literal, cast

# `unlike`: an engine that learns something different by design; timed for context, never compared.
# `inexact`: an encoder with wrong ids; timed, but never the best peer.
Verdict = Literal["yes", "WRONG", "error", "timeout", "unlike", "inexact"]
TIMED = frozenset({"yes", "unlike", "inexact"})


@dataclass(frozen=True)
class Machine:
    """The machine and tools of a run."""

    date: str
    commit: str
    cpu: str
    python: str
    rustc: str


@dataclass(frozen=True)
class Row:
    """One measurement. Times are None unless the answer was right."""

    engine: str
    version: str
    definition: str
    corpus_sha256: str
    text_bytes: int
    threads: int
    run: int
    wall_seconds: float | None
    cpu_seconds: float | None
    peak_rss_bytes: int | None
    digest: str
    ok: Verdict


@dataclass(frozen=True)
class Line:
    """One engine's line in a definition's table; ratios are relative to byteweld's time."""

    engine: str
    version: str
    runs: int
    median: float
    best: float
    wall: float
    cpu: float
    megabytes_per_second: float
    peak_rss_bytes: int
    median_ratio: float | None
    best_ratio: float | None
    mark: str = ""  # `unlike` or `inexact`: not comparable


@dataclass(frozen=True)
class Result:
    """The result of a definition: the lines of its table, and any problems."""

    definition: str
    about: str
    engines: tuple[str, ...]
    lines: list[Line]
    problems: list[str]


def describe_machine(repository: Path) -> Machine:
    """Collect the facts stored with every line of the record."""
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=commit_of(repository),
        cpu=_cpu_model(),
        python=platform.python_version(),
        rustc=_output(["rustc", "--version"], repository) or "none",
    )


def host_name() -> str:
    """The kind of machine, such as `x86_64-2cpu`; never the machine's own name."""
    return f"{platform.machine()}-{os.cpu_count()}cpu"


def commit_of(repository: Path) -> str:
    """The commit of a clone, `+changes` if files differ from it; `unknown` without one."""
    commit = _output(["git", "rev-parse", "--short=12", "HEAD"], repository)
    if not commit:
        return "unknown"
    status = ["git", "--no-optional-locks", "status", "--porcelain", "--", ".", ":!benches/record"]
    return f"{commit}+changes" if _output(status, repository) else commit


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        facts: dict[str, str] = {}
        for line in cpuinfo.read_text().splitlines():
            name, _, value = line.partition(":")
            facts.setdefault(name.strip(), value.strip())
        if "model name" in facts:
            numbers = f"family {facts.get('cpu family')} model {facts.get('model')}"
            return f"{facts['model name']} ({numbers})"
    return platform.processor() or platform.machine()


def _output(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


# ---------------------------------------------------------------------- the files


class Record:
    """Appends to the two files of one host and day; without a folder, it stores nothing."""

    COLUMNS = tuple(field.name for kind in (Machine, Row) for field in fields(kind))

    def __init__(self, folder: Path | None, machine: Machine, suffix: str = "") -> None:
        self._machine = machine
        self.csv: Path | None = None
        self.markdown: Path | None = None
        if folder is not None:
            host = folder / host_name()
            host.mkdir(parents=True, exist_ok=True)
            self.csv = _with_columns(host, machine.date[:10] + suffix, self.COLUMNS)
            self.markdown = self.csv.with_suffix(".md")

    def add(self, rows: Iterable[Row]) -> None:
        """Append measurements immediately, so that an interrupted run keeps what it has."""
        if self.csv is None:
            return
        with self.csv.open("a", newline="") as file:
            writer = csv.DictWriter(file, self.COLUMNS, lineterminator="\n")
            for row in rows:
                writer.writerow(asdict(self._machine) | _rounded(row))

    def summarize(self, text: str) -> None:
        """Append a run's summary."""
        if self.markdown is not None:
            with self.markdown.open("a") as file:
                file.write(text)


def _with_columns(folder: Path, date: str, columns: Sequence[str]) -> Path:
    """The file of the day; a new one if the existing file has other columns."""
    number = 1
    while True:
        path = folder / (f"{date}.csv" if number == 1 else f"{date}-{number}.csv")
        if not path.exists():
            path.write_text(",".join(columns) + "\n")
            return path
        with path.open() as file:
            if file.readline().rstrip("\n") == ",".join(columns):
                return path
        number += 1


def _rounded(row: Row) -> dict[str, object]:
    values = asdict(row)
    for name in ("wall_seconds", "cpu_seconds"):
        if values[name] is not None:
            values[name] = f"{values[name]:.6f}"
    return values


# ---------------------------------------------------------------------- reading


def newest_record(folder: Path) -> Path | None:
    """The newest record of any host."""
    records = sorted(folder.glob("*/*.csv"), key=lambda path: path.name)
    return records[-1] if records else None


def last_runs(path: Path, *, compared: bool = False) -> dict[str, list[dict[str, str]]]:
    """The measurements of each definition's last run, in this record or an older one of the host.

    With `compared`, runs of a single engine do not count. An engine with even one wrong answer in
    a run is left out.
    """
    runs: dict[str, dict[str, list[dict[str, str]]]] = {}  # by definition, then by date
    older = [record for record in path.parent.glob("*.csv") if record.name <= path.name]
    for record in sorted(older):
        with record.open(newline="") as file:
            for row in csv.DictReader(file):
                runs.setdefault(row["definition"], {}).setdefault(row["date"], []).append(row)
    found = {}
    for definition, by_date in runs.items():
        for rows in reversed(by_date.values()):
            wrong = {row["engine"] for row in rows if row["ok"] not in TIMED}
            right = [row for row in rows if row["engine"] not in wrong]
            if not compared or len({row["engine"] for row in right}) > 1:
                found[definition] = right
                break
    return found


def as_row(values: Mapping[str, str]) -> Row:
    """Convert a line of the record back into a Row."""
    return Row(
        engine=values["engine"],
        version=values["version"],
        definition=values["definition"],
        corpus_sha256=values["corpus_sha256"],
        text_bytes=int(values["text_bytes"]),
        threads=int(values["threads"]),
        run=int(values["run"]),
        wall_seconds=float(values["wall_seconds"]) if values["wall_seconds"] else None,
        cpu_seconds=float(values["cpu_seconds"]) if values["cpu_seconds"] else None,
        peak_rss_bytes=int(values["peak_rss_bytes"]) if values["peak_rss_bytes"] else None,
        digest=values["digest"],
        ok=cast(Verdict, values["ok"]),
    )


# ---------------------------------------------------------------------- summaries


def summarize_rows(rows: Sequence[Row], clock: str, ours: str) -> list[Line]:
    """Medians and bests of right answers by engine; a ratio of 2.0 is twice the time of `ours`."""
    by_engine: dict[str, list[Row]] = {}
    for row in rows:
        if row.ok in TIMED:
            by_engine.setdefault(row.engine, []).append(row)
    our_times = _times(by_engine.get(ours, []), clock)
    lines = []
    for engine, right in by_engine.items():
        times = _times(right, clock)
        median = statistics.median(times)
        lines.append(
            Line(
                engine=engine,
                version=right[0].version,
                runs=len(right),
                median=median,
                best=min(times),
                wall=statistics.median(_times(right, "wall")),
                cpu=statistics.median(_times(right, "cpu")),
                megabytes_per_second=right[0].text_bytes / 1e6 / median,
                peak_rss_bytes=max(row.peak_rss_bytes or 0 for row in right),
                median_ratio=median / statistics.median(our_times) if our_times else None,
                best_ratio=min(times) / min(our_times) if our_times else None,
                mark=next((row.ok for row in right if row.ok != "yes"), ""),
            )
        )
    return lines


def _times(rows: Iterable[Row], clock: str) -> list[float]:
    """Seconds by a clock; never zero, so that ratios are defined."""
    chosen = (row.wall_seconds if clock == "wall" else row.cpu_seconds for row in rows)
    return [max(seconds, 1e-9) for seconds in chosen if seconds is not None]


# ---------------------------------------------------------------------- tables

_HEADINGS = (
    "engine",
    "runs",
    "median s",
    "best s",
    "MB/s",
    "CPU s",
    "peak MiB",
    "median / ours",
    "best / ours",
)


def plain_table(lines: Sequence[Line]) -> str:
    """Format a definition's table for a terminal."""
    rows = [_HEADINGS, *(_cells(line) for line in lines)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEADINGS))]
    out = []
    for row in rows:
        shown = [row[0].ljust(widths[0])]
        shown += [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        out.append("  " + "  ".join(shown).rstrip())
    return "\n".join(out)


def _cells(line: Line) -> tuple[str, ...]:
    return (
        f"{line.engine} {line.version}" + (f" ({line.mark})" if line.mark else ""),
        str(line.runs),
        f"{line.median:.3f}",
        f"{line.best:.3f}",
        f"{line.megabytes_per_second:.1f}",
        f"{line.cpu:.3f}",
        f"{line.peak_rss_bytes / 2**20:.0f}",
        _ratio(line.median_ratio),
        _ratio(line.best_ratio),
    )


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def markdown_summary(results: Sequence[Result]) -> str:
    """Results as Markdown: similar definitions in one table, with a column per engine."""
    out: list[str] = []
    for (about, engines), group in groupby(results, key=lambda r: (r.about, r.engines)):
        members = list(group)
        versions = {line.engine: line.version for r in members for line in r.lines}
        heads = [f"{name} {versions.get(name, '')}".rstrip() for name in engines]
        rows = [["definition", *heads], ["---"] * (len(engines) + 1)]
        for result in members:
            by_engine = {line.engine: line for line in result.lines}
            shown = [_markdown_cell(by_engine.get(name), name == engines[0]) for name in engines]
            rows.append([result.definition, *shown])
        out += ["", about, "", *("| " + " | ".join(row) + " |" for row in rows)]
        wrong = [f"- {r.definition}: {problem}" for r in members for problem in r.problems]
        out += ["", *wrong] if wrong else []
    return "\n".join(out) + "\n"


def _markdown_cell(line: Line | None, ours: bool) -> str:
    if line is None:
        return "-"
    memory = f"{line.peak_rss_bytes / 2**20:.0f} MiB"
    if ours:
        speed = f"{line.megabytes_per_second:.1f} MB/s"
        return f"{line.median:.3f} s (best {line.best:.3f}), {speed}, {memory}"
    mark = f" ({line.mark})" if line.mark else ""
    return f"×{_ratio(line.median_ratio)} (best ×{_ratio(line.best_ratio)}), {memory}{mark}"
