"""The engine counts, splits and encodes as `byteweld.reference` does.

Training is in test_training_is_reference.py.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import byteweld
from byteweld import PATTERNS, RECIPES, Tokenizer, Vocabulary, reference
from byteweld._text import utf8
from tests.helpers.strategies import (
    CUSTOM_PATTERNS,
    ENDOFTEXT,
    NASTY,
    any_texts,
    as_bytes,
    ascii_texts,
    ascii_vocabularies,
    byte_texts,
    corpora,
    examples,
    merge_vocabularies,
    rank_tables,
    rank_vocabularies,
    recipes,
    rich_texts,
    surrogate_texts,
    texts,
    tiny_texts,
    vocabularies,
)
from tests.helpers.streams import streamed

SHORT_NASTY = [text for text in NASTY if len(text) < 500]


# ---------------------------------------------------------------------- counting


@examples(150)
@given(st.data())
def test_counts_are_those_of_the_reference(data):
    recipe = data.draw(recipes())
    documents = data.draw(corpora(recipe))
    expected = reference.count_pretokens([as_bytes(d) for d in documents], recipe)
    assert dict(byteweld.count(iter(documents), recipe=recipe).items()) == expected


@pytest.mark.parametrize("name", [*PATTERNS, None])
@pytest.mark.parametrize("special_tokens", [(), (ENDOFTEXT,), (ENDOFTEXT, "<|a|>", "<|a|><|b|>")])
def test_files_longer_than_a_block_are_counted_as_the_reference_does(
    name, special_tokens, tmp_path
):
    # Special tokens at many offsets around powers of two, characters of all lengths, long runs.
    text = "".join(
        f"{ENDOFTEXT}{'x' * (n % 13)} é👍 <|a|><|b|> don't 1234{' ' * (n % 7)}\n"
        for n in range(6000)
    )
    recipe = RECIPES["modern"].replace(pattern=name, special_tokens=special_tokens)
    expected = reference.count_pretokens([text.encode()], recipe)
    file = tmp_path / "long.txt"
    file.write_bytes(text.encode())
    for threads in (1, 3):
        counts = byteweld.count(file, recipe=recipe, num_threads=threads)
        assert dict(counts.items()) == expected


# ---------------------------------------------------------------------- pre-tokens


@pytest.mark.parametrize("pattern", [*PATTERNS.values(), *CUSTOM_PATTERNS, None])
def test_a_pattern_splits_text_as_the_reference_does(pattern):
    tok = Tokenizer(Vocabulary({b: bytes([b]) for b in range(256)}, pattern=pattern))

    @examples(60)
    @given(any_texts)
    @example("")
    def splits_the_same(text):
        pretokens = tok.pretokenize(text)
        assert pretokens == reference.pretokenize(as_bytes(text), pattern)
        assert b"".join(pretokens) == as_bytes(text)

    splits_the_same()


@pytest.mark.parametrize("name", [*PATTERNS, None])
def test_a_known_pattern_splits_the_hard_strings_as_the_reference_does(name):
    pattern = PATTERNS.get(name)
    tok = Tokenizer(Vocabulary({b: bytes([b]) for b in range(256)}, pattern=pattern))
    for text in NASTY:
        assert tok.pretokenize(text) == reference.pretokenize(text.encode(), pattern)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_known_pattern_splits_all_combinations_of_classes_as_the_reference_does(name):
    pattern = PATTERNS[name]
    tok = Tokenizer(Vocabulary({b: bytes([b]) for b in range(256)}, pattern=pattern))
    for a, b, c in product("aBs' \n\r\u00a01!/\u0301漢ǅſ", repeat=3):
        text = f"{a}{b}{c} {c}{a}{b}{b}"
        assert tok.pretokenize(text) == reference.pretokenize(text.encode(), pattern)


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_a_known_pattern_splits_every_unicode_character_as_the_reference_does(name):
    pattern = PATTERNS[name]
    tok = Tokenizer(Vocabulary({b: bytes([b]) for b in range(256)}, pattern=pattern))
    for start in range(0, 0x110000, 0x400):
        characters = [chr(c) for c in range(start, start + 0x400) if not 0xD800 <= c < 0xE000]
        text = "".join(f"a{c}{c}b1{c} {c}\n{c}A{c}'{c}" for c in characters)
        assert tok.pretokenize(text) == reference.pretokenize(text.encode(), pattern), hex(start)


# ---------------------------------------------------------------------- encoding


def check_encoding(vocab, text, tok=None):
    tok = tok or Tokenizer(vocab)
    plain = reference.encode(vocab, text)
    assert tok.encode_ordinary(text) == plain
    assert tok.encode(text, disallowed_special=()) == plain
    for allowed in ("all", {ENDOFTEXT}):
        ids = tok.encode(text, allowed_special=allowed, disallowed_special=())
        assert ids == reference.encode(vocab, text, allowed)
    assert tok.decode_bytes(plain) == reference.decode_bytes(vocab, plain)


KINDS = {
    "merges": merge_vocabularies(ignore_merges=False),
    "ignore_merges": merge_vocabularies(ignore_merges=True),
    "ranks": rank_vocabularies,
    "ascii": ascii_vocabularies(),
}


@pytest.mark.parametrize("kind", KINDS)
@examples(100)
@given(st.data())
def test_any_vocabulary_encodes_as_the_reference_does(kind, data):
    vocab = data.draw(KINDS[kind])
    some = st.one_of(ascii_texts, any_texts) if kind == "ascii" else any_texts
    tok = Tokenizer(vocab)
    for text in data.draw(st.lists(some, min_size=2, max_size=8)):
        check_encoding(vocab, text, tok)


@examples(150)
@given(rank_tables(), st.lists(st.one_of(tiny_texts, byte_texts), min_size=2, max_size=8))
def test_merges_recovered_from_ranks_change_no_id(ranks, strings):
    tok = Tokenizer.from_ranks(ranks, pattern="gpt2")
    by_rank = Vocabulary(
        {rank: token for token, rank in ranks.items()}, pattern=PATTERNS["gpt2"], ranking="ranks"
    )
    for text in strings:
        assert tok.encode(text) == reference.encode(by_rank, text)
        assert tok.encode(text) == reference.encode(tok.vocab, text)


@examples(60)
@given(vocabularies, surrogate_texts)
def test_lone_surrogates_encode_as_the_reference_does(vocab, text):
    check_encoding(vocab, text)
    tok = Tokenizer(vocab)
    ids = tok.encode(text, disallowed_special=())
    assert tok.decode_bytes(ids) == utf8(text)
    assert tok.encode_batch([text, "a"], disallowed_special=()) == [ids, tok.encode_ordinary("a")]
    assert tok.encode_ragged([text], disallowed_special=())[0].tolist() == ids
    assert list(streamed(tok, [text], disallowed_special=())) == ids


@pytest.mark.parametrize("name", RECIPES)
def test_a_trained_vocabulary_encodes_as_the_reference_does(name, data):
    documents = [(data / file).read_text("utf-8") for file in ("prose.txt", "code.txt", "many.txt")]
    if RECIPES[name].alphabet == "ascii":
        documents = [document.encode("ascii", "ignore").decode() for document in documents]
    size = RECIPES[name].minimum_size + 500
    tok = byteweld.train(iter(documents), vocab_size=size, recipe=name, min_frequency=1)
    words = [word for document in documents for word in document.split(" ")]

    @examples(60)
    @given(st.one_of(any_texts, st.lists(st.sampled_from(words), max_size=12).map(" ".join)))
    def encodes_the_same(text):
        check_encoding(tok.vocab, text, tok)

    encodes_the_same()
    for text in SHORT_NASTY:
        check_encoding(tok.vocab, text, tok)


@pytest.mark.parametrize(
    "length", [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 400]
)
@pytest.mark.parametrize("ranking", ["merges", "lookup", "ranks"])
def test_pretokens_of_every_length_encode_as_the_reference_does(length, ranking):
    # Short and long pre-tokens take different code paths; both must agree with the reference.
    counts = {b"ab" * 40: 3, b"aab" * 30: 2, b"b" * 50: 2, b"a" * 64: 1}
    vocab = reference.train(counts, 330, RECIPES["plain"]).vocab
    if ranking == "lookup":
        vocab = Vocabulary(vocab.tokens, vocab.merge_ids, ignore_merges=True)
    elif ranking == "ranks":
        vocab = Vocabulary(vocab.tokens, ranking="ranks")
    tok = Tokenizer(vocab)
    for unit in ("ab", "a", "b", "aab", "abb", "aabab"):
        text = (unit * length)[:length]
        assert tok.encode(text) == reference.encode(vocab, text)
        assert tok.encode(text + "c") == reference.encode(vocab, text + "c")


@examples(80)
@given(vocabularies, st.lists(st.one_of(texts, rich_texts), max_size=3))
def test_special_tokens_are_found_leftmost_and_longest_as_in_the_reference(vocab, strings):
    specials = [ENDOFTEXT, "<|a|>", "<|a|><|b|>", "|>", "a<"]
    start = 500
    tokens = {i: t for i, t in vocab.ordinary()} | {
        start + n: text.encode() for n, text in enumerate(specials)
    }
    vocab = Vocabulary(
        tokens,
        vocab.merge_ids,
        special_tokens={text: start + n for n, text in enumerate(specials)},
        pattern=vocab.pattern,
        ranking=vocab.ranking,
        ignore_merges=vocab.ignore_merges,
    )
    tok = Tokenizer(vocab)
    for text in [*strings, "".join(specials), "a<|a|><|a|><|b|>|>a<|endoftext|>"]:
        for allowed in ["all", {"<|a|>"}, {"<|a|>", "<|a|><|b|>"}, {"|>", "a<"}, set()]:
            ids = tok.encode(text, allowed_special=allowed, disallowed_special=())
            assert ids == reference.encode(vocab, text, allowed)
