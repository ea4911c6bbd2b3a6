"""32,768 tokens from 20 MB of prose, of code and of many languages: every id is the peer's.

The peers are tokenizers, rustbpe, and for ties by greatest bytes the CS336 rule in plain Python.
They take minutes, so digests of their answers are frozen in data/trained_at_size.json. The slow
tests compare with the peers themselves, and the peers with the digests.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import RECIPES, reference
from tests.helpers.strategies import ENDOFTEXT, examples
from tests.helpers.trainers import (
    huggingface_peer,
    in_its_letters,
    in_letters,
    ranks_of,
    rustbpe_peer,
    train_by_greatest_bytes,
)

SIZE = 32_768
SIZE_BEYOND_16_BITS = 70_000
CORPUS_BYTES = 20_000_000
DOCUMENT_LENGTH = 4096
FILES = {"prose": "prose100.txt.xz", "code": "code40.txt.xz", "multilingual": "multi40.txt.xz"}
FROZEN = json.loads((Path(__file__).parents[1] / "data" / "trained_at_size.json").read_text())
ENCODED = 250  # documents that are encoded, about a megabyte
OPTIONS = {
    "plain": {},
    # Ordinary words as special tokens: they occur in the text, and are learned.
    "options": {
        "letters": [],
        "specials": [ENDOFTEXT, "ing", "ion", "return", "<pad>"],
        "min_frequency": 5,
        "limit": 8,
    },
}


class Corpus(NamedTuple):
    name: str
    documents: list[str]

    @property
    def sample(self):
        return self.documents[:: len(self.documents) // ENCODED]

    @property
    def quarter(self):
        return self.documents[: len(self.documents) // 4]


@pytest.fixture(scope="module", params=FILES)
def corpus(request, shared):
    """The first 20 MB of a corpus, cut after the first newline past 4,096 characters."""
    file = shared / "bench" / FILES[request.param]
    if not file.is_file():
        pytest.skip(f"no corpus at {file}")
    with lzma.open(file) as packed:
        text = packed.read(CORPUS_BYTES + 4).decode("utf-8", "ignore")
    assert len(text.encode()) >= CORPUS_BYTES
    found, start = [], 0
    while start < len(text):
        end = text.find("\n", start + DOCUMENT_LENGTH) + 1 or len(text)
        found.append(text[start:end])
        start = end
    return Corpus(request.param, found)


def digest(answer):
    return hashlib.sha256(json.dumps(answer).encode()).hexdigest()


def frozen(corpus, name):
    return FROZEN[f"{corpus.name}/{name}"]


# ---------------------------------------------------------------------- tokenizers


def huggingface_digests(letters, ids):
    merges, vocab = letters
    return {"merges": digest(merges), "vocab": digest(sorted(vocab.items())), "ids": digest(ids)}


def train_huggingface(corpus, options):
    return byteweld.train(
        iter(corpus.documents),
        vocab_size=SIZE,
        recipe="huggingface",
        special_tokens=options.get("specials", ()),
        min_frequency=options.get("min_frequency", 0),
        max_token_bytes=options.get("limit"),
        initial_alphabet=options.get("letters"),
    )


def encode_all(tok, texts):
    return [tok.encode(text, allowed_special="all") for text in texts]


def peer_encode_all(peer, texts):
    return [encoding.ids for encoding in peer.encode_batch(texts, add_special_tokens=False)]


@pytest.mark.parametrize("name", OPTIONS)
def test_huggingface_learns_what_tokenizers_learned(corpus, name, tmp_path):
    tok = train_huggingface(corpus, OPTIONS[name])
    ids = encode_all(tok, corpus.sample)
    found = huggingface_digests(in_its_letters(tok.vocab), ids)
    assert found == frozen(corpus, f"huggingface-{name}")
    tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")
    file = tmp_path / "tokenizer.json"
    tok.save(file)
    assert peer_encode_all(tokenizers.Tokenizer.from_file(str(file)), corpus.sample) == ids


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_tokenizers_learns_what_huggingface_learns(corpus, name):
    pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")
    peer = huggingface_peer(corpus.documents, size=SIZE, **OPTIONS[name])
    tok = train_huggingface(corpus, OPTIONS[name])
    assert in_its_letters(tok.vocab) == in_letters(peer)
    ids = peer_encode_all(peer, corpus.sample)
    assert encode_all(tok, corpus.sample) == ids
    found = huggingface_digests(in_letters(peer), ids)
    assert found == frozen(corpus, f"huggingface-{name}")


# ---------------------------------------------------------------------- rustbpe


def rustbpe_digests(ranks, ids):
    in_order = sorted((rank, token.hex()) for token, rank in ranks.items())
    return {"tokens": digest(in_order), "ids": digest(ids)}


def test_rustbpe_learns_what_rustbpe_learned(corpus):
    tok = byteweld.train(iter(corpus.documents), vocab_size=SIZE, recipe="rustbpe")
    assert len(tok) == SIZE
    found = rustbpe_digests(tok.vocab.ids, [tok.encode(text) for text in corpus.sample])
    assert found == frozen(corpus, "rustbpe")


def test_rustbpe_learns_what_rustbpe_learned_beyond_65_536_tokens(corpus):
    tok = byteweld.train(iter(corpus.quarter), vocab_size=SIZE_BEYOND_16_BITS, recipe="rustbpe")
    assert len(tok) > 2**16 or tok.training.stop == "no pairs"
    assert rustbpe_digests(tok.vocab.ids, []) == frozen(corpus, "rustbpe-beyond-16-bits")


@pytest.mark.slow
def test_the_real_rustbpe_learns_the_same(corpus):
    pytest.importorskip("rustbpe", reason="the real rustbpe is not installed")
    peer = rustbpe_peer(corpus.documents, SIZE)
    tok = byteweld.train(iter(corpus.documents), vocab_size=SIZE, recipe="rustbpe")
    assert dict(tok.vocab.ids) == ranks_of(peer)
    ids = [peer.encode(text) for text in corpus.sample]
    assert [tok.encode(text) for text in corpus.sample] == ids
    assert rustbpe_digests(ranks_of(peer), ids) == frozen(corpus, "rustbpe")
    tok = byteweld.train(iter(corpus.quarter), vocab_size=SIZE_BEYOND_16_BITS, recipe="rustbpe")
    expected = ranks_of(rustbpe_peer(corpus.quarter, SIZE_BEYOND_16_BITS))
    assert dict(tok.vocab.ids) == expected
    assert rustbpe_digests(expected, []) == frozen(corpus, "rustbpe-beyond-16-bits")


# ---------------------------------------------------------------------- CS336


def cs336_digest(merges, counts):
    sides = zip(merges, counts, strict=True)
    return digest([(left.hex(), right.hex(), count) for (left, right), count in sides])


def train_cs336(corpus):
    options = {"recipe": "from-scratch", "special_tokens": [ENDOFTEXT]}
    counts = byteweld.count(iter(corpus.documents), **options)
    return counts, byteweld.train(counts, vocab_size=SIZE, **options)


def test_greatest_bytes_learns_what_the_rule_of_cs336_learned(corpus):
    _, tok = train_cs336(corpus)
    assert len(tok.vocab.merges) == SIZE - 257
    found = cs336_digest(tok.vocab.merges, tok.training.merge_counts)
    assert found == frozen(corpus, "cs336")
    tokens = [bytes([byte]) for byte in range(256)] + [ENDOFTEXT.encode()]
    tokens += [left + right for left, right in tok.vocab.merges]
    assert dict(tok.vocab.tokens) == dict(enumerate(tokens))


@pytest.mark.slow
def test_the_rule_of_cs336_learns_what_greatest_bytes_learns(corpus):
    counts, tok = train_cs336(corpus)
    expected = list(train_by_greatest_bytes(dict(counts.items()), SIZE - 257))
    merges = [(left, right) for left, right, _ in expected]
    merge_counts = tuple(count for *_, count in expected)
    assert tok.vocab.merges == merges
    assert tok.training.merge_counts == merge_counts
    assert cs336_digest(merges, merge_counts) == frozen(corpus, "cs336")


@examples(200)
@given(
    st.dictionaries(
        st.text("ab\x00ÿ", min_size=1, max_size=20).map(lambda text: text.encode("latin-1")),
        st.integers(0, 9),
        max_size=12,
    ),
    st.integers(0, 60),
)
def test_the_rule_of_cs336_in_plain_python_is_the_reference(counts, merges):
    expected = reference.train(counts, 256 + merges, RECIPES["from-scratch"])
    found = list(train_by_greatest_bytes(counts, merges))
    assert [(left, right) for left, right, _ in found] == expected.vocab.merges
    assert [count for *_, count in found] == [merge.pair_count for merge in expected.merges]
