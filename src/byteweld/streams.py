"""Encode and decode input that arrives in pieces, returning results as soon as they are final.

A stream has state and belongs to one thread. Its results, concatenated, are those of `decode` or
`encode` for the whole input, wherever it was cut. Streams do not depend on the engine: they are
given the functions that they call.
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

# With these handlers, invalid bytes decode the same way whatever follows them.
_HANDLERS: Final = frozenset({"strict", "replace", "ignore", "backslashreplace", "surrogateescape"})


class DecodeStream:
    """Decodes ids as they arrive; made by `Tokenizer.decode_stream`.

    At most three bytes are pending between calls, so a call costs only as much as its new ids. A
    stream belongs to one thread.

    Args:
        decode_bytes: returns the bytes of ids.
        errors: what to do with bytes that are not UTF-8, as in `bytes.decode`.

    Examples:
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> stream = tok.decode_stream()
        >>> stream.feed([263, 0xC3]), stream.pending  # the first of the two bytes of é
        ('hello', b'\\xc3')
        >>> stream.feed(0xA9), stream.finish()
        ('é', '')
    """

    def __init__(self, decode_bytes: Callable[[Ids], bytes], errors: str = "replace") -> None:
        codecs.lookup_error(errors)
        self._decode_bytes = decode_bytes
        self._errors = errors
        self._pending = b""

    def feed(self, ids: SupportsIndex | Ids) -> str:
        """Take one id or several; return the text that is final now, including that of earlier ids.

        If it raises (an id outside the vocabulary, or invalid bytes with `errors="strict"`), the
        stream is unchanged.
        """
        data = self._pending + self._decode_bytes(_as_ids(ids))
        text, used = codecs.utf_8_decode(data, self._errors, False)
        rest = data[used:]
        if len(rest) == 2 and rest[0] == 0xED and rest[1] >= 0xA0 and self._errors in _HANDLERS:
            # Python waits for the third byte of a surrogate, which only "surrogatepass" accepts.
            text += rest.decode(errors=self._errors)
            rest = b""
        self._pending = rest
        return text

    def finish(self) -> str:
        """Return the rest, an incomplete character decoded by `errors`; then start over."""
        text = self._pending.decode(errors=self._errors)
        self._pending = b""
        return text

    @property
    def pending(self) -> bytes:
        """The bytes of an incomplete character, fed but not yet returned."""
        return self._pending


def _as_ids(ids: SupportsIndex | Ids) -> Ids:
    """Turn one id into a list. Some arrays have `__index__`, so anything with a length is ids."""
    if isinstance(ids, int):
        return [ids]
    if hasattr(ids, "__index__") and not hasattr(ids, "__len__"):
        return [ids.__index__()]
    return cast("Ids", ids)


class EncodeStream:
    """Encodes text as it arrives; made by `Tokenizer.encode_stream`.

    A stream belongs to one thread.

    Args:
        encode: returns the ids of a text.
        certain_end: returns the offset up to which the ids of a text are final. It is called again
            only after the pending text has doubled, so that all calls together take linear time.
        block_bytes: how much text to collect before the first call.

    Examples:
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> stream = tok.encode_stream()
        >>> stream.feed("hello wo"), stream.pending, stream.feed("rld"), stream.finish()
        ([263], b' wo', [], [264])
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
        self._block_bytes = block_bytes  # less than this is not worth a call
        self._collected = bytearray()
        self._half = ""  # the first half of a surrogate pair, without its second
        self._next_check = block_bytes  # bytes

    def feed(self, text: Text) -> list[int]:
        """Take a piece of text, cut anywhere; return the ids that are final now.

        If it raises (a special token that is not allowed), the stream is unchanged.
        """
        if isinstance(text, str):
            text, half = split_half(self._half + text)
            new = utf8(text)
        else:
            new, half = utf8(self._half) + utf8(text), ""
        ids: list[int] = []
        if len(self._collected) + len(new) < self._next_check:
            self._collected += new
        else:
            collected = bytes(self._collected) + new
            end = self._certain_end(collected)
            if end:
                ids = self._encode(collected[:end])
            self._collected = bytearray(memoryview(collected)[end:])
            self._next_check = max(self._block_bytes, 2 * len(self._collected))
        self._half = half
        return ids

    def finish(self) -> list[int]:
        """Return the ids of the rest; then start over."""
        ids = self._encode(self.pending)
        self._collected = bytearray()
        self._half = ""
        self._next_check = self._block_bytes
        return ids

    @property
    def pending(self) -> bytes:
        """The bytes whose ids have not been returned yet."""
        return bytes(self._collected) + utf8(self._half)
