"""Vocabularies in the caches of others: models of Hugging Face, found without its library."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import byteweld
from byteweld import FormatError, encodings
from byteweld._places import cached_models, find_model, hub_cache, is_model_name

COMMIT = "607a30d783dfa663caf39e06633721c8d4cfcd7e"
MODEL = "openai-community/gpt2"


@pytest.fixture(autouse=True)
def alone(monkeypatch, no_network, tmp_path):
    """An empty cache, no other folders, an empty working directory, no network."""

    monkeypatch.setattr(encodings, "_loaded", {})
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture(scope="module")
def tok():
    return byteweld.train(iter(["low lower lowest " * 9]), vocab_size=264)


class Repository:
    """A model in the cache, as huggingface_hub lays it out: snapshots link to blobs."""

    def __init__(self, hub: Path, name: str, main: str | None = COMMIT) -> None:
        self.folder = hub / ("models--" + name.replace("/", "--"))
        self.snapshot = self.folder / "snapshots" / COMMIT
        self.snapshot.mkdir(parents=True)
        (self.folder / "blobs").mkdir()
        if main is not None:
            (self.folder / "refs").mkdir()
            (self.folder / "refs" / "main").write_text(main)

    def add(self, file: str, data: bytes) -> Path:
        """Add a file as a blob, and a relative link to it."""
        (self.folder / "blobs" / f"blob-of-{file}").write_bytes(data)
        link = self.snapshot / file
        link.symlink_to(Path("..", "..", "blobs", f"blob-of-{file}"))
        return link


@pytest.fixture
def hub(tmp_path):
    return tmp_path / "hub"


@pytest.fixture
def content(tok, tmp_path):
    tok.save(tmp_path / "saved.json")
    return (tmp_path / "saved.json").read_bytes()


@pytest.fixture
def repository(hub, content):
    made = Repository(hub, MODEL)
    made.add("tokenizer.json", content)
    return made


# ---------------------------------------------------------------------- finding


def test_a_cached_model_is_loaded_by_its_name(repository, tok, tmp_path):
    loaded = byteweld.load(MODEL)
    assert loaded == tok and loaded.name == MODEL
    assert byteweld.get_encoding(MODEL) == tok
    assert byteweld.load(MODEL, cache=tmp_path / "compiled") == tok
    assert byteweld.load(MODEL, cache=tmp_path / "compiled").name == MODEL  # from the cache
    assert len(list((tmp_path / "compiled").iterdir())) == 1


@pytest.mark.parametrize("files", [["tekken.json"], ["tekken.json", "vocab.json", "merges.txt"]])
def test_the_other_kinds_of_files_are_found(files, hub, tok, tmp_path, shared):
    import gzip

    data = gzip.decompress((shared / "vocabs/tekken/tekken_240718.json.gz").read_bytes())
    made = Repository(hub, "org/model")
    for file in files:
        made.add(file, data if file == "tekken.json" else b"{}")
    assert len(byteweld.load("org/model")) == 131072


def test_a_pair_of_files_needs_its_options_like_any_other_pair(hub, tok, tmp_path):
    tok.save(tmp_path / "pair", format="gpt2")
    made = Repository(hub, "org/model")
    for file in ("vocab.json", "merges.txt"):
        made.add(file, (tmp_path / "pair" / file).read_bytes())
    with pytest.raises(FormatError, match="pattern="):
        byteweld.load("org/model")
    loaded = byteweld.load("org/model", pattern="o200k", special_tokens={})
    assert loaded == tok and loaded.name == "org/model"
    assert [one.size for one in encodings.find_encodings()] == [
        sum((made.snapshot / file).stat().st_size for file in ("vocab.json", "merges.txt"))
    ]


def test_tokenizer_json_comes_first(repository, tok):
    for file in ("tekken.json", "vocab.json", "merges.txt"):
        repository.add(file, b"{}")
    assert byteweld.load(MODEL) == tok


def test_a_file_or_folder_of_that_path_always_wins(repository, tok, tmp_path):
    other = tok.cut(260)
    Path("openai-community").mkdir()
    other.save(Path(MODEL), format="huggingface")
    assert byteweld.load(MODEL) == other
    Path(MODEL).unlink()
    Path(MODEL).mkdir()
    with pytest.raises(FormatError, match="format of this folder is unknown"):
        byteweld.load(MODEL)


def test_an_encoding_wins_over_a_model_without_an_organization(hub, content, tok, monkeypatch):
    for name in ("gpt2", "mine", "distilgpt2"):
        Repository(hub, name).add("tokenizer.json", content)
    with pytest.raises(FileNotFoundError, match="r50k_base"):
        byteweld.load("gpt2")  # OpenAI's encoding, not the model of that name
    assert byteweld.load("distilgpt2") == tok
    other = tok.cut(260)
    other.save("mine.json")
    monkeypatch.setenv("BYTEWELD_PATH", str(Path.cwd()))
    assert byteweld.load("mine") == other
    assert [(one.name, one.place) for one in encodings.find_encodings()] == [
        ("mine", "BYTEWELD_PATH"),
        ("distilgpt2", "Hugging Face's cache"),
    ]


def test_the_snapshot_is_that_of_main(repository, tok, content):
    old = repository.folder / "snapshots" / ("0" * 40)
    old.mkdir()
    (old / "tokenizer.json").write_bytes(b"{}")
    assert find_model(MODEL) == repository.snapshot / "tokenizer.json"
    (repository.folder / "refs" / "main").write_text("0" * 40 + "\n")
    assert find_model(MODEL) == old / "tokenizer.json"
    (repository.folder / "refs" / "main").unlink()
    assert find_model(MODEL) is None  # there are two
    (old / "tokenizer.json").unlink()
    old.rmdir()
    assert find_model(MODEL) == repository.snapshot / "tokenizer.json"  # the only one


def test_a_file_without_links_is_found_too(hub, content, tok):
    """Where links are not possible, as on Windows, files are in the snapshot itself."""
    made = Repository(hub, MODEL)
    (made.snapshot / "tokenizer.json").write_bytes(content)
    assert byteweld.load(MODEL) == tok


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"HF_HUB_CACHE": "/a", "HF_HOME": "/b"}, "/a"),
        ({"HUGGINGFACE_HUB_CACHE": "/a", "HF_HOME": "/b"}, "/a"),
        ({"HF_HOME": "/b", "XDG_CACHE_HOME": "/c"}, "/b/hub"),
        ({"HF_HOME": "~/b"}, "/me/b/hub"),
        ({"HF_HUB_CACHE": "$HOME/b"}, "/me/b"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({}, "/me/.cache/huggingface/hub"),
        ({"HF_HUB_CACHE": "", "HF_HOME": ""}, "/me/.cache/huggingface/hub"),
    ],
)
def test_the_cache_is_where_the_library_has_it(variables, folder, monkeypatch):
    names = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", "/me")
    assert hub_cache() == Path(folder)


def test_models_are_listed_with_those_that_have_a_vocabulary_only(repository, hub):
    Repository(hub, "org/weights-only").add("model.safetensors", b"")
    Repository(hub, "org/gone", main="f" * 40)
    (hub / "models--").mkdir()
    (hub / "models--a--b--c").mkdir()
    (hub / "datasets--org--data").mkdir()
    (hub / "version.txt").write_text("1")
    assert list(cached_models()) == [(MODEL, repository.snapshot / "tokenizer.json")]
    [found] = encodings.find_encodings()
    assert (found.name, found.place) == (MODEL, "Hugging Face's cache")
    assert found.size == (repository.snapshot / "tokenizer.json").stat().st_size
    assert MODEL not in byteweld.list_encoding_names()


# ---------------------------------------------------------------------- names and errors


@pytest.mark.parametrize(
    "name",
    [
        *("", "/", "a/", "/a", "a//b", "../x", "a/..", "a/b/c", "a--b/c", "a\n/b", "a/b\n", "é/x"),
        *(".", "a..b/c", "a/.b", "-a/b", "a" * 201, "a/b\0", "a\\b"),
    ],
)
def test_what_is_not_the_name_of_a_model_is_never_looked_up(name, hub):
    assert not is_model_name(name)
    assert find_model(name) is None


def test_a_model_that_is_not_cached_is_an_error_that_says_where_it_was_searched(hub):
    with pytest.raises(FileNotFoundError) as caught:
        byteweld.load("org/model")
    for words in ("org/model: no such file", str(hub), "`hf download org/model tokenizer.json`"):
        assert words in str(caught.value)
    with pytest.raises(ValueError, match="unknown encoding 'org/model'"):
        byteweld.get_encoding("org/model")


@pytest.mark.parametrize(
    "ref", ["..", "../..", "a/b", "/etc", "", "x" * 65, "\x00", "é", "x" * 5000]
)
def test_a_hostile_reference_leads_nowhere(ref, hub, repository):
    (repository.folder / "refs" / "main").write_text(ref)
    (hub / "tokenizer.json").write_text("{}")
    (repository.folder / "tokenizer.json").write_text("{}")
    found = find_model(MODEL)
    assert found is None or found.parent == repository.snapshot


@pytest.mark.parametrize(
    ("aim", "words"),
    [
        ("/dev/zero", "expected a regular file, found a device"),
        ("pipe", "expected a regular file, found a named pipe"),
        (".", "the format of this folder is unknown"),
        ("tokenizer.json", "no such file, and no tokenizer of that model"),  # itself
        (None, "no such file, and no tokenizer of that model"),
    ],
)
@pytest.mark.parametrize("is_endless", [False, True])
def test_hostile_links_are_refused_without_being_read(aim, words, is_endless, repository):
    link = repository.snapshot / "tokenizer.json"
    link.unlink()
    os.mkfifo(link.with_name("pipe"))
    if aim is not None:
        link.symlink_to(aim)
    if is_endless:
        (repository.folder / "refs" / "main").unlink()
        (repository.folder / "refs" / "main").symlink_to("/dev/zero")
    with pytest.raises((FormatError, FileNotFoundError), match=words):
        byteweld.load(MODEL)
    encodings.find_encodings()  # neither hangs nor raises
