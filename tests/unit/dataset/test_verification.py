"""verify: a good dataset has no problems, and whatever is changed in it is found and named."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byteweld
from byteweld.dataset import _id_checks, _problems
from byteweld.dataset._manifest import FileEntry, load_manifest
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
    done: list[int] = []
    result = byteweld.verify(made, tokenizer=BYTES, progress=done.append)
    assert result.is_good and result.problems == () and result.notes == ()
    size = sum(file.stat().st_size for file in made.iterdir() if file.name != "manifest.json")
    assert (result.files, result.bytes) == (6, size) and done == sorted(done) and done[-1] == size
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
    tokenizer = {
        "fingerprint": BYTES.vocab.fingerprint,
        "n_vocab": 258,
        "eot": {"text": "<|endoftext|>", "id": EOT},
    }
    options = {"eot": "prepend", "pack": None}
    make_dataset(tmp_path / "good", [[[EOT, 97], [EOT]]], tokenizer=tokenizer, options=options)
    assert found(tmp_path / "good", tokenizer=BYTES) == []
    make_dataset(tmp_path / "bad", [[[97, EOT], [EOT]]], tokenizer=tokenizer, options=options)
    assert found(tmp_path / "bad") == [
        "train.bin, shard train 0, document 0: starts with the id 97; "
        "expected the id 257 at its start"
    ]
    tokenizer["bos"] = {"text": "a", "id": 97}
    options = {"eot": "append", "pack": None}
    make_dataset(
        tmp_path / "bos", [[[97, 5, EOT], [97, EOT]]], tokenizer=tokenizer, options=options
    )
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
    (made / "work").mkdir()
    (made / "work" / "train.bin").write_bytes(b"")
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


def test_only_the_first_problems_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(_problems, "_MAX_LISTED", 5)
    make_dataset(tmp_path / "set", [[[97, 98, EOT]] * 20])
    result = byteweld.verify(tmp_path / "set", tokenizer=BYTES)
    assert len(result.problems) == 5 and result.num_problems == 20 and not result.is_good


@pytest.mark.parametrize("sample", [-1, 1.5, True, "some", None])
def test_a_wrong_sample_is_refused(made, sample):
    with pytest.raises(ValueError, match=r"it must be a number of documents, or 'all'"):
        byteweld.verify(made, sample=sample)
