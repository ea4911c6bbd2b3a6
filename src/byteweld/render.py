"""Render tokens as colored spans, for terminals, notebooks and reports. Pure: prints nothing.

Everything is made visible: spaces and newlines become marks; partial characters and invisible ones
are written out in ⟨ ⟩.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from byteweld._amounts import amount
from byteweld.errors import UnknownIdError
from byteweld.vocab import Vocabulary

if TYPE_CHECKING:
    from byteweld.markup import Html  # only HTML needs it

_MARKS = {" ": "·", "\n": "⏎", "\t": "⇥"}
# Characters that have a special meaning here are written out if the text contains them.
_TAKEN = frozenset("·⏎⇥⟨⟩⟦⟧◌")

# 256-color codes: light backgrounds under black letters, consecutive ones far apart in hue.
_BACKGROUNDS = (153, 223, 157, 225, 229, 123, 217, 191, 183, 159, 222, 194)
_SPECIAL_STYLE = "1;38;5;231;48;5;18"  # bold white on dark blue
_CODES = re.compile("\x1b\\[[0-9;]*m")
_CONTEXT_BYTES = 40  # on each side of a difference


@dataclass(frozen=True, slots=True)
class Span:
    """A token as it is displayed."""

    id: int
    bytes: bytes
    text: str
    is_special: bool


def visible(token: bytes) -> str:
    """Return bytes as text in which every character is visible.

    >>> visible(b" the\\n")
    '·the⏎'
    >>> visible("€".encode()[:2])
    '⟨e2⟩⟨82⟩'
    >>> visible("\\u202e".encode())
    '⟨U+202E⟩'
    """
    shown = [_visible_character(c) for c in token.decode("utf-8", "surrogateescape")]
    if shown and unicodedata.category(shown[0][0]).startswith("M"):
        shown.insert(0, "◌")  # or the mark would combine with the previous token
    return "".join(shown)


def _visible_character(character: str) -> str:
    if character in _MARKS:
        return _MARKS[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape's code for a byte that is not UTF-8
        return f"⟨{code - 0xDC00:02x}⟩"
    # C: control, format (including bidi), private, unassigned. Z: separators.
    if character in _TAKEN or unicodedata.category(character)[0] in "CZ":
        return f"⟨U+{code:04X}⟩"
    return character


def visible_name(name: str) -> str:
    """Return a name, such as a file's, with invisible characters written out; spaces stay.

    >>> visible_name("a b\\x1b.txt")
    'a b⟨U+001B⟩.txt'
    """
    return " ".join(visible(part.encode("utf-8", "surrogateescape")) for part in name.split(" "))


def around(content: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    """Return some context before and after a span, trimmed to whole characters.

    >>> around(b"before, in it, after", 8, 13)
    (b'before, ', b', after')
    """
    first, last = max(0, start - _CONTEXT_BYTES), min(len(content), end + _CONTEXT_BYTES)
    while 0 < first < start and _is_continuation(content[first]):
        first += 1
    while end < last < len(content) and _is_continuation(content[last]):
        last -= 1
    return content[first:start], content[end:last]


def _is_continuation(byte: int) -> bool:
    return 0x80 <= byte < 0xC0


def spans(vocab: Vocabulary, ids: Iterable[int]) -> list[Span]:
    """Return the span of each id.

    >>> vocab = Vocabulary({b: bytes([b]) for b in range(256)})
    >>> [span.text for span in spans(vocab, [104, 105, 10])]
    ['h', 'i', '⏎']
    """
    special_ids = set(vocab.special_tokens.values())
    result = []
    for token_id in ids:
        if token_id not in vocab.tokens:
            raise UnknownIdError(
                f"id {token_id!r} is not in the vocabulary of {len(vocab)} tokens", token_id
            )
        token = vocab.tokens[token_id]
        result.append(Span(token_id, token, visible(token), token_id in special_ids))
    return result


def to_ansi(shown: Sequence[Span], color: bool) -> str:
    """Return spans as one string for a terminal.

    With color, tokens have backgrounds, and `|` separates two of the same color. Without color,
    `|` separates all tokens, a `|` in the text becomes ⟨|⟩, and special tokens are ⟦in brackets⟧.
    A token that ends with a newline is followed by a line break.

    >>> vocab = Vocabulary({b: bytes([b]) for b in range(256)})
    >>> to_ansi(spans(vocab, b"a b"), color=False)
    'a|·|b'
    """
    parts: list[str] = []
    for span, following in zip_longest(shown, shown[1:]):
        if color:
            parts.append(f"\x1b[{_style(span)}m{span.text}\x1b[0m")
        else:
            parts.append(f"⟦{span.text}⟧" if span.is_special else span.text.replace("|", "⟨|⟩"))
        if following is None:
            break
        if span.bytes.endswith(b"\n"):
            parts.append("\n")
        elif not color or _style(span) == _style(following):
            parts.append("|")
    return "".join(parts)


def _style(span: Span) -> str:
    return _SPECIAL_STYLE if span.is_special else _background(span.id)


def _background(token_id: int) -> str:
    return f"38;5;16;48;5;{_BACKGROUNDS[token_id % len(_BACKGROUNDS)]}"


def painted(token_id: int, text: str, color: bool) -> str:
    """Return text, such as part of a token, with that token's background."""
    return f"\x1b[{_background(token_id)}m{text}\x1b[0m" if color else text


def token_names(tokens: Mapping[int, bytes]) -> dict[str, dict[str, str]]:
    """Return the bytes and the text of each token, as JSON-serializable values."""
    return {str(i): {"bytes": token.hex(), "text": visible(token)} for i, token in tokens.items()}


def decimal(value: float | None, places: int = 2) -> str:
    """Format a number, or a dash for None."""
    return "-" if value is None else f"{value:.{places}f}"


def width(text: str) -> int:
    """Return the number of terminal cells a text takes; color codes take none.

    >>> width("abc"), width("漢字"), width("e\u0301"), width("\x1b[1mab\x1b[0m")
    (3, 4, 1, 2)
    """
    text = _CODES.sub("", text)
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(c) in ("Mn", "Me", "Cf")
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def columns(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), gap: str = "  "
) -> Iterator[str]:
    """Yield rows in aligned columns, those in `right` right-aligned, without trailing spaces.

    >>> list(columns([["file", "bytes"], ["a", "12"]], right=[1]))
    ['file  bytes', 'a        12']
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for index, (cell, most) in enumerate(zip(row, widths, strict=True)):
            space = " " * (most - width(cell))
            cells.append(space + cell if index in right else cell + space)
        yield gap.join(cells).rstrip()


def tile(token_id: int, token: bytes, *, is_special: bool = False, kind: str = "") -> Html:
    """Return a token as an element, colored by its id as in the studio; its title describes it.

    >>> tile(97, b"<")
    '<span class="t c2" title="id 97, 1 byte: 3c">&lt;</span>'
    """
    from byteweld.markup import element, tint

    color = "special" if is_special else tint(token_id)
    shown = token[:16].hex(" ") + (" …" if len(token) > 16 else "")
    title = f"id {token_id}, {amount(len(token), 'byte')}: {shown}"
    return element("span", visible(token), class_=f"t {color} {kind}".rstrip(), title=title)
