"""Special tokens load and are found in linear time: many, long, periodic, nested."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import pytest

import byteweld
from byteweld import AddedToken, Recipe, SpecialTokenError, Tokenizer, Vocabulary
from tests.helpers.growth import least_growth
from tests.helpers.streams import streamed

BYTES = {byte: bytes([byte]) for byte in range(256)}

# Special tokens of about `n` bytes, and texts of several times that, where they are hard to find.
HOSTILE: dict[str, Callable[[int], list[str]]] = {
    "periodic": lambda n: ["ab" * (n // 2)],
    "periodic, several": lambda n: [f"{'ab' * (n // 16)}{number}" for number in range(8)],
    "nested": lambda n: ["a" * length for length in range(2, math.isqrt(2 * n))],
    "a prefix of a long one": lambda n: ["a", "a" * n + "b"],
    "inside a long one": lambda n: ["bc", "abc" * (n // 3) + "x"],
    "many": lambda n: [f"<|reserved_{number}|>" for number in range(n // 16)],
    "many and long": lambda n: [f"<|reserved_{number:060}|>" for number in range(n // 72)],
}
TEXTS: dict[str, Callable[[int], str]] = {
    "periodic": lambda n: "ab" * n,
    "periodic, several": lambda n: "ab" * n,
    "nested": lambda n: "a" * 2 * n,
    "a prefix of a long one": lambda n: "a" * 2 * n,
    "inside a long one": lambda n: "abc" * n,
}


def hostile(name: str, n: int) -> tuple[list[str], str]:
    texts = HOSTILE[name](n)
    plain = f"hello {texts[-1]} <|reserved_ "
    return texts, TEXTS[name](n) if name in TEXTS else plain * (n // len(plain))


def check_linear(work: Callable[[int], object]) -> None:
    """Compare the time of 16 kB with that of 128 kB: 8 times as long, or 64 if it is quadratic."""
    assert least_growth(work, 16_000, 128_000, limit=24, repeats=2) < 24


def made(texts, **more):
    specials = {text: 300 + n for n, text in enumerate(texts)}
    tokens = BYTES | {i: text.encode() for text, i in specials.items()}
    return Vocabulary(tokens, special_tokens=specials, pattern="gpt2", **more)


@pytest.mark.parametrize("name", HOSTILE)
def test_any_special_tokens_load_and_are_found_in_linear_time(name):
    def work(n):
        texts, text = hostile(name, n)
        tok = Tokenizer(made(texts))
        ids = tok.encode(text, allowed_special="all")
        assert tok.decode(ids) == text
        assert tok.encode_spans([(text, True)]) == ids
        assert [*streamed(tok, [text], allowed_special="all")] == ids
        some = set(texts[::2])
        assert tok.decode(tok.encode(text, allowed_special=some, disallowed_special=())) == text
        assert tok.encode(text, disallowed_special=()) == tok.encode_ordinary(text)
        spans = [(text[at : at + 7], at % 2 == 0) for at in range(0, len(text), 7)]
        assert tok.decode(tok.encode_spans(spans)) == text

    check_linear(work)


@pytest.mark.parametrize("name", HOSTILE)
def test_any_added_tokens_with_flags_are_found_in_linear_time(name):
    def work(n):
        texts, text = hostile(name, n)
        added = [
            AddedToken(text, 300 + n, special=n % 2 == 0, normalized=n % 3 == 0)
            for n, text in enumerate(texts)
        ]
        tokens = BYTES | {token.id: token.text.encode() for token in added}
        tok = Tokenizer(Vocabulary(tokens, added_tokens=added, normalizer=["nfc"]))
        ids = tok.encode(text, allowed_special="all")
        assert tok.decode(ids) == text
        assert tok.encode_spans([(text, True)]) == ids
        spans = [(text[at : at + 7], at % 2 == 0) for at in range(0, len(text), 7)]
        assert tok.decode(tok.encode_spans(spans)) == text
        some = {token.text for token in added[::4] if token.special}
        try:
            tok.encode(text, allowed_special=some)
        except SpecialTokenError:
            pass

    check_linear(work)


def test_many_special_tokens_in_linear_time_everywhere(tmp_path):
    def work(n):
        texts = HOSTILE["many"](n)
        vocab = made(texts)
        tok = pickle.loads(pickle.dumps(Tokenizer(vocab)))
        assert tok.vocab == vocab and tok.special_tokens_set == set(texts)
        tok.save(tmp_path / "tokenizer.json", overwrite=True)
        assert byteweld.load(tmp_path / "tokenizer.json").vocab == vocab
        ranks = {token: rank for rank, token in BYTES.items()}
        Tokenizer.from_ranks(ranks, pattern=None, special_tokens=dict(vocab.special_tokens))
        copy = Tokenizer.from_merges(BYTES, [], special_tokens=texts)
        assert copy.vocab.special_tokens[texts[0]] == 256
        recipe = Recipe(special_tokens=texts).with_roles({"eos": "<|end|>"})
        trained = byteweld.train(iter(["ab ab", texts[5]]), vocab_size=30_000, recipe=recipe)
        assert len(trained.vocab.special_tokens) == len(texts) + 1

    check_linear(work)


@pytest.mark.slow
def test_a_million_special_tokens_load():
    texts = [f"<|reserved_{n}|>" for n in range(1_000_000)]
    tok = Tokenizer(made(texts))
    ids = tok.encode(f"a{texts[-1]}b{texts[77]}", allowed_special="all")
    assert ids == [97, 1_000_299, 98, 377]
