"""From a corpus to the rows that each framework reads: the ids that the tokenizer gives."""

from __future__ import annotations

import pytest

import byteweld

TEXTS = [f"low lower lowest {number} wider" for number in range(400)]


@pytest.fixture(scope="module")
def tok():
    return byteweld.train(documents=TEXTS, vocab_size=300, special_tokens=["<|endoftext|>"])


@pytest.fixture(scope="module")
def rows(tok):
    return [[*ids, tok.eot_token] for ids in tok.encode_batch(TEXTS)]


def make(tok, folder, format, **options):
    byteweld.tokenize(documents=TEXTS, tokenizer=tok, out=folder, format=format, **options)


def test_datasets(tok, rows, tmp_path):
    datasets = pytest.importorskip("datasets", exc_type=ImportError)
    make(tok, tmp_path / "hf", "hf", shard_tokens=1000)
    assert list(datasets.load_from_disk(tmp_path / "hf")["input_ids"]) == rows


def test_streaming(tok, rows, tmp_path):
    streaming = pytest.importorskip("streaming", exc_type=ImportError)
    make(tok, tmp_path / "mds", "mds", shard_tokens=1000)
    found = streaming.StreamingDataset(local=str(tmp_path / "mds"), batch_size=1, shuffle=False)
    assert [found[number]["tokens"].tolist() for number in range(len(found))] == rows
    streaming.base.util.clean_stale_shared_memory()


def test_litdata(tok, rows, tmp_path):
    litdata = pytest.importorskip("litdata", exc_type=ImportError)
    make(tok, tmp_path / "litdata", "litdata", pack=16, shard_tokens=800)
    ids = [id for row in rows for id in row]
    expected = [ids[start : start + 16] for start in range(0, len(ids) - 15, 16)]
    loader = litdata.TokensLoader(block_size=16)
    found = litdata.StreamingDataset(str(tmp_path / "litdata"), item_loader=loader, shuffle=False)
    assert [block.tolist() for block in found] == expected
