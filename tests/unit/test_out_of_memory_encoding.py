"""Without memory, a call raises MemoryError, and the process lives on."""

from __future__ import annotations

import re
import sys

import pytest

from tests.helpers.programs import run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs an address-space limit")

# Tries the call with more and more memory; each time another allocation is the first to fail.
PROGRAM = """
import resource, sys
import numpy as np
from byteweld import Tokenizer, Vocabulary
from byteweld.vocab import Replace, Split

ranks = {bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257, b" the": 258}
tokens = {id: token for token, id in ranks.items()}
merges = [(116, 104, 256), (256, 101, 257), (32, 257, 258)]
gpt2 = Tokenizer.from_ranks(ranks, pattern="gpt2", special_tokens={"<|end|>": 259})
whole = Tokenizer.from_ranks(ranks, pattern=None)
backtracking = Tokenizer.from_ranks(ranks, pattern=r"(?!\\uffff)(?:\\w+|\\W)")
steps = ("nfkd", Replace("q", "quick"))
rewritten = Tokenizer(Vocabulary(tokens, merges, normalizer=steps, pattern="gpt2"))
chain = (Split("[0-9]"), "prefix-space", "byte-letters", Split(r"\\s+|\\S+"))
splits = Tokenizer(Vocabulary(tokens, merges, steps=chain))
prose = "The quick brown fox jumps over the lazy dog, 1234 times. "
size = int(sys.argv[2])
text = prose * (size // len(prose))
wide = "漢字 " * (size // 7)
junk = b"\\xff the" * (size // 5)
ids = [258, 300][:1] * (size // 4)
array = np.full(size // 4, 258, np.int64)
CALLS = {
    "encode": lambda: gpt2.encode(text),
    "encode wide": lambda: gpt2.encode(wide),
    "encode surrogates": lambda: gpt2.encode(wide + "\\ud800"),
    "encode bytearray": lambda: gpt2.encode(bytearray(junk)),
    "encode specials": lambda: gpt2.encode("<|end|>" * (size // 7), allowed_special="all"),
    "encode whole": lambda: whole.encode(text),
    "encode run": lambda: whole.encode("a" * size),
    "encode backtracking": lambda: backtracking.encode(text),
    "encode backtracking bytes": lambda: backtracking.encode(junk),
    "encode rewritten": lambda: rewritten.encode(text),
    "encode splits": lambda: splits.encode(text),
    "encode_to_numpy": lambda: gpt2.encode_to_numpy(text),
    "encode_batch": lambda: gpt2.encode_batch([text] * 2, num_threads=2),
    "encode_batch many": lambda: gpt2.encode_batch([prose] * (size // len(prose)), num_threads=1),
    "encode_ragged": lambda: gpt2.encode_ragged([text] * 2, num_threads=2),
    "encode_with_offsets": lambda: gpt2.encode_with_offsets(text),
    "offsets rewritten": lambda: rewritten.encode_with_offsets(text),
    "encode_spans": lambda: gpt2.encode_spans([(text, False), (text, True)]),
    "count": lambda: gpt2.count(wide),
    "pretokenize": lambda: gpt2.pretokenize(text),
    "decode": lambda: gpt2.decode(ids),
    "decode_bytes": lambda: gpt2.decode_bytes(ids),
    "decode array": lambda: gpt2.decode_bytes(array),
}
call = CALLS[sys.argv[1]]
tries = [tok.encode("hello") for tok in (gpt2, whole, backtracking, rewritten, splits)]
tries += [gpt2.encode_to_numpy("hello").tolist()]
assert all(ids == list(b"hello") for ids in tries[:4])
used = int(open("/proc/self/statm").read().split()[0]) * 4096
failed = 0
for extra in map(int, sys.argv[3].split(",")):
    resource.setrlimit(resource.RLIMIT_AS, (used + (extra << 20), -1))
    try:
        result = call()
    except MemoryError:
        failed += 1
        result = None
    else:
        result = None
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    assert gpt2.encode("hello the") == [*b"hello", 258]
print(failed)
"""

CALLS = re.findall(r'^    "(.+)": lambda', PROGRAM, re.MULTILINE)

# A few megabytes more than before, and many.
FEW = "1,4,16"
MANY = "1,2,3,5,8,12,18,24,32,44,60,80,110,150,200,280,400"


def failures(call: str, size: int, megabytes: str) -> int:
    """Return with how many of the limits the call failed; the process must outlive them all."""
    result = run_python("-c", PROGRAM, call, size, megabytes, timeout=600)
    assert result.returncode == 0, result.stderr[-2000:]
    return int(result.stdout)


@pytest.mark.parametrize("call", ["encode", "encode_batch", "encode_with_offsets", "decode"])
def test_a_call_without_memory_raises_memory_error(call: str) -> None:
    assert failures(call, 6_000_000, FEW) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_every_call_outlives_every_limit(call: str) -> None:
    failures(call, 12_000_000, MANY)
