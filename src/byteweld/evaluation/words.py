"""Find the words of a text, and count the tokens of each. Pure.

A word is a run of letters, marks and numbers in any script that does not start with a mark.
In languages written without spaces, such a run is a whole clause.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from byteweld.evaluation import script_of
from byteweld.tokenizer import Tokenizer
from byteweld.vocab import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Matches words and the gaps between them, alternately. The engine runs it, so that words follow
# the same Unicode version as pre-tokens.
_PATTERN = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*|[^\p{L}\p{N}]+"
_BLOCK_BYTES = 1 << 20
_SPACE = re.compile(rb"[\n ]")
_MAX_CACHED_SCRIPTS = 1 << 17


@cache
def _splitter() -> Tokenizer:
    return Tokenizer(Vocabulary({b: bytes([b]) for b in range(256)}, pattern=_PATTERN))


class Words(NamedTuple):
    """The words of a stretch of text: their start and end offsets, and their scripts."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    scripts: list[str]
    num_bytes: int  # of the stretch

    def pieces(self, token_ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the tokens that overlap each word; `token_ends` are offsets in the same text."""
        first = np.searchsorted(token_ends, self.starts, side="right")
        last = np.searchsorted(token_ends, self.ends, side="left")
        overlapping: NDArray[np.int64] = last - first + 1
        return overlapping


class _ScriptCache(dict[bytes, str]):
    """Caches the scripts of words, since a few words make up most of a text."""

    def __missing__(self, word: bytes) -> str:
        if len(self) >= _MAX_CACHED_SCRIPTS:
            self.clear()
        script = self[word] = script_of(word)
        return script


_scripts = _ScriptCache()


def words(text: bytes) -> Iterator[Words]:
    """Yield the words of a text, block by block.

    >>> [found] = words("low, naïve!".encode())
    >>> found.starts.tolist(), found.ends.tolist(), found.scripts
    ([0, 5], [3, 11], ['latin', 'latin'])
    """
    start = 0
    while start < len(text):
        end = _block_end(text, start)
        yield _words_of(text[start:end], start)
        start = end


def _block_end(text: bytes, start: int) -> int:
    """Return the end of a block: just after a space or newline, which no word contains."""
    end = start + _BLOCK_BYTES
    if end >= len(text):
        return len(text)
    before = max(text.rfind(b"\n", start, end), text.rfind(b" ", start, end))
    if before >= 0:
        return before + 1
    after = _SPACE.search(text, end)
    return after.end() if after else len(text)


def _words_of(block: bytes, offset: int) -> Words:
    # The newline makes every block start with a gap, so that words are the odd pieces.
    pieces = _splitter().pretokenize(b"\n" + block)
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces))) - 1 + offset
    scripts = [_scripts[word] for word in pieces[1::2]]
    return Words(ends[:-1:2], ends[1::2], scripts, len(block))


class WordRate(NamedTuple):
    """The cost of words: their number, their bytes, and the tokens that overlap them."""

    words: int = 0
    bytes: int = 0
    pieces: int = 0
    whole: int = 0  # words that lie within one token

    def __add__(self, other: object) -> WordRate:
        if not isinstance(other, WordRate):
            return NotImplemented
        return WordRate(*map(operator.add, self, other))

    @property
    def fertility(self) -> float | None:
        """Tokens per word; None if there are no words."""
        return self.pieces / self.words if self.words else None

    @property
    def whole_share(self) -> float | None:
        """The share of words that lie within one token."""
        return self.whole / self.words if self.words else None

    @property
    def bytes_per_piece(self) -> float | None:
        """Bytes of words per token that overlaps one."""
        return self.bytes / self.pieces if self.pieces else None


def add_rates(sums: dict[str, WordRate], found: Words, token_ends: NDArray[np.int64]) -> None:
    """Add the cost of words, script by script, to `sums`."""
    pieces = found.pieces(token_ends)
    sizes = found.ends - found.starts
    names = list(dict.fromkeys(found.scripts))
    indices = {name: index for index, name in enumerate(names)}
    which = np.fromiter((indices[name] for name in found.scripts), np.int64, len(found.scripts))

    def by_script(values: NDArray[np.int64] | NDArray[np.bool_]) -> list[int]:
        added = np.bincount(which, values, len(names))  # exact: no block has 2**53 bytes
        return [int(value) for value in added]

    columns = map(by_script, (np.ones_like(sizes), sizes, pieces, pieces == 1))
    add(sums, dict(zip(names, map(WordRate, *columns), strict=True)))


def add(sums: dict[str, WordRate], rates: Mapping[str, WordRate]) -> None:
    """Add rates to `sums`, script by script."""
    for script, rate in rates.items():
        sums[script] = sums.get(script, WordRate()) + rate


def by_bytes(rates: Mapping[str, WordRate]) -> list[str]:
    """Return the scripts, the one with the most bytes first."""
    return sorted(rates, key=lambda name: (-rates[name].bytes, name))


def total_rate(by_script: Mapping[str, WordRate]) -> WordRate:
    """Return the cost of all words."""
    return sum(by_script.values(), WordRate())
