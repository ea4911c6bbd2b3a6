"""datasets opens what the formats hf, parquet and arrow write."""

from __future__ import annotations

import pytest

from byteweld.dataset.formats import FORMATS
from tests.helpers.framework_writers import DOCUMENTS, write_hf
from tests.helpers.shards import write_dataset

datasets = pytest.importorskip("datasets", exc_type=ImportError)

MORE = [[], [4, 5], list(range(70_000)), []]
VALIDATION = [[8], [9, 9]]


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    datasets.disable_progress_bars()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.parametrize("dtype", FORMATS["hf"].dtypes)
def test_load_from_disk(tmp_path, dtype):
    documents = [[id % 65_536 for id in document] for document in DOCUMENTS + MORE]
    shards = [documents[:4], documents[4:]]
    write_dataset(FORMATS["hf"], tmp_path, {"train": shards}, dtype=dtype)
    found = datasets.load_from_disk(tmp_path)
    assert list(found["input_ids"]) == documents
    assert found.features["input_ids"].feature.dtype == dtype
    assert str(found.split) == "train"
    assert found.with_format("numpy")[2]["input_ids"].tolist() == documents[2]


def test_load_from_disk_with_two_splits(tmp_path):
    splits = {"train": [DOCUMENTS, MORE], "validation": [VALIDATION]}
    write_dataset(FORMATS["hf"], tmp_path, splits)
    found = datasets.load_from_disk(tmp_path)
    assert list(found) == ["train", "validation"]
    assert list(found["train"]["input_ids"]) == DOCUMENTS + MORE
    assert list(found["validation"]["input_ids"]) == VALIDATION
    assert str(found["validation"].split) == "validation"


def test_load_from_disk_without_documents(tmp_path):
    write_dataset(FORMATS["hf"], tmp_path, {"train": [[]]})
    assert len(datasets.load_from_disk(tmp_path)) == 0


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_load_dataset(tmp_path, name):
    splits = {"train": [DOCUMENTS, MORE], "validation": [VALIDATION]}
    write_dataset(FORMATS[name], tmp_path / "made", splits)
    files = {split: str(tmp_path / f"made/{split}-*.{name}") for split in splits}
    found = datasets.load_dataset(name, data_files=files, cache_dir=str(tmp_path / "cache"))
    assert list(found["train"]["input_ids"]) == DOCUMENTS + MORE
    assert list(found["validation"]["input_ids"]) == VALIDATION
    assert found["train"].features["input_ids"].feature.dtype == "uint32"


def test_its_own_files_have_the_same_schema(tmp_path):
    import pyarrow

    write_hf(tmp_path / "theirs", DOCUMENTS)
    write_dataset(FORMATS["hf"], tmp_path / "ours", {"train": [DOCUMENTS]})
    tables = [
        pyarrow.ipc.open_stream(file.read_bytes()).read_all()
        for file in sorted(tmp_path.glob("*/data-*.arrow"))
    ]
    assert tables[0].schema.equals(tables[1].schema, check_metadata=False)
    assert tables[0].to_pylist() == tables[1].to_pylist()
