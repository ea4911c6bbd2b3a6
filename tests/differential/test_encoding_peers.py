"""Ids == the real tiktoken's and the real tokenizers', on vocabularies trained here and saved.

Their own vocabularies, whose answers are frozen in the shared data, are in test_vocabularies.
"""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import byteweld
from byteweld import PATTERNS, Tokenizer
from tests.helpers import frozen
from tests.helpers.strategies import (
    ENDOFTEXT,
    NASTY,
    examples,
    rank_tables,
    rich_texts,
    texts,
)

tiktoken = pytest.importorskip("tiktoken", reason="the real tiktoken is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")

KINDS = list(
    product(["modern", "from-scratch", "rustbpe", "huggingface", "ck"], ["gpt2", "cl100k", "o200k"])
)
SPECIALS = [ENDOFTEXT, "<|a|>"]
LARGE = 20_000  # characters; the answers to such texts are frozen


class Trio:
    """One vocabulary in three libraries."""

    def __init__(self, recipe, pattern, documents, folder):
        options = {} if recipe == "rustbpe" else {"special_tokens": SPECIALS}
        # ck is trained without a pattern and encodes with one.
        options["encode_pattern" if recipe == "ck" else "pattern"] = pattern
        tok = byteweld.train(
            iter(documents), vocab_size=1200, recipe=recipe, min_frequency=1, **options
        )
        self.tok = tok
        path = folder / f"{recipe}-{pattern}.json"
        tok.save(path)
        self.huggingface = tokenizers.Tokenizer.from_file(str(path))
        self.plain_huggingface = tokenizers.Tokenizer.from_file(str(path))
        self.plain_huggingface.encode_special_tokens = True
        self.tiktoken = tiktoken.Encoding(
            path.stem,
            pat_str=tok.vocab.pattern,
            mergeable_ranks=dict(tok.vocab.ids),
            special_tokens=dict(tok.vocab.special_tokens),
        )
        self.loaded = byteweld.load(path)

    def check(self, text):
        special = self.tok.encode(text, allowed_special="all")
        ordinary = self.tok.encode_ordinary(text)
        assert ordinary == self.loaded.encode_ordinary(text)
        if len(text) <= LARGE:
            self.ask_peers(text, special, ordinary)
            return
        question = frozen.digest(self.tok.vocab.fingerprint, text.encode())
        answer = frozen.digest(special, ordinary)
        if not frozen.is_known(question, answer):
            self.ask_peers(text, special, ordinary)
            frozen.freeze(question, answer)

    def ask_peers(self, text, special, ordinary):
        assert special == self.huggingface.encode(text, add_special_tokens=False).ids
        assert ordinary == self.plain_huggingface.encode(text, add_special_tokens=False).ids
        assert special == self.tiktoken.encode(text, allowed_special="all")
        assert ordinary == self.tiktoken.encode_ordinary(text)


def tiktokens_answer(encoding, text):
    """tiktoken's ids, or None where its regex engine runs out of stack: an error or a panic."""
    try:
        return encoding.encode_ordinary(text)
    except BaseException as error:
        if isinstance(error, ValueError) or type(error).__name__ == "PanicException":
            assert "regex" in str(error).lower() or "StackOverflow" in str(error)
            return None
        raise


@pytest.fixture(scope="module")
def trios(data, tmp_path_factory):
    documents = [(data / name).read_text("utf-8") for name in ("prose.txt", "code.txt", "many.txt")]
    folder = tmp_path_factory.mktemp("vocabularies")
    return {kind: Trio(*kind, documents, folder) for kind in KINDS}


@pytest.fixture(scope="module")
def pairs(trios):
    """One per pattern, for tests that do not depend on how the vocabulary was trained."""
    return [trios["modern", pattern] for pattern in ("gpt2", "cl100k", "o200k")]


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_any_text_has_the_peers_ids(kind, trios):
    trio = trios[kind]

    @examples(40)
    @given(texts)
    def same_ids(text):
        trio.check(text)

    same_ids()


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_the_hard_strings_have_the_peers_ids(kind, trios):
    for text in NASTY:
        trios[kind].check(text)


# ---------------------------------------------------------------------- tiktoken's rank files


@examples(80)
@given(rank_tables(), st.lists(st.text("ab é👍", max_size=30), min_size=2, max_size=6))
def test_any_table_of_ranks_gives_tiktokens_ids(ranks, some):
    pattern = r"\s+|\S+"
    theirs = tiktoken.Encoding(
        "ranks", pat_str=pattern, mergeable_ranks=ranks, special_tokens={ENDOFTEXT: 1000}
    )
    ours = Tokenizer.from_ranks(ranks, pattern=pattern, special_tokens={ENDOFTEXT: 1000})
    for text in some:
        assert ours.encode(text) == theirs.encode(text)
        assert ours.encode_ordinary(text.encode()) == theirs.encode_ordinary(text)


# ---------------------------------------------------------------------- tiktoken's methods


def test_encode_with_unstable_is_tiktokens(pairs):
    @examples(150)
    @given(st.one_of(st.text(alphabet="the a'\n n", max_size=12), rich_texts.map(lambda t: t[:12])))
    @example("\n\na")  # the pattern must see the letter after the certain part
    @example(" \n\nthe")
    def same(text):
        for pair in pairs:
            stable, completions = pair.tiktoken.encode_with_unstable(text, allowed_special="all")
            ours = pair.tok.encode_with_unstable(text, allowed_special="all")
            assert ours[0] == stable
            assert sorted(map(tuple, ours[1])) == sorted(map(tuple, completions))

    same()


# ---------------------------------------------------------------------- very long texts


@pytest.mark.timeout(60)
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "ck", None])
@pytest.mark.parametrize(
    "character",
    [
        "a",
        " ",
        *(pytest.param(c, marks=pytest.mark.slow) for c in ("\n", "é", "0", "'", "A", "\u0301")),
    ],
)
def test_one_character_repeated_a_million_times_takes_seconds_and_has_tiktokens_ids(
    character, pattern
):
    ranks = {bytes([byte]): byte for byte in range(256)}
    for n in range(6):
        ranks.setdefault(character.encode() * 2**n, 256 + n)
    ours = Tokenizer.from_ranks(ranks, pattern=pattern)
    text = character * 1_000_000
    ids = ours.encode(text)
    assert ours.count(text) == len(ids)
    assert ours.decode_bytes(ids) == text.encode()
    if pattern is not None:
        theirs = tiktoken.Encoding(
            "run", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={}
        )
        assert ours.encode(text[:20_000]) == theirs.encode(text[:20_000])
        assert tiktokens_answer(theirs, text) in (None, ids)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "pattern",
    ["o200k", *(pytest.param(p, marks=pytest.mark.slow) for p in ("gpt2", "cl100k", None))],
)
def test_one_word_of_ten_megabytes_takes_seconds_and_has_tiktokens_ids(pattern, trios):
    ranks = dict(trios["modern", "o200k"].tok.vocab.ids)
    ours = Tokenizer.from_ranks(ranks, pattern=pattern)
    word = "".join(random.Random(1).choices("etaoinshrdlu", k=10_000_000))
    ids = ours.encode(word)
    assert ours.count(word) == len(ids)
    assert ours.decode(ids) == word
    question = frozen.digest(ours.vocab.fingerprint, word.encode())
    if pattern is not None and not frozen.is_known(question, frozen.digest(ids)):
        theirs = tiktoken.Encoding(
            "word", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={}
        )
        assert tiktokens_answer(theirs, word) in (None, ids)
        frozen.freeze(question, frozen.digest(ids))
