"""litdata opens what the format litdata writes, which is what its own writer writes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from byteweld.dataset.formats import FORMATS
from tests.helpers.framework_writers import DOCUMENTS, write_litdata
from tests.helpers.shards import write_dataset

litdata = pytest.importorskip("litdata", exc_type=ImportError)

ROWS = [[row * 8 + n for n in range(8)] for row in range(50)]


def read(folder, block_size):
    loader = litdata.TokensLoader(block_size=block_size)
    found = litdata.StreamingDataset(str(folder), item_loader=loader, shuffle=False)
    blocks = list(found)
    assert len(blocks) == len(found)
    return blocks


@pytest.mark.parametrize("dtype", FORMATS["litdata"].dtypes)
def test_packed_rows_are_its_blocks(tmp_path, dtype):
    shards = [ROWS[:20], ROWS[20:]]
    write_dataset(FORMATS["litdata"], tmp_path, {"train": shards}, dtype=dtype, pack=8)
    blocks = read(tmp_path, 8)
    assert [block.tolist() for block in blocks] == ROWS
    assert {str(block.dtype).removeprefix("torch.") for block in blocks} == {dtype}


def test_blocks_go_across_documents(tmp_path):
    documents = [[], *DOCUMENTS, []]
    write_dataset(FORMATS["litdata"], tmp_path, {"train": [documents]})
    ids = np.concatenate(DOCUMENTS)
    assert np.concatenate(read(tmp_path, 10)).tolist() == ids[: len(ids) // 10 * 10].tolist()


def test_two_splits_are_two_folders(tmp_path):
    splits = {"train": [ROWS[:40]], "validation": [ROWS[40:]]}
    write_dataset(FORMATS["litdata"], tmp_path, splits)
    assert [block.tolist() for block in read(tmp_path / "train", 8)] == ROWS[:40]
    assert [block.tolist() for block in read(tmp_path / "val", 8)] == ROWS[40:]


def test_batches_in_workers(tmp_path):
    write_dataset(FORMATS["litdata"], tmp_path, {"train": [ROWS[:20], ROWS[20:]]})
    loader = litdata.TokensLoader(block_size=8)
    found = litdata.StreamingDataset(str(tmp_path), item_loader=loader, shuffle=True, seed=1)
    batches = list(litdata.StreamingDataLoader(found, batch_size=5, num_workers=2))
    assert sorted(row.tolist() for batch in batches for row in batch) == ROWS


def test_its_own_writer_writes_the_same_bytes(tmp_path):
    write_litdata(tmp_path / "theirs", DOCUMENTS)
    write_dataset(FORMATS["litdata"], tmp_path / "ours", {"train": [DOCUMENTS]})
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert (ours / "chunk-0-0.bin").read_bytes() == (theirs / "chunk-0-0.bin").read_bytes()
    found, expected = (json.loads((folder / "index.json").read_text()) for folder in (ours, theirs))
    assert found["chunks"] == expected["chunks"]
    assert found["config"] | {"chunk_bytes": 64_000_000} == expected["config"]
    assert found.keys() == expected.keys()
