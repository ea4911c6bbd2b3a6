"""Sources: files, saved counts and documents, however the user passes them."""

from __future__ import annotations

import os

import pytest

import byteweld
from byteweld import Counts
from byteweld.corpus import Corpus, Reading, open_corpus
from byteweld.sources import open_sources

TEXT = "low lower lowest low lower low"


def train(source=None, **options):
    return byteweld.train(source, **{"vocab_size": 262, "min_frequency": 1} | options)


def test_documents_are_strings_or_bytes():
    expected = train(iter([TEXT]))
    assert train(documents=[TEXT]) == expected
    assert train(documents=(TEXT.encode(),)) == expected
    assert train(documents=iter([TEXT])) == expected
    assert byteweld.count(documents=[TEXT]) == byteweld.count(iter([TEXT]))


def test_documents_are_added_to_files_and_to_counts(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    twice = byteweld.count(documents=[TEXT, TEXT])
    assert byteweld.count(tmp_path / "a.txt", documents=[TEXT]) == twice
    assert byteweld.count(byteweld.count(documents=[TEXT]), documents=[TEXT]) == twice


@pytest.mark.parametrize("wrong", [TEXT, TEXT.encode()])
def test_one_string_is_not_a_list_of_documents(wrong):
    with pytest.raises(TypeError, match="documents is a single string"):
        train(documents=wrong)


def test_a_source_or_documents_is_required_but_not_both():
    with pytest.raises(TypeError, match=r"pass a source .*, or documents=\[\.\.\.\]"):
        train()
    with pytest.raises(TypeError, match="either it or documents"):
        train(iter([TEXT]), documents=[TEXT])


def test_what_is_neither_a_path_nor_documents_is_named(tmp_path):
    with pytest.raises(TypeError, match="the source is bytes"):
        train(TEXT.encode())
    for item in (None, 5, byteweld.count(documents=[TEXT])):
        with pytest.raises(TypeError, match=r"the list contains .*; expected paths"):
            train([str(tmp_path), item])


@pytest.mark.parametrize(
    "source",
    [
        [TEXT, "another"],  # a list of strings is a list of paths
        *(["low\nlower\n"], ["x" * 100_000], ["é" * 200], ["a\0b"], ["a \ud800 b"]),
        *("a \ud800 b", "low\nlower", "low lower", "x" * 300, "x/" * 5000),
    ],
)
def test_strings_that_name_no_file_get_an_error_that_says_documents(source):
    for function in (train, byteweld.count):
        with pytest.raises(FileNotFoundError) as caught:
            function(source)
        assert "to use strings as documents, pass documents=[...]" in str(caught.value)
        assert len(str(caught.value)) < 300


def test_a_misspelled_path_is_not_mistaken_for_text(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    for source in (str(tmp_path / "b.txt"), [tmp_path / "a.txt", tmp_path / "b.txt"]):
        with pytest.raises(FileNotFoundError, match=r"no such file or folder$"):
            train(source)
    with pytest.raises(FileNotFoundError, match=r"no such file or folder$"):
        train("my books/b.txt")


def test_a_file_name_may_hold_a_newline(tmp_path):
    file = tmp_path / "a\nb.txt"
    file.write_text(TEXT)
    os.chdir(tmp_path)
    assert train(["a\nb.txt"]) == train(documents=[TEXT])


def test_reading_options_go_with_files_only(tmp_path):
    every = {"separator": "x", "ext": ".md", "field": "body", "on_error": "skip"}
    for name, value in {"lines": True, "json_lines": True, **every}.items():
        with pytest.raises(TypeError, match="how files are read"):
            train(documents=[TEXT], **{name: value})
        with pytest.raises(TypeError, match="how files are read"):
            byteweld.count(Counts({b"low": 1}), **{name: value})
    (tmp_path / "a.jsonl").write_text('{"body": "low low"}\n')
    counts = byteweld.count(tmp_path / "a.jsonl", field="body")
    assert counts.items() == [(b" low", 1), (b"low", 1)]


def test_an_unknown_option_is_an_error(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    with pytest.raises(TypeError, match=r"unknown option 'eos_token'; did you mean 'eos'\?"):
        train(documents=[TEXT], eos_token="<|endoftext|>")
    with pytest.raises(TypeError, match=r"unknown recipe field 'paterm'.*'pattern'"):
        train(tmp_path, paterm="gpt2")
    tok = train(documents=[TEXT])
    with pytest.raises(TypeError, match=r"unknown option 'unit'; expected one of ext, lines"):
        byteweld.evaluate(tok, tmp_path, unit="line")


def test_files_of_other_extensions_are_counted(tmp_path):
    for name in ("a.txt", "b.md", "c.pdf", "d.pdf", "e.png.gz", "f"):
        (tmp_path / name).write_text(TEXT)
    (tmp_path / "empty.pdf").write_text("")
    corpus = open_corpus(tmp_path)
    assert [file.name for file in corpus.files] == ["a.txt", "b.md"]
    assert corpus.skipped_files == {".pdf": 2, ".png": 1, "": 1}
    assert open_corpus(tmp_path, ext="*").skipped_files == {}
    assert open_corpus(tmp_path / "c.pdf").skipped_files == {}  # named, so it is read


def test_a_corpus_is_a_source(tmp_path):
    (tmp_path / "a.txt").write_text("low\nlower\n")
    corpus = open_corpus(tmp_path, unit="line")
    assert isinstance(corpus, Corpus)
    assert corpus.reading == Reading(unit="line")
    assert byteweld.count(corpus) == byteweld.count(tmp_path, lines=True)


def test_facts_name_every_file_and_no_document(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    facts = open_sources(tmp_path).facts()
    written = (tmp_path / "a.txt").stat().st_mtime_ns
    assert facts["files"] == [[str(tmp_path / "a.txt"), len(TEXT), written]]
    assert facts["reading"] == {
        "unit": "file",
        "separator": None,
        "field": "text",
        "json_lines": False,
        "on_error": "fail",
    }
    with pytest.raises(TypeError, match="a checkpoint needs files or saved counts"):
        open_sources(tmp_path, documents=[TEXT]).facts()
