"""Processes that tests start and interrupt."""

from __future__ import annotations

import signal


def allow_interrupts() -> None:
    """As `preexec_fn`: the process obeys SIGINT even where the tests run in the background.

    A shell without job control and `nohup` switch interrupts off, and processes inherit that.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
