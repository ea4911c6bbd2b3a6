"""verify: a good dataset has no problems, and whatever is changed in it is found and named."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import byteweld
from byteweld.corpus import Reading, open_corpus
from byteweld.dataset import _findings, _id_checks, _text_checks
from byteweld.dataset._manifest import FileEntry, SkipEntry, SourceEntry, load_manifest
from byteweld.dataset._order import is_validation
from byteweld.dataset.formats import FORMATS
from tests.helpers.byte_datasets import BYTES, EOT, make_dataset, with_eot

TEXTS = ("ab cab", "a", "x<|endoftext|>", "Ünï", "abab")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Two shards and a validation split."""
    documents = with_eot(*TEXTS)
    make_dataset(tmp_path / "set", [documents[:2], documents[2:]], [with_eot("val", "idation")])
    return tmp_path / "set"


def found(folder: Path, **arguments: Any) -> list[str]:
    return list(map(str, byteweld.verify(folder, **arguments).problems))


def sign(folder: Path, **changes: Any) -> None:
    """Write the manifest again with the sizes and hashes that the files have now."""
    manifest = load_manifest(folder)

    def current(file: FileEntry) -> FileEntry:
        data = (folder / file.name).read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        return FileEntry(name=file.name, size=len(data), sha256=sha256)

    shards = tuple(
        dataclasses.replace(shard, files=tuple(map(current, shard.files)))
        for shard in manifest.shards
    )
    dataclasses.replace(manifest, **{"shards": shards, **changes}).save(folder)


def test_a_good_dataset_has_no_problems(made):
    done: list[tuple[int, int]] = []
    result = byteweld.verify(made, tokenizer=BYTES, progress=lambda *at: done.append(at))
    assert result.is_good and result.problems == () and result.notes == ()
    size = sum(file.stat().st_size for file in made.iterdir() if file.name != "manifest.json")
    assert (result.files, result.bytes) == (6, size)
    assert done == sorted(done) and done[-1] == (size, size)
    assert (result.documents, result.encoded) == (7, 7)
    assert result.tokens == load_manifest(made).tokens
    assert byteweld.verify(made, tokenizer=BYTES, sample=3).encoded == 3
    assert byteweld.verify(made, tokenizer=BYTES, sample="all").encoded == 7
    assert byteweld.verify(made / "manifest.json").is_good
    assert result.to_dict()["problems"] == [] and result.to_dict()["is_good"]


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_one_flipped_bit_in_any_file_is_found_and_named(tmp_path, format):
    make_dataset(tmp_path / "set", [with_eot(*TEXTS)], format=format)
    rng = random.Random(format)
    names = sorted(file for file in (tmp_path / "set").rglob("*") if file.is_file())
    assert byteweld.verify(tmp_path / "set", tokenizer=BYTES).is_good
    for file in names:
        data = file.read_bytes()
        for at in {*range(min(len(data), 40)), *(rng.randrange(len(data)) for _ in range(40))}:
            changed = bytearray(data)
            changed[at] ^= 1 << rng.randrange(8)
            file.write_bytes(changed)
            result = byteweld.verify(tmp_path / "set", tokenizer=BYTES)
            name = file.relative_to(tmp_path / "set").as_posix()
            assert not result.is_good
            assert name in {problem.file for problem in result.problems}, (at, result.problems)
        file.write_bytes(data)


def test_a_changed_id_is_named_by_shard_and_document(made):
    file = made / "train_000001.bin"
    data = bytearray(file.read_bytes())
    data[1] = 0x7F  # the first id of document 2
    file.write_bytes(data)
    problems = byteweld.verify(made).problems
    assert [problem.file for problem in problems] == ["train_000001.bin"] * 2
    assert str(problems[0]).startswith("train_000001.bin, shard train 1: its SHA-256 is ")
    assert str(problems[1]) == (
        "train_000001.bin, shard train 1, document 2: has the id 32632; expected 0 to 257"
    )


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        (
            [[1, EOT], [1, 2], [3], [4, EOT]],
            "document 1: ends with the id 2; expected the id 257 at its end; "
            "the same is true of 1 more document",
        ),
        ([[1, EOT], []], "document 1: is empty; expected the id 257 at its end"),
        ([[1, EOT], [258, EOT]], "document 1: has the id 258; expected 0 to 257"),
        ([[1, EOT, 300, 400], [5, EOT, 999, EOT], [EOT]], "document 0: has the id 300; expected"),
    ],
)
def test_ids_are_checked_even_if_the_hashes_agree(tmp_path, documents, expected, monkeypatch):
    for window in (1, 3, 1000):  # ids and documents at once
        monkeypatch.setattr(_id_checks, "_WINDOW_TOKENS", window)
        monkeypatch.setattr(_id_checks, "_BATCH_DOCUMENTS", window)
        make_dataset(tmp_path / f"{window}", [documents])
        first, *_ = found(tmp_path / f"{window}")
        assert first.startswith(f"train.bin, shard train 0, {expected}")


def test_prepended_tokens_and_bos(tmp_path):
    options = {"eot": "prepend", "pack": None}
    manifest = make_dataset(tmp_path / "good", [[[EOT, 97], [EOT]]], options=options)
    assert found(tmp_path / "good", tokenizer=BYTES) == []
    make_dataset(tmp_path / "bad", [[[97, EOT], [EOT]]], options=options)
    assert found(tmp_path / "bad") == [
        "train.bin, shard train 0, document 0: starts with the id 97; "
        "expected the id 257 at its start"
    ]
    tokenizer = {**manifest.tokenizer, "bos": {"text": "a", "id": 97}}
    make_dataset(tmp_path / "bos", [[[97, 5, EOT], [97, EOT]]], tokenizer=tokenizer)
    assert found(tmp_path / "bos", tokenizer=BYTES) == []


def test_documents_that_continue_are_not_mistaken_for_whole_ones(tmp_path):
    shards = [[[1, EOT], [2, 3]], [[4]], [[5, EOT], [6, EOT]]]
    make_dataset(tmp_path / "set", shards, continues=[0, 1])
    result = byteweld.verify(tmp_path / "set", tokenizer=BYTES)
    assert result.problems == () and (result.documents, result.encoded) == (3, 3)
    make_dataset(tmp_path / "bad", [[[1, EOT], [2, 3]], [[4]], [[5], [6, EOT]]], continues=[0, 1])
    assert found(tmp_path / "bad") == [
        "train_000002.bin, shard train 2, document 1: ends with the id 5; "
        "expected the id 257 at its end"
    ]


def test_packed_rows_have_one_length(tmp_path):
    options = {"eot": "append", "pack": 3}
    make_dataset(tmp_path / "good", [[[1, EOT, 2], [3, 4, 5]]], options=options, format="npy")
    result = byteweld.verify(tmp_path / "good", tokenizer=BYTES)
    assert result.is_good and result.encoded == 0
    assert result.notes == ("packed rows are parts of documents, so they were not encoded again",)
    make_dataset(tmp_path / "bad", [[[1, EOT, 2], [3, 4]]], options=options, format="flat")
    assert found(tmp_path / "bad") == [
        "train.bin, shard train 0, document 1: has 2 ids; expected 3"
    ]


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ([5, 3, 9], "document 1: the index says that it ends before it starts"),
        ([5, 6, 8], "the last document ends at 8; expected 9, the number of ids"),
        ([2**63, 6, 9], "it ends before it starts"),
        ([5, 6], "expected 24: 0 of header, then 3 numbers"),
    ],
)
def test_an_index_that_does_not_fit_is_named(tmp_path, ends, message):
    make_dataset(tmp_path / "set", [[[1, 2, 3, 4, EOT], [EOT], [1, 2, EOT]]])
    (tmp_path / "set" / "train.bin.index").write_bytes(np.array(ends, "<u8").tobytes())
    sign(tmp_path / "set")
    problems = found(tmp_path / "set", tokenizer=BYTES)
    assert len(problems) == 1 and message in problems[0]
    assert problems[0].startswith("train.bin, shard train 0")


def test_missing_and_unexpected_files(made):
    (made / "train_000000.bin").unlink()
    (made / "train_000009.bin").write_bytes(b"left over")
    (made / "notes.txt").write_bytes(b"mine")
    result = byteweld.verify(made, tokenizer=BYTES)
    assert list(map(str, result.problems)) == [
        "train_000009.bin: the manifest does not list this file; remove it",
        "train_000000.bin, shard train 0: the file is missing",
    ]
    assert result.notes == ("not part of the dataset and not checked: 'notes.txt'",)
    assert result.encoded == 0


@pytest.mark.parametrize("size", [0, 5, 60])
def test_a_file_of_another_size(made, size):
    file = made / "val.bin"
    file.write_bytes(file.read_bytes()[:size].ljust(size, b"\0"))
    problems = found(made)
    assert problems[0] == f"val.bin, shard validation 0: has {size} bytes; expected 24"


def test_a_file_that_is_a_folder_or_a_pipe(made):
    import os

    (made / "val.bin").unlink()
    os.mkfifo(made / "val.bin")
    (made / "train_000000.bin").unlink()
    (made / "train_000000.bin").mkdir()
    assert found(made) == [
        "train_000000.bin, shard train 0: cannot be read: Is a directory",
        "val.bin, shard validation 0: expected a regular file, found a named pipe",
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"documents": 6}, ["manifest.json: documents is 6, but the splits have 7"]),
        (
            {"sources": (SourceEntry(name="a", size=1, xxh3_128=None, documents=8),)},
            ["manifest.json: documents is 7, but the sources have 8"],
        ),
        (
            {"skipped": (SkipEntry(source="a", reason="null"),)},
            ["manifest.json: skipped_documents is 0, but 1 are listed"],
        ),
        ({"tokens": 1}, ["manifest.json: tokens is 1, but the splits have 43"]),
        (
            {"splits": {"train": {"documents": 4, "tokens": 31}}},
            [
                "manifest.json: splits.train.documents is 4, but its shards have 5",
                "manifest.json: splits has no 'validation', but there are shards of it",
                "manifest.json: tokens is 43, but the splits have 31",
                "manifest.json: documents is 7, but the splits have 4",
            ],
        ),
    ],
)
def test_totals_of_the_manifest(made, changes, expected):
    sign(made, **changes)
    assert found(made) == expected


def test_a_damaged_manifest_is_a_problem_and_a_missing_one_an_error(made):
    data = (made / "manifest.json").read_bytes()
    (made / "manifest.json").write_bytes(data[:-9])
    (problem,) = byteweld.verify(made).problems
    assert problem.file == "manifest.json" and "expected JSON" in problem.message
    (made / "manifest.json").unlink()
    with pytest.raises(FileNotFoundError, match="this folder has no manifest"):
        byteweld.verify(made)


def test_an_incomplete_dataset_is_checked_as_far_as_it_goes(made):
    sign(made, is_complete=False)
    (made / ".unfinished").mkdir()
    (made / ".unfinished" / "train.bin").write_bytes(b"")
    (problem,) = found(made, tokenizer=BYTES)
    assert problem == (
        "the dataset is not complete; run the same `byteweld tokenize` again to finish it"
    )
    (made / "train_000000.bin").write_bytes(b"")
    assert len(found(made)) == 3


def test_another_tokenizer_is_a_problem(made):
    other = byteweld.Tokenizer.from_merges({byte: bytes([byte]) for byte in range(256)}, [])
    (problem,) = found(made, tokenizer=other)
    assert BYTES.vocab.fingerprint in problem and other.vocab.fingerprint in problem


def test_ids_that_the_tokenizer_would_not_produce_are_found(tmp_path):
    documents = [[97, 98, EOT], [256, EOT]]  # "ab" is one token
    make_dataset(tmp_path / "set", [documents])
    assert found(tmp_path / "set") == []
    assert found(tmp_path / "set", tokenizer=BYTES) == [
        "train.bin, shard train 0, document 0: its text encodes to other ids"
    ]


def test_special_tokens_in_the_text(tmp_path):
    documents = [[97, EOT, 98, EOT]]
    make_dataset(tmp_path / "set", [documents])
    assert len(found(tmp_path / "set", tokenizer=BYTES)) == 1
    sign(tmp_path / "set", options={"eot": "append", "pack": None, "special_text": "special"})
    assert found(tmp_path / "set", tokenizer=BYTES) == []


def test_a_tokenizer_that_rewrites_text_is_noted(tmp_path):
    vocab = byteweld.Vocabulary(
        BYTES.vocab.tokens,
        BYTES.vocab.merge_ids,
        special_tokens=BYTES.vocab.special_tokens,
        normalizer=("nfc",),
    )
    tok = byteweld.Tokenizer(vocab)
    tokenizer = {"fingerprint": vocab.fingerprint, "n_vocab": 258}
    options = {"eot": "none", "pack": None}
    make_dataset(tmp_path / "set", [[[97]]], tokenizer=tokenizer, options=options)
    result = byteweld.verify(tmp_path / "set", tokenizer=tok)
    assert result.is_good and result.encoded == 0
    assert result.notes == ("the tokenizer rewrites text, so documents were not encoded again",)


# ---------------------------------------------------------------------- the corpus


class Corpus(NamedTuple):
    """Files, and the dataset made from them."""

    folder: Path
    dataset: Path

    def found(self, **arguments: Any) -> list[str]:
        return found(self.dataset, source=self.folder, tokenizer=BYTES, **arguments)


READING: Any = {"unit": "line", "separator": None, "field": "text", "on_error": "skip"}


@pytest.fixture(params=["plain", "split", "shuffled", "packed", "packed, split"])
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> Corpus:
    """Documents of a text file, a compressed one and JSON lines, as a run would write them."""
    folder, kind = tmp_path / "corpus", request.param
    folder.mkdir()
    texts = [f"line {n} ab\n" for n in range(40)]
    (folder / "a.txt").write_text("".join(texts[:15]))
    (folder / "b.txt.gz").write_bytes(gzip.compress("".join(texts[15:30]).encode()))
    lines = [json.dumps({"text": text}) + "\n" for text in texts[30:]]
    (folder / "c.jsonl").write_text(lines[0] + "broken\n" + "".join(lines[1:]))
    fraction = 0.3 if "split" in kind else 0.0
    held = is_validation(np.arange(40, dtype=np.uint64), 7, fraction)
    splits = [[t for t, h in zip(texts, held, strict=True) if h == is_held] for is_held in (0, 1)]
    if kind == "shuffled":
        random.Random(1).shuffle(splits[0])
    pack = 7 if "packed" in kind else None
    written = [_rows(with_eot(*split), pack) for split in splits]
    dropped = sum(len(ids) for part in written for ids in part if pack and len(ids) < pack)
    if pack:
        written = [[ids for ids in part if len(ids) == pack] for part in written]
    options = {"eot": "append", "validation": fraction, "seed": 7, "shuffle": kind == "shuffled"}
    reader = open_corpus(folder, Reading(**READING)).documents(digest=True)
    assert len(list(reader)) == 40
    sources = tuple(
        SourceEntry(
            name=f"elsewhere/{number}", size=size, xxh3_128=f"{digest:032x}", documents=documents
        )
        for number, size, digest, documents, _ in reader.take_finished()
    )
    assert len(sources) == 3
    make_dataset(
        tmp_path / "set",
        [written[0][:3], written[0][3:]],
        [written[1]] if fraction else [],
        format="npy" if pack else "flat",
        options={**options, "pack": pack, "reading": READING},
        sources=sources,
        documents=40,
        dropped_tokens=dropped,
        tokens=sum(map(len, with_eot(*texts))) - dropped,
    )
    return Corpus(folder, tmp_path / "set")


def _rows(documents: list[list[int]], pack: int | None) -> list[list[int]]:
    if pack is None:
        return documents
    flat = [token for ids in documents for token in ids]
    return [flat[at : at + pack] for at in range(0, len(flat), pack)]


def test_a_dataset_agrees_with_its_corpus(corpus):
    done: list[tuple[int, int]] = []
    result = byteweld.verify(
        corpus.dataset,
        corpus.folder,
        tokenizer=BYTES,
        sample="all",
        progress=lambda *at: done.append(at),
    )
    assert result.problems == ()
    assert done == sorted(done) and done[-1][0] == done[-1][1] > result.bytes
    assert (result.sources, result.compared) == (3, 40)
    result = byteweld.verify(corpus.dataset, corpus.folder)
    assert result.is_good and (result.sources, result.compared) == (3, 0)
    assert result.notes == (
        "documents were not compared with the corpus, which needs the tokenizer",
    )


@pytest.mark.parametrize("name", ["a.txt", "b.txt.gz", "c.jsonl"])
def test_a_changed_source_is_named(corpus, name):
    file = corpus.folder / name
    data = file.read_bytes()
    if name.endswith(".gz"):
        file.write_bytes(gzip.compress(gzip.decompress(data).replace(b"17", b"71"), mtime=1))
    else:
        file.write_bytes(data.replace(b"14", b"41").replace(b"33", b"34"))
    problems = corpus.found(sample="all")
    assert any(problem.startswith(f"{file}: the source") for problem in problems)
    assert len(problems) >= 2
    (problem,) = found(corpus.dataset, source=corpus.folder)
    assert problem.startswith(f"{file}: the source")


def test_missing_longer_and_unreadable_sources(corpus):
    text = corpus.folder / "a.txt"
    size = text.stat().st_size
    text.write_bytes(text.read_bytes() + b"more\n")
    problems = corpus.found()
    assert f"{text}: the source has {size + 5} bytes; expected {size}" in problems
    (corpus.folder / "b.txt.gz").write_bytes(gzip.compress(b"line" * 100)[:-4])
    assert any("b.txt.gz" in problem for problem in corpus.found())
    text.unlink()
    problems = corpus.found()
    assert "the corpus has 2 files; the dataset was made from 3" in problems
    with pytest.raises(FileNotFoundError):
        byteweld.verify(corpus.dataset, "nowhere")


def test_documents_that_differ_from_the_corpus_are_found(corpus):
    """Other documents than those of the corpus, with hashes that agree with the files."""
    manifest = load_manifest(corpus.dataset)
    file = corpus.dataset / manifest.shards[1].files[0].name
    data = bytearray(file.read_bytes())
    at = data.index(ord("l"), 192)  # of "line", after a header
    data[at] = ord("L")
    file.write_bytes(data)
    sign(corpus.dataset)
    assert found(corpus.dataset, tokenizer=BYTES, sample="all") == []
    (problem,) = corpus.found(sample="all")
    if manifest.options["shuffle"]:
        assert problem == "the documents of train are not those of the corpus"
    elif manifest.options["pack"]:
        row = 3 + (at - 128) // 2 // 7  # after the header of npy
        assert f"document {row}: its ids differ from those of document" in problem
    else:
        assert "its text differs from document" in problem and "at byte 0, it has b'Line" in problem
        assert corpus.found(sample=0) == []


def test_extensions_are_chosen_again(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.xyz").write_text("ab")
    (tmp_path / "corpus" / "b.txt").write_text("other")
    make_dataset(
        tmp_path / "set",
        [with_eot("ab")],
        sources=(SourceEntry(name="a.xyz", size=2, xxh3_128=None, documents=1),),
    )
    arguments: Any = {"source": tmp_path / "corpus", "tokenizer": BYTES}
    assert found(tmp_path / "set", ext=".xyz", **arguments) == []
    assert len(found(tmp_path / "set", **arguments)) > 0


def test_documents_that_are_too_long_to_decode_are_noted(corpus, monkeypatch):
    monkeypatch.setattr(_text_checks, "_MAX_TOKENS", 10)
    result = byteweld.verify(corpus.dataset, corpus.folder, tokenizer=BYTES, sample="all")
    assert result.is_good
    options = load_manifest(corpus.dataset).options
    if options["pack"] is not None:  # rows are compared by their ids
        assert result.compared == 40
        return
    assert "documents of more than 10 tokens were not decoded" in result.notes
    assert result.encoded == 10  # those with one digit
    if options["shuffle"]:
        assert "train was not compared: 30 documents were not decoded" in result.notes
    else:
        assert result.compared == 10


def test_only_the_first_problems_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(_findings, "_MAX_LISTED", 5)
    make_dataset(tmp_path / "set", [[[97, 98, EOT]] * 20])
    result = byteweld.verify(tmp_path / "set", tokenizer=BYTES)
    assert len(result.problems) == 5 and result.num_problems == 20 and not result.is_good


@pytest.mark.parametrize("sample", [-1, 1.5, True, "some", None])
def test_a_wrong_sample_is_refused(made, sample):
    with pytest.raises(ValueError, match=r"it must be a number of documents, or 'all'"):
        byteweld.verify(made, sample=sample)
