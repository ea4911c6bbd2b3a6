"""Ours and the peers, side by side: run, check the answer, print, and add to the record.

    python benches/run.py [MEASURE ...] [--quick] [--judge] [--repeat 5] [--only NAME]

Each measurement is a fresh process (worker.py). The engines of a definition take turns, so that
noise meets all alike. An engine whose answer is not the right one is WRONG and has no time; a peer
that encodes inexactly is timed, marked so, and never the best peer.
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
from judge import judge, markdown_judgements, plain_judgements, read_bars
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
    summarise_rows,
)
from sources import STDLIB, UnavailableError
from worker import load_engine

HERE = Path(__file__).resolve().parent
OURS = "byteweld"
REPEAT = 5  # runs of each engine, unless the definition or the command line says


class Bench:
    """Runs definitions, and gathers their results."""

    def __init__(
        self,
        record: Record,
        *,
        folders: Sequence[Path],
        peers: Path | None,
        cache: Path,
        repeat: int | None,
        timeout: float,
    ) -> None:
        self._record = record
        self._folders = folders
        self._peers = peers
        self._cache = cache
        self._repeat = repeat
        self._timeout = timeout
        self._answers = Answers(cache)
        self._ready: set[Path] = set()  # engines that have prepared themselves
        self.results: list[Result] = []
        self.figures: dict[tuple[str, str], Line] = {}  # by label and engine, for the bars
        self.missing: dict[str, None] = {}  # in order
        self.ours_failed = False

    def run(self, definition: Definition, stored: str | None) -> None:
        """Measure one definition with all its engines, and print its table."""
        print(f"\n{definition.name}", flush=True)
        engines = self._installed(definition)
        rows: list[Row] = []
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        if definition.threads > (available or os.cpu_count() or 1):
            problems = [f"not run: needs {definition.threads} processors"]
        elif (stored := stored or self._ask(definition)) is None and definition.truth not in {
            engine.name for engine in engines
        }:
            problems = [f"not run: no answer to check against without {definition.truth}"]
        else:
            rows, problems = self._measure(definition, engines, stored)
        for which in definition.passes:
            self._tell(definition, which, rows)
        for problem in problems:
            print(f"  {problem}")
        if problems:
            self.results[-1].problems.extend(problems)

    def _tell(self, definition: Definition, which: str, rows: Sequence[Row]) -> None:
        """Print the table of one pass, and keep its figures."""
        name = with_pass(definition.name, which)
        mine = [row for row in rows if row.definition == name]
        lines = summarise_rows(mine, definition.clock, definition.engines[0])
        if lines:
            print((f"  {which}:\n" if which else "") + plain_table(lines))
        for label, line in itertools.product(definition.labels, lines):
            self.figures[with_pass(label, which), line.engine] = line
        self.results.append(Result(name, definition.story, definition.engines, lines, []))

    def _installed(self, definition: Definition) -> list[Engine]:
        engines = []
        for name in definition.engines:
            engine = find_engine(name, self._folders, self._peers)
            if definition.measure not in engine.measures:
                raise ValueError(f"{engine.file}: has no function {definition.measure!r}")
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
        """Why an engine cannot run, or nothing. One that builds something does so now, once."""
        if engine.version is None:
            return f"{engine.name} not installed: {engine.remedy}"
        if "prepare" in engine.measures and engine.file not in self._ready:
            try:
                load_engine(engine.file).prepare(self._cache)
            except (OSError, subprocess.CalledProcessError) as error:
                return f"{engine.name} could not be built: {error}"
            self._ready.add(engine.file)
        return ""

    def _ask(self, definition: Definition) -> str | None:
        """The right ids of an encoding, which the truth is asked for once and outside the clock."""
        if not definition.job["passes"]:
            return None
        truth = find_engine(definition.truth, self._folders, self._peers)
        asked = f"{truth.name} {truth.version}"
        key = (definition.job, definition.corpus.sha256, asked)
        found = self._answers.find(*key)
        if found is None and truth.version is not None:
            print(f"  asking {asked}", file=sys.stderr, flush=True)
            outcome = start(truth, definition, self._timeout)
            if outcome.result is None:
                raise RuntimeError(f"{asked}: {outcome.verdict}: {outcome.message}")
            found = str(outcome.result["digest"])
            self._answers.keep(*key, found)
        return found

    def _measure(
        self, definition: Definition, engines: list[Engine], stored: str | None
    ) -> tuple[list[Row], list[str]]:
        """Let the engines take turns; after the first round only the right ones go on."""
        rows: list[Row] = []
        problems: list[str] = []
        right = stored
        repeat = self._repeat or definition.repeat or REPEAT
        for run in range(1, repeat + 1):
            most = {engine.name: definition.at_most.get(engine.name, run) for engine in engines}
            engines = [engine for engine in engines if most[engine.name] >= run]
            engines = engines[run > 1 :] + engines[: run > 1]  # another one begins
            outcomes = []
            for engine in engines:
                print(f"  run {run} of {repeat}: {engine.name}", file=sys.stderr, flush=True)
                outcomes.append(start(engine, definition, self._timeout))
            if right is None:
                right = _answer_of(definition.truth, engines, outcomes)
            judged = [
                self._judge(definition, engine, outcome, right, run)
                for engine, outcome in zip(engines, outcomes, strict=True)
            ]
            problems += [problem for _, problem in judged if problem]
            round_rows = [row for rows_of_one, _ in judged for row in rows_of_one]
            self._record.add(round_rows)
            rows += round_rows
            going_on = {row.engine for row in round_rows if row.ok in TIMED}
            engines = [engine for engine in engines if engine.name in going_on]
        # A wrong answer in a later round unmakes the earlier ones.
        failed = {row.engine for row in rows if row.ok not in TIMED}
        return [row for row in rows if row.engine not in failed], problems

    def _judge(
        self, definition: Definition, engine: Engine, outcome: Outcome, right: str | None, run: int
    ) -> tuple[list[Row], str]:
        """The rows of one measurement, one for each pass, and what is wrong, if anything."""
        result = outcome.result
        verdict = outcome.verdict
        message = f"{verdict}: {outcome.message}"
        is_ours = engine.name.partition(":")[0] == OURS
        if result is not None and engine.name in definition.context:
            verdict = "unlike"
        elif result is not None and right is None:
            return [], f"{engine.name}: not timed: {definition.truth} gave no answer to check it"
        elif result is not None and result["digest"] != right:
            verdict = "inexact" if definition.job["passes"] and not is_ours else "WRONG"
            message = f"WRONG, not timed: its answer is {result['digest']}, expected {right}"
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
    often = runs(repeat) if repeat else f"{runs(REPEAT)}, or as said below"
    lines = [
        f"\n## {machine.date}, commit {machine.commit}\n",
        f"{machine.cpu}; Python {machine.python}; {machine.rustc}; load {load:.1f} at the start.",
        f"Medians (and bests) of {often}, interleaved, each in a fresh process; ×2 is twice "
        "our time. Every answer was checked; an engine with a wrong one has no time.",
    ]
    if standin:
        lines.append(f"No shared data: Python's own library sources (`{STDLIB}`) stand in for it.")
    return "\n".join([*lines, *(f"- {line}" for line in missing)]) + "\n"


# ---------------------------------------------------------------------- command line


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benches/run.py", description="Measure byteweld beside its peers, checking answers."
    )
    add = parser.add_argument
    add("measures", nargs="*", help="count, train, ...: tables of the definitions; default all")
    add("--quick", action="store_true", help="[quick] of the definitions; recorded nowhere")
    add("--judge", action="store_true", help="say which bars of the definitions are met")
    add("--repeat", type=int, help="runs of each engine (5, or as a definition says)")
    add("--only", action="append", default=[], metavar="NAME", help="definitions with NAME in them")
    add("--list", action="store_true", help="print the names of the definitions and stop")
    add("--timeout", type=float, default=900, metavar="SECONDS", help="of one measurement (900)")
    add("--definitions", type=Path, default=HERE / "definitions.toml")
    add("--peers", type=Path, metavar="VENV", help="an environment where peers are installed")
    add("--engines", type=Path, metavar="FOLDER", help="look here for engines first")
    add("--record", type=Path, metavar="FOLDER", help="where to record (benches/record)")
    add("--cache", type=Path, default=HERE / ".cache", metavar="FOLDER", help="for prepared input")
    add("--shared", type=Path, default=HERE.parent.parent / "shared" / "data", metavar="FOLDER")
    add("--mixed", type=Path, metavar="FOLDER", help="where the mixed corpus is, or is made")
    chosen = parser.parse_args(arguments)
    if chosen.repeat is not None and chosen.repeat < 1:
        parser.error(f"--repeat is {chosen.repeat}; it must be at least 1")
    if chosen.record is None and not chosen.quick:
        chosen.record = HERE / "record"
    return chosen


def choose(
    chosen: argparse.Namespace, definitions: Mapping[str, Any], inputs: Inputs
) -> dict[str, list[dict[str, Any]]]:
    """The definitions that the command line names, by name; some come out alike."""
    known = [name for name in definitions if name not in NOT_MEASURES]
    unknown = [name for name in chosen.measures if name not in known]
    if unknown:
        raise ValueError(f"unknown measure {unknown[0]!r}; known are {', '.join(known)}")
    found: dict[str, list[dict[str, Any]]] = {}
    for table in expand(definitions, chosen.measures or known, quick=chosen.quick):
        name = expected_name(table, inputs)
        if all(part in name for part in chosen.only):
            found.setdefault(name, []).append(table)
    if not found:
        raise ValueError(f"no definition has {' and '.join(map(repr, chosen.only))} in its name")
    return found


def prepare_all(
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    inputs: Inputs,
    patterns: Mapping[str, str],
    cache: Path,
) -> tuple[list[Definition], list[str]]:
    """Prepare every definition before the first is measured; and say which cannot be."""
    todo: dict[str, Definition] = {}
    impossible = []
    for name, tables in found.items():
        labels = [table["label"] for table in tables]
        try:
            ready = prepare(tables[0], inputs, patterns=patterns, labels=labels, cache=cache)
        except UnavailableError as error:
            impossible.append(f"{name}: not run: {error}")
        else:
            alike = todo.get(ready.name)
            every = (*(alike.labels if alike else ()), *ready.labels)
            todo[ready.name] = dataclasses.replace(alike or ready, labels=every)
    return list(todo.values()), impossible


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 if ours gave every right answer, 1 if not, 2 for wrong use."""
    chosen = parse(arguments)
    definitions = tomllib.loads(chosen.definitions.read_text())
    inputs = Inputs(definitions, cache=chosen.cache, shared=chosen.shared, mixed=chosen.mixed)
    try:
        bars = read_bars(definitions)
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
        cache=chosen.cache,
        repeat=chosen.repeat,
        timeout=chosen.timeout,
    )
    standin = any(definition.corpus.name == STDLIB for definition in todo)
    print(f"{machine.cpu}; Python {machine.python}; {machine.rustc}; commit {machine.commit}")
    if standin:
        print(
            f"no shared data in {chosen.shared}: {STDLIB}, Python's own sources, stands in for it"
        )
    for line in impossible:
        print(line)
    try:
        for definition in todo:
            bench.run(definition, stored_answer(definitions, definition))
    finally:
        missing = [*bench.missing, *impossible]
        head = heading(machine, repeat=chosen.repeat, standin=standin, load=load, missing=missing)
        record.summarise(head + markdown_summary(bench.results))
    if chosen.judge:
        judgements = judge(bars, bench.figures)
        record.summarise(markdown_judgements(judgements))
        print(f"\n{plain_judgements(judgements)}")
        if chosen.quick and isinstance(definitions.get("quick", {}).get("megabytes"), int | float):
            print("These are quick runs: the figures say nothing about the bars.")
    if record.csv is not None:
        print(f"\nadded to {record.csv} and {record.markdown}")
    return 1 if bench.ours_failed else 0


if __name__ == "__main__":
    sys.exit(main())
