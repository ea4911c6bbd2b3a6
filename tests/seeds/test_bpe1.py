"""The BPE1 seed on the engine: its recipe, its fixture, and every rejection through `load`."""

from __future__ import annotations

import hashlib
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import byteweld
from byteweld import Counts, FormatError, Tokenizer, UnsupportedError
from byteweld.formats import bpe1
from tests.helpers import growth

FIXTURE_SHA256 = "7ce88cf0a77b625e8425dc16e9eb334568f4bd82dc0bebb15af5a01f363b09b8"
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


def test_ties_go_to_the_smallest_ids_and_every_pair_counts():
    tok = byteweld.train(iter(["cab"]), vocab_size=262, recipe="bpe1")
    assert tok.vocab.merges[0] == (b"a", b"b")


# ---------------------------------------------------------------------- the fixture


def test_the_fixture_has_its_89_bytes_and_digest(tmp_path):
    train().save(tmp_path / "the.bpe1")
    data = (tmp_path / "the.bpe1").read_bytes()
    assert len(data) == 89
    assert hashlib.sha256(data).hexdigest() == FIXTURE_SHA256
    assert data == section()


def test_the_header_has_36_bytes_and_a_merge_record_16(tmp_path):
    sizes = {}
    for merges in range(3):
        train(260 + merges).save(tmp_path / f"{merges}.bpe1")
        sizes[merges] = (tmp_path / f"{merges}.bpe1").stat().st_size
    assert sizes == {0: 36, 1: 36 + (8 + 2) + 16, 2: 36 + (8 + 2) + (8 + 3) + 2 * 16}
    header = struct.unpack_from("<9I", (tmp_path / "2.bpe1").read_bytes())
    # The magic, then version, vocabulary size, four special ids, token count, merge count.
    assert header == (0x31455042, 1, 262, 256, 257, 258, 259, 2, 2)
    data = (tmp_path / "2.bpe1").read_bytes()
    assert struct.unpack_from("<2I2s", data, 36) == (260, 2, b"th")
    assert struct.unpack_from("<2I3s", data, 46) == (261, 3, b"the")
    assert list(struct.iter_unpack("<4I", data[57:])) == MERGES
    assert byteweld.load(tmp_path / "0.bpe1") == train(260)


def test_the_fixture_encodes_the_as_in_the_seed(tmp_path):
    tok = load(tmp_path, section())
    assert tok.encode("the") == [261]
    assert tok.encode("the", add_bos=True) == [256, 261]
    assert tok.encode("the", add_bos=True, add_eos=True) == [256, 261, 257]
    assert tok == train()
    assert tok.vocab.fingerprint == train().vocab.fingerprint


def test_the_lowest_rank_is_merged_first_wherever_its_record_is(tmp_path):
    tokens = [(260, b"ab"), (261, b"bc")]
    first = load(tmp_path, section(tokens, [(97, 98, 260, 7), (98, 99, 261, 3)]))
    assert first.encode("abc") == [97, 261]
    second = load(tmp_path, section(tokens, [(97, 98, 260, 3), (98, 99, 261, 7)]))
    assert second.encode("abc") == [260, 99]
    assert second.encode("ababc") == [260, 260, 99]


def test_merges_repeat_until_none_applies(tmp_path):
    tok = load(tmp_path, section())
    assert tok.encode("ththe the") == [260, 261, 32, 261]
    assert tok.encode("hte") == list(b"hte")


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("é e\u0301 \u212a K ﬁ Straße \ufeff \r\n")
def test_text_becomes_its_utf8_bytes_and_nothing_is_normalized(text):
    ids = FIXTURE.encode(text, disallowed_special=())
    assert b"".join(FIXTURE.decode_tokens_bytes(ids)) == text.encode()
    assert FIXTURE.decode(ids) == text


def test_every_byte_has_an_id_so_nothing_is_unknown():
    data = bytes(range(256))
    assert FIXTURE.encode(data) == list(range(256))
    assert FIXTURE.decode_bytes(FIXTURE.encode(data)) == data


# ---------------------------------------------------------------------- rejections

# From the seed, then from the specification: (file, offset, a word of the message).
REFUSED: dict[str, tuple[bytes, int | None, str]] = {
    "unsupported versions": (section(version=3), 4, "version is 3"),
    "version 0": (section(version=0), 4, "version is 0"),
    "header/vocabulary drift, too large": (section(vocab_size=263), 8, "vocab_size is 263"),
    "header/vocabulary drift, too small": (section(vocab_size=261), 46, "last id is 260"),
    "header/vocabulary drift, too small for the special tokens": (
        section(vocab_size=259),
        8,
        "vocab_size is 259",
    ),
    "duplicate ids": (section([*TOKENS, (260, b"th")]), 57, "id 260"),
    "empty token bytes": (section([(260, b""), (261, b"the")]), 40, "empty token"),
    "out-of-range ids": (section([(260, b"th"), (262, b"the")]), 46, "id 262"),
    "an out-of-range special": (section(roles=(256, 257, 258, 300)), 24, "unk is id 300"),
    "a special among the bytes": (section(roles=(65, 257, 258, 259)), 12, "bos is id 65"),
    "two specials of one id": (section(roles=(256, 256, 258, 259)), 16, "256"),
    "an out-of-range left": (section(merges=[(999, 104, 260, 0), MERGES[1]]), 57, "999"),
    "an out-of-range right": (section(merges=[(116, 999, 260, 0), MERGES[1]]), 57, "999"),
    "missing merge-output tokens": (section(merges=[MERGES[0], (260, 101, 262, 1)]), 73, "262"),
    "an output that is not left + right": (
        section(merges=[(104, 116, 260, 0), MERGES[1]]),
        57,
        "b'ht'",
    ),
    "an output that is a special": (section(merges=[(116, 104, 258, 0), MERGES[1]]), 57, "<|pad|>"),
    "ranks that are not unique": (section(merges=[MERGES[0], (260, 101, 261, 0)]), 73, "rank 0"),
    "malformed lengths, past the end": (
        section()[:50] + struct.pack("<I", 99) + section()[54:],
        50,
        "99 bytes",
    ),
    "malformed lengths, into the merges": (
        section()[:50] + struct.pack("<I", 20) + section()[54:],
        74,
        "merge records need 32 bytes",
    ),
    "a record that ends with its length": (
        section(TOKENS[:1], [], counts=(2, 0)) + struct.pack("<2I", 261, 3),
        50,
        "a token of 3 bytes",
    ),
    "a part that does not exist and a rank that is taken": (
        section(merges=[MERGES[0], (999, 101, 261, 0)]),
        73,
        "999 is not a token",
    ),
    "a record that stands there twice": (
        section(merges=[MERGES[0], MERGES[0]]),
        73,
        "the same rank 0",
    ),
    "a count of tokens too high": (section(counts=(9, 2)), 36, "claims 9 tokens"),
    "a count of merges too high": (section(counts=(2, 3)), 36, "3 merges"),
    "a count of merges too low": (section(counts=(2, 1)), 73, "16 bytes follow"),
    "trailing bytes": (section() + b"\0", 89, "1 bytes follow"),
    "a header cut short": (section()[:20], 20, "inside the header"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_section_is_rejected_with_file_and_offset(tmp_path, name):
    data, offset, words = REFUSED[name]
    with pytest.raises(FormatError) as caught:
        load(tmp_path, data)
    assert words in str(caught.value)
    assert caught.value.offset == offset
    assert caught.value.path == str(tmp_path / "section.bpe1")


def test_a_section_cut_at_any_byte_is_rejected(tmp_path):
    for length in range(4, len(section())):
        with pytest.raises(FormatError):
            load(tmp_path, section()[:length])


def test_another_magic_is_another_format(tmp_path):
    (tmp_path / "x").write_bytes(b"BPE2" + section()[4:])
    with pytest.raises(FormatError):
        byteweld.load(tmp_path / "x")
    with pytest.raises(FormatError, match="BPE1"):
        byteweld.load(tmp_path / "x", format="bpe1")


def test_forty_bytes_that_claim_billions_of_tokens_fail_at_once(tmp_path):
    most = 2**32 - 1
    for counts in ((most, 0), (0, most), (most, most)):
        data = section([], [], vocab_size=most, counts=counts) + bytes(4)
        tracemalloc.start()
        try:
            with pytest.raises(FormatError, match=r"claims .*4294967295"):
                load(tmp_path, data)
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()


def test_a_table_that_also_lists_bytes_and_specials_is_read_if_it_agrees(tmp_path):
    listed = [*TOKENS, (116, b"t"), (256, b"<|bos|>")]
    assert load(tmp_path, section(listed)) == FIXTURE
    with pytest.raises(FormatError, match="always"):
        load(tmp_path, section([*TOKENS, (116, b"u")]))


# ---------------------------------------------------------------------- the scaling list


def test_the_fingerprint_is_the_identity_of_a_section_and_sees_every_change(tmp_path):
    listed = load(tmp_path, section([*TOKENS, (116, b"t")]))
    gaps = load(tmp_path, section(merges=[(260, 101, 261, 90), (116, 104, 260, 5)]))
    assert listed.vocab.fingerprint == gaps.vocab.fingerprint == FIXTURE.vocab.fingerprint
    moved = load(tmp_path, section(roles=(257, 256, 258, 259)))
    assert moved.vocab.fingerprint != FIXTURE.vocab.fingerprint
    fewer = load(tmp_path, section(merges=MERGES[:1]))
    assert fewer.vocab.fingerprint != FIXTURE.vocab.fingerprint


def test_version_2_has_a_checksum_that_finds_every_flipped_bit_and_the_fingerprint():
    section = bpe1.to_bytes(FIXTURE.vocab, version=2)
    assert bpe1.read(section) == FIXTURE.vocab
    assert section[40:72].hex() == FIXTURE.vocab.fingerprint
    for bit in range(8 * len(section)):
        damaged = bytearray(section)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FormatError):
            bpe1.read(damaged)


def test_version_2_holds_a_pattern(tmp_path):
    tok = byteweld.train(THE, vocab_size=262, recipe="bpe1", encode_pattern="gpt2")
    tok.save(tmp_path / "x.bpe1")
    assert byteweld.load(tmp_path / "x.bpe1") == tok
    assert byteweld.load(tmp_path / "x.bpe1").vocab.pattern == byteweld.PATTERNS["gpt2"]


def test_a_section_embedded_in_a_larger_file_is_read_where_it_is(tmp_path):
    container = tmp_path / "model.bin"
    container.write_bytes(b"weights" + section() + b"more weights")
    assert byteweld.load(container, format="bpe1", offset=7, length=89) == FIXTURE
    with container.open("rb") as file:
        assert bpe1.read(file, offset=7, length=89) == FIXTURE.vocab
    assert bpe1.read(section()) == FIXTURE.vocab
    with pytest.raises(FormatError) as caught:
        byteweld.load(container, format="bpe1", offset=7)
    assert caught.value.offset == 7 + 89


def test_four_times_the_text_is_not_sixteen_times_the_work_as_with_repeated_scans(tmp_path):
    prose = growth.prose(1_001_000)
    trained = byteweld.train(documents=[prose[:200_000]], vocab_size=260 + 1000, recipe="bpe1")
    trained.save(tmp_path / "prose.bpe1")
    tok = byteweld.load(tmp_path / "prose.bpe1")
    piece = growth.pieces(prose)
    grown = growth.least_growth(lambda size: tok.encode(piece(size)), 250_000, 1_000_000, limit=9)
    assert grown < 9
    # The seed's own way, simple vectors and repeated scans, at a thousandth of the size.
    ranks = {pair: rank for rank, pair in enumerate(tok.vocab.merges)}
    text = prose[:1600].encode()
    scans = growth.growth(
        lambda size: growth.encode_by_repeated_scans(text[:size], ranks), 400, 1600, repeats=2
    )
    assert scans > 10
    parts = tok.decode_tokens_bytes(tok.encode(text))
    assert growth.encode_by_repeated_scans(text, ranks) == parts


def test_sixteen_times_the_merges_take_no_longer_to_encode():
    prose = growth.prose(1_001_000)
    trained = byteweld.train(documents=[prose[:200_000]], vocab_size=260 + 1600, recipe="bpe1")
    cut = {merges: trained.cut(260 + merges) for merges in (100, 1600)}
    piece = growth.pieces(prose)
    grown = growth.least_growth(
        lambda merges: cut[merges].encode(piece(1_000_000)), 100, 1600, limit=4
    )
    assert grown < 4


def test_a_section_of_a_real_training_loads_equal_and_encodes_the_same(tmp_path):
    corpus = ["the thin thread threads through the three things, naïve café 🦊\n" * 5]
    tok = byteweld.train(iter(corpus), vocab_size=300, recipe="bpe1")
    tok.save(tmp_path / "x.bpe1")
    loaded = byteweld.load(tmp_path / "x.bpe1")
    assert loaded == tok
    assert loaded.encode(corpus[0]) == tok.encode(corpus[0])


def test_what_a_section_cannot_hold_is_rejected_by_name(tmp_path):
    tok = byteweld.train(THE, vocab_size=262, recipe="bpe1", encode_pattern="gpt2")
    with pytest.raises(UnsupportedError, match=r"version 1 .* pattern"):
        tok.save(tmp_path / "x.bpe1", version=1)
    tok = byteweld.train(THE, vocab_size=262, recipe="bpe1", special_tokens=["<|sep|>"])
    with pytest.raises(UnsupportedError, match="special tokens"):
        tok.save(tmp_path / "x.bpe1")
