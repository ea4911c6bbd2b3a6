"""Laws of character offsets and limits, on text where tokens end inside characters."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from byteweld import Tokenizer
from tests.helpers.strategies import (
    NASTY,
    examples,
    rich_texts,
    surrogate_texts,
    texts,
    vocabularies,
)

BYTE_RANKS = {bytes([b]): b for b in range(256)}
# Tokens that end and start inside characters: parts of é, 漢, 😀 and of their neighbors.
TORN = [
    *[b"\xa9\xc3", b"\x9f\x98", b" \xf0\x9f", b"\x80 ", b"\xa2\xe6", b"\xbc\xa2", b"\xe6\xbc"],
    *[b"\xef\xbf", b"\x98\x80", b"\xf0\x9f\x98\x80\xf0", b"a\xc3", b"\xc3\xa9", b"\xbf\xbd\xef"],
]
torn = Tokenizer.from_ranks(
    BYTE_RANKS | {token: 256 + n for n, token in enumerate(TORN)}, pattern=None
)
torn_texts = st.text(st.sampled_from("a é漢😀\ufffd"), max_size=20)


def characters_of(text):
    """(start, end) in bytes of each character of a str, by hand; a surrogate pair is two."""
    ranges = []
    at = n = 0
    while n < len(text):
        is_pair = "\ud800" <= text[n] <= "\udbff" and "\udc00" <= text[n + 1 : n + 2] <= "\udfff"
        size = 4 if is_pair else 3 if "\ud800" <= text[n] <= "\udfff" else len(text[n].encode())
        ranges += [(at, at + size)] * (2 if is_pair else 1)
        at += size
        n += 2 if is_pair else 1
    return ranges


def check_offsets(tok, text):
    ids, in_bytes = tok.encode_with_offsets(text, disallowed_special=())
    same_ids, offsets = tok.encode_with_offsets(text, unit="characters", disallowed_special=())
    assert same_ids == ids
    characters = characters_of(text)
    expected = [
        [n for n, (start, end) in enumerate(characters) if start < last and first < end]
        for first, last in in_bytes
    ]
    assert offsets == [(held[0], held[-1] + 1) for held in expected]


def check_limits(tok, text, limits):
    ids, in_bytes = tok.encode_with_offsets(text, disallowed_special=())
    characters = characters_of(text)
    assert tok.count(text, disallowed_special=()) == len(ids)
    for limit in limits:
        until = tok.count(text, limit=limit, disallowed_special=())
        assert until == (len(ids) if len(ids) <= limit else None)
        kept = tok.truncate(text, limit, disallowed_special=())
        covered = in_bytes[min(limit, len(ids)) - 1][1] if limit and ids else 0
        whole = sum(end <= covered for _, end in characters)
        assert kept == (text if len(ids) <= limit else text[:whole])


@examples(300)
@given(st.one_of(torn_texts, texts, surrogate_texts))
@example("\ud83d\ude00" * 5 + "\ud83d")
def test_character_offsets_are_the_characters_that_hold_a_tokens_bytes(text):
    check_offsets(torn, text)


@examples(150)
@given(vocabularies, st.one_of(texts, surrogate_texts))
def test_character_offsets_hold_for_any_vocabulary(vocab, text):
    check_offsets(Tokenizer(vocab), text)


@examples(200)
@given(st.one_of(torn_texts, surrogate_texts, rich_texts))
def test_limits_are_exact_at_every_token(text):
    check_limits(torn, text, range(torn.count(text) + 2))


@pytest.mark.parametrize("text", [text for text in NASTY if len(text) <= 400], ids=ascii)
def test_limits_are_exact_at_every_token_of_the_hard_strings(text):
    check_offsets(torn, text)
    check_limits(torn, text, range(torn.count(text) + 2))


def test_character_offsets_of_a_long_text_take_linear_time():
    text = "é漢😀 \ud83d\ude00" * 50_000
    ids, offsets = torn.encode_with_offsets(text, unit="characters")
    assert len(ids) == len(offsets) and offsets[0][0] == 0 and offsets[-1][1] == len(text)
