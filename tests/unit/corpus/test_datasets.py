"""Hugging Face datasets on disk, in the layout that `Dataset.save_to_disk` writes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from byteweld.corpus import open_corpus
from byteweld.errors import CorpusError


def save(folder: Path, shards: list[list[str]]) -> Path:
    """Write a dataset: Arrow streams, the list of them, and a file of facts."""
    folder.mkdir(parents=True)
    names = [f"data-{n:05}-of-{len(shards):05}.arrow" for n in range(len(shards))]
    for name, texts in zip(names, shards, strict=True):
        table = pa.table({"text": texts})
        with pa.OSFile(str(folder / name), "wb") as file:
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {"text": {}}}))
    return folder


def read(path: Path, **reading: str) -> list[str]:
    return [text.decode() for text in open_corpus(path, **reading).documents()]


def test_the_files_in_the_order_of_the_state(tmp_path):
    folder = save(tmp_path / "d", [["a", "b"], ["c"], ["d"]])
    (folder / "cache-123.arrow").write_bytes(b"left by datasets.map")
    assert read(folder) == ["a", "b", "c", "d"]
    state = json.loads((folder / "state.json").read_text())
    state["_data_files"].reverse()
    (folder / "state.json").write_text(json.dumps(state))
    assert read(folder) == ["d", "c", "a", "b"]
    assert read(folder, ext="txt") == ["d", "c", "a", "b"]  # its own files, whatever their names


def test_a_dataset_inside_a_folder(tmp_path):
    save(tmp_path / "b", [["dataset"]])
    (tmp_path / "a.txt").write_text("before")
    (tmp_path / "c.txt").write_text("after")
    assert read(tmp_path) == ["before", "dataset", "after"]


def test_splits_are_named_not_mixed(tmp_path):
    save(tmp_path / "d" / "train", [["a"]])
    save(tmp_path / "d" / "test", [["b"]])
    (tmp_path / "d" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(CorpusError, match="the splits 'train', 'test'; name the folder of one"):
        open_corpus(tmp_path / "d")
    with pytest.raises(CorpusError, match="the splits 'train', 'test'"):
        open_corpus(tmp_path)
    assert read(tmp_path / "d" / "test") == ["b"]


@pytest.mark.parametrize(
    "state, message",
    [
        ("{", "state.json is not JSON"),
        ("[]", "state.json is not a JSON object"),
        ("{}", "state.json has no list of files, _data_files"),
        ('{"_data_files": 3}', "has no list of files"),
        ('{"_data_files": [{"filename": "../x.arrow"}]}', "names the file '../x.arrow'; expected"),
        ('{"_data_files": [{"filename": "/etc/passwd"}]}', "names the file '/etc/passwd'"),
        ('{"_data_files": [{"filename": ".."}]}', "names the file '..'"),
        ('{"_data_files": [3]}', "names the file None"),
        ('{"_data_files": [{"filename": "gone.arrow"}]}', "'gone.arrow', which is missing"),
        ('{"_data_files": [{"filename": "linked.txt"}]}', "expected the name of an .arrow file"),
        (f'{{"_data_files": [{{"filename": "{"x" * 5000}.arrow"}}]}}', "^.{,250}which is missing$"),
        ("[" * 100_000, "state.json is not JSON"),
    ],
)
def test_a_bad_state_is_an_error(tmp_path, state, message):
    folder = save(tmp_path / "d", [["a"]])
    (folder / "linked.txt").symlink_to("/etc/passwd")
    (folder / "state.json").write_text(state)
    with pytest.raises(CorpusError, match=message) as error:
        open_corpus(folder)
    assert error.value.path == str(folder)
