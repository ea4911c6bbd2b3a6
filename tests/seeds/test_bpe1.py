"""The BPE1 seed on the engine: its recipe, its fixture, and every rejection through `load`."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import byteweld
from byteweld import Counts, FormatError, Tokenizer

THE = Counts({b"the": 3, b"th": 1})

TokenRecord = tuple[int, bytes]
MergeRecord = tuple[int, int, int, int]
TOKENS: list[TokenRecord] = [(260, b"th"), (261, b"the")]
MERGES: list[MergeRecord] = [(116, 104, 260, 0), (260, 101, 261, 1)]


def section(
    tokens: list[TokenRecord] = TOKENS,
    merges: list[MergeRecord] = MERGES,
    *,
    version: int = 1,
    vocab_size: int = 262,
    roles: tuple[int, int, int, int] = (256, 257, 258, 259),
    counts: tuple[int, int] | None = None,
) -> bytes:
    """Write a section by hand, valid or not, from the byte tables of docs/formats/bpe1.md."""
    token_count, merge_count = counts or (len(tokens), len(merges))
    header = struct.pack("<4s8I", b"BPE1", version, vocab_size, *roles, token_count, merge_count)
    records = b"".join(struct.pack("<2I", i, len(token)) + token for i, token in tokens)
    return header + records + b"".join(struct.pack("<4I", *merge) for merge in merges)


def load(root: Path, data: bytes) -> Tokenizer:
    (root / "section.bpe1").write_bytes(data)
    return byteweld.load(root / "section.bpe1")


def train(vocab_size: int = 262) -> Tokenizer:
    return byteweld.train(THE, vocab_size=vocab_size, recipe="bpe1")


FIXTURE = train()


# ---------------------------------------------------------------------- the recipe


def test_special_ids_are_256_to_259_and_merges_begin_at_260():
    tok = train()
    assert [tok.vocab.tokens[byte] for byte in range(256)] == [bytes([b]) for b in range(256)]
    assert dict(tok.vocab.roles) == {"bos": 256, "eos": 257, "pad": 258, "unk": 259}
    assert tok.vocab.merge_ids == ((116, 104, 260), (260, 101, 261))
    assert len(tok) == 262
    with pytest.raises(ValueError, match="at least 260"):
        train(259)
    assert train(260).vocab.merge_ids == ()


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


# ---------------------------------------------------------------------- rejections

# What one check alone notices; tests/unit/formats/test_bpe1.py has the others.
REFUSED = [
    (section(TOKENS[:1], [], counts=(2, 0)) + struct.pack("<2I", 261, 3), 50, "a token of 3 bytes"),
    (section(merges=[MERGES[0], (999, 101, 261, 0)]), 73, "999 is not a token"),
    (section(merges=[MERGES[0], MERGES[0]]), 73, "the same rank 0"),
]


@pytest.mark.parametrize(("data", "offset", "words"), REFUSED, ids=["length", "part", "rank"])
def test_a_wrong_section_is_rejected_with_its_offset(tmp_path, data, offset, words):
    with pytest.raises(FormatError, match=words) as caught:
        load(tmp_path, data)
    assert caught.value.offset == offset


def test_a_section_embedded_in_a_larger_file_is_read_where_it_is(tmp_path):
    container = tmp_path / "model.bin"
    container.write_bytes(b"weights" + section() + b"more weights")
    assert byteweld.load(container, format="bpe1", offset=7, length=89) == FIXTURE
    with pytest.raises(FormatError) as caught:
        byteweld.load(container, format="bpe1", offset=7)
    assert caught.value.offset == 7 + 89


# ---------------------------------------------------------------------- the scaling list


def test_the_fingerprint_is_the_identity_of_a_section_and_sees_every_change(tmp_path):
    listed = load(tmp_path, section([*TOKENS, (116, b"t")]))
    gaps = load(tmp_path, section(merges=[(260, 101, 261, 90), (116, 104, 260, 5)]))
    assert listed.vocab.fingerprint == gaps.vocab.fingerprint == FIXTURE.vocab.fingerprint
    moved = load(tmp_path, section(roles=(257, 256, 258, 259)))
    assert moved.vocab.fingerprint != FIXTURE.vocab.fingerprint
    fewer = load(tmp_path, section(merges=MERGES[:1]))
    assert fewer.vocab.fingerprint != FIXTURE.vocab.fingerprint
