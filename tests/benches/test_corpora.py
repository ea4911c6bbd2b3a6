"""Corpora of benches/: the same bytes on every machine, cut into whole documents and lines."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from xml.etree import ElementTree

import pytest

import drawings
import run as bench_run
import sources

END = b"<|endoftext|>"


def prepared(tmp_path: Path, corpora: dict[str, object], name: str, size: int):
    inputs = bench_run.Inputs({"corpora": corpora}, cache=tmp_path / "cache", shared=tmp_path)
    return inputs.corpus(name, size, warm_up=False)


@pytest.mark.parametrize("block", [7, 1000, 1 << 22])
def test_documents_are_whole_lines_without_a_separator_however_they_are_read(
    monkeypatch, tmp_path: Path, block: int
) -> None:
    monkeypatch.setattr(sources, "_BLOCK_BYTES", block)
    text = ("é" * 3000 + "\n" + "<|endoftext|>" + "x\n") * 50
    (tmp_path / "text.txt").write_text(text)
    corpora = {"text": {"file": "text.txt"}, "ten": {"corpus": "text", "times": 10}}
    corpus = prepared(tmp_path, corpora, "text", 10**6)
    documents = corpus.path.read_bytes().split(END)
    assert b"".join(documents).decode() == text.replace("<|endoftext|>", "")
    assert sum(map(len, documents)) == corpus.text_bytes
    assert len(documents) > 3 and all(document.endswith(b"\n") for document in documents)
    ten = prepared(tmp_path, corpora, "ten", 10**7)
    assert ten.path.read_bytes().split(END) == documents * 10
    assert ten.text_bytes == corpus.text_bytes * 10


def test_drawings_are_svg_and_the_same_bytes_on_every_machine() -> None:
    text = b"".join(itertools.islice(drawings.drawings(), 300))
    documents = text.split(END)
    assert len(set(documents)) == 300
    for document in documents:
        assert ElementTree.fromstring(document).tag == "{http://www.w3.org/2000/svg}svg"
    assert hashlib.sha256(text).hexdigest() == (
        "bd430e9cd2c6b75a9da9d58a5810ee013904da1469b46449264a9877f7c17571"
    )
