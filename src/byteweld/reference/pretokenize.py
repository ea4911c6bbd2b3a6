"""Text -> pre-tokens: cut at special tokens, then with the pattern. No byte is lost or changed.

Merges never cross a pre-token, so everything after this file looks at one pre-token at a time.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from byteweld.errors import PatternError
from byteweld.patterns import resolve_pattern


def split_specials(text: bytes, specials: Iterable[str]) -> Iterator[bytes | str]:
    """Yield ordinary text as bytes and each special token as str, in the order of the text.

    The leftmost special token is found first; of two that begin at one place, the longer.

    >>> list(split_specials(b"a<|x|>b", ["<|x|>"]))
    [b'a', '<|x|>', b'b']
    """
    longest_first = sorted((special.encode() for special in specials), key=len, reverse=True)
    pieces = [text]
    if longest_first:
        # A group in the expression makes split() give the separators too: text, special, text, ...
        pieces = re.split(b"(" + b"|".join(map(re.escape, longest_first)) + b")", text)
    for n, piece in enumerate(pieces):
        if n % 2 == 1:
            yield piece.decode()
        elif piece:
            yield piece


def pretokenize(text: bytes, pattern: str | None) -> list[bytes]:
    """Cut text with a pattern. Each non-empty match is a pre-token, and so is the text between two.

    >>> pretokenize(b"ab ab\\n", "gpt2")
    [b'ab', b' ab', b'\\n']
    >>> pretokenize(b"ab ab\\n", None)
    [b'ab ab\\n']
    """
    if pattern is None:
        return [text] if text else []
    # A byte that is not UTF-8 becomes a lone surrogate: no letter, no digit, no space.
    characters = text.decode("utf-8", "surrogateescape")
    pieces, end = [], 0
    for match in _compile(pattern).finditer(characters):
        if match.end() > match.start():
            pieces += [characters[end : match.start()], match.group()]
            end = match.end()
    pieces.append(characters[end:])
    return [piece.encode("utf-8", "surrogateescape") for piece in pieces if piece]


@lru_cache(maxsize=32)
def _compile(pattern: str) -> Any:
    # Imported on use: only a reader of patterns needs it. (`re` knows no \p{L}.)
    try:
        regex = importlib.import_module("regex")
    except ImportError as error:
        raise ImportError(
            "the reference reads patterns with regex; install it with: "
            "pip install 'byteweld[reference]'"
        ) from error
    try:
        return regex.compile(resolve_pattern(pattern))
    except regex.error as error:
        raise PatternError(f"pattern {pattern!r} cannot be compiled: {error}") from None
