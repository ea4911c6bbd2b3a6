"""Formats with rows: what describes their files, what is too large, and damaged files."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from byteweld.dataset._shard import Shard, ShardName
from byteweld.dataset.formats import FORMATS, parquet
from byteweld.errors import FormatError, UnsupportedError
from tests.helpers.format_readers import files_under, lengths_of, put, read_back, read_shard
from tests.helpers.framework_writers import DOCUMENTS as FROZEN_DOCUMENTS
from tests.helpers.framework_writers import FROZEN
from tests.helpers.shards import make_shard, write_dataset, write_shard

ROWS = ["parquet", "arrow", "hf", "mds", "litdata"]
CHUNKS = ["mds", "litdata"]
DOCUMENTS = [[5, 6, 7], [], [1], [], [250, 9, 9, 9], []]
# Lengths around those where the header of an MDS sample grows.
LONG = [[3] * length for length in (255, 256, 257, 65_535, 65_536, 0, 1)]


@pytest.mark.parametrize("name", ROWS)
def test_documents_longer_than_a_batch(tmp_path, name):
    long = np.arange(3 << 20) % 1000
    documents = [[1], long[: 1 << 20].tolist(), *LONG, long.tolist(), [], [2]]
    entry, manifest = write_shard(FORMATS[name], tmp_path, documents)
    assert read_shard(name, tmp_path, entry, manifest.dtype) == documents
    assert read_back(name, tmp_path, entry, manifest) == documents


# ---------------------------------------------------------------------- names and descriptions


def written(name, folder, splits):
    write_dataset(FORMATS[name], folder, splits)
    return list(files_under(folder))


def test_names_of_a_hugging_face_dataset(tmp_path):
    one = written("hf", tmp_path / "1", {"train": [DOCUMENTS, LONG]})
    assert one == ["data-00000.arrow", "data-00001.arrow", "dataset_info.json", "state.json"]
    state = json.loads((tmp_path / "1/state.json").read_text())
    assert state["_data_files"] == [{"filename": name} for name in one[:2]]
    two = written("hf", tmp_path / "2", {"train": [DOCUMENTS], "validation": [LONG]})
    own = ["data-00000.arrow", "dataset_info.json", "state.json"]
    folders = [f"{split}/{name}" for split in ("train", "validation") for name in own]
    assert two == ["dataset_dict.json", *folders]
    assert (tmp_path / "2/dataset_dict.json").read_text().split() == [
        *("{", '"splits":', "[", '"train",', '"validation"', "]", "}")
    ]
    states = [
        json.loads((tmp_path / f"2/{split}/state.json").read_text())
        for split in ("train", "validation")
    ]
    assert [state["_split"] for state in states] == ["train", "validation"]
    assert states[0]["_fingerprint"] != states[1]["_fingerprint"]


TWO: Any = {"train": [DOCUMENTS, LONG], "validation": [DOCUMENTS]}


def test_the_index_of_mds_lists_the_shards_of_each_split(tmp_path):
    assert written("mds", tmp_path, TWO) == [
        *("train/index.json", "train/shard.00000.mds", "train/shard.00001.mds"),
        *("val/index.json", "val/shard.00000.mds"),
    ]
    shards = json.loads((tmp_path / "train/index.json").read_text())["shards"]
    for number, (shard, documents) in enumerate(zip(shards, TWO["train"], strict=True)):
        data = (tmp_path / f"train/shard.0000{number}.mds").read_bytes()
        assert shard["samples"] == len(documents)
        assert shard["raw_data"] == {
            "basename": f"shard.0000{number}.mds",
            "bytes": len(data),
            "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
        }


LITDATA_CODES = {
    "int32": "no_header_tensor:16",
    "uint16": "no_header_tensor:20",
    "int64": "no_header_tensor:18",
    "uint32": "no_header_numpy:6",
}


@pytest.mark.parametrize("dtype", LITDATA_CODES)
def test_the_index_of_litdata_lists_the_chunks_of_each_split(tmp_path, dtype):
    write_dataset(FORMATS["litdata"], tmp_path, TWO, dtype=dtype)
    assert sorted(p.name for p in (tmp_path / "val").iterdir()) == ["chunk-0-0.bin", "index.json"]
    index = json.loads((tmp_path / "train/index.json").read_text())
    assert [
        (chunk["filename"], chunk["chunk_size"], chunk["dim"]) for chunk in index["chunks"]
    ] == [("chunk-0-0.bin", 6, 8), ("chunk-0-1.bin", 7, 131_840)]
    assert index["config"]["data_format"] == [LITDATA_CODES[dtype]]


# ---------------------------------------------------------------------- the frameworks' own files


def test_mds_is_what_its_own_writer_writes(tmp_path):
    write_dataset(FORMATS["mds"], tmp_path, {"train": [FROZEN_DOCUMENTS]})
    for name in ("shard.00000.mds", "index.json"):
        assert (tmp_path / name).read_bytes() == (FROZEN / "mds" / name).read_bytes()


def test_litdata_is_what_its_own_writer_writes(tmp_path):
    write_dataset(FORMATS["litdata"], tmp_path, {"train": [FROZEN_DOCUMENTS]})
    frozen = FROZEN / "litdata"
    assert (tmp_path / "chunk-0-0.bin").read_bytes() == (frozen / "chunk-0-0.bin").read_bytes()
    ours, theirs = (json.loads((p / "index.json").read_text()) for p in (tmp_path, frozen))
    assert ours.keys() == theirs.keys()
    assert ours["chunks"] == theirs["chunks"]
    assert ours["config"] | {"chunk_bytes": 64_000_000} == theirs["config"]


def test_a_hugging_face_dataset_is_what_datasets_writes(tmp_path):
    write_dataset(FORMATS["hf"], tmp_path, {"train": [FROZEN_DOCUMENTS]})
    theirs = (FROZEN / "hf/data-00000-of-00001.arrow").read_bytes()
    ours = (tmp_path / "data-00000.arrow").read_bytes()
    tables = [pyarrow.ipc.open_stream(data).read_all() for data in (ours, theirs)]
    assert tables[0].schema.equals(tables[1].schema, check_metadata=False)
    assert tables[0].to_pylist() == tables[1].to_pylist()
    states, infos = (
        [json.loads((folder / name).read_text()) for folder in (tmp_path, FROZEN / "hf")]
        for name in ("state.json", "dataset_info.json")
    )
    for state in states:
        assert len(state.pop("_fingerprint")) == 16
        assert len(state.pop("_data_files")) == 1
    assert states[0] == states[1]
    # Older versions of datasets know a list only as `Sequence`.
    assert infos[0]["features"]["input_ids"].pop("_type") == "Sequence"
    assert infos[1]["features"]["input_ids"].pop("_type") == "List"
    assert infos[0] == infos[1]


# ---------------------------------------------------------------------- Parquet


def test_row_groups_hold_several_batches_and_are_compressed(tmp_path, monkeypatch):
    documents = [*[[5] * 100] * 20_000, *[[1]] * 150_000]
    batches = [len(some) for _, some in make_shard(tmp_path / "shard", documents).batches()]
    monkeypatch.setattr(parquet, "_GROUP_TOKENS", 1_500_000)
    monkeypatch.setattr(parquet, "_GROUP_DOCUMENTS", 140_000)
    entry, manifest = write_shard(FORMATS["parquet"], tmp_path, documents)
    metadata = pyarrow.parquet.ParquetFile(tmp_path / entry.files[0].name).metadata
    rows = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    assert batches == [10_485, 65_536, 65_536, 28_443]
    assert rows == [10_485, 65_536 + 65_536, 28_443]  # by tokens, then by documents
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert metadata.metadata is None  # nothing of this machine or moment
    opened = FORMATS["parquet"].open(tmp_path, entry, manifest)
    assert lengths_of(opened) == [100] * 20_000 + [1] * 150_000
    for number in (169_999, 0, 19_999, 20_000):  # back and forth
        assert opened[number].tolist() == documents[number]


# ---------------------------------------------------------------------- too long for the format


def sparse_shard(folder, lengths, dtype):
    """A shard whose ids take no space."""
    folder.mkdir()
    with (folder / "tokens").open("wb") as file:
        file.truncate(sum(lengths) * np.dtype(dtype).itemsize)
    np.array(lengths, "<i8").tofile(folder / "lengths")
    return Shard(
        name=ShardName("train", 3, False),
        tokens=folder / "tokens",
        lengths=folder / "lengths",
        dtype=dtype,
        header_bytes=0,
        num_tokens=sum(lengths),
        num_documents=len(lengths),
    )


@pytest.mark.parametrize("name", ["parquet", "arrow", "hf"])
def test_a_document_longer_than_an_arrow_list_is_refused(tmp_path, name):
    shard = sparse_shard(tmp_path / "shard", [1 << 31], "uint16")
    with pytest.raises(UnsupportedError, match=r"shard 3 of train has 2147483648 .*pack=N"):
        FORMATS[name].write(shard, tmp_path)


@pytest.mark.parametrize("name", CHUNKS)
@pytest.mark.parametrize("lengths", [[1 << 30], [1 << 29, (1 << 29) - 1]], ids=repr)
def test_a_shard_of_more_than_4_gib_is_refused(tmp_path, name, lengths):
    shard = sparse_shard(tmp_path / "shard", lengths, "int32")
    with pytest.raises(UnsupportedError, match=r"shard 3 of train .*shard_tokens=.*pack=N"):
        FORMATS[name].write(shard, tmp_path)


# ---------------------------------------------------------------------- hostile files


@pytest.fixture
def made(tmp_path, name):
    entry, manifest = write_shard(FORMATS[name], tmp_path, [*DOCUMENTS, [3] * 300])
    return tmp_path, entry, manifest, (tmp_path / entry.files[0].name).read_bytes()


@pytest.mark.parametrize("name", CHUNKS)
def test_offsets_out_of_order_are_named(name, made):
    folder, entry, manifest, data = made
    changed = bytearray(data)
    struct.pack_into("<I", changed, 4 + 4 * 2, len(data) + 100)
    changed_entry = put(folder, entry, bytes(changed))
    opened = FORMATS[name].open(folder, changed_entry, manifest)
    with pytest.raises(FormatError, match=r"document 2 ends at byte .* before it starts"):
        lengths_of(opened)
    with pytest.raises(FormatError, match=f"document 1 is at bytes .* to {len(data) + 100}"):
        opened[1]


@pytest.mark.parametrize("name", ["mds"])
def test_a_sample_with_another_header_is_refused(name, made):
    folder, entry, manifest, data = made
    (start,) = struct.unpack_from("<I", data, 4)
    header = struct.pack("<IBB", 2 + 3 * 4, 4, 3)
    assert data[start : start + 6] == header
    for wrong in (struct.pack("<IBB", *new) for new in [(13, 4, 3), (14, 5, 3), (14, 4, 2)]):
        changed = put(folder, entry, data[:start] + wrong + data[start + 6 :])
        opened = FORMATS[name].open(folder, changed, manifest)
        expected = f"document 0 starts with bytes {wrong.hex()}; expected {header.hex()} for 3 ids"
        with pytest.raises(FormatError, match=expected):
            opened[0]


def arrow_file(lists, stream=False):
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table({"input_ids": lists})
    make = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with make(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("name", ["arrow", "hf"])
def test_lists_that_are_not_documents_are_refused(name, made):
    folder, entry, manifest, _ = made
    kind = pyarrow.list_(pyarrow.uint32())
    wrong = [
        (pyarrow.array([[1], None, *[[2]] * 5], kind), "missing"),
        (pyarrow.array([[1], [None], *[[2]] * 5], kind), "missing"),
        (pyarrow.array([[1]] * 7, pyarrow.large_list(pyarrow.uint32())), "large_list"),
        (pyarrow.array([[1]] * 7, pyarrow.list_(pyarrow.float32())), "expected 'input_ids: list"),
        (pyarrow.array([[1]] * 7, kind), "the file has 7 tokens; expected 308"),
    ]
    for lists, message in wrong:
        changed = put(folder, entry, arrow_file(lists, name == "hf"))
        with pytest.raises(FormatError, match=message):
            read_back(name, folder, changed, manifest)


@pytest.mark.parametrize("name", ["arrow", "hf"])
def test_offsets_beyond_the_ids_are_refused(name, made):
    folder, entry, manifest, data = made
    offsets = np.cumsum([0, *map(len, DOCUMENTS), 300]).astype("<i4").tobytes()
    assert data.count(offsets) == 1
    for wrong in ([0, 3, 2, 4, 4, 8, 8, 308], [-5, 3, 3, 4, 4, 8, 8, 308], [0] * 7 + [2**31 - 1]):
        changed = put(folder, entry, data.replace(offsets, np.array(wrong, "<i4").tobytes()))
        with pytest.raises(FormatError):
            read_back(name, folder, changed, manifest)
        with pytest.raises(FormatError):
            opened = FORMATS[name].open(folder, changed, manifest)
            for number in range(7):
                opened[number]


def test_make_shard_reads_in_batches_only_what_it_yields(tmp_path):
    documents = [[1] * 400_000, [2] * 700_000, [3] * 2_000_000, [], [4]]
    shard = make_shard(tmp_path, documents, header_bytes=8)
    batches = [(len(ids), lengths.tolist()) for ids, lengths in shard.batches()]
    assert batches == [
        (400_000, [400_000]),
        (700_000, [700_000]),
        (2_000_000, [2_000_000]),
        (1, [0, 1]),
    ]
    ids = np.concatenate([ids for ids, _ in shard.batches()])
    assert ids.tolist() == [id for document in documents for id in document]
