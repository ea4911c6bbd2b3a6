"""What holds for every format of datasets, read back by readers written from the layouts alone."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.dataset._shard import ShardName
from byteweld.dataset.formats import FORMATS
from byteweld.errors import FormatError
from tests.helpers.format_readers import (
    files_of,
    files_under,
    lengths_of,
    put,
    read_back,
    read_shard,
)
from tests.helpers.shards import TRAIN, write_dataset, write_shard
from tests.helpers.strategies import examples

EVERY_DTYPE = [(name, dtype) for name in FORMATS for dtype in FORMATS[name].dtypes]
DOCUMENTS = [[5, 6, 7], [], [1], [], [250, 9, 9, 9], []]
VALIDATION = ShardName("validation", has_validation=True)
TWO = ShardName(number=1, is_only=False)


def check(name, folder, documents, dtype=None, **options):
    """Write a shard; the independent reader and our own find its documents again."""
    documents = [list(document) for document in documents]
    entry, manifest = write_shard(FORMATS[name], folder, documents, dtype=dtype, **options)
    assert read_shard(name, folder, entry, manifest.dtype) == documents
    assert read_back(name, folder, entry, manifest) == documents
    found = FORMATS[name].open(folder, entry, manifest)
    assert {found[number].dtype for number in range(len(documents))} <= {np.dtype(manifest.dtype)}


# ---------------------------------------------------------------------- documents


@pytest.mark.parametrize(("name", "dtype"), EVERY_DTYPE)
@pytest.mark.parametrize(
    "documents",
    [DOCUMENTS, [], [[]], [[], []], [[1]], [[2] * 70_000]],
    ids=["mixed", "no documents", "one empty", "all empty", "one id", "one long"],
)
def test_documents_are_found_again(name, dtype, documents, tmp_path):
    check(name, tmp_path, documents, dtype)


@pytest.mark.parametrize(("name", "dtype"), EVERY_DTYPE)
def test_smallest_and_largest_ids_are_found_again(name, dtype, tmp_path):
    top = int(np.iinfo(dtype).max)
    check(name, tmp_path, [[0, top], [top - 1, 1]], dtype)


@pytest.mark.parametrize("name", FORMATS)
def test_more_documents_than_a_batch(name, tmp_path):
    """Lengths are read in batches of 2^16; an index that starts anew with each would show."""
    documents = [[number % 200] * (number % 3) for number in range(150_000)]
    entry, manifest = write_shard(FORMATS[name], tmp_path, documents, dtype="uint16")
    assert read_shard(name, tmp_path, entry, "uint16") == documents
    found = FORMATS[name].open(tmp_path, entry, manifest)
    assert lengths_of(found) == [len(document) for document in documents]
    for number in (0, 1, 65_535, 65_536, 65_537, 131_072, 149_999):
        assert found[number].tolist() == documents[number]


@pytest.mark.parametrize("name", FORMATS)
@given(documents=st.lists(st.lists(st.integers(0, 65_535), max_size=300), max_size=40))
@examples(40)
def test_any_documents_are_found_again(name, documents, tmp_path_factory):
    check(name, tmp_path_factory.mktemp("any"), documents, "uint16")


@pytest.mark.parametrize("name", FORMATS)
def test_packed_rows_are_found_again(name, tmp_path):
    check(name, tmp_path, np.arange(64 * 100).reshape(100, 64) % 251, "uint16", pack=64)


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_documents_give_the_same_bytes(name, tmp_path):
    splits = {"train": [DOCUMENTS, [[3] * 300]], "validation": [DOCUMENTS]}
    for folder in ("a", "b"):
        write_dataset(FORMATS[name], tmp_path / folder, splits)
    assert files_under(tmp_path / "a") == files_under(tmp_path / "b")


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_out_of_range_are_index_errors(name, tmp_path):
    found = FORMATS[name].open(tmp_path, *write_shard(FORMATS[name], tmp_path, DOCUMENTS))
    for number in (-1, len(DOCUMENTS), 10**20):
        with pytest.raises(IndexError, match=f"document {number} is not in a shard of 6"):
            found[number]


# ---------------------------------------------------------------------- names and dtypes


@pytest.mark.parametrize(
    ("name", "shard", "expected"),
    [
        ("flat", TRAIN, "train.bin train.bin.index"),
        ("flat", VALIDATION, "val.bin val.bin.index"),
        ("flat", TWO, "train_000001.bin train_000001.bin.index"),
        ("npy", VALIDATION, "val.npy val.index.npy"),
        ("npy", TWO, "train_000001.npy train_000001.index.npy"),
        ("llmc", VALIDATION, "fineweb_val_000000.bin fineweb_val_000000.bin.index"),
        ("llmc", TWO, "fineweb_train_000002.bin fineweb_train_000002.bin.index"),
        ("llmc", ShardName(prefix="a"), "a_train_000001.bin a_train_000001.bin.index"),
        ("olmo", TWO, "part-0-00001.npy part-0-00001.csv.gz part-0-00001.npy.index"),
        (
            "olmo",
            VALIDATION,
            "validation/part-0-00000.npy validation/part-0-00000.csv.gz "
            "validation/part-0-00000.npy.index",
        ),
        (
            "datatrove",
            ShardName(has_validation=True, number=2, is_only=False),
            "train/00002_unshuffled.ds train/00002_unshuffled.ds.index",
        ),
        (
            "datatrove",
            ShardName(prefix="a", number=2, is_shuffled=True),
            "a_00000_00002_shuffled.ds a_00000_00002_shuffled.ds.index",
        ),
        ("megatron", TRAIN, "train_text_document.bin train_text_document.idx"),
        ("megatron", VALIDATION, "valid_text_document.bin valid_text_document.idx"),
        ("megatron", TWO, "train_1_text_document.bin train_1_text_document.idx"),
        ("megatron", ShardName(prefix="a"), "a_text_document.bin a_text_document.idx"),
        (
            "megatron",
            ShardName(prefix="a", has_validation=True),
            "a_train_text_document.bin a_train_text_document.idx",
        ),
        (
            "megatron",
            ShardName(prefix="a_raw_content_document"),
            "a_raw_content_document.bin a_raw_content_document.idx",
        ),
        (
            "megatron",
            ShardName(prefix="a_title_document", is_only=False),
            "a_0_title_document.bin a_0_title_document.idx",
        ),
        ("parquet", TWO, "train-00001.parquet"),
        ("arrow", VALIDATION, "validation-00000.arrow"),
        ("hf", TWO, "data-00001.arrow"),
        ("hf", VALIDATION, "validation/data-00000.arrow"),
        ("mds", TWO, "shard.00001.mds"),
        ("mds", VALIDATION, "val/shard.00000.mds"),
        ("litdata", TWO, "chunk-0-1.bin"),
        ("litdata", VALIDATION, "val/chunk-0-0.bin"),
    ],
)
def test_names(name, shard, expected):
    assert list(FORMATS[name].file_names(shard)) == expected.split()


@pytest.mark.parametrize("name", FORMATS)
def test_no_two_shards_have_a_file_in_common(name):
    names = [
        file
        for split in ("train", "validation")
        for number in range(12)
        for file in FORMATS[name].file_names(ShardName(split, number, False, True))
    ]
    assert len(set(names)) == len(names)


BY_65_536 = {65_536: "uint16", 65_537: "uint32"}
SIGNED = {256: "int32", 1 << 31: "int32", (1 << 31) + 1: "uint32"}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        *((name, BY_65_536) for name in ("flat", "npy", "llmc", "datatrove")),
        ("megatron", {65_499: "uint16", 65_500: "int32", 200_000: "int32"}),
        ("olmo", {256: "uint8", 257: "uint16", **BY_65_536}),
        *((name, {256: "uint32", 1 << 32: "uint32"}) for name in ("parquet", "arrow", "hf")),
        *((name, SIGNED) for name in ("mds", "litdata")),
    ],
)
def test_dtypes_follow_the_size_of_the_vocabulary(name, sizes):
    for n_vocab, dtype in sizes.items():
        assert FORMATS[name].dtype(n_vocab) == dtype
        assert dtype in FORMATS[name].dtypes


# ---------------------------------------------------------------------- damaged files


@pytest.fixture(params=FORMATS)
def name(request):
    return request.param


@pytest.fixture
def made(tmp_path, name):
    """A shard, and its files that are opened: `.csv.gz` is for OLMo-core only."""
    entry, manifest = write_shard(FORMATS[name], tmp_path, [*DOCUMENTS, [3] * 300])
    files = files_of(tmp_path, entry)
    opened = {at: file.read_bytes() for at, file in enumerate(files) if file.suffix != ".gz"}
    return tmp_path, entry, manifest, opened


def test_a_file_cut_anywhere_or_longer_is_refused_by_its_name(name, made):
    folder, entry, manifest, files = made
    for at, data in files.items():
        cut = [data[:size] for size in (*range(0, len(data), 7), len(data) - 1)]
        for changed in (*cut, data + b"\0"):
            found = put(folder, entry, changed, at)
            with pytest.raises(FormatError) as error:
                # The manifest knows the size of what was cut, but not of what is too long.
                read_back(name, folder, found if changed in cut else entry, manifest)
            assert error.value.path == str(folder / entry.files[at].name)
        put(folder, entry, data, at)


def test_damage_is_a_format_error_or_other_ids(name, made):
    """No other exception, and no ids from outside the file."""
    folder, entry, manifest, files = made
    generator = np.random.default_rng(1)
    outcomes = set()
    for at, data in [*files.items()] * (200 // len(files)):
        changed = bytearray(data)
        for place in generator.integers(0, len(data), generator.integers(1, 4)):
            changed[place] = generator.choice([0, 1, 0x7F, 0x80, 0xFF, changed[place] ^ 4])
        try:
            read_back(name, folder, put(folder, entry, bytes(changed), at), manifest)
            outcomes.add("read")
        except FormatError as error:
            assert str(folder) in str(error)
            outcomes.add("refused")
        put(folder, entry, data, at)
    assert outcomes == {"read", "refused"}


@pytest.mark.timeout(20)
def test_only_regular_files_are_read(name, made):
    folder, entry, manifest, files = made
    for at, data in files.items():
        path = folder / entry.files[at].name
        path.unlink()
        with pytest.raises(FileNotFoundError):
            read_back(name, folder, entry, manifest)
        os.mkfifo(path)
        with pytest.raises(FormatError, match="expected a regular file, found a named pipe"):
            read_back(name, folder, entry, manifest)
        path.unlink()
        put(folder, entry, data, at)


def test_a_manifest_of_another_shard_is_refused(name, made):
    folder, entry, manifest, _ = made
    for changes in (
        {"tokens": entry.tokens + 1},
        {"documents": entry.documents - 1},
        {"documents": entry.documents + 1},
        {"documents": 10**18},
        {"tokens": 10**18},
        {"files": entry.files * 2},
        {"files": ()},
    ):
        if "tokens" in changes and name in ("mds", "litdata"):  # their shards do not have it
            continue
        with pytest.raises(FormatError, match="expected"):
            read_back(name, folder, dataclasses.replace(entry, **changes), manifest)
    other = "uint16" if manifest.dtype != "uint16" else FORMATS[name].dtypes[1]
    if name != "litdata":  # which has no dtype in its chunks
        with pytest.raises(FormatError):
            read_back(name, folder, entry, dataclasses.replace(manifest, dtype=other))


# ---------------------------------------------------------------------- whole datasets

TEXTS = ["low lower", "", "lowest of all", "n", "newer and newest", "", "w" * 50]


@pytest.fixture(scope="module")
def tok():
    return byteweld.train(documents=TEXTS * 3, vocab_size=262, special_tokens=["<|endoftext|>"])


@pytest.mark.parametrize("shard_tokens", [None, 7, 1000])
@pytest.mark.parametrize("name", FORMATS)
def test_a_corpus_is_found_again_in_the_files(name, shard_tokens, tok, tmp_path):
    """Shards of 7 tokens cut documents in llmc, and end after one in the others."""
    manifest = byteweld.tokenize(
        documents=TEXTS, tokenizer=tok, out=tmp_path, format=name, shard_tokens=shard_tokens
    )
    found: list[list[int]] = []
    continues = False
    for shard in manifest.shards:
        documents = read_shard(name, tmp_path, shard, manifest.dtype)
        if continues:
            found[-1] += documents.pop(0)
        found += documents
        continues = shard.continues
        if shard_tokens and name == "llmc" and shard is not manifest.shards[-1]:
            assert shard.tokens == shard_tokens
    assert not continues
    eot = [tok.eot_token]
    expected = {
        "llmc": [[*eot, *tok.encode(text)] for text in TEXTS],
        "megatron": [[*tok.encode(text), *eot] if text else [] for text in TEXTS],
    }
    assert found == expected.get(name, [[*tok.encode(text), *eot] for text in TEXTS])
