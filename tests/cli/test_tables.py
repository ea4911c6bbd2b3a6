"""Every verb that takes a corpus reads tables and remote files as it reads the same text."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TEXTS = ["low lowest newest widest " * 5, "", "naïve 🙂 lower"]


@pytest.fixture(params=["shards", "dataset", "remote"])
def tables(request, tmp_path):
    """A source of tables with TEXTS, and the number of its files."""
    if request.param == "remote":
        system = pytest.importorskip("fsspec").filesystem("memory")
        system.store.clear()
        with system.open("/shards/a.parquet", "wb") as file:
            pq.write_table(pa.table({"body": TEXTS}), file)
        yield "memory://shards", 1
        system.store.clear()
        return
    folder = tmp_path / "tables"
    folder.mkdir()
    names = []
    for number, texts in enumerate((TEXTS[:1], TEXTS[1:])):
        table = pa.table({"body": texts})
        if request.param == "shards":
            pq.write_table(table, folder / f"shard_{number:05}.parquet")
        else:
            names.append(f"data-{number:05}-of-00002.arrow")
            with pa.OSFile(str(folder / names[-1]), "wb") as file:
                with pa.ipc.new_stream(file, table.schema) as writer:
                    writer.write_table(table)
    if request.param == "dataset":
        files = [{"filename": name} for name in names]
        (folder / "state.json").write_text(json.dumps({"_data_files": files}))
        (folder / "dataset_info.json").write_text("{}")
    yield str(folder), 2


@pytest.fixture
def plain(tmp_path):
    """The same text as JSON lines."""
    path = tmp_path / "plain.jsonl"
    path.write_text("".join(json.dumps({"body": text}) + "\n" for text in TEXTS))
    return str(path)


def test_verbs_that_encode(run, tables, plain):
    source, _ = tables
    field = ("--field", "body")
    assert run("train", plain, *field, "--vocab-size", "270", "--out", "t.json").code == 0
    found = run("tokens", "-t", "t.json", source, *field, "--json")
    assert found.code == 0, found.err
    expected = json.loads(run("tokens", "-t", "t.json", plain, *field, "--json").text)
    assert json.loads(found.text)["total"] == expected["total"]
    assert run("inspect", "t.json", "--corpus", source, *field).code == 0
    assert run("compare", "t.json", "t.json", source, *field).code == 0
    counted = run("inspect", "--bytes", source, *field, "--json")
    assert counted.code == 0, counted.err
    assert json.loads(counted.text)["bytes"] == sum(len(text.encode()) for text in TEXTS)


def test_errors_name_the_file_and_the_row(run, tmp_path):
    pq.write_table(pa.table({"text": ["a", None]}), "a.parquet")
    failed = run("count", "a.parquet", "--out", "counts")
    assert (failed.code, failed.err) == (
        2,
        "byteweld: a.parquet: row 1: the text is null; expected a string; "
        "or pass --on-error skip\n",
    )
    skipped = run("count", "a.parquet", "--out", "counts", "--on-error", "skip")
    assert skipped.code == 0
    assert "skipped 1 document" in skipped.err
    failed = run("count", "a.parquet", "--field", "body", "--out", "more")
    assert failed.err == (
        'byteweld: a.parquet: no column "body"; the columns are "text"; pass the column of the '
        "text as --field; or pass --on-error skip\n"
    )
