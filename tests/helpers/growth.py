"""How work grows: the same work at two sizes, compared by the processor time of this process.

A limit in seconds passes on any machine that is fast enough, whatever the algorithm. The quotient
of two sizes tells algorithms apart, and a busy machine changes both times alike. The naive versions
here show that a limit would catch them.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable

Pair = tuple[bytes, bytes]


def cpu_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The least processor time of several runs: other programs only ever add to it."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def growth(work: Callable[[int], object], small: int, large: int, repeats: int = 5) -> float:
    """How many times as long the larger size takes."""
    shorter = cpu_seconds(lambda: work(small), repeats)
    return cpu_seconds(lambda: work(large), repeats) / max(shorter, 1e-6)


def least_growth(
    work: Callable[[int], object], small: int, large: int, limit: float, repeats: int = 5
) -> float:
    """The growth, measured again if it reaches a limit: a busy moment must not fail a test."""
    return min(_until(limit, (growth(work, small, large, repeats) for _ in range(4))))


def _until(limit: float, values: Iterable[float]) -> Iterable[float]:
    for value in values:
        yield value
        if value < limit:
            return


def prose(size: int) -> str:
    """Text of `size` letters and spaces, from 2,000 invented words; the same every time."""
    rng = random.Random(1)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 9))) for _ in range(2000)]
    return " ".join(rng.choices(words, k=size // 4))[:size]


def pieces(text: str) -> Callable[[int], str]:
    """A function that returns pieces of a text by size, each a new one: no cache has seen it."""
    starts = itertools.count()
    return lambda size: text[next(starts) % (len(text) - size) :][:size]


# ---------------------------------------------------------------------- naive encoders


def encode_by_a_scan_per_merge(text: bytes, merges: Iterable[Pair]) -> list[bytes]:
    """Apply every merge in order, each by a scan of the whole text: length times merges."""
    symbols = [bytes([byte]) for byte in text]
    for left, right in merges:
        merged: list[bytes] = []
        for symbol in symbols:
            if merged and merged[-1] == left and symbol == right:
                merged[-1] = left + right
            else:
                merged.append(symbol)
        symbols = merged
    return symbols
