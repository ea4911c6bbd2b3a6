"""The worked-theory seed on the engine: its examples and their erratum, drill 1, its edge cases."""

from __future__ import annotations

from typing import Any

import pytest

import byteweld
from byteweld import RECIPES, Counts, Tokenizer, reference
from tests.helpers import growth

STRINGS = ["I work", "I work", "I worked", "he works", "he worked"]
WORDS = Counts({b"work": 2, b"worked": 2, b"works": 1})
SPECIALS = ["<|endoftext|>", "<|pad|>", "<|sep|>"]


def train(documents: Any, vocab_size: int, **options: Any) -> Tokenizer:
    source = documents if isinstance(documents, Counts) else iter(documents)
    return byteweld.train(source, vocab_size=vocab_size, recipe="plain", **options)


WORK = train(STRINGS, 260)


# ---------------------------------------------------------------------- the toy example


@pytest.mark.parametrize(
    ("merges", "parts"),
    [
        (0, [b"w", b"o", b"r", b"k", b"e", b"d"]),
        (1, [b"w", b"or", b"k", b"e", b"d"]),
        (2, [b"w", b"ork", b"e", b"d"]),
        (3, [b"work", b"e", b"d"]),
    ],
)
def test_after_each_merge_worked_has_the_parts_that_the_seed_shows(merges, parts):
    tok = train(WORDS, 256 + merges)
    assert tok.decode_tokens_bytes(tok.encode("worked")) == parts


def test_erratum_on_its_own_strings_the_space_wins_the_first_tie():
    expected = [(b" ", b"w"), (b" w", b"o"), (b" wo", b"r"), (b" wor", b"k")]
    assert WORK.vocab.merges == expected
    assert WORK.training.merge_counts == (5, 5, 5, 5)
    assert WORK.training.stop == "size"


def test_erratum_space_w_occurs_five_times_and_not_three():
    # Without every other pair, the engine's count of (space, w) shows.
    tok = train([text[text.index(" ") : text.index(" ") + 2] for text in STRINGS], 257)
    assert tok.vocab.merges == [(b" ", b"w")]
    assert tok.training.merge_counts == (5,)
    rows = byteweld.explain_training(STRINGS, vocab_size=257, recipe="plain").steps[0].rows
    counted: dict[int, set[bytes]] = {}
    for row in rows:
        counted.setdefault(row.count, set()).add(bytes([row.left, row.right]))
    assert counted == {
        5: {b" w", b"wo", b"or", b"rk"},
        3: {b"I "},
        2: {b"he", b"e ", b"ke", b"ed"},
        1: {b"ks"},
    }


def test_erratum_the_code_sketch_with_max_gives_other_merges_than_its_tables():
    sketch = train(WORDS, 259, tie_break="greatest-bytes")
    assert sketch.vocab.merges == [(b"w", b"o"), (b"wo", b"r"), (b"wor", b"k")]
    assert sketch.vocab.merges != train(WORDS, 259).vocab.merges


def test_work_with_its_space_becomes_one_token_and_worked_and_works_come_later():
    merges = train(STRINGS, 400).vocab.merges
    joined = [left + right for left, right in merges]
    assert joined.index(b" work") == 3
    assert merges[4] == (b"I", b" work")  # without a pattern, merges run across the space
    assert b"I worked" in joined
    assert b"he works" in joined


def test_the_merges_stop_when_every_string_is_one_token():
    tok = train(STRINGS, 400)
    assert tok.training.stop == "no pairs"
    assert {len(tok.encode(text)) for text in STRINGS} == {1}
    assert set(train(STRINGS, 400).vocab.ids) >= {text.encode() for text in STRINGS}


def test_the_same_string_k_times_is_the_string_with_count_k():
    assert train(STRINGS, 262) == train(
        Counts({b"I work": 2, b"I worked": 1, b"he works": 1, b"he worked": 1}), 262
    )


# ---------------------------------------------------------------------- drill 1


def test_drill_2_merges_that_compete_give_other_ids_in_another_order():
    vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc", 257: b"ab"}
    trained = Tokenizer.from_merges(vocab, [(b"b", b"c"), (b"a", b"b")], pattern=None)
    reordered = Tokenizer.from_merges(vocab, [(b"a", b"b"), (b"b", b"c")], pattern=None)
    assert trained.encode("abc") == [97, 256]
    assert reordered.encode("abc") == [257, 99]


def test_drill_4_a_precomposed_or_gives_the_seeds_sequence_without_its_first_merge():
    composed = Counts({b"w\x6fk": 2, b"w\x6fked": 2, b"w\x6fks": 1})
    assert train(composed, 260).vocab.merges == [
        (b"o", b"k"),
        (b"w", b"ok"),
        (b"e", b"d"),
        (b"wok", b"ed"),
    ]
    late = Counts({b"w\xffk": 2, b"w\xffked": 2, b"w\xffks": 1})
    assert train(late, 258).vocab.merges == [(b"w", b"\xff"), (b"w\xff", b"k")]


# ---------------------------------------------------------------------- ties


@pytest.mark.parametrize(
    "tokens",
    [[b"abcdefgh" + bytes([end]) for end in b"ijklmnop"], [b"ab", b"ab\0", b"ab\0\0"]],
    ids=["the same eight bytes", "zeros at the end"],
)
def test_ties_of_long_tokens_are_decided_by_all_of_their_bytes(tokens):
    counts = Counts(dict.fromkeys(tokens, 9) | {token + b"z": 2 for token in tokens})
    for tie_break, expected in (
        ("smallest-bytes", sorted(tokens)),
        ("greatest-bytes", sorted(tokens, reverse=True)),
    ):
        merges = train(counts, 300, tie_break=tie_break).vocab.merges
        assert [left for left, right in merges if right == b"z"] == expected


# ---------------------------------------------------------------------- encoding and decoding


def test_manana_is_seven_bytes_and_merges_when_it_is_frequent():
    tok = train(["mañana"] * 4 + ["ñ"] * 9, 300)
    assert tok.vocab.merges[0] == (b"\xc3", b"\xb1")
    assert tok.encode("ñ") == [256]
    assert tok.encode("mañana") == [tok.vocab.ids["mañana".encode()]]
    assert "añ".encode() in tok.vocab.ids


@pytest.mark.parametrize("text", ["", "a", "🦊", "mañana"])
def test_unseen_text_is_its_bytes(text):
    assert WORK.encode(text) == list(text.encode())
    assert WORK.decode(list(text.encode())) == text


def test_control_characters_and_a_bom_are_just_bytes():
    controls = "".join(map(chr, [*range(32), 127, *range(128, 160)]))
    assert WORK.encode(controls) == list(controls.encode())
    assert WORK.encode("\ufeff I work") == [0xEF, 0xBB, 0xBF, 32, ord("I"), 259]
    assert WORK.decode(WORK.encode(controls + "\ufeff")) == controls + "\ufeff"


def test_a_text_of_several_words_has_no_boundary_at_the_space():
    assert WORK.vocab.pattern is None
    assert WORK.pretokenize("I work, he works") == [b"I work, he works"]
    assert WORK.decode_tokens_bytes(WORK.encode("I work")) == [b"I", b" work"]


def test_encoding_applies_merges_in_training_order():
    # (w, ork) can only act after (o, r) and (or, k): the whole word is one token all the same.
    tok = train(WORDS, 259)
    assert tok.encode("work") == [258]
    assert tok.encode("ork") == [257]
    assert tok.encode("or") == [256]


# ---------------------------------------------------------------------- how the work grows

PROSE = growth.prose(1_001_000)
LEARNED = train([PROSE], 256 + 1600)


def test_sixteen_times_the_merges_take_a_few_times_as_long_to_learn():
    def learn(merges: int) -> Tokenizer:
        return train([PROSE], 256 + merges, num_threads=1)

    assert len(learn(4000).vocab.merges) == 4000
    # A trainer that counts again after every merge, as the reference does, takes 16 times as long.
    assert growth.least_growth(learn, 250, 4000, limit=7) < 7
    small = [PROSE[:4000].encode()]
    recounting = growth.growth(
        lambda merges: reference.train(small, 256 + merges, RECIPES["plain"]), 20, 320, repeats=1
    )
    assert recounting > 8


def test_sixteen_times_the_merges_take_no_longer_to_encode():
    cut = {merges: LEARNED.cut(256 + merges) for merges in (100, 1600)}
    piece = growth.pieces(PROSE)
    grown = growth.least_growth(
        lambda merges: cut[merges].encode(piece(1_000_000)), 100, 1600, limit=4
    )
    assert grown < 4
    merges, text = LEARNED.vocab.merges, PROSE[:1000].encode()
    scans = growth.growth(
        lambda number: growth.encode_by_a_scan_per_merge(text, merges[:number]), 100, 1600
    )
    assert scans > 5
    parts = LEARNED.decode_tokens_bytes(LEARNED.encode(text))
    assert growth.encode_by_a_scan_per_merge(text, merges) == parts


@pytest.mark.parametrize("text", [PROSE, "a" * 1_001_000], ids=["prose", "one letter"])
def test_four_times_the_text_takes_about_four_times_as_long(text):
    piece = growth.pieces(text)
    sizes = (250_000, 1_000_000)
    repeated = train(["a" * 1_000_000], 256 + 18)
    for tok in (LEARNED, repeated):
        # Repeated scans of the whole text take 16 times as long.
        grown = growth.least_growth(
            lambda size, tok=tok: tok.encode(piece(size) + "b" * size), *sizes, limit=9
        )
        assert grown < 9
    learned = growth.least_growth(
        lambda size: train([piece(size)], 300, num_threads=1), *sizes, limit=9
    )
    assert learned < 9
