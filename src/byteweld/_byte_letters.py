"""GPT-2's byte letters: the bijection that writes raw bytes as visible characters in JSON files.

0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for themselves; the other 68 bytes map, in order, to U+0100
onward.
"""

from __future__ import annotations

_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]

BYTE_TO_CHAR: dict[int, str] = {byte: chr(byte) for byte in _VISIBLE} | {
    byte: chr(0x100 + n) for n, byte in enumerate(_HIDDEN)
}
# In the order of the letters, which is that of Hugging Face's byte ids.
BYTES_BY_LETTER = bytes(byte for _, byte in sorted((c, b) for b, c in BYTE_TO_CHAR.items()))
CHAR_TO_BYTE: dict[str, int] = {char: byte for byte, char in BYTE_TO_CHAR.items()}
# ck intends GPT-2's letters, but shifts unprintable bytes by 0x100, and does not shift 0xAD: 35
# bytes have other letters.
CK_BYTE_TO_CHAR: dict[int, str] = {
    byte: chr(0x100 + byte if byte <= 0x20 or 0x7F <= byte <= 0xA0 else byte) for byte in range(256)
}


def bytes_to_chars(token: bytes) -> str:
    """Write bytes as letters.

    >>> bytes_to_chars(b" the\\n")
    'ĠtheĊ'
    """
    return token.decode("latin-1").translate(BYTE_TO_CHAR)


def chars_to_bytes(text: str) -> bytes | None:
    """Undo `bytes_to_chars`; None if a character is not one of the 256 letters.

    >>> chars_to_bytes("Ġthe")
    b' the'
    """
    try:
        return bytes(CHAR_TO_BYTE[char] for char in text)
    except KeyError:
        return None
