"""The table of formats: recognition, formats by suffix, checks before writing, and options."""

from __future__ import annotations

import gzip
import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld import formats, patterns
from byteweld.errors import FormatError, UnsupportedError
from tests.helpers.vocabularies import AB, EXTRAS, holder


def test_every_module_keeps_the_contract() -> None:
    for format in formats.FORMATS.values():
        module = importlib.import_module(f"byteweld.formats.{format.module}")
        assert format.holds <= set(EXTRAS)
        assert all(callable(getattr(module, name)) for name in ("load", "check", "render"))
        assert set(format.needs) <= set(getattr(module, "OPTIONS", ()))
        for head in (b"", b"{", b"\xff" * 100, b'{"a":' * 1000, bytes(range(256))):
            assert module.recognize(Path("no-such-file"), head) is False


@pytest.mark.parametrize("name", sorted(formats.FORMATS))
def test_each_format_is_recognized_by_content_under_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "odd.name"
    vocab = holder(name)
    formats.save(vocab, path, format=name)
    assert formats.recognize(path) == name
    assert formats.recognize(str(path)) == name
    assert set(formats.load(path).tokens) == set(vocab.tokens)


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("a.tiktoken", "tiktoken"),
        ("b.json", "huggingface"),
        ("c.bpe1", "bpe1"),
        ("D.JSON", None),
        ("my-tekken.json", "tekken"),
    ],
)
def test_the_name_of_a_new_file_says_its_format(
    tmp_path: Path, file_name: str, name: str | None
) -> None:
    path = tmp_path / file_name
    formats.save(holder(name or "huggingface"), path)
    assert formats.recognize(path) == (name or "huggingface")


def test_a_folder_needs_a_format(tmp_path: Path) -> None:
    for path in (str(tmp_path), tmp_path, f"{tmp_path}/new/"):
        with pytest.raises(UnsupportedError, match="format= 'ck' or 'gpt2'"):
            formats.save(AB, path)
    formats.save(AB, f"{tmp_path}/new/", format="gpt2")
    assert formats.load(tmp_path / "new") == AB


def test_a_name_without_a_known_suffix_needs_a_format(tmp_path: Path) -> None:
    with pytest.raises(
        UnsupportedError, match=r"'tokens.bin' does not imply a format; pass format="
    ):
        formats.save(AB, tmp_path / "tokens.bin")


def test_an_unknown_file_is_a_format_error_that_lists_the_formats(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_bytes(b"roses are red\n")
    with pytest.raises(
        FormatError, match=r"expected one of .*bpe1.*huggingface.*tiktoken"
    ) as caught:
        formats.load(path)
    assert caught.value.path == str(path)
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    with pytest.raises(FormatError, match=r"this folder .*pass its path .*tokenizer\.json"):
        formats.recognize(tmp_path)


def test_a_missing_file_stays_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        formats.load(tmp_path / "nowhere.json")
    for name in formats.FORMATS:
        with pytest.raises(FileNotFoundError):
            formats.load(tmp_path / "nowhere", format=name)


def test_an_unknown_format_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="did you mean 'tiktoken'"):
        formats.load(tmp_path, format="tiktokn")
    with pytest.raises(UnsupportedError, match="did you mean 'huggingface'"):
        formats.save(AB, tmp_path / "x", format="hugging_face")


def test_an_unknown_option_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    path = tmp_path / "a.tiktoken"
    formats.save(AB, path)
    options: dict[str, Any] = {"patern": None}
    with pytest.raises(TypeError, match=r"unknown option 'patern'.*did you mean 'pattern'"):
        formats.load(path, **options)
    with pytest.raises(TypeError, match="it takes none"):
        formats.save(AB, tmp_path / "b.json", **options)
    assert formats.load(path, pattern="o200k").pattern == patterns.O200K


def test_importing_the_table_imports_no_format() -> None:
    code = (
        "import sys, byteweld.formats as f\n"
        "names = {f'byteweld.formats.{one.module}' for one in f.FORMATS.values()}\n"
        "assert not names & set(sys.modules), 'a format was imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_a_format_cannot_hold_is_refused_by_name(tmp_path: Path, extra: str) -> None:
    vocab = EXTRAS[extra]
    assert vocab.extras == (extra,)
    holders = [name for name, format in formats.FORMATS.items() if extra in format.holds]
    for name in formats.FORMATS:
        path = tmp_path / name
        if name in holders:
            formats.save(vocab, path, format=name)
            assert formats.load(path) == vocab
        else:
            with pytest.raises(
                UnsupportedError, match=f"{name!r} cannot hold .*: {extra}"
            ) as caught:
                formats.save(vocab, path, format=name)
            assert all(repr(holder) in str(caught.value) for holder in holders)
            assert not path.exists()
            with pytest.raises(UnsupportedError) as checked:
                formats.check(vocab, path, format=name)
            assert str(checked.value) == str(caught.value)


@pytest.mark.parametrize("name", sorted(formats.FORMATS))
def test_check_agrees_with_save_and_writes_nothing(tmp_path: Path, name: str) -> None:
    for number, other in enumerate(sorted(formats.FORMATS)):
        vocab, path = holder(other), tmp_path / str(number)
        outcomes = []
        for write in (formats.check, formats.save):
            try:
                write(vocab, path, format=name)
                outcomes.append("")
            except UnsupportedError as error:
                outcomes.append(str(error))
            if write is formats.check:
                assert not path.exists()
        assert outcomes[0] == outcomes[1]
        assert other != name or not outcomes[0]


@pytest.mark.parametrize("name", sorted(formats.FORMATS))
def test_files_lists_what_save_writes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "out"
    listed = formats.files(holder(name), path, format=name)
    formats.save(holder(name), path, format=name)
    assert sorted(listed) == sorted(file for file in tmp_path.rglob("*") if file.is_file())


def test_check_and_files_take_the_format_from_the_name(tmp_path: Path) -> None:
    formats.check(AB, tmp_path / "a.json")
    assert formats.files(AB, str(tmp_path / "a.json")) == [tmp_path / "a.json"]
    with pytest.raises(UnsupportedError, match="BPE1 cannot hold this vocabulary"):
        formats.check(AB, tmp_path / "a.bpe1")
    with pytest.raises(UnsupportedError, match="does not imply a format"):
        formats.files(AB, tmp_path / "a.bin")


def test_a_sidecar_that_saving_would_remove_is_listed(tmp_path: Path) -> None:
    stale = tmp_path / "a.json.byteweld.json"
    stale.write_bytes(b"{}")
    assert formats.files(AB, tmp_path / "a.json") == [tmp_path / "a.json", stale]


@pytest.mark.parametrize("recipe", byteweld.RECIPES)
def test_what_is_refused_before_the_first_merge_is_refused_after_training(recipe: str) -> None:
    text = "low lower lowest newer wider"

    def refused(vocab_size: int) -> set[str]:
        found = set()
        vocab = byteweld.train(documents=[text], vocab_size=vocab_size, recipe=recipe).vocab
        for name in formats.FORMATS:
            try:
                formats.check(vocab, "out", format=name)
            except UnsupportedError:
                found.add(name)
        return found

    smallest = byteweld.RECIPES[recipe].minimum_size
    assert refused(smallest) == refused(smallest + 10) != set(formats.FORMATS)


def test_recognizing_a_compressed_file_decompresses_only_its_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = tmp_path / "bomb.tiktoken.gz"
    bomb.write_bytes(gzip.compress(b"\0" * (8 << 20)))
    monkeypatch.setattr("byteweld.formats._json.MAX_FILE_BYTES", 1 << 20)
    with pytest.raises(byteweld.FormatError, match="format of this file is unknown"):
        formats.recognize(bomb)
    damaged = tmp_path / "damaged.tiktoken.gz"
    damaged.write_bytes(gzip.compress(b"abc " * 1000)[:20])
    with pytest.raises(byteweld.FormatError, match="cannot be decompressed"):
        formats.recognize(damaged)


@pytest.mark.parametrize("name", sorted(formats.FORMATS))
def test_every_file_of_every_format_has_a_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "x"
    formats.save(holder(name), path, format=name)
    monkeypatch.setattr("byteweld.formats._json.MAX_FILE_BYTES", 1 << 20)
    monkeypatch.setattr("byteweld.formats.ck_binary.MAX_FILE_BYTES", 1 << 20)
    monkeypatch.setattr("byteweld.formats._sidecar.MAX_BESIDE_BYTES", 1 << 20)
    for file in formats.files(holder(name), path, name):
        kept = file.read_bytes()
        with file.open("ab") as grown:
            grown.truncate(2 << 20)
        with pytest.raises(FormatError, match="has 2097152 bytes; expected") as caught:
            formats.load(path, format=name)
        assert caught.value.path == str(file)
        file.write_bytes(kept)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", sorted(formats.FORMATS))
def test_a_file_that_never_ends_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x"
    formats.save(holder(name), path, format=name)
    for file in formats.files(holder(name), path, name):
        kept = file.read_bytes()
        for put in (os.mkfifo, lambda file: file.symlink_to("/dev/zero")):
            file.unlink()
            put(file)
            with pytest.raises(FormatError, match="expected a"):
                formats.load(path, format=name)
            if file == path:
                with pytest.raises(FormatError, match="expected a regular file"):
                    formats.load(path)
        file.unlink()
        file.write_bytes(kept)


def test_a_report_or_config_that_never_ends_is_ignored(tmp_path: Path) -> None:
    tok = byteweld.train(iter(["the cat sat"] * 5), vocab_size=260)
    path = tmp_path / "tokenizer.json"
    tok.save(path)
    for beside in ("tokenizer.training.json", "tokenizer_config.json"):
        (tmp_path / beside).unlink(missing_ok=True)
        (tmp_path / beside).symlink_to("/dev/zero")
    again = byteweld.load(path)
    assert (again, again.training) == (tok, None)
