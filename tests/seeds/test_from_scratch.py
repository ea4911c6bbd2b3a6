"""The from-scratch seed on the engine: example, chunks, specials, memory, the course's files."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import Counts, Tokenizer
from tests.helpers.programs import run_python

END = "<|endoftext|>"
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
BYTES = {byte: bytes([byte]) for byte in range(256)}

SHARED = Path(__file__).parents[3] / "shared" / "data"
COURSE = SHARED / "corpora" / "cs336_fixtures"
needs_course = pytest.mark.skipif(not COURSE.is_dir(), reason=f"the course's files: no {COURSE}")


def train(*documents: str | bytes, vocab_size: int, **options: Any) -> Tokenizer:
    return byteweld.train(iter(documents), vocab_size=vocab_size, recipe="from-scratch", **options)


def count(source: Any, **options: Any) -> dict[bytes, int]:
    return dict(byteweld.count(source, recipe="from-scratch", **options).items())


def count_plainly(text: str, *specials: str) -> dict[bytes, int]:
    """Split at the special tokens in memory, longest first, and count with Python's `regex`."""
    cut = "|".join(regex.escape(s) for s in sorted(specials, key=len, reverse=True)) or "(?!)"
    parts = regex.split(cut, text)
    return dict(Counter(p.encode() for part in parts for p in regex.findall(PATTERN, part)))


def story(size: int, seed: int = 1) -> str:
    """Text of about `size` bytes with words, numbers, signs, line ends and other scripts."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 9))) for _ in range(2000)]
    words += [
        *("naïve", "€50", "mañana", "слово", "中文字", "🦊", "don't", "1234567", "--", "\n", "  "),
    ]
    weights = [1.0] * 2000 + [30.0] * 11
    pieces: list[str] = []
    length = 0
    while length < size:
        some = rng.choices(words, weights, k=1000)
        pieces.append(" ".join(some) + " ")
        length += len(pieces[-1].encode())
    return "".join(pieces)


EMPTY = train(vocab_size=256)
SMALL = train("ab ab endoftext <| |> €", vocab_size=280, special_tokens=[END])


# ---------------------------------------------------------------------- the worked example


def test_a_fresh_lower_is_collapsed_by_the_same_four_merges():
    sizes = []
    for merges in range(5):
        tok = byteweld.train(
            Counts({b"low": 5, b"lower": 2}), vocab_size=256 + merges, recipe="from-scratch"
        )
        sizes.append(len(tok.encode("lower")))
    assert sizes == [5, 4, 3, 2, 1]


# ---------------------------------------------------------------------- bytes and pre-tokens


def test_ten_thousand_tokens_are_256_bytes_one_special_and_9743_merges():
    rng = random.Random(1)
    words = ("".join(rng.choices("etaoinshrdlu", k=rng.randint(3, 9))) for _ in range(12_000))
    tok = train(" ".join(words), vocab_size=10_000, special_tokens=[END])
    assert (len(tok), tok.training.stop) == (10_000, "size")
    assert len(tok.vocab.merges) == tok.training.merges_learned == 9_743
    made = {new for *_, new in tok.vocab.merge_ids}
    assert made == set(range(257, 10_000))


def test_the_six_alternatives_of_the_pattern_cut_as_the_seed_says():
    tok = train(vocab_size=256)
    assert tok.pretokenize("I'll pay 50€!  ok \n") == [
        *(b"I", b"'ll", b" pay", b" 50", "€!".encode(), b" ", b" ok", b" \n"),
    ]


def test_no_token_spans_pretokens_and_without_a_pattern_tokens_cross_words():
    text = "one of the many of the few of the best of the rest " * 20
    fenced = train(text, vocab_size=300)
    assert not [t for t in fenced.vocab.ids if len(t) > 1 and b" " in t[1:]]
    unfenced = train(text, vocab_size=300, pattern=None)
    assert b" of the " in b"".join(t for t in unfenced.vocab.ids if t.startswith(b" of the "))


# ---------------------------------------------------------------------- special tokens as cuts


def test_a_special_token_in_the_corpus_is_a_boundary_and_is_not_counted():
    assert count(iter([f"ab{END}ab"]), special_tokens=[END]) == {b"ab": 2}
    assert count(iter([f"ab{END}ab"])) == {b"ab": 2, b"<|": 1, b"endoftext": 1, b"|>": 1}


def test_no_merge_contains_a_part_of_a_special_token():
    tok = train(f"once upon{END}a time{END}" * 50, vocab_size=400, special_tokens=[END])
    assert not [token for token in tok.vocab.ids if b"<|" in token or b"|>" in token]
    free = train(f"once upon{END}a time{END}" * 50, vocab_size=400)
    assert b"endoftext" in free.vocab.ids


def test_a_single_word_and_a_run_of_spaces_longer_than_any_block_stay_whole(tmp_path):
    file = tmp_path / "long.txt"
    word, spaces = "x" * 2_500_000, " " * 2_500_000
    file.write_text(f"a {word}{spaces}b", newline="")
    expected = {b"a": 1, f" {word}".encode(): 1, spaces[1:].encode(): 1, b" b": 1}
    assert count(file, num_threads=2) == expected


# ---------------------------------------------------------------------- the window trap


# Powers of two at which a reader may end a window or a block: 4 KiB, 64 KiB, 256 KiB, 1 MiB, 2 MiB.
EDGES = (1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 21)


def straddling(shift: int) -> str:
    """A text in which a special token starts `shift` bytes before every edge."""
    filler = story(5 << 19, seed=shift).encode("ascii", "ignore")
    pieces: list[bytes] = []
    length = 0
    for edge in EDGES:
        start = edge - shift
        pieces += [filler[length:start], END.encode()]
        length = start + len(END)
    return b"".join([*pieces, filler[length:]]).decode("ascii")


@pytest.mark.parametrize("shift", range(len(END) + 1))
def test_a_special_token_that_straddles_any_cut_is_found(tmp_path, shift):
    text = straddling(shift)
    for edge in EDGES:
        assert text.startswith(END, edge - shift)
    file = tmp_path / "straddling.txt"
    file.write_text(text, newline="")
    # In memory, each part by itself: the special token is never near a cut there.
    expected = count(iter(text.split(END)))
    assert b"endoftext" not in expected
    for threads in (1, 2):
        assert count(file, special_tokens=[END], num_threads=threads) == expected
    assert count(iter([text]), special_tokens=[END]) == expected


@pytest.mark.parametrize("shift", range(3))
def test_a_character_that_straddles_a_cut_stays_whole(tmp_path, shift):
    filler = story(1 << 20).encode("ascii", "ignore")
    text = filler[: (1 << 20) - shift].decode() + "€" * 100_000 + " end"
    file = tmp_path / "euro.txt"
    file.write_text(text, newline="")
    assert count(file, num_threads=2) == count_plainly(text)


# ---------------------------------------------------------------------- encoding


@given(st.lists(st.text(alphabet="ab<|endoftext|> \n€", max_size=12), max_size=6))
def test_documents_can_be_encoded_separately_because_special_tokens_are_boundaries(documents):
    joined = END.join(documents)
    parts = [SMALL.encode(part) for part in joined.split(END)]
    expected = parts[0]
    for ids in parts[1:]:
        expected = [*expected, SMALL.eot_token, *ids]
    assert SMALL.encode(joined, allowed_special="all") == expected
    assert SMALL.encode_batch(documents, allowed_special="all", num_threads=2) == [
        SMALL.encode(document, allowed_special="all") for document in documents
    ]


# ---------------------------------------------------------------------- memory

# Peak memory is read from /proc in a separate process: VmHWM starts from zero in each program,
# while ru_maxrss is inherited from the parent.
STATUS = Path("/proc/self/status")
needs_proc = pytest.mark.skipif(not STATUS.is_file(), reason="peak memory is read from /proc")

PEAK = """
import sys
from pathlib import Path

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
"""


def growth_of_peak(program: str, *arguments: str) -> int:
    done = run_python("-c", PEAK + program, *arguments)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


STREAM = """
import byteweld
tok = byteweld.train(iter(["low lower lowest"]), vocab_size=270, recipe="from-scratch",
                     special_tokens=["<|endoftext|>"])
tok.encode("warm up")
before = peak()
lines = ("a lower line than the line before, number %d\\n" % n for n in range(1_400_000))
stream = tok.encode_stream(block_bytes=65_536)
made = sum(len(stream.feed(line)) for line in lines) + len(stream.finish())
assert made > 20_000_000, made
print(peak() - before)
"""


@needs_proc
def test_encoding_a_stream_of_60_megabytes_needs_a_few():
    # Every number is a new pre-token, so the cache fills.
    assert growth_of_peak(STREAM) < 14_000_000


# ---------------------------------------------------------------------- the course's files


def gpt2_bytes() -> dict[str, int]:
    """The letters of GPT-2's files and their bytes, as the course's test reads them."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = {chr(byte): byte for byte in visible}
    return letters | {chr(256 + n): byte for n, byte in enumerate(hidden)}


def from_letters(text: str) -> bytes:
    letters = gpt2_bytes()
    return bytes(letters[letter] for letter in text)


@needs_course
def test_merges_and_vocabulary_of_the_course_are_learned_exactly():
    tok = byteweld.train(
        COURSE / "corpus.en", vocab_size=500, recipe="from-scratch", special_tokens=[END]
    )
    lines = (COURSE / "train-bpe-reference-merges.txt").read_text("utf-8").splitlines()
    merges = [tuple(from_letters(part) for part in line.split(" ")) for line in lines]
    assert len(merges) == 243
    assert tok.vocab.merges == merges
    vocab = json.loads((COURSE / "train-bpe-reference-vocab.json").read_text("utf-8"))
    tokens = {text.encode() if text == END else from_letters(text) for text in vocab}
    assert sorted(tok.vocab.tokens) == sorted(vocab.values()) == list(range(500))
    assert set(tok.vocab.tokens.values()) == tokens


def test_the_longest_tokens_of_a_story_keep_their_leading_space():
    text = "".join(letter for letter in story(200_000) if letter.isascii())
    tok = train(text, vocab_size=3000)
    longest = max(map(len, tok.vocab.ids))
    for token in (token for token in tok.vocab.ids if len(token) >= longest - 1):
        assert token.startswith(b" ")
        assert token[1:].isalpha()
