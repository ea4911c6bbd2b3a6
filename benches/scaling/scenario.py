"""What the simulation is asked: sizes of slices, failure rates, partitions, levels, copies.

A run counts all slices, then reduces the partitions. Task times come from recorded ones, scaled by
bytes. A slice is as fast or slow as one recorded task: neighboring text is alike, so a large slice
does not average much. A reduce reads runs of all slices, so it has the mean rate. Tasks recorded on
one machine lack the time to reach the shared folder, so it is added: `store_mb_per_second` and
`file_open_seconds`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from types import SimpleNamespace
from typing import Any

from scaling import heaps
from scaling.estimate import table
from scaling.simulate import Cluster, Outcome, simulate
from scaling.tasks import Task, Times

_MIB = 1 << 20
_REDUCE_RUNS = 25  # few tasks, so chance matters more, and a run costs little


@dataclass(frozen=True)
class Reduced:
    """Makespans of a reduce, in seconds, over several runs."""

    median: float
    worst: float  # of ten runs, one is worse


class Job:
    """Makes the tasks of a corpus, and runs them."""

    def __init__(
        self,
        values: SimpleNamespace,
        recorded: Sequence[Task],
        points: Sequence[heaps.Point],
        seed: int,
    ) -> None:
        self.values = values
        self._seed = seed
        self._times = {stage: Times(recorded, stage) for stage in ("count", "reduce")}
        self._saved = heaps.Saved.of(points)
        self._store = values.store_mb_per_second * 1e6

    def slices(self, slice_mib: float) -> int:
        return math.ceil(self.values.simulated_bytes / (slice_mib * _MIB))

    def _cluster(self, changes: dict[str, Any]) -> Cluster:
        names = Cluster.__dataclass_fields__.keys()
        return Cluster(**{name: getattr(self.values, name) for name in names} | changes)

    def count(self, slice_mib: float, **changes: Any) -> Outcome:
        """Count all slices; of several runs, the one with the median makespan."""
        slices = self.slices(slice_mib)
        size = self.values.simulated_bytes / slices
        moving = (size + self._saved(size)) / self._store
        found = []
        for number in range(self.values.repeat):
            rng = random.Random(f"{self._seed} {number}")
            tasks = [self._times["count"].draw(size, rng) + moving for _ in range(slices)]
            found.append(simulate(tasks, self._cluster(changes), rng))
        return sorted(found, key=lambda outcome: outcome.makespan)[len(found) // 2]

    def reduce(
        self, slice_mib: float, *, partitions: int | None = None, fan_in: int | None = None
    ) -> Reduced:
        """Reduce all partitions, with `fan_in` in two levels."""
        slices, parts = self.slices(slice_mib), partitions or self.values.partitions
        size = self.values.simulated_bytes / slices
        levels: list[list[float]] = []
        if fan_in is not None and slices > fan_in:
            groups = math.ceil(slices / fan_in)
            task = self._merge(slices / groups, size, parts)
            levels.append([task] * (groups * parts))
            slices, size = groups, self.values.simulated_bytes / groups
        levels.append([self._merge(slices, size, parts)] * parts)
        makespans = []
        for number in range(_REDUCE_RUNS):
            rng = random.Random(f"{self._seed} {number}")
            cluster = self._cluster({})
            speeds = cluster.speeds(rng)
            outcomes = [simulate(tasks, cluster, rng, speeds) for tasks in levels]
            makespans.append(sum(outcome.makespan for outcome in outcomes))
        makespans.sort()
        return Reduced(median(makespans), makespans[_REDUCE_RUNS * 9 // 10])

    def _merge(self, runs: float, run_text_bytes: float, partitions: int) -> float:
        """Seconds of a task that merges one partition of some runs."""
        size = runs * self._saved(run_text_bytes) / partitions
        opening = runs * self.values.file_open_seconds
        return self._times["reduce"].mean(size) + size / self._store + opening


def by_slice(job: Job) -> dict[int, tuple[Outcome, Reduced]]:
    """Counting and reducing for each size of slice."""
    return {mib: (job.count(mib), job.reduce(mib)) for mib in job.values.slice_mib}


def report(job: Job) -> str:
    """Markdown tables of all the questions."""
    values = job.values
    found = by_slice(job)
    lines = [
        f"{values.simulated_bytes / 1e12:g} TB, {values.workers:,} workers, "
        f"{values.starts_per_second:g} starts/s, {values.straggler_share:.0%} of attempts "
        f"{values.straggler_slowdown:g} times slower, MTBF {values.mtbf_hours:g} h, "
        f"{values.partitions} partitions. Times are minutes.",
        "",
    ]
    heads = ["slice", "tasks", "count", "ideal", "tail", "busy", "wasted core-h", "failures"]
    heads += ["reduce", "1 in 10", "in two levels", "1 in 10"]
    levels = {mib: job.reduce(mib, fan_in=values.fan_in) for mib in found}
    rows = [
        [
            shown(mib),
            f"{count.tasks:,}",
            minutes(count.makespan),
            minutes(count.ideal),
            minutes(count.tail),
            f"{count.utilization(values.workers):.0%}",
            f"{count.wasted / 3600:.2f}",
            f"{count.failures:,}",
            minutes(reduced.median),
            minutes(reduced.worst),
            minutes(levels[mib].median),
            minutes(levels[mib].worst),
        ]
        for mib, (count, reduced) in found.items()
    ]
    lines += table(heads, rows)
    counted = {mib: count.makespan for mib, (count, _) in found.items()}
    single = {mib: counted[mib] + reduced.median for mib, (_, reduced) in found.items()}
    double = {mib: counted[mib] + levels[mib].median for mib in found}
    shortest = [
        f"{what} {shown(best)} ({minutes(times[best])})"
        for what, times in (
            ("counting", counted),
            ("with the reduce", single),
            ("with a reduce in two levels", double),
        )
        for best in [min(times, key=times.__getitem__)]
    ]
    lines += ["", f"Shortest: {', '.join(shortest)}.", ""]

    few = [mib for mib in values.slice_mib if mib >= 256]
    sizes = [shown(mib) for mib in few]
    rows = []
    for hours in values.mtbf_table_hours:
        outcomes = [job.count(mib, mtbf_hours=hours) for mib in few]
        name = "never" if math.isinf(hours) else f"{hours:g} h"
        rows.append([name, *(f"{minutes(o.makespan)} ({o.wasted / o.busy:.2%})" for o in outcomes)])
    lines += ["Counting (share of busy time wasted), by MTBF of a worker:", ""]
    lines += [*table(["MTBF", *sizes], rows), ""]

    rows = []
    for copies in (False, True):
        outcomes = [job.count(mib, copies=copies) for mib in few]
        name = "with copies" if copies else "without"
        rows.append([name, *(f"{minutes(o.makespan)} ({o.wasted / 3600:.1f})" for o in outcomes)])
    lines += ["Counting (core-hours wasted), with copies of tasks that run for long:", ""]
    lines += [*table(["", *sizes], rows), ""]

    rows = [
        [f"{parts:,}", *(minutes(job.reduce(mib, partitions=parts).median) for mib in few)]
        for parts in values.partition_table
    ]
    two = [minutes(job.reduce(mib, fan_in=values.fan_in).median) for mib in few]
    rows.append([f"{values.partitions}, in two levels of up to {values.fan_in} runs", *two])
    lines += ["Reduce, by number of partitions:", ""]
    return "\n".join([*lines, *table(["partitions", *sizes], rows)])


def shown(mib: float) -> str:
    return f"{mib:g} MiB" if mib < 1024 else f"{mib / 1024:g} GiB"


def minutes(seconds: float) -> str:
    return f"{seconds / 60:,.1f}"
