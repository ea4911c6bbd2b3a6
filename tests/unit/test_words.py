"""Words to learn: their forms, which merges can make a token, and that training then does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.training.words import documents_of, find_words, read_words
from tests.helpers.strategies import examples

CORPUS = ["low low low low low lower lower newest newest newest widest widest"]


def trained(pattern="gpt2", **options):
    options = {"recipe": "from-scratch", "special_tokens": ["<|x|>"]} | options
    return byteweld.train(documents=CORPUS, vocab_size=270, pattern=pattern, **options)


def find(tok, *words):
    return find_words(words, tok.vocab, tok.pretokenize)


def learned(tok, found):
    """The tokenizer after training on the words alone."""
    return byteweld.train(
        documents=documents_of(found),
        start=tok,
        vocab_size=len(tok) + 10_000,
        min_frequency=1,
        max_token_bytes=None,
    )


def test_a_list_has_one_word_per_line_each_once():
    lines = ["low\r", "\tlower ", "", "   ", "low", "New York", "größer"]
    assert read_words(lines) == ["low", "lower", "New York", "größer"]


def test_a_word_has_two_forms_with_their_pretokens():
    [word] = find(trained(), "Kubernetes")
    assert (word.alone.text, word.alone.pretokens) == ("Kubernetes", (b"Kubernetes",))
    assert (word.spaced.text, word.spaced.pretokens) == (" Kubernetes", (b" Kubernetes",))
    assert word.problem is None
    assert documents_of([word]) == ["Kubernetes", " Kubernetes"]


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("c++", "split"),
        ("New York", "split"),
        ("don't", "split"),
        ("<|x|>", "special token"),
        ("a<|x|>b", "special token"),
        ("<|x", "split"),
        ("größer", None),
        ("小船", None),
        ("++", None),
    ],
)
def test_what_no_merges_can_make_a_token_is_named(word, problem):
    [found] = find(trained(), word)
    assert found.problem == problem
    assert bool(found.learnable) == (problem is None)


def test_a_byte_without_a_token_is_a_problem():
    tok = byteweld.train(documents=CORPUS, vocab_size=120, recipe="ck-ascii")
    assert [word.problem for word in find(tok, "größer", "lowest")] == ["unknown byte", None]


def test_only_the_forms_that_the_pattern_keeps_whole_are_learned():
    tok = trained("cl100k")
    [word] = find(tok, "123")
    assert [form.is_whole for form in word.forms] == [True, False]
    assert documents_of([word]) == ["123"]
    longer = learned(tok, [word])
    assert (longer.count("123"), longer.count(" 123")) == (1, 2)


@examples(60)
@given(
    words=st.lists(
        st.text(st.sampled_from("lowernst 1+'ßü小<|x>"), min_size=1, max_size=12), max_size=8
    ),
    pattern=st.sampled_from(["gpt2", "cl100k", "o200k", None]),
)
def test_after_training_every_learnable_form_is_a_single_token_and_no_id_moved(words, pattern):
    tok = trained(pattern)
    found = find(tok, *read_words(words))
    if not documents_of(found):
        return
    longer = learned(tok, found)
    for word in found:
        for form in word.forms:
            is_token = len(longer.encode(form.text, allowed_special="all")) == 1
            assert is_token or form not in word.learnable, form
    assert tok.vocab.tokens.items() <= longer.vocab.tokens.items()
    assert longer.vocab.special_tokens == tok.vocab.special_tokens
    assert longer.vocab.merge_ids[: len(tok.vocab.merge_ids)] == tok.vocab.merge_ids
