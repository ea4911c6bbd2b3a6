"""BPE1: the golden fixture and its page, round trips, every refusal, and seeded mutations."""

from __future__ import annotations

import hashlib
import random
import re
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld import formats
from byteweld.errors import FormatError, UnsupportedError
from byteweld.formats import bpe1
from byteweld.vocab import Vocabulary
from tests.helpers.strategies import examples

GOLDEN_SHA256 = "7ce88cf0a77b625e8425dc16e9eb334568f4bd82dc0bebb15af5a01f363b09b8"
PAGE = Path(__file__).parents[3] / "docs" / "formats" / "bpe1.md"

BYTES = {byte: bytes([byte]) for byte in range(256)}
ROLES = {"bos": 256, "eos": 257, "pad": 258, "unk": 259}
SPECIALS = {f"<|{role}|>": token_id for role, token_id in ROLES.items()}
SPECIAL_BYTES = {token_id: text.encode() for text, token_id in SPECIALS.items()}

Token = tuple[int, bytes]
MergeRecord = tuple[int, int, int, int]


def make(
    tokens: dict[int, bytes], merges: list[tuple[int, int, int]], **changes: Any
) -> Vocabulary:
    options: dict[str, Any] = {"special_tokens": SPECIALS, "roles": ROLES}
    return Vocabulary(BYTES | SPECIAL_BYTES | tokens, merges, **(options | changes))


THE = make({260: b"th", 261: b"the"}, [(116, 104, 260), (260, 101, 261)])
TOKENS: list[Token] = [(260, b"th"), (261, b"the")]
MERGES: list[MergeRecord] = [(116, 104, 260, 0), (260, 101, 261, 1)]


def section(
    tokens: list[Token] = TOKENS,
    merges: list[MergeRecord] = MERGES,
    *,
    magic: bytes = b"BPE1",
    version: int = 1,
    vocab_size: int = 262,
    roles: tuple[int, int, int, int] = (256, 257, 258, 259),
    token_count: int | None = None,
    merge_count: int | None = None,
) -> bytes:
    """Return a section, valid or not."""
    count = len(tokens) if token_count is None else token_count
    merge_total = len(merges) if merge_count is None else merge_count
    header = struct.pack("<4s8I", magic, version, vocab_size, *roles, count, merge_total)
    records = b"".join(struct.pack("<2I", i, len(token)) + token for i, token in tokens)
    return header + records + b"".join(struct.pack("<4I", *merge) for merge in merges)


def load(tmp_path: Path, data: bytes) -> Vocabulary:
    path = tmp_path / "section.bpe1"
    path.write_bytes(data)
    return formats.load(path, format="bpe1")


# ---------------------------------------------------------------------- golden and round trips


def test_the_fixture_has_its_golden_bytes(tmp_path: Path) -> None:
    formats.save(THE, tmp_path / "the.bpe1", format="bpe1")
    data = (tmp_path / "the.bpe1").read_bytes()
    assert len(data) == 89
    assert hashlib.sha256(data).hexdigest() == GOLDEN_SHA256
    assert data == section()


def test_the_page_shows_the_fixture() -> None:
    dump = PAGE.read_text(encoding="utf-8").split("<!-- fixture -->")[1]
    dump = dump.split("<!-- fixture 2 -->")[0]
    rows = re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", dump, flags=re.MULTILINE)
    assert bytes.fromhex("".join(rows)) == section()
    assert GOLDEN_SHA256 in PAGE.read_text(encoding="utf-8")


def test_the_fixture_loads_as_the_vocabulary_that_made_it(tmp_path: Path) -> None:
    vocab = load(tmp_path, section())
    assert vocab == THE
    assert vocab.fingerprint == THE.fingerprint
    assert len(vocab) == 262
    assert vocab.merges == [(b"t", b"h"), (b"th", b"e")]
    assert dict(vocab.roles) == ROLES
    assert vocab.pattern is None


def test_merges_are_ordered_by_rank_in_any_order_of_records(tmp_path: Path) -> None:
    vocab = load(tmp_path, section(merges=[(260, 101, 261, 4_000_000_000), (116, 104, 260, 7)]))
    assert vocab == THE


def test_ranks_are_written_from_zero(tmp_path: Path) -> None:
    vocab = load(tmp_path, section(merges=[(116, 104, 260, 7), (260, 101, 261, 9)]))
    formats.save(vocab, tmp_path / "again", format="bpe1")
    assert (tmp_path / "again").read_bytes() == section()


def test_a_table_that_also_lists_bytes_and_specials_is_accepted(tmp_path: Path) -> None:
    listed = [(97, b"a"), *TOKENS, *SPECIAL_BYTES.items()]
    assert load(tmp_path, section(tokens=listed)) == THE


def test_special_ids_may_be_anywhere_after_the_bytes(tmp_path: Path) -> None:
    data = section(
        tokens=[(256, b"th"), (258, b"the")],
        merges=[(116, 104, 256, 0), (256, 101, 258, 1)],
        roles=(261, 257, 260, 259),
    )
    vocab = load(tmp_path, data)
    assert dict(vocab.roles) == {"bos": 261, "eos": 257, "pad": 260, "unk": 259}
    formats.save(vocab, tmp_path / "again", format="bpe1")
    assert (tmp_path / "again").read_bytes() == data


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    role_ids = draw(st.permutations(range(256, 260)))
    roles = dict(zip(ROLES, role_ids, strict=True))
    specials = {f"<|{role}|>": token_id for role, token_id in roles.items()}
    tokens = dict(BYTES)
    merges = []
    for _ in range(draw(st.integers(0, 12))):
        left = draw(st.sampled_from(sorted(tokens)))
        right = draw(st.sampled_from(sorted(tokens)))
        if tokens[left] + tokens[right] not in tokens.values():
            tokens[len(tokens) + 4] = tokens[left] + tokens[right]
            merges.append((left, right, len(tokens) + 3))
    tokens |= {token_id: text.encode() for text, token_id in specials.items()}
    order = draw(st.permutations(merges))  # a merge list need not be in order of id
    return Vocabulary(tokens, order, special_tokens=specials, roles=roles)


@examples(60)
@given(vocabularies())
def test_a_saved_vocabulary_loads_equal_and_saves_to_the_same_bytes(vocab: Vocabulary) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "1"), Path(folder, "2")
        formats.save(vocab, first, format="bpe1")
        loaded = formats.load(first, format="bpe1")
        formats.save(loaded, second, format="bpe1")
        assert loaded == vocab
        assert first.read_bytes() == second.read_bytes()


# ---------------------------------------------------------------------- recognition


def test_a_section_is_recognized_by_its_magic(tmp_path: Path) -> None:
    assert bpe1.recognize(tmp_path, section())
    assert bpe1.recognize(tmp_path, section(version=2))


@pytest.mark.parametrize("head", [b"", b"BPE", b"bpe1", b"GGUF", b" BPE1", b"{}"])
def test_other_files_are_not_recognized(tmp_path: Path, head: bytes) -> None:
    assert not bpe1.recognize(tmp_path, head)


# ---------------------------------------------------------------------- refusals of the reader

REFUSED: dict[str, tuple[bytes, int, str]] = {
    "wrong magic": (section(magic=b"BPE2"), 0, "expected b'BPE1'"),
    "an empty file": (b"", 0, "expected b'BPE1'"),
    "a header cut short": (section()[:35], 35, "ends inside the header"),
    "version 0": (section(version=0), 4, "version is 0"),
    "version 3": (section(version=3), 4, "version is 3; only 1 and 2 can be read"),
    "a vocabulary size below the truth": (section(vocab_size=261), 36 + 10, "the last id is 260"),
    "a vocabulary size above the truth": (section(vocab_size=263), 8, "vocab_size is 263"),
    "a vocabulary size below the base": (section(vocab_size=259), 8, "make 260 to 262 ids"),
    "a vocabulary size of all ids": (section(vocab_size=2**32 - 1), 8, "vocab_size is 4294967295"),
    "a table that fills too few ids": (
        section(tokens=[*TOKENS, (97, b"a")], vocab_size=263),
        8,
        "the tables hold 262 ids",
    ),
    "bos among the bytes": (section(roles=(255, 257, 258, 259)), 12, "bos is id 255"),
    "eos after the last id": (section(roles=(256, 262, 258, 259)), 16, "eos is id 262"),
    "pad that is bos": (section(roles=(256, 257, 256, 259)), 20, "bos and pad are both id 256"),
    "unk of all ones": (section(roles=(256, 257, 258, 2**32 - 1)), 24, "unk is id 4294967295"),
    "an id listed twice": (
        section(tokens=[*TOKENS, (260, b"th")]),
        57,
        "id 260, which an earlier record has",
    ),
    "a byte listed twice": (
        section(tokens=[*TOKENS, (9, b"\t"), (9, b"\t")]),
        66,
        "id 9, which an",
    ),
    "an id out of range": (section(tokens=[(260, b"th"), (262, b"the")]), 46, "has id 262"),
    "an empty token": (section(tokens=[(260, b""), (261, b"the")]), 40, "an empty token"),
    "a byte listed as another": (section(tokens=[*TOKENS, (97, b"b")]), 57, "it is always b'a'"),
    "a special listed as another": (section(tokens=[*TOKENS, (256, b"<s>")]), 57, "always b'<|bos"),
    "two ids of one token": (
        section(tokens=[(260, b"th"), (261, b"th")]),
        46,
        "260 and 261 are both b'th'",
    ),
    "a learned token that is a byte": (
        section(tokens=[(260, b"t"), (261, b"the")]),
        36,
        "116 and 260 are both b't'",
    ),
    "a left part out of range": (
        section(merges=[(262, 104, 260, 0), MERGES[1]]),
        57,
        "262 is not a token",
    ),
    "a right part out of range": (
        section(merges=[(116, 2**32 - 1, 260, 0), MERGES[1]]),
        57,
        "4294967295 is not a token",
    ),
    "a missing merge output": (
        section(merges=[MERGES[0], (260, 101, 262, 1)]),
        73,
        "262 is not a token",
    ),
    "a special token as part": (
        section(merges=[(256, 104, 260, 0), MERGES[1]]),
        57,
        "256 is the special token '<|bos|>'",
    ),
    "a special token as output": (
        section(merges=[(116, 104, 259, 0), MERGES[1]]),
        57,
        "259 is the special token '<|unk|>'",
    ),
    "an output of other bytes": (
        section(merges=[(104, 116, 260, 0), MERGES[1]]),
        57,
        "make b'ht', and 260 is b'th'",
    ),
    "a rank used twice": (section(merges=[MERGES[0], (260, 101, 261, 0)]), 73, "the same rank 0"),
    "a pair used twice": (
        section(merges=[*MERGES, (116, 104, 260, 2)]),
        89,
        "record 0 merges the same pair",
    ),
    "one byte too many": (section() + b"\0", 89, "1 bytes follow the last merge"),
    "more merges than counted": (section(merge_count=1), 73, "16 bytes follow the last merge"),
    "fewer merges than counted": (section(merge_count=3), 36, "claims 2 tokens and 3 merges"),
    "long tokens that hide missing merges": (
        section(tokens=[(260, b"th"), (261, b"t" * 20)], merge_count=3),
        74,
        "3 merge records need 48 bytes, but 32 remain",
    ),
    "more tokens than can be": (section(token_count=6), 36, "claims 6 tokens"),
    "a token longer than the file": (
        section()[:50] + struct.pack("<I", 40) + section()[54:],
        50,
        "a token of 40 bytes; expected 1 to 35",
    ),
    "a token of 4 GiB": (
        section()[:40] + b"\xff" * 4 + section()[44:],
        40,
        "a token of 4294967295 bytes",
    ),
    "a token that swallows the merges": (
        section()[:50] + struct.pack("<I", 35) + section()[54:],
        89,
        "2 merge records need 32 bytes, but 0 remain",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_section_is_refused_with_its_offset(tmp_path: Path, name: str) -> None:
    data, offset, words = REFUSED[name]
    with pytest.raises(FormatError, match=re.escape(words)) as caught:
        load(tmp_path, data)
    assert caught.value.offset == offset
    assert caught.value.path == str(tmp_path / "section.bpe1")


def test_a_missing_file_stays_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        formats.load(tmp_path / "nothing", format="bpe1")


@pytest.mark.parametrize("counts", [(2**32 - 1, 0), (0, 2**32 - 1), (2**32 - 1, 2**32 - 1)])
def test_a_small_file_that_claims_billions_fails_at_once(
    tmp_path: Path, counts: tuple[int, int]
) -> None:
    data = section([], [], vocab_size=2**32 - 1, token_count=counts[0], merge_count=counts[1])
    start = time.perf_counter()
    with pytest.raises(FormatError, match="but 4 bytes follow it"):
        load(tmp_path, data + bytes(4))
    assert time.perf_counter() - start < 0.5


def test_a_section_cut_at_any_byte_is_a_format_error(tmp_path: Path) -> None:
    for length in range(len(section())):
        with pytest.raises(FormatError):
            load(tmp_path, section()[:length])


def test_a_mutated_section_loads_or_is_a_format_error(tmp_path: Path) -> None:
    rng = random.Random(20250102)
    loaded = refused = 0
    for _ in range(3000):
        data = bytearray(section())
        for _ in range(rng.choice([1, 1, 2, 4])):
            at = rng.randrange(len(data))
            what = rng.randrange(8)
            if what == 0:
                data.insert(at, rng.randrange(256))
            elif what == 1:
                del data[at]
            else:
                data[at] = rng.choice([0, 1, 2, 4, 5, 255, rng.randrange(256)])
        try:
            vocab = load(tmp_path, bytes(data))
        except FormatError:
            refused += 1
        else:
            loaded += 1
            assert len(vocab) == 262
    assert refused > 2000
    assert loaded > 10


# ---------------------------------------------------------------------- refusals of the writer


def test_nothing_is_replaced_without_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "the.bpe1"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        formats.save(THE, path, format="bpe1")
    assert path.read_text() == "mine"
    formats.save(THE, path, overwrite=True, format="bpe1")
    assert formats.load(path, format="bpe1") == THE
    assert [entry.name for entry in tmp_path.iterdir()] == ["the.bpe1"]


def test_a_failed_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        formats.save(THE, tmp_path / "the.bpe1", format="bpe1")
    assert list(tmp_path.iterdir()) == []


def test_a_token_that_no_merge_makes_is_kept(tmp_path: Path) -> None:
    vocab = make({260: b"loose"}, [])
    formats.save(vocab, tmp_path / "x", format="bpe1")
    assert formats.load(tmp_path / "x", format="bpe1") == vocab


UNSUPPORTED = {
    "its pattern is empty": make({}, [], pattern=""),
    "has: normalizer, template": make({}, [], normalizer=["nfc"], template=((256,), ())),
    "has: added token flags": make({260: b"x"}, [], added_tokens=[("x", 260, False)]),
    "has: prefix space, steps": make({}, [], steps=["prefix-space", ("[0-9]",)]),
    "has ignore_merges": make({}, [], ignore_merges=True),
    "ranked by id": make({}, [], ranking="ranks"),
    "alphabet is 'ascii'": make({}, [], alphabet="ascii"),
    "special tokens are []": Vocabulary(BYTES),
    "'<|x|>'], not exactly": make({260: b"<|x|>"}, [], special_tokens=SPECIALS | {"<|x|>": 260}),
    "role pad is None, not the id of '<|pad|>'": make(
        {}, [], roles={role: i for role, i in ROLES.items() if role != "pad"}
    ),
    "role bos is 257, not the id of '<|bos|>'": make({}, [], roles=ROLES | {"bos": 257}),
    "byte 0x00 has id 1": make({0: b"\1", 1: b"\0"}, []),
    "a gap at 260": make({261: b"ab"}, []),
    "merge 6 uses id 256, which is also a special token": make(
        {260: b"<|", 261: b"bo", 262: b"s|", 263: b"bos|", 264: b"<|bos|", 265: b"|>"},
        [
            (60, 124, 260),
            (98, 111, 261),
            (115, 124, 262),
            (261, 262, 263),
            (260, 263, 264),
            (124, 62, 265),
            (264, 62, 256),
        ],
    ),
}


@pytest.mark.parametrize("reason", UNSUPPORTED)
def test_what_a_section_cannot_hold_is_refused_by_name(tmp_path: Path, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(reason)):
        formats.save(UNSUPPORTED[reason], tmp_path / "x", format="bpe1")
    assert list(tmp_path.iterdir()) == []
