"""A special token that a corpus spells: learned with its id by Hugging Face, by no other recipe."""

from __future__ import annotations

import pytest

import byteweld
from byteweld import RECIPES, Counts, Tokenizer, Vocabulary, reference

WORDS = {b"user": 50, b"users": 9, b" user": 8, b"use": 3, b"<|bos|>": 7, b"ab": 6}
SPECIALS = ["user", "ab"]
# bpetite and rustbpe take no special tokens; Hugging Face shares ids.
FREE = [name for name in RECIPES if name not in ("bpetite", "rustbpe", "huggingface")]


def recipe_of(name):
    return RECIPES[name].replace(special_tokens=SPECIALS, split_specials=False, min_frequency=1)


def check(vocab):
    """No ordinary token is spelled as a special one, so the two never share an id."""
    texts = {text.encode() for text in vocab.special_tokens}
    learned = {vocab.tokens[new] for _, _, new in vocab.merge_ids}
    assert learned and not learned & texts
    assert not vocab.ambiguous_ids


@pytest.mark.parametrize("name", FREE)
def test_a_pair_that_spells_a_special_token_is_never_merged(name):
    recipe = recipe_of(name)
    size = recipe.minimum_size + 12
    expected = reference.train(WORDS, size, recipe).vocab
    check(expected)
    documents = [word.decode() for word, count in WORDS.items() for _ in range(count)]
    for source in (Counts(WORDS), iter(documents)):
        vocab = byteweld.train(source, vocab_size=size, recipe=recipe).vocab
        check(vocab)
    assert byteweld.train(Counts(WORDS), vocab_size=size, recipe=recipe).vocab == expected
    # Longer tokens are still learned, from other parts.
    assert b"users" in expected.ids and b"user" not in expected.ids


@pytest.mark.parametrize("name", FREE)
def test_what_was_trained_on_its_special_tokens_can_be_saved(name, tmp_path):
    recipe = recipe_of(name)
    tok = byteweld.train(Counts(WORDS), vocab_size=recipe.minimum_size + 12, recipe=recipe)
    tok.save(tmp_path / "tokenizer.json")
    assert byteweld.load(tmp_path / "tokenizer.json").vocab == tok.vocab


def test_hugging_face_learns_a_special_token_with_its_id():
    recipe = recipe_of("huggingface")
    vocab = byteweld.train(Counts(WORDS), vocab_size=recipe.minimum_size + 12, recipe=recipe).vocab
    assert vocab.ambiguous_ids == {vocab.special_tokens["user"], vocab.special_tokens["ab"]}
    assert Tokenizer(vocab).encode_ordinary("user") == [vocab.special_tokens["user"]]


def test_special_tokens_after_the_merges_are_not_learned_in_hugging_faces_alphabet():
    recipe = recipe_of("huggingface").replace(special_ids="last")
    check(byteweld.train(Counts(WORDS), vocab_size=270, recipe=recipe).vocab)


def test_an_extended_tokenizer_does_not_learn_its_special_tokens():
    start = Tokenizer(
        Vocabulary(
            {b: bytes([b]) for b in range(256)} | {256: b"us", 257: b"user"},
            [(117, 115, 256)],
            special_tokens={"user": 257},
        )
    )
    longer = byteweld.train(
        Counts(WORDS), vocab_size=266, recipe="plain", start=start, split_specials=False
    )
    check(longer.vocab)
    assert b"users" in longer.vocab.ids


def test_a_resumed_training_does_not_learn_its_special_tokens(tmp_path):
    pytest.importorskip("pyarrow")
    words = " ".join(f"{a}{b}" for a in "abcdefghijkl" for b in "mnopqrstuvwx")
    (tmp_path / "a.txt").write_text(f"{words} user user users {words}")

    class Killed(Exception):
        pass

    def progress(event):
        if event.kind == "merge" and event.merges_completed >= 100:
            raise Killed

    def train(**more):
        return byteweld.train(
            tmp_path / "a.txt",
            vocab_size=420,
            min_frequency=1,
            special_tokens=["user", "am", "lx"],
            split_specials=False,
            **more,
        )

    with pytest.raises(Killed):
        train(checkpoint=tmp_path / "point", progress=progress)
    resumed = train(checkpoint=tmp_path / "point")
    assert resumed.vocab == train().vocab
    check(resumed.vocab)
