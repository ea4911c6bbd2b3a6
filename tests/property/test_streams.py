"""Streams give the result for the whole, for every text, vocabulary and way of cutting."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from byteweld import PATTERNS, SpecialTokenError, Tokenizer
from tests.helpers.strategies import (
    ENDOFTEXT,
    NASTY,
    any_texts,
    byte_texts,
    examples,
    rich_texts,
    surrogate_texts,
    texts,
    vocabularies,
)
from tests.helpers.streams import streamed

BYTE_RANKS = {bytes([b]): b for b in range(256)}
PLAIN = Tokenizer.from_ranks(BYTE_RANKS, pattern=None)
HANDLERS = ["strict", "replace", "ignore", "backslashreplace", "surrogateescape", "surrogatepass"]
SPECIALS = {ENDOFTEXT: 400, "<|a|>": 401, "<|a|><|b|>": 402, "é漢": 403, "  ": 404, "😀": 405}


def fed(stream, pieces):
    return [value for piece in pieces for value in stream.feed(piece)] + [*stream.finish()]


def pieces_of(text, cuts):
    offsets = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(offsets)]


cuts = st.lists(st.integers(0, 10_000), max_size=12)


# ---------------------------------------------------------------------- decoding


def decoded(stream, pieces):
    try:
        return "".join(fed(stream, pieces))
    except UnicodeDecodeError:
        return None


@examples(300)
@given(byte_texts, st.sampled_from(HANDLERS), cuts)
@example(b"\xed\xa0\x80\xed\xbf\xbf", "surrogatepass", [1, 2, 4, 5])
@example(b"\xed\xa0\xed\xa0", "surrogatepass", [1, 2, 3])
@example(b"\xf0\x9f\x98", "strict", [1, 2])
def test_any_bytes_in_any_pieces_decode_to_the_whole(raw, errors, cuts):
    try:
        whole = PLAIN.decode(list(raw), errors)
    except UnicodeDecodeError:
        whole = None
    for pieces in (pieces_of(list(raw), cuts), list(raw), [list(raw)]):
        assert decoded(PLAIN.decode_stream(errors), pieces) == whole


@examples(100)
@given(vocabularies, any_texts, cuts)
def test_any_ids_in_any_pieces_decode_to_the_whole(vocab, text, cuts):
    tok = Tokenizer(vocab)
    ids = tok.encode(text, allowed_special="all")
    for pieces in (pieces_of(ids, cuts), ids):
        assert decoded(tok.decode_stream(), pieces) == tok.decode(ids)


@examples(200)
@given(byte_texts)
def test_text_is_returned_as_soon_as_it_is_final(raw):
    """Pending bytes are the start of a character that further bytes can complete."""
    stream = PLAIN.decode_stream()
    given_text = ""
    for n, byte in enumerate(raw, start=1):
        given_text += stream.feed(byte)
        certain = raw[: n - len(stream.pending)]
        assert given_text == certain.decode(errors="replace")
        if stream.pending:
            could_become = (
                stream.pending + rest for rest in (b"\x80", b"\x80\x80", b"\x80\x80\x80")
            )
            could_also = (stream.pending + rest for rest in (b"\xa0\x80", b"\x90\x80\x80"))
            assert any(is_character(raw) for raw in (*could_become, *could_also))


def is_character(raw):
    try:
        return len(raw.decode()) == 1
    except UnicodeDecodeError:
        return False


# ---------------------------------------------------------------------- encoding


def check_stream(tok, text, cuts):
    for specials in ({"disallowed_special": ()}, {"allowed_special": "all"}, {}):
        try:
            whole = tok.encode(text, **specials)
        except SpecialTokenError:
            with pytest.raises(SpecialTokenError):
                fed(tok.encode_stream(**specials), pieces_of(text, cuts))
            continue
        for pieces in (pieces_of(text, cuts), pieces_of(text, range(len(text)))):
            assert fed(tok.encode_stream(**specials), pieces) == whole
            assert list(streamed(tok, pieces, block_bytes=1 << 16, **specials)) == whole


@examples(200)
@given(vocabularies, any_texts, cuts)
def test_any_text_in_any_pieces_encodes_to_the_whole(vocab, text, cuts):
    check_stream(Tokenizer(vocab), text, cuts)


@pytest.fixture(scope="module")
def built_in():
    merged = {b"ab": 256, "é".encode(): 257, b" a": 258, b"\n\n": 259, b"  ": 260, b"'s": 261}
    return {
        pattern: Tokenizer.from_ranks(BYTE_RANKS | merged, pattern=pattern, special_tokens=SPECIALS)
        for pattern in PATTERNS
    }


@pytest.mark.parametrize("pattern", PATTERNS)
def test_any_text_in_any_pieces_encodes_to_the_whole_for_every_built_in_pattern(pattern, built_in):
    tok = built_in[pattern]
    literals = st.sampled_from([*SPECIALS, *(s[:-1] for s in SPECIALS), *(s[1:] for s in SPECIALS)])
    mixed = st.lists(st.one_of(literals, rich_texts, texts), max_size=6).map("".join)

    @examples(100)
    @given(st.one_of(mixed, mixed.map(str.encode), byte_texts, surrogate_texts), cuts)
    def streams(text, cuts):
        check_stream(tok, text, cuts)

    streams()
    for text in NASTY:
        if len(text) < 2000:
            check_stream(tok, text, [3, 17, 170])


@examples(150)
@given(st.lists(st.one_of(surrogate_texts, byte_texts), max_size=6))
def test_pieces_of_both_kinds_are_joined_as_bytes(pieces):
    """The halves of a surrogate pair are joined only if they are in consecutive strings."""
    joined = b""
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
        else:
            joined += text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
            joined += piece
            text = ""
    joined += text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    assert fed(PLAIN.encode_stream(), pieces) == PLAIN.encode(joined)


def test_a_stream_waits_for_a_longer_special_token_to_be_complete():
    ranks = {bytes([byte]): byte for byte in range(256)}
    long = "<a>bcdefghijklmnopqrstuvwxyz"
    tok = Tokenizer.from_ranks(ranks, pattern="gpt2", special_tokens={"<a>": 300, long: 301})
    stream = tok.encode_stream(allowed_special="all", disallowed_special={"zz"})
    assert stream.feed(long[:10]) + stream.feed(long[10:]) + stream.finish() == [301]


def test_a_refused_text_that_starts_inside_a_special_token_is_not_cut():
    ranks = {bytes([byte]): byte for byte in range(256)}
    tok = Tokenizer.from_ranks(ranks, pattern="gpt2", special_tokens={"<a>": 300})
    stream = tok.encode_stream(allowed_special="all", disallowed_special={"a>bcd"})
    with pytest.raises(SpecialTokenError):
        (stream.feed("<a>bc"), stream.feed("d"), stream.finish())
