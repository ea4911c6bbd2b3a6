"""Evaluation: rates, scripts, unreachable tokens and curves match the tokenizer."""

from __future__ import annotations

import unicodedata

import pytest

import byteweld
from byteweld.evaluation import (
    byte_counts,
    lengths,
    script_of,
    scripts,
    training_curve,
    unreachable,
)
from byteweld.samples import SENTENCES

CORPUS = "low low low lower lowest newest newest widest 12 12 12\n" * 4


@pytest.fixture(scope="module")
def tok() -> byteweld.Tokenizer:
    return byteweld.train(iter([CORPUS]), vocab_size=300, recipe="from-scratch")


@pytest.mark.parametrize(
    ("token", "script"),
    [
        (b" the", "latin"),
        ("ый".encode(), "cyrillic"),
        ("中".encode(), "han"),
        ("ひ".encode(), "hiragana"),
        ("한".encode(), "hangul"),
        (" ال".encode(), "arabic"),
        (b"2024", "digits"),
        (b" \t\n", "space"),
        (b"==", "symbols"),
        (b" =", "symbols"),
        (b"\x00", "controls"),
        ("€".encode()[:2], "part of a character"),
        (b"x1", "latin"),
    ],
)
def test_a_token_has_the_script_of_its_first_letter(token: bytes, script: str):
    assert script_of(token) == script


def test_every_character_has_a_script():
    for code in range(0, 0x3000, 7):
        assert script_of(chr(code).encode("utf-8", "surrogatepass"))


def test_lengths_and_scripts_count_every_token_once(tok):
    tokens = list(tok.vocab.tokens.values())
    assert sum(count for _, count in lengths(tokens)) == len(tokens)
    assert sum(count for _, count in scripts(tokens)) == len(tokens)
    assert lengths([b"a", b"bc", b"d"]) == [(1, 2), (2, 1)]
    assert scripts([b"a", b"b", b"1"]) == [("latin", 2), ("digits", 1)]


def test_unreachable_tokens_have_a_reason():
    tok = byteweld.train(iter([CORPUS]), vocab_size=320, recipe="ck")
    found = unreachable(tok)
    assert list(found) == list(unreachable(tok))
    for token_id, reason in found.items():
        pieces = tok.pretokenize(tok.vocab.tokens[token_id])
        assert (reason == "cut") == (len(pieces) > 1)


def test_a_token_preempted_by_other_merges_is_never_merged():
    tokens = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc", 257: b"ab", 258: b"abc"}
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    tok = byteweld.Tokenizer.from_merges(tokens, merges)
    assert unreachable(tok) == {258: "never merged"}


def test_the_curve_runs_from_one_byte_per_token_to_the_trainings_rate(tok):
    curve = training_curve(tok.training, points=10)
    assert curve[0] == (0, tok.training.first_tokens, 1.0)
    assert curve[-1].merges == tok.training.merges_learned
    assert curve[-1].bytes_per_token == tok.training.bytes_per_token
    assert [point.merges for point in curve] == sorted({point.merges for point in curve})


def test_bytes_are_counted():
    assert byte_counts(b"")[0] == 0
    assert sum(byte_counts(bytes(range(256)) * 3)) == 768


def test_the_sample_has_at_least_twenty_languages_all_different_and_composed():
    assert len(SENTENCES) >= 20
    assert len(set(SENTENCES.values())) == len(SENTENCES)
    for name, text in SENTENCES.items():
        assert unicodedata.is_normalized("NFC", text), name
        assert "\n" not in text
