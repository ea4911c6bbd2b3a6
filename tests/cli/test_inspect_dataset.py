"""`byteweld inspect DATASET`: its complete output."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from byteweld.dataset._manifest import Manifest, SkipEntry, SourceEntry
from tests.helpers.byte_datasets import BYTES, make_dataset, with_eot


@pytest.fixture
def made(tmp_path: Path) -> Manifest:
    """A dataset with its tokenizer beside it, in the current folder."""
    documents = with_eot("ab c", "x\ny<|endoftext|>", "ab" * 99, "", "é")
    manifest = make_dataset(
        tmp_path / "set",
        [documents[:3], documents[3:]],
        [with_eot("val")],
        text_bytes=260,
        special_text={"<|endoftext|>": 1},
        skipped_documents=2,
        skipped=(
            SkipEntry(source="a.jsonl", reason="not JSON", line=3, offset=99),
            SkipEntry(source="b\x1b.parquet", reason="null", row=7),
        ),
        sources=(SourceEntry(name="a.jsonl", size=300, xxh3_128="2" * 32, documents=6),),
    )
    BYTES.save(tmp_path / "bytes.json")
    return manifest


FACTS = f"""\
set
  complete      yes
  format        flat, uint16
  tokenizer     258 ids, fingerprint {BYTES.vocab.fingerprint}
  eot           <|endoftext|> 257
  options       eot append
  documents     6
  tokens        129 of 260 bytes of text, 2.02 bytes per token
  train         5 documents, 125 tokens in 2 shards, 290 bytes
  validation    1 document, 4 tokens in 1 shard, 16 bytes
  sources       1 source, 300 bytes: a.jsonl
  skipped       2 records: a.jsonl, line 3, byte 99: not JSON; b⟨U+001B⟩.parquet, row 7: null
  special text  <|endoftext|> 1×

document lengths, train: 1 to 100 tokens, 25.0 on average
       1  1  ████████████████████████████████████████
     2-3  1  ████████████████████████████████████████
     4-7  1  ████████████████████████████████████████
    8-15  0
   16-31  1  ████████████████████████████████████████
   32-63  0
  64-127  1  ████████████████████████████████████████

document lengths, validation: 4 to 4 tokens, 4.0 on average
  4-7  1  ████████████████████████████████████████

first documents
"""


def test_with_its_tokenizer(made, run):
    result = run("inspect", "set", "-t", "bytes.json")
    assert result.code == 0 and result.err == ""
    assert result.text == FACTS + (
        "  document 0: 4 tokens\n"
        "    ab|·|c|⟦<|endoftext|>⟧\n"
        "  document 1: 17 tokens\n"
        "    x|⏎\n"
        "    y|<|⟨|⟩|e|n|d|o|f|t|e|x|t|⟨|⟩|>|⟦<|endoftext|>⟧\n"
        "  document 2: 100 tokens\n"
        f"    {'|'.join(['ab'] * 60)} …\n"
        "  document 3: 1 token\n"
        "    ⟦<|endoftext|>⟧\n"
        "  document 4: 3 tokens\n"
        "    ⟨c3⟩|⟨a9⟩|⟦<|endoftext|>⟧\n"
    )


def test_without_a_tokenizer_and_by_its_manifest(made, run):
    result = run("inspect", "set/manifest.json")
    assert result.text.startswith(FACTS.replace("set\n", "set/manifest.json\n", 1))
    assert "\n  document 0: 4 tokens\n    256 32 99 257\n" in result.text


def test_the_options_of_a_real_dataset(run, saved, tmp_path):
    (tmp_path / "a.txt").write_text("a b")
    assert run("tokenize", "a.txt", "--out", "d", "--eot", "none", "--shuffle").code == 0
    options = "eot none, special_text text, validation 0.0, seed 0, shuffle, unit file, field text"
    assert f"  options       {options}, on_error fail\n" in run("inspect", "d").text


def test_json(made, run):
    found = json.loads(run("inspect", "set", "-t", "bytes.json", "--json").out)
    assert found["documents"] == 6 and found["shards"] == 3 and found["is_complete"]
    assert found["lengths"]["train"] == {
        "documents": 5,
        "tokens": 125,
        "shortest": 1,
        "longest": 100,
        "bins": [0, 1, 1, 1, 0, 1, 0, 1],
    }
    assert found["first"][0] == {
        "tokens": 4,
        "ids": [256, 32, 99, 257],
        "text": "ab c<|endoftext|>",
    }
    assert found["skipped"][1]["row"] == 7


def test_html(made, run, tmp_path):
    assert run("inspect", "set", "-t", "bytes.json", "--html", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "Document lengths, train" in page and "64-127" in page
    assert '<span class="t special"' in page and "⟨U+001B⟩" in page


def test_an_incomplete_dataset_says_how_to_go_on(made, run, tmp_path):
    changes = {"is_complete": False, "splits": {}, "sources": (), "documents": 0, "tokens": 0}
    dataclasses.replace(made, **changes).save(tmp_path / "set")
    result = run("inspect", "set")
    assert result.code == 0
    assert "  complete    no; run the same `byteweld tokenize` again to finish it\n" in result.text
    assert "  train       5 documents, 125 tokens in 2 shards, 290 bytes\n" in result.text
    assert "sources" not in result.text


def test_an_empty_dataset(run, tmp_path):
    make_dataset(tmp_path / "none")
    result = run("inspect", "none")
    assert result.code == 0 and "  tokens        0\n" in result.text


def test_another_tokenizer_is_refused(made, run, saved):
    result = run("inspect", "set", "-t", "tokenizer.json")
    assert result.code == 2 and BYTES.vocab.fingerprint in result.err


def test_a_damaged_manifest_is_still_a_datasets(made, run, tmp_path):
    file = tmp_path / "set" / "manifest.json"
    file.write_bytes(file.read_bytes()[:-4])
    result = run("inspect", "set")
    assert result.code == 2 and "not the manifest of a dataset: expected JSON" in result.err
