"""A special token that a corpus spells: learned with its id by Hugging Face, by no other recipe."""

from __future__ import annotations

import pytest

import byteweld
from byteweld import RECIPES, Counts, Tokenizer, Vocabulary, formats, reference

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


# ---------------------------------------------------------------------- every recipe, every use

# The built-in names of all recipes, and a word, many times and next to other text.
NAMES = ["<|unk|>", "<|bos|>", "<|eos|>", "<|pad|>", "<|endoftext|>", "user"]
TEXT = "".join(f"{name}{name} {name}s {name}\n" for name in NAMES) * 6
MORE = 60  # merges
HELD = {  # the formats of each recipe
    "modern": {"huggingface", "gpt2", "tiktoken"},
    "from-scratch": {"huggingface", "gpt2", "tiktoken"},
    "ck": {"ck", "huggingface", "gpt2", "tiktoken"},
    "ck-ascii": {"ck", "huggingface"},
    "bpetite": {"bpetite", "huggingface", "gpt2", "tiktoken"},
    "plain": {"huggingface", "gpt2", "tiktoken"},
    "bpe1": {"bpe1", "huggingface", "gpt2", "tiktoken"},
    "rustbpe": {"huggingface", "gpt2", "tiktoken"},
}
CASES = [
    *((name, (), True) for name in HELD),
    *((name, ("user",), split) for name in FREE for split in (True, False)),
    *((name, ("user", *NAMES[4:5]), False) for name in FREE),
]


def recipe_for(name, special_tokens, split):
    changes = {"special_tokens": special_tokens, "split_specials": split} if special_tokens else {}
    return RECIPES[name].replace(min_frequency=1, **changes)


@pytest.mark.parametrize(("name", "special_tokens", "split"), CASES)
def test_every_source_gives_what_the_reference_gives(name, special_tokens, split, tmp_path):
    recipe = recipe_for(name, special_tokens, split)
    size = recipe.minimum_size + MORE
    documents = [TEXT.encode(), TEXT.encode()[::-1]]
    expected = reference.train(documents, size, recipe).vocab
    check(expected)
    for number, document in enumerate(documents):
        (tmp_path / f"{number}.txt").write_bytes(document)
    pieces = reference.count_pretokens(documents, recipe)
    for source in (tmp_path, iter(documents), Counts(dict(pieces))):
        assert byteweld.train(source, vocab_size=size, recipe=recipe).vocab == expected


@pytest.mark.parametrize(("name", "special_tokens", "split"), CASES)
def test_counts_that_spell_special_tokens_give_none(name, special_tokens, split):
    # Counts may hold the text of a special token even if the recipe would have split there.
    recipe = recipe_for(name, special_tokens, split)
    size = recipe.minimum_size + MORE
    words = {f"{name}{end}".encode(): 9 for name in NAMES for end in ("", "s", " x", name)}
    vocab = byteweld.train(Counts(words), vocab_size=size, recipe=recipe).vocab
    check(vocab)
    assert vocab == reference.train(words, size, recipe).vocab
    for text in recipe.all_specials:
        assert f"{text}s".encode() in vocab.ids  # learned from other parts


@pytest.mark.parametrize(("name", "special_tokens", "split"), CASES)
def test_what_was_trained_is_saved_and_loaded_in_every_format_of_the_recipe(
    name, special_tokens, split, tmp_path
):
    recipe = recipe_for(name, special_tokens, split)
    tok = byteweld.train(iter([TEXT]), vocab_size=recipe.minimum_size + MORE, recipe=recipe)
    names = HELD[name] - ({"bpe1"} if special_tokens else set())
    for format in sorted(names):
        path = tmp_path / format
        tok.save(path, format=format)
        loaded = byteweld.load(path, format=format)
        held = formats.held(tok.vocab, path, format)
        assert loaded.vocab == held, format
        assert loaded.encode_ordinary(TEXT) == Tokenizer(held).encode_ordinary(TEXT)
        assert loaded.decode(loaded.encode(TEXT, allowed_special="all")) == TEXT


@pytest.mark.parametrize(("name", "special_tokens", "split"), CASES)
def test_cuts_and_extensions_learn_no_special_token(name, special_tokens, split):
    recipe = recipe_for(name, special_tokens, split)
    first, last = recipe.minimum_size, recipe.minimum_size + MORE
    tok = byteweld.train(iter([TEXT]), vocab_size=last, recipe=recipe)
    for size in range(first, last + 1, 7):
        cut = tok.cut(size)
        assert cut.vocab == byteweld.train(iter([TEXT]), vocab_size=size, recipe=recipe).vocab
        assert not cut.vocab.ambiguous_ids
    start = tok.cut(first + 5)
    words = {word.encode(): 9 for word in NAMES}
    for source in (iter([TEXT]), Counts(words)):
        size = len(start) + MORE
        longer = byteweld.train(source, vocab_size=size, start=start, min_frequency=1)
        check(longer.vocab)
        assert not {text.encode() for text in recipe.all_specials} & longer.vocab.ids.keys()


@pytest.mark.parametrize("name", ["ck", "ck-ascii", "bpetite", "plain"])
def test_a_resumed_training_and_saved_counts_learn_no_built_in_name(name, tmp_path):
    pytest.importorskip("pyarrow")
    recipe = recipe_for(name, ("user",) if name == "plain" else (), False)
    words = " ".join(f"{a}{b}{n}" for a in "abcdefghi" for b in "mnopqrs" for n in NAMES)
    (tmp_path / "a.txt").write_text(words)
    options = {"vocab_size": recipe.minimum_size + 220, "recipe": recipe}

    class Killed(Exception):
        pass

    def progress(event):
        if event.kind == "merge" and event.merges_completed >= 100:
            raise Killed

    expected = byteweld.train(tmp_path / "a.txt", **options)
    check(expected.vocab)
    with pytest.raises(Killed):
        byteweld.train(
            tmp_path / "a.txt", checkpoint=tmp_path / "point", progress=progress, **options
        )
    resumed = byteweld.train(tmp_path / "a.txt", checkpoint=tmp_path / "point", **options)
    assert resumed.vocab == expected.vocab
    byteweld.count(tmp_path / "a.txt", recipe=recipe).save(tmp_path / "counts")
    assert byteweld.train(tmp_path / "counts", **options).vocab == expected.vocab


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
