"""The whole algorithm in plain Python, to be read in one sitting: it is the specification.

Read `pretokenize`, then `train`, then `encode`. Everything is counted afresh at every step; the
engine is fast, and tested to be equal to this. Nothing here uses the engine.
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
