"""Tokens -> coloured spans: pure, nothing is printed here. Terminal, notebook and page use it.

Every token is shown so that nothing hides: spaces and line ends are marks; bytes that are a part of
a character, and characters that cannot be seen, are written out in ⟨ ⟩.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from byteweld.vocab import Vocabulary

_MARKS = {" ": "·", "\n": "⏎", "\t": "⇥"}
# Characters that have a meaning in what is shown are written out when the text itself holds them.
_TAKEN = frozenset("·⏎⇥⟨⟩⟦⟧◌")

# 256-colour codes: light backgrounds under black letters, neighbours far apart in hue.
_BACKGROUNDS = (153, 223, 157, 225, 229, 123, 217, 191, 183, 159, 222, 194)
_SPECIAL_STYLE = "1;38;5;231;48;5;18"  # bold white on dark blue


@dataclass(frozen=True, slots=True)
class Span:
    """One token as it is shown."""

    id: int
    bytes: bytes
    text: str
    is_special: bool


def visible(token: bytes) -> str:
    """Return bytes as text in which every character can be seen.

    >>> visible(b" the\\n")
    '·the⏎'
    >>> visible("€".encode()[:2])
    '⟨e2⟩⟨82⟩'
    >>> visible("\\u202e".encode())
    '⟨U+202E⟩'
    """
    shown = [_visible_character(c) for c in token.decode("utf-8", "surrogateescape")]
    if shown and unicodedata.category(shown[0][0]).startswith("M"):
        shown.insert(0, "◌")  # a combining mark would sit on the token before
    return "".join(shown)


def _visible_character(character: str) -> str:
    if character in _MARKS:
        return _MARKS[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how surrogateescape holds a byte that is not UTF-8
        return f"⟨{code - 0xDC00:02x}⟩"
    # C: control, format (bidi too), private, unassigned. Z: separators, such as no-break spaces.
    if character in _TAKEN or unicodedata.category(character)[0] in "CZ":
        return f"⟨U+{code:04X}⟩"
    return character


def spans(vocab: Vocabulary, ids: Iterable[int]) -> list[Span]:
    """Return how each id is shown.

    >>> vocab = Vocabulary({b: bytes([b]) for b in range(256)})
    >>> [span.text for span in spans(vocab, [104, 105, 10])]
    ['h', 'i', '⏎']
    """
    special_ids = set(vocab.special_tokens.values())
    result = []
    for token_id in ids:
        if token_id not in vocab.tokens:
            raise KeyError(f"id {token_id!r} is not in the vocabulary of {len(vocab)} tokens")
        token = vocab.tokens[token_id]
        result.append(Span(token_id, token, visible(token), token_id in special_ids))
    return result


def color_number(token_id: int) -> int:
    """Return which of the palette's colours a token has: the same token, the same colour."""
    return token_id % len(_BACKGROUNDS)


def to_ansi(shown: Sequence[Span], color: bool) -> str:
    """Return spans as one string for a terminal.

    With colour, each token has its background, and `|` stands between two of the same colour.
    Without, `|` stands between all tokens, a `|` of the text is ⟨|⟩, and a special token is
    ⟦in brackets⟧. A real line break follows a token that ends with one.

    >>> vocab = Vocabulary({b: bytes([b]) for b in range(256)})
    >>> to_ansi(spans(vocab, b"a b"), color=False)
    'a|·|b'
    """
    parts: list[str] = []
    for n, span in enumerate(shown):
        breaks_line = span.bytes.endswith(b"\n") and n + 1 < len(shown)
        parts.append(_styled(span) if color else _plain(span))
        if breaks_line:
            parts.append("\n")
        elif n + 1 < len(shown) and (not color or _style(span) == _style(shown[n + 1])):
            parts.append("|")
    return "".join(parts)


def _style(span: Span) -> str:
    if span.is_special:
        return _SPECIAL_STYLE
    return f"38;5;16;48;5;{_BACKGROUNDS[color_number(span.id)]}"


def _styled(span: Span) -> str:
    return f"\x1b[{_style(span)}m{span.text}\x1b[0m"


def _plain(span: Span) -> str:
    return f"⟦{span.text}⟧" if span.is_special else span.text.replace("|", "⟨|⟩")
