"""Numbers with their units, for people."""

from __future__ import annotations

from typing import Final

MIN_BYTES: Final = 1_000_000
MIN_SECONDS: Final = 0.05  # below this, starting up and the clock are most of what is measured


def amount(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is 1.

    >>> amount(1, "byte"), amount(1234, "byte")
    ('1 byte', '1,234 bytes')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def size(count: int, *, is_compressed: bool = False) -> str:
    """Return a number of bytes with a unit.

    >>> size(999), size(12_300_000), size(12_300_000, is_compressed=True)
    ('999 bytes', '12.3 MB', '12.3 MB compressed')
    """
    shown, left = amount(count, "byte"), float(count)
    for unit in ("kB", "MB", "GB", "TB") if count >= 1000 else ():
        left /= 1000
        shown = f"{left:,.1f} {unit}"
        if left < 999.95:  # would be shown as 1,000.0
            break
    return f"{shown} compressed" if is_compressed else shown


def speed(num_bytes: int, seconds: float) -> str | None:
    """Return bytes per second with a unit; None below 1 MB of text or 50 ms.

    >>> speed(12_300_000, 0.1), speed(12_300_000, 0.001), speed(113, 1.0)
    ('123.0 MB/s', None, None)
    """
    if num_bytes < MIN_BYTES or seconds < MIN_SECONDS:
        return None
    return f"{size(round(num_bytes / seconds))}/s"
