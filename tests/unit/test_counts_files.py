"""Saved counts: sixteen parts and a manifest, identical for equal counts, checked row by row."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest

import byteweld
from byteweld import PATTERNS, Counts, FormatError, counts_files
from byteweld._memory import memory_limit
from byteweld.counts import Pruning

pyarrow = pytest.importorskip("pyarrow", reason="saved counts are Parquet files")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = [f"part-{part:02}.parquet" for part in range(16)]
FILES = ["counts.json", *NAMES]
MANY = {b"%d" % n: n % 7 + 1 for n in range(500)} | {b"ab": 2**40, b"\x00\xff": 1, b"a" * 5000: 3}


@pytest.fixture
def saved(tmp_path):
    counts = Counts(MANY, pattern=PATTERNS["gpt2"])
    counts.save(tmp_path / "counts")
    return counts, tmp_path / "counts"


@pytest.fixture
def folder(saved):
    return saved[1]


def content(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def rows(file):
    return parquet.read_table(file).to_pydict()


def rewrite(file, columns, schema=None):
    """Write a part again with other rows, and its SHA-256 into the manifest."""
    schema = schema or parquet.ParquetFile(file).schema_arrow
    with parquet.ParquetWriter(file, schema, store_schema=False) as writer:
        writer.write_table(pyarrow.table(columns, schema=schema))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    change_manifest(
        file.parent, lambda value: value["parts"][NAMES.index(file.name)].update(sha256=digest)
    )


def change_manifest(folder, change):
    value = json.loads((folder / "counts.json").read_text("utf-8"))
    change(value)
    value["sha256"] = counts_files._digest(value)
    (folder / "counts.json").write_text(json.dumps(value), encoding="utf-8")


def refused_file(folder, match=None):
    """What a refusal names; its message has some words."""
    with pytest.raises(FormatError, match=match) as caught:
        Counts.load(folder)
    return Path(caught.value.path)


# ---------------------------------------------------------------------- saving and loading


def test_saved_counts_are_read_back(saved):
    counts, folder = saved
    loaded = Counts.load(folder)
    assert loaded == counts and loaded.pattern == PATTERNS["gpt2"]
    assert loaded.items() == counts.items() == sorted(MANY.items())
    assert Counts.load(str(folder)) == counts
    assert Counts.is_saved_at(folder)
    assert not Counts.is_saved_at(folder.parent)


def test_saving_keeps_how_the_counts_were_made(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a b a<x>c"}\nbroken\n{"text": "long a"}\n')
    counts = byteweld.count(
        tmp_path / "a.jsonl", recipe="ck-ascii", special_tokens=["<x>"], on_error="skip", prune=1
    )
    counts.save(tmp_path / "counts")
    loaded = Counts.load(tmp_path / "counts")
    names = ("pattern", "boundaries", "alphabet", "skipped_documents", "pruning", "total_bytes")
    for name in names:
        assert getattr(loaded, name) == getattr(counts, name), name
    assert loaded.alphabet == "ascii" and loaded.skipped_documents == 1


def test_training_and_counting_accept_saved_counts(saved):
    counts, folder = saved
    tok = byteweld.train(folder, vocab_size=300, recipe="from-scratch")
    assert tok.vocab == byteweld.train(counts, vocab_size=300, recipe="from-scratch").vocab
    assert byteweld.count(folder, recipe="from-scratch") == counts
    with pytest.raises(ValueError, match="train with the same pattern"):
        byteweld.train(folder, vocab_size=300, recipe="modern")


def test_a_part_has_two_columns_and_a_manifest_describes_it(saved):
    counts, folder = saved
    assert sorted(file.name for file in folder.iterdir()) == FILES
    file = parquet.ParquetFile(folder / "part-03.parquet")
    assert str(file.schema_arrow.field("bytes")) == "pyarrow.Field<bytes: binary not null>"
    assert str(file.schema_arrow.field("count")) == "pyarrow.Field<count: uint64 not null>"
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    part = rows(folder / "part-03.parquet")
    assert part["bytes"] == sorted(part["bytes"])
    manifest = json.loads((folder / "counts.json").read_text("utf-8"))
    parts, digest = manifest.pop("parts"), manifest.pop("sha256")
    compact = json.dumps(manifest | {"parts": parts}, sort_keys=True, separators=(",", ":"))
    assert digest == hashlib.sha256(compact.encode()).hexdigest()
    assert manifest == {
        "format": "byteweld counts",
        "version": 2,
        "partition": "xxh3_64(bytes) % 16",
        "pattern": PATTERNS["gpt2"],
        "boundaries": None,
        "alphabet": None,
        "skipped_documents": 0,
        "pruning": None,
        "distinct": len(counts),
        "distinct_bytes": sum(map(len, counts)),
        "total": counts.total,
        "total_bytes": counts.total_bytes,
    }
    assert [found["file"] for found in parts] == NAMES
    assert parts[3] == {
        "file": "part-03.parquet",
        "distinct": len(part["bytes"]),
        "distinct_bytes": sum(map(len, part["bytes"])),
        "total": sum(part["count"]),
        "total_bytes": sum(len(b) * n for b, n in zip(part["bytes"], part["count"], strict=True)),
        "sha256": hashlib.sha256((folder / "part-03.parquet").read_bytes()).hexdigest(),
    }


def test_the_part_of_a_pretoken_never_changes(tmp_path):
    # From xxHash itself: XXH3_64bits("a") = 0xe6c632b61e964e1f, "abc" = 0x78af5f94892f3950.
    Counts({b"a": 1, b"abc": 2}).save(tmp_path / "counts")
    assert rows(tmp_path / "counts" / "part-15.parquet") == {"bytes": [b"a"], "count": [1]}
    assert rows(tmp_path / "counts" / "part-00.parquet") == {"bytes": [b"abc"], "count": [2]}


def test_empty_counts_have_sixteen_empty_parts(tmp_path):
    Counts({}).save(tmp_path / "counts")
    assert sorted(content(tmp_path / "counts")) == FILES
    assert Counts.load(tmp_path / "counts") == Counts({})


def test_many_rows_are_written_in_row_groups_of_bounded_size(tmp_path):
    counts = Counts({b"%07d" % n: 1 for n in range(1_300_000)})
    counts.save(tmp_path / "counts")
    metadata = parquet.ParquetFile(tmp_path / "counts" / "part-00.parquet").metadata
    groups = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    assert len(groups) == 2 and groups[0] == 1 << 16
    assert Counts.load(tmp_path / "counts") == counts


@pytest.mark.parametrize("big", [2**32 - 1, 2**32, 2**40 + 1, 2**56])
def test_counts_beyond_32_and_40_bits_survive_saving_merging_and_training(big, tmp_path):
    table = {b"ab": big, b"cd": big + 1, b"abcd": 1, b"xy": 2**31}
    Counts(table).save(tmp_path / "a")
    merged = Counts.merge([tmp_path / "a", tmp_path / "a", Counts({b"cd": 1})])
    assert merged[b"ab"] == 2 * big and merged[b"cd"] == 2 * big + 3
    merged.save(tmp_path / "b")
    tok = byteweld.train(tmp_path / "b", vocab_size=259, recipe="plain")
    assert tok.vocab.merges == [(b"c", b"d"), (b"a", b"b"), (b"x", b"y")]
    assert tok.training.merge_counts == (2 * big + 5, 2 * big + 2, 2**32)


def test_an_overflowing_sum_is_an_error_that_names_the_pretoken(tmp_path):
    Counts({b"ab": 2**64 - 1}).save(tmp_path / "a")
    assert Counts.load(tmp_path / "a")[b"ab"] == 2**64 - 1
    with pytest.raises(OverflowError, match='"ab"'):
        Counts.merge([tmp_path / "a", Counts({b"ab": 1})])


# ---------------------------------------------------------------------- writing


def test_saved_counts_are_overwritten_only_with_overwrite(saved):
    counts, folder = saved
    with pytest.raises(FileExistsError, match="overwrite"):
        Counts({b"x": 1}).save(folder)
    assert Counts.load(folder) == counts
    Counts({b"x": 1}).save(folder, overwrite=True)
    assert Counts.load(folder) == Counts({b"x": 1})
    assert [file.name for file in folder.parent.iterdir()] == ["counts"]


def test_counts_can_be_saved_to_an_empty_or_a_missing_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "a" / "b"):
        Counts({b"x": 1}).save(folder)
        assert Counts.load(folder) == Counts({b"x": 1})


def test_a_folder_with_other_files_is_never_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="other files"):
            Counts({b"x": 1}).save(tmp_path / "mine", overwrite=overwrite)
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileExistsError, match="not a folder"):
        Counts({b"x": 1}).save(tmp_path / "file", overwrite=True)
    assert content(tmp_path / "mine") == {"thesis.txt": b"x"}


def test_a_save_that_fails_halfway_changes_nothing(folder, monkeypatch):
    before = content(folder)
    write_part = counts_files.write_part

    def fail_at_nine(file, table, part):
        if part == 9:
            raise OSError(28, "No space left on device")
        write_part(file, table, part)

    monkeypatch.setattr(counts_files, "write_part", fail_at_nine)
    with pytest.raises(OSError, match="No space"):
        Counts({b"x": 1}).save(folder, overwrite=True)
    with pytest.raises(OSError, match="No space"):
        Counts({b"x": 1}).save(folder.parent / "new")
    assert content(folder) == before
    assert [file.name for file in folder.parent.iterdir()] == ["counts"]


def test_without_pyarrow_saving_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install"):
        Counts({b"a": 1}).save(tmp_path / "counts")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- inconsistent parts


def test_a_missing_folder_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Counts.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"no file counts\.json"):
        Counts.load(tmp_path)


def test_a_missing_file_is_named(folder):
    for name in ("part-15.parquet", "part-00.parquet", "counts.json"):
        (folder / name).unlink()
        assert refused_file(folder, "missing") == folder / name
        assert Counts.is_saved_at(folder)


def test_counts_of_an_earlier_version_are_refused_with_the_reason(folder):
    (folder / "counts.json").unlink()
    refused_file(folder, "count again: earlier versions")
    with pytest.raises(FormatError, match="count again"):
        byteweld.train(folder, vocab_size=300)


def test_an_unexpected_parquet_file_is_named(folder):
    for name in ("part-16.parquet", "part-1.parquet", "counts.parquet"):
        shutil.copy(folder / "part-01.parquet", folder / name)
        assert refused_file(folder, "remove this file") == folder / name
        (folder / name).unlink()
    (folder / "notes.txt").write_text("what this is")
    assert len(Counts.load(folder)) == len(MANY)


def test_a_part_of_other_counts_is_refused(folder):
    other = folder.parent / "other"
    # One pre-token differs, and no sum.
    table = {(b"ab" if pretoken == b"\x00\xff" else pretoken): n for pretoken, n in MANY.items()}
    Counts(table | {b"\x00\xff": 2**40, b"ab": 1}, pattern=PATTERNS["gpt2"]).save(other)
    changed = [name for name in NAMES if (other / name).read_bytes() != content(folder)[name]]
    assert changed
    shutil.copy(other / changed[-1], folder / changed[-1])
    assert refused_file(folder, "belongs to other counts") == folder / changed[-1]
    shutil.copy(folder / "part-01.parquet", folder / "part-02.parquet")
    assert refused_file(folder) == folder / "part-02.parquet"


# ---------------------------------------------------------------------- invalid parts


def test_a_damaged_part_is_a_format_error(folder):
    file = folder / "part-04.parquet"
    whole = file.read_bytes()
    cuts = [whole[:n] for n in range(0, len(whole), 97)]
    for damaged in (b"PAR1", whole[:-1], b"x" * len(whole), *cuts):
        file.write_bytes(damaged)
        assert refused_file(folder) == file


def test_a_flipped_bit_is_an_error_or_changes_nothing(saved):
    counts, folder = saved
    file = folder / "part-04.parquet"
    whole = file.read_bytes()
    for at in range(0, len(whole), 41):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            loaded = Counts.load(folder)
        except FormatError as error:
            assert str(folder) in str(error)
        else:
            assert loaded == counts


BYTES, COUNT = ("bytes", pyarrow.binary()), ("count", pyarrow.uint64())


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        ([("text", pyarrow.string())], {"text": ["a"]}),
        ([("bytes", pyarrow.string()), COUNT], {"bytes": ["a"], "count": [1]}),
        ([BYTES, ("count", pyarrow.int64())], {"bytes": [b"a"], "count": [1]}),
        ([BYTES, COUNT], {"bytes": [None], "count": [1]}),
        ([COUNT, BYTES], {"count": [1], "bytes": [b"a"]}),
    ],
    ids=["other", "text", "signed", "nullable", "order"],
)
def test_other_columns_are_refused(folder, schema, columns):
    rewrite(folder / "part-02.parquet", columns, pyarrow.schema(schema))
    match = "bytes: binary not null, count: uint64 not null"
    assert refused_file(folder, match) == folder / "part-02.parquet"


def changed(part, change):
    pairs = list(zip(part["bytes"], part["count"], strict=True))
    pairs = change(pairs)
    return {"bytes": [pair[0] for pair in pairs], "count": [pair[1] for pair in pairs]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [rows[0], rows[2], rows[1], *rows[3:]], "row 2: .* not in order"),
        (lambda rows: [rows[0], rows[0], *rows[2:]], "row 1: .* twice"),
        (lambda rows: [*rows[:-1], (rows[-1][0], 0)], "row [0-9]+: .* count 0"),
        (lambda rows: [(b"", 1), *rows[1:]], "row 0: an empty pre-token"),
        (lambda rows: [*rows[:5], (rows[5][0] + b"x", 1), *rows[6:]], "row 5: .* belongs to part"),
        (lambda rows: [(rows[0][0], rows[0][1] + 1), *rows[1:]], "total is [0-9]+ in the rows"),
        (lambda rows: rows[:-1], "found [0-9]+ rows; expected"),
    ],
    ids=["order", "twice", "zero", "empty", "part", "total", "rows"],
)
def test_an_invalid_row_is_named(folder, change, message):
    file = folder / "part-06.parquet"
    rewrite(file, changed(rows(file), change))
    assert refused_file(folder, message) == file
    limit = memory_limit(
        table_bytes=0,
        text_bytes=0,
        merge_bytes=1 << 20,
        keep_bytes=0,
        record_bytes=0,
        dictionary_bytes=0,
    )
    with pytest.raises(FormatError, match=message):  # the same when the rows go to disk
        counts_files.read_folder(counts_files.open_folder(folder), limit)


PRUNING = dict.fromkeys(
    ("threshold", "distinct", "occurrences", "bytes", "word_error", "pair_error"), 1
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "expected format 'byteweld counts', version 2.*, found 'other'"),
        ({"version": 3}, "version 2.*, found 'byteweld counts', 3"),
        ({"partition": "crc"}, "found .*'crc'"),
        ({"more": 1}, "unknown key 'more'"),
        ({"total": 5}, "16 parts.* that add up to the totals"),
        ({"total": 10**99}, r"total: expected a whole number from 0 to 2\^128 - 1"),
        ({"parts": []}, "16 parts.* that add up to the totals"),
        ({"parts": {}}, "parts: expected a list, found {}"),
        ({"parts": [5] * 16}, r"parts\[0\]: expected an object, found 5"),
        ({"pattern": 5}, "pattern: expected a string, found 5"),
        ({"boundaries": "x"}, "boundaries: expected a list, found 'x'"),
        ({"boundaries": [1]}, r"boundaries\[0\]: expected a string, found 1"),
        ({"alphabet": "latin"}, "alphabet: expected 'ascii', found 'latin'"),
        ({"skipped_documents": -1}, "skipped_documents: expected a whole number .*found -1"),
        ({"pruning": {}}, "pruning: the key 'bytes' is missing"),
        ({"pruning": PRUNING | {"bytes": True}}, r"pruning\.bytes: expected a whole .*found True"),
    ],
)
def test_an_invalid_manifest_is_refused(folder, changes, message):
    change_manifest(folder, lambda value: value.update(changes))
    assert refused_file(folder, message) == folder / "counts.json"


@pytest.mark.parametrize("key", ["version", "pattern", "pruning", "total_bytes", "parts"])
def test_a_manifest_without_a_key_is_refused(folder, key):
    change_manifest(folder, lambda value: value.pop(key))
    assert refused_file(folder) == folder / "counts.json"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"file": "../x"}, "16 parts, 'part-00.parquet' to 'part-15.parquet', that add up"),
        ({"sha256": None}, r"parts\[3\]\.sha256: expected a string, found None"),
        ({"sha256": "0" * 64}, "damaged, or belongs to other counts"),
        ({"total": -1}, r"parts\[3\]\.total: expected a whole number .*found -1"),
        ({"total": 1}, "16 parts.* that add up to the totals"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_an_invalid_part_of_a_manifest_is_refused(folder, changes, message):
    change_manifest(folder, lambda value: value["parts"][3].update(changes))
    refused_file(folder, message)


def test_a_damaged_manifest_is_a_format_error(saved):
    counts, folder = saved
    whole = (folder / "counts.json").read_bytes()
    for at in range(0, len(whole), 13):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]):
            (folder / "counts.json").write_bytes(damaged)
            try:
                loaded = Counts.load(folder)
            except FormatError as error:
                assert str(folder) in str(error)
            else:  # white space
                assert (loaded, loaded.pattern) == (counts, counts.pattern)


def test_a_manifest_that_claims_much_takes_no_memory(folder):
    def claim(value):
        for where in (value, value["parts"][0]):
            where["distinct"] += 10**30

    change_manifest(folder, claim)
    with pytest.raises(FormatError, match="rows; expected 1000000"):
        Counts.load(folder, memory="4GB")


# ---------------------------------------------------------------------- merging


def test_counts_with_different_patterns_or_special_tokens_cannot_be_added(folder, tmp_path):
    Counts({b"a": 1}, pattern="x+").save(tmp_path / "x")
    with pytest.raises(ValueError, match="different patterns"):
        Counts.merge([folder, tmp_path / "x"])
    Counts({b"a": 1}, pattern=PATTERNS["gpt2"], boundaries=["<s>"]).save(tmp_path / "y")
    with pytest.raises(ValueError, match="different special tokens"):
        Counts.merge([folder, tmp_path / "y"])


def test_counts_with_two_spellings_of_a_pattern_can_be_added_and_trained_on(tmp_path):
    other = PATTERNS["gpt2"].replace("[sdmt]", "[tmds]")
    assert other != PATTERNS["gpt2"]
    a = Counts({b"ab": 1}, pattern=PATTERNS["gpt2"])
    b = Counts({b"ab": 2}, pattern=other)
    assert a + b == b + a
    assert (a + b).pattern in (other, PATTERNS["gpt2"])
    assert byteweld.train(b, vocab_size=257, recipe="modern", pattern="gpt2").vocab.merges


# ---------------------------------------------------------------------- pruning


def test_pruning_leaves_out_rare_pretokens_and_bounds_the_error(tmp_path):
    counts = Counts({b"low": 5, b"lower": 2, b"aaa": 1, b"x": 2})
    pruned = counts.prune(3)
    assert pruned.items() == [(b"low", 5)]
    # (l,o) (o,w) (w,e) (e,r) occurred twice in "lower", (a,a) twice in "aaa".
    assert pruned.pruning == Pruning(
        threshold=3, distinct=3, occurrences=5, bytes=15, word_error=2, pair_error=2
    )
    assert counts.pruning is None and counts.prune(1).pruning.occurrences == 0
    pruned.save(tmp_path / "counts")
    assert Counts.load(tmp_path / "counts").pruning == pruned.pruning
    assert byteweld.count(iter(["ab ab cd"]), recipe="bpetite", prune=1).pruning.distinct == 0
    assert byteweld.count(tmp_path / "counts", prune=6).items() == []


def test_error_bounds_of_pruned_counts_add_up_in_any_order(tmp_path):
    a = Counts({b"low": 5, b"lower": 2}).prune(3)
    b = Counts({b"xlo": 3, b"lower": 9}).prune(4)
    c = Counts({b"c": 1})
    expected = Pruning(threshold=4, distinct=2, occurrences=5, bytes=19, word_error=5, pair_error=5)
    a.save(tmp_path / "a")
    for tables in ([a, b, c], [c, b, a], [b, c, tmp_path / "a"], [a + b, c], [a, c + b]):
        merged = Counts.merge(tables)
        assert merged.pruning == expected
        assert merged.items() == [(b"c", 1), (b"low", 5), (b"lower", 9)]
    assert merged.prune(2).pruning.occurrences == 6


@pytest.mark.parametrize("threshold", [0, -1, 2**64, True, 1.5, "2"])
def test_a_threshold_is_a_positive_integer(threshold):
    error = ValueError if type(threshold) is int else TypeError
    with pytest.raises(error, match="threshold"):
        Counts({b"a": 1}).prune(threshold)


def test_saved_counts_among_paths_are_added(tmp_path):
    text, first, second = tmp_path / "a.txt", tmp_path / "first", tmp_path / "second"
    text.write_bytes(b"low lower")
    for folder in (first, second):
        byteweld.count(iter(["low low low"])).save(folder)
    for source in ([first, second], [str(first)], [text, first, second]):
        counts = Counts.merge(byteweld.count(s) if s == text else s for s in source)
        assert byteweld.count(source) == counts
        assert byteweld.train(source, vocab_size=258) == byteweld.train(counts, vocab_size=258)
    assert byteweld.count([text, first, second])[b" low"] == 4
