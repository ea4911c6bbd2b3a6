"""Seeded SVG icons, for training without a pattern.

Paths with relative and absolute commands, groups, gradients, circles, text; each drawing is one
document. Uses only `Random.random`, whose sequence Python guarantees to be stable.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

SEPARATOR = b"<|endoftext|>"
SEED = 11

_COLORS = "#fff #000 #333 #2e6ad1 #060606 #e74c3c #f4b400 #0f9d58 #888a85 currentColor".split()
_SIZES = (16, 24, 24, 24, 32, 48)
_COMMANDS = "M m L l l l H h h V v v C c c c c S s Q q a".split()
_NUMBERS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4}
_LABELS = "Home Search Menu Close Back Next Save Open Play Stop".split()


def drawings(seed: int = SEED) -> Iterator[bytes]:
    """Yield drawings forever; concatenated, they are documents joined by SEPARATOR."""
    generator = _Generator(random.Random(seed))
    yield generator.drawing()
    while True:
        yield SEPARATOR + generator.drawing()


class _Generator:
    """Generates drawings from one source of random numbers."""

    def __init__(self, source: random.Random) -> None:
        self._random = source.random
        self._recent: list[float] = []  # in this drawing: shapes share corners and radii

    def _below(self, limit: int) -> int:
        return int(self._random() * limit)

    def _one_of(self, choices: tuple[int, ...] | list[str]) -> str:
        return str(choices[self._below(len(choices))])

    def drawing(self) -> bytes:
        size = int(self._one_of(_SIZES))
        self._recent = []
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}">']
        if self._below(3) == 0:
            lines += self._gradient()
        for _ in range(1 + self._below(4)):
            lines += self._group(size) if self._below(4) == 0 else [self._shape(size, "  ")]
        return ("\n".join([*lines, "</svg>"]) + "\n").encode()

    def _gradient(self) -> list[str]:
        name = "abcdef"[self._below(6)]
        stops = [
            f'      <stop stop-color="{self._one_of(_COLORS)}" offset="{self._below(11) / 10:g}"/>'
            for _ in range(2 + self._below(2))
        ]
        opening = f'    <linearGradient id="{name}" gradientUnits="userSpaceOnUse">'
        return ["  <defs>", opening, *stops, "    </linearGradient>", "  </defs>"]

    def _group(self, size: int) -> list[str]:
        moved = f"{self._number(size)} {self._number(size)}"
        inside = [self._shape(size, "    ") for _ in range(1 + self._below(3))]
        return [f'  <g transform="translate({moved})">', *inside, "  </g>"]

    def _shape(self, size: int, indent: str) -> str:
        kind = self._below(10)
        fill = f'fill="{self._one_of(_COLORS)}"'
        if kind == 0:
            x, y, r = self._number(size), self._number(size), self._length(size // 2)
            return f'{indent}<circle cx="{x}" cy="{y}" r="{r}" {fill}/>'
        if kind == 1:
            x, y, width = self._number(size), self._number(size), self._length(size)
            return f'{indent}<rect x="{x}" y="{y}" width="{width}" height="{width}" {fill}/>'
        if kind == 2:
            x = self._number(size)
            return f'{indent}<text x="{x}" y="{x}" {fill}>{self._one_of(_LABELS)}</text>'
        stroke = ' stroke-width="2" stroke-linecap="round"' if self._below(3) == 0 else ""
        return f'{indent}<path d="{self._path(size)}" {fill}{stroke}/>'

    def _path(self, size: int) -> str:
        parts = [f"M{self._number(size)} {self._number(size)}"]
        for _ in range(3 + self._below(20)):
            command = self._one_of(_COMMANDS)
            if command == "a":
                radius = self._length(size // 4)
                end = f"{self._number(size)} {self._number(size)}"
                parts.append(f"a{radius} {radius} 0 {self._below(2)} {self._below(2)} {end}")
            else:
                numbers = [self._number(size) for _ in range(_NUMBERS[command.upper()])]
                parts.append(command + " ".join(numbers).replace(" -", "-"))
        return "".join(parts) + "z"

    def _number(self, size: int) -> str:
        """A coordinate, mostly inside the picture; half of them repeat a recent one."""
        if self._recent and self._below(2):
            value = self._recent[-1 - self._below(min(len(self._recent), 6))]
            return self._decimal(-value if self._below(3) == 0 else value)
        value = round((self._random() * 1.6 - 0.6) * size, (0, 0, 0, 1, 2, 2)[self._below(6)])
        self._recent.append(value)
        return self._decimal(value)

    def _length(self, size: int) -> str:
        return self._decimal(round((0.1 + 0.8 * self._random()) * size, self._below(2)))

    def _decimal(self, value: float) -> str:
        """Format like SVG editors do: `-.5`, not `-0.50`."""
        shown = f"{abs(value):.2f}".rstrip("0").rstrip(".")
        if shown.startswith("0."):
            shown = shown[1:]
        return "-" + shown if value < 0 and shown != "0" else shown
