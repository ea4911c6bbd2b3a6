"""Special tokens load and are found in linear time: many, long, periodic, nested.

Each case takes hundredths of a second, and took seconds or minutes when it was quadratic.
"""

from __future__ import annotations

import pickle
import time

import pytest

import byteweld
from byteweld import AddedToken, Recipe, SpecialTokenError, Tokenizer, Vocabulary
from tests.helpers.streams import streamed

BYTES = {byte: bytes([byte]) for byte in range(256)}
LIMIT = 8  # seconds of processor time

HOSTILE = {
    "periodic": ["ab" * 50_000],
    "periodic, several": [f"{'ab' * 20_000}{n}" for n in range(8)],
    "nested": ["a" * n for n in range(2, 1000)],
    "a prefix of a long one": ["a", "a" * 50_000 + "b"],
    "inside a long one": ["bc", "abc" * 20_000 + "x"],
    "many": [f"<|reserved_{n}|>" for n in range(20_000)],
    "many and long": [f"<|reserved_{n:060}|>" for n in range(20_000)],
}
TEXTS = {
    "periodic": "ab" * 150_000,
    "periodic, several": "ab" * 150_000,
    "nested": "a" * 300_000,
    "a prefix of a long one": "a" * 300_000,
    "inside a long one": "abc" * 100_000,
}


def made(texts, **more):
    specials = {text: 300 + n for n, text in enumerate(texts)}
    tokens = BYTES | {i: text.encode() for text, i in specials.items()}
    return Vocabulary(tokens, special_tokens=specials, pattern="gpt2", **more)


@pytest.fixture
def quick():
    """Fail if the test takes much longer than linear time would."""
    started = time.process_time()
    yield
    assert time.process_time() - started < LIMIT


@pytest.mark.parametrize("name", HOSTILE)
def test_any_special_tokens_load_and_are_found_in_linear_time(name, quick):
    texts = HOSTILE[name]
    tok = Tokenizer(made(texts))
    text = TEXTS.get(name, f"hello {texts[-1]} <|reserved_ " * 2000)
    ids = tok.encode(text, allowed_special="all")
    assert tok.decode(ids) == text
    assert tok.encode_spans([(text, True)]) == ids
    assert [*streamed(tok, [text], allowed_special="all")] == ids
    some = set(texts[::2])
    assert tok.decode(tok.encode(text, allowed_special=some, disallowed_special=())) == text
    assert tok.encode(text, disallowed_special=()) == tok.encode_ordinary(text)
    spans = [(text[at : at + 7], at % 2 == 0) for at in range(0, len(text), 7)]
    assert tok.decode(tok.encode_spans(spans)) == text


@pytest.mark.parametrize("name", HOSTILE)
def test_any_added_tokens_with_flags_are_found_in_linear_time(name, quick):
    added = [
        AddedToken(text, 300 + n, special=n % 2 == 0, normalized=n % 3 == 0)
        for n, text in enumerate(HOSTILE[name])
    ]
    tokens = BYTES | {token.id: token.text.encode() for token in added}
    tok = Tokenizer(Vocabulary(tokens, added_tokens=added, normalizer=["nfc"]))
    text = TEXTS.get(name, f"hello {HOSTILE[name][-1]} <|reserved_ " * 2000)
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


def test_many_special_tokens_in_linear_time_everywhere(quick, tmp_path):
    texts = [f"<|reserved_{n}|>" for n in range(20_000)]
    vocab = made(texts)
    tok = pickle.loads(pickle.dumps(Tokenizer(vocab)))
    assert tok.vocab == vocab and tok.special_tokens_set == set(texts)
    tok.save(tmp_path / "tokenizer.json")
    assert byteweld.load(tmp_path / "tokenizer.json").vocab == vocab
    ranks = {token: rank for rank, token in BYTES.items()}
    Tokenizer.from_ranks(ranks, pattern=None, special_tokens=dict(vocab.special_tokens))
    assert (
        Tokenizer.from_merges(BYTES, [], special_tokens=texts).vocab.special_tokens[texts[0]] == 256
    )
    recipe = Recipe(special_tokens=texts).with_roles({"eos": "<|end|>"})
    trained = byteweld.train(iter(["ab ab", texts[5]]), vocab_size=30_000, recipe=recipe)
    assert len(trained.vocab.special_tokens) == 20_001


@pytest.mark.slow
def test_a_million_special_tokens_load_in_seconds():
    started = time.process_time()
    texts = [f"<|reserved_{n}|>" for n in range(1_000_000)]
    tok = Tokenizer(made(texts))
    ids = tok.encode(f"a{texts[-1]}b{texts[77]}", allowed_special="all")
    assert ids == [97, 1_000_299, 98, 377]
    assert time.process_time() - started < 60
