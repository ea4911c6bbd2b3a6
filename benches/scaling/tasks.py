"""Recorded task times: what the simulation draws from, and how to record them without a cluster.

A file of tasks has a JSON object per line. Required:

    stage     "count", "reduce", "encode" or "write"
    bytes     what the task read: text (count, encode), saved runs (reduce), ids (write)
    seconds   from when a worker starts it until its files are complete

Optional, and kept: "rows" (distinct pre-tokens read or written), "files", "out_bytes", "worker",
"attempt", "queued" (seconds between submitting a task and its start), and facts about the run
("date", "commit", "cpu", "engine", "threads"). Lines with "ok": false are failures; they are not
drawn from. Unknown keys are allowed. Append, never overwrite.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAGES = ("count", "reduce", "encode", "write")
_BLOCK_BYTES = 1 << 20
FAN_IN = 6  # saved counts that a recorded reduce merges
REDUCES = 8  # of each size of slice


@dataclass(frozen=True)
class Task:
    """One recorded task."""

    stage: str
    bytes: int
    seconds: float


def read_tasks(paths: Iterable[Path]) -> list[Task]:
    """Read task files; raise ValueError with file and line if one is not as described above."""
    tasks = []
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{path}:{number}"
            try:
                values = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{where}: expected a JSON object, found {line!r}") from error
            if not isinstance(values, dict) or values.get("stage") not in STAGES:
                raise ValueError(f"{where}: expected a stage of {STAGES}, found {line!r}")
            if values.get("ok") is False:
                continue
            size, seconds = values.get("bytes"), values.get("seconds")
            if not _is_positive(size) or not _is_positive(seconds):
                raise ValueError(f"{where}: bytes and seconds must be greater than 0: {line!r}")
            tasks.append(Task(values["stage"], int(size), float(seconds)))
    return tasks


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


class Times:
    """Draws task times of one stage: a fixed part, and a rate of a recorded task, times bytes.

    The fixed part is the intercept of a least-squares line, if tasks of different sizes were
    recorded and it is positive.
    """

    def __init__(self, tasks: Sequence[Task], stage: str) -> None:
        chosen = [task for task in tasks if task.stage == stage]
        if not chosen:
            raise ValueError(f"no recorded tasks of stage {stage!r}")
        self.fixed = min(_intercept(chosen), min(task.seconds for task in chosen) / 2)
        self.rates = [(task.seconds - self.fixed) / task.bytes for task in chosen]

    @property
    def seconds_per_byte(self) -> float:
        return sum(self.rates) / len(self.rates)

    def draw(self, size: float, rng: random.Random) -> float:
        """A task whose bytes are all like those of one recorded task."""
        return self.fixed + size * rng.choice(self.rates)

    def mean(self, size: float) -> float:
        """A task whose bytes are a mixture of all."""
        return self.fixed + size * self.seconds_per_byte


def _intercept(tasks: Sequence[Task]) -> float:
    mean_x = sum(task.bytes for task in tasks) / len(tasks)
    mean_y = sum(task.seconds for task in tasks) / len(tasks)
    spread = sum((task.bytes - mean_x) ** 2 for task in tasks)
    if spread == 0:
        return 0.0
    slope = sum((task.bytes - mean_x) * (task.seconds - mean_y) for task in tasks) / spread
    return max(0.0, mean_y - slope * mean_x)


# ---------------------------------------------------------------------- recording


def record(slices: Sequence[Path], tokenizer: Any, scratch: Path) -> Iterator[dict[str, Any]]:
    """Run every stage on slices of a corpus with the local engine, on one thread.

    Slices follow each other in the corpus, as those of a cluster do, so their speeds differ as the
    texts do.
    """
    import byteweld
    from scaling.corpora import SEPARATOR

    saved = [scratch / f"counts-{number:04}" for number in range(len(slices))]
    for path, out in zip(slices, saved, strict=True):

        def count(path: Path = path, out: Path = out) -> dict[str, Any]:
            counts = byteweld.count(path, separator=SEPARATOR, num_threads=1)
            counts.save(out, overwrite=True)
            return {"rows": len(counts), "out_bytes": _size(out)}

        yield _timed("count", path.stat().st_size, count)
    rng = random.Random(0)
    for _ in range(REDUCES):
        group = rng.sample(saved, min(FAN_IN, len(saved)))

        def reduce(group: Sequence[Path] = group) -> dict[str, Any]:
            merged = byteweld.Counts.merge(group, num_threads=1)
            merged.save(scratch / "merged", overwrite=True)
            return {"files": 16 * len(group), "out_bytes": _size(scratch / "merged")}

        yield _timed("reduce", sum(map(_size, group)), reduce)
    for path in slices:
        out = scratch / "encoded"
        shutil.rmtree(out, ignore_errors=True)

        def encode(path: Path = path, out: Path = out) -> dict[str, Any]:
            options: dict[str, Any] = {"separator": SEPARATOR, "eot": "none", "num_threads": 1}
            made = byteweld.tokenize(path, tokenizer, out=out, **options)
            return {"tokens": made.tokens, "out_bytes": _size(out)}

        yield _timed("encode", path.stat().st_size, encode)
        ids = out / "train.bin"
        yield _timed("write", ids.stat().st_size, lambda ids=ids: copy(ids, scratch / "shard.bin"))
    shutil.rmtree(scratch)


def copy(source: Path, target: Path) -> dict[str, Any]:
    """Copy ids into a shard, with SHA-256, and wait for the disk: what `write` does at least."""
    found = hashlib.sha256()
    with source.open("rb") as file, target.open("wb") as out:
        while block := file.read(_BLOCK_BYTES):
            found.update(block)
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    return {"out_bytes": target.stat().st_size}


def _timed(stage: str, size: int, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    started = time.perf_counter()
    facts = run()
    seconds = time.perf_counter() - started
    return {"stage": stage, "bytes": size, "seconds": round(seconds, 6), **facts}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
