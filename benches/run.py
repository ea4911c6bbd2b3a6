"""Benchmarks byteweld and its peers: run, check answers, print, append to the record.

    python benches/run.py [MEASURE ...] [--quick] [--targets] [--repeat 5] [--only NAME]

Each measurement is a new process (worker.py). The engines of a definition are interleaved, so that
noise affects all of them equally. An engine with a wrong answer is marked WRONG and has no time; a
peer that encodes inexactly is timed, marked `inexact`, and never the best peer.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from answers import Answers
from inputs import Inputs
from launch import Engine, Outcome, find_engine, start
from plan import (
    NOT_MEASURES,
    Definition,
    expand,
    expected_name,
    prepare,
    runs,
    stored_answer,
    with_pass,
)
from recording import (
    TIMED,
    Line,
    Machine,
    Record,
    Result,
    Row,
    Verdict,
    describe_machine,
    markdown_summary,
    plain_table,
    summarize_rows,
)
from sources import STDLIB, UnavailableError
from targets import check_targets, markdown_checks, plain_checks, read_targets
from worker import load_engine

HERE = Path(__file__).resolve().parent
OURS = "byteweld"
REPEAT = 5  # runs per engine, unless the definition or the command line sets it


class Bench:
    """Runs definitions and collects their results."""

    def __init__(
        self,
        record: Record,
        *,
        folders: Sequence[Path],
        peers: Path | None,
        parent: Path | None,
        cache: Path,
        repeat: int | None,
        timeout: float,
    ) -> None:
        self._record = record
        self._folders = folders
        self._peers = peers
        self._parent = parent
        self._cache = cache
        self._repeat = repeat
        self._timeout = timeout
        self._answers = Answers(cache)
        self._ready: set[Path] = set()  # engines whose prepare() has run
        self.results: list[Result] = []
        self.figures: dict[tuple[str, str], Line] = {}  # by label and engine, for the targets
        self.missing: dict[str, None] = {}  # in order
        self.ours_failed = False

    def run(self, definition: Definition, stored: str | None) -> None:
        """Measure one definition with all its engines and print its table."""
        print(f"\n{definition.name}", flush=True)
        engines = self._installed(definition)
        rows: list[Row] = []
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        if definition.threads > (available or os.cpu_count() or 1):
            problems = [f"not run: needs {definition.threads} processors"]
        elif (
            stored := stored or self._right_digest(definition)
        ) is None and definition.truth not in {engine.name for engine in engines}:
            problems = [f"not run: no answer to check against without {definition.truth}"]
        else:
            rows, problems = self._measure(definition, engines, stored)
        for which in definition.passes:
            self._report(definition, which, rows)
        for problem in problems:
            print(f"  {problem}")
        if problems:
            self.results[-1].problems.extend(problems)

    def _report(self, definition: Definition, which: str, rows: Sequence[Row]) -> None:
        """Print the table of one pass and keep its figures."""
        name = with_pass(definition.name, which)
        mine = [row for row in rows if row.definition == name]
        lines = summarize_rows(mine, definition.clock, definition.engines[0])
        if lines:
            print((f"  {which}:\n" if which else "") + plain_table(lines))
        for label, line in itertools.product(definition.labels, lines):
            self.figures[with_pass(label, which), line.engine] = line
        self.results.append(Result(name, definition.description, definition.engines, lines, []))

    def _installed(self, definition: Definition) -> list[Engine]:
        engines = []
        for name in definition.engines:
            engine = find_engine(name, self._folders, self._peers, self._parent)
            if definition.measure not in engine.measures:
                raise ValueError(f"{engine.file}: no function {definition.measure!r}")
            if engine.vocabs is not None and definition.job["vocab"] not in engine.vocabs:
                continue
            problem = self._problem(engine)
            if problem:
                self.missing[problem] = None
                print(f"  {problem}")
            else:
                engines.append(engine)
        return engines

    def _problem(self, engine: Engine) -> str:
        """Why an engine cannot run, or an empty string. Builds an engine that needs it, once."""
        if engine.version is None:
            return f"{engine.name} not installed: {engine.remedy}"
        if engine.variant is not None and "unavailable" in engine.measures:
            reason = load_engine(engine.file).unavailable(engine.variant)
            if reason:
                return f"{engine.name} skipped: {reason}"
        if "prepare" in engine.measures and engine.file not in self._ready:
            try:
                load_engine(engine.file).prepare(self._cache)
            except (OSError, subprocess.CalledProcessError) as error:
                return f"{engine.name} could not be built: {error}"
            self._ready.add(engine.file)
        return ""

    def _right_digest(self, definition: Definition) -> str | None:
        """The digest of the right ids, computed once by the truth engine, untimed."""
        if not definition.job["passes"]:
            return None
        truth = find_engine(definition.truth, self._folders, self._peers)
        truth_version = f"{truth.name} {truth.version}"
        key = (definition.job, definition.corpus.sha256, truth_version)
        found = self._answers.find(*key)
        if found is None and truth.version is not None:
            print(f"  computing the answer with {truth_version}", file=sys.stderr, flush=True)
            outcome = start(truth, definition, self._timeout)
            if outcome.result is None:
                raise RuntimeError(f"{truth_version}: {outcome.verdict}: {outcome.message}")
            found = str(outcome.result["digest"])
            self._answers.store(*key, found)
        return found

    def _measure(
        self, definition: Definition, engines: list[Engine], stored: str | None
    ) -> tuple[list[Row], list[str]]:
        """Interleave the engines; after the first round only those with right answers continue."""
        rows: list[Row] = []
        problems: list[str] = []
        right = stored
        repeat = self._repeat or definition.repeat or REPEAT
        for run in range(1, repeat + 1):
            most = {engine.name: definition.at_most.get(engine.name, run) for engine in engines}
            engines = [engine for engine in engines if most[engine.name] >= run]
            engines = engines[run > 1 :] + engines[: run > 1]  # rotate the order
            outcomes = []
            for engine in engines:
                print(f"  run {run} of {repeat}: {engine.name}", file=sys.stderr, flush=True)
                outcomes.append(start(engine, definition, self._timeout))
            if right is None:
                right = _answer_of(definition.truth, engines, outcomes)
            checked = [
                self._check(definition, engine, outcome, right, run)
                for engine, outcome in zip(engines, outcomes, strict=True)
            ]
            problems += [problem for _, problem in checked if problem]
            round_rows = [row for rows_of_one, _ in checked for row in rows_of_one]
            self._record.add(round_rows)
            rows += round_rows
            continuing = {row.engine for row in round_rows if row.ok in TIMED}
            engines = [engine for engine in engines if engine.name in continuing]
        # A wrong answer in a later round invalidates the earlier ones.
        failed = {row.engine for row in rows if row.ok not in TIMED}
        return [row for row in rows if row.engine not in failed], problems

    def _check(
        self, definition: Definition, engine: Engine, outcome: Outcome, right: str | None, run: int
    ) -> tuple[list[Row], str]:
        """The rows of one measurement, one per pass, and the problem, if any."""
        result = outcome.result
        verdict = outcome.verdict
        message = f"{verdict}: {outcome.message}"
        is_ours = engine.name.partition(":")[0] == OURS
        if result is not None and engine.name in definition.context:
            verdict = "unlike"
        elif result is not None and right is None:
            return (
                [],
                f"{engine.name}: not timed: {definition.truth} gave no answer to compare with",
            )
        elif result is not None and result["digest"] != right:
            verdict = "inexact" if definition.job["passes"] and not is_ours else "WRONG"
            message = f"WRONG, not timed: the answer is {result['digest']}, expected {right}"
        rows = [
            self._row(definition, engine, outcome, verdict, which, run)
            for which in definition.passes
        ]
        if verdict in TIMED:
            return rows, ""
        self.ours_failed = self.ours_failed or is_ours
        return rows, f"{engine.name} {engine.version}: {message}"

    def _row(
        self,
        definition: Definition,
        engine: Engine,
        outcome: Outcome,
        verdict: Verdict,
        which: str,
        run: int,
    ) -> Row:
        result = outcome.result
        timed = result if verdict in TIMED else None
        return Row(
            engine=engine.name,
            version=engine.version or "",
            definition=with_pass(definition.name, which),
            corpus_sha256=definition.corpus.sha256,
            text_bytes=definition.corpus.text_bytes,
            threads=definition.threads,
            run=run,
            wall_seconds=timed["passes"][which]["wall"] if timed else None,
            cpu_seconds=timed["passes"][which]["cpu"] if timed else None,
            peak_rss_bytes=timed["peak"] if timed else None,
            digest=result["digest"] if result else "",
            ok=verdict,
        )


def _answer_of(truth: str, engines: Sequence[Engine], outcomes: Sequence[Outcome]) -> str | None:
    for engine, outcome in zip(engines, outcomes, strict=True):
        if engine.name == truth and outcome.result is not None:
            return str(outcome.result["digest"])
    return None


def heading(
    machine: Machine, *, repeat: int | None, standin: bool, load: float, missing: Sequence[str]
) -> str:
    """The first lines of a run's summary."""
    often = runs(repeat) if repeat else f"{runs(REPEAT)}, unless noted below"
    lines = [
        f"\n## {machine.date}, commit {machine.commit}\n",
        f"{machine.cpu}; Python {machine.python}; {machine.rustc}; load {load:.1f} at the start.",
        f"Medians (and bests) of {often}, interleaved, each in a new process; ×2 is twice "
        "our time. Every answer was checked; an engine with a wrong answer has no time.",
    ]
    if standin:
        lines.append(f"No shared data: Python's standard library (`{STDLIB}`) is used instead.")
    return "\n".join([*lines, *(f"- {line}" for line in missing)]) + "\n"


# ---------------------------------------------------------------------- command line


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benches/run.py",
        description="Benchmark byteweld and its peers, checking every answer.",
    )
    add = parser.add_argument
    add("measures", nargs="*", help="count, train, ...: tables of the definitions (default: all)")
    add("--quick", action="store_true", help="the [quick] subset of the definitions; not recorded")
    add("--targets", action="store_true", help="show which targets of the definitions are met")
    add("--repeat", type=int, help="runs per engine (default: 5, or the definition's)")
    add(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="definitions whose name contains NAME",
    )
    add("--list", action="store_true", help="print the names of the definitions and exit")
    add(
        "--timeout",
        type=float,
        default=900,
        metavar="SECONDS",
        help="per measurement (default: 900)",
    )
    add("--definitions", type=Path, default=HERE / "definitions.toml")
    add("--peers", type=Path, metavar="VENV", help="a virtual environment with the peers")
    add("--parent", type=Path, metavar="VENV", help="an environment with the parent commit")
    add("--engines", type=Path, metavar="FOLDER", help="search this folder for engines first")
    add("--record", type=Path, metavar="FOLDER", help="where to record (default: benches/record)")
    add("--cache", type=Path, default=HERE / ".cache", metavar="FOLDER", help="for prepared input")
    add("--shared", type=Path, default=HERE.parent.parent / "shared" / "data", metavar="FOLDER")
    add("--mixed", type=Path, metavar="FOLDER", help="the mixed corpus; made there if missing")
    chosen = parser.parse_args(arguments)
    if chosen.repeat is not None and chosen.repeat < 1:
        parser.error(f"--repeat is {chosen.repeat}; it must be at least 1")
    if chosen.record is None and not chosen.quick:
        chosen.record = HERE / "record"
    return chosen


def choose(
    chosen: argparse.Namespace, definitions: Mapping[str, Any], inputs: Inputs
) -> dict[str, list[dict[str, Any]]]:
    """The selected definitions by name; several may share a name."""
    known = [name for name in definitions if name not in NOT_MEASURES]
    unknown = [name for name in chosen.measures if name not in known]
    if unknown:
        raise ValueError(f"unknown measure {unknown[0]!r}; expected one of {', '.join(known)}")
    found: dict[str, list[dict[str, Any]]] = {}
    for table in expand(definitions, chosen.measures or known, quick=chosen.quick):
        name = expected_name(table, inputs)
        if all(part in name for part in chosen.only):
            found.setdefault(name, []).append(table)
    if not found:
        raise ValueError(f"no definition name contains {' and '.join(map(repr, chosen.only))}")
    return found


def prepare_all(
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    inputs: Inputs,
    patterns: Mapping[str, str],
    cache: Path,
) -> tuple[list[Definition], list[str]]:
    """Prepare every definition before measuring, and list those that cannot be prepared."""
    todo: dict[str, Definition] = {}
    impossible = []
    for name, tables in found.items():
        labels = [table["label"] for table in tables]
        try:
            ready = prepare(tables[0], inputs, patterns=patterns, labels=labels, cache=cache)
        except UnavailableError as error:
            impossible.append(f"{name}: not run: {error}")
        else:
            same = todo.get(ready.name)
            every = (*(same.labels if same else ()), *ready.labels)
            todo[ready.name] = dataclasses.replace(same or ready, labels=every)
    return list(todo.values()), impossible


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if all of byteweld's answers are right, 1 if not, 2 for wrong usage."""
    chosen = parse(arguments)
    definitions = tomllib.loads(chosen.definitions.read_text())
    inputs = Inputs(definitions, cache=chosen.cache, shared=chosen.shared, mixed=chosen.mixed)
    try:
        targets = read_targets(definitions)
        found = choose(chosen, definitions, inputs)
        if chosen.list:
            print("\n".join(found))
            return 0
        patterns = definitions.get("patterns", {})
        todo, impossible = prepare_all(found, inputs, patterns, chosen.cache)
    except ValueError as error:
        print(f"benches/run.py: {error}", file=sys.stderr)
        return 2
    machine = describe_machine(HERE.parent)
    load = os.getloadavg()[0]
    record = Record(chosen.record, machine)
    folders = [folder for folder in (chosen.engines, HERE / "engines") if folder is not None]
    bench = Bench(
        record,
        folders=folders,
        peers=chosen.peers,
        parent=chosen.parent,
        cache=chosen.cache,
        repeat=chosen.repeat,
        timeout=chosen.timeout,
    )
    standin = any(definition.corpus.name == STDLIB for definition in todo)
    print(f"{machine.cpu}; Python {machine.python}; {machine.rustc}; commit {machine.commit}")
    if standin:
        print(
            f"no shared data in {chosen.shared}: using Python's standard library ({STDLIB}) instead"
        )
    for line in impossible:
        print(line)
    try:
        for definition in todo:
            bench.run(definition, stored_answer(definitions, definition))
    finally:
        missing = [*bench.missing, *impossible]
        head = heading(machine, repeat=chosen.repeat, standin=standin, load=load, missing=missing)
        record.summarize(head + markdown_summary(bench.results))
    if chosen.targets:
        checks = check_targets(targets, bench.figures)
        record.summarize(markdown_checks(checks))
        print(f"\n{plain_checks(checks)}")
        if chosen.quick and isinstance(definitions.get("quick", {}).get("megabytes"), int | float):
            print("These are quick runs: the figures say nothing about the targets.")
    if record.csv is not None:
        print(f"\nappended to {record.csv} and {record.markdown}")
    return 1 if bench.ours_failed else 0


if __name__ == "__main__":
    sys.exit(main())
