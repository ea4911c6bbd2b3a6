"""How the cost of a call grows with the size of its input, in CPU time and peak memory."""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.harness.files.use import is_allowed

Run = Callable[[], object]
Prepare = Callable[[int], Run]  # builds the input of size n, and returns the call to measure

START = 1 << 11
CAP = 1 << 18
FLOOR_SECONDS = 0.008  # n grows until a call takes as long
# Linear growth gives 4, n log n nearly 5; a table that outgrows a cache, or words that outgrow an
# algorithm, give more, but only once. So a case must exceed this from n to 4n and again from 4n to
# 16n; n^1.5 gives 8, n^2 gives 16.
MAX_GROWTH = 4**1.35
REPEATS = 2
RETRIES = 3
# Peaks are compared only where they are large, absolutely and for each byte of input: memory that
# was freed before hides how much a small input needs.
FLOOR_BYTES = 64 << 20
FLOOR_PER_BYTE = 150


@dataclass(frozen=True)
class Growth:
    """The cost of a case at n, and how much more it is at 4n."""

    n: int
    seconds: float
    growth: float  # of time, where it is slow enough to tell; else 1
    memory_growth: float
    peak_bytes: int

    @property
    def problem(self) -> str | None:
        if self.growth > MAX_GROWTH:
            return f"{self.growth:.1f} times as long for 4 times n = {self.n:,}"
        if self.memory_growth > MAX_GROWTH:
            return f"{self.memory_growth:.1f} times the memory for 4 times n = {self.n:,}"
        return None


def measure(
    prepare: Prepare, *, start: int = START, cap: int = CAP, floor: float | None = None
) -> Growth:
    """Measure at growing sizes until the call is slow enough, then at 4n, and at 16n in doubt."""
    n = start
    floor = FLOOR_SECONDS if floor is None else floor
    try:
        prepare(n)
    except Exception as error:
        if not is_allowed(error):
            raise
        return Growth(0, 0.0, 1.0, 1.0, 0)  # the vocabulary itself is refused
    while True:
        seconds = _best(prepare, n, 1)
        if seconds >= floor or n >= cap:
            break
        n = min(cap, n * (8 if seconds < floor / 16 else 2))
    growth = 1.0
    if seconds >= floor:
        # Again while it looks superlinear: noise only adds time.
        for attempt in range(RETRIES):
            growth = _growth(prepare, n, REPEATS + attempt)
            if growth > MAX_GROWTH:
                growth = min(growth, _growth(prepare, 4 * n, 1 + attempt))
            if growth <= MAX_GROWTH:
                break
    small, large = _peak(prepare, n), _peak(prepare, 4 * n)
    memory = 1.0
    if large > FLOOR_BYTES and large > FLOOR_PER_BYTE * 4 * n:
        memory = large / max(small, 1 << 20)
        if memory > MAX_GROWTH:
            memory = min(memory, _peak(prepare, 8 * n) / max(1, _peak(prepare, 2 * n)))
    return Growth(n, seconds, growth, memory, large)


def _growth(prepare: Prepare, n: int, repeats: int) -> float:
    return _best(prepare, 4 * n, repeats) / max(_best(prepare, n, repeats), 1e-6)


def _best(prepare: Prepare, n: int, repeats: int) -> float:
    """The least CPU time of several calls, each on a new input."""
    found = float("inf")
    for _ in range(repeats):
        run = prepare(n)
        gc.disable()
        began = time.process_time()
        _call(run)
        found = min(found, time.process_time() - began)
        gc.enable()
        del run
    return found


def _call(run: Run) -> None:
    try:
        run()
    except Exception as error:
        if not is_allowed(error):
            raise


def _peak(prepare: Prepare, n: int) -> int:
    """How many bytes of memory a call needs at its peak."""
    run = prepare(n)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = _status("VmRSS")
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    except OSError:
        return 0
    _call(run)
    return max(0, _status("VmHWM") - before)


def _status(key: str) -> int:
    with open(f"/proc/{os.getpid()}/status", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            if line.startswith(key):
                return int(line.split()[1]) << 10
    return 0
