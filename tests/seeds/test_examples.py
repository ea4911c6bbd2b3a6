"""The worked examples of all seeds, as tables, on the engine and on the reference."""

from __future__ import annotations

import random

import pytest

import byteweld
from byteweld import RECIPES, Counts, reference


def learn_by_engine(corpus, size, recipe):
    source = Counts(corpus) if isinstance(corpus, dict) else iter(corpus)
    tok = byteweld.train(source, vocab_size=size, recipe=recipe)
    merges = zip(tok.vocab.merge_ids, tok.training.merge_counts, strict=True)
    return tok.vocab, [(*merge, count) for merge, count in merges], tok.training.stop


def learn_by_reference(corpus, size, recipe):
    found = reference.train(corpus, size, recipe)
    return found.vocab, list(found.merges), found.stopped


# ---------------------------------------------------------------------- merges

AFTER_BA = {b"ba": 9, b"bax": 2, b"cx": 2}
DRILL = [b"he eats", b"he eats", b"I eat", b"you eat"]
WORKS = {b"work": 2, b"worked": 2, b"works": 1}
WORKED = [  # the seeds' examples: recipe, corpus, size, merges with their counts, why it stops
    (
        *("ck", [b"ab ab ab\n", "aaa bà\n".encode()], 264),
        *([(101, 102, 260, 3), (36, 260, 261, 2), (101, 101, 262, 2)], "min frequency"),
    ),
    (
        *("from-scratch", {b"low": 5, b"lower": 2}, 260),
        *([(111, 119, 256, 7), (108, 256, 257, 7), (257, 101, 258, 2), (258, 114, 259, 2)], "size"),
    ),
    ("bpetite", [b"ab ab ab"], 258, [(97, 98, 256, 3), (32, 256, 257, 2)], "size"),
    ("bpetite", [b"ab\nab\nab\nab\nab"], 300, [(97, 98, 256, 5)], "no pairs"),
    ("bpetite", [b"ab"], 256, [], "size"),
    ("bpetite", [b"cab"], 257, [(97, 98, 256, 1)], "size"),  # neither the first nor the last
    ("bpetite", [b"cab ca"], 257, [(99, 97, 256, 2)], "size"),  # a higher count
    ("bpetite", [b"ac ab"], 257, [(32, 97, 256, 1)], "size"),
    ("bpetite", [b"ac\nab"], 257, [(97, 98, 256, 1)], "size"),  # the right part decides
    ("bpetite", [b"ab"], 1000, [(97, 98, 256, 1)], "no pairs"),
    ("bpetite", [b"", b"a"], 300, [], "no pairs"),
    # Overlapping pairs count twice in each xxx: 2 + 2 beat the three of (a, b).
    ("bpetite", [b"xxx\nab\nab\nxxx\nab"], 257, [(120, 120, 256, 4)], "size"),
    # abc and xbc become the same; their counts add up.
    (
        "bpetite",
        {b"abc": 3, b"xbc": 2, b"qr": 4},
        258,
        [(98, 99, 256, 5), (113, 114, 257, 4)],
        "size",
    ),
    ("bpetite", [b"xxx"], 258, [(120, 120, 256, 2), (256, 120, 257, 1)], "size"),
    (
        *("plain", DRILL, 260),
        *([(32, 101, 256, 4), (256, 97, 257, 4), (257, 116, 258, 4), (258, 115, 259, 2)], "size"),
    ),
    (
        *("plain", WORKS, 259),
        *([(111, 114, 256, 5), (256, 107, 257, 5), (119, 257, 258, 5)], "size"),
    ),
    ("bpe1", {b"the": 3, b"th": 1}, 262, [(116, 104, 260, 4), (260, 101, 261, 3)], "size"),
    ("bpe1", [b"cab"], 261, [(97, 98, 260, 1)], "size"),
    ("from-scratch", [b"cab"], 257, [(99, 97, 256, 1)], "size"),
    ("from-scratch", {b"abab": 1}, 258, [(97, 98, 256, 2), (256, 256, 257, 1)], "size"),
    ("from-scratch", ["€€€ €".encode()], 258, [(226, 130, 256, 4), (256, 172, 257, 4)], "size"),
    # (ba, x) and (c, x) tie. As bytes, ba comes before c; as an id, after it.
    ("plain", AFTER_BA, 258, [(98, 97, 256, 11), (256, 120, 257, 2)], "size"),
    ("from-scratch", AFTER_BA, 258, [(98, 97, 256, 11), (99, 120, 257, 2)], "size"),
    ("bpetite", AFTER_BA, 258, [(98, 97, 256, 11), (99, 120, 257, 2)], "size"),
    # (ab, b) and (a, c) tie; joined, they would be abb and ac.
    ("plain", {b"ac": 2, b"abb": 2, b"ab": 1}, 258, [(97, 98, 256, 3), (97, 99, 257, 2)], "size"),
    ("plain", {b"ab": 2**33, b"bc": 2**32}, 257, [(97, 98, 256, 2**33)], "size"),
    ("plain", {b"ab": 0}, 300, [], "no pairs"),
]


@pytest.mark.parametrize("learn", [learn_by_engine, learn_by_reference])
@pytest.mark.parametrize(("recipe", "corpus", "size", "merges", "stopped"), WORKED)
def test_the_worked_examples(learn, recipe, corpus, size, merges, stopped):
    assert learn(corpus, size, RECIPES[recipe])[1:] == (merges, stopped)


@pytest.mark.parametrize("learn", [learn_by_engine, learn_by_reference])
@pytest.mark.parametrize("recipe", ["bpetite", "plain", "from-scratch", "ck"])
@pytest.mark.parametrize("seed", range(3))
def test_many_ties_are_merged_in_order_whatever_their_order_in_the_corpus(learn, recipe, seed):
    words = [f"a{right}".encode() for right in "bcdefghijklm"]
    words += [f"{left}z".encode() for left in "bcdefghijklm"]
    expected = sorted(words, reverse=recipe == "from-scratch")
    random.Random(seed).shuffle(words)
    made = RECIPES[recipe].replace(min_frequency=1)
    size = made.minimum_size + len(words)
    vocab, *_ = learn(words, size, made)
    assert [left + right for left, right in vocab.merges] == expected


# ---------------------------------------------------------------------- ids

LAYOUTS = [  # recipe, the user's special tokens, and some ids after one merge of a and b
    ("ck", (), {b"<|unk|>": 0, b"<|pad|>": 3, b"\0": 4, b" ": 36, b"ab": 260}),
    ("ck-ascii", (), {b"<|unk|>": 0, b"\t": 4, b" ": 7, b"~": 101, b"ab": 102}),
    ("from-scratch", ("<x>",), {b"\xff": 255, b"<x>": 256, b"ab": 257}),
    ("bpetite", (), {b"\xff": 255, b"ab": 256, b"<|endoftext|>": 257}),
    ("plain", ("<x>", "<y>"), {b"<x>": 0, b"<y>": 1, b"\0": 2, b"ab": 258}),
    ("bpe1", (), {b"<|bos|>": 256, b"<|unk|>": 259, b"ab": 260}),
    ("modern", ("<x>", "<y>"), {b"ab": 256, b"<x>": 257, b"<y>": 258}),
    ("huggingface", ("<x>",), {b"<x>": 0, b"!": 1, b"\0": 189, b" ": 221, b"ab": 257}),
]


@pytest.mark.parametrize("learn", [learn_by_engine, learn_by_reference])
@pytest.mark.parametrize(("name", "specials", "ids"), LAYOUTS)
def test_ids_are_where_the_recipe_has_them(learn, name, specials, ids):
    recipe = RECIPES[name]
    recipe = recipe.replace(special_tokens=specials) if specials else recipe
    vocab, *_ = learn({b"ab": 2}, 300, recipe)
    assert {vocab.tokens[token_id]: token_id for token_id in ids.values()} == ids
