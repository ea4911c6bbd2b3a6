"""Corpora of benches/: the same bytes on every machine, cut into whole documents and lines."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import byteweld
import drawings
import run as bench_run
import sources
import stories
import worker
from tests.helpers.bench_runs import BENCHES, HEAD, TRAIN, Run


def test_the_mixed_corpus_is_not_run_where_it_cannot_be_made(
    bench: Callable[..., Run], tmp_path: Path
) -> None:
    head = HEAD.replace("tiny =", "large = { big = 1000 }\ntiny =")
    table = TRAIN.replace('"tiny"', '["large", "tiny"]').replace("0.01", "20")
    definitions = f'{head}{table}engines = ["byteweld"]\ntruth = "byteweld"\n'
    run = bench(definitions, "--repeat=1")
    assert "train/large-20MB/300/smallest-ids/1-thread: not run: the mixed corpus needs" in run.out
    assert "make_big_corpus.py, which does not exist; pass --mixed FOLDER" in run.out
    assert {row["definition"].split("/")[1] for row in run.rows} == {"tiny-0.011MB"}
    assert "not run: the mixed corpus needs" in run.file("*.md").read_text()
    # An existing corpus is used, all shards in order.
    made = tmp_path / "made"
    made.mkdir()
    shards = []
    for number in range(2):
        data = f"shard {number}\n".encode() * 1_300_000
        (made / f"big-{number}.txt").write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        shards.append({"file": f"big-{number}.txt", "sha256": digest})
    (made / "MANIFEST.json").write_text(json.dumps({"shards": shards}))
    run = bench(definitions, "--repeat=1", f"--mixed={made}", "--only=large")
    assert run.status == 0, run.err
    prepared = next((tmp_path / "cache").glob("large-*[0-9a-f].txt")).read_bytes()
    text = prepared.replace(b"<|endoftext|>", b"")
    assert text == b"".join((made / f"big-{n}.txt").read_bytes() for n in range(2))[: len(text)]
    assert len(text) > 19_999_000


def test_a_tenfold_corpus_has_ten_times_each_document(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("one\n<|endoftext|>two\n" + "three four\n" * 1000)
    corpora = {"text": {"file": "text.txt"}, "ten": {"corpus": "text", "times": 10}}
    inputs = bench_run.Inputs({"corpora": corpora}, cache=tmp_path / "cache", shared=tmp_path)
    once = inputs.corpus("text", 10**6, warm_up=False)
    ten = inputs.corpus("ten", 10**7, warm_up=False)
    documents = once.path.read_bytes().split(b"<|endoftext|>")
    assert len(documents) > 3
    assert ten.path.read_bytes().split(b"<|endoftext|>") == documents * 10
    assert ten.text_bytes == once.text_bytes * 10


def test_a_corpus_is_the_same_whether_it_comes_in_blocks_or_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = ("é" * 900 + "\n" + "word " * 300 + "\n<|endoftext|>\n" + "x\n" * 30).encode() * 40
    (tmp_path / "text.txt").write_bytes(text[:-1] + b"\xff\xc3 no newline")
    found = set()
    for block in (7, 1000, 1 << 22):
        monkeypatch.setattr(sources, "_BLOCK_BYTES", block)
        inputs = bench_run.Inputs(
            {"corpora": {"text": {"file": "text.txt"}}},
            cache=tmp_path / f"cache-{block}",
            shared=tmp_path,
        )
        corpus = inputs.corpus("text", 70_001, warm_up=False)
        found.add((corpus.sha256, corpus.text_bytes))
    assert len(found) == 1


def test_documents_are_whole_lines_and_hold_no_separator(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(("é" * 3000 + "\n" + "<|endoftext|>" + "x\n") * 50)
    inputs = bench_run.Inputs(
        {"corpora": {"text": {"file": "text.txt"}}}, cache=tmp_path / "cache", shared=tmp_path
    )
    corpus = inputs.corpus("text", 10**6, warm_up=False)
    documents = corpus.path.read_bytes().split(b"<|endoftext|>")
    assert b"".join(documents) == (("é" * 3000 + "\n" + "x\n") * 50).encode()
    assert sum(map(len, documents)) == corpus.text_bytes
    assert all(document.endswith(b"\n") for document in documents)


def test_without_shared_data_the_standard_library_is_used(tmp_path: Path) -> None:
    paths = [f"--shared={tmp_path / 'none'}", f"--cache={tmp_path / 'cache'}"]
    done = subprocess.run(
        [sys.executable, str(BENCHES / "run.py"), "train", "--quick", "--list", *paths],
        capture_output=True,
        text=True,
        timeout=120,
    )
    names = set(done.stdout.splitlines())
    assert {
        "train/stdlib-1MB/1000/smallest-ids/1-thread",
        "train/stdlib-1MB/1000/smallest-ids/2-threads",
        "train/stdlib-1MB/1000/huggingface/2-threads",
    } <= names
    # Generated corpora need no stand-in; all others are replaced.
    assert {name.split("/")[1] for name in names} == {
        *("stdlib-1MB", "stories-1MB", "drawings-1MB"),
    }
    assert not any((tmp_path / "cache").iterdir())  # --list prepares nothing


def test_a_line_belongs_to_a_script_if_most_of_it_is_in_that_script() -> None:
    lines = ["plain", "日本語 a", "日本 abcd", "", "ภาษาไทย", "ひらがな", "中文"]
    data = "\n".join([*lines, ""]).encode()
    cut = [data[n : n + 5] for n in range(0, len(data), 5)]  # in the middle of characters
    whole = sources.Source("text", "1", lambda: iter(cut))
    found = sources.lines_of_scripts(whole, ["Chinese", "Japanese"])
    assert b"".join(found.head(10**6)).decode() == "日本語 a\nひらがな\n中文\n"
    assert found.identity != whole.identity


def test_short_strings_cover_a_text_in_order() -> None:
    text = "".join(chr(0x4E00 + n) for n in range(5000))
    strings = worker.short_strings(text)
    assert len(strings) == worker.SHORT_STRINGS
    # Characters of three bytes: up to 66 of them fit into 200.
    assert {len(string) for string in strings} == set(range(1, 67))
    assert "".join(strings).startswith(text * 100)
    assert worker.short_strings(text) == strings
    assert worker.short_strings("") == []


def test_short_strings_have_up_to_200_bytes_of_any_characters() -> None:
    assert {len(string) for string in worker.short_strings("a" * 1000)} == set(range(1, 201))
    mixed = "aé語😀" * 500
    strings = worker.short_strings(mixed)
    assert "".join(strings).startswith(mixed * 10)
    assert {len(string.encode()) for string in strings} >= set(range(5, 201))
    assert max(len(string.encode()) for string in strings) == 200


# ---------------------------------------------------------------------- generated corpora


@pytest.fixture
def story_text(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The first megabyte of the stories."""
    return bytes(next(stories.stories())[:1_000_000])


def test_stories_are_the_same_bytes_on_every_machine(story_text: bytes) -> None:
    assert hashlib.sha256(story_text).hexdigest() == (
        "54463ac89ad472309fd1257b6e5d8aa7f1b8a3585be7abbb4a7a384237cef13f"
    )


def test_no_story_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"".join(itertools.islice(stories.stories(), 2))
    documents = text.split(b"<|endoftext|>")
    assert len(documents) == len(set(documents)) == 8000
    assert all(document.endswith(b"\n") and len(document) > 100 for document in documents)
    text.decode("ascii")
    other = next(stories.stories(seed=12)).split(b"<|endoftext|>")
    assert not set(documents) & set(other)


def test_stories_never_run_out_of_new_words(story_text: bytes) -> None:
    distinct = [
        len(byteweld.count(iter([story_text[:size]]), recipe="rustbpe"))
        for size in (125_000, 250_000, 500_000, 1_000_000)
    ]
    assert distinct[-1] > 10_000
    growth = [later / earlier for earlier, later in itertools.pairwise(distinct)]
    assert all(1.3 < factor < 2 for factor in growth), distinct


def test_drawings_are_svg_and_the_same_bytes_on_every_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = b"".join(itertools.islice(drawings.drawings(), 300))
    documents = text.split(b"<|endoftext|>")
    assert len(set(documents)) == 300
    for document in documents:
        assert ElementTree.fromstring(document).tag == "{http://www.w3.org/2000/svg}svg"
    assert hashlib.sha256(text).hexdigest() == (
        "bd430e9cd2c6b75a9da9d58a5810ee013904da1469b46449264a9877f7c17571"
    )
