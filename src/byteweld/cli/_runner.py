"""The options that say where the work runs: on this machine, on Ray, or as one rank of several."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from byteweld._memory import parse_memory
from byteweld.cli import _errors, _input, _output
from byteweld.cli import _options as options
from byteweld.jobs import RUNNERS, LocalRunner, RankRunner, Runner, open_runner

_SLICE_BYTES = 16 << 20  # here: what is lost if the process is killed


def _size(text: str) -> int:
    try:
        return parse_memory(text)
    except ValueError:
        raise ValueError("expected a number with a unit, such as 512MB or 1GiB") from None


class RunnerOptions(NamedTuple):
    """What runs the tasks.

    Where it runs:
        runner: What does the work. local: threads of this process. ray: tasks on a Ray cluster,
            with the same result.
        address (ADDRESS): The Ray cluster: auto, or HOST:PORT. Default: RAY_ADDRESS; without it,
            Ray is started on this machine, with token authentication, and ended after the work.
        cpus_per_task: The processors, and threads, of each task on Ray. Default: 1.
        slice_bytes (--slice SIZE): How much of the corpus a task takes, such as 512MB. Default: a
            4,096th, at least 128MiB and at most 4GiB.
        work (DIR): A folder or URL that all machines see, for files between tasks. Default: next
            to the result, if there is one.
        max_failures: Go on until more than N tasks have failed, to see all causes at once. The
            result is made only if none has; the same command then runs just those again.
            Default: 0.
    """

    runner: Annotated[str, RUNNERS] = "local"
    address: str | None = None
    cpus_per_task: options.Positive | None = None
    slice_bytes: Annotated[int, _size] | None = None
    work: str | None = None
    max_failures: options.Natural | None = None

    def check(self, sources: Sequence[str], threads: int | None) -> None:
        """Refuse what has no effect in tasks, or cannot work there."""
        if _input.STDIN in sources and (self.runner != "local" or self.work is not None):
            flag = f"--runner {self.runner}" if self.runner != "local" else "--work"
            raise _errors.UsageError(
                "standard input (-) cannot be divided among tasks; pass the name of a file, or "
                f"leave {flag} out"
            )
        if self.runner != "local" and threads is not None:
            raise _errors.UsageError(
                f"--threads has no effect with --runner {self.runner}; use --cpus-per-task"
            )

    def open(
        self, threads: int | None = None, *, keeps: bool = False
    ) -> contextlib.AbstractContextManager[Runner | None]:
        """Return the runner; None for this process, without tasks.

        If it `keeps` results in a work folder that the user names, there are tasks here, too.
        """
        if self.runner == "local":
            if keeps and self.work is not None:
                slice_bytes = self.slice_bytes or _SLICE_BYTES
                return LocalRunner(work=self.work, slice_bytes=slice_bytes, num_threads=threads)
            for name in self.given():
                raise _errors.UsageError(
                    f"{_errors.flags[name]} has no effect without --runner ray"
                )
            return contextlib.nullcontext(None)
        return open_runner(self.runner, **self.given())

    def given(self) -> dict[str, Any]:
        """The arguments of the runner that are given."""
        return {n: v for n, v in self._asdict().items() if v is not None and n != "runner"}


class RankOptions(NamedTuple):
    """Which of several processes this is.

    Where it runs:
        rank (R): Do the share of rank R, from 0, of --world-size processes, as in a Slurm array.
            When all ranks are done, `byteweld merge` makes the result.
        world_size: The number of processes.
    """

    rank: options.Natural | None = None
    world_size: options.Positive | None = None

    def open(
        self, runner: RunnerOptions, sources: Sequence[str], threads: int | None
    ) -> RankRunner | None:
        """Return the rank; None if there are none."""
        if self.rank is None and self.world_size is None:
            return None
        if self.rank is None or self.world_size is None:
            raise _errors.UsageError("--rank and --world-size belong together; pass both")
        if runner.runner != "local":
            raise _errors.UsageError("--rank is for processes without --runner; leave one out")
        if _input.STDIN in sources:
            raise _errors.UsageError(
                "standard input (-) cannot be divided among ranks; pass the name of a file"
            )
        given = runner.given()
        for name in given.keys() - {"slice_bytes", "max_failures"}:
            raise _errors.UsageError(f"{_errors.flags[name]} has no effect with --rank")
        return RankRunner(self.rank, self.world_size, num_threads=threads, **given)


def say_rank(rank: RankRunner, out: str) -> None:
    """Say that a rank is done."""
    _output.say(
        f"rank {rank.rank} of {rank.world_size} is done; when all are: byteweld merge {out}"
    )
