"""Encodings by name: where files are searched, what is checked, what is cached."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import byteweld
from byteweld import FormatError, Tokenizer, encodings
from byteweld.formats._json import MAX_FILE_BYTES

RANKS = {bytes([byte]): byte for byte in range(256)}
END = "<|endoftext|>"


@pytest.fixture(autouse=True)
def alone(monkeypatch, no_network, tmp_path):
    """No folders, no cache, nothing loaded, no network."""

    monkeypatch.setattr(encodings, "_loaded", {})
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "no cache"))
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.delenv("BYTEWELD_PATH", raising=False)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A small public encoding for tests, and its rank file."""
    tok = Tokenizer.from_ranks(RANKS | {b"ab": 256}, pattern="gpt2", special_tokens={END: 300})
    file = tmp_path / "tiny file"
    tok.save(file, format="tiktoken")
    data = file.read_bytes()
    public = encodings.PublicEncoding("tiny_ranks", "gpt2", {END: 300})
    monkeypatch.setattr(encodings, "PUBLIC_ENCODINGS", {"tiny": public, "other": public})
    monkeypatch.setattr(encodings, "RANK_FILES", {"tiny_ranks": hashlib.sha256(data).hexdigest()})
    return tok, data


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def search(monkeypatch, *folders):
    monkeypatch.setenv("BYTEWELD_PATH", os.pathsep.join(map(str, folders)))


# ---------------------------------------------------------------------- public encodings


@pytest.mark.parametrize("name", ["tiny.tiktoken", "tiny_ranks.tiktoken"])
def test_a_public_encoding_is_its_rank_file_in_any_folder(name, tiny, monkeypatch, tmp_path):
    tok, data = tiny
    put(tmp_path / "b" / name, data)
    search(monkeypatch, tmp_path / "nowhere", tmp_path / "a", "", tmp_path / "b")
    found = byteweld.get_encoding("tiny")
    assert found == tok and found.name == "tiny"
    assert found.vocab.pattern == tok.vocab.pattern and found.eot_token == 300


def cache_name(address):
    base = "https://openaipublic.blob.core.windows.net/"
    return hashlib.sha1((base + address).encode()).hexdigest()


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", "TMPDIR"])
def test_a_public_encoding_is_found_in_tiktokens_cache(variable, tiny, monkeypatch, tmp_path):
    import tempfile

    tok, data = tiny
    for other in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "cache"))
    folder = tmp_path / "cache"
    if variable == "TMPDIR":
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        folder = folder / "data-gym-cache"
    put(folder / cache_name("encodings/tiny_ranks.tiktoken"), data)
    assert byteweld.get_encoding("tiny") == tok


def test_an_empty_cache_name_disables_the_cache(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path))
    put(tmp_path / cache_name("encodings/tiny_ranks.tiktoken"), tiny[1])
    with pytest.raises(FileNotFoundError, match="is disabled"):
        byteweld.get_encoding("tiny")


def test_places_are_searched_in_order(tiny, monkeypatch, tmp_path):
    """BYTEWELD_PATH, byteweld's folder, tiktoken's cache: the first file counts, even a bad one."""
    search(monkeypatch, tmp_path / "path")
    monkeypatch.setenv("BYTEWELD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    cached = put(tmp_path / "cache" / cache_name("encodings/tiny_ranks.tiktoken"), tiny[1])
    own = put(tmp_path / "home" / "vocabularies" / "tiny.tiktoken", tiny[1])
    given = put(tmp_path / "path" / "tiny_ranks.tiktoken", b"YQ== 0\n")
    for path, place in [
        (given, "BYTEWELD_PATH"),
        (own, "byteweld's folder"),
        (cached, "tiktoken's cache"),
    ]:
        found = encodings.find_encodings()[0]
        assert (found.name, found.path, found.place) == ("tiny", path, place)
        if path == given:
            with pytest.raises(FormatError, match="damaged"):
                byteweld.get_encoding("tiny")
        path.unlink()
    assert encodings.find_encodings() == []


def test_your_own_folder_comes_before_byteweld_s(mine, monkeypatch, tmp_path):
    monkeypatch.setenv("BYTEWELD_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "vocabularies").mkdir(parents=True)
    mine.save(tmp_path / "home" / "vocabularies" / "mine.json")
    assert byteweld.get_encoding("mine") == mine
    other = Tokenizer.from_ranks(RANKS, pattern=None)
    other.save(tmp_path / "mine.json")
    search(monkeypatch, tmp_path)
    assert byteweld.get_encoding("mine") == other


def test_a_rank_file_with_other_contents_is_refused(tiny, monkeypatch, tmp_path):
    _, data = tiny
    for name in ("tiny.tiktoken", cache_name("encodings/tiny_ranks.tiktoken")):
        file = put(tmp_path / "x" / name, data + b"YWJj 257\n")
        search(monkeypatch, tmp_path / "x")
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "x"))
        with pytest.raises(FormatError, match="damaged or a different file") as caught:
            byteweld.get_encoding("tiny")
        assert caught.value.path == str(file)
        assert hashlib.sha256(data).hexdigest() in str(caught.value)
        file.unlink()


def test_a_missing_rank_file_is_an_error_that_lists_where_it_was_searched(
    tiny, monkeypatch, tmp_path
):
    search(monkeypatch, tmp_path / "one", tmp_path / "two")
    with pytest.raises(FileNotFoundError) as caught:
        byteweld.get_encoding("tiny")
    for words in ("tiny_ranks.tiktoken", "one", "two", "no cache"):
        assert words in str(caught.value)


def test_the_error_for_a_missing_rank_file_shows_the_command_that_downloads_it():
    for name in encodings.PUBLIC_ENCODINGS:
        with pytest.raises(FileNotFoundError, match=f"; run `byteweld fetch {name}` to download"):
            byteweld.get_encoding(name)
        with pytest.raises(FileNotFoundError, match=f"`byteweld fetch {name}`"):
            byteweld.load(name)
    with pytest.raises(ValueError, match="`byteweld fetch qwen3`"):
        byteweld.get_encoding("qwen3")
    with pytest.raises(FileNotFoundError, match="`byteweld fetch o200k_base`"):
        byteweld.encoding_for_model("gpt-4o")


def test_the_name_of_a_model_suggests_its_encoding_and_the_command_if_it_is_not_here(
    tiny, monkeypatch, tmp_path
):
    monkeypatch.setattr(encodings, "_MODELS", {"tiny": "small-1"})
    monkeypatch.setattr(encodings, "FETCHABLE", {"tiny": None})
    search(monkeypatch, tmp_path)
    command = "; the encoding of that model is 'tiny'; run `byteweld fetch tiny` to download it$"
    with pytest.raises(FileNotFoundError, match=command):
        byteweld.load("small-1")
    put(tmp_path / "tiny_ranks.tiktoken", tiny[1])
    with pytest.raises(FileNotFoundError, match=r"; the encoding of that model is 'tiny'$"):
        byteweld.load("small-1")


# ---------------------------------------------------------------------- own folders


@pytest.fixture
def mine():
    return byteweld.train(iter(["low lower lowest " * 5]), vocab_size=262, special_tokens=[END])


@pytest.fixture
def saved(mine, monkeypatch, tmp_path):
    """The same, in the one folder that is searched."""
    search(monkeypatch, tmp_path)
    mine.save(tmp_path / "mine.json")
    return mine


@pytest.mark.parametrize(
    ("file", "format"),
    [
        ("mine.json", None),
        ("mine.tiktoken", None),
        ("mine.bpe1", "huggingface"),  # recognized by content, not by name
        ("mine.model", "tiktoken"),
        ("mine", "huggingface"),
        ("mine/tokenizer.json", None),
        ("mine", "gpt2"),  # a folder
    ],
)
def test_any_vocabulary_file_is_an_encoding_by_its_name(file, format, mine, monkeypatch, tmp_path):
    search(monkeypatch, tmp_path)
    (tmp_path / file).parent.mkdir(exist_ok=True)
    mine.save(tmp_path / file, format=format)
    found = byteweld.get_encoding("mine")
    assert found == mine and found.name == "mine"
    assert byteweld.list_encoding_names() == [*encodings.PUBLIC_ENCODINGS, "mine"]


@pytest.mark.parametrize("file", ["mine.json", "mine.tokens.json"])
def test_a_compressed_file_has_the_name_of_what_is_in_it(file, mine, monkeypatch, tmp_path):
    search(monkeypatch, tmp_path)
    mine.save(tmp_path / file, format="huggingface")
    (tmp_path / f"{file}.gz").write_bytes(gzip.compress((tmp_path / file).read_bytes()))
    (tmp_path / file).unlink()
    name = file.removesuffix(".json")
    assert byteweld.get_encoding(name) == mine
    assert byteweld.list_encoding_names() == [*encodings.PUBLIC_ENCODINGS, name]


def test_the_first_folder_and_the_likeliest_file_win(mine, monkeypatch, tmp_path):
    other = Tokenizer.from_ranks(RANKS, pattern=None)
    for folder in ("a", "b"):
        (tmp_path / folder / "mine").mkdir(parents=True)
    other.save(tmp_path / "a" / "mine" / "tokenizer.json")
    mine.save(tmp_path / "a" / "mine.json")
    other.save(tmp_path / "b" / "mine.json")
    search(monkeypatch, tmp_path / "a", tmp_path / "b")
    assert byteweld.get_encoding("mine") == mine
    search(monkeypatch, tmp_path / "b", tmp_path / "a")
    assert byteweld.get_encoding("mine") == other  # another path, another encoding


def test_only_what_can_be_loaded_is_listed(mine, monkeypatch, tmp_path):
    search(monkeypatch, tmp_path, tmp_path / "nowhere")
    (tmp_path / "README.md").write_text("about these files")
    (tmp_path / "empty").mkdir()
    mine.save(tmp_path / "ranks.tiktoken")
    assert byteweld.list_encoding_names()[-1] == "ranks"
    (tmp_path / "ranks.tiktoken.byteweld.json").unlink()  # which holds what the rank file lacks
    assert byteweld.list_encoding_names() == list(encodings.PUBLIC_ENCODINGS)
    with pytest.raises(FormatError, match="pattern="):
        byteweld.get_encoding("ranks")
    with pytest.raises(FormatError, match="format of this file is unknown"):
        byteweld.get_encoding("README")


def test_a_file_that_cannot_be_read_hides_no_other(saved, tmp_path):
    saved.save(tmp_path / "huge.tiktoken")
    (tmp_path / "huge.tiktoken.byteweld.json").unlink()
    os.truncate(tmp_path / "huge.tiktoken", MAX_FILE_BYTES + 1)  # its start is a rank file's
    assert byteweld.list_encoding_names() == [*encodings.PUBLIC_ENCODINGS, "mine"]
    assert [found.name for found in encodings.find_encodings()] == ["mine"]


def test_a_folder_is_read_once_however_many_files_it_has(saved, monkeypatch, tmp_path):
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text("x")
    scanned = []
    scan = encodings.entries
    monkeypatch.setattr(encodings, "entries", lambda path: scanned.append(path) or scan(path))
    assert [found.name for found in encodings.find_encodings()] == ["mine"]
    assert scanned.count(tmp_path) <= 3


@pytest.mark.parametrize("variable", ["BYTEWELD_PATH", "BYTEWELD_HOME", "TIKTOKEN_CACHE_DIR"])
def test_a_folder_that_cannot_exist_has_nothing(variable, monkeypatch):
    monkeypatch.setenv(variable, f"/{'x' * 5000}")
    assert encodings.find_encodings() == []
    with pytest.raises(FileNotFoundError, match="no rank file"):
        byteweld.get_encoding("cl100k_base")


@pytest.mark.parametrize("name", ["x" * 250, "x" * 5000, "a\0b"])
def test_a_name_that_no_file_can_have_is_unknown(name, monkeypatch, tmp_path):
    search(monkeypatch, tmp_path)
    with pytest.raises(ValueError, match="unknown encoding"):
        byteweld.get_encoding(name)
    with pytest.raises(FileNotFoundError, match="no such file"):
        byteweld.load(name)


def test_what_a_killed_save_left_is_not_an_encoding(saved, tmp_path):
    left = ".byteweld-0123456789abcdef-7-01234567"
    (tmp_path / left).write_bytes((tmp_path / "mine.json").read_bytes())
    assert byteweld.list_encoding_names() == [*encodings.PUBLIC_ENCODINGS, "mine"]


def test_a_public_name_is_never_another_file(mine, monkeypatch, tmp_path):
    mine.save(tmp_path / "cl100k_base.json")
    search(monkeypatch, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"cl100k_base\.tiktoken"):
        byteweld.get_encoding("cl100k_base")


def test_an_unknown_name_is_an_error_that_lists_names_and_folders(saved, monkeypatch, tmp_path):
    with pytest.raises(ValueError) as caught:
        byteweld.get_encoding("cl100_base")
    for words in ("'cl100_base'", "o200k_harmony", "mine", str(tmp_path), "mean 'cl100k_base'"):
        assert words in str(caught.value)
    monkeypatch.delenv("BYTEWELD_PATH")
    with pytest.raises(ValueError, match="which is not set"):
        byteweld.get_encoding("whatever")


@pytest.mark.parametrize("name", ["", ".", "..", "../mine", "sub/mine", "/mine"])
def test_a_path_is_not_a_name(name, mine, monkeypatch, tmp_path):
    (tmp_path / "sub").mkdir()
    for file in (tmp_path / "mine.json", tmp_path / "sub" / "mine.json"):
        mine.save(file)
    search(monkeypatch, tmp_path / "sub", tmp_path)
    with pytest.raises(ValueError, match="unknown encoding"):
        byteweld.get_encoding(name)


# ---------------------------------------------------------------------- caching


def test_an_encoding_is_loaded_once(saved, tmp_path):
    first = byteweld.get_encoding("mine")
    (tmp_path / "mine.json").unlink()
    assert byteweld.get_encoding("mine") is first


def test_many_threads_get_one_encoding(saved, monkeypatch):
    loads = []
    load = encodings._load
    monkeypatch.setattr(encodings, "_load", lambda name: loads.append(name) or load(name))
    start = threading.Barrier(8)

    def get(_):
        start.wait()
        return byteweld.get_encoding("mine")

    with ThreadPoolExecutor(8) as pool:
        assert len({id(tok) for tok in pool.map(get, range(8))}) == 1
    assert loads == ["mine"]


def test_an_error_is_not_cached(mine, monkeypatch, tmp_path):
    search(monkeypatch, tmp_path)
    with pytest.raises(ValueError):
        byteweld.get_encoding("mine")
    mine.save(tmp_path / "mine.json")
    assert byteweld.get_encoding("mine") == mine


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_forked_during_a_load_can_load(saved):
    assert encodings._lock.acquire(timeout=10)  # like a thread that is loading
    try:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if byteweld.get_encoding("mine").encode("low") else 1
            finally:
                sys.stdout.flush()
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        encodings._lock.release()


# ---------------------------------------------------------------------- models


def test_the_encoding_for_a_model_is_the_encoding_of_its_name(tiny, monkeypatch, tmp_path):
    put(tmp_path / "tiny_ranks.tiktoken", tiny[1])
    search(monkeypatch, tmp_path)
    monkeypatch.setattr(encodings, "_MODELS", {"tiny": "small-1"})
    assert byteweld.encoding_for_model("small-1") is byteweld.get_encoding("tiny")
