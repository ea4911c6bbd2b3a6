"""Slices of a corpus: every document once and in order, whatever the size of the slices."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import byteweld
from byteweld import _native
from byteweld.corpus import Corpus, open_corpus
from byteweld.corpus._parts import FilePart
from byteweld.corpus._slices import Slice, divide, slice_corpus
from byteweld.counts import Counts, count_corpus

SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None
)


def documents(corpus: Corpus) -> list[bytes]:
    return list(corpus.documents()) if corpus.files else []


def sliced(
    corpus: Corpus, slice_bytes: int, builder: _native.CountBuilder | None = None
) -> list[tuple[Slice, Corpus]]:
    slices = divide(corpus, slice_bytes, builder=builder)
    assert [part.number for part in slices] == list(range(len(slices)))
    return [(part, slice_corpus(corpus, part, builder=builder)) for part in slices]


def make_builder(recipe: byteweld.Recipe) -> _native.CountBuilder:
    return _native.CountBuilder(
        pattern=recipe.pattern,
        boundaries=recipe.boundaries,
        alphabet=None,
        num_threads=1,
        limit=None,
    )


# Newlines and separators in a row, next to each other and at both ends, and characters of 1 to 4
# bytes.
PIECES = st.sampled_from(["\n", "\n\n", "\r\n", "a", "bc", "é", "你好", "😀", "--", "-", " ", ""])


@SETTINGS
@given(text=st.lists(PIECES, max_size=60).map("".join), size=st.integers(1, 40))
@pytest.mark.parametrize(
    "how", [{"unit": "line"}, {"separator": "--"}, {"separator": "\n\n"}, {"separator": "a"}]
)
def test_slices_of_a_text_file_have_its_documents(
    tmp_path: Path, text: str, size: int, how: dict[str, str]
) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(text.encode())
    corpus = open_corpus(file, **how)
    found = [document for _, part in sliced(corpus, size) for document in documents(part)]
    assert found == documents(corpus)


@SETTINGS
@given(
    records=st.lists(st.one_of(st.text(max_size=12), st.just(None)), max_size=12),
    size=st.integers(1, 60),
    has_end=st.booleans(),
)
def test_slices_of_json_lines_have_its_documents_and_skips(
    tmp_path: Path, records: list[str | None], size: int, has_end: bool
) -> None:
    lines = ["{broken" if text is None else json.dumps({"text": text}) for text in records]
    file = tmp_path / "a.jsonl"
    file.write_bytes(("\n".join(lines) + "\n" * has_end).encode())
    corpus = open_corpus(file, on_error="skip")
    whole = corpus.documents()
    expected = list(whole)
    found, skips, lines_before = [], [], 0
    for _, part in sliced(corpus, size):
        if not part.files:
            continue
        reader = part.documents(digest=True)
        found += list(reader)
        skips += [(line + lines_before, offset) for _, line, _, offset, _ in reader.take_skips()]
        lines_before += reader.take_finished()[0][4]
    assert found == expected
    assert skips == [(line, offset) for _, line, _, offset, _ in whole.take_skips()]


@SETTINGS
@given(
    text=st.lists(
        st.one_of(PIECES, st.sampled_from(["<|end|>", "<|", "12", "ab1", "  \n ", "'s", "\xa0"])),
        max_size=80,
    ).map("".join),
    size=st.integers(1, 50),
)
@pytest.mark.parametrize("pattern", [*byteweld.PATTERNS, r"\s?\w+|\s|.", None])
def test_slices_of_one_document_have_its_counts(
    tmp_path: Path, text: str, size: int, pattern: str | None
) -> None:
    specials = ("<|end|>", "<|end|>a<|", "\n\n")
    recipe = byteweld.RECIPES["modern"].replace(pattern=pattern, special_tokens=specials)
    check_counts(tmp_path, text.encode(), size, recipe)


def check_counts(folder: Path, data: bytes, size: int, recipe: byteweld.Recipe) -> None:
    file = folder / "a.txt"
    file.write_bytes(data)
    corpus = Corpus(files=(file,))  # some texts look like rank files, which open_corpus refuses
    parts = sliced(corpus, size, make_builder(recipe))
    if recipe.pattern is None and len(data) > size:
        assert len(parts) == 1
    tables = [count_corpus(part, recipe, num_threads=1) for _, part in parts if part.files]
    whole = count_corpus(corpus, recipe, num_threads=1)
    assert Counts.merge(tables).items() == whole.items()


@SETTINGS
@given(data=st.binary(max_size=300), size=st.integers(1, 40))
@pytest.mark.parametrize("pattern", ["gpt2", "o200k", "ck-runtime"])
def test_slices_of_bytes_that_are_not_utf8_have_their_counts(
    tmp_path: Path, data: bytes, size: int, pattern: str
) -> None:
    data = b" " + data  # not an archive
    check_counts(tmp_path, data, size, byteweld.RECIPES["modern"].replace(pattern=pattern))


def test_a_pattern_that_needs_backtracking_is_not_divided(tmp_path: Path) -> None:
    recipe = byteweld.RECIPES["modern"].replace(pattern=r"(\w)\1?|\s|.")
    check_counts(tmp_path, b"aab bcc " * 20, 10, recipe)
    assert not make_builder(recipe).has_cuts()


def test_a_long_text_is_cut_near_where_the_slices_are_planned(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"word and word, " * 40_000 + b"x" * 300_000 + b" word" * 1000)
    recipe = byteweld.RECIPES["modern"].replace(special_tokens=("<|end|>",))
    corpus = open_corpus(file)
    parts = sliced(corpus, 100_000, make_builder(recipe))
    starts = [part.files[0].start if part.files else None for _, part in parts]
    assert len(parts) == 10
    # In the long word there is no cut: its slices are empty.
    assert [start is None for start in starts] == [False] * 7 + [True, True] + [False]
    for (planned, _), start in zip(parts, starts, strict=True):
        if start is not None and start < 600_000:
            assert start - planned.files[0].start < 20
    tables = [count_corpus(part, recipe, num_threads=1) for _, part in parts if part.files]
    assert Counts.merge(tables) == count_corpus(corpus, recipe, num_threads=1)


def test_small_files_share_a_slice_and_large_ones_are_divided(tmp_path: Path) -> None:
    for name, size in (("a", 10), ("b", 10), ("c", 95), ("d", 10), ("e", 30), ("f", 5)):
        (tmp_path / f"{name}.txt").write_bytes((b"x" * 9 + b"\n") * (size // 10) or b"x\n")
    slices = divide(open_corpus(tmp_path, unit="line"), 30)
    named = [
        [
            f"{file.file.name} {file.start}" if isinstance(file, FilePart) else file.name
            for file in part.files
        ]
        for part in slices
    ]
    assert named == [
        ["a.txt", "b.txt"],
        ["c.txt 0"],
        ["c.txt 30"],
        ["c.txt 60"],
        ["d.txt"],
        ["e.txt"],
        ["f.txt"],
    ]
    assert [part.first_file for part in slices] == [0, 2, 2, 2, 3, 4, 5]
    assert [part.size for part in slices] == [20, 30, 30, 30, 10, 30, 2]


def test_compressed_files_are_read_as_a_whole(tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(2000))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(lines))
    corpus = open_corpus(tmp_path, unit="line")
    assert len(divide(corpus, 100)) == 1
    # The name does not say it: the task that has the start reads all of it.
    (tmp_path / "a.txt.gz").rename(tmp_path / "a.txt")
    corpus = open_corpus(tmp_path, unit="line")
    found = [documents(part) for _, part in sliced(corpus, 100)]
    assert len(found) > 2
    assert found[0] == documents(corpus)
    assert not any(found[1:])


def test_an_archive_inside_a_text_is_text(tmp_path: Path) -> None:
    """A slice may start with the first bytes of an archive."""
    file = tmp_path / "a.txt"
    file.write_bytes(b"\x1f\x8b\x08\n".join([b"line\n"] * 20))
    corpus = open_corpus(file, unit="line")
    found = [document for _, part in sliced(corpus, 9) for document in documents(part)]
    assert found == documents(corpus)
    assert any(document.startswith(b"\x1f\x8b") for document in found)


def test_a_file_that_changed_since_it_was_planned_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"line\n" * 100)
    corpus = open_corpus(file, unit="line")
    slices = divide(corpus, 100)
    exact = slice_corpus(corpus, slices[-1])
    file.write_bytes(b"line\n" * 60)
    with pytest.raises(byteweld.CorpusError, match=r"has 300 bytes now and had 500"):
        slice_corpus(corpus, slices[-1])
    with pytest.raises(byteweld.CorpusError, match="the file ends before byte 500"):
        documents(exact)


def test_a_file_that_cannot_be_opened_is_skipped_once(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"line\n" * 100)
    corpus = open_corpus(file, unit="line", on_error="skip")
    slices = divide(corpus, 100)
    file.unlink()
    readers = [slice_corpus(corpus, part).documents() for part in slices]
    assert [list(reader) for reader in readers] == [[]] * 5
    assert [reader.skipped for reader in readers] == [1, 0, 0, 0, 0]


pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@SETTINGS
@given(
    groups=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    size=st.integers(1, 2000),
)
def test_slices_of_parquet_have_its_rows(tmp_path: Path, groups: list[int], size: int) -> None:
    file = tmp_path / "a.parquet"
    schema = pa.schema([("text", pa.string())])
    number = 0
    with pq.ParquetWriter(file, schema) as writer:
        for rows in groups:
            texts = [f"row {number + n}" * (n + 1) if n else None for n in range(rows)]
            number += rows
            writer.write_table(
                pa.table({"text": texts}, schema=schema), row_group_size=max(1, rows)
            )
    corpus = open_corpus(file, on_error="skip")
    whole = corpus.documents()
    expected = list(whole)
    found, skips = [], []
    for _, part in sliced(corpus, size):
        reader = part.documents()
        found += list(reader)
        skips += [row for _, _, row, _, _ in reader.take_skips()]
    assert found == expected
    assert skips == [row for _, _, row, _, _ in whole.take_skips()]


def test_remote_files_are_divided_and_web_pages_are_not() -> None:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    lines = b"".join(b"line %d\n" % number for number in range(500))
    system.pipe("/slices/a.txt", lines)
    try:
        corpus = open_corpus("memory://slices/a.txt", unit="line")
        parts = sliced(corpus, 1000)
        assert len(parts) > 3
        assert [d for _, part in parts for d in documents(part)] == lines.splitlines(keepends=True)
    finally:
        system.rm("/slices", recursive=True)
    web = Corpus(files=("http://127.0.0.1/a.txt",), reading=corpus.reading)
    assert len(divide(web, 1)) == 1
