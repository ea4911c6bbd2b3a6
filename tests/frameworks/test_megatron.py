"""Megatron-LM's own reader and writer; works with megatron-core 0.16.1 and torch 2.15.0."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from byteweld.dataset._shard import ShardName
from byteweld.dataset.formats import FORMATS
from tests.helpers.frameworks import DOCUMENTS, check_frozen, large
from tests.helpers.shards import write_shard

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    indexed_dataset = pytest.importorskip("megatron.core.datasets.indexed_dataset")

pytestmark = pytest.mark.filterwarnings("ignore")
FORMAT = FORMATS["megatron"]
CASES = {"uint16": DOCUMENTS, "int32": large(DOCUMENTS)}


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dtype", CASES)
def test_megatron_reads_our_files(dtype, mmap, tmp_path):
    documents = CASES[dtype]
    write_shard(FORMAT, tmp_path, documents, dtype=dtype, name=ShardName(prefix="books"))
    found = indexed_dataset.IndexedDataset(str(tmp_path / "books_text_document"), mmap=mmap)
    full = [document for document in documents if document]
    assert [found[number].tolist() for number in range(len(found))] == full
    assert found[0].dtype == dtype
    assert found.sequence_lengths.tolist() == [len(document) for document in full]
    firsts = np.cumsum([0, *(bool(document) for document in documents)])
    assert found.document_indices.tolist() == firsts.tolist()


@pytest.mark.parametrize("dtype", CASES)
def test_megatron_writes_the_frozen_files(dtype, tmp_path):
    builder = indexed_dataset.IndexedDatasetBuilder(
        str(tmp_path / "x.bin"), dtype=getattr(np, dtype)
    )
    for document in CASES[dtype]:
        # As tools/preprocess_data.py does it: an empty document has no sequence.
        builder.add_document(document, [len(document)] if document else [])
    builder.finalize(str(tmp_path / "x.idx"))
    for suffix in ("bin", "idx"):
        check_frozen(f"megatron-{dtype}.{suffix}", (tmp_path / f"x.{suffix}").read_bytes())


@pytest.mark.parametrize("n_vocab", [256, 65_499, 65_500, 65_536, 200_000])
def test_megatron_chooses_the_same_dtype(n_vocab):
    chosen = indexed_dataset.DType.optimal_dtype(n_vocab)
    assert np.dtype(chosen) == FORMAT.dtype(n_vocab)
