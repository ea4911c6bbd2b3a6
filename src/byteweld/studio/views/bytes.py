"""The Bytes view: counts of the byte values, and GPT-2's letters for them."""

from __future__ import annotations

from typing import Any

import byteweld
from byteweld._byte_letters import bytes_to_chars
from byteweld.evaluation import byte_counts
from byteweld.studio.request import Fields
from byteweld.studio.session import Session
from byteweld.vocab import ASCII_BYTES


def answer(session: Session, fields: Fields) -> dict[str, Any]:
    """Count the 256 byte values; list those that --ascii-only keeps, and GPT-2's letters."""
    data = fields.data("text")
    counts = byte_counts(data)
    return {
        "bytes": len(data),
        "counts": counts,
        "outside": sum(counts) - sum(counts[byte] for byte in ASCII_BYTES),
        "ascii": list(ASCII_BYTES),
        "base_full": byteweld.RECIPES["ck"].minimum_size,
        "base_ascii": byteweld.RECIPES["ck-ascii"].minimum_size,
        "letters": [bytes_to_chars(bytes([byte])) for byte in range(256)],
    }
