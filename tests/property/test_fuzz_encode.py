"""A few seconds of the encoding fuzzer, and tests that it detects, shrinks and reports mismatches.

`make fuzz-encode` is the long run.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from byteweld import PATTERNS, Tokenizer
from byteweld.reference.encode import utf8
from tests.fuzz import __main__ as program
from tests.fuzz import oracles, paths, rounds, subjects, texts
from tests.fuzz.rounds import Rounds, shrink

TRAINED = ["gpt2", "cl100k", "o200k", "whole"]
MADE = ["pairs-cl100k", "ranks-0", "merges-1", "lookup-2", "ascii", "shared"]


@pytest.fixture
def few_words(monkeypatch):
    """Do not fill the caches, which would take most of the time in a short run."""
    monkeypatch.setattr(rounds, "FLOOD_WORDS", {15: 1000, 31: 1000})


def first_mismatch(subject, number):
    made = Rounds(subject, texts.own_samples(), seed=3)
    return next(filter(None, islice(made.run(), number)), None)


# ---------------------------------------------------------------------- no mismatch


@pytest.mark.parametrize("name", [*TRAINED, *MADE])
def test_a_small_vocabulary_agrees_with_its_oracles_on_every_path(
    name, few_words, capsys, tmp_path
):
    given = ["--rounds", "2", "--seed", "5", "--vocab", f"small/{name}", "--shared"]
    assert program.main([*given, str(tmp_path / "none")]) == 0, capsys.readouterr().out
    out = capsys.readouterr().out
    assert "skipped: real vocabularies and corpora" in out
    assert ", 0 mismatches, " in out


def test_full_caches_give_the_same_ids():
    subject = subjects.trained("cl100k")
    subject.others = {}
    assert first_mismatch(subject, 1) is None


@pytest.mark.parametrize("name", ["r50k_base", "hf/qwen2_5"])
def test_a_real_vocabulary_agrees_with_its_oracles_on_every_path(name, shared, few_words, capsys):
    given = ["--rounds", "1", "--seed", "5", "--vocab", name, "--shared", str(shared)]
    assert program.main(given) == 0, capsys.readouterr().out


def test_every_shared_vocabulary_with_an_oracle_is_a_subject(shared):
    assert len(subjects.real(shared)) > 30
    assert set(subjects.named(["hf/v_*"], subjects.real(shared))) >= {"hf/v_no_regex"}


# ---------------------------------------------------------------------- mismatches


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("llama3", "cl100k"), ("nanochat", "cl100k"), ("qwen2", "qwen3_5"), ("o200k", "tekken")],
)
def test_a_nearly_correct_pattern_is_a_mismatch(ours, theirs, few_words):
    right = subjects.pairs(theirs)
    wrong = subjects.with_pattern(right.vocab, PATTERNS[ours])
    subject = subjects.Subject("wrong", wrong, [oracles.ReferenceOracle(right.vocab)])
    mismatch = first_mismatch(subject, 4)
    assert mismatch is not None and mismatch.repeats
    assert len(mismatch.text) <= 8  # shrunk from hundreds of characters
    assert mismatch.found != mismatch.expected


@pytest.mark.parametrize("name", paths.ONE)
def test_each_path_for_one_text_can_fail(name):
    subject = subjects.trained("gpt2")
    tok = Tokenizer(subject.vocab)
    text = "the lower the better"
    right = tok.encode_ordinary(text)
    asked = paths.Asked(subject, tok, text, right, frozenset(), 0.5)
    found, expected = paths.ONE[name](asked)
    assert found == expected
    wrong = [right[:-2], [5, *right[1:]]]
    again = [asked._replace(ids=ids, seed=seed) for ids in wrong for seed in range(9)]
    assert any(one != other for one, other in map(paths.ONE[name], again))


@pytest.mark.parametrize("name", paths.MANY)
def test_each_path_for_a_batch_can_fail(name):
    subject = subjects.trained("gpt2")
    tok = Tokenizer(subject.vocab)
    batch = ["the lower", "", "the better"]
    lists = [tok.encode_ordinary(text) for text in batch]
    found, expected = paths.MANY[name](paths.AskedMany(tok, batch, lists, frozenset()))
    assert found == expected
    wrong = [lists[0], [], lists[2][:-1]]
    found, expected = paths.MANY[name](paths.AskedMany(tok, batch, wrong, frozenset()))
    assert found != expected


def test_a_disagreement_between_oracles_is_reported_with_the_smallest_text(few_words):
    class Liar:
        name = "liar"

        def ids(self, text, allowed):
            ids = honest.ids(text, allowed)
            return ids[:-1] if ids and "ſ".encode() in utf8(text) else ids

    subject = subjects.trained("cl100k")
    honest = oracles.ReferenceOracle(subject.vocab)
    mismatch = first_mismatch(replace(subject, oracles=[honest, Liar()]), 8)
    assert mismatch.case.path == "against liar"
    assert mismatch.text in ("ſ", "ſ".encode())


def test_a_mismatch_is_printed_with_everything_needed_to_reproduce_it(
    monkeypatch, few_words, capsys
):
    def wrong(asked):
        return len(asked.ids) + (
            asked.text.count("\u0301") if isinstance(asked.text, str) else 0
        ), len(asked.ids)

    monkeypatch.setitem(paths.ONE, "count", wrong)
    status = program.main(["--rounds", "9", "--seed", "2", "--vocab", "small/gpt2"])
    out = capsys.readouterr().out
    assert status == 1
    assert "MISMATCH in count, state cold" in out
    assert r"text: '\u0301'" in out
    assert "vocabulary: small/gpt2" in out
    assert 'reproduce: make fuzz-encode ARGS="--seed 2 --vocab small/gpt2 --rounds ' in out
    assert ", 1 mismatches, " in out


def test_a_panic_is_a_mismatch(monkeypatch, few_words):
    def broken(asked):
        if "1" in str(asked.text):
            raise IndexError("out of range")
        return None

    monkeypatch.setitem(paths.ONE, "count", broken)
    mismatch = first_mismatch(subjects.random_ranks(1), 3)
    assert mismatch.found == "IndexError('out of range')"
    assert mismatch.text in ("1", b"1")


def test_an_unknown_name_is_a_usage_error(capsys):
    assert program.main(["--vocab", "no such vocabulary"]) == 2
    assert "no vocabulary matches" in capsys.readouterr().err


# ---------------------------------------------------------------------- drawing texts


def test_the_same_seed_draws_the_same_texts_and_another_seed_others():
    made = texts.Texts(texts.own_samples(), tokens=[b"ab"], specials=["<|a|>"], max_bytes=10**6)
    drawn = [made.draw(Random(seed), 0) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_all_kinds_of_hard_texts_are_drawn():
    made = texts.Texts(texts.own_samples(), tokens=[b"ab"], specials=["<|a|>"], max_bytes=10**6)
    drawn = [text for turn in range(40) for text in made.draw(Random(turn), turn)]
    raw = [utf8(text) for text in drawn]
    everything = b"".join(raw)
    for hard in ("'ſ", "\u212a", "\u3000", "\u180e", "<|a|>", "\r\n", "漢", "\0"):
        assert hard.encode() in everything, hard
    assert any(texts.as_str(text) is None for text in drawn), "invalid UTF-8"
    assert any(isinstance(text, str) and "\ud83d" in text for text in drawn), "lone surrogates"
    assert {len(one) % 64 for one in raw} == set(range(64))
    assert any(len(one) >= texts.LARGE_BYTES for one in raw), "large enough for two threads"


def test_the_sweep_covers_every_code_point():
    seen = {c for turn in range(0x20000 // 512) for c in texts.sweep(turn, 512)}
    assert {chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000} <= seen
    assert texts.sweep(0x110000 // 512, 512)[:20] != texts.sweep(0, 512)[:20]  # in other contexts


def test_a_failing_text_is_shrunk_as_far_as_possible():
    assert shrink("some words with an x in them", lambda text: "x" in text) == "x"
    assert shrink(b"0123456789" * 50, lambda raw: raw.count(b"7") >= 3) == b"777"
    assert shrink(list("abcdef"), lambda items: {"b", "e"} <= set(items)) == ["b", "e"]
