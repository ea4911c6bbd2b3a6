"""Well-known vocabularies, extended: expanding the new tokens gives each frozen answer."""

from __future__ import annotations

import gzip
import json

import pytest

import byteweld

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
    parts = {merge.new: merge[:2] for merge in longer.vocab.merge_ids}
    lines = gzip.decompress((shared / "golden" / f"{name}.jsonl.gz").read_bytes()).split(b"\n")
    answers = [answer for answer in map(json.loads, filter(None, lines)) if "ids" in answer]
    snippets = (shared / "golden" / "snippets.jsonl").read_text("utf-8").split("\n")
    by_id = {s["id"]: s["text"] for s in map(json.loads, filter(None, snippets))}
    shorter = 0
    for answer in answers:
        ids = longer.encode_ordinary(by_id[answer["id"]])
        shorter += len(ids) < len(answer["ids"])
        pending, found = ids[::-1], []
        while pending:
            token_id = pending.pop()
            if token_id > largest:
                pending += reversed(parts[token_id])
            else:
                found.append(token_id)
        assert found == answer["ids"], answer["id"]
    assert shorter > 0
    longer.save(tmp_path / "longer.json")
    assert byteweld.load(tmp_path / "longer.json").vocab == longer.vocab
