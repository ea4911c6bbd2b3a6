"""Convert between str and UTF-8: batches, surrogates, character offsets, trusted spans, terminals.

A str may hold surrogates, which UTF-8 cannot encode. As in tiktoken, a pair of them is one
character and a lone one is U+FFFD. Offsets in characters always index the caller's str.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

Text = str | bytes
_Document = TypeVar("_Document")

# Regular expressions are strings here: `re` compiles them on first use, which takes 1 ms.
_PAIR: Final = "[\ud800-\udbff][\udc00-\udfff]"
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_INSIDE: Final = frozenset(bytes([byte]) for byte in _CONTINUATION)
REPLACEMENT: Final = "\ufffd".encode()
# What a terminal obeys, or shows in another order: control characters (tabs and newlines excepted),
# line separators, bidirectional marks, and surrogates, which are bytes of undecodable names.
_UNSAFE: Final = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_DOCUMENT_BYTES: Final = 64  # overhead of a document, so that a batch of empty ones ends


def batches(
    documents: Iterable[_Document], num_bytes: int, size: Callable[[Any], int] = len
) -> Iterator[list[_Document]]:
    """Group documents into lists of about `num_bytes`.

    >>> list(batches([b"a", b"b", b"c"], 130))
    [[b'a', b'b'], [b'c']]
    """
    batch: list[_Document] = []
    filled = 0
    for document in documents:
        batch.append(document)
        filled += size(document) + _DOCUMENT_BYTES
        if filled >= num_bytes:
            yield batch
            batch, filled = [], 0
    if batch:
        yield batch


def utf8(text: Text) -> bytes:
    """Return a text as UTF-8, as the engine sees it.

    >>> utf8("a\\ud83d\\ude00") == "a😀".encode() and utf8("\\ud83d") == "\\ufffd".encode()
    True
    """
    if isinstance(text, bytes | bytearray):
        return bytes(text)
    if not isinstance(text, str):
        raise TypeError(f"expected str or bytes, found {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def printable(text: str, written: Callable[[re.Match[str]], str] | None = None) -> str:
    """Return text that is safe to print: unsafe characters are written out.

    >>> printable("a\\x1b[1m\\tb\\udc9b")
    'a⟨U+001B⟩[1m\\tb⟨9b⟩'
    """
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_UNSAFE, written or _written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"⟨{code - 0xDC00:02x}⟩" if 0xDC80 <= code <= 0xDCFF else f"⟨U+{code:04X}⟩"


def split_half(text: str) -> tuple[str, str]:
    """Split off the last character if it is the first half of a surrogate pair.

    >>> split_half("a\\ud83d"), split_half("a")
    (('a', '\\ud83d'), ('a', ''))
    """
    at = len(text) - ("\ud800" <= text[-1:] <= "\udbff")
    return text[:at], text[at:]


# ---------------------------------------------------------------------- offsets


def character_offsets(text: str, ends: Sequence[int]) -> list[tuple[int, int]]:
    """Turn the end offsets of tokens in bytes into (start, end) in characters.

    A token starts at the character that holds its first byte, and ends after the character that
    holds its last one. Two tokens that share a character overlap there.

    >>> character_offsets("a漢b", [1, 3, 5])
    [(0, 1), (1, 2), (1, 3)]
    """
    if text.isascii():
        return list(zip([0, *ends], ends, strict=False))
    raw = utf8(text)
    positions = _Positions(text)
    offsets = []
    start = begun = 0  # bytes before this token, and characters that start in them
    for end in ends:
        inside = raw[start : start + 1] in _INSIDE
        first = begun - inside
        begun += len(raw[start:end].translate(None, _CONTINUATION))
        offsets.append((positions.of(first), positions.of(begun)))
        start = end
    return offsets


def start_of(text: str, byte_length: int) -> str:
    """Return the whole characters within the first bytes of a text.

    >>> start_of("a漢b", 3), start_of("a漢b", 4)
    ('a', 'a漢')
    """
    characters = len(utf8(text)[:byte_length].decode(errors="ignore"))
    return text[: _Positions(text).of(characters)]


class _Positions:
    """Maps characters to indices of the str, in which a surrogate pair takes two."""

    def __init__(self, text: str) -> None:
        pairs = () if text.isascii() else re.finditer(_PAIR, text)
        self._pairs = [pair.start() - earlier for earlier, pair in enumerate(pairs)]

    def of(self, character: int) -> int:
        if not self._pairs:
            return character
        return character + bisect_left(self._pairs, character)


# ---------------------------------------------------------------------- spans


def span_bytes(spans: Iterable[tuple[Text, bool]]) -> tuple[list[bytes], list[bool]]:
    """Check spans of (text, trusted); return their bytes, which concatenate to the whole text's.

    If two spans share a surrogate pair, each gets half of its bytes, so that the character lies in
    neither.

    >>> span_bytes([("a\\ud83d", True), ("\\ude00", False)])
    ([b'a\\xf0\\x9f', b'\\x98\\x80'], [True, False])
    """
    if isinstance(spans, str | bytes):
        raise TypeError(f"expected an iterable of (text, trusted), found {type(spans).__name__}")
    texts: list[bytes] = []
    trusts: list[bool] = []
    waiting: tuple[int, str] | None = None  # a span's number, and the half of a pair at its end
    for number, span in enumerate(spans):
        text, trusted = _checked_span(number, span)
        trusts.append(trusted)
        texts.append(b"")
        if text == "":
            continue
        if waiting is not None:
            at, half = waiting
            waiting = None
            if isinstance(text, str) and "\udc00" <= text[0] <= "\udfff":
                whole = utf8(half + text[0])
                texts[at] += whole[:2]
                texts[number] = whole[2:]
                text = text[1:]
            else:
                texts[at] += REPLACEMENT
        if isinstance(text, str):
            text, half = split_half(text)
            if half:
                waiting = number, half
        texts[number] += utf8(text)
    if waiting is not None:
        texts[waiting[0]] += REPLACEMENT
    return texts, trusts


def _checked_span(number: int, span: object) -> tuple[Text, bool]:
    if not isinstance(span, tuple | list) or len(span) != 2:
        raise TypeError(f"span {number} is {span!r:.100}; expected (text, trusted)")
    text, trusted = span
    if not isinstance(text, str | bytes | bytearray):
        raise TypeError(
            f"span {number} has a text of type {type(text).__name__}; expected str or bytes"
        )
    if not isinstance(trusted, bool):  # "no" is truthy, and must not mean trusted
        raise TypeError(f"span {number} has trusted {trusted!r:.100}; expected True or False")
    return bytes(text) if isinstance(text, bytearray) else text, trusted
