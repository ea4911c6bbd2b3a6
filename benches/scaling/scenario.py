"""What the simulation is asked: sizes of slices, failure rates, partitions, copies.

A run counts all slices, then reduces the partitions; encoding and writing are alike. Task times are
drawn from recorded ones and scaled by bytes. Those recorded on one machine lack the time to reach
the shared folder, so it is added: `store_mb_per_second`, `file_open_seconds`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from scaling import heaps
from scaling.estimate import table
from scaling.simulate import Cluster, Outcome, simulate
from scaling.tasks import Task, Times

_MIB = 1 << 20


@dataclass(frozen=True)
class Run:
    """Counting and reducing a corpus."""

    slices: int
    count: Outcome
    reduce: Outcome

    @property
    def makespan(self) -> float:
        return self.count.makespan + self.reduce.makespan


class Job:
    """Makes the tasks of a corpus, and runs them."""

    def __init__(
        self, values: SimpleNamespace, recorded: Sequence[Task], points: Sequence[heaps.Point]
    ) -> None:
        self._values = values
        self._count, self._reduce = Times(recorded, "count"), Times(recorded, "reduce")
        self._saved = heaps.Saved.of(points)
        self._store = values.store_mb_per_second * 1e6

    def cluster(self, **changes: object) -> Cluster:
        names = Cluster.__dataclass_fields__.keys()
        return Cluster(**{name: getattr(self._values, name) for name in names} | changes)

    def run(
        self, slice_mib: float, seed: int, *, partitions: int | None = None, **changes: object
    ) -> Run:
        """Count, then reduce, on a cluster with changed parameters."""
        values, rng = self._values, random.Random(seed)
        cluster = self.cluster(**changes)
        speeds = cluster.speeds(rng)
        slices = math.ceil(values.simulated_bytes / (slice_mib * _MIB))
        size = values.simulated_bytes / slices
        saved = self._saved(size)
        count = [self._count.draw(size, rng) + (size + saved) / self._store for _ in range(slices)]
        counted = simulate(count, cluster, rng, speeds)
        parts = partitions or values.partitions
        part = slices * saved / parts
        opening = slices * values.file_open_seconds
        reduce = [self._reduce.draw(part, rng) + part / self._store + opening for _ in range(parts)]
        return Run(slices, counted, simulate(reduce, cluster, rng, speeds))


def by_slice(
    values: SimpleNamespace, recorded: Sequence[Task], points: Sequence[heaps.Point], seed: int
) -> dict[int, Run]:
    """A run for each size of slice."""
    job = Job(values, recorded, points)
    return {mib: job.run(mib, seed) for mib in values.slice_mib}


def report(
    values: SimpleNamespace, recorded: Sequence[Task], points: Sequence[heaps.Point], seed: int
) -> str:
    """Markdown tables of all the questions."""
    job = Job(values, recorded, points)
    runs = by_slice(values, recorded, points, seed)
    best = min(runs, key=lambda mib: runs[mib].makespan)
    best_count = min(runs, key=lambda mib: runs[mib].count.makespan)
    lines = [
        f"{values.simulated_bytes / 1e12:g} TB, {values.workers:,} workers, "
        f"{values.starts_per_second:g} starts/s, {values.straggler_share:.0%} of attempts "
        f"{values.straggler_slowdown:g} times slower, MTBF {values.mtbf_hours:g} h, "
        f"{values.partitions} partitions, seed {seed}",
        "",
    ]
    heads = ["slice", "tasks", "count, min", "ideal", "tail", "busy", "wasted core-h", "failures"]
    heads += ["reduce, min", "in all, min"]
    rows = []
    for mib, run in runs.items():
        count = run.count
        rows.append(
            [
                shown(mib),
                f"{run.slices:,}",
                minutes(count.makespan),
                minutes(count.ideal),
                minutes(count.tail),
                f"{count.utilization(values.workers):.0%}",
                f"{count.wasted / 3600:.1f}",
                f"{count.failures:,}",
                minutes(run.reduce.makespan),
                minutes(run.makespan),
            ]
        )
    lines += table(heads, rows)
    lines += ["", f"Shortest: counting {shown(best_count)}, in all {shown(best)}.", ""]

    few = [mib for mib in values.slice_mib if mib >= 256]
    rows = []
    for hours in values.mtbf_table_hours:
        cells = [job.run(mib, seed, mtbf_hours=hours).count for mib in few]
        rows.append(
            [
                "never" if math.isinf(hours) else f"{hours:g} h",
                *(f"{minutes(o.makespan)} ({o.wasted / max(o.busy, 1e-9):.1%})" for o in cells),
            ]
        )
    lines += ["Counting, minutes (share of busy time wasted), by MTBF of a worker:", ""]
    lines += [*table(["MTBF", *map(shown, few)], rows), ""]

    rows = [
        [
            f"{parts:,}",
            *(minutes(job.run(mib, seed, partitions=parts).reduce.makespan) for mib in few),
        ]
        for parts in values.partition_table
    ]
    lines += ["Reduce, minutes, by number of partitions:", ""]
    lines += [*table(["partitions", *map(shown, few)], rows), ""]

    rows = []
    for copies in (False, True):
        cells = [job.run(mib, seed, copies=copies).count for mib in few]
        rows.append(
            [
                "yes" if copies else "no",
                *(f"{minutes(o.makespan)} ({o.wasted / 3600:.1f})" for o in cells),
            ]
        )
    lines += ["Counting, minutes (core-hours wasted), with copies of tasks that run for long:", ""]
    return "\n".join([*lines, *table(["copies", *map(shown, few)], rows)])


def shown(mib: float) -> str:
    return f"{mib:g} MiB" if mib < 1024 else f"{mib / 1024:g} GiB"


def minutes(seconds: float) -> str:
    return f"{seconds / 60:,.1f}"
