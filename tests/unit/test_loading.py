"""load(): by name, compressed, and with a cache that is never trusted."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import lzma
import os
import random
import stat
from pathlib import Path

import pytest

import byteweld
from byteweld import (
    ByteweldError,
    FormatError,
    Tokenizer,
    encodings,
    formats,
    known_encodings,
    loading,
)
from byteweld.patterns import resolve_pattern
from tests.helpers.programs import run_python


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
    """From here on, only what is cached can be loaded."""

    def forbid():
        def load(*args, **options):
            raise AssertionError("the file was read again")

        monkeypatch.setattr(formats, "load", load)

    return forbid


@pytest.mark.parametrize("name", ["small.json", "small.tiktoken"])
def test_what_is_cached_is_the_same_tokenizer(name, saved, tmp_path, no_files):
    plain = byteweld.load(saved / name)
    first = byteweld.load(saved / name, cache=tmp_path / "new" / "cache")
    no_files()
    second = byteweld.load(saved / name, cache=tmp_path / "new" / "cache")
    for tok in (first, second):
        assert tok.vocab == plain.vocab
        assert tok.vocab.merge_ids == plain.vocab.merge_ids
        assert tok.vocab.traits() == plain.vocab.traits()
        assert tok.name == plain.name
        text = "the lowest cat<|end|> ♥"
        assert tok.encode(text, allowed_special="all") == plain.encode(text, allowed_special="all")


@pytest.mark.parametrize(
    ("is_cached", "slow"),
    [
        (False, {"byteweld._places", "hashlib", "inspect", "json", "numpy", "tempfile"}),
        (True, {"byteweld.formats._sidecar", "base64", "inspect", "numpy", "tempfile"}),
    ],
)
def test_loading_imports_no_slow_module_that_it_does_not_need(is_cached, slow, saved, tmp_path):
    options = {"cache": str(tmp_path / "cache")} if is_cached else {}
    options |= {"pattern": "gpt2", "special_tokens": {}}
    path = str(tmp_path / "ranks.tiktoken")
    Path(path).write_bytes((saved / "small.tiktoken").read_bytes())
    byteweld.load(path, **options)
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import byteweld\n"
        f"assert byteweld.load({path!r}, **{options!r}).encode('cat')\n"
        "print(*(set(sys.modules) - before))\n"
    )
    done = run_python("-c", code)
    found = set(done.stdout.split())
    assert "byteweld.tokenizer" in found
    assert not found & slow


def test_other_bytes_options_and_sidecars_are_cached_separately(saved, tmp_path):
    path = tmp_path / "ranks"
    path.write_bytes((saved / "small.tiktoken").read_bytes())
    cached = tmp_path / "cache"
    one = byteweld.load(path, cache=cached, pattern="gpt2", special_tokens={"<|x|>": 900})
    two = byteweld.load(path, cache=cached, pattern="gpt2", special_tokens={"<|y|>": 900})
    three = byteweld.load(path, cache=cached, pattern="cl100k", special_tokens={"<|x|>": 900})
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:-2]) + b"\n")
    four = byteweld.load(path, cache=cached, pattern="gpt2", special_tokens={"<|x|>": 900})
    assert len({tok.vocab.fingerprint for tok in (one, two, three, four)}) == 4
    assert len(list(cached.iterdir())) == 4
    with pytest.raises(FormatError, match="holds no pattern"):
        byteweld.load(path, cache=cached)
    sidecar = path.with_name("ranks.byteweld.json")
    sidecar.write_bytes((saved / "small.tiktoken.byteweld.json").read_bytes())
    path.write_bytes((saved / "small.tiktoken").read_bytes())
    assert byteweld.load(path, cache=cached).vocab == byteweld.load(saved / "small.json").vocab


def test_a_damaged_file_is_ignored_and_replaced(saved, tmp_path):
    plain = byteweld.load(saved / "small.json")
    byteweld.load(saved / "small.json", cache=tmp_path)
    (cached,) = tmp_path.iterdir()
    data = cached.read_bytes()
    damages = [data[:length] for length in (0, 7, 30, len(data) // 2, len(data) - 1)]
    for at in range(0, len(data), len(data) // 40):
        damages.append(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
    for damage in [*damages, data + b"x", b"foreign"]:
        cached.write_bytes(damage)
        assert loading._read(cached) is None
        assert byteweld.load(saved / "small.json", cache=tmp_path).vocab == plain.vocab
        assert loading._read(cached) == plain.vocab


def test_a_forged_file_is_checked_like_any_vocabulary(saved, tmp_path):
    byteweld.load(saved / "small.json", cache=tmp_path)
    (cached,) = tmp_path.iterdir()
    head, table = split_compiled(cached.read_bytes())
    last_merge = len(table) - layout_bytes(table) - 1
    for payload in (
        head + b"\n",
        b"[]\n" + table,
        b"{}\n" + table,
        head.replace(b"steps", b"stops") + b"\n" + table,
        head + b"\n" + table[:last_merge] + b"\x77" + table[last_merge + 1 :],
        head + b"\n" + table[:-1],
        head.replace(b'"alphabet": "bytes"', b'"alphabet": "runes"') + b"\n" + table,
    ):
        cached.write_bytes(loading._sign(cached, payload) + payload)
        assert loading._read(cached) is None, payload[:80]


def split_compiled(data):
    head, _, table = data[len(loading._MAGIC) + 32 :].partition(b"\n")
    return head, table


def layout_bytes(table):
    """The length of the last part, the layout of pairs; the header has the lengths of all four."""
    return int.from_bytes(table[12:16], "little")


def test_a_forged_layout_of_pairs_changes_no_id(saved, tmp_path):
    plain = byteweld.load(saved / "small.json")
    byteweld.load(saved / "small.json", cache=tmp_path)
    (cached,) = tmp_path.iterdir()
    head, table = split_compiled(cached.read_bytes())
    text = "the cat sat on the mat, the rat, the hat " * 4
    for at in range(len(table) - layout_bytes(table), len(table)):
        for changed in (0, 0xFF, table[at] ^ 1):
            payload = head + b"\n" + table[:at] + bytes([changed]) + table[at + 1 :]
            cached.write_bytes(loading._sign(cached, payload) + payload)
            vocab = loading._read(cached)  # None if the number of slots is impossible
            if vocab is not None:
                assert vocab == plain.vocab
                assert Tokenizer(vocab).encode(text) == plain.encode(text)


def test_a_forged_file_never_crashes(saved, tmp_path):
    byteweld.load(saved / "small.json", cache=tmp_path)
    (cached,) = tmp_path.iterdir()
    payload = cached.read_bytes()[len(loading._MAGIC) + 32 :]
    draw = random.Random(0)
    accepted = 0
    for _ in range(300):
        forged = bytearray(payload)
        for _ in range(draw.randint(1, 4)):
            at = draw.choice(
                (draw.randrange(len(forged)), payload.index(b"\n") + draw.randint(1, 40))
            )
            forged[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        cached.write_bytes(loading._sign(cached, forged) + forged)
        vocab = loading._read(cached)
        if vocab is not None:
            accepted += 1
            tok = Tokenizer(vocab)
            with contextlib.suppress(ByteweldError, ValueError):
                tok.decode_bytes(tok.encode("the cat sat on the mat " * 4, disallowed_special=()))
    assert accepted  # a token with other bytes is a valid vocabulary


def test_a_file_of_another_vocabulary_is_not_accepted(saved, tmp_path):
    path = saved / "small.tiktoken"
    first = byteweld.load(path, cache=tmp_path / "c", pattern=None, special_tokens={"<|x|>": 900})
    (made,) = (tmp_path / "c").iterdir()
    byteweld.load(path, cache=tmp_path / "c", pattern=None, special_tokens={"<|y|>": 901})
    (second,) = set((tmp_path / "c").iterdir()) - {made}
    second.write_bytes(made.read_bytes())
    assert loading._read(made) == first.vocab
    assert loading._read(second) is None
    tok = byteweld.load(path, cache=tmp_path / "c", pattern=None, special_tokens={"<|y|>": 901})
    assert dict(tok.vocab.special_tokens) == {"<|y|>": 901}


def test_the_folder_is_private(saved, tmp_path):
    folder = tmp_path / "deep" / "cache"
    byteweld.load(saved / "small.json", cache=folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (cached,) = folder.iterdir()
    for mode in (0o770, 0o702, 0o1777):
        folder.chmod(mode)
        with pytest.raises(PermissionError, match=rf"cache has the mode {mode:04o}.*chmod 700"):
            byteweld.load(saved / "small.json", cache=folder)
    folder.chmod(0o755)
    byteweld.load(saved / "small.json", cache=folder)
    if os.geteuid() == 0:
        os.chown(cached, 12345, 12345)
        assert loading._read(cached) is None
        os.chown(folder, 12345, 12345)
        with pytest.raises(PermissionError, match="cache belongs to user 12345"):
            byteweld.load(saved / "small.json", cache=folder)


@pytest.mark.timeout(20)
def test_a_cached_file_that_is_not_a_file_is_ignored(saved, tmp_path):
    plain = byteweld.load(saved / "small.json", cache=tmp_path)
    (cached,) = tmp_path.iterdir()
    cached.unlink()
    cached.symlink_to("/dev/zero")
    assert byteweld.load(saved / "small.json", cache=tmp_path).vocab == plain.vocab
    assert not cached.is_symlink()  # replaced
    cached.unlink()
    os.mkfifo(cached)
    assert byteweld.load(saved / "small.json", cache=tmp_path).vocab == plain.vocab


def test_a_file_that_changes_while_it_is_read_is_not_cached(saved, tmp_path, monkeypatch):
    path = tmp_path / "changing.json"
    path.write_bytes((saved / "small.json").read_bytes())
    plain_load = formats.load

    def load(*args, **options):
        vocab = plain_load(*args, **options)
        path.write_bytes(path.read_bytes() + b"\n")
        return vocab

    monkeypatch.setattr(formats, "load", load)
    byteweld.load(path, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_the_cache_is_bounded_and_the_oldest_files_go(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "MAX_CACHED", 3)
    (tmp_path / "mine.txt").write_text("not ours")
    path = saved / "small.tiktoken"
    for n in range(5):
        byteweld.load(path, cache=tmp_path, pattern=None, special_tokens={"<|x|>": 900 + n})
        for file in tmp_path.glob("*.byteweld"):
            stat = file.stat()
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns - 10**9))
    cached = [loading._read(file) for file in tmp_path.glob("*.byteweld")]
    assert sorted(vocab.special_tokens["<|x|>"] for vocab in cached) == [902, 903, 904]
    assert (tmp_path / "mine.txt").exists()


def test_a_folder_that_cannot_be_written_caches_nothing(saved, tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    plain = byteweld.load(saved / "small.json")
    assert byteweld.load(saved / "small.json", cache=file).vocab == plain.vocab
    assert file.read_text() == "no folder"


def test_errors_are_the_same_as_without_a_cache(tmp_path):
    with pytest.raises(FileNotFoundError):
        byteweld.load(tmp_path / "nowhere.json", cache=tmp_path)
    (tmp_path / "odd").write_bytes(b"odd")
    with pytest.raises(FormatError, match="format of this file is unknown"):
        byteweld.load(tmp_path / "odd", cache=tmp_path)
    with pytest.raises(TypeError, match="unknown option"):
        byteweld.load(tmp_path / "odd", cache=tmp_path, format="bpe1", spam=object())


def test_formats_of_several_files_are_loaded_and_not_cached(saved, tmp_path):
    tok = byteweld.load(saved / "small.json")
    tok.save(tmp_path / "pair", format="gpt2")
    assert byteweld.load(tmp_path / "pair", cache=tmp_path / "cache").vocab == tok.vocab
    assert not (tmp_path / "cache").exists()


# ---------------------------------------------------------------------- names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The one folder in which encodings are searched; also the working directory's parent."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setenv("BYTEWELD_PATH", str(tmp_path / "encodings"))
    (tmp_path / "encodings").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "encodings"


def test_a_name_is_an_encoding_unless_there_is_such_a_file(saved, folder):
    tok = byteweld.load(saved / "small.json")
    tok.save(folder / "mine.json")
    assert byteweld.load("mine") is byteweld.get_encoding("mine")
    assert byteweld.load(Path("mine"), cache=folder / "cache").vocab == tok.vocab
    other = tok.cut(260)
    other.save("mine", format="huggingface")
    assert byteweld.load("mine").vocab == other.vocab


def test_an_encoding_takes_no_options(saved, folder):
    byteweld.load(saved / "small.json").save(folder / "mine.json")
    with pytest.raises(TypeError, match=r"'mine' is the name of .* drop format, pattern"):
        byteweld.load("mine", format="tiktoken", pattern="gpt2")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cl10k_base", "no such file, and no encoding of that name; did you mean 'cl100k_base'"),
        ("mien", "did you mean 'mine'"),
        ("CL100K_BASE", "did you mean 'cl100k_base'"),
        ("gpt-4o", "the encoding of that model is 'o200k_base'"),
        ("", "'': no such file; the name is empty"),
        ("gpt4", "the encoding of that model is 'cl100k_base'"),
        ("nothing-like-it", "no encoding of that name; `byteweld list` shows the names"),
        ("cl100k_base", "no rank file for the encoding 'cl100k_base'"),
        ("cl100k_base.json", "No such file or directory: 'cl100k_base.json'"),
        ("./cl10k_base", "No such file or directory: 'cl10k_base'"),
        ("../encodings/cl10k_base", "No such file or directory: '../encodings/cl10k_base'"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(saved, folder, name, words, monkeypatch):
    monkeypatch.setattr(encodings, "_loaded", {})  # what other tests have loaded
    byteweld.load(saved / "small.json").save(folder / "mine.json")
    with pytest.raises(FileNotFoundError, match=words):
        byteweld.load(name)


# ---------------------------------------------------------------------- compressed files


def zstd(content: bytes) -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow, which writes zstd, is not installed")
    compressed: bytes = pyarrow.compress(content, codec="zstd", asbytes=True)
    return compressed


COMPRESSIONS = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd}


@pytest.mark.parametrize("suffix", COMPRESSIONS)
@pytest.mark.parametrize("name", ["small.json", "small.tiktoken"])
def test_a_compressed_file_is_the_same_tokenizer(saved, tmp_path, name, suffix):
    plain = byteweld.load(saved / "small.json")
    plain.save(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(COMPRESSIONS[suffix](content))
    for options in ({}, {"cache": tmp_path / "cache"}, {"cache": tmp_path / "cache"}):
        tok = byteweld.load(path, **options)
        assert tok.vocab.fingerprint == plain.vocab.fingerprint
        assert tok.name == "small" and tok.training == plain.training


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_a_damaged_compressed_file_is_a_format_error(saved, tmp_path, suffix):
    data = COMPRESSIONS[suffix]((saved / "small.json").read_bytes())
    path = tmp_path / f"small.json{suffix}"
    for length in (len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(FormatError, match="cannot be decompressed") as caught:
            byteweld.load(path)
        assert caught.value.path == str(path)


def test_a_compressed_file_has_bounds(saved, tmp_path, monkeypatch):
    path = tmp_path / "small.json.gz"
    path.write_bytes(gzip.compress((saved / "small.json").read_bytes() + b" " * 10_000))
    monkeypatch.setattr("byteweld.formats._json.MAX_FILE_BYTES", 10_000)
    with pytest.raises(FormatError, match="it holds more than 10000 bytes"):
        byteweld.load(path)


# ---------------------------------------------------------------------- well-known rank files


def test_a_well_known_rank_file_needs_no_pattern(saved, tmp_path, monkeypatch):
    plain = byteweld.load(saved / "small.json").vocab
    path = tmp_path / "ranks"
    path.write_bytes((saved / "small.tiktoken").read_bytes())
    with pytest.raises(FormatError, match="holds no pattern"):
        byteweld.load(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    settings = known_encodings.RankSettings("o200k", plain.special_tokens)
    monkeypatch.setattr(known_encodings, "RANK_SETTINGS", {digest: settings})
    assert byteweld.load(path).vocab == plain
    assert byteweld.load(path, pattern="gpt2").vocab.pattern == byteweld.PATTERNS["gpt2"]
    assert byteweld.load(path, special_tokens={}).vocab.special_tokens == {}
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert byteweld.load(path).vocab == plain


def test_what_is_known_of_rank_files_is_what_the_shared_data_says(shared):
    index = json.loads((shared / "vocabs" / "index.json").read_bytes())
    entries = {entry["name"]: entry for entry in index["vocabs"]}
    names = [*known_encodings.RANK_FILES, "llama3", "qwen", "qwen3_6"]
    assert {entries[name]["sha256"] for name in names} == set(known_encodings.RANK_SETTINGS)
    for name in names:
        settings = known_encodings.RANK_SETTINGS[entries[name]["sha256"]]
        assert settings.special_tokens == entries[name]["special_tokens"]
        assert byteweld.PATTERNS[settings.pattern] == resolve_pattern(entries[name]["pat_str"])


def test_a_real_rank_file_is_loaded_compressed_and_without_options(shared):
    tok = byteweld.load(shared / "vocabs" / "tiktoken" / "r50k_base.tiktoken.gz")
    assert tok.name == "r50k_base" and tok.eot_token == 50256
    assert tok.encode("Hello, world!") == [15496, 11, 995, 0]


def test_a_name_that_is_too_long_is_a_missing_file():
    for name in ("x" * 256, "é" * 200, "folder/" + "x" * 5000):
        with pytest.raises(FileNotFoundError, match="no such file; the name is too long"):
            byteweld.load(name)
