"""Text that arrives in pieces: ids become text, and text becomes ids, as soon as they are certain.

A stream has state and belongs to one thread. All that it gives is what `decode` or `encode` gives
for the whole, however that was cut. The engine is not known here: a stream is told what it calls.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, SupportsIndex, cast

from byteweld._text import Text, split_half, utf8

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Ids = Sequence[int] | NDArray[np.uint32]

# What these make of a byte does not depend on the bytes after the wrong ones.
_HANDLERS: Final = frozenset({"strict", "replace", "ignore", "backslashreplace", "surrogateescape"})


class DecodeStream:
    """Decodes ids as they come; made by `Tokenizer.decode_stream`.

    The work for an id is that of its own bytes: at most three bytes wait from before.
    """

    def __init__(self, decode_bytes: Callable[[Ids], bytes], errors: str = "replace") -> None:
        codecs.lookup_error(errors)
        self._decode_bytes = decode_bytes
        self._errors = errors
        self._pending = b""

    def feed(self, ids: SupportsIndex | Ids) -> str:
        """Take one id or several; returns the text that is certain now, often of earlier ids too.

        If it raises (an id outside the vocabulary, or wrong bytes where `errors` is "strict"),
        nothing of this call was taken, and the stream can go on.
        """
        data = self._pending + self._decode_bytes(_as_ids(ids))
        text, used = codecs.utf_8_decode(data, self._errors, False)
        rest = data[used:]
        if len(rest) == 2 and rest[0] == 0xED and rest[1] >= 0xA0 and self._errors in _HANDLERS:
            # Python waits here for a surrogate's third byte, which only "surrogatepass" can use.
            text += rest.decode(errors=self._errors)
            rest = b""
        self._pending = rest
        return text

    def finish(self) -> str:
        """What is left, by `errors`: the start of a character that never came. Then it is new."""
        text = self._pending.decode(errors=self._errors)
        self._pending = b""
        return text

    @property
    def pending(self) -> bytes:
        """The bytes taken and not yet given: the start of a character."""
        return self._pending


def _as_ids(ids: SupportsIndex | Ids) -> Ids:
    """One id is a list of one. An array may pass for an integer, so what has a length is ids."""
    if isinstance(ids, int):
        return [ids]
    if hasattr(ids, "__index__") and not hasattr(ids, "__len__"):
        return [ids.__index__()]
    return cast("Ids", ids)


class EncodeStream:
    """Encodes text as it comes; made by `Tokenizer.encode_stream`.

    `certain_end` says up to which byte the ids of a text stay whatever follows. It is asked again
    only when as much has come as was left before, so that all the asking is linear in the text.
    """

    def __init__(
        self,
        encode: Callable[[bytes], list[int]],
        certain_end: Callable[[bytes], int],
        *,
        block_bytes: int = 1,
    ) -> None:
        self._encode = encode
        self._certain_end = certain_end
        self._block_bytes = block_bytes  # less than this is not worth a look
        self._gathered = bytearray()
        self._half = ""  # a first half of a surrogate pair
        self._look_at = block_bytes

    def feed(self, text: Text) -> list[int]:
        """Take a piece of text, cut anywhere; returns the ids that are certain now.

        If it raises (a special token that may not be there), nothing of this call was taken.
        """
        if isinstance(text, str):
            text, half = split_half(self._half + text)
            new = utf8(text)
        else:
            new, half = utf8(self._half) + utf8(text), ""
        ids: list[int] = []
        if len(self._gathered) + len(new) < self._look_at:
            self._gathered += new
        else:
            gathered = bytes(self._gathered) + new
            end = self._certain_end(gathered)
            if end:
                ids = self._encode(gathered[:end])
            self._gathered = bytearray(memoryview(gathered)[end:])
            self._look_at = max(self._block_bytes, 2 * len(self._gathered))
        self._half = half
        return ids

    def finish(self) -> list[int]:
        """The ids of what is left. Then it is new."""
        ids = self._encode(self.pending)
        self._gathered = bytearray()
        self._half = ""
        self._look_at = self._block_bytes
        return ids

    @property
    def pending(self) -> bytes:
        """The bytes taken whose ids were not yet given."""
        return bytes(self._gathered) + utf8(self._half)
