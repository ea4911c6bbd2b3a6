"""The Bytes view: counts of the byte values, and GPT-2's letters for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import byteweld
from byteweld._byte_letters import bytes_to_chars
from byteweld.evaluation import byte_counts
from byteweld.studio.request import Refused, Request
from byteweld.studio.session import Session
from byteweld.vocab import ASCII_BYTES

_MAX_COUNT = 2**53  # what a number in JavaScript counts exactly


def answer(session: Session, fields: Request) -> dict[str, Any]:
    """Count the 256 byte values; list those that --ascii-only keeps, and GPT-2's letters.

    The page counts files itself, which may be of any size, and sends the counts.
    """
    if fields.has("counts"):
        counts: Sequence[int] = fields.numbers("counts", 256, _MAX_COUNT)
        if len(counts) != 256:
            raise Refused(400, f"counts has {len(counts)} numbers; expected 256")
    else:
        counts = byte_counts(fields.text("text").encode())
    return {
        "bytes": sum(counts),
        "counts": counts,
        "outside": sum(counts) - sum(counts[byte] for byte in ASCII_BYTES),
        "ascii": list(ASCII_BYTES),
        "base_full": byteweld.RECIPES["ck"].minimum_size,
        "base_ascii": byteweld.RECIPES["ck-ascii"].minimum_size,
        "letters": [bytes_to_chars(bytes([byte])) for byte in range(256)],
    }
