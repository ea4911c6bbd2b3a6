"""32,768 tokens from 20 MB of prose, of code and of many languages: every id is the peer's.

The peers are tokenizers, rustbpe, and for ties by greatest bytes the CS336 rule in plain Python.
"""

from __future__ import annotations

import lzma

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
CORPUS_BYTES = 20_000_000
DOCUMENT_LENGTH = 4096
FILES = {"prose": "prose100.txt.xz", "code": "code40.txt.xz", "multilingual": "multi40.txt.xz"}
# How many of the documents are encoded: about a megabyte.
ENCODED = 250


@pytest.fixture(scope="module", params=FILES)
def documents(request, shared):
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
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        # Ordinary words as special tokens: they are met in the text, and learned.
        {
            "letters": [],
            "specials": [ENDOFTEXT, "ing", "ion", "return", "<pad>"],
            "min_frequency": 5,
            "limit": 8,
        },
    ],
    ids=["plain", "options"],
)
def test_huggingface_is_tokenizers(documents, options, tmp_path):
    tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")
    peer = huggingface_peer(documents, size=SIZE, **options)
    tok = byteweld.train(
        iter(documents),
        vocab_size=SIZE,
        recipe="huggingface",
        special_tokens=options.get("specials", ()),
        min_frequency=options.get("min_frequency", 0),
        max_token_bytes=options.get("limit"),
        initial_alphabet=options.get("letters"),
    )
    assert in_its_letters(tok.vocab) == in_letters(peer)
    file = tmp_path / "tokenizer.json"
    tok.save(file)
    ours = tokenizers.Tokenizer.from_file(str(file))
    texts = documents[:: len(documents) // ENCODED]
    expected = [e.ids for e in peer.encode_batch(texts, add_special_tokens=False)]
    assert [e.ids for e in ours.encode_batch(texts, add_special_tokens=False)] == expected
    assert [tok.encode(text, allowed_special="all") for text in texts] == expected


def test_rustbpe_is_rustbpe(documents):
    pytest.importorskip("rustbpe", reason="the real rustbpe is not installed")
    peer = rustbpe_peer(documents, SIZE)
    tok = byteweld.train(iter(documents), vocab_size=SIZE, recipe="rustbpe")
    assert len(tok) == SIZE
    assert dict(tok.vocab.ids) == ranks_of(peer)
    for text in documents[:: len(documents) // ENCODED]:
        assert tok.encode(text) == peer.encode(text)


def test_rustbpe_is_rustbpe_beyond_65_536_tokens(documents):
    pytest.importorskip("rustbpe", reason="the real rustbpe is not installed")
    size = 70_000  # ids no longer fit 16 bits
    part = documents[: len(documents) // 4]
    tok = byteweld.train(iter(part), vocab_size=size, recipe="rustbpe")
    expected = ranks_of(rustbpe_peer(part, size))
    assert dict(tok.vocab.ids) == expected
    assert len(expected) > 2**16 or tok.training.stop == "no pairs"


def test_greatest_bytes_is_the_rule_of_cs336(documents):
    counts = byteweld.count(iter(documents), recipe="from-scratch", special_tokens=[ENDOFTEXT])
    tok = byteweld.train(counts, vocab_size=SIZE, recipe="from-scratch", special_tokens=[ENDOFTEXT])
    expected = list(train_by_greatest_bytes(dict(counts.items()), SIZE - 257))
    assert len(expected) == SIZE - 257
    assert tok.vocab.merges == [(left, right) for left, right, _ in expected]
    assert tok.training.merge_counts == tuple(count for *_, count in expected)
    tokens = [bytes([byte]) for byte in range(256)] + [ENDOFTEXT.encode()]
    tokens += [left + right for left, right, _ in expected]
    assert dict(tok.vocab.tokens) == dict(enumerate(tokens))


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
