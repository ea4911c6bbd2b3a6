"""Answers of tiktoken for its own vocabularies, frozen in the shared data."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json

import pytest

from byteweld import Tokenizer

NAMES = ["r50k_base", "cl100k_base", "o200k_base"]
OTHERS = ["p50k_base", "p50k_edit", "llama3", "llama4", "qwen", "qwen3_6", "kimi_k2"]


@pytest.fixture(scope="module")
def open_vocabulary(shared):
    index = json.loads((shared / "vocabs" / "index.json").read_bytes())
    entries = {entry["name"]: entry for entry in index["vocabs"]}
    opened: dict[str, Tokenizer] = {}

    def open_one(name):
        if name not in opened:
            entry = entries[name]
            raw = gzip.decompress((shared / "vocabs" / entry["file"]).read_bytes())
            ranks = {
                base64.b64decode(token): int(rank)
                for token, rank in (line.split() for line in raw.splitlines() if line)
            }
            opened[name] = Tokenizer.from_ranks(
                ranks, pattern=entry["pat_str"], special_tokens=entry["special_tokens"], name=name
            )
        return opened[name]

    return open_one


def check_golden(tok, name, shared):
    golden = shared / "golden"
    lines = (golden / "snippets.jsonl").read_text("utf-8").split("\n")
    snippets = {s["id"]: s["text"] for s in map(json.loads, filter(None, lines))}
    answers = gzip.decompress((golden / f"{name}.jsonl.gz").read_bytes()).decode().split("\n")
    answered = [a for a in map(json.loads, filter(None, answers)) if "_meta" not in a]
    assert len(answered) == len(snippets) == 312
    for answer in answered:
        text, ids = snippets[answer["id"]], answer["ids"]
        assert tok.encode_ordinary(text) == ids, answer["id"]
        assert tok.encode_ordinary(text.encode()) == ids, answer["id"]
        special = answer.get("ids_special", ids)
        assert tok.encode(text, allowed_special="all") == special, answer["id"]
        assert tok.count(text, allowed_special="all") == len(special), answer["id"]
        assert tok.decode(ids) == text, answer["id"]


@pytest.mark.parametrize("name", NAMES)
def test_the_golden_ids_of_tiktokens_vocabularies(name, open_vocabulary, shared):
    check_golden(open_vocabulary(name), name, shared)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_the_golden_ids_of_the_other_rank_files(name, open_vocabulary, shared):
    check_golden(open_vocabulary(name), name, shared)


@pytest.mark.parametrize(
    "name", ["o200k_base", *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES[:2])]
)
def test_the_frozen_ids_of_very_long_texts(name, open_vocabulary, shared):
    tok = open_vocabulary(name)
    frozen = json.loads((shared / "golden" / "long_reference.json").read_bytes())["results"]
    entries = [entry for entry in frozen if entry["vocab"] == name]
    assert entries
    for entry in entries:
        raw = gzip.decompress((shared / "nasty" / "long" / f"{entry['file']}.gz").read_bytes())
        ids = tok.encode_ordinary(raw)
        assert tok.decode_bytes(ids) == raw, entry["file"]
        if "sha256" in entry:  # tiktoken itself gave up on some
            assert len(ids) == entry["n"], entry["file"]
            digest = hashlib.sha256(" ".join(map(str, ids)).encode()).hexdigest()
            assert digest == entry["sha256"], entry["file"]


@pytest.mark.parametrize("name", NAMES)
def test_every_token_of_tiktokens_vocabularies_is_found(name, open_vocabulary):
    tok = open_vocabulary(name)
    for token_id, token in tok.vocab.ordinary():
        assert tok.encode_single_token(token) == token_id
        assert tok.decode_single_token_bytes(token_id) == token
