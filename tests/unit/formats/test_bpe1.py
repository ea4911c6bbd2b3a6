"""BPE1: the fixtures and their page, round trips, every refusal, sections in larger files."""

from __future__ import annotations

import gzip
import hashlib
import io
import mmap
import os
import re
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

import byteweld
from byteweld import formats, patterns
from byteweld.errors import FormatError, UnsupportedError
from byteweld.formats import bpe1
from byteweld.vocab import Vocabulary
from tests.helpers.sections import (
    MOST,
    REFUSED,
    ROLES,
    SPECIAL_BYTES,
    TOKENS,
    section,
    the,
)

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "bpe1.md"
PLAIN, GPT2 = the(), the("gpt2")
SECTION = section(version=2, pattern=b"gpt2", fingerprint=GPT2.fingerprint)


# ---------------------------------------------------------------------- golden and round trips


@pytest.mark.parametrize(
    ("vocab", "data", "size", "digest"),
    [
        (PLAIN, section(), 89, "7ce88cf0a77b625e8425dc16e9eb334568f4bd82dc0bebb15af5a01f363b09b8"),
        (GPT2, SECTION, 133, "d2e8219b0f20540ac5b55d1fcbc004f802d5fafc5b308bee1df0af32848abd91"),
    ],
)
def test_the_fixtures_are_those_of_the_page(
    vocab: Vocabulary, data: bytes, size: int, digest: str
) -> None:
    assert bpe1.to_bytes(vocab) == data
    assert (len(data), hashlib.sha256(data).hexdigest()) == (size, digest)
    page = PAGE.read_text(encoding="utf-8")
    assert digest in page
    dumps = re.split("<!-- fixture(?: 2)? -->", page)[1:]
    rows = re.findall(
        r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", dumps[vocab is GPT2], flags=re.MULTILINE
    )
    assert bytes.fromhex("".join(rows)) == data
    loaded = bpe1.read(data)
    assert (loaded, loaded.fingerprint) == (vocab, vocab.fingerprint)
    assert (len(loaded), loaded.pattern, dict(loaded.roles)) == (262, vocab.pattern, ROLES)
    assert loaded.merges == [(b"t", b"h"), (b"th", b"e")]


def test_merges_are_ordered_by_rank_and_written_from_zero() -> None:
    for ranks in ((4_000_000_000, 7), (9, 7)):
        records = [(260, 101, 261, ranks[0]), (116, 104, 260, ranks[1])]
        vocab = bpe1.read(section(merges=records))
        assert vocab == PLAIN
        assert bpe1.to_bytes(vocab) == section()


def test_a_table_that_also_lists_bytes_and_specials_is_accepted() -> None:
    assert bpe1.read(section([(97, b"a"), *TOKENS, *SPECIAL_BYTES.items()])) == PLAIN


def test_special_ids_may_be_anywhere_after_the_bytes() -> None:
    data = section(
        [(256, b"th"), (258, b"the")],
        [(116, 104, 256, 0), (256, 101, 258, 1)],
        roles=(261, 257, 260, 259),
    )
    vocab = bpe1.read(data)
    assert dict(vocab.roles) == {"bos": 261, "eos": 257, "pad": 260, "unk": 259}
    assert bpe1.to_bytes(vocab) == data


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
    vocab = the(pattern)
    section = bpe1.to_bytes(vocab, version=2)
    loaded = bpe1.read(section)
    assert loaded == vocab
    assert loaded.pattern == vocab.pattern
    assert loaded.fingerprint == section[40:72].hex()
    assert bpe1.to_bytes(loaded, version=2) == section


def test_a_known_pattern_is_stored_by_name_and_accepted_in_full() -> None:
    assert bpe1.to_bytes(GPT2)[72:76] == b"gpt2"
    assert (
        bpe1.read(section(version=2, pattern=patterns.GPT2.encode(), fingerprint=GPT2.fingerprint))
        == GPT2
    )


def test_every_flipped_bit_is_found() -> None:
    for data in (SECTION, bpe1.to_bytes(PLAIN, version=2)):
        for bit in range(8 * len(data)):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            with pytest.raises(FormatError):
                bpe1.read(damaged)


# ---------------------------------------------------------------------- recognition and refusals


@pytest.mark.parametrize("head", [b"", b"BPE", b"bpe1", b"GGUF", b" BPE1", b"{}"])
def test_sections_are_recognized_by_their_magic(tmp_path: Path, head: bytes) -> None:
    assert bpe1.recognize(tmp_path, section(version=3))
    assert not bpe1.recognize(tmp_path, head)


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_section_is_refused_with_file_and_offset(tmp_path: Path, name: str) -> None:
    data, offset, words, _ = REFUSED[name]
    path = tmp_path / "section.bpe1"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=re.escape(words)) as caught:
        formats.load(path, format="bpe1")
    assert (caught.value.path, caught.value.offset) == (str(path), offset)


def test_a_section_that_claims_billions_takes_no_memory() -> None:
    hostile = [data for name, (data, *_) in REFUSED.items() if "billions" in name]
    hostile.append(struct.pack("<4s8I", b"BPE1", 2, *[MOST] * 7) + bytes(44))
    tracemalloc.start()
    for data in (*hostile, REFUSED["version 2, a long pattern"][0]):
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
    path.write_bytes(BEFORE + SECTION)
    assert bpe1.read(path, offset=AT) == GPT2


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
    wrong = section(version=2, vocab_size=263)
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
