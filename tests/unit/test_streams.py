"""Streams: when results arrive, what is pending, and the state after an error."""

from __future__ import annotations

import numpy as np
import pytest

from byteweld import (
    PATTERNS,
    DecodeStream,
    EncodeStream,
    SpecialTokenError,
    Tokenizer,
    UnknownIdError,
)
from byteweld.patterns import is_over_bytes

RANKS = {bytes([byte]): byte for byte in range(256)}
END = "<|endoftext|>"


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.from_ranks(
        RANKS | {b"ab": 256, b" ab": 257}, pattern="gpt2", special_tokens={END: 300}
    )


# ---------------------------------------------------------------------- decoding


def test_strict_decoding_raises_and_the_stream_can_go_on(tok):
    stream = tok.decode_stream("strict")
    assert stream.feed([97, 0xC3]) == "a"
    with pytest.raises(UnicodeDecodeError):
        stream.feed([98])
    assert stream.pending == b"\xc3"
    assert stream.feed(0xA9) == "é"
    stream.feed(0xE6)
    with pytest.raises(UnicodeDecodeError):
        stream.finish()


@pytest.mark.parametrize("unknown", [299, 10**6])
def test_an_unknown_id_is_an_error_and_the_stream_can_go_on(tok, unknown):
    stream = tok.decode_stream()
    stream.feed([0xE6, 0xBC])
    for ids in (unknown, [97, unknown]):
        with pytest.raises(UnknownIdError, match=str(unknown)) as caught:
            stream.feed(ids)
        assert caught.value.id == unknown
    assert stream.pending == b"\xe6\xbc"
    assert stream.feed(0xA2) == "漢"


@pytest.mark.parametrize("ids", ["ab", b"ab", None, 1.5, [1.5], ["a"], {}.items])
def test_what_is_not_an_id_is_a_type_error(tok, ids):
    stream = tok.decode_stream()
    with pytest.raises(TypeError):
        stream.feed(ids)
    with pytest.raises(OverflowError):
        stream.feed(-1)


def test_ids_are_fed_alone_or_in_any_sequence(tok):
    for ids in (256, [256], (256,), np.uint32(256), np.int64(256), np.array([256], np.uint32)):
        assert tok.decode_stream().feed(ids) == "ab"
    assert tok.decode_stream().feed([]) == tok.decode_stream().feed(np.array([], np.uint32)) == ""
    assert tok.decode_stream().feed(300) == END


def test_an_unknown_error_handler_is_refused_at_once(tok):
    with pytest.raises(LookupError, match="nonsense"):
        tok.decode_stream("nonsense")


def test_a_finished_decoder_starts_over(tok):
    stream = tok.decode_stream()
    stream.feed(0xC3)
    assert stream.finish() == "\ufffd"
    assert stream.finish() == ""
    assert stream.feed([0xC3, 0xA9]) == "é"


# ---------------------------------------------------------------------- encoding


def test_a_text_is_refused_when_its_special_token_is_complete(tok):
    stream = tok.encode_stream()
    ids = stream.feed("ab " * 100 + END[:5])
    with pytest.raises(SpecialTokenError):
        ids += stream.feed(END[5:] + " ab" * 100)
    # The refused piece changed nothing.
    ids += stream.feed(" ab") + stream.finish()
    assert ids == tok.encode("ab " * 100 + END[:5] + " ab")


def test_text_that_is_refused_at_the_end_stays_pending(tok):
    stream = tok.encode_stream()
    stream.feed(END)
    for _ in range(2):
        with pytest.raises(SpecialTokenError):
            stream.finish()
    assert stream.pending == END.encode()


@pytest.mark.parametrize("piece", [None, 5, ["a"]])
def test_a_piece_is_a_text(tok, piece):
    stream = tok.encode_stream()
    with pytest.raises(TypeError):
        stream.feed(piece)
    assert stream.feed(bytearray(b"ab")) + stream.finish() == [256]


def test_a_finished_encoder_starts_over(tok):
    stream = tok.encode_stream()
    stream.feed("a\ud83d")
    assert stream.finish() == tok.encode("a\ufffd")
    assert stream.finish() == []
    assert stream.feed("ab") + stream.finish() == [256]


def test_special_arguments_are_checked_at_once(tok):
    with pytest.raises(TypeError):
        tok.encode_stream(allowed_special=END)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    "text",
    [
        "The notebook says: hot, then hold. ",
        "x = 3 + y;\n",
        "1234 ",
        "漢字かな交じり文。",
        "ёлка и ",
    ],
    ids=["prose", "code", "digits", "japanese", "russian"],
)
def test_memory_stays_bounded_for_every_built_in_pattern(pattern, text):
    if is_over_bytes(pattern) and not any(map(str.isascii, text)):
        text += " "  # to this pattern, characters outside ASCII are one run, and one pre-token
    tok = Tokenizer.from_ranks(RANKS, pattern=pattern, special_tokens={END: 300})
    stream = tok.encode_stream()
    most = given = 0
    for _ in range(3000):
        given += len(stream.feed(text))
        most = max(most, len(stream.pending))
    assert most < 2000
    assert given + len(stream.finish()) == 3000 * len(text.encode())


@pytest.mark.parametrize(("piece", "pending"), [("a", 100_000), ("ab", 1000)])
def test_finding_final_ids_takes_linear_time_whatever_is_pending(piece, pending):
    looked: list[int] = []

    def certain_end(text: bytes) -> int:
        looked.append(len(text))
        return max(0, len(text) - pending)

    stream = EncodeStream(list, certain_end)
    given = sum(len(stream.feed(piece)) for _ in range(100_000 // len(piece)))
    assert given + len(stream.finish()) == 100_000
    assert sum(looked) < 3 * 100_000


def test_decoding_takes_constant_time_per_id(tok):
    decoded: list[int] = []

    def decode_bytes(ids):
        decoded.append(len(ids))
        return tok.decode_bytes(ids)

    stream = DecodeStream(decode_bytes)
    for _ in range(1000):
        stream.feed(0xF0)
        assert len(stream.pending) <= 3
    assert decoded == [1] * 1000
