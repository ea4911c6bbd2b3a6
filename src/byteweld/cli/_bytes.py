"""The byte heat map of a file, as lines, JSON and a page; and what follows for training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from byteweld.cli import _input, _output
from byteweld.evaluation import byte_counts
from byteweld.markup import Html, element, joined
from byteweld.vocab import ASCII_BYTES

_ASCII = np.isin(np.arange(256), list(ASCII_BYTES))  # the alphabet of --ascii-only
_BLOCK_BYTES = 1 << 24
_LEVELS = (".", "░", "▒", "▓", "█")  # unused, cold, warm, hot, very hot
_LEVEL_NAMES = ("unused", "cold", "warm", "hot", "very hot")
_COLORS = (238, 24, 37, 214, 196)
_STEP = 8  # from one level to the next: so many times as often
_ROWS = (
    "control characters, tab, line ends",
    "control characters",
    "space and signs",
    "digits and signs",
    "@, capital letters",
    "capital letters and signs",
    "`, small letters",
    "small letters and signs, DEL",
    *["not ASCII: inside UTF-8 characters"] * 4,
    *["not ASCII: first of a UTF-8 character"] * 3,
    "not ASCII: first of four, or never in UTF-8",
)


class ByteCounts:
    """How often each byte value occurs in a file."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.counts = np.zeros(256, np.int64)
        self.first_outside: int | None = None  # offset of the first byte that is not in _ASCII
        offset = 0
        for block in _blocks(source):
            self.counts += np.array(byte_counts(block))
            if self.first_outside is None:
                values = np.frombuffer(block, np.uint8)
                outside = np.flatnonzero(~_ASCII[values])
                if len(outside):
                    self.first_outside = offset + int(outside[0])
                    self.byte_outside = int(values[outside[0]])
            offset += len(block)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def outside(self) -> int:
        """How many bytes --ascii-only would refuse."""
        return int(self.counts[~_ASCII].sum())

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": self.source,
            "bytes": self.total,
            "counts": self.counts.tolist(),
            "distinct": int(np.count_nonzero(self.counts)),
            "ascii_only": {
                "fits": self.outside == 0,
                "bytes_outside": self.outside,
                "first_outside": self.first_outside,
                "base_tokens_saved": 256 - int(_ASCII.sum()),
            },
        }

    def lines(self) -> Iterator[str]:
        """The heat map and what follows from it."""
        used = int(np.count_nonzero(self.counts))
        yield f"{self.source}: {_output.size(self.total)}, {used} of 256 byte values used"
        yield ""
        yield "       " + " ".join(f"_{n:X}" for n in range(16))
        for row in range(16):
            counts = self.counts[16 * row : 16 * row + 16]
            cells = " ".join(_cell(self._level(int(count))) for count in counts)
            share = f"{100 * int(counts.sum()) / max(1, self.total):5.1f}%"
            yield f"  0x{row:X}_ {cells}  {share}  {_ROWS[row]}"
        yield ""
        names = zip(_LEVEL_NAMES, range(5), strict=True)
        yield "       " + "   ".join(f"{_cell(level)} {name}" for name, level in names)
        yield ""
        yield from self._conclusion()

    def page(self) -> Html:
        """The same as a part of a page."""
        heads = [element("th", f"_{n:X}", scope="col") for n in range(16)]
        rows = [element("tr", element("td"), heads)]
        for row in range(16):
            counts = self.counts[16 * row : 16 * row + 16].tolist()
            cells = [
                element(
                    "td",
                    _compact(count),
                    class_=f"level{self._level(count)}",
                    title=f"0x{16 * row + n:02X}: {count:,} times",
                )
                for n, count in enumerate(counts)
            ]
            share = f"{100 * sum(counts) / max(1, self.total):.1f}%  {_ROWS[row]}"
            said = element("th", share, class_="row")
            rows.append(element("tr", element("th", f"0x{row:X}_"), cells, said))
        used = int(np.count_nonzero(self.counts))
        return joined(
            element("p", f"{_output.size(self.total)}, {used} of 256 byte values used"),
            element("div", element("table", rows, class_="heat"), class_="wide"),
            element("p", "how often each byte value occurs; k is 1000, M a million", class_="hint"),
            [element("p", line) for line in self._conclusion()],
        )

    def _level(self, count: int) -> int:
        if count == 0:
            return 0
        below = int(self.counts.max()) // count
        return next((4 - n for n in range(3) if below < _STEP ** (n + 1) // 2), 1)

    def _conclusion(self) -> Iterator[str]:
        base = int(_ASCII.sum())
        yield (
            f"--ascii-only has {base} base tokens instead of 256: at the same size, "
            f"{256 - base} more are left for merges"
        )
        if self.first_outside is None:
            yield "this file fits: every byte is a tab, a line end or in 0x20 to 0x7E"
        else:
            yield (
                f"this file does not fit: {_output.amount(self.outside, 'byte')} outside tab, "
                f"line ends and 0x20 to 0x7E, the first 0x{self.byte_outside:02X} "
                f"at byte {self.first_outside}"
            )


def _compact(count: int) -> str:
    """A number in at most four letters."""
    for unit, name in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count // unit}{name}"
    return str(count) if count else "·"


def _blocks(source: str) -> Iterator[bytes]:
    if source == _input.STDIN:
        yield _input.read(source)
        return
    with Path(source).open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _cell(level: int) -> str:
    mark = _LEVELS[level] * 2 if level else " ."
    return f"\x1b[38;5;{_COLORS[level]}m{mark}\x1b[0m" if _output.has_color() else mark
