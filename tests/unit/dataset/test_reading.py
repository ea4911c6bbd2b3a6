"""open_dataset: documents by number and windows of ids, over shards, processes and threads."""

from __future__ import annotations

import dataclasses
import mmap
import multiprocessing
import os
import pickle
import struct
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.dataset import reading
from byteweld.dataset.formats import FORMATS
from byteweld.errors import FormatError, UnsupportedError
from tests.helpers.byte_datasets import BYTES, EOT, make_dataset, with_eot

TEXTS = ("ab cab", "", "x", "Ünï", "abab")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Three shards and a validation split."""
    documents = with_eot(*TEXTS)
    make_dataset(
        tmp_path / "set", [documents[:2], documents[2:3], documents[3:]], [with_eot("val")]
    )
    return tmp_path / "set"


def lists(arrays: Any) -> list[list[int]]:
    return [array.tolist() for array in arrays]


def test_documents_by_number(made):
    ds = byteweld.open_dataset(made)
    expected = with_eot(*TEXTS)
    assert len(ds) == 5 and ds.num_tokens == sum(map(len, expected))
    assert lists(ds) == expected == lists(ds[i] for i in range(5))
    assert lists([ds[-1], ds[-5], ds[np.int64(3)]]) == [expected[4], expected[0], expected[3]]
    assert lists(ds[1:4]) == expected[1:4] and lists(ds[::-2]) == expected[::-2] and ds[9:] == []
    assert ds.lengths.tolist() == list(map(len, expected))
    assert ds.dtype == ds[0].dtype == np.uint16
    assert ds.manifest.tokens == ds.num_tokens + 4
    assert ds.path == made and ds.split == "train"
    assert repr(ds) == f"<Dataset {str(made)!r} train: 5 documents, {ds.num_tokens} tokens, uint16>"
    for wrong in (5, -6, 2**70):
        with pytest.raises(IndexError, match=f"document {wrong} of 5"):
            ds[wrong]
    with pytest.raises(TypeError):
        ds["0"]  # type: ignore[call-overload]


def _owner(array: Any) -> object:
    """What has the memory of an array."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_every_format_reads_alike(tmp_path, format):
    documents = with_eot(*TEXTS)
    shards = [documents[:2], documents[2:3], documents[3:]]
    make_dataset(tmp_path / "set", shards, [with_eot("val")], format=format)
    ds = byteweld.open_dataset(tmp_path / "set", BYTES)
    assert lists(ds) == documents and ds.lengths.tolist() == list(map(len, documents))
    flat = [token for document in documents for token in document]
    for start in range(len(flat) + 1):
        for stop in (start, start + 1, start + 3, len(flat)):
            if start <= stop <= len(flat):
                assert ds.tokens(start, stop).tolist() == flat[start:stop]
    assert ds[0].dtype == ds.tokens(0, len(flat)).dtype == ds.dtype
    assert ds.text(0) == "ab cab<|endoftext|>"
    assert lists(byteweld.open_dataset(tmp_path / "set", split="validation")) == with_eot("val")
    assert lists(pickle.loads(pickle.dumps(ds))) == documents


def test_arrays_are_mapped_and_read_only(made):
    document = byteweld.open_dataset(made)[0]
    assert isinstance(_owner(document), mmap.mmap)
    with pytest.raises(ValueError, match="read-only"):
        document[0] = 1


def test_the_validation_split(made):
    ds = byteweld.open_dataset(made, split="validation")
    assert lists(ds) == with_eot("val")
    with pytest.raises(ValueError, match=r"split is 'val'; it must be 'train' or 'validation'$"):
        byteweld.open_dataset(made, split="val")  # type: ignore[arg-type]
    make_dataset(made.parent / "one", [with_eot("a")])
    with pytest.raises(ValueError, match=r"one has no split 'validation', only 'train'"):
        byteweld.open_dataset(made.parent / "one", split="validation")


def test_text_needs_the_tokenizer_that_made_the_dataset(made):
    ds = byteweld.open_dataset(made, BYTES)
    assert [ds.text(i) for i in range(5)] == [f"{text}<|endoftext|>" for text in TEXTS]
    assert ds.text(-1) == "abab<|endoftext|>"
    with pytest.raises(ValueError, match="pass it to open_dataset"):
        byteweld.open_dataset(made).text(0)
    other = byteweld.Tokenizer.from_merges({byte: bytes([byte]) for byte in range(256)}, [])
    with pytest.raises(UnsupportedError) as caught:
        byteweld.open_dataset(made, other)
    assert BYTES.vocab.fingerprint in str(caught.value)
    assert other.vocab.fingerprint in str(caught.value)
    with pytest.raises(TypeError, match="tokenizer is a str; it must be a Tokenizer"):
        byteweld.open_dataset(made, "tokenizer.json")  # type: ignore[arg-type]


def test_the_manifest_names_the_dataset_too(made):
    assert len(byteweld.open_dataset(made / "manifest.json")) == 5
    assert len(byteweld.open_dataset(str(made))) == 5


def test_an_incomplete_dataset_is_refused(tmp_path):
    make_dataset(tmp_path / "set", [with_eot("a")], is_complete=False)
    with pytest.raises(FormatError, match="run the same `byteweld tokenize` again to finish it"):
        byteweld.open_dataset(tmp_path / "set")


def test_an_unknown_format_or_dtype_is_refused(tmp_path):
    make_dataset(tmp_path / "set", [with_eot("a")], format="flat")
    manifest = byteweld.open_dataset(tmp_path / "set").manifest
    dataclasses.replace(manifest, format="tomorrow's").save(tmp_path / "set")
    with pytest.raises(UnsupportedError, match='format "tomorrow\'s", which this version'):
        byteweld.open_dataset(tmp_path / "set")[0]
    dataclasses.replace(manifest, dtype="int64").save(tmp_path / "set")
    with pytest.raises(FormatError, match="the dtype is 'int64'; format 'flat' has uint16, uint32"):
        byteweld.open_dataset(tmp_path / "set")[0]


def test_windows_of_ids_outside_the_split_are_index_errors(made):
    ds = byteweld.open_dataset(made)
    size = ds.num_tokens
    assert ds.tokens(3, 3).dtype == np.uint16
    for start, stop in ((0, size + 1), (-1, 3), (4, 3)):
        with pytest.raises(IndexError, match=f"ids {start} to {stop} of {size}"):
            ds.tokens(start, stop)


@given(data=st.data())
def test_documents_that_continue_in_later_shards_are_joined(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("set")
    document = st.lists(st.integers(0, 255), max_size=9).map(lambda ids: [*ids, EOT])
    documents = data.draw(st.lists(document, min_size=1, max_size=8))
    flat = [token for ids in documents for token in ids]
    size = data.draw(st.integers(1, len(flat)))
    shards: list[list[list[int]]] = []
    continues = []
    rest = [list(ids) for ids in documents]
    while rest:
        shard, room = [], size
        while rest and room:
            piece, rest[0] = rest[0][:room], rest[0][room:]
            shard.append(piece)
            room -= len(piece)
            if rest[0]:
                continues.append(len(shards))
            else:
                rest.pop(0)
        shards.append(shard)
    make_dataset(folder, shards, continues=continues)
    ds = byteweld.open_dataset(folder)
    assert lists(ds) == documents
    limit = data.draw(st.integers(0, 12))
    heads = [ds.head(number, limit).tolist() for number in range(len(ds))]
    assert heads == [ids[:limit] for ids in documents]
    assert lists(ds[number] for number in reversed(range(len(ds)))) == documents[::-1]
    assert ds.lengths.tolist() == list(map(len, documents))
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(flat))] * 2)))
    assert ds.tokens(start, stop).tolist() == flat[start:stop]


def test_empty_splits_and_empty_shards(tmp_path):
    make_dataset(tmp_path / "none")
    ds = byteweld.open_dataset(tmp_path / "none")
    assert (len(ds), ds.num_tokens, list(ds), ds.lengths.tolist()) == (0, 0, [], [])
    assert ds.tokens(0, 0).tolist() == []
    with pytest.raises(IndexError):
        ds[0]
    make_dataset(tmp_path / "some", [[], [[1], []], [], [[], [2, 3]], []])
    ds = byteweld.open_dataset(tmp_path / "some")
    assert lists(ds) == [[1], [], [], [2, 3]] and ds.tokens(0, 3).tolist() == [1, 2, 3]


def test_pickled_it_is_reopened_by_its_path(made, monkeypatch):
    ds = byteweld.open_dataset(made, BYTES, split="validation")
    ds.lengths  # noqa: B018 (cached, and must not be pickled)
    data = pickle.dumps(byteweld.open_dataset(made))
    assert len(data) < 500
    monkeypatch.chdir("/")
    again = pickle.loads(pickle.dumps(ds))
    assert again.text(0) == "val<|endoftext|>" and again.split == "validation"


def _document(given: tuple[reading.Dataset, int]) -> list[int]:
    dataset, number = given
    found: list[int] = dataset[number].tolist()
    return found


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_worker_processes_read_the_same_documents(made, method, monkeypatch):
    monkeypatch.chdir(made.parent)
    ds = byteweld.open_dataset("set")
    ds[0]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_document, [(ds, number) for number in range(5)]) == with_eot(*TEXTS)


def test_threads_share_a_dataset(made, monkeypatch):
    monkeypatch.setattr(reading, "_MAX_OPEN_SHARDS", 1)  # the shards take turns
    ds = byteweld.open_dataset(made)
    expected = with_eot(*TEXTS)
    wrong: list[object] = []

    def read() -> None:
        for _ in range(200):
            for number in (0, 4, 2, 1, 3):
                if ds[number].tolist() != expected[number]:
                    wrong.append(number)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_lengths_of_a_damaged_index_are_refused(tmp_path):
    make_dataset(tmp_path / "set", [[[1, 2, 3], [4], [5, 6]]])
    index = tmp_path / "set" / "train.bin.index"
    index.write_bytes(np.array([3, 2, 6], "<u8").tobytes())
    ds = byteweld.open_dataset(tmp_path / "set")
    with pytest.raises(FormatError, match="document 1 of the shard ends before it starts"):
        ds.lengths  # noqa: B018
    with pytest.raises(FormatError, match="document 1 is from 3 to 2"):
        ds[1]


def test_more_shards_than_file_descriptors(tmp_path):
    resource = pytest.importorskip("resource")
    make_dataset(tmp_path / "set", [with_eot(str(number)) for number in range(400)])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    ds = byteweld.open_dataset(tmp_path / "set")
    resource.setrlimit(resource.RLIMIT_NOFILE, (350, limits[1]))
    try:
        assert lists(ds) == with_eot(*map(str, range(400)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_opening_reads_no_lengths(tmp_path):
    """An index of 10^8 documents, most of it a hole, takes no memory."""
    resource = pytest.importorskip("resource")
    manifest = make_dataset(tmp_path / "set", [with_eot("ab", "c")])
    many = 10**8
    with (tmp_path / "set" / "train.bin.index").open("r+b") as file:
        file.truncate(8 * many)
        file.seek(-8, os.SEEK_END)
        file.write(struct.pack("<Q", manifest.tokens))
    (entry,) = manifest.shards
    tokens, index = entry.files
    index = dataclasses.replace(index, size=8 * many)
    entry = dataclasses.replace(entry, documents=many, files=(tokens, index))
    dataclasses.replace(manifest, shards=(entry,)).save(tmp_path / "set")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ds = byteweld.open_dataset(tmp_path / "set")
    assert len(ds) == many
    assert ds[0].tolist() == [256, EOT]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + (100 << 10)  # KiB
