"""Longest match by hash table and by trie agree; BPE is the engine's; work is counted exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.explanation import make_trie, match_by_hash, match_by_trie, merge_by_rank
from byteweld.reference.encode import encode_greedy
from byteweld.vocab import Vocabulary

BYTES = {byte: bytes([byte]) for byte in range(256)}
ABC = Vocabulary(BYTES | {256: b"bc", 257: b"ab"}, [(98, 99, 256), (97, 98, 257)])


@given(
    corpus=st.lists(st.text("abc ", max_size=20), max_size=5),
    text=st.text("abcé ", max_size=20).map(str.encode),
)
def test_both_longest_matches_are_the_references_and_bpe_is_the_engines(corpus, text):
    vocab = byteweld.train(iter(corpus), vocab_size=280, recipe="plain").vocab
    greedy = encode_greedy(vocab, text)
    assert match_by_hash(vocab, text).ids == greedy
    assert match_by_trie(make_trie(vocab.ordinary()), text).ids == greedy
    found = merge_by_rank(vocab, text)
    assert found.ids == byteweld.Tokenizer(vocab).encode(text)
    assert found.merges == len(text) - len(found.ids)
    assert found.lookups <= max(0, len(text) - 1) + 2 * found.merges


def test_the_work_on_abc_is_what_one_counts_by_hand():
    # Position 0: "ab" is found at once. Position 2: "c".
    assert match_by_hash(ABC, b"abc") == ([257, 99], 2, 3)
    trie = make_trie(ABC.ordinary())
    walk = match_by_trie(trie, b"abc")
    assert walk.ids == [257, 99]
    # a, b, and c, which does not continue ab; then c again, from the root.
    assert [(step.at, step.token) for step in walk.steps] == [
        (0, None),
        (1, None),
        (2, 257),
        (2, 99),
    ]
    assert walk.steps[2].node is None
    assert [trie[step.node].token for step in walk.steps if step.node] == [97, 257, 99]
    # (a, b) and (b, c) are looked up; (b, c) has rank 0; then (a, bc).
    assert merge_by_rank(ABC, b"abc") == ([97, 256], 1, 3)


def test_a_hash_table_probes_every_length_and_a_trie_reads_each_byte():
    tokens = BYTES | {256: b"xxxxxxxx"}
    vocab = Vocabulary(tokens)
    assert match_by_hash(vocab, b"abcdefgh").probes == 8 + 7 + 6 + 5 + 4 + 3 + 2 + 1
    # Each letter is read twice: as the one that does not continue the token before it, too.
    assert len(match_by_trie(make_trie(vocab.ordinary()), b"abcdefgh").steps) == 15


def test_equal_ranks_merge_from_the_left():
    vocab = Vocabulary(BYTES | {256: b"aa"}, [(97, 97, 256)])
    assert merge_by_rank(vocab, b"aaa").ids == [256, 97]


def test_a_byte_without_a_token_is_refused_by_all_three():
    vocab = byteweld.train(iter(["ab"]), vocab_size=102, recipe="ck-ascii").vocab
    for match in (
        lambda: match_by_hash(vocab, b"a\xff"),
        lambda: match_by_trie(make_trie(vocab.ordinary()), b"a\xff"),
        lambda: merge_by_rank(vocab, b"a\xff"),
    ):
        with pytest.raises(ValueError, match="byte 0xFF at offset 1 is not in the alphabet"):
            match()
