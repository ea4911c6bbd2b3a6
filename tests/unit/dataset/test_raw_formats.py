"""Formats whose main file is the ids, read back by readers written from the layouts alone."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.dataset._shard import ShardName
from byteweld.dataset.formats import FORMATS, megatron
from byteweld.errors import FormatError, UnsupportedError
from tests.helpers import frameworks
from tests.helpers.frameworks import large
from tests.helpers.shards import TRAIN, lengths_of, make_shard, write_shard
from tests.helpers.strategies import examples

RAW = ["flat", "llmc", "megatron", "olmo", "datatrove", "npy"]
EVERY_DTYPE = [(name, dtype) for name in RAW for dtype in FORMATS[name].dtypes]
DOCUMENTS = [[5, 6, 7], [], [1], [], [250, 9, 9, 9], []]
VALIDATION = ShardName("validation", has_validation=True)


# ---------------------------------------------------------------------------- readers


def read_numbers(path, kind, offset=0):
    return list(struct.iter_unpack("<" + kind, path.read_bytes()[offset:]))


KINDS = {"uint8": "B", "uint16": "H", "uint32": "I", "int32": "i"}


def split_at(ids, ends):
    assert not ends or ends[-1] == len(ids)
    return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def read_ends(tokens, index, dtype, header=0):
    ids = [id for (id,) in read_numbers(tokens, KINDS[dtype], header)]
    return split_at(ids, [end for (end,) in read_numbers(index, "Q")])


def read_flat(files, dtype):
    return read_ends(*files, dtype)


def read_datatrove(files, dtype):
    return read_ends(*files, dtype)


def read_llmc(files, dtype):
    header = struct.unpack("<256i", files[0].read_bytes()[:1024])
    magic = {"uint16": (20240520, 1), "uint32": (20240801, 7)}[dtype]
    size = {"uint16": 2, "uint32": 4}[dtype]
    assert header[:2] == magic
    assert files[0].stat().st_size == 1024 + size * header[2]
    assert not any(header[3:])
    return read_ends(*files, dtype, header=1024)


def read_olmo(files, dtype):
    """The rows of .csv.gz leave out empty documents, so take those from the index."""
    documents = read_ends(files[0], files[2], dtype)
    ids = [id for (id,) in read_numbers(files[0], KINDS[dtype])]
    rows = [line.split(",") for line in gzip.decompress(files[1].read_bytes()).decode().split()]
    assert [ids[int(start) : int(end)] for start, end in rows] == [d for d in documents if d]
    return documents


def read_megatron(files, dtype):
    data, index = files[0].read_bytes(), files[1].read_bytes()
    magic, version, code, sequences, indices = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\x00\x00", 1)
    assert code == {"uint16": 8, "int32": 4}[dtype]
    size = {"uint16": 2, "int32": 4}[dtype]
    assert len(index) == 34 + 12 * sequences + 8 * indices
    lengths = struct.unpack_from(f"<{sequences}i", index, 34)
    offsets = struct.unpack_from(f"<{sequences}q", index, 34 + 4 * sequences)
    firsts = struct.unpack_from(f"<{indices}q", index, 34 + 12 * sequences)
    starts = [0, *itertools.accumulate(size * length for length in lengths)]
    assert list(offsets) == starts[:-1]
    assert firsts[0] == 0
    assert firsts[-1] == sequences
    documents = []
    for first, after in itertools.pairwise(firsts):
        ids: list[int] = []
        for sequence in range(first, after):
            ids += struct.unpack_from(
                f"<{lengths[sequence]}{KINDS[dtype]}", data, offsets[sequence]
            )
        documents.append(ids)
    assert sum(map(len, documents)) * size == len(data)
    return documents


def read_npy(files, dtype):
    ids = np.load(files[0], mmap_mode="r")
    assert ids.dtype == dtype
    ends = np.load(files[1], mmap_mode="r")
    assert ends.dtype == "uint64"
    return split_at(ids.ravel().tolist(), ends.tolist())


READERS = {
    "flat": read_flat,
    "llmc": read_llmc,
    "megatron": read_megatron,
    "olmo": read_olmo,
    "datatrove": read_datatrove,
    "npy": read_npy,
}


def files_of(folder, entry):
    return [folder / file.name for file in entry.files]


def opened(name, folder, documents, **options):
    entry, manifest = write_shard(FORMATS[name], folder, documents, **options)
    return FORMATS[name].open(folder, entry, manifest)


def check(kind, folder, documents, dtype, **options):
    """Write documents; the independent reader and our own find them again."""
    documents = [list(document) for document in documents]
    format = FORMATS[kind]
    entry, manifest = write_shard(format, folder, documents, dtype=dtype, **options)
    assert READERS[kind](files_of(folder, entry), dtype) == documents
    found = format.open(folder, entry, manifest)
    assert lengths_of(found) == [len(document) for document in documents]
    for number, document in enumerate(documents):
        assert found[number].tolist() == document
        assert found[number].dtype == dtype
    return entry


# ---------------------------------------------------------------------------- documents


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


@pytest.mark.parametrize("name", RAW)
def test_more_documents_than_a_batch(name, tmp_path):
    """Lengths are read in batches of 2^16; an index that starts anew with each would show."""
    lengths = np.random.default_rng(7).integers(0, 4, 100_000)
    ids = np.arange(int(lengths.sum())) % 251
    ends = np.cumsum(lengths)
    documents = [part.tolist() for part in np.split(ids, ends[:-1])]
    entry, manifest = write_shard(FORMATS[name], tmp_path, documents, dtype="uint16")
    assert READERS[name](files_of(tmp_path, entry), "uint16") == documents
    found = FORMATS[name].open(tmp_path, entry, manifest)
    assert lengths_of(found) == lengths.tolist()
    for number in (0, 65_535, 65_536, 65_537, 99_999):
        assert found[number].tolist() == documents[number]


@pytest.mark.parametrize("name", RAW)
@given(documents=st.lists(st.lists(st.integers(0, 65_535), max_size=8), max_size=30))
@examples(60)
def test_any_documents_are_found_again(name, documents, tmp_path_factory):
    check(name, tmp_path_factory.mktemp("any"), documents, "uint16")


@pytest.mark.parametrize("name", RAW)
def test_packed_rows_are_found_again(name, tmp_path):
    check(name, tmp_path, np.arange(60).reshape(15, 4), "uint16", pack=4)


@pytest.mark.parametrize("name", RAW)
def test_same_documents_give_same_bytes(name, tmp_path):
    written = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        entry, manifest = write_shard(FORMATS[name], folder, DOCUMENTS)
        written.append((entry.files, manifest.files))
    assert written[0] == written[1]


@pytest.mark.parametrize("name", RAW)
def test_the_tokens_file_is_renamed_and_its_ids_stay(name, tmp_path):
    """A run may have written terabytes: no format copies the ids."""
    format = FORMATS[name]
    header = bytes(format.header_bytes)
    shard = make_shard(tmp_path, DOCUMENTS, header_bytes=format.header_bytes)
    inode, before = shard.tokens.stat().st_ino, shard.tokens.read_bytes()
    format.write(shard, tmp_path)
    main = tmp_path / format.file_names(shard.name)[0]
    assert main.stat().st_ino == inode
    assert main.read_bytes()[len(header) :] == before[len(header) :]
    assert not shard.tokens.exists()


@pytest.mark.parametrize("name", RAW)
@pytest.mark.parametrize("change", ["missing", "extra", "truncated", "without the last"])
def test_lengths_that_do_not_fit_the_tokens_are_refused(name, change, tmp_path):
    shard = make_shard(tmp_path, DOCUMENTS, header_bytes=FORMATS[name].header_bytes)
    if change == "truncated":
        shard.lengths.write_bytes(shard.lengths.read_bytes()[:-12])
    elif change == "without the last":  # it is empty: the tokens are the same
        shard.lengths.write_bytes(shard.lengths.read_bytes()[:-8])
    else:
        step = -1 if change == "missing" else 1
        shard = dataclasses.replace(shard, num_tokens=shard.num_tokens + step)
    with pytest.raises(FormatError, match="expected 6 with"):
        FORMATS[name].write(shard, tmp_path)
    assert shard.tokens.exists()


@pytest.mark.parametrize("name", RAW)
def test_numbers_out_of_range_are_index_errors(name, tmp_path):
    found = opened(name, tmp_path, DOCUMENTS)
    for number in (-1, len(DOCUMENTS), 10**20):
        with pytest.raises(IndexError, match="not in a shard of 6"):
            found[number]


# ---------------------------------------------------------------------------- bytes by hand

INDEX = "020000000000000002000000000000000300000000000000"  # ends 2, 2, 3
BYTES = {
    ("flat", "uint16"): {"train.bin": "0100" "0002" "0300", "train.bin.index": INDEX},
    ("flat", "uint32"): {"train.bin": "01000000" "00020000" "03000000", "train.bin.index": INDEX},
    ("llmc", "uint16"): {
        "fineweb_train_000001.bin": "88d83401" "01000000" "03000000" + "00" * 1012
        + "0100" "0002" "0300",
        "fineweb_train_000001.bin.index": INDEX,
    },
    ("llmc", "uint32"): {
        "fineweb_train_000001.bin": "a1d93401" "07000000" "03000000" + "00" * 1012
        + "01000000" "00020000" "03000000",
        "fineweb_train_000001.bin.index": INDEX,
    },
    ("megatron", "uint16"): {
        "train_text_document.bin": "0100" "0002" "0300",
        "train_text_document.idx": "4d4d494449445800" "00"  # MMIDIDX
        "0100000000000000" "08"
        "0200000000000000"  # two sequences
        "0400000000000000"  # three documents and the end
        "02000000" "01000000"
        "0000000000000000" "0400000000000000"
        "0000000000000000" "0100000000000000" "0100000000000000" "0200000000000000",
    },
    ("megatron", "int32"): {
        "train_text_document.bin": "01000000" "00020000" "03000000",
        "train_text_document.idx": "4d4d494449445800" "00"
        "0100000000000000" "04"
        "0200000000000000"
        "0400000000000000"
        "02000000" "01000000"
        "0000000000000000" "0800000000000000"
        "0000000000000000" "0100000000000000" "0100000000000000" "0200000000000000",
    },
    ("datatrove", "uint16"): {
        "00000_unshuffled.ds": "0100" "0002" "0300",
        "00000_unshuffled.ds.index": INDEX,
        "00000_unshuffled.ds.metadata": (b"byteweld:" + b"0" * 64 + b"|2\n3\n3.00 T").hex(),
    },
    ("datatrove", "uint32"): {
        "00000_unshuffled.ds": "01000000" "00020000" "03000000",
        "00000_unshuffled.ds.index": INDEX,
        "00000_unshuffled.ds.metadata": (b"byteweld:" + b"0" * 64 + b"|4\n3\n3.00 T").hex(),
    },
}  # fmt: skip


@pytest.mark.parametrize(("name", "dtype"), BYTES)
def test_bytes_of_a_tiny_shard(name, dtype, tmp_path):
    write_shard(FORMATS[name], tmp_path, [[1, 512], [], [3]], dtype=dtype)
    written = {file.name: file.read_bytes().hex() for file in tmp_path.iterdir() if file.is_file()}
    assert written == BYTES[name, dtype]


def test_bytes_of_olmo(tmp_path):
    write_shard(FORMATS["olmo"], tmp_path, [[1, 512], [], [3]], dtype="uint16")
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == [
        "part-0-00000.csv.gz",
        "part-0-00000.npy",
        "part-0-00000.npy.index",
    ]
    assert (tmp_path / "part-0-00000.npy").read_bytes().hex() == "010000020300"
    assert (tmp_path / "part-0-00000.npy.index").read_bytes().hex() == INDEX
    rows = (tmp_path / "part-0-00000.csv.gz").read_bytes()
    assert gzip.decompress(rows) == b"0,2\n2,3\n"
    assert rows[3] == 0  # no file name
    assert rows[4:8] == bytes(4)  # no time


def test_bytes_of_npy(tmp_path):
    write_shard(FORMATS["npy"], tmp_path, [[1, 512], [], [3]], dtype="uint16")
    header = b"{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }"
    expected = b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117) + b"\n"
    assert (tmp_path / "train.npy").read_bytes() == expected + bytes.fromhex("010000020300")
    header = b"{'descr': '<u8', 'fortran_order': False, 'shape': (3,), }"
    expected = b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117) + b"\n"
    assert (tmp_path / "train.index.npy").read_bytes() == expected + bytes.fromhex(INDEX)


# ---------------------------------------------------------------------------- names and dtypes

TWO = ShardName(number=1, is_only=False)


@pytest.mark.parametrize(
    ("name", "shard", "expected"),
    [
        ("flat", TRAIN, ["train.bin", "train.bin.index"]),
        ("flat", VALIDATION, ["val.bin", "val.bin.index"]),
        ("flat", TWO, ["train_000001.bin", "train_000001.bin.index"]),
        ("npy", VALIDATION, ["val.npy", "val.index.npy"]),
        ("npy", TWO, ["train_000001.npy", "train_000001.index.npy"]),
        ("llmc", VALIDATION, ["fineweb_val_000000.bin", "fineweb_val_000000.bin.index"]),
        ("llmc", TWO, ["fineweb_train_000002.bin", "fineweb_train_000002.bin.index"]),
        ("llmc", ShardName(prefix="a"), ["a_train_000001.bin", "a_train_000001.bin.index"]),
        ("olmo", TWO, [f"part-0-00001.{end}" for end in ("npy", "csv.gz", "npy.index")]),
        (
            "olmo",
            VALIDATION,
            [f"validation/part-0-00000.{end}" for end in ("npy", "csv.gz", "npy.index")],
        ),
        (
            "datatrove",
            ShardName(has_validation=True, number=2, is_only=False),
            ["train/00002_unshuffled.ds", "train/00002_unshuffled.ds.index"],
        ),
        (
            "datatrove",
            ShardName(prefix="a", number=2, is_shuffled=True),
            ["a_00000_00002_shuffled.ds", "a_00000_00002_shuffled.ds.index"],
        ),
        ("megatron", TRAIN, ["train_text_document.bin", "train_text_document.idx"]),
        ("megatron", VALIDATION, ["valid_text_document.bin", "valid_text_document.idx"]),
        ("megatron", TWO, ["train_1_text_document.bin", "train_1_text_document.idx"]),
        ("megatron", ShardName(prefix="a"), ["a_text_document.bin", "a_text_document.idx"]),
        (
            "megatron",
            ShardName(prefix="a", has_validation=True),
            ["a_train_text_document.bin", "a_train_text_document.idx"],
        ),
        (
            "megatron",
            ShardName(prefix="a_raw_content_document"),
            ["a_raw_content_document.bin", "a_raw_content_document.idx"],
        ),
        (
            "megatron",
            ShardName(prefix="a_title_document", is_only=False),
            ["a_0_title_document.bin", "a_0_title_document.idx"],
        ),
    ],
)
def test_names(name, shard, expected):
    assert list(FORMATS[name].file_names(shard)) == expected


@pytest.mark.parametrize("name", RAW)
def test_no_two_shards_have_a_file_in_common(name):
    names = [
        file
        for split in ("train", "validation")
        for number in range(12)
        for file in FORMATS[name].file_names(ShardName(split, number, False, True))
    ]
    assert len(set(names)) == len(names)


def test_indexes_do_not_match_the_globs_of_the_loaders(tmp_path):
    write_shard(FORMATS["llmc"], tmp_path / "llmc", DOCUMENTS)
    found = [file.name for file in (tmp_path / "llmc").glob("fineweb_train_*.bin")]
    assert found == ["fineweb_train_000001.bin"]
    write_shard(FORMATS["olmo"], tmp_path / "olmo", DOCUMENTS)
    assert [file.name for file in (tmp_path / "olmo").glob("*.npy")] == ["part-0-00000.npy"]
    write_shard(FORMATS["datatrove"], tmp_path / "ds", DOCUMENTS)
    assert [file.name for file in (tmp_path / "ds").glob("*.ds")] == ["00000_unshuffled.ds"]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("flat", {65_536: "uint16", 65_537: "uint32"}),
        ("npy", {65_536: "uint16", 65_537: "uint32"}),
        ("llmc", {65_536: "uint16", 65_537: "uint32"}),
        ("datatrove", {65_536: "uint16", 65_537: "uint32"}),
        ("megatron", {65_499: "uint16", 65_500: "int32", 200_000: "int32"}),
        ("olmo", {256: "uint8", 257: "uint16", 65_536: "uint16", 65_537: "uint32"}),
    ],
)
def test_dtypes_follow_the_size_of_the_vocabulary(name, sizes):
    for n_vocab, dtype in sizes.items():
        assert FORMATS[name].dtype(n_vocab) == dtype
        assert dtype in FORMATS[name].dtypes


def test_tokens_for_people():
    """As datatrove writes them, by humanize.metric; tests/frameworks compares the two."""
    from byteweld.dataset.formats.datatrove import _for_people

    expected = {
        0: "0.00 T",
        7: "7.00 T",
        45: "45.0 T",
        999: "999 T",
        1000: "1.00 kT",
        9_995: "9.99 kT",
        999_999: "1.00 MT",
        1_000_000: "1.00 MT",
        12_345_678_901: "12.3 GT",
        10**15: "1.00 PT",
    }
    assert {tokens: _for_people(tokens) for tokens in expected} == expected


# ---------------------------------------------------------------------------- particular formats


def test_packed_npy_is_a_table(tmp_path):
    rows = np.arange(60).reshape(15, 4)
    write_shard(FORMATS["npy"], tmp_path, rows.tolist(), pack=4)
    assert np.array_equal(np.load(tmp_path / "train.npy", mmap_mode="r"), rows)


def test_packed_npy_without_rows(tmp_path):
    write_shard(FORMATS["npy"], tmp_path, [], pack=4)
    assert np.load(tmp_path / "train.npy", mmap_mode="r").shape == (0, 4)


def test_documents_of_equal_length_are_no_table(tmp_path):
    write_shard(FORMATS["npy"], tmp_path, [[1, 2], [3, 4]])
    assert np.load(tmp_path / "train.npy").shape == (4,)


def test_the_header_of_npy_has_room_for_any_shape():
    from byteweld.dataset.formats.npy import _header

    assert len(_header("uint32", (2**64, 2**64))) == 128


def test_megatron_divides_a_document_that_is_too_long_for_a_sequence(tmp_path, monkeypatch):
    """The limit is 2^31 - 1 ids; with 3, eight ids are three sequences of one document."""
    monkeypatch.setattr(megatron, "_MAX_LENGTH", 3)
    documents = [[1, 2], list(range(8)), [], [4, 5, 6], [7, 8, 9, 10]]
    entry = check("megatron", tmp_path, documents, "uint16")
    index = files_of(tmp_path, entry)[1].read_bytes()
    assert struct.unpack_from("<Q", index, 18) == (7,)
    assert struct.unpack_from("<7i", index, 34) == (2, 3, 3, 2, 3, 3, 1)


def test_llmc_refuses_a_shard_that_its_header_cannot_hold(tmp_path):
    shard = make_shard(tmp_path, [[1]], header_bytes=1024)
    with pytest.raises(UnsupportedError, match=r"2147483648 tokens.*at most 2147483647.*fewer"):
        FORMATS["llmc"].write(dataclasses.replace(shard, num_tokens=2**31), tmp_path)


def test_files_in_folders_by_split(tmp_path):
    for name in ("olmo", "datatrove"):
        entry = check(name, tmp_path / name, DOCUMENTS, "uint16", name=VALIDATION)
        assert all(file.name.startswith("validation/") for file in entry.files)


# ---------------------------------------------------------------------------- hostile files


@pytest.fixture(params=RAW)
def dataset(request, tmp_path):
    format = FORMATS[request.param]
    entry, manifest = write_shard(format, tmp_path, DOCUMENTS)
    return format, tmp_path, entry, manifest


def read_all(format, folder, entry, manifest):
    found = format.open(folder, entry, manifest)
    lengths = lengths_of(found)
    return [found[number].tolist() for number in range(len(lengths))]


def test_sizes_that_do_not_fit_are_named(dataset):
    """Every file that is opened, one byte shorter, one longer, empty."""
    format, folder, entry, manifest = dataset
    for file in files_of(folder, entry):
        if file.name.endswith(".csv.gz"):  # only for OLMo-core; `verify` checks its hash
            continue
        data = file.read_bytes()
        for changed in (data[:-1], data + b"\0", b"", data[:5]):
            file.write_bytes(changed)
            with pytest.raises(FormatError, match="expected") as error:
                format.open(folder, entry, manifest)
            assert error.value.path == str(file)
        file.write_bytes(data)
    assert read_all(format, folder, entry, manifest) == DOCUMENTS


def test_a_manifest_of_another_shard_is_refused(dataset):
    format, folder, entry, manifest = dataset
    for changes in (
        {"tokens": entry.tokens + 1},
        {"documents": entry.documents - 1},
        {"documents": 10**18},
        {"tokens": 10**18},
        {"files": entry.files[:1]},
        {"files": ()},
    ):
        with pytest.raises(FormatError):
            format.open(folder, dataclasses.replace(entry, **changes), manifest)


def test_missing_files_are_file_not_found(dataset):
    format, folder, entry, manifest = dataset
    for file in (files_of(folder, entry)[0], files_of(folder, entry)[-1]):
        data = file.read_bytes()
        file.unlink()
        with pytest.raises(FileNotFoundError):
            format.open(folder, entry, manifest)
        file.write_bytes(data)


@pytest.mark.parametrize("name", ["flat", "llmc", "olmo", "datatrove", "npy"])
@pytest.mark.parametrize(
    ("ends", "document"),
    [
        ([3, 3, 2, 4, 8, 8], 2),  # decreases
        ([3, 9, 4, 4, 8, 8], 1),  # beyond the end
        ([3, 2**63, 2**64 - 1, 4, 8, 8], 1),  # differences that are small again, modulo 2^64
    ],
)
def test_ends_out_of_order_are_named(name, ends, document, tmp_path):
    format = FORMATS[name]
    entry, manifest = write_shard(format, tmp_path, DOCUMENTS)
    index = files_of(tmp_path, entry)[-1]
    start = 128 if name == "npy" else 0
    index.write_bytes(index.read_bytes()[:start] + struct.pack("<6Q", *ends))
    found = format.open(tmp_path, entry, manifest)
    lengths = lengths_of(found)
    assert [length < 0 for length in lengths].index(True) == document
    with pytest.raises(FormatError, match="expected ends that do not decrease") as error:
        for number in range(6):
            found[number]
    assert error.value.path == str(index)


@pytest.mark.parametrize("name", ["flat", "llmc", "olmo", "datatrove", "npy"])
def test_a_last_end_that_is_not_the_last_id_is_refused(name, tmp_path):
    format = FORMATS[name]
    entry, manifest = write_shard(format, tmp_path, DOCUMENTS)
    index = files_of(tmp_path, entry)[-1]
    for end in (7, 9, 2**64 - 1):
        index.write_bytes(index.read_bytes()[:-8] + struct.pack("<Q", end))
        with pytest.raises(FormatError, match=f"the last document ends at {end}; expected 8"):
            format.open(tmp_path, entry, manifest)


@pytest.mark.parametrize(("name", "size"), [("llmc", 1024), ("npy", 128), ("megatron", 34)])
def test_every_byte_of_a_header_counts(name, size, tmp_path):
    format = FORMATS[name]
    entry, manifest = write_shard(format, tmp_path, DOCUMENTS)
    file = files_of(tmp_path, entry)[name == "megatron"]
    data = file.read_bytes()
    for position in range(size):
        changed = bytearray(data)
        changed[position] ^= 1
        file.write_bytes(changed)
        with pytest.raises(FormatError) as error:
            format.open(tmp_path, entry, manifest)
        assert error.value.path == str(file)


@given(data=st.data())
@examples(200)
def test_changed_bytes_of_an_index_are_found_or_harmless(data, tmp_path_factory):
    """No other exception, and no ids from outside the file."""
    format = FORMATS[data.draw(st.sampled_from(RAW))]
    folder = tmp_path_factory.mktemp("changed")
    entry, manifest = write_shard(format, folder, DOCUMENTS)
    index = files_of(folder, entry)[-1]
    changed = bytearray(index.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] = data.draw(st.integers(0, 255))
    index.write_bytes(changed)
    try:
        found = format.open(folder, entry, manifest)
    except FormatError:
        return
    for number in range(entry.documents):
        try:
            assert len(found[number]) <= entry.tokens
        except FormatError as error:
            assert error.path == str(index)
    try:
        lengths = lengths_of(found)
    except FormatError:
        return
    assert sum(lengths) == entry.tokens
    if min(lengths) >= 0:
        assert [len(found[number]) for number in range(entry.documents)] == lengths


@pytest.mark.parametrize(
    ("position", "kind", "value"),
    [
        (34, "i", 2),  # the length of a sequence
        (34 + 4 * 3 + 8, "q", 10),  # its offset
        (34 + 4 * 3 + 8, "q", 2**62),
        (34 + 4 * 3 + 8, "q", 7),  # an offset within an id
        (34 + 12 * 3 + 8, "q", 3),  # the first sequence of a document
        (34 + 12 * 3 + 8, "q", -1),
    ],
)
def test_a_wrong_index_of_megatron_is_named(position, kind, value, tmp_path):
    format = FORMATS["megatron"]
    entry, manifest = write_shard(format, tmp_path, DOCUMENTS)
    index = files_of(tmp_path, entry)[1]
    changed = bytearray(index.read_bytes())
    struct.pack_into("<" + kind, changed, position, value)
    index.write_bytes(changed)
    found = format.open(tmp_path, entry, manifest)
    with pytest.raises(FormatError, match="expected") as error:
        lengths_of(found)
    assert error.value.path == str(index)
    if kind == "q":  # Megatron-LM reads lengths by sequence; we read from offset to offset
        with pytest.raises(FormatError, match="is from sequence"):
            for number in range(entry.documents):
                found[number]


def test_megatron_does_not_count_sequences_from_the_end(tmp_path):
    format = FORMATS["megatron"]
    entry, manifest = write_shard(format, tmp_path, [[1, 2], [3], [4, 5]], dtype="uint16")
    index = files_of(tmp_path, entry)[1]
    changed = bytearray(index.read_bytes())
    struct.pack_into("<q", changed, 34 + 12 * 3 + 8, -1)
    index.write_bytes(changed)
    with pytest.raises(FormatError, match="document 0 is from sequence 0 to -1"):
        format.open(tmp_path, entry, manifest)[0]


def test_megatron_with_sequences_that_go_back_is_refused(tmp_path):
    """A negative length fits an offset that decreases, but nothing else."""
    format = FORMATS["megatron"]
    entry, manifest = write_shard(format, tmp_path, [[1, 2], [3], [4, 5]], dtype="uint16")
    index = files_of(tmp_path, entry)[1]
    changed = bytearray(index.read_bytes())
    struct.pack_into("<3i", changed, 34, 4, -1, 2)
    struct.pack_into("<3q", changed, 34 + 12, 0, 8, 6)
    index.write_bytes(changed)
    found = format.open(tmp_path, entry, manifest)
    with pytest.raises(FormatError, match="sequence 1 has -1 ids but -2 bytes"):
        lengths_of(found)
    with pytest.raises(FormatError, match="document 1 is from sequence 1 to 2"):
        found[1]


def test_megatron_with_ids_of_no_document_is_refused(tmp_path):
    entry, manifest = write_shard(FORMATS["megatron"], tmp_path, [])
    (tmp_path / "train_text_document.bin").write_bytes(bytes(4))
    entry = dataclasses.replace(entry, tokens=2)
    with pytest.raises(FormatError, match="from byte 4; expected 0 to 0 from byte 0"):
        FORMATS["megatron"].open(tmp_path, entry, manifest)


def test_opening_does_not_copy_ids(tmp_path):
    found = opened("flat", tmp_path, DOCUMENTS)
    assert not found[0].flags.owndata
    assert not found[0].flags.writeable


# ---------------------------------------------------------------------------- whole datasets

TEXTS = ["low lower", "", "lowest of all", "n", "newer and newest", "", "w" * 50]


@pytest.fixture(scope="module")
def tok():
    return byteweld.train(documents=TEXTS * 3, vocab_size=262, special_tokens=["<|endoftext|>"])


@pytest.mark.parametrize("shard_tokens", [None, 7, 1000])
@pytest.mark.parametrize("name", RAW)
def test_a_corpus_is_found_again_in_the_files(name, shard_tokens, tok, tmp_path):
    """Shards of 7 tokens cut documents in llmc, and end after one in the others."""
    manifest = byteweld.tokenize(
        documents=TEXTS, tokenizer=tok, out=tmp_path, format=name, shard_tokens=shard_tokens
    )
    found: list[list[int]] = []
    continues = False
    for shard in manifest.shards:
        documents = READERS[name](files_of(tmp_path, shard), manifest.dtype)
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


# ---------------------------------------------------------------------------- frozen files


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_megatron_writes_the_same_files(dtype, tmp_path):
    documents = frameworks.DOCUMENTS if dtype == "uint16" else large(frameworks.DOCUMENTS)
    entry, _ = write_shard(FORMATS["megatron"], tmp_path, documents, dtype=dtype)
    for file, suffix in zip(files_of(tmp_path, entry), ("bin", "idx"), strict=True):
        frozen = frameworks.FOLDER / f"megatron-{dtype}.{suffix}"
        assert file.read_bytes() == frozen.read_bytes()


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_datatrove_writes_the_same_files(dtype, tmp_path):
    documents = frameworks.DOCUMENTS if dtype == "uint16" else large(frameworks.DOCUMENTS)
    write_shard(FORMATS["datatrove"], tmp_path, documents, dtype=dtype)
    for suffix in ("", ".index", ".metadata"):
        frozen = frameworks.FOLDER / f"datatrove-{dtype}.ds{suffix}"
        assert (tmp_path / f"00000_unshuffled.ds{suffix}").read_bytes() == frozen.read_bytes()


def test_olmo_writes_the_same_rows(tmp_path):
    entry, _ = write_shard(FORMATS["olmo"], tmp_path, frameworks.DOCUMENTS, dtype="uint16")
    rows = gzip.decompress(files_of(tmp_path, entry)[1].read_bytes())
    assert rows == (frameworks.FOLDER / "olmo.csv").read_bytes()
