"""Runs numbered cases in a forked child with limits on time and memory; a crash names its case.

A child runs many cases. It writes the number of each into shared memory before it starts, so that
the parent knows which one killed it, and continues after that one in a new child.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import pickle
import re
import resource
import select
import signal
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

CPU_SECONDS = 2.0  # per case
WALL_SECONDS = 30.0  # per case, for one that waits instead of computing
MEMORY_BYTES = 1 << 30  # beyond what the parent has mapped
# While a timer runs, the clock of the process is as coarse as the kernel's ticks. So the parent
# watches longer limits, and cases can measure themselves.
COARSE_SECONDS = 10.0
CASES_PER_CHILD = 20_000
_STDERR_BYTES = 2000

_NUMBER, _DONE, _CELLS = 0, 1, 8  # cells of 8 bytes: the case, cases done, then counters


@dataclass(frozen=True)
class Limits:
    """What one case may use."""

    cpu_seconds: float = CPU_SECONDS
    wall_seconds: float = WALL_SECONDS
    memory_bytes: int = MEMORY_BYTES


@dataclass(frozen=True)
class Event:
    """A case that failed: what it reported itself, or how it died."""

    number: int
    what: str
    signature: str  # equal for failures that look the same
    is_death: bool = False


# Runs a case; returns an index of a counter, and (what, signature) if it failed.
Case = Callable[[int], tuple[int, tuple[str, str] | None]]


class Watch:
    """Runs cases in children; `counters` says how many had each outcome."""

    def __init__(self, run: Case, *, limits: Limits | None = None) -> None:
        self._run = run
        self._limits = limits or Limits()
        self._shared = mmap.mmap(-1, 8 * _CELLS)
        self._cells = memoryview(self._shared).cast("Q")

    @property
    def done(self) -> int:
        return self._cells[_DONE]

    def counter(self, index: int) -> int:
        return self._cells[2 + index]

    def run(self, start: int, stop: int, deadline: float = float("inf")) -> Iterator[Event]:
        """Run the cases `start` to `stop`, until the deadline (of the monotonic clock)."""
        while start < stop and time.monotonic() < deadline:
            end = min(stop, start + CASES_PER_CHILD)
            self._cells[_NUMBER] = start
            death = yield from self._child(start, end, deadline)
            if death is None:
                start = end
            else:
                yield death
                start = death.number + 1

    def _child(
        self, start: int, end: int, deadline: float
    ) -> Iterator[Event]:  # returns an Event, or None
        reading, writing = os.pipe()
        said = os.memfd_create("stderr")
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.dup2(said, 2)
            self._live(writing, start, end, deadline)
        os.close(writing)
        try:
            hung = yield from self._listen(child, reading)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status == 0:
                return None
            return _death(self._cells[_NUMBER], status, hung, _tail(said))
        finally:
            os.close(reading)
            os.close(said)

    def _listen(self, child: int, reading: int) -> Iterator[Event]:  # returns whether it hung
        pending = b""
        last, since, used = -1, time.monotonic(), 0.0
        while True:
            ready, _, _ = select.select([reading], [], [], 0.5)
            if ready:
                data = os.read(reading, 1 << 16)
                if not data:
                    return False
                pending += data
                while len(pending) >= 4:
                    (size,) = struct.unpack_from("<I", pending)
                    if len(pending) < 4 + size:
                        break
                    yield Event(*pickle.loads(pending[4 : 4 + size]))
                    pending = pending[4 + size :]
            number = self._cells[_NUMBER]
            if number != last:
                last, since, used = number, time.monotonic(), _cpu_seconds(child)
            elif _cpu_seconds(child) - used > self._limits.cpu_seconds + 1:
                os.kill(child, signal.SIGPROF)
            elif time.monotonic() - since > self._limits.wall_seconds:
                os.kill(child, signal.SIGKILL)
                return True

    def _live(self, writing: int, start: int, end: int, deadline: float) -> None:
        """The life of a child; never returns."""
        code = 1
        try:
            gc.collect()
            gc.freeze()
            limit_memory(self._limits.memory_bytes)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            cells = self._cells
            for number in range(start, end):
                cells[_NUMBER] = number
                if self._limits.cpu_seconds < COARSE_SECONDS:
                    signal.setitimer(signal.ITIMER_PROF, self._limits.cpu_seconds)
                index, failure = self._run(number)
                cells[_DONE] += 1
                cells[2 + index] += 1
                if failure is not None:
                    message = pickle.dumps((number, *failure))
                    os.write(writing, struct.pack("<I", len(message)) + message)
                if time.monotonic() >= deadline:
                    break
            code = 0
        except BaseException as error:
            with contextlib.suppress(BaseException):
                os.write(2, f"the harness itself failed: {error!r}".encode())
        finally:
            os._exit(code)


def _cpu_seconds(process: int) -> float:
    """CPU time that a process has used, also while it is a zombie."""
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def limit_memory(more: int) -> None:
    """Let this process map only this many bytes more."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (mapped + more, mapped + more))


def _tail(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    data = os.pread(descriptor, _STDERR_BYTES, max(0, size - _STDERR_BYTES))
    return data.decode(errors="replace").strip()


def _death(number: int, status: int, hung: bool, said: str) -> Event:
    if hung:
        how = "does not end"
    elif status == -signal.SIGPROF:
        how = "takes too long"
    elif status < 0:
        how = f"killed by {signal.Signals(-status).name}"
    else:
        how = f"exited with {status}"
    # The first line says what happened, with other sizes and addresses each time.
    first = re.sub(r"[0-9]+", "N", said.splitlines()[0]) if said else ""
    what = f"{how}; it said: {said[-600:]}" if said else how
    return Event(number, what, f"{how} {first[:60]}", True)
