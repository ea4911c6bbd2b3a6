"""`byteweld list`: what is here, where it was found, and what can be fetched."""

from __future__ import annotations

import hashlib
import json

import pytest

import byteweld
from byteweld import encodings
from byteweld.cli import listing
from byteweld.known_encodings import FETCHABLE, PublicFile

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def places(monkeypatch, tmp_path, saved):
    """One vocabulary in each place: a public encoding, two files, a model."""
    tok = byteweld.load(saved)
    snapshot = f"hub/models--org--model/snapshots/{COMMIT}"
    for folder in ("path", "home/vocabularies", "tiktoken", snapshot):
        (tmp_path / folder).mkdir(parents=True)
    tok.save(tmp_path / "ranks.tiktoken")
    ranks = (tmp_path / "ranks.tiktoken").read_bytes()
    public = encodings.PublicEncoding("ranks", "gpt2", {})
    monkeypatch.setattr(encodings, "PUBLIC_ENCODINGS", {"public": public})
    monkeypatch.setattr(encodings, "RANK_FILES", {"ranks": hashlib.sha256(ranks).hexdigest()})
    monkeypatch.setattr(encodings, "_loaded", {})
    url = f"{encodings.OPENAI_URL}encodings/ranks.tiktoken"
    (tmp_path / "tiktoken" / hashlib.sha1(url.encode()).hexdigest()).write_bytes(ranks)
    for path in ("path/mine.json", "home/vocabularies/fetched.json"):
        tok.save(tmp_path / path)
    model = tmp_path / snapshot / "tokenizer.json"
    model.symlink_to(saved)
    monkeypatch.setenv("BYTEWELD_PATH", str(tmp_path / "path"))
    monkeypatch.setenv("BYTEWELD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tiktoken"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    there = PublicFile("fetched.json", "https://x/fetched", "0" * 64, 10, "x", "MIT")
    missing = there._replace(name="missing.json", size=7_000_000, url="https://x/missing")
    monkeypatch.setattr(listing, "FETCHABLE", {"fetched": there, "missing": missing})
    return [
        ("public", "tiktoken's cache", next((tmp_path / "tiktoken").iterdir())),
        ("mine", "BYTEWELD_PATH", tmp_path / "path/mine.json"),
        ("fetched", "byteweld's folder", tmp_path / "home/vocabularies/fetched.json"),
        ("org/model", "Hugging Face's cache", model),
    ]


def test_each_vocabulary_is_listed_with_its_place_and_loads_by_its_name(run, places):
    lines = run("list").text.splitlines()
    assert lines[0] == "here"
    assert lines[1].split() == ["name", "size", "found", "in", "path"]
    for line, (name, place, path) in zip(lines[2:6], places, strict=True):
        size = f"{path.stat().st_size / 1000:.1f} kB"
        assert line.split() == [name, *size.split(), *place.split(), str(path)]
        assert run("tokens", "-t", name, __file__).code == 0
    assert lines[6:] == [
        "",
        "can be fetched",
        "  name       size  command",
        "  missing  7.0 MB  byteweld fetch missing",
    ]


def test_the_list_as_json(run, places):
    report = json.loads(run("list", "--json").out)
    assert report == {
        "here": [
            {"name": name, "bytes": path.stat().st_size, "place": place, "path": str(path)}
            for name, place, path in places
        ],
        "fetchable": [
            {
                "name": "missing",
                "bytes": 7_000_000,
                "url": "https://x/missing",
                "sha256": "0" * 64,
                "license": "MIT",
                "command": "byteweld fetch missing",
            }
        ],
    }


def test_with_nothing_here_everything_can_be_fetched(run, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    lines = run("list").text.splitlines()
    assert lines[:4] == ["here", "  none", "", "can be fetched"]
    assert [line.split()[-1] for line in lines[5:]] == list(FETCHABLE)


# ---------------------------------------------------------------------------- models by name


def test_verbs_take_a_model_of_the_cache_like_its_file(run, places, saved):
    path, text = str(places[-1][2]), str(saved.with_name("a.txt"))
    saved.with_name("a.txt").write_bytes(b"low lower")
    by_name, by_path = run("inspect", "org/model"), run("inspect", path)
    assert by_name.code == 0
    same = by_path.text.replace(path, "org/model").replace("  tokenizer\n", "  org/model\n", 1)
    assert by_name.text == same
    assert run("compare", "org/model", str(saved), text).code == 0
    assert run("prove", "org/model", text).code == 0
    assert run("convert", "org/model", "out.tiktoken", "--format", "tiktoken").code == 0
    result = run("tokens", "-t", "org/model", "--pattern", "gpt2", text)
    assert result.err == (
        "byteweld: org/model is in format 'huggingface', which has its own pattern and special "
        "tokens; leave --pattern out\n"
    )
    assert "`hf download org/none tokenizer.json`" in run("tokens", "-t", "org/none", "x").err
