"""Parquet and Arrow files, and Arrow objects, as corpora: each row of a column is a document."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import byteweld
from byteweld._memory import resident_bytes
from byteweld._native import Documents
from byteweld.corpus import Corpus, Reading, open_corpus
from byteweld.errors import BudgetError, CorpusError
from tests.helpers.events import can_be_interrupted
from tests.helpers.growth import least_growth
from tests.helpers.programs import run_python

TEXTS = [f"text {number}, " * (number % 5) + "é" * (number % 3) for number in range(1000)]
TABLE = pa.table({"id": range(len(TEXTS)), "text": TEXTS})
KINDS = ["parquet", "arrow file", "arrow stream", "feather"]


def write(path: Path, table: Any = TABLE, kind: str = "parquet", rows: int = 100) -> Any:
    """Write a table; the file gets the extension of its kind. An object stays as it is."""
    if kind == "object":
        return table
    if kind == "parquet":
        path = path.with_suffix(".parquet")
        pq.write_table(table, path, row_group_size=rows)
        return path
    path = path.with_suffix({"feather": ".feather"}.get(kind, ".arrow"))
    make = pa.ipc.new_stream if kind == "arrow stream" else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as file, make(file, table.schema) as writer:
        writer.write_table(table, rows)
    return path


def read(source: Any, **reading: Any) -> list[str]:
    return [text.decode() for text in open_corpus(source, **reading).documents()]


# ---------------------------------------------------------------------- kinds


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_a_document(tmp_path, kind):
    assert read(write(tmp_path / "a", kind=kind)) == TEXTS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1])
def test_a_small_table(tmp_path, kind, rows):
    assert read(write(tmp_path / "a", TABLE.slice(1, rows), kind)) == TEXTS[1 : rows + 1]


TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
TYPES += [pa.binary_view(), pa.dictionary(pa.int8(), pa.string())]
TYPES += [pa.dictionary(pa.uint32(), pa.large_string())]


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("kind", [*KINDS, "object"])
def test_each_type_of_strings(tmp_path, kind, type_):
    texts = ["", "a", "twelve bytes", "more than twelve bytes", "é" * 40, "a"]
    if pa.types.is_dictionary(type_):
        column = pa.array(texts).dictionary_encode().cast(type_)
    else:
        column = pa.array(texts).cast(type_)
    table = pa.table({"text": column})
    source = table.slice(1) if kind == "object" else write(tmp_path / "a", table, kind, rows=4)
    assert read(source) == (texts[1:] if kind == "object" else texts)


def test_row_groups_without_rows(tmp_path):
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, TABLE.schema) as writer:
        for start, rows in ((0, 0), (0, 3), (3, 0), (3, 2), (5, 0)):
            writer.write_table(TABLE.slice(start, rows))
    assert pq.ParquetFile(path).num_row_groups >= 2
    assert read(path) == TEXTS[:5]


def test_a_folder_of_shards_in_order_with_other_files(tmp_path):
    for number in range(3):
        folder = tmp_path / f"{number % 2}"
        folder.mkdir(exist_ok=True)
        write(folder / f"shard_{number:05}", TABLE.slice(number * 10, 10))
    (tmp_path / "0" / "notes.txt").write_text("notes")
    (tmp_path / "0" / "z.jsonl").write_text('{"text": "record"}\n')
    corpus = open_corpus(tmp_path)
    texts = ["notes", *TEXTS[:10], *TEXTS[20:30], "record", *TEXTS[10:20]]
    assert [text.decode() for text in corpus.documents()] == texts
    assert corpus.has_records
    assert corpus.total_bytes == sum(file.stat().st_size for file in corpus.files)
    by_file = {Path(name).name: len(list(documents)) for name, documents in corpus.by_file()}
    shards = {f"shard_0000{number}.parquet": 10 for number in range(3)}
    assert by_file == {"notes.txt": 1, **shards, "z.jsonl": 1}


def test_the_column_is_the_field(tmp_path):
    table = pa.table({"text": ["no"], "content": ["yes"]})
    assert read(write(tmp_path / "a", table), field="content") == ["yes"]
    assert read(write(tmp_path / "a", table, "arrow stream"), field="content") == ["yes"]


def test_counts_do_not_depend_on_threads_or_the_kind(tmp_path):
    expected = byteweld.count(documents=TEXTS)
    for kind in KINDS:
        path = write(tmp_path / kind.replace(" ", ""), kind=kind)
        for threads in (1, 2):
            assert byteweld.count(path, num_threads=threads) == expected
    assert byteweld.count(TABLE) == expected
    assert byteweld.count(path, memory=budget()) == expected


def budget() -> int:
    """Return a memory budget of 850 MB more than what other tests have left in this process."""
    return resident_bytes() + 850_000_000


# ---------------------------------------------------------------------- objects


class Exported:
    """An object that is only known by its Arrow stream, like those of polars or duckdb."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return self._table.__arrow_c_stream__(requested)


@pytest.mark.parametrize(
    "make", [lambda t: t, lambda t: t["text"], Exported, lambda t: t.to_reader()]
)
def test_an_object_with_a_stream(make):
    assert byteweld.count(make(TABLE)) == byteweld.count(documents=TEXTS)


def test_every_function_takes_a_table():
    tok = byteweld.train(TABLE, vocab_size=300)
    assert tok.vocab == byteweld.train(documents=TEXTS, vocab_size=300).vocab
    found = byteweld.evaluate(tok, TABLE)
    assert found.total.documents == len(TEXTS)
    assert [file.name for file in found.files] == ["Table"]
    assert byteweld.compare(tok, tok, TABLE).is_identical
    assert len(tok.encode_files(TABLE)[1]) == len(TEXTS) + 1


def test_a_dataset_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    table = datasets.table.InMemoryTable(TABLE)
    dataset = datasets.Dataset(table, fingerprint="a")
    assert read(dataset) == TEXTS
    assert read(dataset.select(range(5, 600, 7), new_fingerprint="b")) == TEXTS[5:600:7]
    assert read(dataset.select([], new_fingerprint="c")) == []
    with pytest.raises(CorpusError, match='no column "body"; the columns are "id", "text"'):
        read(dataset, field="body")
    with pytest.raises(TypeError, match="a dict with the keys 'train', 'test'; pass one of its"):
        byteweld.count(datasets.DatasetDict({"train": dataset, "test": dataset}))


def test_the_progress_of_a_table_is_its_text():
    seen: list[int] = []
    byteweld.count(TABLE, progress=seen.append)
    assert seen[-1] == sum(len(text.encode()) for text in TEXTS)


def test_options_of_files_have_no_effect_on_a_table(tmp_path):
    for option in ({"lines": True}, {"separator": "x"}, {"ext": "txt"}):
        with pytest.raises(TypeError, match="no effect on Table"):
            byteweld.count(TABLE, **option)
    assert byteweld.count(TABLE, field="text", on_error="skip") == byteweld.count(documents=TEXTS)
    with pytest.raises(TypeError, match="documents in memory cannot"):
        byteweld.train(TABLE, vocab_size=300, checkpoint=tmp_path / "c")


def test_a_stream_can_be_read_once():
    capsule = TABLE.__arrow_c_stream__()

    class Once:
        def __arrow_c_stream__(self, requested: object = None) -> object:
            return capsule

    assert byteweld.count(Once()) == byteweld.count(documents=TEXTS)
    with pytest.raises(TypeError, match="the Arrow stream has already been read"):
        byteweld.count(Once())


# ---------------------------------------------------------------------- bad rows

BAD = pa.table({"text": pa.array([b"one", None, b"a\xff\xc3", b"two", b"\xe2\x82"], pa.binary())})


@pytest.mark.parametrize("kind", [*KINDS, "object"])
def test_bad_rows_follow_on_error(tmp_path, kind):
    def source(table: Any) -> Any:
        return write(tmp_path / "a", table, kind)

    name = "Table" if kind == "object" else os.fspath(source(BAD))
    with pytest.raises(
        CorpusError, match="row 1: the text is null; expected a string; or pass on_error='skip'"
    ) as e:
        read(source(BAD))
    assert e.value.path == name
    with pytest.raises(CorpusError, match="row 1: the text is not UTF-8 at its byte 1"):
        read(source(pa.table({"text": pa.array([b"one", b"a\xff"], pa.binary())})))
    with pytest.raises(CorpusError, match="row 1: the text is null"):
        read(source(BAD), on_error="replace")
    assert read(source(BAD.drop_null()), on_error="replace") == [
        "one",
        "a\ufffd\ufffd",
        "two",
        "\ufffd",
    ]
    documents = Documents(open_corpus(source(BAD), on_error="skip").engine_arguments())
    assert list(documents) == [b"one", b"two"]
    assert documents.skipped == 3
    assert documents.take_skips() == [
        (0, None, 1, None, "the text is null"),
        (0, None, 2, None, "not UTF-8"),
        (0, None, 4, None, "not UTF-8"),
    ]
    assert documents.take_skips() == []
    assert byteweld.count(source(BAD), on_error="skip").skipped_documents == 3


def test_replacing_in_a_long_text_is_that_of_python(tmp_path):
    text = (b"abc\xe2\x82\xacd" * 9 + b"\xe2\x82" + b"\xf0\x9f\x98\x80\xff") * 40_000
    table = pa.table({"text": pa.array([text], pa.binary())})
    counts = Corpus(table=table, reading=Reading(on_error="replace")).count_bytes()
    expected = text.decode(errors="replace").encode()
    assert counts.counts == [expected.count(byte) for byte in range(256)]
    assert read(table, on_error="replace") == [expected.decode()]


@pytest.mark.parametrize("kind", [*KINDS, "object"])
def test_a_missing_column_lists_the_columns(tmp_path, kind):
    source = write(tmp_path / "a", kind=kind)
    with pytest.raises(CorpusError, match='no column "body"; the columns are "id", "text"'):
        read(source, field="body")
    documents = Documents(open_corpus(source, field="body", on_error="skip").engine_arguments())
    assert list(documents) == []
    assert documents.skipped == len(TEXTS)


@pytest.mark.parametrize(
    "column, found",
    [
        (pa.array([["a"]]), "of type list"),
        (pa.array([1]), "of type integer"),
        (pa.array([{"a": "b"}]), "of type struct"),
        (pa.array([1.5]).dictionary_encode(), "a dictionary of float"),
        (pa.array([b"abc"], pa.binary(3)), "of type fixed-size binary"),
        (pa.array([True]), "of type bool"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["parquet", "arrow stream", "object"])
def test_a_column_of_another_type(tmp_path, kind, column, found):
    table = pa.table({"text": column})
    if kind == "parquet" and "dictionary" in found:
        found = "of type float"
    source = write(tmp_path / "a", table, kind)
    with pytest.raises(CorpusError, match=f'the column "text" is {found}; expected a column of'):
        read(source)
    assert read(source, on_error="skip") == []


@pytest.mark.parametrize("kind", ["arrow stream", "parquet", "object"])
def test_a_column_of_nulls(tmp_path, kind):
    table = pa.table({"text": pa.nulls(3)})
    source = write(tmp_path / "a", table, kind)
    with pytest.raises(CorpusError, match="row 0: the text is null"):
        read(source)
    assert byteweld.count(source, on_error="skip").skipped_documents == 3


def test_two_columns_of_the_same_name(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    for source in (table, *(write(tmp_path / "a", table, kind) for kind in KINDS)):
        with pytest.raises(CorpusError, match='the column "text" is there twice'):
            read(source)
        assert read(source, on_error="skip") == []


def test_a_column_named_like_the_path_of_another(tmp_path):
    table = pa.table({"a": [{"b": "nested"}], "a.b": ["text"]})
    for kind in KINDS:
        assert read(write(tmp_path / "a", table, kind), field="a.b") == ["text"]
    nested = write(tmp_path / "a", table.select(["a"]))
    with pytest.raises(CorpusError, match=r'no column "a\.b"; the columns are "a"'):
        read(nested, field="a.b")


def test_many_batches_share_a_large_dictionary(tmp_path):
    """The time does not depend on the size of the dictionary."""
    columns = {}
    for size in (5000, 500_000):
        values = pa.array([f"value {number}" for number in range(size)])
        columns[size] = pa.DictionaryArray.from_arrays(pa.array(range(5000), pa.int32()), values)

    def chunks(size):
        slices = [columns[size].slice(start, 1) for start in range(5000)]
        return pa.table({"text": pa.chunked_array(slices)})

    tables = {size: chunks(size) for size in columns}
    assert least_growth(lambda size: read(tables[size]), *columns, limit=10) < 10
    texts = [f"value {number}" for number in range(5000)]
    assert read(tables[500_000]) == texts
    path = write(tmp_path / "a", pa.table({"text": columns[500_000]}), "arrow file", rows=1)
    assert read(path) == texts


def test_a_dictionary_that_changes_between_two_batches(tmp_path):
    batches = [
        pa.record_batch({"text": pa.array(texts).dictionary_encode()})
        for texts in (["a", "b", "a"], ["a", "b", "c"], ["d"], ["e", None, "e"])
    ]
    path = tmp_path / "a.arrow"
    with pa.ipc.new_stream(path, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    assert "".join(read(path, on_error="skip")) == "abaabcdee"


def test_a_row_larger_than_the_budget(tmp_path):
    path = write(tmp_path / "a", pa.table({"text": ["small", "x " * (20 << 20)]}), rows=1)
    with pytest.raises(BudgetError, match=r"row 1: the text has 41943040 bytes, more than the"):
        byteweld.count(path, memory=budget())
    counts = byteweld.count(path, memory=budget(), on_error="skip")
    assert (counts.total, counts.skipped_documents) == (1, 1)


# ---------------------------------------------------------------------- bad files


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation_is_an_error(tmp_path, kind):
    path = write(tmp_path / "a", TABLE.slice(0, 50), kind, rows=10)
    data = path.read_bytes()
    for size in {0, 1, 3, 4, 8, 11, 12, *range(16, len(data), len(data) // 60), len(data) - 1}:
        path.write_bytes(data[:size])
        with pytest.raises(CorpusError) as error:
            read(path)
        assert error.value.path == os.fspath(path)


def test_a_stream_that_ends_between_two_batches_is_truncated(tmp_path):
    path = write(tmp_path / "a", kind="arrow stream")
    path.write_bytes(path.read_bytes()[:-8])
    assert pa.ipc.open_stream(path).read_all().num_rows == len(TEXTS)  # to pyarrow, it is whole
    with pytest.raises(CorpusError, match="the Arrow stream is truncated"):
        read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bytes_never_crash(tmp_path, kind):
    """Whatever a damaged file holds, it is an error or gives as many documents as it has rows."""
    path = write(tmp_path / "a", TABLE.slice(0, 50), kind, rows=10)
    data = path.read_bytes()
    for place in range(0, len(data), max(1, len(data) // 250)):
        for value in (0x00, 0x7F, 0xFF):
            damaged = bytearray(data)
            damaged[place] = value
            path.write_bytes(damaged)
            try:
                read(path, on_error="skip")
            except (CorpusError, MemoryError) as error:
                assert str(path) in str(error)


def test_a_file_that_is_not_what_its_extension_says(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_text("plain text, not a table")
    with pytest.raises(
        CorpusError, match="a Parquet file starts with b'PAR1', but this one with b'plai'"
    ):
        read(path)
    path = path.rename(tmp_path / "a.arrow")
    with pytest.raises(CorpusError, match="an Arrow file starts with b'ARROW1', but this one"):
        read(path)
    path.write_bytes(b"FEA1" + bytes(20))
    with pytest.raises(CorpusError, match="Feather version 1 is not supported"):
        read(path)


def test_offsets_of_a_hostile_arrow_file(tmp_path):
    """Offsets that point outside the file's own buffers are found before they are used."""
    for width, offset in ((4, 2**31 - 1), (4, -5), (8, 2**62), (8, -1)):
        offsets = b"".join(n.to_bytes(width, "little", signed=True) for n in (0, 3, offset))
        type_ = pa.string() if width == 4 else pa.large_string()
        table = pa.table({"text": pa.array(["abc", "defgh"], type_)})
        path = write(tmp_path / "a", table, "arrow stream")
        data = path.read_bytes()
        before = b"".join(n.to_bytes(width, "little") for n in (0, 3, 8))
        assert data.count(before) == 1
        path.write_bytes(data.replace(before, offsets))
        with pytest.raises(CorpusError, match="the Arrow file is damaged"):
            read(path)


def test_files_that_cannot_be_opened_follow_on_error(tmp_path):
    path = write(tmp_path / "a", TABLE.slice(0, 3))
    corpus = Corpus(files=(tmp_path / "gone.parquet", path))
    with pytest.raises(FileNotFoundError, match=r"gone\.parquet"):
        list(corpus.documents())
    skipping = Corpus(files=corpus.files, reading=Reading(on_error="skip"))
    documents = Documents(skipping.engine_arguments())
    assert len(list(documents)) == 3
    assert [(skip[0], skip[4][:18]) for skip in documents.take_skips()] == [
        (0, "cannot be opened: ")
    ]
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(CorpusError, match="expected a regular file, found a named pipe"):
        read(tmp_path / "pipe.parquet")


def test_a_file_that_changes_while_it_is_read(tmp_path):
    path = write(tmp_path / "a")
    documents = open_corpus(path).documents()
    next(documents)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(CorpusError, match="the file changed while it was read"):
        list(documents)
    path = write(tmp_path / "b", pa.table({"text": [os.urandom(9000).hex()] * 3000}), rows=1000)
    documents = open_corpus(path).documents()
    next(documents)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CorpusError, match="the file changed while it was read"):
        list(documents)


def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    write(tmp_path / "a")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'byteweld\[arrow\]'"):
        open_corpus(tmp_path)


# ---------------------------------------------------------------------- resuming, memory, signals


def test_reading_starts_again_at_every_position(tmp_path):
    write(
        tmp_path / "a",
        pa.concat_tables(
            [TABLE.slice(0, 7), pa.table({"id": [0], "text": [None]})], promote_options="permissive"
        ),
        rows=3,
    )
    (tmp_path / "b.txt").write_text("text file")
    write(tmp_path / "c", TABLE.slice(3, 9), "arrow stream", rows=4)
    (tmp_path / "d.jsonl").write_text('{"text": "r1"}\nbroken\n{"text": "r2"}\n')
    write(tmp_path / "e", TABLE.slice(20, 5), "arrow file", rows=2)
    arguments = open_corpus(tmp_path, on_error="skip").engine_arguments() | {"digest": True}
    whole = Documents(arguments)
    expected = list(whole)
    finished, skips = whole.take_finished(), whole.take_skips()
    assert len(finished) == 5 and len(skips) == 2 and whole.position == (5, 0, 0, 0)
    for stop in range(len(expected) + 1):
        first = Documents(arguments)
        before = list(itertools.islice(first, stop))
        told = first.take_finished(), first.take_skips()
        rest = Documents(arguments)
        rest.start_at(first.position)
        assert before + list(rest) == expected
        assert told[0] + rest.take_finished() == finished
        assert told[1] + rest.take_skips() == skips


def test_row_groups_before_the_start_are_not_read(tmp_path):
    path = write(tmp_path / "a")
    group = pq.ParquetFile(path).metadata.row_group(0).column(1)
    start = group.dictionary_page_offset or group.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + group.total_compressed_size] = bytes(group.total_compressed_size)
    path.write_bytes(data)
    documents = Documents(open_corpus(path).engine_arguments())
    documents.start_at((0, 150, 150, 0))
    assert [text.decode() for text in documents] == TEXTS[150:]
    with pytest.raises(CorpusError, match="damaged"):
        read(path)


DAMAGE = """
import struct, sys
from pathlib import Path
from byteweld.corpus import open_corpus
from byteweld.errors import CorpusError
path = Path(sys.argv[1])
data = path.read_bytes()
(footer,) = struct.unpack("<I", data[-8:-4])
refused = 0
for offset in range(len(data) - 8 - footer, len(data) - 8):
    path.write_bytes(data[:offset] + b"\\xff\\xff" + data[offset + 2 :])
    try:
        list(open_corpus(path).documents())
    except CorpusError:
        refused += 1
print(refused)
"""


def test_damaged_metadata_of_any_row_group_is_an_error(tmp_path):
    """pyarrow throws exceptions that end the process if it is asked for damaged metadata."""
    path = tmp_path / "a.parquet"
    table = TABLE.slice(0, 500).select(["text"])
    pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=100)
    done = run_python("-c", DAMAGE, path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def test_a_table_that_has_fewer_rows_than_were_read(tmp_path):
    documents = Documents(open_corpus(write(tmp_path / "a")).engine_arguments())
    documents.start_at((0, 1001, 1001, 0))
    with pytest.raises(CorpusError, match="fewer rows than had been read"):
        next(documents)


MEMORY = """
import re, sys
import byteweld
from byteweld.corpus import open_corpus
def peak():  # of this program; that of getrusage may be the parent's
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
list(open_corpus(sys.argv[2]).documents())
before = peak()
read = sum(map(len, open_corpus(sys.argv[1]).documents()))
print(read, (peak() - before) >> 10)
"""


@pytest.mark.parametrize("kind", ["rows", "equal rows"])
def test_memory_is_flat_on_large_rows(tmp_path, kind):
    """One row group of 400 MB, of large rows, or of equal ones that the file holds once."""
    path = tmp_path / "a.parquet"
    row = os.urandom(50_000).hex()
    rows = [row + str(number % (4000 if kind == "rows" else 2)) for number in range(4000)]
    # The writer ends a page only after a batch; by default, that is 1,024 rows.
    schema = pa.schema({"text": pa.string()})
    with pq.ParquetWriter(path, schema, compression="none", write_batch_size=8) as writer:
        writer.write_table(pa.table({"text": rows}), row_group_size=4000)
    small = write(tmp_path / "small", TABLE)
    done = run_python("-c", MEMORY, path, small)
    assert done.returncode == 0, done.stderr
    size, grown = map(int, done.stdout.split())
    assert size > 400_000_000
    assert grown < 120, f"{grown} MB"


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_an_endless_stream(threads):
    batch = pa.record_batch({"text": ["some words and more " * 50] * 1000})
    reader = pa.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch))
    assert can_be_interrupted(lambda: byteweld.count(reader, num_threads=threads))
