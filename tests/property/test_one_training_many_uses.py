"""One training, many uses, with any recipe: cuts, resumed trainings, extended tokenizers.

A cut equals a training at the smaller size; a resumed training equals an uninterrupted one;
extending keeps every id and merge, and then learns what the reference learns.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import byteweld
from byteweld import RECIPES, Counts, UnsupportedError
from byteweld.reference.train import count_pairs, merge, pick
from tests.helpers.strategies import as_bytes, corpora, examples, recipes, texts
from tests.helpers.vocabularies import expanded

MORE = 25  # merges


def facts(tok):
    """Everything that a training did, except times and memory."""
    plain = dataclasses.replace(
        tok.training,
        count_seconds=0.0,
        layout_seconds=0.0,
        merge_seconds=0.0,
        peak_memory_bytes=None,
    )
    return tok.vocab, plain


def settled(recipe, counts):
    """The recipe with the bytes of the corpus added to its initial alphabet, if it has one."""
    return recipe.with_letters({byte for pretoken, n in counts.items() if n for byte in pretoken})


def train_or_skip(counts, size, recipe, **options):
    try:
        return byteweld.train(counts, vocab_size=size, recipe=recipe, **options)
    except UnsupportedError:  # Hugging Face would give a special and a learned token the same id
        assume(False)


# ---------------------------------------------------------------------- cuts


@pytest.mark.parametrize("name", RECIPES)
@examples(20)
@given(st.data())
def test_a_cut_equals_the_smaller_training_and_its_report(name, data):
    recipe = data.draw(recipes(name))
    counts = byteweld.count(iter(data.draw(corpora(recipe))), recipe=recipe)
    recipe = settled(recipe, counts)
    tok = train_or_skip(counts, recipe.minimum_size + MORE, recipe)
    for size in range(recipe.minimum_size, recipe.minimum_size + MORE + 1):
        trained = byteweld.train(counts, vocab_size=size, recipe=recipe)
        assert facts(tok.cut(size)) == facts(trained)


@examples(40)
@given(st.data())
def test_cuts_are_exact_where_a_merge_takes_the_id_of_a_special_token(data):
    # In Hugging Face, a learned token spelled like a special token takes its id, not a new one.
    specials = data.draw(st.lists(st.sampled_from(["ab", "abc", "bc", "aa"]), unique=True))
    recipe = RECIPES["huggingface"].replace(special_tokens=specials, pattern=None)
    document = data.draw(st.text(alphabet="abc", min_size=5, max_size=80))
    counts = byteweld.count(iter([document]), recipe=recipe)
    tok = byteweld.train(counts, vocab_size=recipe.minimum_size + MORE, recipe=recipe)
    for more in range(MORE + 1):
        size = recipe.minimum_size + more
        trained = byteweld.train(counts, vocab_size=size, recipe=recipe)
        assert facts(tok.cut(size)) == facts(trained)


@pytest.mark.parametrize("name", RECIPES)
@examples(10)
@given(st.data())
def test_the_report_counts_the_tokens_and_bytes_of_the_encoded_corpus(name, data):
    recipe = data.draw(recipes(name))
    recipe = recipe.replace(encode_pattern=recipe.pattern)
    counts = byteweld.count(iter(data.draw(corpora(recipe))), recipe=recipe)
    recipe = settled(recipe, counts)
    tok = train_or_skip(counts, recipe.minimum_size + MORE, recipe)
    assert tok.training.total_bytes == sum(len(p) * n for p, n in counts.items())
    bare = without_pattern(tok.vocab)
    tokens = sum(len(bare.encode_ordinary(p)) * n for p, n in counts.items())
    assert tok.training.total_tokens == tokens


def without_pattern(vocab):
    """Return a tokenizer that does not split: a pre-token out of context may match differently."""
    return byteweld.Tokenizer(
        byteweld.Vocabulary(
            vocab.tokens,
            vocab.merge_ids,
            added_tokens=vocab.added_tokens,
            roles=vocab.roles,
            alphabet=vocab.alphabet,
        )
    )


# ---------------------------------------------------------------------- resuming


@pytest.mark.parametrize("name", RECIPES)
@examples(5)
@given(st.data())
def test_a_resumed_training_gives_the_same_result_as_an_uninterrupted_one(name, data):
    pytest.importorskip("pyarrow", reason="a checkpoint stores counts as Parquet files")
    recipe = data.draw(recipes(name))
    counts = byteweld.count(iter(data.draw(corpora(recipe))), recipe=recipe)
    recipe = settled(recipe, counts)
    size = recipe.minimum_size + MORE
    whole = train_or_skip(counts, size, recipe)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "point", "merges.log")
        for _ in range(3):
            again = byteweld.train(counts, vocab_size=size, recipe=recipe, checkpoint=log.parent)
            assert facts(again) == facts(whole)
            # As if the process had been killed while writing a record.
            log.write_bytes(log.read_bytes()[: data.draw(st.integers(0, log.stat().st_size))])


# ---------------------------------------------------------------------- extending


@pytest.mark.parametrize("name", RECIPES)
@examples(10)
@given(st.data())
def test_extending_with_the_same_counts_continues_the_training(name, data):
    # A vocabulary without some bytes cannot be extended.
    recipe = data.draw(recipes(name)).replace(initial_alphabet=None)
    counts = byteweld.count(iter(data.draw(corpora(recipe))), recipe=recipe)
    first = data.draw(st.integers(0, MORE))
    whole = train_or_skip(counts, recipe.minimum_size + MORE, recipe)
    start = byteweld.train(counts, vocab_size=recipe.minimum_size + first, recipe=recipe)
    longer = byteweld.train(counts, vocab_size=recipe.minimum_size + MORE, start=start)
    assert longer.vocab.merges == whole.vocab.merges
    assert longer.training.stop == whole.training.stop
    assert start.training.merge_counts + longer.training.merge_counts == whole.training.merge_counts
    assert longer.training.total_tokens == whole.training.total_tokens
    assert longer.training.total_bytes == whole.training.total_bytes
    if recipe.special_ids != "last" or not recipe.all_specials:
        assert longer.vocab == whole.vocab


@pytest.mark.parametrize("name", RECIPES)
@examples(10)
@given(st.data())
def test_extending_keeps_every_id_and_learns_what_the_reference_learns(name, data):
    # A vocabulary without some bytes cannot be extended.
    recipe = data.draw(recipes(name)).replace(initial_alphabet=None)
    old = byteweld.count(iter(data.draw(corpora(recipe))), recipe=recipe)
    new = byteweld.count(iter(data.draw(corpora(recipe))), recipe=recipe)
    start = train_or_skip(old, recipe.minimum_size + data.draw(st.integers(0, MORE)), recipe)
    size = recipe.minimum_size + MORE + data.draw(st.integers(0, MORE))
    try:
        longer = byteweld.train(new, vocab_size=size, start=start)
    except UnsupportedError:  # as above
        assume(False)
    kept = {i: token for i, token in longer.vocab.tokens.items() if i <= max(start.vocab.tokens)}
    assert kept == dict(start.vocab.tokens)
    assert longer.vocab.added_tokens == start.vocab.added_tokens
    assert longer.vocab.merge_ids[: len(start.vocab.merge_ids)] == start.vocab.merge_ids
    assert longer.vocab.merge_ids[len(start.vocab.merge_ids) :] == learn_on(start, new, size)
    for smaller in range(len(start.vocab), len(longer.vocab) + 1, 3):
        if recipe.size_counts_specials:
            extended = byteweld.train(new, vocab_size=smaller, start=start)
            assert facts(longer.cut(smaller)) == facts(extended)


def learn_on(start, counts, size):
    """The merges that the reference learns from pre-tokens that the start has encoded."""
    recipe, vocab = start.training.recipe, start.vocab
    tokens = dict(vocab.tokens)
    bare = without_pattern(vocab)
    pretokens = {}
    for pretoken, count in counts.items():
        ids = tuple(bare.encode_ordinary(pretoken))
        pretokens[ids] = pretokens.get(ids, 0) + count
    specials = 0 if recipe.size_counts_specials else len(vocab.special_tokens)
    new_ids_left = size - (len(vocab) - specials)
    longest = recipe.max_token_bytes or 10**9
    shares_specials = recipe.alphabet == "huggingface" and recipe.special_ids != "last"
    specials_as_bytes = {text.encode() for text in vocab.special_tokens}
    if recipe.alphabet == "huggingface":
        longest = max(2, longest - 1)
    learned = []
    while new_ids_left:
        pairs = {
            pair: count
            for pair, count in count_pairs(pretokens).items()
            if len(tokens[pair[0]] + tokens[pair[1]]) <= longest
            and (shares_specials or tokens[pair[0]] + tokens[pair[1]] not in specials_as_bytes)
        }
        if not pairs:
            break
        pair = pick(pairs, tokens, recipe.tie_break)
        if pairs[pair] < recipe.min_frequency:
            break
        token = tokens[pair[0]] + tokens[pair[1]]
        new = vocab.special_tokens.get(token.decode("latin-1")) if shares_specials else None
        if new is None:
            new = max(tokens) + 1
            new_ids_left -= 1
        tokens[new] = token
        pretokens = {merge(ids, pair, new): n for ids, n in pretokens.items()}
        learned.append((*pair, new))
    return tuple(learned)


@examples(40)
@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4), texts)
def test_an_extended_tokenizer_encodes_by_the_old_merges_first(old, new, text):
    start = byteweld.train(iter(old), vocab_size=290, min_frequency=1, special_tokens=["<s>"])
    longer = byteweld.train(iter(new), vocab_size=330, start=start)
    found = expanded(longer.vocab, longer.encode_ordinary(text), max(start.vocab.tokens))
    assert found == start.encode_ordinary(text)


def test_extending_works_with_large_counts():
    big = Counts({b"abab": 2**40, b"abc": 2**33, b"xy": 1})
    start = byteweld.train(big, vocab_size=257, recipe="plain")
    longer = byteweld.train(big, vocab_size=260, start=start)
    assert longer.vocab == byteweld.train(big, vocab_size=260, recipe="plain").vocab
    assert as_bytes("ab") == longer.vocab.tokens[256]
