"""Ctrl-C is heard in the middle of long work, whatever the path of the text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from byteweld import Tokenizer, Vocabulary
from byteweld.vocab import Replace, Split
from tests.helpers.events import can_be_interrupted

RANKS = {bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257, b" the": 258}
TOKENS = {id: token for token, id in RANKS.items()}
MERGES = [(116, 104, 256), (256, 101, 257), (32, 257, 258)]
GPT2 = Tokenizer.from_ranks(RANKS, pattern="gpt2", special_tokens={"<|end|>": 259})
WHOLE = Tokenizer.from_ranks(RANKS, pattern=None)
BACKTRACKING = Tokenizer.from_ranks(RANKS, pattern=r"(?!\uffff)(?:\w+|\W)")
ONE_MATCH = Tokenizer.from_ranks(RANKS, pattern=r"(?:.(?!x)){0,500}y|.")
STEPS = ("nfkd", Replace("q", "qu"), "lowercase")
NORMALIZER = Tokenizer(Vocabulary(TOKENS, MERGES, normalizer=STEPS, pattern="gpt2"))
SPLITS = Tokenizer(Vocabulary(TOKENS, MERGES, steps=(Split("[0-9]"), Split(r"\s+|\S+"))))
PROSE = "The quick brown fox jumps over the lazy dog, 1234 times. "

# What is done with a text, and the length that takes many times the 30 ms which a test needs.
WORKS: dict[str, tuple[Callable[[str], object], int]] = {
    "plain": (GPT2.encode, 40_000_000),
    "numpy": (GPT2.encode_to_numpy, 60_000_000),
    "specials": (lambda text: GPT2.encode(text, allowed_special="all"), 60_000_000),
    "one pre-token": (WHOLE.encode, 30_000_000),
    "backtracking": (BACKTRACKING.encode, 20_000_000),
    "one match": (ONE_MATCH.encode, 3_000_000),
    "normalizer": (NORMALIZER.encode, 15_000_000),
    "splits": (SPLITS.encode, 20_000_000),
    "batch": (lambda text: GPT2.encode_batch([text], num_threads=2), 60_000_000),
    "batch of one text": (
        lambda text: WHOLE.encode_ragged(["short" * 50_000, text], num_threads=2),
        30_000_000,
    ),
    "offsets": (GPT2.encode_with_offsets, 40_000_000),
    "count": (GPT2.count, 150_000_000),
    "pretokenize": (GPT2.pretokenize, 60_000_000),
}


@pytest.mark.parametrize("name", WORKS)
def test_an_interrupt_ends_encoding_in_its_middle(name: str) -> None:
    work, length = WORKS[name]
    unit = "<|end|>" if name == "specials" else PROSE
    text = unit * (length // len(unit))
    assert can_be_interrupted(lambda: work(text))
    assert GPT2.encode("The") == [84, 104, 101]


def test_an_interrupt_ends_decoding_in_its_middle() -> None:
    ids = np.full(60_000_000, 258, np.uint32)
    assert can_be_interrupted(lambda: GPT2.decode_bytes(ids))
    assert GPT2.decode([84, 104, 101]) == "The"
