"""The byte heat map of a file, as text, JSON or HTML, and whether --ascii-only suits the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from byteweld.cli import _input, _output
from byteweld.evaluation import byte_counts
from byteweld.markup import Html, element, joined, wide
from byteweld.vocab import ASCII_BYTES

_OUTSIDE = re.compile(b"[^" + re.escape(bytes(sorted(ASCII_BYTES))) + b"]")
_BLOCK_BYTES = 1 << 24
_LEVELS = (".", "░", "▒", "▓", "█")
_LEVEL_NAMES = ("unused", "cold", "warm", "hot", "very hot")
_COLORS = (238, 24, 37, 214, 196)
_STEP = 8  # ratio of counts between neighboring levels
_ROWS = (
    "control characters, tab, line ends",
    "control characters",
    "space and punctuation",
    "digits and punctuation",
    "@, uppercase letters",
    "uppercase letters and punctuation",
    "`, lowercase letters",
    "lowercase letters and punctuation, DEL",
    *["not ASCII: continuation bytes of UTF-8"] * 4,
    *["not ASCII: first bytes of UTF-8 characters"] * 3,
    "not ASCII: first of four bytes, or never in UTF-8",
)


class ByteCounts:
    """How often each byte value occurs in a file."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.counts = [0] * 256
        self.first_outside: int | None = None  # offset of the first byte that --ascii-only rejects
        offset = 0
        for block in _blocks(source):
            self.counts = [sum(pair) for pair in zip(self.counts, byte_counts(block), strict=True)]
            if self.first_outside is None and (match := _OUTSIDE.search(block)):
                self.first_outside = offset + match.start()
                self.byte_outside = match[0][0]
            offset += len(block)

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def distinct(self) -> int:
        return sum(count > 0 for count in self.counts)

    @property
    def outside(self) -> int:
        """The number of bytes that --ascii-only would reject."""
        return self.total - sum(self.counts[byte] for byte in ASCII_BYTES)

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": self.source,
            "bytes": self.total,
            "counts": self.counts,
            "distinct": self.distinct,
            "ascii_only": {
                "fits": self.outside == 0,
                "bytes_outside": self.outside,
                "first_outside": self.first_outside,
                "base_tokens_saved": 256 - len(ASCII_BYTES),
            },
        }

    def lines(self) -> Iterator[str]:
        """The heat map, and whether --ascii-only suits the file, as text."""
        yield f"{self.source}: {self._summary()}"
        yield ""
        yield "       " + " ".join(f"_{n:X}" for n in range(16))
        for row in range(16):
            counts = self.counts[16 * row : 16 * row + 16]
            cells = " ".join(_cell(self._level(count)) for count in counts)
            share = f"{100 * sum(counts) / max(1, self.total):5.1f}%"
            yield f"  0x{row:X}_ {cells}  {share}  {_ROWS[row]}"
        yield ""
        names = zip(_LEVEL_NAMES, range(5), strict=True)
        yield "       " + "   ".join(f"{_cell(level)} {name}" for name, level in names)
        yield ""
        yield from self._conclusion()

    def page(self) -> Html:
        """The same, as HTML."""
        heads = [element("th", f"_{n:X}", scope="col") for n in range(16)]
        rows = [element("tr", element("td"), heads)]
        for row in range(16):
            counts = self.counts[16 * row : 16 * row + 16]
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
            note = element("th", share, class_="row")
            rows.append(element("tr", element("th", f"0x{row:X}_"), cells, note))
        return joined(
            element("p", self._summary()),
            wide(element("table", rows, class_="heat")),
            element(
                "p",
                "number of occurrences of each byte value; k is thousand, M million",
                class_="hint",
            ),
            [element("p", line) for line in self._conclusion()],
        )

    def _summary(self) -> str:
        return f"{_output.size(self.total)}, {self.distinct} of 256 byte values used"

    def _level(self, count: int) -> int:
        if count == 0:
            return 0
        below = max(self.counts) // count
        return next((4 - n for n in range(3) if below < _STEP ** (n + 1) // 2), 1)

    def _conclusion(self) -> Iterator[str]:
        base = len(ASCII_BYTES)
        yield (
            f"--ascii-only starts from {base} base tokens instead of 256, which leaves "
            f"{256 - base} more for merges"
        )
        if self.first_outside is None:
            yield "this file qualifies: every byte is a tab, a line end or in 0x20 to 0x7E"
        else:
            yield (
                f"this file does not qualify: {_output.amount(self.outside, 'byte')} other than "
                f"tabs, line ends and 0x20 to 0x7E, the first of them 0x{self.byte_outside:02X} "
                f"at offset {self.first_outside:,}"
            )


def _compact(count: int) -> str:
    """A count in at most four characters, such as 12k."""
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
