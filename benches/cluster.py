"""The same work here and on Ray, with the same cores: time, CPU time, and the cost of a task.

    python benches/cluster.py --mixed FOLDER [--repeat N] [--record]
    python benches/cluster.py --mixed FOLDER --tasks [--record]     times of tasks, for scale.py

Run it with an environment that has Ray (`.venv-cluster`). docs/benchmarks.md explains the method.
The exit status is 0 if all results on Ray are, byte for byte, those made here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from recording import describe_machine, host_name

HERE = Path(__file__).resolve().parent
SEPARATOR = "<|endoftext|>\n"
_TASKS = 2000
_TICKS = os.sysconf("SC_CLK_TCK")


class Run(NamedTuple):
    """One run of a job: wall and CPU seconds, and the digest of what it wrote."""

    wall: float
    cpu: float
    digest: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mixed", required=True, type=Path, help="the 1 GB corpus")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--tasks", action="store_true", help="record the time of each task")
    parser.add_argument("--record", action="store_true", help="append to benches/record")
    arguments = parser.parse_args()
    import byteweld
    from byteweld.jobs.ray import RayRunner

    files = sorted(arguments.mixed.glob("*.txt"))
    size = sum(file.stat().st_size for file in files)
    tok = byteweld.load(_vocabulary(), pattern="cl100k", special_tokens={"<|endoftext|>": 100257})
    if arguments.tasks:
        lines = _tasks(byteweld, files, tok)
        _keep(lines, "ray-tasks", record=arguments.record)
        return 0
    lines = []
    is_right = True
    started = time.perf_counter()
    with RayRunner() as runner, tempfile.TemporaryDirectory(dir=HERE / ".cache") as made:
        start_up = time.perf_counter() - started
        out = Path(made)
        jobs = _jobs(byteweld, files, tok, out)
        first = {name: _run(job, runner, out) for name, job in jobs.items()}
        for name, job in jobs.items():
            here: list[Run] = []
            there: list[Run] = []
            for _ in range(arguments.repeat):
                here.append(_run(job, None, out))
                there.append(_run(job, runner, out))
            is_right &= {run.digest for run in here} == {
                run.digest for run in (*there, first[name])
            }
            for where, runs in (("local", here), ("ray", there), ("ray, first", [first[name]])):
                lines += [
                    {"job": name, "runner": where, "bytes": size, **run._asdict()} for run in runs
                ]
            _show(name, size, here, there, first[name])
        per_task = _per_task(runner)
        lines.append({"job": "empty task", "runner": "ray", "tasks": _TASKS, "wall": per_task})
        lines.append({"job": "start Ray", "runner": "ray", "wall": start_up})
    print(f"start of Ray {start_up:.1f} s; an empty task {per_task * 1e3:.2f} ms")
    print("results identical" if is_right else "WRONG: results differ")
    _keep([{**line, "ok": is_right} for line in lines], "cluster", record=arguments.record)
    return 0 if is_right else 1


def _keep(lines: list[dict[str, Any]], name: str, *, record: bool) -> None:
    if record:
        machine = describe_machine(HERE.parent)
        path = HERE / "record" / host_name() / f"{machine.date[:10]}-{name}.jsonl"
        with path.open("a") as file:
            for line in lines:
                file.write(json.dumps({**asdict(machine), **line}) + "\n")


_STAGES = {
    "_CountSlice": "count",
    "_MergeRuns": "reduce",
    "EncodeSlice": "encode",
    "WriteShard": "write",
}


def _size(stage: str, function: Any, item: Any) -> int:
    """Return what a task reads, in bytes."""
    if stage == "reduce":
        return sum(function.work.folder.size(run.name) for run in item.runs)
    return item.tokens * 4 if stage == "write" else item.size


class _Done(NamedTuple):
    """The result of a task, what it read, how long it took, and the process."""

    result: Any
    bytes: int
    seconds: float
    worker: int


class _Timed(NamedTuple):
    """A task that also returns how long it took in its worker."""

    function: Callable[[Any], Any]

    def __call__(self, pair: tuple[Any, int]) -> _Done:
        item, size = pair
        started = time.perf_counter()
        result = self.function(item)
        return _Done(result, size, round(time.perf_counter() - started, 6), os.getpid())


def _tasks(byteweld: Any, files: list[Path], tok: Any) -> list[dict[str, Any]]:
    """Run counting and tokenizing with two sizes of slices, and return a line for each task."""
    from byteweld.jobs.ray import RayRunner

    lines: list[dict[str, Any]] = []

    class TimingRunner(RayRunner):
        def _run(self, function: Any, items: Any) -> Iterator[Any]:
            stage = _STAGES.get(type(function).__name__)
            pairs = [(item, 0 if stage is None else _size(stage, function, item)) for item in items]
            for found in super()._run(_Timed(function), pairs):
                if not isinstance(found, _Done):
                    yield found
                    continue
                if stage is not None:
                    facts = {"stage": stage, "bytes": found.bytes, "seconds": found.seconds}
                    lines.append({**facts, "runner": "ray", "threads": 1, "worker": found.worker})
                yield found.result

    for slice_bytes in (32 << 20, 128 << 20):
        with tempfile.TemporaryDirectory(dir=HERE / ".cache") as made:
            with TimingRunner(slice_bytes=slice_bytes) as runner:
                for name, job in _jobs(byteweld, files, tok, Path(made)).items():
                    if name != "tokenize, shuffled":
                        job(runner)
    for stage in ("count", "reduce", "encode", "write"):
        some = [line for line in lines if line["stage"] == stage]
        rate = sum(line["bytes"] for line in some) / sum(line["seconds"] for line in some) / 1e6
        print(f"{stage:<8} {len(some):4} tasks {rate:7.1f} MB/s")
    return lines


def _jobs(byteweld: Any, files: list[Path], tok: Any, out: Path) -> dict[str, Callable[..., Any]]:
    def count(runner: Any) -> None:
        from byteweld.corpus import open_corpus
        from byteweld.jobs.counting import counted, publish

        recipe = byteweld.RECIPES["modern"]
        if runner is None:
            byteweld.count(files).save(out / "counts")
            return
        with counted(runner, open_corpus(files), recipe, near=out / "counts") as work:
            publish(work, out / "counts", overwrite=False)

    def tokenize(runner: Any, **options: Any) -> None:
        byteweld.tokenize(
            files,
            tok,
            out=out / "data",
            separator=SEPARATOR,
            runner="local" if runner is None else runner,
            **options,
        )

    def plain(runner: Any) -> None:
        tokenize(runner, shard_tokens=50_000_000)

    def shuffled(runner: Any) -> None:
        tokenize(runner, shard_tokens=50_000_000, shuffle=True, validation=0.01)

    return {"count": count, "tokenize": plain, "tokenize, shuffled": shuffled}


def _run(job: Callable[..., Any], runner: Any, out: Path) -> Run:
    before = _cpu_seconds()
    started = time.perf_counter()
    job(runner)
    wall = time.perf_counter() - started
    cpu = _cpu_seconds() - before
    digest = hashlib.sha256()
    for file in sorted(path for path in out.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(out)).encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    for path in out.iterdir():
        shutil.rmtree(path)
    os.sync()  # what is written later is not to be paid by the next run
    return Run(wall, cpu, digest.hexdigest())


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of all that it has started, Ray's included."""
    parents: dict[int, int] = {}
    times: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            times[int(folder.name)] = (int(fields[11]) + int(fields[12])) / _TICKS
    ours = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        if not more:
            return sum(times[pid] for pid in ours if pid in times)
        ours |= more


def _per_task(runner: Any) -> float:
    list(runner.map_unordered(_nothing, range(100)))
    started = time.perf_counter()
    assert len(list(runner.map_unordered(_nothing, range(_TASKS)))) == _TASKS
    return (time.perf_counter() - started) / _TASKS


def _nothing(item: int) -> int:
    return item


def _show(name: str, size: int, here: list[Run], there: list[Run], first: Run) -> None:
    def best(runs: list[Run]) -> float:
        return min(run.wall for run in runs)

    def median(runs: list[Run], what: str) -> float:
        return statistics.median(getattr(run, what) for run in runs)

    ratio = median(there, "wall") / median(here, "wall")
    gigabytes = size / 1e9
    print(
        f"{name:<20} local {median(here, 'wall'):6.2f} s, {median(here, 'cpu') / gigabytes:5.1f} "
        f"CPU s/GB   ray {median(there, 'wall'):6.2f} s, {median(there, 'cpu') / gigabytes:5.1f} "
        f"CPU s/GB   {ratio:.2f} times (best {best(there) / best(here):.2f}); "
        f"first {first.wall:.2f} s"
    )


def _vocabulary() -> str:
    return str(HERE.parent.parent / "shared/data/vocabs/tiktoken/cl100k_base.tiktoken.gz")


if __name__ == "__main__":
    sys.exit(main())
