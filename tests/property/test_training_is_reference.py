"""The engine learns what `byteweld.reference` learns, with every recipe and tie rule.

Compares merges, ids, counts and stop reasons, on thousands of small corpora with ties, overlaps
and runs, on long documents without a pattern, and on counts up to the limit of 64 bits.
"""

from __future__ import annotations

import random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import RECIPES, Counts, Recipe, UnsupportedError, _native, reference
from byteweld.errors import ByteweldError
from byteweld.explanation import MAX_PARTS, MAX_ROWS
from byteweld.recipes import TieBreak
from byteweld.reference.train import TrainStep, count_pairs, in_tie_order, merge, pick
from tests.helpers.strategies import as_bytes, corpora, examples, recipes

TIES = get_args(TieBreak)
BYTE_IDS = list(range(256))
# The largest sum of count x length that can be trained on.
MAX_BYTES = 2**63 - 1


def trained(documents, size, recipe, **options):
    """Return the result of a training, or the type of its error, to be compared with another."""
    try:
        tok = byteweld.train(iter(documents), vocab_size=size, recipe=recipe, **options)
    except (ByteweldError, ValueError) as error:
        return type(error)
    return tok.vocab, tok.training.merge_counts, tok.training.stop


def trained_by_reference(documents, size, recipe):
    try:
        training = reference.train([as_bytes(d) for d in documents], size, recipe)
    except (ByteweldError, ValueError) as error:
        return type(error)
    return training.vocab, tuple(m.pair_count for m in training.merges), training.stopped


def check_counts(counts, size, recipe):
    tok = byteweld.train(Counts(counts), vocab_size=size, recipe=recipe)
    expected = reference.train(counts, size, recipe)
    assert tok.vocab == expected.vocab
    assert tok.training.merge_counts == tuple(merge.pair_count for merge in expected.merges)
    assert tok.training.stop == expected.stopped
    return tok


# ---------------------------------------------------------------------- recipes


@pytest.mark.parametrize("name", RECIPES)
@examples(150)
@given(st.data())
def test_a_recipe_with_any_fields_changed_trains_as_the_reference_does(name, data):
    recipe = data.draw(recipes(name))
    documents = data.draw(corpora(recipe))
    documents *= data.draw(st.sampled_from([1, 1, 5]))
    size = recipe.minimum_size + data.draw(st.integers(0, 40))
    expected = trained_by_reference(documents, size, recipe)
    for num_threads in data.draw(st.sampled_from([(None,), (1, 2, 7)])):
        assert trained(documents, size, recipe, num_threads=num_threads) == expected


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_trains_on_the_small_corpora_as_the_reference_does(name, data):
    recipe = RECIPES[name]
    documents = [(data / file).read_bytes() for file in ("prose.txt", "code.txt", "many.txt")]
    if recipe.alphabet == "ascii":
        documents = [document.decode().encode("ascii", "ignore") for document in documents]
    size = recipe.minimum_size + 120
    expected = trained_by_reference(documents, size, recipe)
    for num_threads in (1, 2, 7):
        assert trained(documents, size, recipe, num_threads=num_threads) == expected


# ---------------------------------------------------------------------- hard shapes

words = st.one_of(
    st.text("a", min_size=1, max_size=40),
    st.text("ab", min_size=1, max_size=30),
    st.text("abc\x00ÿ", min_size=1, max_size=12),
    # A short string repeated, which overlaps itself in every way.
    st.tuples(st.text("ab", min_size=1, max_size=4), st.integers(1, 20)).map(lambda p: p[0] * p[1]),
).map(lambda text: text.encode("latin-1"))
tables = st.one_of(
    st.dictionaries(words, st.just(1), max_size=20),  # all counts tie
    st.dictionaries(words, st.integers(0, 4), max_size=20),
    st.dictionaries(words, st.integers(0, 45).map(lambda power: 2**power), max_size=12),
)


@pytest.mark.parametrize("tie_break", TIES)
@examples(400)
@given(
    counts=tables,
    merges=st.sampled_from([0, 1, 2, 5, 30, 200]),
    min_frequency=st.sampled_from([0, 1, 2, 3, 2**32]),
    max_token_bytes=st.sampled_from([None, None, 1, 2, 3, 6]),
)
def test_runs_overlaps_and_ties_train_as_the_reference_does(
    tie_break, counts, merges, min_frequency, max_token_bytes
):
    recipe = Recipe(
        tie_break=tie_break, min_frequency=min_frequency, max_token_bytes=max_token_bytes
    )
    check_counts(counts, 256 + merges, recipe)


@pytest.mark.parametrize("tie_break", TIES)
@pytest.mark.parametrize("letters", ["a", "ab", "aab", "abcdefgh", "a <|é"])
@examples(4)
@given(seed=st.integers(0, 2**32), special=st.booleans())
def test_a_giant_document_without_a_pattern_trains_as_the_reference_does(
    tie_break, letters, seed, special
):
    choose = random.Random(seed)
    runs = (choose.choice(letters) * choose.choice([1, 1, 2, 3, 5, 40]) for _ in range(1500))
    recipe = RECIPES["plain"].replace(
        tie_break=tie_break, special_tokens=["<|"] if special else [], pattern=None
    )
    document = "".join(runs)
    size = recipe.minimum_size + 40
    expected = trained_by_reference([document], size, recipe)
    for num_threads in (1, 2, 7):
        assert trained([document], size, recipe, num_threads=num_threads) == expected


# ---------------------------------------------------------------------- 64 bits


@examples(200)
@given(
    counts=st.dictionaries(
        st.binary(min_size=1, max_size=12).map(lambda b: bytes(x % 4 + 97 for x in b)),
        st.one_of(st.integers(0, 4), st.integers(2**31 - 2, 2**33), st.integers(2**40, 2**45)),
        max_size=12,
    ),
    tie_break=st.sampled_from(TIES),
    min_frequency=st.sampled_from([0, 1, 3, 2**32, 2**41]),
)
def test_counts_of_any_size_train_as_the_reference_does(counts, tie_break, min_frequency):
    check_counts(counts, 290, Recipe(tie_break=tie_break, min_frequency=min_frequency))


@pytest.mark.parametrize("width", [2**31, 2**32, 2**40, 2**53, 2**59])
def test_counts_around_every_integer_width_are_exact(width):
    # The counts differ by one or two: with floats or narrower integers they would tie.
    counts = {b"ab": width + 1, b"cd": width, b"abab": 1, b"ef": width + 2, b"gh": width - 1}
    tok = check_counts(counts, 260, Recipe(tie_break="greatest-bytes"))
    assert tok.training.merge_counts == (width + 3, width + 2, width, width - 1)
    assert tok.vocab.merges == [(b"a", b"b"), (b"e", b"f"), (b"c", b"d"), (b"g", b"h")]


@examples(60)
@given(st.lists(words, min_size=1, max_size=5, unique=True), st.integers(0, 3))
def test_counts_train_up_to_the_limit_and_are_refused_beyond_it(pretokens, below):
    length = sum(map(len, pretokens))
    largest = MAX_BYTES // length
    counts = {pretoken: largest - below for pretoken in pretokens}
    check_counts(counts, 280, Recipe())
    over = counts | {pretokens[0]: largest + MAX_BYTES // len(pretokens[0])}
    with pytest.raises(
        UnsupportedError, match=r"at most 9223372036854775807 are supported; divide all counts"
    ):
        byteweld.train(Counts(over), vocab_size=280, recipe=Recipe())


def test_a_sum_of_counts_beyond_64_bits_is_refused():
    full = Counts({b"ab": 2**64 - 1})
    assert (full + Counts({b"cd": 2**64 - 1})).total == 2**65 - 2
    with pytest.raises(OverflowError):
        Counts.merge([full, Counts({b"ab": 1})])
    with pytest.raises(ValueError, match="below 2\\^64"):
        Counts({b"ab": 2**64})


# ---------------------------------------------------------------------- step by step


@examples(300)
@given(tables, st.sampled_from(TIES), st.sampled_from([0, 2, 3]), st.sampled_from([None, 3, 5]))
def test_every_explained_step_is_that_of_the_reference(counts, tie_break, fewest, longest):
    recipe = Recipe(tie_break=tie_break, min_frequency=fewest, max_token_bytes=longest)
    seen: list[TrainStep] = []
    expected = reference.train(counts, 276, recipe, seen.append)
    explained = byteweld.explain_training(counts, 276, recipe)
    assert (explained.vocab, explained.stopped) == (expected.vocab, expected.stopped)
    assert explained.merges == expected.merges
    for step, theirs in zip(explained.steps, seen, strict=True):
        table = theirs.pair_counts
        by_count: dict[int, list[tuple[int, int]]] = {}
        for pair, count in table.items():
            by_count.setdefault(count, []).append(pair)
        order = [
            pair
            for count in sorted(by_count, reverse=True)
            for pair in in_tie_order(by_count[count], theirs.tokens, tie_break)
        ]
        rows = [(row.left, row.right) for row in step.rows]
        assert rows == order[:MAX_ROWS]
        assert [row.count for row in step.rows] == [table[pair] for pair in rows]
        assert step.total_pairs == len(table)
        tied = by_count[table[order[0]]]
        assert step.total_tied == len(tied) - 1
        assert [(row.left, row.right) for row in step.tied] == order[1 : len(tied)][:MAX_ROWS]
        left, right, new = step.merge[:3]
        assert new in step.example.after
        assert merge(step.example.before, (left, right), new) == step.example.after
        assert step.example.count == max(
            count for parts, count in theirs.corpus.items() if new in parts
        )
        most = sorted(theirs.corpus.values(), reverse=True)[:MAX_ROWS]
        assert [row.count for row in step.corpus] == most
        for row in step.corpus:
            assert len(row.parts) == min(row.total_parts, MAX_PARTS)
            if len(row.parts) == row.total_parts:
                assert theirs.corpus[row.parts] == row.count


# ---------------------------------------------------------------------- known merges


def learn(counts, tie_break, *, known=(), first_id=256, merges=30, min_frequency=0):
    """Call the engine directly; the id of a byte is its value."""
    learned, stop, *_ = _native.train(
        Counts(counts)._table,
        base_ids=BYTE_IDS,
        first_id=first_id,
        max_new_ids=merges,
        reserved=[],
        forbidden=[],
        known=list(known),
        tie_break=tie_break,
        min_frequency=min_frequency,
        max_token_bytes=None,
        num_threads=None,
        steps=None,
        progress=None,
    )
    return [tuple(merge[:4]) for merge in learned], stop


@examples(400)
@given(tables, st.sampled_from(TIES), st.integers(0, 30), st.sampled_from([0, 2, 3]))
def test_a_training_resumed_after_its_first_merges_learns_the_rest(
    counts, tie_break, done, min_frequency
):
    whole, stop = learn(counts, tie_break, min_frequency=min_frequency)
    done = min(done, len(whole))
    rest = learn(
        counts,
        tie_break,
        known=[merge[:3] for merge in whole[:done]],
        first_id=256 + done,
        merges=30 - done,
        min_frequency=min_frequency,
    )
    assert rest == (whole[done:], stop)


@examples(400)
@given(tables, tables, st.sampled_from(TIES), st.integers(0, 25))
def test_known_merges_are_applied_first_and_in_order(before, counts, tie_break, merges):
    known = [merge[:3] for merge in learn(before, tie_break, merges=merges)[0]]
    # The specification: apply the known merges one after another, then train as usual.
    tokens = {byte: bytes([byte]) for byte in range(256)}
    pretokens = {}
    for pretoken, count in counts.items():
        ids = tuple(pretoken)
        for left, right, new in known:
            tokens[new] = tokens[left] + tokens[right]
            ids = merge(ids, (left, right), new)
        if count:
            pretokens[ids] = pretokens.get(ids, 0) + count
    expected = []
    while len(expected) < 20 and (pairs := count_pairs(pretokens)):
        pair = pick(pairs, tokens, tie_break)
        new = 1000 + len(expected)
        tokens[new] = tokens[pair[0]] + tokens[pair[1]]
        pretokens = {merge(ids, pair, new): count for ids, count in pretokens.items()}
        expected.append((*pair, new, pairs[pair]))
    assert learn(counts, tie_break, known=known, first_id=1000, merges=20)[0] == expected
