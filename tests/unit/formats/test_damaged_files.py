"""Damaged files of every format: cuts, changes, bad JSON; and saves that cannot finish."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import byteweld
from byteweld import formats, patterns
from byteweld.errors import ByteweldError, FormatError
from byteweld.vocab import Vocabulary
from tests.helpers.vocabularies import BYTES, holder

SPECIAL = Vocabulary(
    BYTES | {256: b"ab", 257: b"<s>"},
    [(97, 98, 256)],
    special_tokens={"<s>": 257},
    pattern=patterns.GPT2,
    roles={"bos": 257},
)
GIVEN: dict[str, Any] = {"pattern": None, "special_tokens": {"<s>": 257}}  # no sidecar is read


def trained(recipe: str, size: int) -> Vocabulary:
    return byteweld.train(documents=["low lower lowest"], vocab_size=size, recipe=recipe).vocab


class Case(NamedTuple):
    """A vocabulary, and how it is saved and loaded."""

    format: str
    vocab: Vocabulary
    name: str = "saved"
    save: dict[str, Any] | None = None
    load: dict[str, Any] | None = None

    def write(self, folder: Path, **options: Any) -> Path:
        path = folder / self.name
        formats.save(self.vocab, path, format=self.format, **(self.save or {}), **options)
        return path

    def read(self, path: Path) -> Vocabulary:
        return formats.load(path, format=self.format, **(self.load or {}))

    def files(self, folder: Path) -> list[Path]:
        return formats.files(self.vocab, folder / self.name, self.format)


CASES = {
    **{name: Case(name, holder(name)) for name in formats.FORMATS},
    "bpe1, version 2": Case("bpe1", holder("bpe1"), save={"version": 2}),
    "ck": Case("ck", trained("ck", 265)),
    "ck, ascii": Case("ck", trained("ck-ascii", 105)),
    "huggingface, config": Case("huggingface", SPECIAL, "tokenizer.json"),
    "huggingface, sidecar": Case("huggingface", SPECIAL),
    "tiktoken, options": Case("tiktoken", SPECIAL, load=GIVEN),
    "gpt2, options": Case("gpt2", SPECIAL, load=GIVEN),
}
PARTS = [
    (name, number)
    for name, case in CASES.items()
    for number, _ in enumerate(case.files(Path("folder")))
]


def changes(rng: random.Random, data: bytes) -> Iterator[bytes]:
    """Yield copies with a few bytes changed, inserted, deleted or moved."""
    for _ in range(300):
        made = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at, kind = rng.randrange(len(made)), rng.randrange(6)
            fresh = rng.choice((*b'{}[]",:0129eE.-+\\ \n\0\xff', rng.randrange(256)))
            if kind == 0:
                made.insert(at, fresh)
            elif kind == 1:
                del made[at : at + rng.choice((1, 1, 3, 40))]
                made = made or bytearray(b"\n")
            elif kind == 2:
                made[at] ^= 1 << rng.randrange(8)
            elif kind == 3:
                made[at:at] = made[max(0, at - 5) : at + 5]
            else:
                made[at] = fresh
        yield bytes(made)


@pytest.mark.parametrize(("name", "number"), PARTS)
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, name: str, number: int) -> None:
    case = CASES[name]
    file = case.files(tmp_path)[number]
    path = case.write(tmp_path)
    data = file.read_bytes()
    # No config makes a vocabulary unreadable, and these say nothing of the file beside them.
    is_optional = file.name == "tokenizer_config.json"
    is_ignored = case.load is not None and file.name.endswith("byteweld.json")
    rng = random.Random(f"20261119 {name} {number}")
    cuts = [data[:size] for size in range(0, len(data.rstrip(b"\n")), max(1, len(data) // 400))]
    refused = 0
    for damaged in (*cuts, *changes(rng, data)):
        file.write_bytes(damaged)
        for read in (formats.recognize, case.read):
            try:
                found = read(path)
            except ByteweldError as error:
                assert str(tmp_path) in str(error)
                refused += read == case.read
            else:
                assert read != case.read or isinstance(found, Vocabulary)
                if is_optional and isinstance(found, Vocabulary):
                    assert found.fingerprint == case.vocab.fingerprint
    if is_optional or is_ignored:
        assert not refused
    elif case.load is None:  # without a sidecar, some cuts only lose tokens
        assert refused >= len(cuts)
    else:
        assert refused


BAD_JSON = {
    b"": "expected JSON",
    b"[]": "expected a JSON object",
    b"null": "expected a JSON object",
    b"\xef\xbb\xbf{}": "expected JSON",
    b'{"a": NaN}': "NaN",
    b'{"a": -Infinity}': "Infinity",
    b'{"a": 1, "b": {"a": 2, "a": 2}}': "key 'a' is repeated",
    b'{"a": "\\ud800"}': "lone surrogate",
    b'{"a": %s}' % (b"9" * 5000): "digits",
    b"[" * 60_000: "nested too deep",
    b'{"a":' * 12_000: "nested too deep",
    b'{"\xc3\xa9": 1, oops}': "byte 10: expected JSON",
    b'{"\xc3\xa9": "\xff"}': "byte 8: expected UTF-8",
}


@pytest.mark.parametrize("name", CASES)
def test_bad_json_is_a_format_error_with_the_byte(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    path = case.write(tmp_path)
    for file in case.files(tmp_path):
        good = file.read_bytes()
        is_sidecar = file.name.endswith("byteweld.json")
        if not good.startswith(b"{") or file.name == "tokenizer_config.json":
            continue
        if is_sidecar if case.load else file.name == "vocab.json":  # not read, or its digest is
            continue
        for content, words in BAD_JSON.items():
            file.write_bytes(content)
            with pytest.raises(FormatError, match=words) as caught:
                case.read(path)
            assert caught.value.path == str(file)
            assert len(str(caught.value)) < len(str(file)) + 300
        file.write_bytes(good)


@pytest.mark.parametrize("name", ["huggingface, sidecar", "gpt2"])
def test_a_sidecar_belongs_to_the_files_as_they_were_saved(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    path = case.write(tmp_path)
    *main, sidecar = sorted(case.files(tmp_path), key=lambda file: "byteweld" in file.name)
    assert sidecar.exists()
    for file in main:
        good = file.read_bytes()
        file.write_bytes(good + b"\n")
        with pytest.raises(FormatError, match="belongs to"):
            case.read(path)
        file.write_bytes(good)


# ---------------------------------------------------------------------- saves


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", formats.FORMATS)
def test_nothing_is_replaced_without_overwrite(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    for number, target in enumerate(case.files(tmp_path)):
        folder = tmp_path / str(number)
        file = folder / target.relative_to(tmp_path)
        file.parent.mkdir(parents=True)
        (file.parent / "notes.txt").write_text("mine")
        file.write_text("mine")
        before = contents(folder)
        with pytest.raises(FileExistsError, match=file.name):
            case.write(folder)
        assert contents(folder) == before
        case.write(folder, overwrite=True)
        assert (
            contents(folder).keys()
            == {str(folder / target.relative_to(tmp_path)) for target in case.files(tmp_path)}
            | before.keys()
        )
        assert set(case.read(folder / case.name).tokens) == set(case.vocab.tokens)
        file.unlink()
        file.symlink_to("nowhere")
        with pytest.raises(FileExistsError):
            case.write(folder)
        file.unlink()
        file.mkdir()
        with pytest.raises(IsADirectoryError, match=file.name):
            case.write(folder, overwrite=True)


@pytest.mark.parametrize("name", CASES)
def test_a_failed_save_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = CASES[name]
    real, calls = os.fsync, 0

    def fail(descriptor: int) -> None:
        nonlocal calls
        calls -= 1
        if not calls:
            raise OSError(28, "no space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    new, old = tmp_path / "new", tmp_path / "old"
    new.mkdir()
    old.mkdir()
    path = case.write(old)
    for has_notes in (False, True):  # a folder with other files is not exchanged as a whole
        if has_notes and path.is_dir():
            (path / "notes.txt").write_text("mine")
        before = contents(tmp_path)
        for folder, overwrite in ((new, False), (old, True)):
            for number in range(1, len(case.files(folder)) + 1):
                calls = number
                with pytest.raises(OSError, match="no space left"):
                    case.write(folder, overwrite=overwrite)
                assert contents(tmp_path) == before
    assert not any(new.iterdir())
