"""Benchmarks byteweld and its peers: run, check answers, print, append to the record.

    python benches/run.py [MEASURE ...] [--quick] [--targets] [--repeat 5] [--only NAME]

Each measurement is a new process (worker.py). The engines of a definition are interleaved, so that
noise affects all of them equally. An engine with a wrong answer is marked WRONG and has no time; a
peer that encodes inexactly is timed, marked `inexact`, and never the best peer.
"""

from __future__ import annotations

import argparse
import dataclasses
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
from recording import TIMED, Row
from session import HERE, OURS, ROOT, Session
from sources import STDLIB, UnavailableError
from targets import read_targets
from worker import load_engine

REPEAT = 5  # runs per engine, unless the definition or the command line sets it


class Bench:
    """Runs definitions in a session, with the settings of the command line."""

    def __init__(self, session: Session, chosen: argparse.Namespace) -> None:
        self._session = session
        self._chosen = chosen
        self._folders = [folder for folder in (chosen.engines, HERE / "engines") if folder]
        self._answers = Answers(chosen.cache)
        self._ready: set[Path] = set()  # engines whose prepare() has run

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
            name = with_pass(definition.name, which)
            self._session.report(
                name,
                definition.description,
                definition.engines,
                [row for row in rows if row.definition == name],
                problems if which == definition.passes[-1] else (),
                clock=definition.clock,
                ours=definition.engines[0],
                labels=[with_pass(label, which) for label in definition.labels],
                heading=which,
            )
        for problem in problems:
            print(f"  {problem}")

    def _installed(self, definition: Definition) -> list[Engine]:
        engines = []
        for name in definition.engines:
            engine = find_engine(name, self._folders, self._chosen.peers, self._chosen.parent)
            if definition.measure not in engine.measures:
                raise ValueError(f"{engine.file}: no function {definition.measure!r}")
            if engine.vocabs is not None and definition.job["vocab"] not in engine.vocabs:
                continue
            problem = self._problem(engine)
            if problem:
                self._session.missing[problem] = None
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
                load_engine(engine.file).prepare(self._chosen.cache)
            except (OSError, subprocess.CalledProcessError) as error:
                return f"{engine.name} could not be built: {error}"
            self._ready.add(engine.file)
        return ""

    def _right_digest(self, definition: Definition) -> str | None:
        """The digest of the right ids, computed once by the truth engine, untimed."""
        if not definition.job["passes"]:
            return None
        truth = find_engine(definition.truth, self._folders, self._chosen.peers)
        truth_version = f"{truth.name} {truth.version}"
        key = (definition.job, definition.corpus.sha256, truth_version)
        found = self._answers.find(*key)
        if found is None and truth.version is not None:
            print(f"  computing the answer with {truth_version}", file=sys.stderr, flush=True)
            outcome = start(truth, definition, self._chosen.timeout)
            if outcome.result is None:
                raise RuntimeError(f"{truth_version}: {outcome.verdict}: {outcome.message}")
            found = str(outcome.result["digest"])
            self._answers.store(*key, found)
        return found

    def _measure(
        self, definition: Definition, engines: Sequence[Engine], right: str | None
    ) -> tuple[list[Row], list[str]]:
        """Run the engines in turn; without a stored answer, the first one is the truth's."""
        repeat = self._chosen.repeat or definition.repeat or REPEAT
        by_name = {engine.name: engine for engine in engines}
        if right is None:
            by_name = {definition.truth: by_name[definition.truth]} | by_name

        def measure(name: str, run: int) -> tuple[list[Row], str]:
            nonlocal right
            print(f"  run {run} of {repeat}: {name}", file=sys.stderr, flush=True)
            outcome = start(by_name[name], definition, self._chosen.timeout)
            if right is None and name == definition.truth and outcome.result is not None:
                right = str(outcome.result["digest"])
            return self._check(definition, by_name[name], outcome, right, run)

        most = {name: min(repeat, definition.at_most.get(name, repeat)) for name in by_name}
        return self._session.interleave(most, measure)

    def _check(
        self, definition: Definition, engine: Engine, outcome: Outcome, right: str | None, run: int
    ) -> tuple[list[Row], str]:
        """The rows of one measurement, one per pass, and the problem, if any."""
        result = outcome.result
        verdict = outcome.verdict
        message = f"{verdict}: {outcome.message}"
        if result is not None and engine.name in definition.context:
            verdict = "unlike"
        elif result is not None and right is None:
            nothing = f"{definition.truth} gave no answer to compare with"
            return [], f"{engine.name}: not timed: {nothing}"
        elif result is not None and result["digest"] != right:
            is_peer = engine.name.partition(":")[0] != OURS
            verdict = "inexact" if definition.job["passes"] and is_peer else "WRONG"
            message = f"WRONG, not timed: the answer is {result['digest']}, expected {right}"
        timed = result if verdict in TIMED else None
        rows = [
            Row(
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
            for which in definition.passes
        ]
        problem = "" if verdict in TIMED else f"{engine.name} {engine.version}: {message}"
        return rows, problem


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
    add("--shared", type=Path, default=ROOT.parent / "shared" / "data", metavar="FOLDER")
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
    session = Session(chosen.record)
    bench = Bench(session, chosen)
    often = runs(chosen.repeat) if chosen.repeat else f"{runs(REPEAT)}, unless noted below"
    method = (
        f"Medians (and bests) of {often}, interleaved, each in a new process; ×2 is twice "
        "our time. Every answer was checked; an engine with a wrong answer has no time."
    )
    if any(definition.corpus.name == STDLIB for definition in todo):
        print(f"no shared data in {chosen.shared}: using Python's standard library ({STDLIB})")
        method += f"\nNo shared data: Python's standard library (`{STDLIB}`) is used instead."
    for line in impossible:
        print(line)
    try:
        for definition in todo:
            bench.run(definition, stored_answer(definitions, definition))
    finally:
        session.missing |= dict.fromkeys(impossible)
        session.summarize(method)
    if chosen.targets:
        session.check(targets)
        if chosen.quick and isinstance(definitions.get("quick", {}).get("megabytes"), int | float):
            print("These are quick runs: the figures say nothing about the targets.")
    return session.finish()


if __name__ == "__main__":
    sys.exit(main())
