"""The Bytes view: how often each byte value occurs, and GPT-2's letters for them."""

from __future__ import annotations

from typing import Any

import byteweld
from byteweld._byte_letters import bytes_to_chars
from byteweld.evaluation import byte_counts
from byteweld.studio.request import Asked
from byteweld.studio.session import Session
from byteweld.vocab import ASCII_BYTES


def answer(session: Session, asked: Asked) -> dict[str, Any]:
    """Counts of the 256 byte values, those that --ascii-only keeps, and GPT-2's letters."""
    data = asked.data("text")
    counts = byte_counts(data)
    ascii_only = byteweld.RECIPES["ck-ascii"]
    full = byteweld.RECIPES["ck"]
    return {
        "bytes": len(data),
        "counts": counts,
        "outside": sum(counts) - sum(counts[byte] for byte in ASCII_BYTES),
        "ascii": list(ASCII_BYTES),
        "base_full": full.minimum_size,
        "base_ascii": ascii_only.minimum_size,
        "letters": [bytes_to_chars(bytes([byte])) for byte in range(256)],
    }
