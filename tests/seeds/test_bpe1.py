"""The BPE1 seed on the engine: its recipe, its fixture, its fingerprints."""

from __future__ import annotations

from pathlib import Path

import byteweld
from byteweld import Counts, Tokenizer
from tests.helpers.sections import MERGES, TOKENS, section

THE = Counts({b"the": 3, b"th": 1})


def load(root: Path, data: bytes) -> Tokenizer:
    (root / "section.bpe1").write_bytes(data)
    return byteweld.load(root / "section.bpe1")


def train(vocab_size: int = 262) -> Tokenizer:
    return byteweld.train(THE, vocab_size=vocab_size, recipe="bpe1")


FIXTURE = train()


# ---------------------------------------------------------------------- the recipe


def test_the_recipe_has_no_pattern_and_its_specials_split_the_corpus():
    tok = byteweld.train(iter(["a b<|eos|>a b"] * 3), vocab_size=300, recipe="bpe1")
    assert tok.vocab.pattern is None
    assert b"a b" in tok.vocab.ids
    assert not [token for token in tok.vocab.ids if b"<" in token and len(token) > 1]


# ---------------------------------------------------------------------- the fixture


def test_the_fixture_encodes_the_as_in_the_seed(tmp_path):
    tok = load(tmp_path, section())
    assert tok.encode("the") == [261]
    assert tok.encode("the", add_bos=True) == [256, 261]
    assert tok.encode("the", add_bos=True, add_eos=True) == [256, 261, 257]
    assert tok == train()
    assert tok.vocab.fingerprint == train().vocab.fingerprint


# ---------------------------------------------------------------------- the scaling list


def test_the_fingerprint_is_the_identity_of_a_section_and_sees_every_change(tmp_path):
    listed = load(tmp_path, section([*TOKENS, (116, b"t")]))
    gaps = load(tmp_path, section(merges=[(260, 101, 261, 90), (116, 104, 260, 5)]))
    assert listed.vocab.fingerprint == gaps.vocab.fingerprint == FIXTURE.vocab.fingerprint
    moved = load(tmp_path, section(roles=(257, 256, 258, 259)))
    assert moved.vocab.fingerprint != FIXTURE.vocab.fingerprint
    fewer = load(tmp_path, section(merges=MERGES[:1]))
    assert fewer.vocab.fingerprint != FIXTURE.vocab.fingerprint
