"""What counting, training and tokenizing take at scale: measured, extrapolated, simulated.

    python benches/scale.py heaps        distinct pre-tokens by bytes of text; appends to the record
    python benches/scale.py rates        rates on one core; appends to the record
    python benches/scale.py pruning      what pruning changes in a vocabulary; appends to the record
    python benches/scale.py tasks        times of tasks on slices; appends to the record
    python benches/scale.py estimate     1 TB, 100 TB, all of Common Crawl
    python benches/scale.py simulate     1,000 workers: stragglers, failures, sizes of slices
    python benches/scale.py chart        writes docs/pictures/scale.svg

`estimate`, `simulate` and `chart` only read the newest record. Parameters are in scale.toml;
`--set NAME=VALUE` changes one. docs/benchmarks.md explains the method.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recording import describe_machine, host_name
from scaling import corpora, heaps, parameters, pruning, rates, tasks

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CHART = ROOT / "docs" / "pictures" / "scale.svg"
_TASK_BYTES = (32 << 20, 128 << 20)


# ---------------------------------------------------------------------- measuring


class Recorder:
    """Appends lines of JSON to a file of the day, each with the facts of the machine."""

    def __init__(self, folder: Path, suffix: str, *, store: bool) -> None:
        self.facts: dict[str, Any] = asdict(describe_machine(ROOT))
        self.path = folder / host_name() / f"{self.facts['date'][:10]}-{suffix}.jsonl"
        self._store = store

    def add(self, line: str) -> None:
        if self._store:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(line + "\n")


def measure_heaps(chosen: argparse.Namespace) -> int:
    recorder = Recorder(chosen.record, "heaps", store=not chosen.no_record)
    found: dict[str, list[heaps.Point]] = {}
    scratch = chosen.cache / "heaps"
    for name in chosen.corpus or corpora.NAMES:
        whole = corpora.documents(name, chosen.mixed, chosen.shared)
        sha256 = corpora.digest(whole)
        for point in heaps.measure(name, whole, scratch):
            recorder.add(heaps.as_line(point, recorder.facts, sha256))
            found.setdefault(name, []).append(point)
            print(f"{name}: {point.bytes:,} bytes, {point.distinct:,} distinct", file=sys.stderr)
    print(heaps.report({name: heaps.average(points) for name, points in found.items()}))
    return 0


def measure_rates(chosen: argparse.Namespace) -> int:
    recorder = Recorder(chosen.record, "rates", store=not chosen.no_record)
    whole = corpora.documents("mixed", chosen.mixed, chosen.shared)
    sha256 = corpora.digest(whole)
    jobs = rates.prepare(whole, chosen.cache / f"rates-{sha256[:16]}")
    del whole
    vocab = _vocabulary(chosen)
    lines: list[dict[str, Any]] = []
    wrong = False
    for run in range(max(map(rates.repeats, jobs))):
        for job in jobs:
            if run >= min(rates.repeats(job), chosen.repeat or 99):
                continue
            full = {**job, "tokenizer": str(vocab), "scratch": str(chosen.cache / "run")}
            found = _run_alone(full)
            job["right"] = found["answer"] if job["right"] is None else job["right"]
            is_right = found["answer"] == job["right"]
            wrong |= not is_right
            if not is_right:
                found = {"answer": found["answer"]}
            kept = {key: job[key] for key in ("name", "measure", "bytes", "rows") if key in job}
            kept |= {key: job[key] for key in ("vocab_size", "distinct_bytes") if key in job}
            line = {**recorder.facts, "corpus_sha256": sha256, **kept, "run": run + 1, **found}
            lines.append(line | {"ok": "yes" if is_right else "WRONG"})
            recorder.add(json.dumps(lines[-1]))
            shown = f"{found['wall_seconds']:.3f} s" if is_right else f"WRONG: {found['answer']}"
            print(f"run {run + 1} of {job['name']}: {shown}", file=sys.stderr)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if line["ok"] == "yes":
            by_name.setdefault(line["name"], []).append(line)
    print(rates.report(by_name))
    return 1 if wrong else 0


def _run_alone(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job in a new process on one CPU."""
    cpu = max(os.sched_getaffinity(0))
    done = subprocess.run(
        [sys.executable, str(HERE / "scale.py"), "run-job", json.dumps(job)],
        env=os.environ | {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: os.sched_setaffinity(0, [cpu]),
        stdout=subprocess.PIPE,
        check=True,
    )
    return dict(json.loads(done.stdout))


def _vocabulary(chosen: argparse.Namespace) -> Path:
    """cl100k as a tokenizer.json, so that it has its pattern."""
    path = chosen.cache / "cl100k.json"
    if not path.exists():
        import byteweld

        ranks = chosen.cache / "cl100k_base.tiktoken"
        packed = chosen.shared / "vocabs" / "tiktoken" / "cl100k_base.tiktoken.gz"
        chosen.cache.mkdir(parents=True, exist_ok=True)
        ranks.write_bytes(gzip.decompress(packed.read_bytes()))
        byteweld.load(ranks).save(path)
    return Path(path)


def measure_tasks(chosen: argparse.Namespace) -> int:
    import byteweld

    recorder = Recorder(chosen.record, "tasks", store=not chosen.no_record)
    facts = recorder.facts | {"engine": "local", "threads": 1}
    whole = corpora.documents("mixed", chosen.mixed, chosen.shared)
    tokenizer = byteweld.load(_vocabulary(chosen))
    found = []
    for size in _TASK_BYTES:
        folder = chosen.cache / f"slices-{size}"
        slices = corpora.write_slices(whole, folder, size)
        for line in tasks.record(slices, tokenizer, chosen.cache / "tasks"):
            found.append(tasks.Task(line["stage"], line["bytes"], line["seconds"]))
            recorder.add(json.dumps({**facts, **line}))
    print(show_tasks(found))
    return 0


def measure_pruning(chosen: argparse.Namespace) -> int:
    recorder = Recorder(chosen.record, "pruning", store=not chosen.no_record)
    whole = corpora.documents("mixed", chosen.mixed, chosen.shared)
    facts = recorder.facts | {"corpus_sha256": corpora.digest(whole), "part": chosen.part}
    if chosen.part > 1:
        whole = corpora.sample(corpora.shuffled(whole), sum(map(len, whole)) // chosen.part)
    facts["bytes"] = sum(map(len, whole))
    found = []
    for line in pruning.measure(whole):
        found.append(line)
        recorder.add(json.dumps({**facts, **line}))
    print(pruning.report(found))
    return 0


def show_tasks(found: Sequence[tasks.Task]) -> str:
    lines = ["stage    tasks   fixed s   MB/s of the slowest, median and fastest task"]
    for stage in tasks.STAGES:
        times = tasks.Times(found, stage)
        speeds = sorted(1e-6 / rate for rate in times.rates)
        shown = [speeds[0], speeds[len(speeds) // 2], speeds[-1]]
        lines.append(
            f"{stage:<8} {len(speeds):5} {times.fixed:9.3f}   "
            + " ".join(f"{speed:8.1f}" for speed in shown)
        )
    return "\n".join(lines)


# ---------------------------------------------------------------------- computing


def estimate(chosen: argparse.Namespace) -> int:
    from scaling import estimate as module

    values = parameters.read(chosen.parameters, chosen.set)
    points = heaps.read_points(_newest(chosen.record, "heaps"))
    measured = rates.read_rates(_newest(chosen.record, "rates"))
    model = module.Model.from_record(points[chosen.law], measured)
    print(module.report(model, values))
    return 0


def simulate(chosen: argparse.Namespace) -> int:
    from scaling import scenario

    print(scenario.report(_job(chosen)))
    return 0


def draw(chosen: argparse.Namespace) -> int:
    from scaling import chart, scenario

    points = heaps.read_points(_newest(chosen.record, "heaps"))
    CHART.write_text(chart.draw(points, scenario.by_slice(_job(chosen))))
    print(f"wrote {CHART.relative_to(ROOT)}")
    return 0


def _job(chosen: argparse.Namespace) -> Any:
    from scaling import scenario

    values = parameters.read(chosen.parameters, chosen.set)
    found = tasks.read_tasks(chosen.tasks or [_newest(chosen.record, "tasks")])
    points = heaps.read_points(_newest(chosen.record, "heaps"))[chosen.law]
    return scenario.Job(values, found, points, chosen.seed)


def _newest(folder: Path, suffix: str) -> Path:
    """The newest record of a kind, of any host."""
    found = sorted(folder.glob(f"*/*-{suffix}.jsonl"), key=lambda path: path.name)
    if not found:
        sys.exit(f"{folder} has no record of {suffix}: run `python benches/scale.py {suffix}`")
    return found[-1]


# ---------------------------------------------------------------------- command line


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, run in _VERBS.items():
        verb = verbs.add_parser(name)
        verb.set_defaults(run=run)
        add = verb.add_argument
        add("--record", type=Path, default=HERE / "record")
        if name in ("heaps", "rates", "pruning", "tasks"):
            add("--mixed", type=Path, default=HERE / ".cache" / "mixed", help="see README.md")
            add("--shared", type=Path, default=ROOT.parent / "shared" / "data")
            add("--cache", type=Path, default=HERE / ".cache" / "scale")
            add("--no-record", action="store_true", help="record nothing")
        else:
            add("--parameters", type=Path, default=HERE / "scale.toml")
            add("--set", action="append", default=[], metavar="NAME=VALUE")
            add("--law", default="mixed", choices=corpora.NAMES, help="whose growth to extrapolate")
        if name == "heaps":
            add("--corpus", action="append", choices=corpora.NAMES, help="only this corpus")
        if name == "rates":
            add("--repeat", type=int, help="the maximum number of runs of each measure")
        if name == "pruning":
            add("--part", type=int, default=1, help="take one in this many bytes of the corpus")
        if name in ("simulate", "chart"):
            add("--tasks", action="append", type=Path, help="a file of recorded tasks")
            add("--seed", type=int, default=0)
    return parser.parse_args(arguments)


_VERBS = {
    "heaps": measure_heaps,
    "rates": measure_rates,
    "pruning": measure_pruning,
    "tasks": measure_tasks,
    "estimate": estimate,
    "simulate": simulate,
    "chart": draw,
}


def main() -> int:
    if sys.argv[1:2] == ["run-job"]:  # a process of `rates`
        print(json.dumps(rates.run_job(json.loads(sys.argv[2]))))
        return 0
    chosen = parse()
    try:
        return int(chosen.run(chosen))
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ValueError as error:
        print(f"scale.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
