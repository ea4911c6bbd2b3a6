"""`byteweld verify`: its complete output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import byteweld
from tests.helpers.byte_datasets import BYTES, make_dataset, with_eot


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A dataset with its tokenizer beside it, in the current folder."""
    make_dataset(tmp_path / "set", [with_eot("ab c", "d")], [with_eot("val")])
    BYTES.save(tmp_path / "bytes.json")
    return tmp_path / "set"


def test_a_good_dataset(made, run):
    assert run("verify", "set") == (
        0,
        b"set is good\n"
        b"  4 files, 44 bytes: size and SHA-256\n"
        b"  3 documents, 10 tokens: counts, range of ids, end-of-text tokens\n",
        "",
    )
    result = run("verify", "set/manifest.json", "-t", "bytes.json", "--sample", "2")
    assert result.code == 0
    assert result.text.endswith("  2 documents decoded and encoded again\n")
    result = run("verify", "set", "-t", "bytes.json", "--sample", "all")
    assert result.text.endswith("  3 documents decoded and encoded again\n")


def test_problems_are_listed_and_the_code_is_1(made, run):
    data = bytearray((made / "train.bin").read_bytes())
    data[5] = 0xFF
    (made / "train.bin").write_bytes(data)
    (made / "val.bin.index").unlink()
    result = run("verify", "set")
    sums = [file.sha256 for file in byteweld.open_dataset(made).manifest.shards[0].files]
    assert result.code == 1 and result.err == ""
    first, second, third, fourth, *rest = result.text.splitlines()
    assert first == "set has 3 problems"
    assert second.startswith("  train.bin, shard train 0: its SHA-256 is ")
    assert second.endswith(f"; expected {sums[0]}")
    assert third == ("  train.bin, shard train 0, document 0: has the id 65379; expected 0 to 257")
    assert fourth == "  val.bin.index, shard validation 0: the file is missing"
    assert rest == [
        "checked",
        "  3 files, 36 bytes: size and SHA-256",
        "  2 documents, 6 tokens: counts, range of ids, end-of-text tokens",
    ]


def test_with_the_corpus(saved, run, tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.xyz").write_text("low lower\nnewest\n")
    tok = byteweld.load(saved)
    byteweld.tokenize("corpus", tok, out="set", ext=".xyz", lines=True)
    arguments = ("verify", "set", "-t", "tokenizer.json", "--source", "corpus")
    result = run(*arguments, "--ext", ".xyz", "--sample", "all")
    assert result == (
        0,
        b"set is good\n"
        b"  2 files, 30 bytes: size and SHA-256\n"
        b"  2 documents, 7 tokens: counts, range of ids, end-of-text tokens\n"
        b"  2 documents decoded and encoded again\n"
        b"  1 source: size and digest\n"
        b"  2 documents compared with the corpus\n",
        "",
    )
    (tmp_path / "corpus" / "a.xyz").write_text("low lower\nNewest\n")
    result = run(*arguments, "--ext", ".xyz")
    assert result.code == 1
    first, second, third, *_ = result.text.splitlines()
    assert first == "set has 2 problems"
    assert second.startswith("  corpus/a.xyz: the source's XXH3-128 is ")
    assert third == (
        "  train.bin, shard train 0, document 1: its text differs from document 1 of corpus/a.xyz: "
        "at byte 0, it has b'newest\\n'; expected b'Newest\\n'"
    )
    assert run(*arguments).code == 2  # no file has another extension


def test_json(made, run):
    (made / "train.bin").write_bytes(b"")
    result = run("verify", "set", "--json")
    found = json.loads(result.out)
    assert result.code == 1 and not found["is_good"]
    assert found["problems"][0] == {
        "message": "has 0 bytes; expected 12",
        "file": "train.bin",
        "shard": "train 0",
        "document": None,
    }
    assert found["num_problems"] == len(found["problems"]) == 2


def test_a_damaged_manifest_is_a_problem(made, run):
    (made / "manifest.json").write_bytes(b"{}")
    result = run("verify", "set")
    assert result.code == 1
    assert "manifest.json: not the manifest of a dataset: expected version" in result.text
