"""BPE1 version 2 (pattern, fingerprint, checksum), and sections inside larger files."""

from __future__ import annotations

import gzip
import hashlib
import io
import mmap
import os
import random
import re
import struct
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import byteweld
from byteweld import formats, patterns
from byteweld._native import crc32c
from byteweld.errors import FormatError, UnsupportedError
from byteweld.formats import bpe1
from byteweld.vocab import Vocabulary

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "bpe1.md"
FIXTURE_SHA256 = "d2e8219b0f20540ac5b55d1fcbc004f802d5fafc5b308bee1df0af32848abd91"

ROLES = {"bos": 256, "eos": 257, "pad": 258, "unk": 259}
SPECIALS = {f"<|{role}|>": token_id for role, token_id in ROLES.items()}
TOKENS = {byte: bytes([byte]) for byte in range(256)}
TOKENS |= {token_id: text.encode() for text, token_id in SPECIALS.items()}
TOKENS |= {260: b"th", 261: b"the"}
MERGES = [(116, 104, 260), (260, 101, 261)]


def make(pattern: str | None = None) -> Vocabulary:
    return Vocabulary(TOKENS, MERGES, special_tokens=SPECIALS, roles=ROLES, pattern=pattern)


PLAIN, GPT2 = make(), make("gpt2")
SECTION = bpe1.to_bytes(GPT2)


def signed(body: bytes) -> bytes:
    return body + struct.pack("<I", crc32c(body))


def written_by_hand(
    pattern: bytes = b"gpt2",
    *,
    fingerprint: str = GPT2.fingerprint,
    pattern_length: int | None = None,
    counts: tuple[int, int] = (2, 2),
    vocab_size: int = 262,
    roles: tuple[int, ...] = (256, 257, 258, 259),
    merges: bytes | None = None,
    more: bytes = b"",
) -> bytes:
    """Return a section of version 2, valid or not, from the byte tables of docs/formats/bpe1.md."""
    length = len(pattern) if pattern_length is None else pattern_length
    head = struct.pack("<4s8I", b"BPE1", 2, vocab_size, *roles, *counts)
    head += struct.pack("<I", length) + bytes.fromhex(fingerprint) + pattern
    tokens = struct.pack("<2I2s2I3s", 260, 2, b"th", 261, 3, b"the")
    if merges is None:
        merges = struct.pack("<8I", 116, 104, 260, 0, 260, 101, 261, 1)
    return signed(head + tokens + merges + more)


@cache
def trained() -> byteweld.Tokenizer:
    text = Path(__file__).read_text("utf-8")
    return byteweld.train(iter([text]), vocab_size=600, recipe="bpe1", encode_pattern="o200k")


# ---------------------------------------------------------------------- version 2


def test_the_section_has_the_layout_of_the_page() -> None:
    assert SECTION == written_by_hand()
    assert len(SECTION) == 89 + 4 + 32 + len("gpt2") + 4
    assert hashlib.sha256(SECTION).hexdigest() == FIXTURE_SHA256


def test_the_page_shows_the_section() -> None:
    page = PAGE.read_text(encoding="utf-8")
    dump = page.split("<!-- fixture 2 -->")[1]
    rows = re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", dump, flags=re.MULTILINE)
    assert bytes.fromhex("".join(rows)) == SECTION
    assert FIXTURE_SHA256 in page


def test_version_2_is_written_on_request_or_for_a_pattern(tmp_path: Path) -> None:
    versions = [
        struct.unpack_from("<I", section, 4)[0]
        for section in (
            bpe1.to_bytes(PLAIN),
            bpe1.to_bytes(PLAIN, version=1),
            bpe1.to_bytes(PLAIN, version=2),
            SECTION,
        )
    ]
    assert versions == [1, 1, 2, 2]
    byteweld.Tokenizer(PLAIN).save(tmp_path / "x.bpe1", version=2)
    assert (tmp_path / "x.bpe1").read_bytes() == bpe1.to_bytes(PLAIN, version=2)
    assert byteweld.load(tmp_path / "x.bpe1").vocab == PLAIN


def test_version_1_refuses_a_pattern_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        UnsupportedError, match=r"version 1 cannot hold .* pattern .* version 2 has"
    ):
        formats.save(GPT2, tmp_path / "x", version=1, format="bpe1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", [0, 3, "2", 1.0, True])
def test_another_version_is_refused(version: object) -> None:
    with pytest.raises(ValueError, match="it must be 1, 2 or None"):
        bpe1.to_bytes(PLAIN, version=version)  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", [None, *patterns.PATTERNS, r"[a-z]+|\s+|.", "é+|(?<=a)b"])
def test_every_pattern_is_kept(pattern: str | None) -> None:
    vocab = make(pattern)
    section = bpe1.to_bytes(vocab, version=2)
    loaded = bpe1.read(section)
    assert loaded == vocab
    assert loaded.pattern == vocab.pattern
    assert loaded.fingerprint == section[40:72].hex()
    assert bpe1.to_bytes(loaded, version=2) == section


def test_a_known_pattern_is_stored_by_name_and_accepted_in_full() -> None:
    assert bpe1.to_bytes(GPT2)[72:76] == b"gpt2"
    assert bpe1.read(written_by_hand(patterns.GPT2.encode())) == GPT2


def test_a_trained_vocabulary_loads_equal_and_encodes_the_same() -> None:
    tok = trained()
    loaded = byteweld.Tokenizer(bpe1.read(bpe1.to_bytes(tok.vocab)))
    assert loaded == tok
    text = Path(__file__).read_text("utf-8")
    assert loaded.encode(text, disallowed_special=()) == tok.encode(text, disallowed_special=())


def test_every_flipped_bit_is_found() -> None:
    for section in (SECTION, bpe1.to_bytes(PLAIN, version=2)):
        for bit in range(8 * len(section)):
            data = bytearray(section)
            data[bit // 8] ^= 1 << bit % 8
            with pytest.raises(FormatError):
                bpe1.read(data)


def test_random_changes_of_a_larger_section_are_found() -> None:
    section = bpe1.to_bytes(trained().vocab)
    rng = random.Random(20261117)
    for _ in range(3000):
        data = bytearray(section)
        for _ in range(rng.choice([1, 1, 2, 4])):
            at = rng.randrange(len(data))
            what = rng.randrange(8)
            if what == 0:
                data.insert(at, rng.randrange(256))
            elif what == 1:
                del data[at]
            else:
                data[at] = rng.choice([0, 1, 2, 4, 5, 255, rng.randrange(256)])
        if data != section:
            with pytest.raises(FormatError):
                bpe1.read(data)


def test_a_section_cut_at_any_byte_is_a_format_error() -> None:
    for length in range(len(SECTION)):
        with pytest.raises(FormatError):
            bpe1.read(SECTION[:length])


REFUSED: dict[str, tuple[bytes, int, str]] = {
    "a damaged byte": (SECTION[:80] + b"?" + SECTION[81:], len(SECTION) - 4, "the checksum is"),
    "a damaged checksum": (SECTION[:-1] + b"?", len(SECTION) - 4, "damaged or not complete"),
    "a section cut in its header": (SECTION[:75], 75, "inside the header of version 2"),
    "another fingerprint": (
        written_by_hand(fingerprint="00" * 32),
        40,
        f"has {GPT2.fingerprint}; the section must be written again",
    ),
    "another pattern": (written_by_hand(b"ck"), 40, f"fingerprint is {GPT2.fingerprint}"),
    "an unknown name": (written_by_hand(b"gtp2"), 72, "unknown pattern 'gtp2'"),
    "a pattern that is not UTF-8": (written_by_hand(b"ab\xff"), 74, "expected UTF-8"),
    "a pattern that is too long": (
        written_by_hand(pattern_length=2**32 - 1),
        36,
        "a pattern of 4294967295 bytes, but 57 bytes follow it",
    ),
    "a pattern that takes a token": (written_by_hand(pattern_length=11), 83, "at least 50 bytes"),
    "counts of billions": (
        written_by_hand(counts=(2**32 - 1, 2**32 - 1), vocab_size=2**32 - 1),
        76,
        "claims 4294967295 tokens",
    ),
    "a wrong size": (written_by_hand(vocab_size=263), 8, "vocab_size is 263"),
    "a wrong role": (written_by_hand(roles=(256, 257, 258, 12)), 24, "unk is id 12"),
    "a wrong merge": (
        written_by_hand(merges=struct.pack("<8I", 116, 104, 261, 0, 260, 101, 261, 1)),
        97,
        "its parts make b'th', and 261 is b'the'",
    ),
    "bytes before the checksum": (written_by_hand(more=b"?"), 129, "1 bytes follow the last merge"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_section_is_refused_with_file_and_offset(tmp_path: Path, name: str) -> None:
    data, offset, words = REFUSED[name]
    path = tmp_path / "section.bpe1"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=re.escape(words)) as caught:
        formats.load(path, format="bpe1")
    assert (caught.value.path, caught.value.offset) == (str(path), offset)


def test_a_section_that_claims_billions_takes_no_memory() -> None:
    most = 2**32 - 1
    tracemalloc.start()
    for data in (
        written_by_hand(counts=(most, most), vocab_size=most),
        written_by_hand(pattern_length=most),
        struct.pack("<4s8I", b"BPE1", 2, *[most] * 7) + bytes(44),
    ):
        with pytest.raises(FormatError):
            bpe1.read(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


# ---------------------------------------------------------------------- embedded sections

BEFORE, AFTER = b"container header", b"and more"
CONTAINER = BEFORE + SECTION + AFTER
AT = len(BEFORE)


@pytest.mark.parametrize("of", [bytes, bytearray, memoryview])
def test_a_section_is_read_from_bytes(of: Callable[[bytes], bpe1.Buffer]) -> None:
    assert bpe1.read(of(SECTION)) == GPT2
    assert bpe1.read(of(CONTAINER), offset=AT, length=len(SECTION)) == GPT2
    assert bpe1.read(of(BEFORE + SECTION), offset=AT) == GPT2


@pytest.mark.parametrize("buffering", [0, -1])
def test_a_section_is_read_from_an_open_file(tmp_path: Path, buffering: int) -> None:
    path = tmp_path / "container"
    path.write_bytes(CONTAINER)
    with path.open("rb", buffering=buffering) as file:
        assert bpe1.read(file, offset=AT, length=len(SECTION)) == GPT2
        assert file.read() == AFTER
        file.seek(AT)
        assert bpe1.read(file, length=len(SECTION)) == GPT2
        assert file.tell() == AT + len(SECTION)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert bpe1.read(mapped, offset=AT, length=len(SECTION)) == GPT2  # type: ignore[arg-type]
    assert bpe1.read(io.BytesIO(BEFORE + SECTION), offset=AT) == GPT2


def test_a_section_is_read_from_a_pipe() -> None:
    end, start = os.pipe()
    with os.fdopen(end, "rb") as reading, os.fdopen(start, "wb") as writing:
        writing.write(SECTION + AFTER)
        writing.flush()
        assert bpe1.read(reading, length=len(SECTION)) == GPT2


def test_a_section_is_loaded_at_an_offset(tmp_path: Path) -> None:
    path = tmp_path / "container"
    path.write_bytes(CONTAINER)
    assert bpe1.read(path, offset=AT, length=len(SECTION)) == GPT2
    tok = byteweld.load(path, format="bpe1", offset=AT, length=len(SECTION))
    assert tok.vocab == GPT2
    assert bpe1.read(str(path), offset=AT, length=len(SECTION)) == GPT2


def test_only_the_section_of_a_huge_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:  # sparse
        file.seek(1 << 33)
        file.write(SECTION)
        file.truncate(1 << 34)
    tracemalloc.start()
    assert bpe1.read(path, offset=1 << 33, length=len(SECTION)) == GPT2
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_errors_have_the_offset_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "container"
    wrong = written_by_hand(vocab_size=263)
    path.write_bytes(BEFORE + wrong + AFTER)
    with pytest.raises(FormatError) as caught:
        bpe1.read(path, offset=AT, length=len(wrong))
    assert (caught.value.path, caught.value.offset) == (str(path), AT + 8)
    with path.open("rb") as file, pytest.raises(FormatError) as caught:
        file.seek(AT)
        bpe1.read(file, length=len(wrong))
    assert (caught.value.path, caught.value.offset) == (str(path), AT + 8)
    with pytest.raises(FormatError) as caught:
        bpe1.read(path.read_bytes(), offset=AT, length=len(wrong))
    assert (caught.value.path, caught.value.offset) == (None, AT + 8)


@pytest.mark.parametrize("offset", [AT, AT + 60, len(CONTAINER), len(CONTAINER) + 1, 2**70])
def test_a_section_that_is_not_all_there_is_refused(tmp_path: Path, offset: int) -> None:
    (tmp_path / "container").write_bytes(CONTAINER)
    for source in (CONTAINER, tmp_path / "container"):
        with pytest.raises(FormatError, match=f"only .* follow byte {offset}"):
            bpe1.read(source, offset=offset, length=2**40)
        with pytest.raises(FormatError):
            bpe1.read(source, offset=offset)


def test_a_wrong_length_is_refused() -> None:
    with pytest.raises(FormatError, match="checksum"):
        bpe1.read(CONTAINER, offset=AT, length=len(SECTION) - 1)
    with pytest.raises(FormatError, match="checksum"):
        bpe1.read(CONTAINER, offset=AT, length=len(SECTION) + 1)
    with pytest.raises(FormatError, match="8 bytes follow the last merge"):
        bpe1.read(BEFORE + bpe1.to_bytes(PLAIN) + AFTER, offset=AT)
    with pytest.raises(FormatError, match="found b''"):
        bpe1.read(CONTAINER, offset=AT, length=0)


@pytest.mark.parametrize("pattern", [None, "gpt2"])
def test_a_section_without_records_is_read(pattern: str | None) -> None:
    tokens = {token_id: token for token_id, token in TOKENS.items() if token_id < 260}
    bare = Vocabulary(tokens, special_tokens=SPECIALS, roles=ROLES, pattern=pattern)
    assert bpe1.read(bpe1.to_bytes(bare, version=2)) == bare


def test_a_length_without_an_offset_counts_from_the_start(tmp_path: Path) -> None:
    assert bpe1.read(SECTION + b"more", length=len(SECTION)) == GPT2
    path = tmp_path / "model.bin"
    path.write_bytes(SECTION + b"more")
    assert bpe1.read(path, length=len(SECTION)) == GPT2
    assert byteweld.load(path, format="bpe1", length=len(SECTION)).vocab == GPT2


def test_a_compressed_section_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "x.bpe1.gz").write_bytes(gzip.compress(SECTION))
    assert formats.load(tmp_path / "x.bpe1.gz", format="bpe1") == GPT2


def test_the_number_of_a_file_is_not_its_path(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"BPE2")
    with open(os.open(tmp_path / "x", os.O_RDONLY), "rb") as file:  # noqa: PTH123
        with pytest.raises(FormatError, match="expected b'BPE1'") as caught:
            bpe1.read(file)
    assert caught.value.path is None


def test_the_largest_section_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe1, "MAX_FILE_BYTES", len(SECTION))
    assert bpe1.read(SECTION) == GPT2
    monkeypatch.setattr(bpe1, "MAX_FILE_BYTES", len(SECTION) - 1)
    with pytest.raises(FormatError, match="the most that is read"):
        bpe1.read(SECTION)


def test_a_source_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            return len(buffer)

    monkeypatch.setattr(bpe1, "MAX_FILE_BYTES", 1 << 22)
    with pytest.raises(FormatError, match="more than 4194304 bytes"):
        bpe1.read(Endless())  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"offset": -1}, {"length": -1}, {"offset": True}])
def test_an_impossible_range_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="it must be an integer of at least 0"):
        bpe1.read(SECTION, **options)


def test_a_source_of_another_kind_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="source is a int"):
        bpe1.read(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="open for bytes"):
        bpe1.read(io.StringIO("BPE1"))  # type: ignore[arg-type]
