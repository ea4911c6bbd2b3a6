"""Ours and the peers, side by side: run, check the answer, print, and add to the record.

    python benches/run.py [count|train|encode] [--quick] [--repeat 5] [--only NAME] [--list]

Each measurement is a fresh process (worker.py). The engines of a definition take turns, so that
noise meets all alike. An engine whose answer is not the right one is WRONG and has no time.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inputs import SEPARATOR, STDLIB, Corpus, Inputs
from recording import (
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
from worker import load_engine

HERE = Path(__file__).resolve().parent
WORKER = HERE / "worker.py"
OURS = "byteweld"
NOT_MEASURES = frozenset({"corpora", "vocabs", "answers"})
# Keys of a definition that may be lists: each combination is a definition of its own.
AXES = ("corpus", "megabytes", "vocab", "vocab_size", "tie_rule", "shape", "threads")
QUICK_MEGABYTES = 1
QUICK_VOCAB_SIZE = 1000
TRAINING_PATTERN = "gpt2"  # the only one that every trainer has


@dataclass(frozen=True)
class Definition:
    """One thing to measure, with its input prepared."""

    measure: str
    subject: str  # the name without the threads: what the right answer depends on
    threads: int
    engines: tuple[str, ...]
    truth: str
    once: frozenset[str]
    clock: str
    about: str
    corpus: Corpus
    job: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.subject}/{self.threads}-thread{'s' if self.threads > 1 else ''}"


@dataclass(frozen=True)
class Engine:
    """A file of engines/, or a variant of it."""

    name: str
    file: Path
    variant: str | None
    distribution: str
    version: str | None  # None if it is not installed
    measures: frozenset[str]


@dataclass(frozen=True)
class Outcome:
    """What a worker gave: a result, or why there is none."""

    result: dict[str, Any] | None
    verdict: Verdict
    message: str = ""


# ---------------------------------------------------------------------- definitions


def expand(
    definitions: Mapping[str, Any], measures: Sequence[str], *, quick: bool
) -> Iterator[dict[str, Any]]:
    """Yield each combination of a measure's axes as a definition with single values."""
    for measure in measures:
        for table in definitions[measure]:
            choices = [_as_list(table.get(axis)) for axis in AXES]
            for values in itertools.product(*choices):
                chosen = dict(zip(AXES, values, strict=True))
                if quick:
                    chosen["megabytes"] = min(chosen["megabytes"], QUICK_MEGABYTES)
                    if chosen["vocab_size"]:
                        chosen["vocab_size"] = min(chosen["vocab_size"], QUICK_VOCAB_SIZE)
                yield {**table, **chosen, "measure": measure}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def prepare(table: Mapping[str, Any], inputs: Inputs) -> Definition:
    """Prepare a definition's corpus and vocabulary, and name it after what it really uses."""
    size = int(table["megabytes"] * 1_000_000)
    corpus = inputs.corpus(table["corpus"], size, warm_up=table["shape"] is not None)
    job = {
        "measure": table["measure"],
        "threads": table["threads"],
        "corpus": str(corpus.path),
        "warm_up": str(corpus.warm_up),
        "separator": SEPARATOR,
        "shape": table["shape"],
        "vocab_size": table["vocab_size"],
        "tie_rule": table["tie_rule"],
    }
    # Cut at a newline, a corpus is a little shorter than asked for; that is not worth another name.
    asked = table["megabytes"] if corpus.text_bytes > 0.95 * size else corpus.text_bytes / 1e6
    parts = [table["measure"], f"{corpus.name}-{asked:.3g}MB"]
    if table["vocab"] is not None:
        vocab = inputs.vocab(table["vocab"])
        job |= {
            "rank_file": str(vocab.rank_file),
            "tokenizer_json": str(vocab.tokenizer_json),
            "pattern": vocab.pattern,
            "pattern_name": vocab.pattern_name,
        }
        parts.append(vocab.name)
    else:
        import byteweld

        job |= {
            "pattern": byteweld.PATTERNS[TRAINING_PATTERN],
            "pattern_name": TRAINING_PATTERN,
        }
    parts += [str(table[axis]) for axis in ("vocab_size", "tie_rule", "shape") if table[axis]]
    return Definition(
        measure=table["measure"],
        subject="/".join(parts),
        threads=table["threads"],
        engines=tuple(table["engines"]),
        truth=table["truth"],
        once=frozenset(table.get("once", ())),
        clock=table["clock"],
        about=table["about"].strip(),
        corpus=corpus,
        job=job,
    )


def stored_answer(definitions: Mapping[str, Any], definition: Definition) -> str | None:
    """The digest of the right answer, if definitions.toml has it for this very corpus."""
    answer = definitions.get("answers", {}).get(definition.subject)
    if answer and definition.corpus.sha256.startswith(answer["corpus"]):
        return str(answer["digest"])
    return None


# ---------------------------------------------------------------------- engines


def find_engine(name: str, folders: Sequence[Path]) -> Engine:
    """Read an engine's file, without importing its library."""
    stem, _, variant = name.partition(":")
    for folder in folders:
        file = folder / f"{stem}.py"
        if file.is_file():
            break
    else:
        where = ", ".join(str(folder) for folder in folders)
        raise ValueError(f"no engine {stem!r}: expected a file {stem}.py in {where}")
    module = load_engine(file)
    version: str | None = None
    try:
        version = importlib.metadata.version(module.DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        pass
    measures = frozenset(key for key, value in vars(module).items() if callable(value))
    return Engine(name, file, variant or None, module.DISTRIBUTION, version, measures)


def start(engine: Engine, definition: Definition, timeout: float) -> Outcome:
    """Measure once, in a process of its own."""
    job = definition.job | {"variant": engine.variant}
    threads = str(definition.threads)
    environment = os.environ | {
        "RAYON_NUM_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "true" if definition.threads > 1 else "false",
        "PYTHONHASHSEED": "0",
    }
    command = [sys.executable, "-P", str(WORKER), str(engine.file), json.dumps(job)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return Outcome(None, "timeout", f"stopped after {timeout:.0f} s")
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return Outcome(None, "error", said[-1] if said else f"exit status {done.returncode}")
    return Outcome(json.loads(done.stdout), "yes")


# ---------------------------------------------------------------------- running


class Bench:
    """Runs definitions, and gathers their results."""

    def __init__(self, record: Record, *, folders: Sequence[Path], repeat: int, timeout: float):
        self._record = record
        self._folders = folders
        self._repeat = repeat
        self._timeout = timeout
        self.results: list[Result] = []
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
        elif stored is None and definition.truth not in {engine.name for engine in engines}:
            problems = [f"not run: no answer to check against without {definition.truth}"]
        else:
            rows, problems = self._measure(definition, engines, stored)
        lines = summarise_rows(rows, definition.clock, definition.engines[0])
        if lines:
            print(plain_table(lines))
        for problem in problems:
            print(f"  {problem}")
        about = f"{definition.about} Seconds are {definition.clock} time."
        if definition.once:
            about += f" Run once: {', '.join(sorted(definition.once))}."
        self.results.append(
            Result(definition.name, about, definition.engines, lines, problems),
        )

    def _installed(self, definition: Definition) -> list[Engine]:
        engines = []
        for name in definition.engines:
            engine = find_engine(name, self._folders)
            if definition.measure not in engine.measures:
                raise ValueError(f"{engine.file}: has no function {definition.measure!r}")
            if engine.version is None:
                line = f"{name} not installed: pip install {engine.distribution}"
                self.missing[line] = None
                print(f"  {line}")
            else:
                engines.append(engine)
        return engines

    def _measure(
        self, definition: Definition, engines: list[Engine], stored: str | None
    ) -> tuple[list[Row], list[str]]:
        """Let the engines take turns; after the first round only the right ones go on."""
        rows: list[Row] = []
        problems: list[str] = []
        right = stored
        for run in range(1, self._repeat + 1):
            outcomes = []
            for engine in engines:
                print(f"  run {run} of {self._repeat}: {engine.name}", file=sys.stderr, flush=True)
                outcomes.append(start(engine, definition, self._timeout))
            if right is None:
                right = _answer_of(definition.truth, engines, outcomes)
            judged = [
                self._judge(definition, engine, outcome, right, run)
                for engine, outcome in zip(engines, outcomes, strict=True)
            ]
            problems += [problem for _, problem in judged if problem]
            round_rows = [row for row, _ in judged if row is not None]
            self._record.add(round_rows)
            rows += round_rows
            going_on = {row.engine for row in round_rows if row.ok == "yes"} - definition.once
            engines = [engine for engine in engines if engine.name in going_on]
        # A wrong answer in a later round unmakes the earlier ones.
        failed = {row.engine for row in rows if row.ok != "yes"}
        return [row for row in rows if row.engine not in failed], problems

    def _judge(
        self, definition: Definition, engine: Engine, outcome: Outcome, right: str | None, run: int
    ) -> tuple[Row | None, str]:
        """The row of one measurement, and what is wrong with it, if anything."""
        result = outcome.result
        verdict = outcome.verdict
        message = f"{verdict}: {outcome.message}"
        if result is not None and right is None:
            return None, f"{engine.name}: not timed: {definition.truth} gave no answer to check it"
        if result is not None and result["digest"] != right:
            verdict = "WRONG"
            message = f"WRONG, not timed: its answer is {result['digest']}, expected {right}"
        timed = result if verdict == "yes" else None
        row = Row(
            engine=engine.name,
            version=engine.version or "",
            definition=definition.name,
            corpus_sha256=definition.corpus.sha256,
            text_bytes=definition.corpus.text_bytes,
            threads=definition.threads,
            run=run,
            wall_seconds=timed["wall"] if timed else None,
            cpu_seconds=timed["cpu"] if timed else None,
            peak_rss_bytes=timed["peak"] if timed else None,
            digest=result["digest"] if result else "",
            ok=verdict,
        )
        if verdict == "yes":
            return row, ""
        if engine.name.partition(":")[0] == OURS:
            self.ours_failed = True
        return row, f"{engine.name} {engine.version}: {message}"


def _answer_of(truth: str, engines: Sequence[Engine], outcomes: Sequence[Outcome]) -> str | None:
    for engine, outcome in zip(engines, outcomes, strict=True):
        if engine.name == truth and outcome.result is not None:
            return str(outcome.result["digest"])
    return None


def heading(
    machine: Machine, *, repeat: int, standin: bool, load: float, missing: Sequence[str]
) -> str:
    """The first lines of a run's summary."""
    lines = [
        f"\n## {machine.date}, commit {machine.commit}\n",
        f"{machine.cpu}; Python {machine.python}; {machine.rustc}; load {load:.1f} at the start.",
        f"Medians (and bests) of {repeat} interleaved run(s), each in a fresh process; ×2 is twice "
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
    add("measure", nargs="?", help="count, train, ...: one table of the definitions; default all")
    add("--quick", action="store_true", help="1 MB, 1000 tokens, one run; recorded nowhere")
    add("--repeat", type=int, help="runs of each engine (5; with --quick 1)")
    add("--only", action="append", default=[], metavar="NAME", help="definitions with NAME in them")
    add("--list", action="store_true", help="print the names of the definitions and stop")
    add("--timeout", type=float, default=900, metavar="SECONDS", help="of one measurement (900)")
    add("--definitions", type=Path, default=HERE / "definitions.toml")
    add("--engines", type=Path, metavar="FOLDER", help="look here for engines first")
    add("--record", type=Path, metavar="FOLDER", help="where to record (benches/record)")
    add("--cache", type=Path, default=HERE / ".cache", metavar="FOLDER", help="for prepared input")
    add("--shared", type=Path, default=HERE.parent.parent / "shared" / "data", metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    if chosen.repeat is None:
        chosen.repeat = 1 if chosen.quick else 5
    if chosen.repeat < 1:
        parser.error(f"--repeat is {chosen.repeat}; it must be at least 1")
    if chosen.record is None and not chosen.quick:
        chosen.record = HERE / "record"
    return chosen


def choose(chosen: argparse.Namespace, definitions: Mapping[str, Any]) -> list[Definition]:
    """Prepare the definitions that the command line names; those that came out alike once."""
    known = [name for name in definitions if name not in NOT_MEASURES]
    if chosen.measure is not None and chosen.measure not in known:
        raise ValueError(f"unknown measure {chosen.measure!r}; known are {', '.join(known)}")
    inputs = Inputs(definitions, cache=chosen.cache, shared=chosen.shared)
    measures = [chosen.measure] if chosen.measure else known
    found: dict[str, Definition] = {}
    for table in expand(definitions, measures, quick=chosen.quick):
        definition = prepare(table, inputs)
        if all(part in definition.name for part in chosen.only):
            found.setdefault(definition.name, definition)
    if not found:
        raise ValueError(f"no definition has {' and '.join(map(repr, chosen.only))} in its name")
    return list(found.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 if ours gave every right answer, 1 if not, 2 for wrong use."""
    chosen = parse(arguments)
    definitions = tomllib.loads(chosen.definitions.read_text())
    try:
        todo = choose(chosen, definitions)
    except ValueError as error:
        print(f"benches/run.py: {error}", file=sys.stderr)
        return 2
    if chosen.list:
        print("\n".join(definition.name for definition in todo))
        return 0
    machine = describe_machine(HERE.parent)
    load = os.getloadavg()[0]
    record = Record(chosen.record, machine)
    folders = [folder for folder in (chosen.engines, HERE / "engines") if folder is not None]
    bench = Bench(record, folders=folders, repeat=chosen.repeat, timeout=chosen.timeout)
    standin = any(definition.corpus.name == STDLIB for definition in todo)
    print(f"{machine.cpu}; Python {machine.python}; {machine.rustc}; commit {machine.commit}")
    if standin:
        print(
            f"no shared data in {chosen.shared}: {STDLIB}, Python's own sources, stands in for it"
        )
    try:
        for definition in todo:
            bench.run(definition, stored_answer(definitions, definition))
    finally:
        missing = list(bench.missing)
        head = heading(machine, repeat=chosen.repeat, standin=standin, load=load, missing=missing)
        record.summarise(head + markdown_summary(bench.results))
    if record.csv is not None:
        print(f"\nadded to {record.csv} and {record.markdown}")
    return 1 if bench.ours_failed else 0


if __name__ == "__main__":
    sys.exit(main())
