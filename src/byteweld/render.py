"""Tokens -> coloured spans: pure, nothing is printed here. Terminal, notebook and report use it.

Every token is shown so that nothing hides: spaces and line ends are marks; bytes that are a part of
a character, and characters that cannot be seen, are written out in ⟨ ⟩.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byteweld.vocab import Vocabulary

if TYPE_CHECKING:
    from byteweld.markup import Html  # only HTML needs it

_MARKS = {" ": "·", "\n": "⏎", "\t": "⇥"}
# Characters that have a meaning in what is shown are written out when the text itself holds them.
_TAKEN = frozenset("·⏎⇥⟨⟩⟦⟧◌")

# 256-colour codes: light backgrounds under black letters, neighbours far apart in hue.
_BACKGROUNDS = (153, 223, 157, 225, 229, 123, 217, 191, 183, 159, 222, 194)
_SPECIAL_STYLE = "1;38;5;231;48;5;18"  # bold white on dark blue
_TINTS = 10  # of markup/palette.css
_CODES = re.compile("\x1b\\[[0-9;]*m")
_CONTEXT_BYTES = 40  # of the text around a difference, on each side
_MAX_TOKENS = 5_000  # that a notebook or report shows of one text


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


def visible_name(name: str) -> str:
    """A name, such as a file's, with nothing hidden in it; its spaces stay.

    >>> visible_name("a b\\x1b.txt")
    'a b⟨U+001B⟩.txt'
    """
    return " ".join(visible(part.encode("utf-8", "surrogateescape")) for part in name.split(" "))


def around(content: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    """Some text before and after a stretch, in whole characters where it has such.

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
    return _SPECIAL_STYLE if span.is_special else _background(span.id)


def _background(token_id: int) -> str:
    return f"38;5;16;48;5;{_BACKGROUNDS[color_number(token_id)]}"


def _styled(span: Span) -> str:
    return f"\x1b[{_style(span)}m{span.text}\x1b[0m"


def _plain(span: Span) -> str:
    return f"⟦{span.text}⟧" if span.is_special else span.text.replace("|", "⟨|⟩")


def namer(tokens: Mapping[int, bytes], color: bool) -> Callable[[int], str]:
    """How single tokens are named in a line of text: with their own background, or plainly."""

    def name(token_id: int) -> str:
        return painted(token_id, visible(tokens[token_id]), color)

    return name


def painted(token_id: int, text: str, color: bool) -> str:
    """A text, such as a part of a token, with that token's background."""
    return f"\x1b[{_background(token_id)}m{text}\x1b[0m" if color else text


# ---------------------------------------------------------------------------- columns


def width(text: str) -> int:
    """How many cells of a terminal a text takes; colours take none.

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
    """Rows set in columns, those of `right` to the right; nothing hangs over at the end.

    >>> list(columns([["file", "bytes"], ["a", "12"]], right=[1]))
    ['file  bytes', 'a        12']
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for place, (cell, most) in enumerate(zip(row, widths, strict=True)):
            space = " " * (most - width(cell))
            cells.append(space + cell if place in right else cell + space)
        yield gap.join(cells).rstrip()


# ---------------------------------------------------------------------------- HTML


def tile(token_id: int, token: bytes, *, is_special: bool = False, kind: str = "") -> Html:
    """One token as an element: its tint by its id, as in the studio, and its id and bytes in words.

    >>> tile(97, b"<")
    '<span class="t c2" title="id 97, 1 byte: 3c">&lt;</span>'
    """
    from byteweld.markup import element

    tint = "special" if is_special else f"c{(token_id * 7 + 3) % _TINTS}"
    shown = token[:16].hex(" ") + (" …" if len(token) > 16 else "")
    words = f"id {token_id}, {len(token)} byte{'' if len(token) == 1 else 's'}: {shown}"
    return element("span", visible(token), class_=f"t {tint} {kind}".rstrip(), title=words)


def to_html(shown: Sequence[Span], limit: int = _MAX_TOKENS) -> Html:
    """Spans as a paragraph of tokens; of a long text, the first ones."""
    from byteweld.markup import Child, element

    parts: list[Child] = []
    for span in shown[:limit]:
        parts.append(tile(span.id, span.bytes, is_special=span.is_special))
        if span.bytes.endswith(b"\n"):
            parts.append(element("br"))
    more = None
    if len(shown) > limit:
        more = element("p", f"… and {len(shown) - limit:,} tokens more", class_="hint")
    return element("div", element("p", parts, class_="tokens"), more)


@dataclass(frozen=True, repr=False)
class EncodedText:
    """A text as its tokens, to look at: `print` shows them, a notebook in colour."""

    spans: tuple[Span, ...]
    ends: tuple[int, ...]  # where each token ends in the text, in bytes

    @property
    def ids(self) -> list[int]:
        """The ids."""
        return [span.id for span in self.spans]

    @property
    def bytes_per_token(self) -> float | None:
        """None for an empty text."""
        return self.ends[-1] / len(self.spans) if self.spans else None

    def __len__(self) -> int:
        return len(self.spans)

    def __str__(self) -> str:
        return to_ansi(self.spans, color=False)

    def __repr__(self) -> str:
        return f"<EncodedText {len(self)} tokens of {self._bytes} bytes>"

    @property
    def _bytes(self) -> int:
        return self.ends[-1] if self.ends else 0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        starts = (0, *self.ends)
        return {
            "bytes": self._bytes,
            "tokens": [
                {
                    "id": span.id,
                    "bytes": span.bytes.hex(),
                    "text": span.text,
                    "start": start,
                    "end": end,
                    "is_special": span.is_special,
                }
                for span, start, end in zip(self.spans, starts, self.ends, strict=False)
            ],
        }

    def _repr_html_(self) -> str:
        from byteweld.markup import element, fragment

        rate = "" if self.bytes_per_token is None else f", {self.bytes_per_token:.2f} bytes a token"
        words = f"{len(self):,} tokens, {self._bytes:,} bytes{rate}"
        return fragment(to_html(self.spans), element("p", words, class_="hint"))
