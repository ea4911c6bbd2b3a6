"""A few seconds of the encoding fuzzer, and tests that it detects, shrinks and reports mismatches.

`make fuzz-encode` is the long run.
"""

from __future__ import annotations

from itertools import islice

import pytest

from byteweld import PATTERNS
from tests.fuzz import __main__ as program
from tests.fuzz import oracles, rounds, subjects, texts
from tests.fuzz.rounds import Rounds
from tests.helpers.vocabularies import with_traits

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
    assert " 0 findings" in out


def test_full_caches_give_the_same_ids():
    subject = subjects.trained("cl100k")
    subject.others = {}
    assert first_mismatch(subject, 1) is None


@pytest.mark.parametrize("name", ["r50k_base", "hf/qwen2_5"])
def test_a_real_vocabulary_agrees_with_its_oracles_on_every_path(name, shared, few_words, capsys):
    given = ["--rounds", "1", "--seed", "5", "--vocab", name, "--shared", str(shared)]
    assert program.main(given) == 0, capsys.readouterr().out


# ---------------------------------------------------------------------- mismatches


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("llama3", "cl100k"), ("nanochat", "cl100k"), ("qwen2", "qwen3_5"), ("o200k", "tekken")],
)
def test_a_nearly_correct_pattern_is_a_mismatch(ours, theirs, few_words):
    right = subjects.pairs(theirs)
    wrong = with_traits(right.vocab, pattern=PATTERNS[ours])
    subject = subjects.Subject("wrong", wrong, [oracles.ReferenceOracle(right.vocab)])
    mismatch = first_mismatch(subject, 4)
    assert mismatch is not None and mismatch.repeats
    assert len(mismatch.text) <= 8  # shrunk from hundreds of characters
    assert mismatch.found != mismatch.expected
