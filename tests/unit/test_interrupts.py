"""Ctrl-C is heard in the middle of long work, whatever the path of the text."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Prints how long after the signal the work ended; a thread of the same process sends it.
PROGRAM = """
import os, signal, sys, threading, time
from byteweld import Tokenizer, Vocabulary
from byteweld.vocab import Replace, Split

ranks = {bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257, b" the": 258}
tokens = {id: token for token, id in ranks.items()}
merges = [(116, 104, 256), (256, 101, 257), (32, 257, 258)]
specials = {"<|end|>": 259}
gpt2 = Tokenizer.from_ranks(ranks, pattern="gpt2", special_tokens=specials)
prose = "The quick brown fox jumps over the lazy dog, 1234 times. "
work = sys.argv[1]
size = int(sys.argv[2])
text = prose * (size // len(prose))
if work == "plain":
    run = lambda: gpt2.encode(text)
elif work == "numpy":
    run = lambda: gpt2.encode_to_numpy(text)
elif work == "specials":
    text = "<|end|>" * (size // 7)
    run = lambda: gpt2.encode(text, allowed_special="all")
elif work == "one pre-token":
    tok = Tokenizer.from_ranks(ranks, pattern=None)
    run = lambda: tok.encode(text)
elif work == "backtracking":
    tok = Tokenizer.from_ranks(ranks, pattern=r"(?!\\uffff)(?:\\w+|\\W)")
    run = lambda: tok.encode(text)
elif work == "one match":
    tok = Tokenizer.from_ranks(ranks, pattern=r"(?:.(?!x)){0,500}y|.")
    run = lambda: tok.encode(text)
elif work == "normalizer":
    steps = ("nfkd", Replace("q", "qu"), "lowercase")
    tok = Tokenizer(Vocabulary(tokens, merges, normalizer=steps, pattern="gpt2"))
    run = lambda: tok.encode(text)
elif work == "splits":
    tok = Tokenizer(Vocabulary(tokens, merges, steps=(Split("[0-9]"), Split(r"\\s+|\\S+"))))
    run = lambda: tok.encode(text)
elif work == "batch":
    run = lambda: gpt2.encode_batch([text], num_threads=2)
elif work == "batch of one text":
    tok = Tokenizer.from_ranks(ranks, pattern=None)
    run = lambda: tok.encode_ragged(["short" * 50_000, text], num_threads=2)
elif work == "offsets":
    run = lambda: gpt2.encode_with_offsets(text)
elif work == "count":
    run = lambda: gpt2.count(text)
elif work == "pretokenize":
    run = lambda: gpt2.pretokenize(text)
else:
    import numpy as np
    ids = np.full(size, 258, np.uint32)
    run = lambda: gpt2.decode_bytes(ids)

gpt2.encode(prose)
sent = []
def interrupt():
    time.sleep(float(sys.argv[3]))
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
start = time.perf_counter()
try:
    run()
except KeyboardInterrupt:
    print("heard", time.perf_counter() - sent[0])
else:
    print("ended", time.perf_counter() - start)
assert gpt2.encode(prose[:3]) == [84, 104, 101]
"""

WORKS = [
    ("plain", 150_000_000),
    ("numpy", 150_000_000),
    ("specials", 150_000_000),
    ("one pre-token", 100_000_000),
    ("backtracking", 60_000_000),
    ("one match", 60_000_000),
    ("normalizer", 60_000_000),
    ("splits", 60_000_000),
    ("batch", 200_000_000),
    ("batch of one text", 100_000_000),
    ("offsets", 60_000_000),
    ("count", 300_000_000),
    ("pretokenize", 100_000_000),
    ("decode", 200_000_000),
]


def seconds_until_heard(work: str, size: int, after: float = 0.1) -> float | None:
    """Return how long the interrupt took; None if the work ended before it came."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, work, str(size), str(after)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    how, seconds = result.stdout.split()
    return float(seconds) if how == "heard" else None


@pytest.mark.parametrize(("work", "size"), WORKS, ids=[work for work, _ in WORKS])
def test_an_interrupt_is_heard_within_a_second(work: str, size: int) -> None:
    seconds = seconds_until_heard(work, size)
    assert seconds is not None and seconds < 1
