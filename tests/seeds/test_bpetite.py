"""The bpetite seed on the engine: FR-4 to FR-15, its worked example, events and artifact."""

from __future__ import annotations

import hashlib
import os
import random
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import (
    Tokenizer,
    UnsupportedError,
)
from tests.helpers.programs import run_python

# The seed's own string and not our name for it, since FR-4 is about the string itself.
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
END = "<|endoftext|>"
AB_SHA256 = "83e34c1904279229b71aca25d62e8a00d84f3933d83bee909a44b60db9687bc2"


def train(*documents: str | bytes, vocab_size: int, **options: Any) -> Tokenizer:
    return byteweld.train(iter(documents), vocab_size=vocab_size, recipe="bpetite", **options)


def pairs(tok: Tokenizer) -> list[tuple[int, int]]:
    return [(left, right) for left, right, _ in tok.vocab.merge_ids]


def prose(words: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 9))) for _ in range(words))


NO_MERGES = train(vocab_size=256)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))  # no lone surrogates
TRICKY = st.sampled_from(" \t\n\r'sdmtlvreIX09_-!€ñ中🦊\u3000\x85")


# ---------------------------------------------------------------------- the worked example


def test_ab_ab_ab_has_the_counts_tables_and_states_of_the_seed():
    counts = byteweld.count(iter(["ab ab ab"]), recipe="bpetite")
    assert dict(counts.items()) == {b"ab": 1, b" ab": 2}
    whole = train("ab ab ab", vocab_size=258)
    assert (whole.cut(257).encode("ab"), whole.cut(257).encode(" ab")) == ([256], [32, 256])
    assert whole.encode("ab ab ab") == [256, 257, 257]
    steps = byteweld.explain_training(["ab ab ab"], vocab_size=258, recipe="bpetite").steps
    tables = [{(row.left, row.right): row.count for row in step.rows} for step in steps]
    assert tables == [{(97, 98): 3, (32, 97): 2}, {(32, 256): 2}]


# ---------------------------------------------------------------------- FR-4 to FR-7: chunks


def test_fr4_the_pattern_is_the_seeds_to_the_letter():
    assert byteweld.RECIPES["bpetite"].pattern == PATTERN
    assert train("ab", vocab_size=257).vocab.pattern == PATTERN


@given(TEXTS | st.text(TRICKY))
def test_fr4_chunks_are_those_of_the_regex_package(text):
    expected = [chunk.encode() for chunk in regex.findall(PATTERN, text)]
    assert NO_MERGES.pretokenize(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("é", "e\u0301"),  # NFC and NFD
        ("K", "\u212a"),  # the Kelvin sign is K in NFKC
        ("Straße", "STRASSE"),
        ("ab", "AB"),
        ("ab", " ab"),
        ("ab", "ab "),
        ("a  b", "a b"),
        ("a\r\nb", "a\nb"),
        ("ab", "\ufeffab"),
    ],
)
def test_fr6_nothing_is_normalized_folded_or_trimmed(one, other):
    tok = train(one, other, one, other, vocab_size=300)
    assert tok.encode(one) != tok.encode(other)
    assert tok.decode(tok.encode(one)) == one
    assert tok.decode(tok.encode(other)) == other
    assert b"".join(tok.pretokenize(one)) == one.encode()


# ---------------------------------------------------------------------- FR-8 to FR-12: merges


@pytest.mark.parametrize("size", [255, 1, 0, -7])
def test_fr9_a_size_below_256_raises_value_error_in_the_seeds_words(size):
    with pytest.raises(ValueError) as caught:
        train("ab", vocab_size=size)
    assert str(caught.value) == f"vocab_size must be >= 256, got {size}"


def test_fr11_stopping_early_is_a_result_and_the_special_takes_the_smaller_id():
    tok = train("ab", vocab_size=1000)
    assert (tok.training.stop, tok.training.merges_learned) == ("no pairs", 1)
    assert dict(tok.vocab.special_tokens) == {END: 257}
    assert len(tok) == 258
    assert "1 of 744 merges" in str(tok.training)


def test_fr12_the_artifact_bytes_do_not_depend_on_the_hash_seed(tmp_path):
    program = (
        "import sys, byteweld\n"
        "tok = byteweld.train(iter([sys.argv[1]]), vocab_size=400, recipe='bpetite')\n"
        "tok.save(sys.argv[2], format='bpetite')\n"
    )
    made = []
    for seed in ("0", "1", "12345"):
        file = tmp_path / f"{seed}.json"
        done = run_python(
            "-c", program, prose(800), file, env=os.environ | {"PYTHONHASHSEED": seed}
        )
        assert done.returncode == 0, done.stderr
        made.append(file.read_bytes())
    assert made[0] == made[1] == made[2]


# ---------------------------------------------------------------------- FR-13 to FR-15: the special


def test_fr13_the_special_token_has_the_first_id_after_the_merges_and_its_bytes_are_there():
    tok = train(prose(300), vocab_size=290)
    assert tok.vocab.special_tokens[END] == tok.eot_token == 290
    assert tok.decode_bytes([290]) == END.encode()
    assert tok.encode(f"a{END}b", allowed_special="all") == [97, 290, 98]


def test_fr14_there_is_no_other_special_token():
    assert list(train("ab", vocab_size=257).vocab.special_tokens) == [END]
    with pytest.raises(UnsupportedError, match="FR-14"):
        train("ab", vocab_size=257, special_tokens=["<|pad|>"])


def test_fr15_the_special_token_in_the_corpus_is_ordinary_text():
    marked = train(f"ab{END}ab{END}ab", vocab_size=280)
    plain = train("ab ab ab", vocab_size=280)
    assert marked.vocab.merges != plain.vocab.merges
    assert b"endoftext" in marked.vocab.ids
    assert b"<|" in marked.vocab.ids
    counts = byteweld.count(iter([f"ab{END}ab"]), recipe="bpetite")
    assert dict(counts.items()) == {b"ab": 2, b"<|": 1, b"endoftext": 1, b"|>": 1}


# ---------------------------------------------------------------------- the artifact, schema v1


def test_the_commands_train_encode_and_decode_map_one_to_one(tmp_path):
    def command(*arguments: str) -> str:
        done = run_python("-m", "byteweld", *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "corpus.txt").write_text("ab ab ab")
    recipe = ["--recipe", "bpetite", "--vocab-size", "258", "--format", "bpetite"]
    command("train", "corpus.txt", *recipe, "--out", "ab.json")
    digest = hashlib.sha256((tmp_path / "ab.json").read_bytes()).hexdigest()
    assert digest == AB_SHA256
    ids = command("encode", "--tokenizer", "ab.json", "corpus.txt")
    assert ids.split() == ["256", "257", "257"]
    (tmp_path / "ids.txt").write_text(ids)
    assert command("decode", "--tokenizer", "ab.json", "ids.txt") == "ab ab ab"
