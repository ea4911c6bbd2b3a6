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


# ---------------------------------------------------------------------- ours and the peers'

# What a training gives, as digests: ours, and the peer's. Both take a corpus.


def huggingface_digests(letters, ids):
    merges, vocab = letters
    return {"merges": digest(merges), "vocab": digest(sorted(vocab.items())), "ids": digest(ids)}


def huggingface(corpus, options):
    tok = byteweld.train(
        iter(corpus.documents),
        vocab_size=SIZE,
        recipe="huggingface",
        special_tokens=options.get("specials", ()),
        min_frequency=options.get("min_frequency", 0),
        max_token_bytes=options.get("limit"),
        initial_alphabet=options.get("letters"),
    )
    ids = [tok.encode(text, allowed_special="all") for text in corpus.sample]
    return huggingface_digests(in_its_letters(tok.vocab), ids)


def tokenizers(corpus, options):
    pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")
    peer = huggingface_peer(corpus.documents, size=SIZE, **options)
    found = peer.encode_batch(corpus.sample, add_special_tokens=False)
    return huggingface_digests(in_letters(peer), [encoding.ids for encoding in found])


def rustbpe_digests(ranks, ids):
    in_order = sorted((rank, token.hex()) for token, rank in ranks.items())
    return {"tokens": digest(in_order), "ids": digest(ids)}


def rustbpe(corpus, documents, size):
    tok = byteweld.train(iter(documents), vocab_size=size, recipe="rustbpe")
    assert len(tok) == size or tok.training.stop == "no pairs"
    sample = corpus.sample if size == SIZE else []
    return rustbpe_digests(tok.vocab.ids, [tok.encode(text) for text in sample])


def real_rustbpe(corpus, documents, size):
    pytest.importorskip("rustbpe", reason="the real rustbpe is not installed")
    peer = rustbpe_peer(documents, size)
    sample = corpus.sample if size == SIZE else []
    return rustbpe_digests(ranks_of(peer), [peer.encode(text) for text in sample])


def cs336_digest(merges, counts):
    sides = zip(merges, counts, strict=True)
    return digest([(left.hex(), right.hex(), count) for (left, right), count in sides])


CS336 = {"recipe": "from-scratch", "special_tokens": [ENDOFTEXT]}


def from_scratch(corpus):
    tok = byteweld.train(iter(corpus.documents), vocab_size=SIZE, **CS336)
    tokens = [bytes([byte]) for byte in range(256)] + [ENDOFTEXT.encode()]
    tokens += [left + right for left, right in tok.vocab.merges]
    assert dict(tok.vocab.tokens) == dict(enumerate(tokens))
    return cs336_digest(tok.vocab.merges, tok.training.merge_counts)


def rule_of_cs336(corpus):
    counts = byteweld.count(iter(corpus.documents), **CS336)
    found = list(train_by_greatest_bytes(dict(counts.items()), SIZE - 257))
    return cs336_digest([pair for *pair, _ in found], [count for *_, count in found])


TRAINERS = {
    **{
        f"huggingface-{name}": (
            lambda corpus, options=options: huggingface(corpus, options),
            lambda corpus, options=options: tokenizers(corpus, options),
        )
        for name, options in OPTIONS.items()
    },
    "rustbpe": (
        lambda corpus: rustbpe(corpus, corpus.documents, SIZE),
        lambda corpus: real_rustbpe(corpus, corpus.documents, SIZE),
    ),
    "rustbpe-beyond-16-bits": (
        lambda corpus: rustbpe(corpus, corpus.quarter, SIZE_BEYOND_16_BITS),
        lambda corpus: real_rustbpe(corpus, corpus.quarter, SIZE_BEYOND_16_BITS),
    ),
    "cs336": (from_scratch, rule_of_cs336),
}


@pytest.mark.parametrize(
    "side", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["ours", "the peer"]
)
@pytest.mark.parametrize("name", TRAINERS)
def test_both_learn_what_is_frozen(corpus, name, side):
    assert TRAINERS[name][side](corpus) == FROZEN[f"{corpus.name}/{name}"]


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
