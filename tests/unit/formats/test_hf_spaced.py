"""String merges whose tokens contain spaces, as ck-bpe-train writes them in ASCII mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import FormatError, Vocabulary
from tests.helpers.hf_files import added, document
from tests.helpers.strategies import ascii_texts, examples


def write(path: Path, vocab: Vocabulary, /, **model: Any) -> Path:
    """Write a vocabulary of ck-ascii as the real trainer does: merges as strings."""
    plain = {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<|unk|>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": True,
        "vocab": {token.decode(): i for i, token in vocab.tokens.items()},
        "merges": [f"{left.decode()} {right.decode()}" for left, right in vocab.merges],
    }
    specials = [added(text, i) for text, i in vocab.special_tokens.items()]
    value = document(plain | model, added_tokens=specials, pre_tokenizer=None, decoder=None)
    path.write_text(json.dumps(value), "utf-8")
    return path


def trained(*documents: str, size: int = 400) -> Vocabulary:
    return byteweld.train(
        iter(documents), vocab_size=size, recipe="ck-ascii", min_frequency=1
    ).vocab


@pytest.mark.parametrize(
    "document",
    [
        "     x",  # a run of spaces splits in several ways
        "a b c a b c",  # "a b c" may be one of two tokens
        '  <path d="M1 2"/>\n    <path d="M3 4"/>\n',
        "aaaa aaaa aaaa  aaaa",
        " a  a   a    a",
    ],
)
def test_what_was_trained_is_read_back(tmp_path: Path, document: str) -> None:
    vocab = trained(document)
    merges = [left + b" " + right for left, right in vocab.merges]
    assert any(merge.count(b" ") > 1 for merge in merges)
    assert byteweld.load(write(tmp_path / "t.json", vocab)).vocab == vocab


@examples(300)
@given(st.lists(st.one_of(ascii_texts, st.text(" ab\n", max_size=60)), max_size=4))
def test_any_training_is_read_back(tmp_path: Path, documents: list[str]) -> None:
    vocab = trained(*documents, size=140)
    assert byteweld.load(write(tmp_path / "t.json", vocab)).vocab == vocab


def swapped(merges: list[str]) -> list[str]:
    return [merges[1], merges[0], *merges[2:]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        # "a b c" is (a, b c) or (a b, c), and the earlier merges leave neither.
        (lambda merges: ["a b c", *merges[1:]], "merge 0 is 'a b c'; expected the two parts"),
        (lambda merges: ["   ", *merges[:1], *merges[2:]], "merge 1 is "),
        (lambda merges: merges[:-1], "expected the two parts that the earlier merges leave"),
        (swapped, "expected the two parts that the earlier merges leave"),
        (lambda merges: [*merges[:-1], merges[-1] + " "], "expected the two parts"),
        (lambda merges: merges * 100, "merges and 1"),
        (lambda merges: [*merges[:-1], 7], "expected a string with one space"),
    ],
)
def test_other_merges_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    vocab = trained("    b b b", size=107)
    merges = [f"{left.decode()} {right.decode()}" for left, right in vocab.merges]
    path = write(tmp_path / "t.json", vocab, merges=change(merges))
    with pytest.raises(FormatError, match=message) as caught:
        byteweld.load(path)
    assert caught.value.path == str(path)


def test_the_earlier_merges_decide_where_a_run_of_spaces_is_split(tmp_path: Path) -> None:
    # "    " may be " " + "  " or "  " + " "; the first merge goes from left to right.
    path = write(tmp_path / "t.json", trained("     ", size=104))
    assert json.loads(path.read_text())["model"]["merges"] == ["   ", "    "]
    assert byteweld.load(path).vocab.merges == [(b" ", b" "), (b"  ", b" ")]


def test_long_strings_of_spaces_take_linear_time(tmp_path: Path) -> None:
    # Quadratic time would be hours, and the test would end with a timeout.
    vocab = trained("", size=102)
    length = 300_000
    tokens = {token.decode(): i for i, token in vocab.tokens.items()}
    tokens |= {"  ": 102, "a " * length: 103}
    path = write(tmp_path / "t.json", vocab, vocab=tokens, merges=["   ", "a " * length + " "])
    with pytest.raises(FormatError, match="merge 1 is"):
        byteweld.load(path)
