"""OLMo-core's own readers; works with ai2-olmo-core 3.0.0 and torch 2.15.0."""

from __future__ import annotations

import gzip
import itertools
import warnings

import numpy as np
import pytest

from byteweld.dataset.formats import FORMATS
from tests.helpers.frameworks import DOCUMENTS, EOS, check_frozen, large
from tests.helpers.shards import write_shard

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    utils = pytest.importorskip("olmo_core.data.utils")
    data = pytest.importorskip("olmo_core.data.numpy_dataset")

pytestmark = pytest.mark.filterwarnings("ignore")
FORMAT = FORMATS["olmo"]
FULL = [document for document in DOCUMENTS if document]
CASES = {"uint16": FULL, "uint32": large(FULL)}


@pytest.fixture(params=CASES)
def written(request, tmp_path):
    entry, _ = write_shard(FORMAT, tmp_path, CASES[request.param], dtype=request.param)
    return tmp_path / entry.files[0].name, np.dtype(request.param).type, CASES[request.param]


def test_olmo_finds_our_documents(written):
    """By the rows of .csv.gz, and by the EOS tokens in the array."""
    path, dtype, documents = written
    ends = list(itertools.accumulate(map(len, documents)))
    expected = list(zip([0, *ends], ends, strict=False))
    rows = utils.iter_document_indices(path, use_array_if_local=False, dtype=dtype)
    assert list(rows) == expected
    found = utils.iter_document_indices(path, eos_token_id=EOS, dtype=dtype)
    assert [(int(start), int(end)) for start, end in found] == expected


def test_olmo_reads_our_ids(written, tmp_path):
    path, dtype, documents = written
    ids = list(itertools.chain(*documents))
    found = data.NumpyFSLDataset(
        str(path), sequence_length=8, pad_token_id=EOS, eos_token_id=EOS, vocab_size=200_000,
        dtype=dtype,
    )  # fmt: skip
    found.work_dir = tmp_path / "work"
    found.prepare()
    windows = [ids[start : start + 8] for start in range(0, len(ids) - 7, 8)]
    assert [found[number]["input_ids"].tolist() for number in range(len(found))] == windows


def test_olmo_reads_documents_without_eos_up_to_an_empty_one(tmp_path):
    """OLMo-core rejects a row that starts at the end of the array, so empty documents have none."""
    documents = [[1, 2], [], [3], [], []]
    entry, _ = write_shard(FORMAT, tmp_path, documents, dtype="uint16")
    path = tmp_path / entry.files[0].name
    rows = utils.iter_document_indices(path, use_array_if_local=False, dtype=np.uint16)
    assert list(rows) == [(0, 2), (2, 3)]


def test_olmo_writes_the_frozen_rows(written):
    path, dtype, _ = written
    ours = gzip.decompress(path.with_suffix(".csv.gz").read_bytes())
    found = utils.write_document_indices(path, dtype=dtype, eos_token_id=EOS)
    rows = gzip.decompress(found.read_bytes())
    assert rows == ours
    check_frozen("olmo.csv", rows)


@pytest.mark.parametrize("n_vocab", [256, 257, 65_536, 65_537])
def test_olmo_chooses_the_same_dtype(n_vocab):
    from olmo_core.data import NumpyFSLDatasetConfig, TokenizerConfig

    tokenizer = TokenizerConfig(vocab_size=n_vocab, eos_token_id=0, pad_token_id=0)
    config = NumpyFSLDatasetConfig(tokenizer=tokenizer, sequence_length=8, paths=["x.npy"])
    assert np.dtype(config.get_dtype()) == FORMAT.dtype(n_vocab)
