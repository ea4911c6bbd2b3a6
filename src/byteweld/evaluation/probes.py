"""Probe a tokenizer with fixed inputs: digits, indentation, a sentence in many languages. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from byteweld.errors import ByteweldError
from byteweld.evaluation.words import WordRate, add_rates, total_rate, words
from byteweld.samples import SENTENCES
from byteweld.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_DIGITS = 4  # every number of up to this many digits is tried
_NUMBERS = ("1234567", "1,234,567", "3.14159", "2024-12-31", "0xff")
_INDENTS = (
    *((f"{count} spaces", " " * count) for count in (2, 4, 8, 12, 16)),
    *((f"{count} tab{'s' if count > 1 else ''}", "\t" * count) for count in (1, 2, 3)),
)


class WholeNumbers(NamedTuple):
    """How many of the numbers with `digits` digits are a single token."""

    digits: int
    whole: int
    total: int


class Pieces(NamedTuple):
    """A named string and its tokens."""

    name: str
    tokens: tuple[bytes, ...]


class Language(NamedTuple):
    """The cost of the sample sentence in one language."""

    name: str
    characters: int
    bytes: int
    tokens: int
    words: WordRate

    @property
    def bytes_per_token(self) -> float | None:
        """Bytes per token; None if there are no tokens."""
        return self.bytes / self.tokens if self.tokens else None


class Probes(NamedTuple):
    """The results of all probes."""

    whole_numbers: tuple[WholeNumbers, ...]
    numbers: tuple[Pieces, ...]
    indents: tuple[Pieces, ...]
    languages: tuple[Language, ...]


def probe(tok: Tokenizer) -> Probes:
    """Probe a tokenizer with digits, indentation and languages.

    Skips a language if the tokenizer has no token for one of its characters.
    """
    return Probes(
        tuple(_whole_numbers(tok, digits) for digits in range(1, _MAX_DIGITS + 1)),
        tuple(Pieces(text, tuple(_pieces(tok, text.encode()))) for text in _NUMBERS),
        tuple(_indent(tok, name, text.encode()) for name, text in _INDENTS),
        tuple(found for name in SENTENCES if (found := _language(tok, name)) is not None),
    )


def _whole_numbers(tok: Tokenizer, digits: int) -> WholeNumbers:
    numbers = [f"{number:0{digits}}" for number in range(10**digits)]
    encoded = tok.encode_ordinary_batch(numbers, num_threads=1)
    return WholeNumbers(digits, sum(len(ids) == 1 for ids in encoded), len(numbers))


def _pieces(tok: Tokenizer, text: bytes) -> list[bytes]:
    _, offsets = tok.encode_with_offsets(text, disallowed_special=())
    return [text[start:end] for start, end in offsets]


def _indent(tok: Tokenizer, name: str, indent: bytes) -> Pieces:
    """Return the tokens that overlap a newline and the indentation after it."""
    before, after = b"):", b"return"
    found = []
    end = 0
    for piece in _pieces(tok, before + b"\n" + indent + after):
        end += len(piece)
        if len(before) < end and end - len(piece) < len(before) + 1 + len(indent):
            found.append(piece)
    return Pieces(name, tuple(found))


def _language(tok: Tokenizer, name: str) -> Language | None:
    text = SENTENCES[name].encode()
    try:
        _, offsets = tok.encode_with_offsets(text, disallowed_special=())
    except ByteweldError:
        return None
    ends: NDArray[np.int64] = np.fromiter((end for _, end in offsets), np.int64, len(offsets))
    by_script: dict[str, WordRate] = {}
    for found in words(text):
        add_rates(by_script, found, ends)
    rate = total_rate(by_script)
    return Language(name, len(SENTENCES[name]), len(text), len(offsets), rate)
