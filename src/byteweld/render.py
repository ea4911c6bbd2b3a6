"""Render tokens as colored spans, for terminals, notebooks and reports. Pure: prints nothing.

Everything is made visible: spaces and newlines become marks; partial characters and invisible ones
are written out in ⟨ ⟩.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
_MAX_TOKENS = 5_000  # per text in a notebook or report


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


def color_number(token_id: int) -> int:
    """Return the palette index of a token; the same token always has the same color."""
    return token_id % len(_BACKGROUNDS)


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
    """Return a function that shows a token within a line, with its background if `color`."""

    def name(token_id: int) -> str:
        return painted(token_id, visible(tokens[token_id]), color)

    return name


def painted(token_id: int, text: str, color: bool) -> str:
    """Return text, such as part of a token, with that token's background."""
    return f"\x1b[{_background(token_id)}m{text}\x1b[0m" if color else text


def token_names(tokens: Mapping[int, bytes]) -> dict[str, dict[str, str]]:
    """Return the bytes and the text of each token, as JSON-serializable values."""
    return {str(i): {"bytes": token.hex(), "text": visible(token)} for i, token in tokens.items()}


# ---------------------------------------------------------------------------- lines


def amount(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> amount(1, "byte"), amount(1234, "byte")
    ('1 byte', '1,234 bytes')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


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


# ---------------------------------------------------------------------------- HTML


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


def to_html(shown: Sequence[Span], limit: int = _MAX_TOKENS) -> Html:
    """Return spans as a paragraph of tokens, up to `limit` of them."""
    from byteweld.markup import Child, element, more

    parts: list[Child] = []
    for span in shown[:limit]:
        parts.append(tile(span.id, span.bytes, is_special=span.is_special))
        if span.bytes.endswith(b"\n"):
            parts.append(element("br"))
    left_out = more(len(shown) - limit, "token")
    return element("div", element("p", parts, class_="tokens"), left_out)


@dataclass(frozen=True, repr=False)
class EncodedText:
    """Encoded text to look at; made by `Tokenizer.show`.

    `print` shows its tokens, a notebook shows them in color.

    Attributes:
        spans: the tokens: id, bytes, text, and whether it is a special token.
        ends: the byte offset in the text at which each token ends.

    Examples:
        >>> import byteweld
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> shown = tok.show("hello world!")
        >>> print(shown)
        hello|·world|!
        >>> shown.ids, shown.ends, shown.bytes_per_token
        ([263, 264, 33], (5, 11, 12), 4.0)
    """

    spans: tuple[Span, ...]
    ends: tuple[int, ...]  # byte offset in the text at which each token ends

    @property
    def ids(self) -> list[int]:
        """The ids of the text."""
        return [span.id for span in self.spans]

    @property
    def bytes_per_token(self) -> float | None:
        """Bytes per token; None if the text is empty."""
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
        """Return the text as JSON-serializable values."""
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

        rate = self.bytes_per_token
        summary = f"{amount(len(self), 'token')}, {amount(self._bytes, 'byte')}"
        summary += "" if rate is None else f", {rate:.2f} bytes per token"
        return fragment(to_html(self.spans), element("p", summary, class_="hint"))
