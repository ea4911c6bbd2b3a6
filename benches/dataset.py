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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch import Engine, find_engine
from processes import Sampler
from recording import Row
from session import HERE, OURS, ROOT, Session
from targets import read_targets

_TIMEOUT_SECONDS = 3600
_ABOUT = "A corpus becomes token files on disk. Seconds are wall time."
_METHOD = (
    "Medians (and bests), interleaved, each run in a new process; ×2 is twice our time. The "
    "clock runs from the start of the process until its files are on disk. The ids of every "
    "run were compared with tiktoken's. Memory is the peak of the sum over all processes."
)


@dataclass(frozen=True)
class Measured:
    """The times of a run, from the start of its process until its files are on disk."""

    wall: float
    cpu: float
    peak: int
    error: str = ""


# ---------------------------------------------------------------------- one run


def measure(command: Sequence[str], out: Path, threads: int) -> Measured:
    """Run a command that writes to `out`, on as many CPUs as threads, for an hour at most."""
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
        stopper = threading.Timer(_TIMEOUT_SECONDS, _kill, [process.pid])
        stopper.start()
        with Sampler(process.pid) as sampler:
            _, status, usage = os.wait4(process.pid, 0)
        stopper.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode == 0:
            _sync(out)
        wall = time.perf_counter() - started
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    error = "" if process.returncode == 0 else f"exit {process.returncode}: {' '.join(lines[-1:])}"
    peak = max(sampler.peak, usage.ru_maxrss * 1024)
    return Measured(wall, max(sampler.cpu, usage.ru_utime + usage.ru_stime), peak, error)


def _sync(folder: Path) -> None:
    """Wait until all files of a folder are on disk, whether or not their writer did."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # its own group: it was started in a new session


# ---------------------------------------------------------------------- a definition


class Pipelines:
    """Measures every format with every vocabulary and pipeline."""

    def __init__(self, definitions: Mapping[str, Any], chosen: argparse.Namespace) -> None:
        self._definitions = definitions
        self._chosen = chosen
        self._threads: int = definitions["threads"]
        self._facts = json.loads((chosen.corpus / "corpus.json").read_bytes())
        self._cache: Path = chosen.cache
        self._cache.mkdir(parents=True, exist_ok=True)
        self.session = Session(None if chosen.no_record else HERE / "record", "-dataset")
        self._engines: dict[str, Engine] = {}
        for name in [*definitions["pipelines"], definitions["truth"]]:
            engine = find_engine(name, [HERE / "pipelines"], chosen.peers)
            if engine.version is None:
                print(f"{name} is not installed: {engine.remedy}")
            else:
                self._engines[name] = engine

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

        def measured(engine: str, run: int) -> tuple[list[Row], str]:
            row, problem = self._measure(name, engine, job, right, run)
            shown = f"{row.wall_seconds:.2f} s" if row.wall_seconds is not None else problem
            print(f"  run {run} of {engine}: {shown}", flush=True)
            return [row], problem

        chosen = self._chosen.engine or self._definitions["pipelines"]
        most = {
            engine: min(runs, self._chosen.repeat or runs)
            for engine, runs in self._definitions["pipelines"].items()
            if engine in self._engines and engine in chosen
        }
        rows, problems = self.session.interleave(most, measured)
        self.session.report(name, _ABOUT, tuple(most), rows, problems, clock="wall")

    def _measure(
        self, name: str, engine_name: str, job: Mapping[str, Any], right: str, run: int
    ) -> tuple[Row, str]:
        engine = self._engines[engine_name]
        found, digest = self._once(engine, job)
        is_right = not found.error and digest == right
        problem = "" if is_right else f"{engine_name}: {found.error or f'ids {digest}'}"
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
            ok="error" if found.error else "yes" if is_right else "WRONG",
        )
        return row, problem

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
    pipelines = Pipelines(definitions, chosen)
    try:
        pipelines.run()
    finally:
        pipelines.session.summarize(_METHOD)
    pipelines.session.check(read_targets(definitions))
    return pipelines.session.finish()


if __name__ == "__main__":
    sys.exit(main())
