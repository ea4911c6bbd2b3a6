"""A discrete-event simulation of a cluster: workers, stragglers, failures, a driver.

A stage is a list of task times. One driver starts tasks, one after another; a worker runs one task
at a time. A task takes its time, divided by the speed of its worker, and more if the attempt is a
straggler. A worker that fails loses its task, which starts again from the beginning on some
worker, and comes back after a while; complete files are safe in the shared folder. Optionally, idle
workers start copies of tasks that run for long, and the first copy to end counts.

Not modeled: failures of a machine with several workers at once, of the driver or of the shared
folder; contention for network and disk; failures of idle workers. The same seed gives the same run.
"""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

_FINISH, _FAIL, _BACK, _CHECK = range(4)


@dataclass(frozen=True)
class Cluster:
    """The parameters of a cluster; by default, nothing goes wrong."""

    workers: int = 1000
    starts_per_second: float = math.inf  # tasks that the driver can start
    speed_spread: float = 0.0  # standard deviation of the logarithm of a worker's speed
    straggler_share: float = 0.0  # of attempts
    straggler_slowdown: float = 1.0
    mtbf_hours: float = math.inf  # of a worker
    recovery_seconds: float = 0.0
    copies: bool = False  # whether idle workers start copies of tasks that run for long
    copy_after: float = 1.5  # times the median of finished attempts

    def speeds(self, rng: random.Random) -> list[float]:
        """The speed of each worker; the median is 1."""
        return [math.exp(rng.gauss(0.0, self.speed_spread)) for _ in range(self.workers)]


@dataclass(frozen=True)
class Outcome:
    """What happened in a stage, in seconds. busy = useful + wasted."""

    tasks: int
    ideal: float  # all task times, divided by the number of workers
    makespan: float
    tail: float  # from when the last waiting task was started until the end
    busy: float  # summed over workers
    useful: float  # of attempts whose result counts
    wasted: float  # of attempts that failed, or that a copy overtook
    attempts: int
    failures: int
    copies: int

    def utilization(self, workers: int) -> float:
        return self.useful / (workers * self.makespan) if self.makespan else 0.0


@dataclass(eq=False)
class _Attempt:
    task: int
    worker: int
    start: float
    is_over: bool = False


@dataclass
class _Stage:
    """The state of a stage while it runs."""

    durations: Sequence[float]
    cluster: Cluster
    rng: random.Random
    speeds: Sequence[float]
    now: float = 0.0
    driver_free: float = 0.0
    tail_start: float = 0.0
    busy: float = 0.0
    useful: float = 0.0
    wasted: float = 0.0
    attempts: int = 0
    failures: int = 0
    copies: int = 0
    left: int = 0
    sequence: int = 0  # orders events of the same time
    copy_seconds: float | None = None
    next_check: float = math.inf
    events: list[tuple[float, int, int, object]] = field(default_factory=list)
    running: dict[int, list[_Attempt]] = field(default_factory=dict)
    finished: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = len(self.durations)
        self.waiting = deque(range(self.left))
        self.idle = deque(range(self.cluster.workers))

    def run(self) -> Outcome:
        self._assign()
        while self.left:
            self.now, _, kind, what = heapq.heappop(self.events)
            if kind == _BACK:
                self.idle.append(what)
            elif kind == _CHECK:
                self.next_check = math.inf
            elif what.is_over:
                continue  # it was stopped when a copy finished
            elif kind == _FINISH:
                self._finish(what)
            else:
                self._fail(what)
            self._assign()
        return Outcome(
            tasks=len(self.durations),
            ideal=math.fsum(self.durations) / self.cluster.workers,
            makespan=self.now,
            tail=self.now - self.tail_start,
            busy=self.busy,
            useful=self.useful,
            wasted=self.wasted,
            attempts=self.attempts,
            failures=self.failures,
            copies=self.copies,
        )

    def _push(self, time: float, kind: int, what: object) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (time, self.sequence, kind, what))

    def _assign(self) -> None:
        while self.waiting and self.idle:
            task = self.waiting.popleft()
            self._start(task, self.idle.popleft())
            if not self.waiting:
                self.tail_start = self.driver_free
        if self.cluster.copies and self.idle and not self.waiting:
            self._copy()

    def _start(self, task: int, worker: int) -> None:
        cluster, rng = self.cluster, self.rng
        start = max(self.now, self.driver_free) + 1 / cluster.starts_per_second
        self.driver_free = start
        attempt = _Attempt(task, worker, start)
        self.running.setdefault(task, []).append(attempt)
        self.attempts += 1
        seconds = self.durations[task] / self.speeds[worker]
        if cluster.straggler_share and rng.random() < cluster.straggler_share:
            seconds *= cluster.straggler_slowdown
        fails_after = math.inf
        if cluster.mtbf_hours < math.inf:
            fails_after = rng.expovariate(1 / (cluster.mtbf_hours * 3600))
        if fails_after < seconds:
            self._push(start + fails_after, _FAIL, attempt)
        else:
            self._push(start + seconds, _FINISH, attempt)

    def _end(self, attempt: _Attempt) -> float:
        """End an attempt, however it went; return the seconds that its worker was busy with it."""
        attempt.is_over = True
        seconds = max(0.0, self.now - attempt.start)
        self.busy += seconds
        return seconds

    def _finish(self, attempt: _Attempt) -> None:
        seconds = self._end(attempt)
        self.useful += seconds
        if self.cluster.copies:
            self.finished.append(seconds)
        self.left -= 1
        for other in self.running.pop(attempt.task):
            if other is not attempt:
                self.wasted += self._end(other)
                self.idle.append(other.worker)
        self.idle.append(attempt.worker)

    def _fail(self, attempt: _Attempt) -> None:
        self.wasted += self._end(attempt)
        self.failures += 1
        self._push(self.now + self.cluster.recovery_seconds, _BACK, attempt.worker)
        others = self.running[attempt.task]
        others.remove(attempt)
        if not others:
            del self.running[attempt.task]
            self.waiting.appendleft(attempt.task)

    def _copy(self) -> None:
        """Copy tasks that have run for long; look again when the next one has."""
        if self.copy_seconds is None:
            if not self.finished:
                return
            self.copy_seconds = self.cluster.copy_after * statistics.median(self.finished)
        alone = sorted(
            (attempts[0].start, task)
            for task, attempts in self.running.items()
            if len(attempts) == 1
        )
        for start, task in alone:
            if not self.idle:
                return
            if start + self.copy_seconds > self.now:
                if start + self.copy_seconds < self.next_check:
                    self.next_check = start + self.copy_seconds
                    self._push(self.next_check, _CHECK, None)
                return
            self.copies += 1
            self._start(task, self.idle.popleft())


def simulate(
    durations: Sequence[float],
    cluster: Cluster,
    rng: random.Random,
    speeds: Sequence[float] | None = None,
) -> Outcome:
    """Run the tasks of one stage; they start in the given order.

    >>> simulate([2.0] * 5, Cluster(workers=2), random.Random(0)).makespan
    6.0
    """
    return _Stage(durations, cluster, rng, speeds or cluster.speeds(rng)).run()
