"""tiktoken's answers to very long texts, frozen in the shared data, and every token by itself."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json

import pytest

from byteweld import Tokenizer

NAMES = ["r50k_base", "cl100k_base", "o200k_base"]


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
