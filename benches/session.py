"""What the benches share: engines run in turn; wrong answers have no time; record, targets."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from recording import (
    TIMED,
    Line,
    Record,
    Result,
    Row,
    describe_machine,
    markdown_summary,
    plain_table,
    summarize_rows,
)
from targets import Target, check_targets, markdown_checks, plain_checks

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OURS = "byteweld"

# Runs an engine by its name, for the n-th time; returns its rows, and what is wrong with them.
Measure = Callable[[str, int], tuple[list[Row], str]]


class Session:
    """The measurements of one call of a bench; without a folder, nothing is recorded."""

    def __init__(self, folder: Path | None, suffix: str = "") -> None:
        self.machine = describe_machine(ROOT)
        self.record = Record(folder, self.machine, suffix)
        self.results: list[Result] = []
        self.figures: dict[tuple[str, str], Line] = {}  # by label and engine, for the targets
        self.missing: dict[str, None] = {}  # in order
        self.ours_failed = False
        self._load = os.getloadavg()[0]
        print(f"{self._tools}; commit {self.machine.commit}")

    @property
    def _tools(self) -> str:
        return f"{self.machine.cpu}; Python {self.machine.python}; {self.machine.rustc}"

    def interleave(self, runs: Mapping[str, int], measure: Measure) -> tuple[list[Row], list[str]]:
        """Run engines in turn, with a different one first in each round, each so many times.

        An engine that fails does not run again, and its rows are left out of the result.
        """
        rows: list[Row] = []
        problems: list[str] = []
        left = dict(runs)
        for number in range(1, max(runs.values(), default=0) + 1):
            names = [name for name, most in left.items() if most >= number]
            shift = (number - 1) % max(1, len(names))
            for name in names[shift:] + names[:shift]:
                found, problem = measure(name, number)
                self.record.add(found)
                rows += found
                if problem:
                    problems.append(problem)
                    left[name] = 0
                is_wrong = any(row.ok not in TIMED for row in found)
                self.ours_failed |= is_wrong and name.partition(":")[0] == OURS
        return [row for row in rows if left[row.engine]], problems

    def report(
        self,
        name: str,
        about: str,
        engines: Sequence[str],
        rows: Sequence[Row],
        problems: Sequence[str] = (),
        *,
        clock: str,
        ours: str = OURS,
        labels: Sequence[str] = (),
        heading: str = "",
    ) -> None:
        """Print the table of a definition and keep its figures, under other labels if there are."""
        lines = summarize_rows(rows, clock, ours)
        if lines:
            print((f"  {heading}:\n" if heading else "") + plain_table(lines))
        for label in labels or (name,):
            self.figures |= {(label, line.engine): line for line in lines}
        self.results.append(Result(name, about, tuple(engines), lines, list(problems)))

    def summarize(self, method: str) -> None:
        """Append the summary to the record: what was run, and how."""
        head = f"\n## {self.machine.date}, commit {self.machine.commit}\n\n"
        head += f"{self._tools}; load {self._load:.1f} at the start.\n{method}\n"
        head += "".join(f"- {line}\n" for line in self.missing)
        self.record.summarize(head + markdown_summary(self.results))

    def check(self, targets: Sequence[Target]) -> None:
        """Print which targets are met, and append that to the record."""
        checks = check_targets(targets, self.figures)
        self.record.summarize(markdown_checks(checks))
        print(f"\n{plain_checks(checks)}")

    def finish(self) -> int:
        """The exit status: 1 if an answer of ours was wrong."""
        if self.record.csv is not None:
            print(f"\nappended to {self.record.csv} and {self.record.markdown}")
        return 1 if self.ours_failed else 0
