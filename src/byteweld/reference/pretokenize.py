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
    source = resolve_pattern(pattern) or ""  # only None has none
    flags = 0
    if _has_sets_of_sets(source):
        # Version 1 of regex reads them. It also takes "ss" for "ß" where case is ignored, which is
        # no rule of the field: f turns that off.
        source, flags = f"(?-f:{source})", regex.VERSION1
    try:
        return regex.compile(source, flags)
    except regex.error as error:
        raise PatternError(f"pattern {pattern!r} cannot be compiled: {error}") from None


# What matters for sets: a character behind a backslash (a class with its name), the beginning of a
# set (where ] is a character), a POSIX class, the signs between two sets, an end.
_SET_PARTS = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[:\^?\w+:\]|\[\^?\]?|&&|--|~~|\|\||\]", re.DOTALL)
_SIGNS = ("&&", "--", "~~")


def _has_sets_of_sets(source: str) -> bool:
    """Whether a set holds a set, or is made of two: `[\\w--\\d]`, `[\\p{L}&&[^\\p{Han}]]`.

    Raises:
        PatternError: if regex would read such a set in another way than the engine.
    """
    depth, found, before = 0, False, -1
    for part in _SET_PARTS.finditer(source):
        text, here = part.group(), part.start()
        if text.startswith("[:") and depth:
            raise _unreadable(source, here, f"the class {text}", "write its characters")
        if text.startswith("["):
            found |= depth > 0
            depth += 1
            before = part.end()
        elif depth and text == "]":
            depth -= 1
        elif depth and text == "||":
            raise _unreadable(source, here, "'||'", "write one '|' for the character")
        elif depth and text in _SIGNS:
            if here == before or source[part.end() : part.end() + 1] == "]":
                raise _unreadable(source, here, repr(text), "put a set on both sides, or escape it")
            found = True
    return found


def _unreadable(source: str, place: int, what: str, instead: str) -> PatternError:
    return PatternError(
        f"pattern {source!r} has {what} in a set at character {place}, which the reference reads "
        f"in another way than the engine; {instead}"
    )
