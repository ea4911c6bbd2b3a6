"""nanochat's token_bytes.pt, computed as its tok_train.py does, with tiktoken and torch."""

from __future__ import annotations

import pickle

import pytest

import byteweld

torch = pytest.importorskip("torch", exc_type=ImportError)
pytest.importorskip("tiktoken", exc_type=ImportError)


@pytest.fixture(scope="module")
def tok():
    text = "low lower lowest naïve 你好 🌍 " * 5
    return byteweld.train(
        documents=[text], vocab_size=300, pattern="nanochat", special_tokens=["<|bos|>"]
    )


def test_token_bytes(tok, tmp_path):
    tok.save(tmp_path, format="nanochat")
    encoding = pickle.loads((tmp_path / "tokenizer.pkl").read_bytes())
    found = torch.load(tmp_path / "token_bytes.pt")
    assert found.dtype == torch.int32
    decoded = [encoding.decode([token_id]) for token_id in range(encoding.n_vocab)]
    special = encoding.special_tokens_set
    expected = [0 if text in special else len(text.encode()) for text in decoded]
    assert found.tolist() == expected
    assert 0 in expected and 1 in expected and max(expected) > 3


def test_the_same_bytes_every_time(tok, tmp_path):
    for folder in ("a", "b"):
        tok.save(tmp_path / folder, format="nanochat")
    for name in ("token_bytes.pt", "tokenizer.pkl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
