"""ck's binary export: the worked check, both maps, round trips, every refusal of the reader."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byteweld import formats, patterns
from byteweld._byte_letters import BYTE_TO_CHAR
from byteweld.errors import FormatError, MissingKeyError, PatternError
from byteweld.formats import ck_binary
from tests.helpers.exports import (
    AB,
    AB_ASCII,
    BUILT_IN,
    CK_MAP,
    MERGES,
    META,
    NAMES,
    OFFSETS,
    REFUSED,
    ROLES,
    STRINGS,
    make,
    texts_of,
    write,
)
from tests.helpers.exports import export as made

MERGES_SHA256 = "eb7e6040c6ceee165f10bbde7f3f308491d2398250c36dc22a9c29b46a3a1c5d"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    formats.save(AB, tmp_path / "export", format="ck")
    return tmp_path / "export"


def rewrite_meta(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads((folder / META).read_text())
    change(value)
    (folder / META).write_text(json.dumps(value))


def refuse(folder: Path, words: str) -> FormatError:
    with pytest.raises(FormatError, match=re.escape(words)) as caught:
        formats.load(folder, format="ck")
    assert caught.value.path is not None
    assert caught.value.path.startswith(str(folder))
    return caught.value


# ---------------------------------------------------------------------- golden and round trips


def test_the_worked_check_gives_the_merges_that_ck_writes(export: Path) -> None:
    data = (export / MERGES).read_bytes()
    assert len(data) == 36
    assert hashlib.sha256(data).hexdigest() == MERGES_SHA256


def test_the_files_are_laid_out_as_ck_lays_them_out(export: Path, tmp_path: Path) -> None:
    by_hand = tmp_path / "by_hand"
    merges = [(101, 102, 260), (36, 260, 261), (101, 101, 262)]
    write(by_hand, made(texts_of(AB, CK_MAP), list(merges)))
    for name in NAMES:
        assert (export / name).read_bytes() == (by_hand / name).read_bytes()


def test_the_json_is_written_line_for_line_as_ck_writes_it(export: Path) -> None:
    assert (export / META).read_text() == (
        "{\n"
        '  "schema": "ck.bpe.binary.v1",\n'
        '  "mode": "bytelevel_bpe",\n'
        '  "vocab_size": 263,\n'
        '  "num_merges": 3,\n'
        '  "num_reserved_special_tokens": 0,\n'
        '  "max_piece_bytes": 0,\n'
        '  "offsets": "vocab_offsets.bin",\n'
        '  "strings": "vocab_strings.bin",\n'
        '  "merges": "vocab_merges.bin"\n'
        "}\n"
    )


def test_the_writer_uses_the_letters_that_cks_runtime_reads(export: Path) -> None:
    texts = (export / STRINGS).read_bytes().split(b"\0")
    assert texts[4].decode() == "\u0100"  # byte 0 is a letter, so texts contain no NUL
    assert texts[4 + 0x20].decode() == "\u0120"
    assert texts[4 + 0x7F].decode() == "\u017f"
    assert texts[4 + 0xA0].decode() == "\u01a0"
    assert texts[4 + 0xAD].decode() == "\u00ad"
    assert texts[261].decode() == "\u0120ab"


def test_the_two_maps_differ_on_thirty_five_bytes() -> None:
    assert sum(CK_MAP[byte] != BYTE_TO_CHAR[byte] for byte in range(256)) == 35


def test_a_saved_export_loads_as_the_vocabulary_that_made_it(export: Path) -> None:
    vocab, byte_map = ck_binary.load_with_map(export)
    assert vocab == formats.load(export, format="ck") == AB
    assert vocab.fingerprint == AB.fingerprint
    assert byte_map == "ck"
    assert dict(vocab.roles) == ROLES
    assert vocab.pattern == patterns.CK_RUNTIME


@pytest.mark.parametrize("name", ["gpt2", "ck"])
def test_the_patterns_of_the_recipe_are_accepted_and_lost(tmp_path: Path, name: str) -> None:
    vocab = make([(101, 102)], pattern=name)
    formats.save(vocab, tmp_path / "x", format="ck")
    loaded = formats.load(tmp_path / "x", format="ck")
    assert loaded == ck_binary.held(vocab) == make([(101, 102)])
    assert loaded != vocab
    assert formats.load(tmp_path / "x", pattern=name, format="ck") == vocab
    assert ck_binary.held(loaded) is loaded


def test_another_pattern_can_be_given_when_loading(export: Path) -> None:
    assert formats.load(export, pattern=None, format="ck").pattern is None
    assert formats.load(export, pattern="[a-z]+", format="ck").pattern == "[a-z]+"
    with pytest.raises(PatternError, match="did you mean 'ck-runtime'"):
        formats.load(export, pattern="ck-runtim", format="ck")


def test_an_export_in_gpt2s_letters_loads_the_same_and_is_distinguished(tmp_path: Path) -> None:
    pairs = [(4 + 0xC3, 4 + 0xA0), (4 + 0xAD, 4), (4 + 0x7F, 4 + 0x20)]
    vocab = make(pairs)
    merges = [tuple(merge) for merge in vocab.merge_ids]
    write(tmp_path / "gpt2", made(texts_of(vocab, BYTE_TO_CHAR), merges))
    write(tmp_path / "ck", made(texts_of(vocab, CK_MAP), merges))
    assert ck_binary.load_with_map(tmp_path / "gpt2") == (vocab, "gpt2")
    assert ck_binary.load_with_map(tmp_path / "ck") == (vocab, "ck")


def test_an_ascii_export_has_raw_texts_and_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "ascii"
    formats.save(AB_ASCII, folder, format="ck")
    texts = (folder / STRINGS).read_bytes().split(b"\0")[:-1]
    assert texts[4:8] == [b"\t", b"\n", b"\r", b" "]
    assert texts[101:] == [b"~", b"ab", b" ab"]
    assert json.loads((folder / META).read_text())["mode"] == "ascii_bpe"
    assert ck_binary.load_with_map(folder) == (AB_ASCII, "ck")


def test_reserved_specials_come_before_the_bytes(tmp_path: Path) -> None:
    vocab = make([(103, 104)], reserved=["<svg>", "à"])
    assert vocab.tokens[262] == b"ab"
    formats.save(vocab, tmp_path / "x", max_piece_bytes=2**31 - 1, format="ck")
    meta = json.loads((tmp_path / "x" / META).read_text())
    assert (meta["num_reserved_special_tokens"], meta["max_piece_bytes"]) == (2, 2**31 - 1)
    assert formats.load(tmp_path / "x", format="ck") == vocab


# ---------------------------------------------------------------------- recognition


def test_an_export_is_recognized_by_its_json(export: Path) -> None:
    assert ck_binary.recognize(export, b"")
    rewrite_meta(export, lambda meta: meta.update(schema="ck.bpe.binary.v9"))
    assert ck_binary.recognize(export, b"")


def test_a_folder_without_the_json_is_not_taken_for_an_export(export: Path) -> None:
    (export / META).unlink()
    assert not ck_binary.recognize(export, b"")
    with pytest.raises(FileNotFoundError):
        formats.load(export, format="ck")


def test_other_things_are_not_recognized(export: Path, tmp_path: Path) -> None:
    meta = export / META
    assert not ck_binary.recognize(meta, meta.read_bytes())
    assert not ck_binary.recognize(tmp_path / "nothing", b"")
    assert not ck_binary.recognize(Path("a\0b"), b"")
    meta.write_text('{"schema": "another"}')
    assert not ck_binary.recognize(export, b"")
    meta.unlink()
    meta.mkdir()
    assert not ck_binary.recognize(export, b"")


# ---------------------------------------------------------------------- refusals of the reader


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_export_is_refused_with_file_and_offset(tmp_path: Path, name: str) -> None:
    wrong = REFUSED[name]
    write(tmp_path, wrong.files)
    error = refuse(tmp_path, wrong.words)
    assert error.path == str(tmp_path / wrong.file)
    if wrong.offset is not None:
        assert error.offset == wrong.offset
    assert len(str(error)) < len(str(tmp_path)) + 400


@pytest.mark.parametrize("key", ck_binary._Meta._fields)
def test_a_missing_key_is_a_format_error_and_a_key_error(export: Path, key: str) -> None:
    rewrite_meta(export, lambda meta: meta.pop(key))
    error = refuse(export, f"key '{key}' is missing")
    assert isinstance(error, MissingKeyError)
    assert isinstance(error, KeyError)


@pytest.mark.parametrize("folder", ["out", "/tmp/elsewhere/tokenizer_bin", "./build"])
def test_the_folder_that_ck_writes_into_the_json_is_never_followed(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    decoy = tmp_path / "out"
    write(decoy, made([b"decoy"], []))
    monkeypatch.chdir(tmp_path)
    names = {key: f"{folder}/vocab_{key}.bin" for key in ("offsets", "strings", "merges")}
    rewrite_meta(export, lambda meta: meta.update(names))
    assert formats.load(export, format="ck") == AB


@pytest.mark.parametrize("name", [OFFSETS, STRINGS, MERGES])
def test_a_missing_table_or_a_folder_in_its_place_is_refused(export: Path, name: str) -> None:
    (export / name).unlink()
    error = refuse(export, "the file is missing")
    assert error.path == str(export / name)
    (export / name).mkdir()
    refuse(export, "expected a regular file")


def test_a_special_token_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    for repeated in (b"<x>", b"<|pad|>"):
        texts = texts_of(make(reserved=["<x>", "<y>"]), CK_MAP)
        texts[5] = repeated
        write(tmp_path, made(texts, [], num_reserved_special_tokens=2))
        refuse(tmp_path, "is given twice, with ids ")


@pytest.mark.parametrize("count", [1, 3, 200, 256, 300])
def test_the_overlap_that_ck_writes_for_reserved_tokens_is_refused_with_the_reason(
    tmp_path: Path, count: int
) -> None:
    reserved = [f"<r{n}>".encode() for n in range(count)]
    texts = [text.encode() for text in BUILT_IN] + [CK_MAP[b].encode() for b in range(256)]
    texts += [b"<|unk|><|unk|>"] * count  # ids that ck never sets
    texts[4 : 4 + count] = reserved
    texts = texts[: 4 + count + 256]
    if count > 256:
        texts += [b"<|unk|><|unk|>"] * (4 + count + 256 - len(texts))
    assert len(texts) == 260 + count
    write(tmp_path, made(texts, [], num_reserved_special_tokens=count))
    error = refuse(tmp_path, f"the {count} reserved special tokens overlap the ids of bytes")
    assert f"bytes 0x00 to 0x{min(count, 256) - 1:02X} have no id" in str(error)


def test_two_ids_for_one_token_are_refused(tmp_path: Path) -> None:
    texts = texts_of(make([(101, 102)]), CK_MAP)
    write(tmp_path, made([*texts, b"ab"], [(101, 102, 260), (101, 102, 261)]))
    error = refuse(tmp_path, "ids 260 and 261 are both b'ab'")
    assert error.path == str(tmp_path / STRINGS)
    assert error.offset == sum(len(text) + 1 for text in texts)


# ---------------------------------------------------------------------- the writer


def test_a_file_where_the_folder_should_be_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "export").write_text("mine")
    with pytest.raises(FileExistsError):
        formats.save(AB, tmp_path / "export", overwrite=True, format="ck")
    assert (tmp_path / "export").read_text() == "mine"


def test_the_json_is_written_last_and_is_missing_while_the_tables_change(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (export / "notes.txt").write_text("mine")  # or the whole folder is exchanged
    seen: list[tuple[str, bool]] = []
    replace = os.replace

    def replace_and_look(source: Path, target: Path) -> None:
        seen.append((target.name, ck_binary.recognize(export, b"")))
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_and_look)
    formats.save(AB, export, overwrite=True, format="ck")
    assert seen == [(name, False) for name in (*NAMES[1:], META)]


def test_a_folder_with_nothing_else_is_exchanged_as_a_whole(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", None)  # no file is renamed
    inode = export.stat().st_ino
    formats.save(AB_ASCII, export, overwrite=True, format="ck")
    assert formats.load(export, format="ck") == AB_ASCII
    assert export.stat().st_ino != inode
    assert [entry.name for entry in export.parent.iterdir()] == [export.name]


@pytest.mark.parametrize("limit", [-1, 2**31, True, 1.0, "8"])
def test_a_limit_that_is_not_an_int32_is_a_value_error(tmp_path: Path, limit: Any) -> None:
    with pytest.raises(ValueError, match="max_piece_bytes is"):
        formats.save(AB, tmp_path / "x", max_piece_bytes=limit, format="ck")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- what only one check notices


@pytest.mark.parametrize("pairs", [[(4, 101)], [(101, 4)], [(4, 4)]])
def test_the_first_byte_can_be_merged(tmp_path: Path, pairs: list[tuple[int, int]]) -> None:
    vocab = make(pairs)
    formats.save(vocab, tmp_path / "x", format="ck")
    assert formats.load(tmp_path / "x", format="ck") == vocab
