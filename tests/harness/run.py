"""What the programs of the harness share: arguments, a clock, and a report of what was done."""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def parser(name: str, description: str | None, *, seconds: float = 60.0) -> argparse.ArgumentParser:
    """Return a parser with the arguments that every program takes."""
    made = argparse.ArgumentParser(prog=name, description=description)
    made.add_argument(
        "--seconds", type=float, default=seconds, help=f"total running time ({seconds:g})"
    )
    made.add_argument("--seed", type=int, default=0, help="the same seed draws the same cases (0)")
    return made


def in_child(work: Callable[[], object], seconds: float | None = None) -> tuple[int | None, str]:
    """Run in a forked process; return its signal or exit code (None if it hangs), what it said."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(out)
            os.dup2(os.open(os.devnull, os.O_RDWR), 2)
            said = str(work())
            code = 0
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        try:
            os.writev(into, [said.encode("utf-8", "replace")[:4000]])
        finally:
            os._exit(code)
    os.close(into)
    parts = []
    end = None if seconds is None else time.monotonic() + seconds
    hangs = False
    while True:
        left = None if end is None else max(0, end - time.monotonic())
        if not select.select([out], [], [], left)[0]:
            hangs = True
            os.kill(child, signal.SIGKILL)
            break
        part = os.read(out, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(out)
    _, status = os.waitpid(child, 0)
    return None if hangs else os.waitstatus_to_exitcode(status), b"".join(parts).decode()


def shrink(whole: Any, fails: Callable[[Any], bool], tries: int, *, smallest: int = 1) -> Any:
    """Remove smaller and smaller parts of a text, of bytes or of a list while it still fails.

    >>> shrink("some words with an x in them", lambda text: "x" in text, 3000)
    'x'
    """
    size = max(1, len(whole) // 2)
    while size >= smallest and tries > 0:
        at, before = 0, len(whole)
        while at < len(whole) and tries > 0:
            tries -= 1
            smaller = whole[:at] + whole[at + size :]
            if fails(smaller):
                whole = smaller
            else:
                at += size
        if size > 1 or len(whole) == before:
            size //= 2
    return whole


@dataclass
class Run:
    """One run of a program: counts executions by kind, keeps findings, knows when to stop."""

    name: str
    seconds: float
    seed: int
    executions: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, name: str, given: argparse.Namespace) -> Run:
        return cls(name, given.seconds, given.seed)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def is_over(self) -> bool:
        return self.elapsed >= self.seconds

    def random(self, *parts: object) -> random.Random:
        """Return a generator for one part of the run, independent of the others."""
        return random.Random(f"{self.seed}/{'/'.join(map(str, parts))}")

    def count(self, kind: str, number: int = 1) -> None:
        self.executions[kind] += number

    def find(self, kind: str, what: str) -> None:
        """Keep a finding and print it at once: the run may be killed later."""
        self.findings.append(f"{kind}: {what}")
        print(f"FINDING {kind}: {what}", flush=True)

    def finish(self) -> int:
        """Print what was done; return the exit code: 1 if anything was found, else 0."""
        for kind, number in sorted(self.executions.items()):
            print(f"  {kind}: {number:,}")
        print(
            f"{self.name}: {self.executions.total():,} executions in {self.elapsed:,.0f} s, "
            f"seed {self.seed}, {len(self.findings)} findings",
            flush=True,
        )
        return 1 if self.findings else 0
