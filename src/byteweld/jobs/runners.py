"""Runners: what runs many independent tasks. All have one method, `map_unordered`.

A task is a function and an item. It writes its result to files that all machines see, and returns a
few facts; what it writes depends on the item alone, so it may run anywhere, in any order, and more
than once.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from byteweld.errors import TaskError

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Path_ = str | os.PathLike[str]

RUNNERS = ("local", "ray")


class Failure(NamedTuple):
    """A task that failed: its item, and why."""

    item: object
    error: BaseException

    def __str__(self) -> str:
        return f"{self.item}: {str(self.error).strip() or type(self.error).__name__}"


class Runner(abc.ABC):
    """Runs tasks. Use it in a `with` statement, which ends what it has started.

    The base of all runners. `train`, `count`, `tokenize` and `compare` take one as `runner`, or its
    name.

    Args:
        work: a folder, or the URL of one, that all machines see; for files between tasks.
            Default: next to the result.
        slice_bytes: how much of a corpus a task takes. Default: a 4,096th, at least 128 MiB and at
            most 4 GiB.
        max_failures: go on with other tasks until more than this many have failed. The result is
            made only if none has: after the cause is removed, the same call runs just those.

    Examples:
        >>> import pathlib, tempfile
        >>> from byteweld.jobs import LocalRunner
        >>> with tempfile.TemporaryDirectory() as folder, LocalRunner(work=folder) as runner:
        ...     _ = pathlib.Path(folder, "a.txt").write_text("low low lower")
        ...     byteweld.count(f"{folder}/a.txt", runner=runner)
        <Counts 3 pre-tokens, 3 in all>
        >>> with LocalRunner() as runner:
        ...     runner.is_one_machine, runner.share([1, 2]), list(runner.map_unordered(len, "ab"))
        (True, [1, 2], [1, 1])
    """

    name: str
    threads_per_task: int | None = None  # None: one per processor

    def __init__(
        self, *, work: Path_ | None = None, slice_bytes: int | None = None, max_failures: int = 0
    ) -> None:
        for name, value, least in (
            ("slice_bytes", slice_bytes, 1),
            ("max_failures", max_failures, 0),
        ):
            if value is not None and (type(value) is not int or value < least):
                raise ValueError(f"{name} is {value!r}; expected a whole number, at least {least}")
        self._users = 0  # `with` statements that it is in
        self.work = work
        self.slice_bytes = slice_bytes
        self.max_failures = max_failures

    def __enter__(self) -> Self:
        if not self._users:
            self._start()
        self._users += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._users -= 1
        if not self._users:
            self._end()

    def _start(self) -> None:
        """Start what runs the tasks, or connect to it."""
        return

    def _end(self) -> None:
        """End what `_start` has started."""
        return

    @property
    def is_one_machine(self) -> bool:
        """Whether all tasks run on this machine, so that any folder will do for their files."""
        return True

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items for this process: all of them, unless it is one of several ranks."""
        return items

    def map_unordered(
        self, function: Callable[[Item], Outcome], items: Iterable[Item]
    ) -> Iterator[Outcome]:
        """Yield `function(item)` for all items, in the order in which tasks end.

        The function and the items must be picklable, and the results small.

        Raises:
            TaskError: if tasks fail; others go on first, as `max_failures` says.
        """
        failures: list[Failure] = []
        running = self._run(function, items)
        try:
            for result in running:
                if not isinstance(result, Failure):
                    yield result
                    continue
                failures.append(result)
                if len(failures) > self.max_failures:
                    break
        finally:
            running.close()
        if failures:
            raise TaskError([str(failure) for failure in failures]) from failures[0].error

    @abc.abstractmethod
    def _run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """Yield a result or a Failure for each item; a generator."""


class LocalRunner(Runner):
    """Runs one task after another in this process, each on all processors.

    The result of a run is the same as without a runner. It is for trying out on one machine what
    will run on a cluster.

    Args:
        num_threads: the threads of a task. Default: one per processor.
        **options: those of `Runner`.

    Examples:
        >>> from byteweld.jobs import LocalRunner
        >>> LocalRunner(num_threads=2).threads_per_task
        2
    """

    name = "local"

    def __init__(self, *, num_threads: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.threads_per_task = num_threads

    def _run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            try:
                result = function(item)
            except Exception as error:
                result = Failure(item, error)
            yield result


class Here(LocalRunner):
    """Runs tasks in this process, and raises what they raise as it is. Not for users."""

    def map_unordered(
        self, function: Callable[[Item], Outcome], items: Iterable[Item]
    ) -> Iterator[Outcome]:
        return map(function, items)


class RankRunner(LocalRunner):
    """One process of several, each of which takes every `world_size`-th item.

    For arrays of jobs, in Slurm, Kubernetes or GNU parallel. The processes need not run at the same
    time.

    Args:
        rank: the number of this process, from 0.
        world_size: the number of processes.
        **options: those of `LocalRunner`.

    Examples:
        >>> from byteweld.jobs import RankRunner
        >>> list(RankRunner(1, 3).share(range(7)))
        [1, 4]
    """

    name = "rank"

    def __init__(self, rank: int, world_size: int, **options: Any) -> None:
        super().__init__(**options)
        if type(world_size) is not int or world_size < 1:
            raise ValueError(f"world_size is {world_size!r}; expected a whole number, at least 1")
        if type(rank) is not int or not 0 <= rank < world_size:
            raise ValueError(
                f"rank is {rank!r}; expected a whole number from 0 to {world_size - 1}"
            )
        self.rank = rank
        self.world_size = world_size

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        return items[self.rank :: self.world_size]


def open_runner(runner: str | Runner, **options: Any) -> Runner:
    """Return a runner by its name, or the runner itself.

    Args:
        runner: "local", "ray", or a Runner.
        **options: those of the runner.

    Examples:
        >>> from byteweld.jobs import open_runner
        >>> open_runner("local", num_threads=2).threads_per_task
        2
    """
    if isinstance(runner, Runner):
        return runner
    if runner == "local":
        return LocalRunner(**options)
    if runner == "ray":
        from byteweld.jobs.ray import RayRunner

        return RayRunner(**options)
    raise ValueError(
        f"runner is {runner!r}; expected one of {', '.join(map(repr, RUNNERS))}, or a Runner"
    )
