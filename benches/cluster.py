"""The same work here and on Ray, with the same cores: time, CPU time, and the cost of a task.

    python benches/cluster.py --mixed FOLDER [--repeat N] [--record]

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
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from processes import family
from recording import describe_machine, host_name
from session import HERE, ROOT

SEPARATOR = "<|endoftext|>\n"
_TASKS = 2000


class Run(NamedTuple):
    """One run of a job: wall and CPU seconds, and the digest of what it wrote."""

    wall: float
    cpu: float
    digest: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mixed", required=True, type=Path, help="the 1 GB corpus")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--record", action="store_true", help="append to benches/record")
    arguments = parser.parse_args()
    import byteweld
    from byteweld.jobs.ray import RayRunner

    files = sorted(arguments.mixed.glob("*.txt"))
    size = sum(file.stat().st_size for file in files)
    tok = byteweld.load(_vocabulary(), pattern="cl100k", special_tokens={"<|endoftext|>": 100257})
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
                    {"job": name, "engine": where, "bytes": size, **run._asdict()} for run in runs
                ]
            _show(name, size, here, there, first[name])
        per_task = _per_task(runner)
        lines.append({"job": "empty task", "engine": "ray", "tasks": _TASKS, "wall": per_task})
        lines.append({"job": "start Ray", "engine": "ray", "wall": start_up})
    print(f"start of Ray {start_up:.1f} s; an empty task {per_task * 1e3:.2f} ms")
    print("results identical" if is_right else "WRONG: results differ")
    if arguments.record:
        _keep([{**line, "ok": is_right} for line in lines])
    return 0 if is_right else 1


def _keep(lines: list[dict[str, Any]]) -> None:
    machine = describe_machine(ROOT)
    path = HERE / "record" / host_name() / f"{machine.date[:10]}-cluster.jsonl"
    with path.open("a") as file:
        file.writelines(json.dumps({**asdict(machine), **line}) + "\n" for line in lines)


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
    before = sum(usage.cpu for _, usage in family(os.getpid()))
    started = time.perf_counter()
    job(runner)
    wall = time.perf_counter() - started
    cpu = sum(usage.cpu for _, usage in family(os.getpid())) - before
    digest = hashlib.sha256()
    for file in sorted(path for path in out.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(out)).encode())
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    for path in out.iterdir():
        shutil.rmtree(path)
    os.sync()  # what is written later is not to be paid by the next run
    return Run(wall, cpu, digest.hexdigest())


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
    return str(ROOT.parent / "shared/data/vocabs/tiktoken/cl100k_base.tiktoken.gz")


if __name__ == "__main__":
    sys.exit(main())
