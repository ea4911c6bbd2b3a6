"""Extending a tokenizer: what stays, what is learned, what is refused, what formats can hold."""

from __future__ import annotations

import pytest

import byteweld
from byteweld import AddedToken, Split, Tokenizer, UnsupportedError, Vocabulary

OLD = ["low low low low low lower lower newest newest newest widest widest"]
NEW = ["größer größer größe <|x|> größe Größe newer newer"]
BYTES = {b: bytes([b]) for b in range(256)}


@pytest.fixture
def start():
    return byteweld.train(iter(OLD), vocab_size=270, special_tokens=["<|x|>"], min_frequency=1)


def extend(start, size=280, documents=NEW, **options):
    return byteweld.train(iter(documents), start=start, vocab_size=size, **options)


def test_new_ids_come_after_the_largest_and_special_tokens_stay(start):
    longer = extend(start)
    assert len(longer) == 280
    assert longer.vocab.special_tokens == start.vocab.special_tokens == {"<|x|>": 269}
    assert [merge.new for merge in longer.vocab.merge_ids[13:]] == list(range(270, 280))
    assert longer.encode("<|x|>", allowed_special="all") == [269]
    assert longer.training.merges_learned == longer.training.merges_planned == 10
    assert longer.vocab.tokens[279] == "röße".encode()


def test_a_special_token_of_the_start_is_a_boundary(start):
    longer = extend(start, documents=["a<|x|>" * 50], size=300)
    assert longer.training.merges_learned == 0
    assert longer.vocab == start.vocab
    both = extend(start, documents=["a<|x|>" * 50], size=300, split_specials=False)
    assert b"<|" in both.vocab.ids


def test_the_default_recipe_is_that_of_the_start_if_known(start, tmp_path):
    assert extend(start).training.recipe.name == "modern"
    plain = byteweld.train(iter(OLD), vocab_size=260, recipe="plain")
    assert extend(plain).training.recipe.tie_break == "smallest-bytes"
    assert extend(plain, recipe="modern").vocab.pattern is None
    byteweld.Tokenizer(plain.vocab).save(tmp_path / "t.json")
    assert extend(byteweld.load(tmp_path / "t.json")).training.recipe.name == "modern"
    plain.training.save(tmp_path / "t.training.json", plain.vocab)
    assert extend(byteweld.load(tmp_path / "t.json")).training.recipe.name == "plain"


def test_the_pattern_stays_and_another_is_refused(start):
    gpt2 = byteweld.train(iter(OLD), vocab_size=260, pattern="gpt2")
    assert extend(gpt2, recipe="modern").vocab.pattern == byteweld.PATTERNS["gpt2"]
    for options in (
        {"pattern": "o200k"},
        {"pattern": None},
        {"recipe": byteweld.RECIPES["modern"].replace(pattern="cl100k")},
    ):
        with pytest.raises(ValueError, match="the tokenizer to start from has pattern"):
            extend(gpt2, **options)
    across = extend(start, pattern=None, encode_pattern="o200k", documents=["a b " * 9])
    assert across.vocab.pattern == start.vocab.pattern
    assert b" a " in across.vocab.tokens.values() or b"a b" in across.vocab.tokens.values()


def test_extending_ck_still_trains_without_a_pattern():
    ck = byteweld.train(iter(OLD), vocab_size=265, recipe="ck")
    longer = extend(ck, documents=["a b a b a b"], size=268)
    assert longer.vocab.tokens[266] == b"a b"
    assert longer.vocab.pattern == ck.vocab.pattern == byteweld.PATTERNS["gpt2"]
    assert longer.vocab.roles == ck.vocab.roles


def test_new_special_tokens_are_refused(start):
    with pytest.raises(ValueError, match=r"'<y>' is not in the tokenizer to start from"):
        extend(start, special_tokens=["<y>"])
    assert extend(start, special_tokens=["<|x|>"]) == extend(start)


def test_a_size_below_that_of_the_start_is_refused(start):
    with pytest.raises(ValueError, match="at least 270, the size of the tokenizer to start from"):
        extend(start, 269)
    assert extend(start, 270) == start
    with pytest.raises(ValueError, match="at least 270"):
        extend(start).cut(269)
    assert extend(start).cut(270) == start


@pytest.mark.parametrize("wrong", ["tokenizer.json", 5, b"x"])
def test_the_start_must_be_a_tokenizer(wrong):
    with pytest.raises(TypeError, match=r"start is .*; it must be a Tokenizer"):
        extend(wrong)


def made(tokens, merges=(), **options):
    return Tokenizer(Vocabulary(BYTES | tokens, merges, **options))


def with_ab(**options):
    return made({256: b"ab"}, [(97, 98, 256)], **options)


TWO_WAYS = [(97, 98, 256), (98, 99, 257), (256, 99, 258), (97, 257, 258)]
ABC = {256: b"ab", 257: b"abc"}


@pytest.mark.parametrize(
    ("tok", "words"),
    [
        (made({256: b"abc"}, ranking="ranks"), "it has ranks"),
        (with_ab(normalizer=["nfc"]), "its normalizer"),
        (with_ab(steps=[Split("a", "removed")]), "its steps"),
        (with_ab(steps=["prefix-space"]), "its prefix space"),
        (with_ab(ignore_merges=True), "its ignore_merges"),
        (Tokenizer(Vocabulary({97: b"a"}, alphabet="partial")), "its partial alphabet"),
        (
            made({256: b"ab", 257: b"bc", 258: b"abc"}, TWO_WAYS),
            "merges 2 and 3 both make token 258",
        ),
        (
            made(ABC, [(256, 99, 257), (97, 98, 256)]),
            "merge 0 needs token 256, which merge 1 makes later",
        ),
        (made(ABC, [(256, 99, 257)]), "merge 0 needs token 256, which no merge makes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tokenizer_that_cannot_be_extended_is_refused_with_the_reason(tok, words):
    with pytest.raises(UnsupportedError, match="this tokenizer cannot be extended") as caught:
        extend(tok, 300)
    assert words in str(caught.value)


def test_a_token_that_no_merge_makes_keeps_its_id_when_it_is_learned():
    start = Tokenizer(Vocabulary(BYTES | {256: b"ab", 300: b"abc"}, [(97, 98, 256)]))
    assert start.encode("abc") == [256, 99]
    longer = extend(start, 260, documents=["abcabcd"], min_frequency=1, pattern=None)
    assert longer.encode("abc") == [300]
    assert max(longer.vocab.tokens) == 302  # two new ids after the largest
    assert len(longer) == 260


def test_ids_with_gaps_and_added_token_flags_stay():
    flagged = AddedToken("<f>", 900, lstrip=True)
    vocab = Vocabulary(
        BYTES | {500: b"ab", 900: b"<f>"}, [(97, 98, 500)], added_tokens=[flagged], pattern="gpt2"
    )
    longer = extend(Tokenizer(vocab), 262, documents=["cd cd cd<f>cd"], min_frequency=2)
    assert longer.vocab.added_tokens == (flagged,)
    assert longer.vocab.tokens[901] == b"cd"
    assert longer.encode("  <f>ab", allowed_special="all") == [900, 500]


@pytest.mark.parametrize("format", byteweld.FORMATS)
def test_a_format_holds_an_extended_tokenizer_or_says_why_not(start, tmp_path, format):
    longer = extend(start)
    path = tmp_path / "extended"
    try:
        longer.save(path, format=format)
    except UnsupportedError as error:
        assert len(str(error)) > 30
        return
    assert byteweld.load(path, format=format).vocab == longer.vocab
