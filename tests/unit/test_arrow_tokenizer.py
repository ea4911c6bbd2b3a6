"""ArrowTokenizer: ids in Arrow tables, whatever the layout of the text; and what it rejects."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import ArrowTokenizer, CorpusError, SpecialTokenError, Tokenizer, UnsupportedError
from byteweld import arrow_tokenizer as module
from tests.helpers.strategies import texts, vocabularies

pa = pytest.importorskip("pyarrow")

END = "<|end|>"
VOCAB = {b: bytes([b]) for b in range(256)} | {256: b"ab", 257: b"abc"}
TOK = Tokenizer.from_merges(VOCAB, [(b"a", b"b"), (b"ab", b"c")], special_tokens=[END])
TEXTS = ["abc", "", None, "a\0b", "é 漢字 👍", f"x{END}y", "ab" * 3000, None]
LAYOUTS = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
    "dictionary of large_string": pa.dictionary(pa.uint64(), pa.large_string()),
}


def encoded(documents, tok=TOK):
    return [None if text is None else tok.encode(text, disallowed_special=()) for text in documents]


def as_layout(documents, type_):
    if pa.types.is_dictionary(type_):
        return pa.array(documents, type_.value_type).dictionary_encode().cast(type_)
    return pa.array(documents, pa.string()).cast(type_)


def ids_of(column, **options):
    found = ArrowTokenizer(TOK, **options)(pa.table({"text": column}))
    found.validate(full=True)
    return found["input_ids"].to_pylist()


def as_string(data, type_=None):
    """An array of strings whose bytes are not checked."""
    return pa.array(data, type_ or pa.binary()).view(pa.string())


# ---------------------------------------------------------------------- the ids


@given(st.data(), st.lists(st.none() | texts, max_size=12))
def test_ids_are_those_of_encode(data, documents):
    tok = Tokenizer(data.draw(vocabularies))
    type_ = data.draw(st.sampled_from(list(LAYOUTS.values())))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(documents)), max_size=3)))
    pieces = [documents[a:b] for a, b in zip([0, *cuts], [*cuts, len(documents)], strict=True)]
    column = pa.chunked_array([as_layout(piece, type_) for piece in pieces], type_)
    start = data.draw(st.integers(0, len(documents)))
    table = pa.table({"text": column, "row": range(len(documents))}).slice(start)
    special_text, options = data.draw(
        st.sampled_from(
            [("text", {"disallowed_special": ()}), ("special", {"allowed_special": "all"})]
        )
    )
    tokenize = ArrowTokenizer(
        tok, special_text=special_text, num_threads=data.draw(st.sampled_from([1, 2, None]))
    )
    found = tokenize(table)
    found.validate(full=True)
    expected = [None if text is None else tok.encode(text, **options) for text in documents[start:]]
    assert found["input_ids"].to_pylist() == expected
    assert found.drop_columns(["input_ids"]).equals(table)
    batches = list(tokenize(iter(table.to_batches())))
    assert [ids for batch in batches for ids in batch["input_ids"].to_pylist()] == expected
    assert all(batch.schema == found.schema for batch in batches)


def test_nulls_inside_a_dictionary():
    values = pa.array(["abc", None, "never used \x00"])
    for indices in ([1, 0, None, 0, 1], [1, 0], [0]):
        column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), values)
        assert ids_of(column) == [[257] if index == 0 else None for index in indices]


def test_what_is_under_a_null_does_not_matter():
    buffers = as_string([b"ab", b"\xff\xfe", END.encode()]).buffers()
    buffers[0] = pa.py_buffer(bytes([0b001]))
    column = pa.Array.from_buffers(pa.string(), 3, buffers)
    assert ids_of(column, special_text="fail") == [[256], None, None]


def test_a_column_of_nulls():
    for type_ in (pa.null(), pa.string(), pa.string_view(), LAYOUTS["dictionary"]):
        assert ids_of(pa.nulls(3, type_)) == [None] * 3


@pytest.mark.parametrize("type_", [*LAYOUTS.values(), pa.null()])
def test_empty_tables(type_):
    tokenize = ArrowTokenizer(TOK)
    schema = pa.schema({"text": type_})
    for table in (
        schema.empty_table(),
        pa.Table.from_batches([], schema),
        pa.RecordBatch.from_arrays([pa.nulls(0, type_)], schema=schema),
    ):
        found = tokenize(table)
        assert type(found) is type(table)
        assert found.num_rows == 0
        assert found.schema == tokenize.output_schema(schema)
    assert list(tokenize(iter([]))) == []


def test_many_rows_on_several_threads():
    documents = [f"abc {number} " * (number % 7) for number in range(100_000)]
    column = pa.chunked_array([documents[:99_000], documents[99_000:]])
    for num_threads in (1, 2, None):
        assert ids_of(column, num_threads=num_threads) == encoded(documents)


# ---------------------------------------------------------------------- forms of tables


def test_it_returns_what_it_is_given():
    table = pa.table({"text": TEXTS, "row": range(len(TEXTS))})
    tokenize = ArrowTokenizer(TOK)
    batch = table.to_batches()[0]
    assert isinstance(tokenize(table), pa.Table)
    assert isinstance(tokenize(batch), pa.RecordBatch)
    assert tokenize(batch).to_pylist() == tokenize(table).to_pylist()
    for batches in (iter([batch, batch.slice(3)]), table.to_reader()):
        found = tokenize(batches)
        assert iter(found) is found
        assert next(found).equals(tokenize(batch))


def test_an_iterator_is_read_lazily():
    def batches():
        yield pa.record_batch({"text": ["abc"]})
        raise AssertionError("read too early")

    found = ArrowTokenizer(TOK)(batches())
    assert next(found).to_pylist() == [{"text": "abc", "input_ids": [257]}]
    with pytest.raises(AssertionError, match="read too early"):
        next(found)


@pytest.mark.parametrize("given", [{"text": ["a"]}, ["a"], "a", None, pa.array(["a"])])
def test_other_things_than_tables(given):
    with pytest.raises(TypeError, match=r"found \w+; expected a pyarrow Table.*'pyarrow'\)$"):
        ArrowTokenizer(TOK)(given)
    with pytest.raises(TypeError, match=r"found \w+ in the iterator; expected RecordBatches"):
        list(ArrowTokenizer(TOK)(iter([given])))
    with pytest.raises(TypeError, match=r"found \w+; expected a pyarrow Schema"):
        ArrowTokenizer(TOK).output_schema(given)


def test_more_ids_than_the_offsets_of_a_list_can_count(monkeypatch):
    monkeypatch.setattr(module, "MAX_LIST", 4)
    documents = ["xyz", None, "x", "xy", "", "xyzw", None, "x", "x", "x", "x", "x"]
    table = pa.table({"text": documents, "row": range(len(documents))})
    tokenize = ArrowTokenizer(TOK)
    found = tokenize(table)
    found.validate(full=True)
    assert found["input_ids"].to_pylist() == encoded(documents)
    sizes = [len(chunk.values) for chunk in found["input_ids"].chunks]
    assert sizes == [4, 2, 4, 4, 1]
    assert found["row"].to_pylist() == list(range(12))
    batch = table.to_batches()[0]
    parts = list(tokenize(iter([batch])))
    assert pa.Table.from_batches(parts).to_pylist() == found.to_pylist()
    with pytest.raises(UnsupportedError, match=r"12 rows are too many for one list column"):
        tokenize(batch)
    with pytest.raises(UnsupportedError, match=r"row 1 has 5 ids; .* at most 4; cut its text"):
        tokenize(pa.table({"text": ["x", "vwxyz"]}))


# ---------------------------------------------------------------------- columns


def test_other_columns_are_kept_with_their_types_and_metadata():
    fields = [
        pa.field("text", pa.string(), metadata={"a": "b"}),
        pa.field("x", pa.int8(), False),
        pa.field("x", pa.list_(pa.string())),
        pa.field("", pa.dictionary(pa.int8(), pa.string())),
    ]
    schema = pa.schema(fields, metadata={"k": "v"})
    columns = [["abc"], [1], [["y"]], pa.array(["z"]).dictionary_encode().cast(fields[3].type)]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    tokenize = ArrowTokenizer(TOK)
    found = tokenize(table)
    expected = schema.append(pa.field("input_ids", pa.list_(pa.int32())))
    assert found.schema.equals(expected, check_metadata=True)
    assert tokenize.output_schema(schema).equals(expected, check_metadata=True)
    assert [found.column(i) for i in range(4)] == [table.column(i) for i in range(4)]


@pytest.mark.parametrize(
    "name", ["", " ", "a.b", 'quo"te', "漢字", "new\nline", "nul\0", "x" * 999]
)
def test_odd_names(name):
    tokenize = ArrowTokenizer(TOK, text_column=name, ids_column=name + "'s ids")
    assert tokenize(pa.table({name: ["abc"]})).to_pylist() == [
        {name: "abc", name + "'s ids": [257]}
    ]
    replace = ArrowTokenizer(TOK, text_column=name, ids_column=name, keep_columns=[])
    assert replace(pa.table({name: ["abc"]})).to_pylist() == [{name: [257]}]


def test_columns_to_keep():
    table = pa.table({"a": [1, 2], "text": ["abc", ""], "b": [3, 4], "input_ids": [0, 0]})
    for keep in ([], ["b"], ["b", "a"], ("text",)):
        found = ArrowTokenizer(TOK, keep_columns=keep)(table)
        assert found.column_names == [*keep, "input_ids"]
        assert found.select(list(keep)).equals(table.select(list(keep)))
        assert found["input_ids"].to_pylist() == [[257], []]


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["Text", "b"], {}, r"no column 'text' \(text_column\); .* 'Text', 'b'; did you mean 'Te"),
        ([], {}, r"no column 'text' \(text_column\); the columns are none"),
        ([str(i) for i in range(99)], {}, r"'19', \.\.\.$"),
        (["text", "text"], {}, r"the column 'text' is there 2 times; rename the others"),
        (["text", "input_ids"], {}, r"already has a column 'input_ids'; choose another name as id"),
        (["text"], {"ids_column": "text"}, r"already has a column 'text'; choose another name"),
        (["text"], {"keep_columns": ["id"]}, r"no column 'id' \(keep_columns\); the columns are "),
        (["text", "x", "x"], {"keep_columns": ["x"]}, r"the column 'x' is there 2 times"),
    ],
)
def test_columns_that_do_not_fit(names, options, message):
    tokenize = ArrowTokenizer(TOK, **options)
    batch = pa.RecordBatch.from_arrays([pa.array(["abc"])] * len(names), names)
    for call in (
        lambda: tokenize(pa.Table.from_batches([batch])),
        lambda: tokenize(batch),
        lambda: list(tokenize(iter([batch]))),
        lambda: tokenize.output_schema(batch.schema),
    ):
        with pytest.raises(CorpusError, match=message):
            call()


@pytest.mark.parametrize(
    "type_",
    [
        pa.int64(),
        pa.float64(),
        pa.bool_(),
        pa.list_(pa.string()),
        pa.struct({"text": pa.string()}),
        pa.binary(3),
        pa.timestamp("s"),
        pa.dictionary(pa.int8(), pa.int64()),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.map_(pa.string(), pa.string()),
    ],
)
def test_columns_of_other_types(type_):
    table = pa.schema({"text": type_}).empty_table()
    with pytest.raises(CorpusError, match=r"'text' is of type .*; expected a column of strings"):
        ArrowTokenizer(TOK)(table)


# ---------------------------------------------------------------------- hostile arrays


@pytest.mark.parametrize(
    "bad", [b"\xff", b"ab\xc3", b"ab\xed\xa0\x80", b"\xc0\x80", b"ab\xe2\x82x"]
)
@pytest.mark.parametrize("num_threads", [1, 2])
def test_text_that_is_not_utf8(bad, num_threads):
    at = 2 if bad.startswith(b"ab") else 0
    columns = [
        as_string([b"fine", None, bad, b"\xff"]),
        pa.array([b"fine", None, bad]),
        pa.array([b"fine", None, bad], pa.binary_view()).view(pa.string_view()),
        pa.chunked_array([as_string([b"fine"]), as_string([b"x", bad])]),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), as_string([b"fine", bad])),
    ]
    tokenize = ArrowTokenizer(TOK, num_threads=num_threads)
    for column in columns:
        with pytest.raises(CorpusError, match=rf"^row 2 of the column 'text' .* its byte {at}; "):
            tokenize(pa.table({"text": column}))


def test_unused_values_of_a_dictionary_are_not_read():
    values = as_string([b"abc", b"\xff", END.encode()])
    table = pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0, 0]), values)})
    found = ArrowTokenizer(TOK, special_text="fail")(table)
    assert found["input_ids"].to_pylist() == [[257], [257]]


def offsets_of(*offsets):
    """An array of strings over three bytes; pyarrow itself checks only the last offset."""
    data = pa.array(offsets, pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, data, pa.py_buffer(b"abc")])


def test_damaged_arrays():
    indices = pa.array([0, 5], pa.int8())
    columns = [
        offsets_of(0, 2, 1),
        offsets_of(0, 2_000_000_000, 3),
        offsets_of(0, -2_000_000_000, 3),
        pa.chunked_array([["fine"], offsets_of(0, 2_000_000_000, 3)]),
        pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False),
        pa.DictionaryArray.from_arrays(pa.array([0]), offsets_of(0, 2_000_000_000, 3)),
    ]
    for column in columns:
        with pytest.raises(CorpusError, match=r"^the column 'text' is damaged: "):
            ids_of(column)


def test_a_text_of_more_than_the_engine_takes(monkeypatch):
    monkeypatch.setattr(module, "_MAX_TEXT_BYTES", 3)  # the message alone
    assert module._find_problem(pa.chunked_array([[b"abc", b"abcd"]])) == (
        1,
        "has 4 bytes; expected at most 3",
    )


# ---------------------------------------------------------------------- options


def test_special_text():
    column = [None, "ab", f"x{END}", ""]
    assert ids_of(column) == [None, [256], [120, *END.encode()], []]
    assert ids_of(column, special_text="special") == [None, [256], [120, 258], []]
    assert ids_of(["ab"], special_text="fail") == [[256]]
    expected = (
        r"^row 2 of the column 'text': text contains the special token '<\|end\|>'; pass "
        r"special_text='special' to encode it as its id, or special_text='text' to encode it as "
        r"ordinary text$"
    )
    for num_threads in (1, 2):
        with pytest.raises(SpecialTokenError, match=expected):
            ids_of(column, special_text="fail", num_threads=num_threads)


def test_marks():
    column = ["ab", "", None]
    assert ids_of(column, eot="append", eot_token=END) == [[256, 258], [258], None]
    assert ids_of(column, eot="prepend", eot_token=END) == [[258, 256], [258], None]
    tok = byteweld.train(
        documents=["abc abc"], vocab_size=260, special_tokens=["<s>", "</s>"], bos="<s>", eos="</s>"
    )
    bos, eos = (tok.vocab.special_tokens[text] for text in ("<s>", "</s>"))
    found = ArrowTokenizer(tok, bos=True, eot="append")(pa.table({"text": column}))
    assert found["input_ids"].to_pylist() == [[bos, *tok.encode("ab"), eos], [bos, eos], None]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint16", "uint32"])
def test_dtypes(dtype):
    found = ArrowTokenizer(TOK, dtype=dtype)(pa.table({"text": TEXTS}))
    assert found.schema.field("input_ids").type == pa.list_(pa.from_numpy_dtype(dtype))
    assert found["input_ids"].to_pylist() == encoded(TEXTS)


def test_ids_that_only_some_dtypes_hold():
    size = 2**16
    tokens = {id: bytes([id]) for id in range(256)} | {
        id: b"%07d" % id for id in range(256, size - 1)
    }
    tok = Tokenizer.from_merges(tokens, [], special_tokens={END: size - 1})
    tokenize = ArrowTokenizer(tok, dtype="uint16", special_text="special")
    assert tokenize(pa.table({"text": [END]}))["input_ids"].to_pylist() == [[size - 1]]
    tok = Tokenizer.from_merges(tokens, [], special_tokens={END: size})
    with pytest.raises(ValueError, match=r"'uint16', but the vocabulary has ids up to 65,536"):
        ArrowTokenizer(tok, dtype="uint16")
    tokenize = ArrowTokenizer(tok, special_text="special")
    assert tokenize(pa.table({"text": [END]}))["input_ids"].to_pylist() == [[size]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"eot": "last"}, ValueError, "eot is 'last'; expected one of 'append'"),
        ({"eot": None}, ValueError, "eot is None; expected one of 'append'"),
        ({"eot_token": END}, ValueError, "eot is 'none'; pass eot='append' or 'prepend'"),
        ({"eot": "append"}, ValueError, "no end-of-text token"),
        ({"eot": "append", "eot_token": "x"}, ValueError, "'x', which is not a special token"),
        ({"bos": True}, ValueError, "has no bos token"),
        ({"special_text": "skip"}, ValueError, "special_text is 'skip'; expected one of 'fail'"),
        ({"dtype": "int8"}, ValueError, "dtype is 'int8'; expected one of 'int32', 'int64'"),
        ({"num_threads": 0}, ValueError, "num_threads is 0; expected an integer, at least 1"),
        ({"num_threads": True}, ValueError, "num_threads is True; expected an integer"),
        ({"keep_columns": "id"}, TypeError, "keep_columns is 'id'; expected a list of names"),
        ({"keep_columns": [1]}, TypeError, "a name in keep_columns is 1; it must be a string"),
        ({"keep_columns": ["a", "a"]}, ValueError, "which has a name twice"),
        ({"keep_columns": ["input_ids"]}, ValueError, "the name of the new column; choose another"),
        ({"text_column": None}, TypeError, "text_column is None; it must be a string"),
        ({"ids_column": "\ud800"}, ValueError, "lone surrogate"),
        ({"column": "text"}, TypeError, "unexpected keyword argument 'column'"),
    ],
)
def test_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        ArrowTokenizer(TOK, **options)


@pytest.mark.parametrize("tokenizer", [None, 1, b"tokenizer.json", TOK.vocab])
def test_other_things_than_tokenizers(tokenizer):
    with pytest.raises(TypeError, match=r"expected a Tokenizer, or a path or name to load"):
        ArrowTokenizer(tokenizer)


# ---------------------------------------------------------------------- in workers


def test_a_path_is_loaded_on_first_use(tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenize = ArrowTokenizer(path, eot="append", eot_token=END)
    table = pa.table({"text": TEXTS})
    schema = tokenize.output_schema(table.schema)
    with pytest.raises(FileNotFoundError):
        tokenize(table)
    pickled = pickle.dumps(tokenize)
    TOK.save(path)
    for used in (tokenize, pickle.loads(pickled)):
        found = used(table)
        assert found.schema == schema
        assert found["input_ids"].to_pylist() == [
            None if ids is None else [*ids, 258] for ids in encoded(TEXTS)
        ]
    assert pickle.dumps(tokenize) == pickled
    assert len(pickled) < 1000
    path.unlink()
    assert tokenize(table).equals(found)  # loaded once


def test_an_encoding_by_name_is_not_loaded_before_use():
    assert "'no_such_encoding'" in repr(ArrowTokenizer("no_such_encoding"))
    with pytest.raises(FileNotFoundError, match="no such file, and no encoding of that name"):
        ArrowTokenizer("no_such_encoding")(pa.table({"text": ["abc"]}))


def test_options_that_do_not_fit_a_loaded_tokenizer(tmp_path):
    TOK.save(tmp_path / "tokenizer.json")
    tokenize = ArrowTokenizer(tmp_path / "tokenizer.json", bos=True)
    with pytest.raises(ValueError, match="has no bos token"):
        tokenize(pa.table({"text": ["abc"]}))


def test_pickling_keeps_every_option_and_does_not_depend_on_use():
    options = {
        "text_column": "t",
        "ids_column": "i",
        "keep_columns": ["t"],
        "eot": "append",
        "eot_token": END,
        "special_text": "special",
        "dtype": "int64",
        "num_threads": 2,
    }
    tokenize = ArrowTokenizer(TOK, **options)
    pickled = pickle.dumps(tokenize)
    table = pa.table({"t": ["abc", END, None], "x": [1, 2, 3]})
    found = tokenize(table)
    assert pickle.dumps(tokenize) == pickled
    again = pickle.loads(pickled)
    assert again(table).equals(found)
    assert again._arguments == {**options, "keep_columns": ("t",), "bos": False}
    assert pickle.dumps(again) == pickled
    assert len(pickled) < len(pickle.dumps(TOK)) + 500


def test_another_process_gives_the_same(tmp_path):
    table = pa.table({"text": TEXTS})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "table").write_bytes(sink.getvalue())
    (tmp_path / "function").write_bytes(pickle.dumps(ArrowTokenizer(TOK)))
    code = (
        "import pathlib, pickle, sys\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "function = pickle.loads((folder / 'function').read_bytes())\n"
        "assert 'pyarrow' not in sys.modules\n"
        "import pyarrow\n"
        "table = pyarrow.ipc.open_stream((folder / 'table').read_bytes()).read_all()\n"
        "print(function(table)['input_ids'].to_pylist())\n"
    )
    run = [sys.executable, "-c", code, str(tmp_path)]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(encoded(TEXTS))


def test_without_pyarrow(monkeypatch):
    tokenize = ArrowTokenizer(TOK)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'byteweld\[arrow\]'"):
        tokenize(None)
    with pytest.raises(ImportError, match=r"pip install 'byteweld\[arrow\]'"):
        tokenize.output_schema(None)
