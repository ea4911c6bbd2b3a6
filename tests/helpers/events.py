"""Waiting for events, and interrupting work, however busy the machine is."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType

_MOST_SECONDS = 240  # only a hang takes so long
_EVERY_SECONDS = 0.01


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; if it never does, fail."""
    end = time.monotonic() + _MOST_SECONDS
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(_EVERY_SECONDS)


class _Interrupted(Exception):
    """Stands in for KeyboardInterrupt, which ends pytest."""


def can_be_interrupted(work: Callable[[], object]) -> bool:
    """Whether the error of a signal ends a call in its middle.

    A signal comes every 10 ms of processor time, and the third that Python handles raises. A call
    that lets Python handle none has heard only one when it ends: those that wait count once.
    """
    heard = 0

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard += 1
        if heard == 3:
            signal.setitimer(signal.ITIMER_PROF, 0)
            raise _Interrupted

    before = signal.signal(signal.SIGPROF, hear)
    signal.setitimer(signal.ITIMER_PROF, _EVERY_SECONDS, _EVERY_SECONDS)
    try:
        work()
    except _Interrupted:
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return False
