"""From a corpus to token files on disk: byteweld and its peers, side by side.

    python benches/dataset.py --peers VENV [--corpus FOLDER] [--only NAME] [--repeat N]

docs/benchmarks.md explains the method. The corpus is made by dataset_corpus.py if FOLDER is empty.
The exit status is 0 if all of byteweld's ids are right, 1 if not.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch import Engine, find_engine
from recording import (
    Line,
    Record,
    Result,
    Row,
    describe_machine,
    markdown_summary,
    plain_table,
    summarize_rows,
)
from targets import check_targets, markdown_checks, plain_checks, read_targets

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OURS = "byteweld"
_SAMPLE_SECONDS = 0.05
_TIMEOUT_SECONDS = 3600


@dataclass(frozen=True)
class Measured:
    """The times of a run, from the start of its process until its files are on disk."""

    wall: float
    cpu: float
    peak: int
    error: str = ""


# ---------------------------------------------------------------------- one run


def measure(command: Sequence[str], out: Path, threads: int) -> Measured:
    """Run a command that writes to `out`, on as many CPUs as threads."""
    number = str(threads)
    environment = os.environ | {
        "RAYON_NUM_THREADS": number,
        "OMP_NUM_THREADS": number,
        # Pipelines with several processes: each encodes on one thread.
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": "0",
    }
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    os.sync()  # what an earlier run wrote must not slow this one
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=said,
            stderr=said,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
        with _Family(process.pid) as family, _Stopper(process.pid):
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode == 0:
            _sync(out)
        wall = time.perf_counter() - started
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    error = "" if process.returncode == 0 else f"exit {process.returncode}: {' '.join(lines[-1:])}"
    peak = max(family.peak, usage.ru_maxrss * 1024)
    return Measured(wall, max(family.cpu, usage.ru_utime + usage.ru_stime), peak, error)


def _sync(folder: Path) -> None:
    """Wait until all files of a folder are on disk, whether or not their writer did."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


class _Stopper:
    """Kills a run, with the processes that it started, after an hour."""

    def __init__(self, pid: int) -> None:
        self._timer = threading.Timer(_TIMEOUT_SECONDS, self._stop, [pid])

    @staticmethod
    def _stop(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # its own group: it was started in a new session

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


class _Family:
    """Samples a process and its descendants: the peak of their resident memory, their CPU time.

    `wait4` does not know the CPU time of processes that nobody waited for.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._ticks: dict[int, int] = {}
        self.peak = 0

    @property
    def cpu(self) -> float:
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> _Family:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            resident = 0
            for pid in _descendants(self._pid):
                try:
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                except OSError:  # it has just ended
                    continue
                self._ticks[pid] = int(fields[11]) + int(fields[12])
                resident += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
            self.peak = max(self.peak, resident)


def _descendants(pid: int) -> Iterator[int]:
    """A process, and all that it and its children started."""
    pending = [pid]
    while pending:
        parent = pending.pop()
        yield parent
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                pending += map(int, (task / "children").read_text().split())


# ---------------------------------------------------------------------- a definition


class Runner:
    """Measures every format with every vocabulary and pipeline."""

    def __init__(self, definitions: Mapping[str, Any], chosen: argparse.Namespace) -> None:
        self._definitions = definitions
        self._chosen = chosen
        self._threads: int = definitions["threads"]
        self._facts = json.loads((chosen.corpus / "corpus.json").read_bytes())
        self._cache: Path = chosen.cache
        self._cache.mkdir(parents=True, exist_ok=True)
        record = None if chosen.no_record else HERE / "record"
        self.machine = describe_machine(ROOT)
        self._record = Record(record, self.machine, suffix="-dataset")
        self._engines: dict[str, Engine] = {}
        for name in [*definitions["pipelines"], definitions["truth"]]:
            engine = find_engine(name, [HERE / "pipelines"], chosen.peers)
            if engine.version is None:
                print(f"{name} is not installed: {engine.remedy}")
            else:
                self._engines[name] = engine
        self.results: list[Result] = []
        self.figures: dict[tuple[str, str], Line] = {}
        self.ours_failed = False

    @property
    def record(self) -> Record:
        return self._record

    def run(self) -> None:
        megabytes = round(self._facts["bytes"] / 1e6)
        for vocab, spec in self._definitions["vocabs"].items():
            for kind in self._definitions["formats"]:
                name = f"dataset/{kind}-{megabytes}MB/{vocab}/{self._threads}-threads"
                if all(part in name for part in self._chosen.only):
                    job = self._vocab(vocab, spec) | {"format": kind, "threads": self._threads}
                    self._run_one(name, job)

    def _vocab(self, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The vocabulary's files, unpacked."""
        vocabs = self._chosen.shared / "vocabs"
        index = json.loads((vocabs / "index.json").read_bytes())["vocabs"]
        entry = next(entry for entry in index if entry["name"] == spec["ranks"])
        rank_file = self._cache / f"{spec['ranks']}.tiktoken"
        tokenizer_json = self._cache / f"{name}.tokenizer.json"
        for packed, path in ((entry["file"], rank_file), (spec["json"], tokenizer_json)):
            path.write_bytes(gzip.decompress((vocabs / packed).read_bytes()))
        return {
            "vocab": name,
            "rank_file": str(rank_file),
            "tokenizer_json": str(tokenizer_json),
            "pattern": entry["pat_str"],
            "scheme": spec["scheme"],
            "dtype": spec["dtype"],
            "vocab_size": 2 ** (16 if spec["dtype"] == "uint16" else 32) - 1000,
        }

    def _run_one(self, name: str, job: Mapping[str, Any]) -> None:
        print(f"\n{name}", flush=True)
        right = self._right(job)
        problems: list[str] = []
        rows: list[Row] = []
        wrong: set[str] = set()
        left = {
            engine: min(runs, self._chosen.repeat or runs)
            for engine, runs in self._definitions["pipelines"].items()
            if engine in self._engines
            and (engine in self._chosen.engine or not self._chosen.engine)
        }
        for round_number in range(max(left.values(), default=0)):
            names = [engine for engine, runs in left.items() if runs > round_number]
            shift = round_number % max(1, len(names))
            for engine in names[shift:] + names[:shift]:
                if engine in wrong:
                    continue
                row, problem = self._measure(name, engine, job, right, round_number + 1)
                rows.append(row)
                self._record.add([row])
                shown = f"{row.wall_seconds:.2f} s" if row.wall_seconds is not None else problem
                print(f"  run {round_number + 1} of {engine}: {shown}", flush=True)
                if problem:
                    wrong.add(engine)
                    problems.append(problem)
        self.ours_failed |= OURS in wrong
        good = [row for row in rows if row.engine not in wrong]
        lines = summarize_rows(good, "wall", OURS)
        if lines:
            print(plain_table(lines))
        self.figures |= {(name, line.engine): line for line in lines}
        about = "A corpus becomes token files on disk. Seconds are wall time."
        self.results.append(Result(name, about, tuple(left), lines, problems))

    def _measure(
        self, name: str, engine_name: str, job: Mapping[str, Any], right: str, run: int
    ) -> tuple[Row, str]:
        engine = self._engines[engine_name]
        found, digest = self._once(engine, job)
        verdict = "error" if found.error else "yes" if digest == right else "WRONG"
        problem = found.error if found.error else "" if verdict == "yes" else f"ids {digest}"
        is_right = verdict == "yes"
        row = Row(
            engine=engine.name,
            version=engine.version or "",
            definition=name,
            corpus_sha256=self._facts["sha256"],
            text_bytes=self._facts["bytes"],
            threads=self._threads,
            run=run,
            wall_seconds=found.wall if is_right else None,
            cpu_seconds=found.cpu if is_right else None,
            peak_rss_bytes=found.peak if is_right else None,
            digest=digest,
            ok=verdict,  # type: ignore[arg-type]
        )
        return row, f"{engine_name}: {problem}" if problem else ""

    def _once(self, engine: Engine, job: Mapping[str, Any]) -> tuple[Measured, str]:
        """Run a pipeline, and digest its ids; its files are removed."""
        folder = self._chosen.corpus / job["format"]
        files = sorted(map(str, folder.iterdir()))
        _warm(files)
        out = self._cache / "out"
        shutil.rmtree(out, ignore_errors=True)
        # byteweld makes its folder itself.
        if engine.name != OURS:
            out.mkdir()
        full = json.dumps({**job, "files": files, "out": str(out)})
        worker = [engine.python, "-P", str(HERE / "dataset_worker.py"), str(engine.file)]
        found = measure([*worker, "tokenize", full], out, self._threads)
        digest = ""
        if not found.error:
            done = subprocess.run([*worker, "digest", full], capture_output=True, text=True)
            if done.returncode != 0:
                lines = done.stderr.strip().splitlines()
                found = Measured(found.wall, found.cpu, found.peak, " ".join(lines[-1:]))
            else:
                digest = json.loads(done.stdout.splitlines()[-1])["digest"]
        shutil.rmtree(out, ignore_errors=True)
        return found, digest

    def _right(self, job: Mapping[str, Any]) -> str:
        """The digest of the right ids; computed once for a corpus and a vocabulary."""
        path = self._cache / "dataset-answers.json"
        answers = json.loads(path.read_bytes()) if path.exists() else {}
        key = f"{self._facts['sha256']} {job['vocab']}"
        if key not in answers:
            engine = self._engines[self._definitions["truth"]]
            found, digest = self._once(engine, {**job, "format": "jsonl"})
            if found.error:
                raise SystemExit(f"{engine.name} gave no answer to compare with: {found.error}")
            answers[key] = digest
            path.write_text(json.dumps(answers, indent=1) + "\n")
        return str(answers[key])


def _warm(files: Sequence[str]) -> None:
    """Read the corpus once, so that no pipeline waits for the disk."""
    for file in files:
        with Path(file).open("rb") as opened:
            while opened.read(1 << 24):
                pass


# ---------------------------------------------------------------------- command line


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--definitions", type=Path, default=HERE / "datasets.toml")
    add("--peers", type=Path, metavar="VENV", help="a virtual environment with the peers")
    add("--cache", type=Path, default=HERE / ".cache" / "dataset")
    add("--corpus", type=Path, help="a folder that dataset_corpus.py wrote; made if missing")
    add("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    add("--only", action="append", default=[], metavar="NAME", help="part of a definition's name")
    add("--engine", action="append", default=[], metavar="NAME", help="only this pipeline")
    add("--repeat", type=int, help="the maximum number of runs of each pipeline")
    add("--no-record", action="store_true", help="record nothing")
    return parser.parse_args(arguments)


def main() -> int:
    chosen = parse()
    definitions = tomllib.loads(chosen.definitions.read_text())
    chosen.corpus = chosen.corpus or chosen.cache / "corpus"
    if not (chosen.corpus / "corpus.json").exists():
        python = str(chosen.peers / "bin" / "python") if chosen.peers else sys.executable
        sizes = ["--mb", str(definitions["corpus_mb"]), "--file-mb", str(definitions["file_mb"])]
        maker = [python, str(HERE / "dataset_corpus.py"), str(chosen.corpus), *sizes]
        subprocess.run([*maker, "--shared", str(chosen.shared)], check=True)
    load = os.getloadavg()[0]
    runner = Runner(definitions, chosen)
    runner.run()
    checks = check_targets(read_targets(definitions), runner.figures)
    print("\n" + plain_checks(checks))
    machine = runner.machine
    runner.record.summarize(
        f"\n## {machine.date}, commit {machine.commit}\n\n"
        f"{machine.cpu}; Python {machine.python}; load {load:.1f} at the start.\n"
        "Medians (and bests), interleaved, each run in a new process; ×2 is twice our time. The "
        "clock runs from the start of the process until its files are on disk. The ids of every "
        "run were compared with tiktoken's. Memory is the peak of the sum over all processes.\n"
        + markdown_summary(runner.results)
        + markdown_checks(checks)
    )
    return 1 if runner.ours_failed else 0


if __name__ == "__main__":
    sys.exit(main())
