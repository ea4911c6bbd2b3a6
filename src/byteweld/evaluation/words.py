"""Words of a text, and into how many tokens each is cut. Pure.

A word is a run of letters, marks and numbers of any script that does not begin with a mark.
Languages that are written without spaces have no such words; there a run is a whole clause.
"""

from __future__ import annotations

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

# Words and what is between them, in turn: the engine cuts, with Unicode's own classes.
_PATTERN = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*|[^\p{L}\p{N}]+"
_BLOCK_BYTES = 1 << 20
_SPACE = re.compile(rb"[\n ]")
_KEPT_SCRIPTS = 1 << 17


@cache
def _cutter() -> Tokenizer:
    return Tokenizer(Vocabulary({b: bytes([b]) for b in range(256)}, pattern=_PATTERN))


class Words(NamedTuple):
    """The words of a stretch of text: where each starts and ends, and its script."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    scripts: list[str]

    def pieces(self, token_ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many tokens hold a part of each word; `token_ends` are offsets of the same text."""
        first = np.searchsorted(token_ends, self.starts, side="right")
        last = np.searchsorted(token_ends, self.ends, side="left")
        inner: NDArray[np.int64] = last - first + 1
        return inner


class _Scripts(dict[bytes, str]):
    """The scripts of words, remembered: few words are most of a text."""

    def __missing__(self, word: bytes) -> str:
        if len(self) >= _KEPT_SCRIPTS:
            self.clear()
        script = self[word] = script_of(word)
        return script


_scripts = _Scripts()


def words(text: bytes) -> Iterator[Words]:
    """The words of a text, some at a time.

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
    """The end of a block: behind a space or line end, which no word holds."""
    end = start + _BLOCK_BYTES
    if end >= len(text):
        return len(text)
    before = max(text.rfind(b"\n", start, end), text.rfind(b" ", start, end))
    if before >= 0:
        return before + 1
    after = _SPACE.search(text, end)
    return after.end() if after else len(text)


def _words_of(block: bytes, offset: int) -> Words:
    # With a line end before it, a block begins with what is no word, and then they take turns.
    pieces = _cutter().pretokenize(b"\n" + block)
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces))) - 1 + offset
    return Words(ends[:-1:2], ends[1::2], [_scripts[word] for word in pieces[1::2]])


class WordRate(NamedTuple):
    """What words cost: how many there are, their bytes, the tokens that hold a part of them."""

    words: int = 0
    bytes: int = 0
    pieces: int = 0
    whole: int = 0  # words that no token's edge cuts

    def __add__(self, other: object) -> WordRate:
        if not isinstance(other, WordRate):
            return NotImplemented
        return WordRate(*(mine + its for mine, its in zip(self, other, strict=True)))

    @property
    def fertility(self) -> float | None:
        """Tokens per word; None where there is no word."""
        return self.pieces / self.words if self.words else None

    @property
    def whole_share(self) -> float | None:
        """The share of words that are in one token."""
        return self.whole / self.words if self.words else None

    @property
    def bytes_per_piece(self) -> float | None:
        """Bytes of words per token that holds a part of one."""
        return self.bytes / self.pieces if self.pieces else None


def rates_by_script(found: Words, token_ends: NDArray[np.int64]) -> dict[str, WordRate]:
    """What the words of each script cost."""
    pieces = found.pieces(token_ends)
    sizes = found.ends - found.starts
    names = list(dict.fromkeys(found.scripts))
    places = {name: place for place, name in enumerate(names)}
    which = np.fromiter((places[name] for name in found.scripts), np.int64, len(found.scripts))

    def sums(values: NDArray[np.int64] | NDArray[np.bool_]) -> list[int]:
        added = np.bincount(which, values, len(names))  # exact: a block has no 2**53 bytes
        return [int(value) for value in added]

    columns = (sums(np.ones_like(sizes)), sums(sizes), sums(pieces), sums(pieces == 1))
    return dict(zip(names, map(WordRate, *columns), strict=True))


def add_rates(sums: dict[str, WordRate], found: Words, ends: NDArray[np.int64]) -> None:
    """Add what the words of each script cost."""
    for script, rate in rates_by_script(found, ends).items():
        sums[script] = sums.get(script, WordRate()) + rate


def total_rate(by_script: Mapping[str, WordRate]) -> WordRate:
    """What all words cost."""
    return sum(by_script.values(), WordRate())
