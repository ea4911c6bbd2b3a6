"""load() with a cache: the same tokenizer, nothing believed, nothing in the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import byteweld
from byteweld import FormatError, formats, loading


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    texts = ["the cat sat on the mat, the cat", "low lower lowest"] * 5
    tok = byteweld.train(iter(texts), vocab_size=300, special_tokens=["<|end|>"])
    tok.save(folder / "small.json")
    tok.save(folder / "small.tiktoken")
    return folder


@pytest.fixture
def no_files(monkeypatch):
    """From here on, only what is kept can be loaded."""

    def forbid():
        def load(*args, **options):
            raise AssertionError("the file was read again")

        monkeypatch.setattr(formats, "load", load)

    return forbid


@pytest.mark.parametrize("name", ["small.json", "small.tiktoken"])
def test_what_is_kept_is_the_same_tokenizer(name, saved, tmp_path, no_files):
    plain = byteweld.load(saved / name)
    first = byteweld.load(saved / name, cache=tmp_path / "new" / "kept")
    no_files()
    second = byteweld.load(saved / name, cache=tmp_path / "new" / "kept")
    for tok in (first, second):
        assert tok.vocab == plain.vocab
        assert tok.vocab.merge_ids == plain.vocab.merge_ids
        assert tok.vocab.traits() == plain.vocab.traits()
        assert tok.name == plain.name
        text = "the lowest cat<|end|> ♥"
        assert tok.encode(text, allowed_special="all") == plain.encode(text, allowed_special="all")


def test_other_bytes_options_and_sidecars_are_kept_apart(saved, tmp_path):
    path = tmp_path / "ranks"
    path.write_bytes((saved / "small.tiktoken").read_bytes())
    kept = tmp_path / "kept"
    one = byteweld.load(path, cache=kept, pattern="gpt2", special_tokens={"<|x|>": 900})
    two = byteweld.load(path, cache=kept, pattern="gpt2", special_tokens={"<|y|>": 900})
    three = byteweld.load(path, cache=kept, pattern="cl100k", special_tokens={"<|x|>": 900})
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:-2]) + b"\n")
    four = byteweld.load(path, cache=kept, pattern="gpt2", special_tokens={"<|x|>": 900})
    assert len({tok.vocab.fingerprint for tok in (one, two, three, four)}) == 4
    assert len(list(kept.iterdir())) == 4
    with pytest.raises(FormatError, match="holds no pattern"):
        byteweld.load(path, cache=kept)
    sidecar = path.with_name("ranks.byteweld.json")
    sidecar.write_bytes((saved / "small.tiktoken.byteweld.json").read_bytes())
    path.write_bytes((saved / "small.tiktoken").read_bytes())
    assert byteweld.load(path, cache=kept).vocab == byteweld.load(saved / "small.json").vocab


def test_a_damaged_form_is_passed_over_and_made_again(saved, tmp_path):
    plain = byteweld.load(saved / "small.json")
    byteweld.load(saved / "small.json", cache=tmp_path)
    (kept,) = tmp_path.iterdir()
    data = kept.read_bytes()
    damages = [data[:length] for length in (0, 7, 30, len(data) // 2, len(data) - 1)]
    for place in range(0, len(data), len(data) // 40):
        damages.append(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
    for damage in [*damages, data + b"x", b"foreign"]:
        kept.write_bytes(damage)
        assert loading._read(kept) is None
        assert byteweld.load(saved / "small.json", cache=tmp_path).vocab == plain.vocab
        assert kept.read_bytes() == data


def test_a_form_that_was_made_up_is_checked_like_any_vocabulary(saved, tmp_path):
    import hashlib

    byteweld.load(saved / "small.json", cache=tmp_path)
    (kept,) = tmp_path.iterdir()
    head, _, table = kept.read_bytes()[len(loading._MAGIC) + 32 :].partition(b"\n")
    for payload in (
        head + b"\n",
        b"[]\n" + table,
        b"{}\n" + table,
        head.replace(b"steps", b"stops") + b"\n" + table,
        head + b"\n" + table[:-1] + b"\x77",
        head.replace(b'"alphabet": "bytes"', b'"alphabet": "runes"') + b"\n" + table,
    ):
        kept.write_bytes(loading._MAGIC + hashlib.sha256(payload).digest() + payload)
        assert loading._read(kept) is None, payload[:80]


def test_a_file_that_changes_while_it_is_read_is_not_kept(saved, tmp_path, monkeypatch):
    path = tmp_path / "changing.json"
    path.write_bytes((saved / "small.json").read_bytes())
    plain_load = formats.load

    def load(*args, **options):
        vocab = plain_load(*args, **options)
        path.write_bytes(path.read_bytes() + b"\n")
        return vocab

    monkeypatch.setattr(formats, "load", load)
    byteweld.load(path, cache=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_only_so_many_are_kept_and_the_oldest_go(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "MAX_KEPT", 3)
    (tmp_path / "mine.txt").write_text("not ours")
    path = saved / "small.tiktoken"
    for n in range(5):
        byteweld.load(path, cache=tmp_path, pattern=None, special_tokens={"<|x|>": 900 + n})
        for file in tmp_path.glob("*.byteweld"):
            stat = file.stat()
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns - 10**9))
    kept = [loading._read(file) for file in tmp_path.glob("*.byteweld")]
    assert sorted(vocab.special_tokens["<|x|>"] for vocab in kept) == [902, 903, 904]
    assert (tmp_path / "mine.txt").exists()


def test_a_folder_that_cannot_be_written_keeps_nothing(saved, tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    plain = byteweld.load(saved / "small.json")
    assert byteweld.load(saved / "small.json", cache=file).vocab == plain.vocab
    assert file.read_text() == "no folder"


def test_what_is_missing_or_wrong_is_said_as_without_a_cache(tmp_path):
    with pytest.raises(FileNotFoundError):
        byteweld.load(tmp_path / "nowhere.json", cache=tmp_path)
    (tmp_path / "odd").write_bytes(b"odd")
    with pytest.raises(FormatError, match="format of this file is unknown"):
        byteweld.load(tmp_path / "odd", cache=tmp_path)
    with pytest.raises(TypeError, match="unknown option"):
        byteweld.load(tmp_path / "odd", cache=tmp_path, format="bpe1", spam=object())


def test_formats_of_several_files_are_loaded_and_not_kept(saved, tmp_path):
    tok = byteweld.load(saved / "small.json")
    tok.save(tmp_path / "pair", format="gpt2")
    assert byteweld.load(tmp_path / "pair", cache=tmp_path / "kept").vocab == tok.vocab
    assert not (tmp_path / "kept").exists()
