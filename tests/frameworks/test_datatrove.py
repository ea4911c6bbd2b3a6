"""Datatrove's own reader and writer; works with datatrove 0.10.1 and torch 2.15.0."""

from __future__ import annotations

import itertools
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld.dataset._shard import ShardName
from byteweld.dataset.formats import FORMATS
from tests.helpers.frameworks import DOCUMENTS, check_frozen, large
from tests.helpers.shards import write_shard
from tests.helpers.strategies import examples

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch")
    dataset = pytest.importorskip("datatrove.utils.dataset")
    tokenizer = pytest.importorskip("datatrove.pipeline.tokens.tokenizer")

pytestmark = pytest.mark.filterwarnings("ignore")
FORMAT = FORMATS["datatrove"]
CASES = {"uint16": (2, DOCUMENTS), "uint32": (4, large(DOCUMENTS))}


@pytest.mark.parametrize("dtype", CASES)
def test_datatrove_reads_our_files(dtype, tmp_path):
    size, documents = CASES[dtype]
    for number in range(2):
        name = ShardName(number=number, is_only=False)
        write_shard(FORMAT, tmp_path, documents, dtype=dtype, name=name)
    found = dataset.DatatroveFolderDataset(str(tmp_path), seq_len=9, token_size=size)
    ids = list(itertools.chain(*documents))
    windows = [ids[start : start + 10] for start in range(0, len(ids) - 9, 10)] * 2
    assert [found[number]["input_ids"].tolist() for number in range(len(found))] == windows


def test_datatrove_reads_our_index(tmp_path):
    """Positions start anew at each document. Its reader does not expect empty documents."""
    documents = [document for document in DOCUMENTS if document]
    entry, _ = write_shard(FORMAT, tmp_path, documents, dtype="uint16")
    found = dataset.DatatroveFileDataset(
        str(tmp_path / entry.files[0].name), seq_len=9, return_positions=True
    )
    assert found[0]["positions"].tolist() == [0, 1, 2, 0, 0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("dtype", CASES)
def test_datatrove_writes_the_frozen_files(dtype, tmp_path):
    size, documents = CASES[dtype]
    name = "byteweld:" + "0" * 64
    file = tokenizer.TokenizedFile(
        str(tmp_path),
        tokenizer.get_output_filename(None, 0, "unshuffled"),
        tokenizer_name_or_path=name,
        save_final_metadata=True,
        token_size=size,
    )
    for document in documents:
        file.write(document, None)
    file.close()
    assert file.filename == FORMAT.file_names(ShardName())[0]
    for suffix in ("", ".index", ".metadata"):
        check_frozen(
            f"datatrove-{dtype}.ds{suffix}", (tmp_path / f"{file.filename}{suffix}").read_bytes()
        )


@given(st.integers(0, 10**18) | st.integers(0, 10**6))
@examples(1000)
def test_datatrove_writes_numbers_for_people_alike(number):
    import humanize

    from byteweld.dataset.formats.datatrove import _for_people

    assert _for_people(number) == humanize.metric(number, unit="T")
