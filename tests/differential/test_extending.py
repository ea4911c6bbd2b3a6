"""Well-known vocabularies, extended: expanding the new tokens gives each frozen answer."""

from __future__ import annotations

import pytest

import byteweld
from tests.helpers.vocabularies import expanded, golden, snippets

LARGE = ("cl100k_base", "o200k_base", "llama4", "qwen", "kimi_k2")
NAMES = ["r50k_base", *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]


@pytest.mark.parametrize("name", NAMES)
def test_new_tokens_expanded_are_tiktokens_ids(name, load, shared, tmp_path):
    start = load("tiktoken", name)
    folder = shared / "corpora" / "multilingual"
    texts = [folder / f"{language}.txt.gz" for language in ("am", "ka", "km", "or", "si")]
    longer = byteweld.train(texts, start=start, vocab_size=len(start) + 300)
    assert len(longer) == len(start) + 300
    assert longer.vocab.special_tokens == start.vocab.special_tokens
    largest = max(start.vocab.tokens)
    assert max(longer.vocab.tokens) == largest + 300
    texts, shorter = snippets(shared), 0
    for key, answer in golden(shared, name).items():
        ids = longer.encode_ordinary(texts[key])
        shorter += len(ids) < len(answer["ids"])
        assert expanded(longer.vocab, ids, largest) == answer["ids"], key
    assert shorter > 0
    longer.save(tmp_path / "longer.json")
    assert byteweld.load(tmp_path / "longer.json").vocab == longer.vocab
