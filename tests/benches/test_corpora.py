"""Corpora of benches/: the same bytes on every machine, cut into whole documents and lines."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import drawings
import run as bench_run
import sources
import worker

from .conftest import BENCHES, Bench, table

END = b"<|endoftext|>"


def test_the_mixed_corpus_is_used_if_it_is_made_and_else_not_run(bench: Bench, tmp_path) -> None:
    definitions = table("train", ["byteweld"], "byteweld", corpus=["large", "tiny"], megabytes=20)
    definitions = definitions.replace("[corpora]", "[corpora]\nlarge = { big = 1000 }")
    run = bench(definitions)
    assert "train/large-20MB/300/smallest-ids/1-thread: not run: the mixed corpus needs" in run.out
    assert "make_big_corpus.py, which does not exist; pass --mixed FOLDER" in run.out
    assert {row["definition"].split("/")[1] for row in run.rows} == {"tiny-0.011MB"}
    assert "not run: the mixed corpus needs" in run.file("*.md").read_text()
    made = tmp_path / "made"
    made.mkdir()
    data = [f"shard {number}\n".encode() * 1_300_000 for number in range(2)]
    shards = []
    for number, shard in enumerate(data):
        (made / f"big-{number}.txt").write_bytes(shard)
        digest = hashlib.sha256(shard).hexdigest()
        shards.append({"file": f"big-{number}.txt", "sha256": digest})
    (made / "MANIFEST.json").write_text(json.dumps({"shards": shards}))
    run = bench(definitions, f"--mixed={made}", "--only=large")
    assert run.status == 0, run.err
    text = next((tmp_path / "cache").glob("large-*[0-9a-f].txt")).read_bytes().replace(END, b"")
    assert text == b"".join(data)[: len(text)] and len(text) > 19_999_000


def prepared(tmp_path: Path, corpora: dict[str, object], name: str, size: int):
    inputs = bench_run.Inputs({"corpora": corpora}, cache=tmp_path / "cache", shared=tmp_path)
    return inputs.corpus(name, size, warm_up=False)


def test_a_tenfold_corpus_has_ten_times_each_document(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("one\n<|endoftext|>two\n" + "three four\n" * 1000)
    corpora = {"text": {"file": "text.txt"}, "ten": {"corpus": "text", "times": 10}}
    once = prepared(tmp_path, corpora, "text", 10**6)
    ten = prepared(tmp_path, corpora, "ten", 10**7)
    documents = once.path.read_bytes().split(END)
    assert len(documents) > 3
    assert ten.path.read_bytes().split(END) == documents * 10
    assert ten.text_bytes == once.text_bytes * 10


def test_a_corpus_is_the_same_whether_it_comes_in_blocks_or_whole(monkeypatch, tmp_path) -> None:
    text = ("é" * 900 + "\n" + "word " * 300 + "\n<|endoftext|>\n" + "x\n" * 30).encode() * 40
    found = set()
    for block in (7, 1000, 1 << 22):
        monkeypatch.setattr(sources, "_BLOCK_BYTES", block)
        (tmp_path / f"{block}").mkdir()
        (tmp_path / f"{block}" / "text.txt").write_bytes(text[:-1] + b"\xff\xc3 no newline")
        corpus = prepared(tmp_path / f"{block}", {"text": {"file": "text.txt"}}, "text", 70_001)
        found.add((corpus.sha256, corpus.text_bytes))
    assert len(found) == 1


def test_documents_are_whole_lines_and_hold_no_separator(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(("é" * 3000 + "\n" + "<|endoftext|>" + "x\n") * 50)
    corpus = prepared(tmp_path, {"text": {"file": "text.txt"}}, "text", 10**6)
    documents = corpus.path.read_bytes().split(END)
    assert b"".join(documents) == (("é" * 3000 + "\n" + "x\n") * 50).encode()
    assert sum(map(len, documents)) == corpus.text_bytes
    assert all(document.endswith(b"\n") for document in documents)


def test_without_shared_data_the_standard_library_is_used(tmp_path: Path) -> None:
    paths = [f"--shared={tmp_path / 'none'}", f"--cache={tmp_path / 'cache'}"]
    command = [sys.executable, BENCHES / "run.py", "train", "--quick", "--list", *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    names = done.stdout.splitlines()
    assert "train/stdlib-1MB/1000/huggingface/2-threads" in names
    # Generated corpora need no stand-in; all others are replaced.
    assert {name.split("/")[1] for name in names} == {"stdlib-1MB", "drawings-1MB"}
    assert not any((tmp_path / "cache").iterdir())  # --list prepares nothing


def test_a_line_belongs_to_a_script_if_most_of_it_is_in_that_script() -> None:
    lines = ["plain", "日本語 a", "日本 abcd", "", "ภาษาไทย", "ひらがな", "中文"]
    data = "\n".join([*lines, ""]).encode()
    cut = [data[n : n + 5] for n in range(0, len(data), 5)]  # in the middle of characters
    whole = sources.Source("text", "1", lambda: iter(cut))
    found = sources.lines_of_scripts(whole, ["Chinese", "Japanese"])
    assert b"".join(found.head(10**6)).decode() == "日本語 a\nひらがな\n中文\n"
    assert found.identity != whole.identity


@pytest.mark.parametrize("text", ["a" * 1000, "漢" * 5000, "aé語😀" * 500])
def test_short_strings_cover_a_text_in_order_in_up_to_200_bytes(text: str) -> None:
    strings = worker.short_strings(text)
    assert len(strings) == worker.SHORT_STRINGS
    assert "".join(strings).startswith(text * 10)
    widest = max(len(character.encode()) for character in text)
    sizes = {len(string.encode()) for string in strings}
    assert {size // widest for size in sizes} >= set(range(2, 200 // widest))
    assert 200 - widest < max(sizes) <= 200
    assert worker.short_strings("") == []


def test_drawings_are_svg_and_the_same_bytes_on_every_machine() -> None:
    text = b"".join(itertools.islice(drawings.drawings(), 300))
    documents = text.split(END)
    assert len(set(documents)) == 300
    for document in documents:
        assert ElementTree.fromstring(document).tag == "{http://www.w3.org/2000/svg}svg"
    assert hashlib.sha256(text).hexdigest() == (
        "bd430e9cd2c6b75a9da9d58a5810ee013904da1469b46449264a9877f7c17571"
    )
