"""Formats whose main file is the ids: their bytes, and damaged files."""

from __future__ import annotations

import dataclasses
import gzip
import struct

import numpy as np
import pytest

from byteweld.dataset.formats import FORMATS, megatron
from byteweld.errors import FormatError, UnsupportedError
from tests.helpers import frameworks
from tests.helpers.format_readers import files_of, files_under, lengths_of, read_shard
from tests.helpers.frameworks import large
from tests.helpers.shards import make_shard, write_shard

FLAT = FORMATS["flat"]
WITH_ENDS = ["flat", "llmc", "olmo", "datatrove", "npy"]
RAW = [*WITH_ENDS, "megatron"]
DOCUMENTS = [[5, 6, 7], [], [1], [], [250, 9, 9, 9], []]


# ---------------------------------------------------------------------------- documents


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
}  # fmt: skip


@pytest.mark.parametrize(("name", "dtype"), BYTES)
def test_bytes_of_a_tiny_shard(name, dtype, tmp_path):
    write_shard(FORMATS[name], tmp_path, [[1, 512], [], [3]], dtype=dtype)
    written = {file: data.hex() for file, data in files_under(tmp_path).items()}
    assert written == BYTES[name, dtype]


def test_bytes_of_olmo(tmp_path):
    write_shard(FORMATS["olmo"], tmp_path, [[1, 512], [], [3]], dtype="uint16")
    files = files_under(tmp_path)
    rows = files.pop("part-0-00000.csv.gz")
    assert {name: data.hex() for name, data in files.items()} == {
        "part-0-00000.npy": "010000020300",
        "part-0-00000.npy.index": INDEX,
    }
    assert gzip.decompress(rows) == b"0,2\n2,3\n"
    assert rows[3] == 0 and rows[4:8] == bytes(4)  # no file name, no time


def test_bytes_of_npy(tmp_path):
    write_shard(FORMATS["npy"], tmp_path, [[1, 512], [], [3]], dtype="uint16")
    for name, descr, ids in (("", "<u2", "010000020300"), (".index", "<u8", INDEX)):
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (3,), }}".ljust(117)
        expected = b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + b"\n"
        assert (tmp_path / f"train{name}.npy").read_bytes() == expected + bytes.fromhex(ids)


@pytest.mark.parametrize(
    ("name", "glob"), [("llmc", "fineweb_train_*.bin"), ("olmo", "*.npy"), ("datatrove", "*.ds")]
)
def test_indexes_do_not_match_the_globs_of_the_loaders(name, glob, tmp_path):
    entry, _ = write_shard(FORMATS[name], tmp_path, DOCUMENTS)
    assert list(tmp_path.glob(glob)) == files_of(tmp_path, entry)[:1]


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


@pytest.mark.parametrize(
    ("documents", "pack", "shape"),
    [
        (np.arange(60).reshape(15, 4).tolist(), 4, (15, 4)),
        ([], 4, (0, 4)),
        ([[1, 2], [3, 4]], None, (4,)),  # of equal length, but no rows
    ],
)
def test_packed_npy_is_a_table(documents, pack, shape, tmp_path):
    write_shard(FORMATS["npy"], tmp_path, documents, pack=pack)
    found = np.load(tmp_path / "train.npy", mmap_mode="r")
    assert found.shape == shape
    assert found.ravel().tolist() == [id for document in documents for id in document]


def test_the_header_of_npy_has_room_for_any_shape():
    from byteweld.dataset.formats.npy import _header

    assert len(_header("uint32", (2**64, 2**64))) == 128


def test_megatron_divides_a_document_that_is_too_long_for_a_sequence(tmp_path, monkeypatch):
    """The limit is 2^31 - 1 ids; with 3, eight ids are three sequences of one document."""
    monkeypatch.setattr(megatron, "_MAX_LENGTH", 3)
    documents = [[1, 2], list(range(8)), [], [4, 5, 6], [7, 8, 9, 10]]
    entry, manifest = write_shard(FORMATS["megatron"], tmp_path, documents)
    assert read_shard("megatron", tmp_path, entry, "uint16") == documents
    found = FORMATS["megatron"].open(tmp_path, entry, manifest)
    assert [found[number].tolist() for number in range(5)] == documents
    index = files_of(tmp_path, entry)[1].read_bytes()
    assert struct.unpack_from("<Q", index, 18) == (7,)
    assert struct.unpack_from("<7i", index, 34) == (2, 3, 3, 2, 3, 3, 1)


def test_llmc_refuses_a_shard_that_its_header_cannot_hold(tmp_path):
    shard = make_shard(tmp_path, [[1]], header_bytes=1024)
    with pytest.raises(UnsupportedError, match=r"2147483648 tokens.*at most 2147483647.*fewer"):
        FORMATS["llmc"].write(dataclasses.replace(shard, num_tokens=2**31), tmp_path)


# ---------------------------------------------------------------------------- hostile files


@pytest.mark.parametrize("name", WITH_ENDS)
@pytest.mark.parametrize(
    ("ends", "document"),
    [
        ([3, 3, 2, 4, 8, 8], 2),  # decreases
        ([3, 9, 4, 4, 8, 8], 1),  # beyond the end
        ([3, 2**63, 2**64 - 1, 4, 8, 8], 1),  # differences that are small again, modulo 2^64
    ],
)
def test_ends_out_of_order_are_named(name, ends, document, tmp_path):
    entry, manifest = write_shard(FORMATS[name], tmp_path, DOCUMENTS)
    index = files_of(tmp_path, entry)[-1]
    index.write_bytes(index.read_bytes()[: -6 * 8] + struct.pack("<6Q", *ends))
    found = FORMATS[name].open(tmp_path, entry, manifest)
    assert [length < 0 for length in lengths_of(found)].index(True) == document
    with pytest.raises(FormatError, match="expected ends that do not decrease") as error:
        for number in range(6):
            found[number]
    assert error.value.path == str(index)


@pytest.mark.parametrize("name", WITH_ENDS)
def test_a_last_end_that_is_not_the_last_id_is_refused(name, tmp_path):
    entry, manifest = write_shard(FORMATS[name], tmp_path, DOCUMENTS)
    index = files_of(tmp_path, entry)[-1]
    for end in (7, 9, 2**64 - 1):
        index.write_bytes(index.read_bytes()[:-8] + struct.pack("<Q", end))
        with pytest.raises(FormatError, match=f"the last document ends at {end}; expected 8"):
            FORMATS[name].open(tmp_path, entry, manifest)


@pytest.mark.parametrize(("name", "size"), [("llmc", 1024), ("npy", 128), ("megatron", 34)])
def test_every_byte_of_a_header_counts(name, size, tmp_path):
    entry, manifest = write_shard(FORMATS[name], tmp_path, DOCUMENTS)
    file = files_of(tmp_path, entry)[name == "megatron"]
    data = file.read_bytes()
    for position in range(size):
        changed = bytearray(data)
        changed[position] ^= 1
        file.write_bytes(changed)
        with pytest.raises(FormatError) as error:
            FORMATS[name].open(tmp_path, entry, manifest)
        assert error.value.path == str(file)


LENGTHS, OFFSETS, FIRSTS = 34, 34 + 4 * 3, 34 + 12 * 3  # in the index of three sequences


@pytest.mark.parametrize(
    ("changes", "of_lengths", "of_documents"),
    [
        # Megatron-LM reads lengths by sequence; we read from offset to offset.
        ([(LENGTHS, "i", 2)], "sequence 0 has 2 ids but 6 bytes", None),
        ([(OFFSETS + 8, "q", 10)], "sequence 0 has 3 ids but 10 bytes", "document 2 is from"),
        ([(OFFSETS + 8, "q", 2**62)], "sequence 0 has 3 ids", "document 0 is from sequence 0"),
        ([(OFFSETS + 8, "q", 7)], "sequence 0 has 3 ids but 7 bytes", "document 0 is from"),
        ([(FIRSTS + 8, "q", 3)], "document 1 is from sequence 3 to 1", "document 1 is from"),
        ([(FIRSTS + 8, "q", -1)], "document 0 is from sequence 0 to -1", "document 0 is from"),
        # A negative length fits an offset that decreases, but nothing else.
        (
            [(LENGTHS, "3i", 4, -1, 5), (OFFSETS, "3q", 0, 8, 6)],
            "sequence 1 has -1 ids but -2 bytes",
            "document 2 is from sequence 1 to 2",
        ),
    ],
)
def test_a_wrong_index_of_megatron_is_named(changes, of_lengths, of_documents, tmp_path):
    entry, manifest = write_shard(FORMATS["megatron"], tmp_path, DOCUMENTS)
    index = files_of(tmp_path, entry)[1]
    changed = bytearray(index.read_bytes())
    for position, kind, *values in changes:
        struct.pack_into("<" + kind, changed, position, *values)
    index.write_bytes(changed)
    found = FORMATS["megatron"].open(tmp_path, entry, manifest)
    with pytest.raises(FormatError, match=of_lengths) as error:
        lengths_of(found)
    assert error.value.path == str(index)
    if of_documents is not None:
        with pytest.raises(FormatError, match=of_documents):
            for number in range(entry.documents):
                found[number]


def test_megatron_with_ids_of_no_document_is_refused(tmp_path):
    entry, manifest = write_shard(FORMATS["megatron"], tmp_path, [])
    (tmp_path / "train_text_document.bin").write_bytes(bytes(4))
    entry = dataclasses.replace(entry, tokens=2)
    with pytest.raises(FormatError, match="from byte 4; expected 0 to 0 from byte 0"):
        FORMATS["megatron"].open(tmp_path, entry, manifest)


# ---------------------------------------------------------------------------- frozen files


@pytest.mark.parametrize(
    ("name", "dtype", "suffixes"),
    [
        *(("megatron", dtype, (".bin", ".idx")) for dtype in ("uint16", "int32")),
        *(("datatrove", dtype, (".ds", ".ds.index", ".ds.metadata")) for dtype in FLAT.dtypes),
    ],
)
def test_the_framework_writes_the_same_files(name, dtype, suffixes, tmp_path):
    documents = frameworks.DOCUMENTS if dtype == "uint16" else large(frameworks.DOCUMENTS)
    write_shard(FORMATS[name], tmp_path, documents, dtype=dtype)
    frozen = [(frameworks.FOLDER / f"{name}-{dtype}{suffix}").read_bytes() for suffix in suffixes]
    assert list(files_under(tmp_path).values()) == frozen


def test_olmo_writes_the_same_rows(tmp_path):
    entry, _ = write_shard(FORMATS["olmo"], tmp_path, frameworks.DOCUMENTS, dtype="uint16")
    rows = gzip.decompress(files_of(tmp_path, entry)[1].read_bytes())
    assert rows == (frameworks.FOLDER / "olmo.csv").read_bytes()
