"""Split text into pre-tokens: first at special tokens, then with the pattern.

The pre-tokens, concatenated, are the text. Merges never cross the boundary between two pre-tokens,
so training and encoding look at one pre-token at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from byteweld._extras import imported
from byteweld.errors import PatternError
from byteweld.patterns import is_over_bytes, resolve_pattern


def split_specials(text: bytes, specials: Iterable[str]) -> Iterator[bytes | str]:
    """Yield ordinary text as bytes and special tokens as str, in the order of the text.

    Where two special tokens start at the same offset, the longer one wins.

    Examples:
        >>> from byteweld import reference
        >>> list(reference.split_specials(b"a<|x|>b", ["<|x|>"]))
        [b'a', '<|x|>', b'b']
    """
    longest_first = sorted((special.encode() for special in specials), key=len, reverse=True)
    segments = [text]
    if longest_first:
        # The capturing group makes split() keep the separators: text, special, text, ...
        segments = re.split(b"(" + b"|".join(map(re.escape, longest_first)) + b")", text)
    for n, segment in enumerate(segments):
        if n % 2 == 1:
            yield segment.decode()
        elif segment:
            yield segment


def pretokenize(text: bytes, pattern: str | None) -> list[bytes]:
    """Split text with a pattern. Non-empty matches are pre-tokens, and so are the gaps between.

    Examples:
        >>> from byteweld import reference
        >>> reference.pretokenize(b"ab ab\\n", "gpt2")
        [b'ab', b' ab', b'\\n']
        >>> reference.pretokenize(b"ab ab\\n", None)
        [b'ab ab\\n']
    """
    if pattern is None:
        return [text] if text else []
    if is_over_bytes(pattern):
        return _split_bytes(text, pattern)
    # An invalid byte becomes a lone surrogate, which is neither a letter, a digit nor a space.
    characters = text.decode("utf-8", "surrogateescape")
    pretokens, end = [], 0
    for match in _compile(pattern).finditer(characters):
        if match.end() > match.start():
            pretokens += [characters[end : match.start()], match.group()]
            end = match.end()
    pretokens.append(characters[end:])
    return [p.encode("utf-8", "surrogateescape") for p in pretokens if p]


def _split_bytes(text: bytes, pattern: str) -> list[bytes]:
    """Split text with a pattern that matches every byte."""
    source = (resolve_pattern(pattern) or "").removeprefix("(?-u)")
    return [match.group() for match in re.finditer(source.encode(), text)]


@lru_cache(maxsize=32)
def _compile(pattern: str) -> Any:
    # Imported on use, so that vocabularies without a pattern do not need the package. The standard
    # library's `re` does not support \p{L}.
    regex = imported("regex", "the reference", "reference")
    source = resolve_pattern(pattern) or ""  # for mypy: only None resolves to None
    flags = 0
    if _has_set_operations(source):
        # VERSION1 supports set operations, but its case-insensitive "ß" also matches "ss", which
        # no other engine does; -f turns that off.
        source, flags = f"(?-f:{source})", regex.VERSION1
    try:
        return regex.compile(source, flags)
    except regex.error as error:
        raise PatternError(f"pattern {pattern!r} cannot be compiled: {error}") from None


# The tokens that matter inside a set: escapes and named classes, POSIX classes, the start of a set
# (where a leading ] is literal), the set operators, the end of a set.
_SET_SYNTAX = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[:\^?\w+:\]|\[\^?\]?|&&|--|~~|\|\||\]", re.DOTALL)
_OPERATORS = ("&&", "--", "~~")


def _has_set_operations(source: str) -> bool:
    """Whether a set contains a set or an operator: `[\\w--\\d]`, `[\\p{L}&&[^\\p{Han}]]`.

    Raises:
        PatternError: if `regex` and the engine would read such a set differently.
    """
    depth, found, set_start = 0, False, -1
    for part in _SET_SYNTAX.finditer(source):
        text, offset = part.group(), part.start()
        if text.startswith("[:") and depth:
            raise _ambiguous(source, offset, f"the class {text}", "list its characters")
        if text.startswith("["):
            found |= depth > 0
            depth += 1
            set_start = part.end()
        elif depth and text == "]":
            depth -= 1
        elif depth and text == "||":
            raise _ambiguous(source, offset, "'||'", "write a single '|' for the character")
        elif depth and text in _OPERATORS:
            if offset == set_start or source[part.end() : part.end() + 1] == "]":
                raise _ambiguous(source, offset, repr(text), "put a set on both sides or escape it")
            found = True
    return found


def _ambiguous(source: str, offset: int, what: str, instead: str) -> PatternError:
    return PatternError(
        f"pattern {source!r} has {what} in a set at character {offset}, which the reference and "
        f"the engine read differently; {instead}"
    )
