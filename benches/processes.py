"""CPU time and memory of a process with everything that it started, read from Linux's /proc."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_SAMPLE_SECONDS = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """What a process has used so far."""

    cpu: float  # seconds
    resident: int  # bytes


def family(pid: int) -> Iterator[tuple[int, Usage]]:
    """A process and all that it and its children started, each with what it has used."""
    pending = [pid]
    while pending:
        parent = pending.pop()
        with contextlib.suppress(OSError):  # it has just ended
            for task in Path(f"/proc/{parent}/task").iterdir():
                pending += map(int, (task / "children").read_text().split())
            fields = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()
            cpu = (int(fields[11]) + int(fields[12])) / _TICKS
            yield parent, Usage(cpu, int(fields[21]) * _PAGE_BYTES)


class Sampler:
    """Samples a family of processes: the peak of their resident memory, and their CPU time.

    `wait4` does not know the CPU time of processes that nobody waited for.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._cpu: dict[int, float] = {}
        self.peak = 0

    @property
    def cpu(self) -> float:
        return sum(self._cpu.values())

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            found = dict(family(self._pid))
            self._cpu |= {pid: usage.cpu for pid, usage in found.items()}
            self.peak = max(self.peak, sum(usage.resident for usage in found.values()))
