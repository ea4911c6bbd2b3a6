"""mosaicml-streaming opens what the format mds writes, which is what its own writer writes."""

from __future__ import annotations

import pytest

from byteweld.dataset.formats import FORMATS
from tests.helpers.framework_writers import DOCUMENTS, write_mds
from tests.helpers.shards import write_dataset

streaming = pytest.importorskip("streaming", exc_type=ImportError)

LONG = [[5] * 255, [5] * 256, [5] * 65_535, [5] * 65_536]
VALIDATION = [[8], [9, 9]]


@pytest.fixture(autouse=True)
def clean():
    yield
    streaming.base.util.clean_stale_shared_memory()


def read(folder, split=None):
    found = streaming.StreamingDataset(
        local=str(folder), split=split, batch_size=1, shuffle=False, validate_hash="sha256"
    )
    samples = [found[number]["tokens"] for number in range(len(found))]
    assert [sample["tokens"].tolist() for sample in found] == [s.tolist() for s in samples]
    return samples


@pytest.mark.parametrize("dtype", FORMATS["mds"].dtypes)
def test_streaming_dataset(tmp_path, dtype):
    documents = [[id % 65_536 for id in document] for document in DOCUMENTS + LONG]
    write_dataset(FORMATS["mds"], tmp_path, {"train": [documents[:3], documents[3:]]}, dtype=dtype)
    found = read(tmp_path)
    assert [sample.tolist() for sample in found] == documents
    assert {str(sample.dtype) for sample in found} == {dtype}


def test_streaming_dataset_with_two_splits(tmp_path):
    splits = {"train": [DOCUMENTS], "validation": [VALIDATION]}
    write_dataset(FORMATS["mds"], tmp_path, splits)
    assert [sample.tolist() for sample in read(tmp_path, "train")] == DOCUMENTS
    assert [sample.tolist() for sample in read(tmp_path, "val")] == VALIDATION


def test_an_empty_document_is_an_empty_array(tmp_path):
    documents = [[], [1, 2], [], [3]]
    write_dataset(FORMATS["mds"], tmp_path, {"train": [documents]})
    assert [sample.tolist() for sample in read(tmp_path)] == documents


def test_its_own_writer_writes_the_same_bytes(tmp_path):
    write_mds(tmp_path / "theirs", DOCUMENTS + LONG)
    write_dataset(FORMATS["mds"], tmp_path / "ours", {"train": [DOCUMENTS + LONG]})
    for name in ("shard.00000.mds", "index.json"):
        ours, theirs = ((tmp_path / who / name).read_bytes() for who in ("ours", "theirs"))
        assert ours == theirs, name
