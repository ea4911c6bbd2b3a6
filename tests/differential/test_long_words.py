"""Long pre-tokens, which are matched, not merged, have the ids of tiktoken and tokenizers."""

from __future__ import annotations

import random

import pytest

from byteweld import Tokenizer, formats
from tests.helpers import frozen

tiktoken = pytest.importorskip("tiktoken", reason="the real tiktoken is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")

# Longer than the heap handles before longest matches are prepared.
FIRST = "a" * 300_000

CHARACTERS = ["=", "-", "*", "_", "~", "#", ".", "/", "\\", "a", "e", "s", "0", " ", "\n", "\t"]
ALPHABETS = [
    *("ab", "abcdefghijklmnopqrstuvwxyz", "etaoin", "ABCdef", "абвгдежз", "กขคงจ", "éèàü", "=-"),
    *("=-*_~#", "-=+|", "()[]{}", "!?.,;:", " \n", " \t", "\r\n", "日本語中文", "가나다라"),
]


def long_words(seed, number):
    """Words of hundreds to thousands of characters, each of another kind."""
    rng = random.Random(seed)
    words = [character * rng.randrange(100, 6000) for character in CHARACTERS]
    for alphabet in ALPHABETS:
        for _ in range(number):
            part = "".join(rng.choices(alphabet, k=rng.randrange(2, 12)))
            runs = "".join(rng.choice(alphabet) * rng.randrange(1, 90) for _ in range(30))
            words += ["".join(rng.choices(alphabet, k=rng.randrange(100, 3000))), part * 200, runs]
    rng.shuffle(words)
    return words


def check(file, ours, open_peer, words):
    """Compare ours with a peer, which is opened only if its answers are not frozen."""
    found = [ours(word) for word in words]
    question = frozen.digest_texts(file, map(str.encode, words))
    answer = frozen.digest(*found)
    if not frozen.is_known(question, answer):
        peer = open_peer()
        for word, ids in zip(words, found, strict=True):
            assert ids == peer(word), word
        frozen.freeze(question, answer)


@pytest.mark.parametrize(
    "name",
    ["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "llama3", "qwen", "kimi_k2"],
)
def test_long_words_have_tiktokens_ids(name, unpacked):
    entry, path = unpacked("tiktoken", name)
    vocab = formats.load(path, pattern=entry["pat_str"], special_tokens={})

    def open_peer():
        ranks = {token: rank for rank, token in vocab.ordinary()}
        return tiktoken.Encoding(
            name, pat_str=entry["pat_str"], mergeable_ranks=ranks, special_tokens={}
        ).encode_ordinary

    check(path, Tokenizer(vocab).encode, open_peer, [FIRST, *long_words(name, 3)])


@pytest.mark.parametrize("name", ["gpt2", "llama3_2", "qwen3", "deepseek_v3", "falcon", "claude"])
def test_long_words_have_the_ids_of_tokenizers(name, unpacked):
    _, path = unpacked("hf", name)
    ours = Tokenizer(formats.load(path))

    def open_peer():
        theirs = tokenizers.Tokenizer.from_file(str(path))
        return lambda word: theirs.encode(word, add_special_tokens=False).ids

    def encode(word):
        return ours.encode(word, disallowed_special=())

    check(path, encode, open_peer, [FIRST, *long_words(name, 2)])
