"""The speed of a run, for people: shown only if enough was measured to mean something."""

from __future__ import annotations

from typing import Final

MIN_BYTES: Final = 1_000_000
MIN_SECONDS: Final = 0.05  # below this, starting up and the clock are most of what is measured


def speed(num_bytes: int, seconds: float) -> str | None:
    """Return bytes per second with a unit; None below 1 MB of text or 50 ms.

    >>> speed(12_300_000, 0.1), speed(12_300_000, 0.001), speed(113, 1.0)
    ('123.0 MB/s', None, None)
    """
    if num_bytes < MIN_BYTES or seconds < MIN_SECONDS:
        return None
    rate = num_bytes / seconds
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if rate >= size * 0.99995:  # 999.95 kB/s would be shown as 1,000.0
            return f"{rate / size:,.1f} {unit}/s"
    return f"{rate:,.0f} bytes/s"
