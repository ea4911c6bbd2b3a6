"""Byte-level BPE in plain Python, short enough to read in one sitting. This is the specification.

Read `pretokenize`, then `train`, then `encode`. For clarity, every step recounts everything;
the engine is fast, and tests check that it gives the same results. Nothing here uses the engine.
"""

from byteweld.reference.encode import decode, decode_bytes, encode, encode_greedy, encode_steps
from byteweld.reference.pretokenize import pretokenize, split_specials
from byteweld.reference.train import count_pretokens, train

__all__ = [
    "count_pretokens",
    "decode",
    "decode_bytes",
    "encode",
    "encode_greedy",
    "encode_steps",
    "pretokenize",
    "split_specials",
    "train",
]
