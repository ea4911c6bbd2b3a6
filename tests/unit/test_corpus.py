"""The corpus: paths, folders, globs, JSON lines, compression, lines, separators, bad input."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

import byteweld
from byteweld import CorpusError
from byteweld._files import COMPRESSED_SUFFIXES
from byteweld.corpus import Corpus, open_corpus

DATA = Path(__file__).parents[1] / "data"


def documents(sources, **options):
    return list(open_corpus(sources, **options).documents())


def zstd(content: bytes) -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow, which writes zstd, is not installed")
    compressed: bytes = pyarrow.compress(content, codec="zstd", asbytes=True)
    return compressed


@pytest.fixture
def folder(tmp_path):
    """A small tree of files of several kinds."""
    files = {
        "b.txt": b"bee",
        "a.txt": b"ay",
        "B.TXT": b"capital bee",
        "sub/c.md": b"see",
        "sub/deep/d.html": b"<d>",
        "a/z.txt": b"zed",
        "skip.bin": b"binary",
        "noext": b"nothing",
        "empty.txt": b"",
        ".hidden.txt": b"hidden",
        "é.txt": b"accent",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    (tmp_path / "loop").symlink_to(tmp_path)
    return tmp_path


def names(corpus, folder):
    return [file.relative_to(folder).as_posix() for file in corpus.files]


# ---------------------------------------------------------------------- paths


def test_a_folder_is_read_recursively_sorted_by_bytes_without_links_and_empty_files(folder):
    expected = [".hidden.txt", "B.TXT", "a.txt", "a/z.txt", "b.txt"]
    expected += ["sub/c.md", "sub/deep/d.html", "é.txt"]
    assert names(open_corpus(folder), folder) == expected
    assert names(open_corpus(str(folder)), folder) == expected


def test_ext_selects_the_files_of_a_folder_ignoring_case(folder):
    assert names(open_corpus(folder, ext=".md"), folder) == ["sub/c.md"]
    assert names(open_corpus(folder, ext="md,.HTML"), folder) == ["sub/c.md", "sub/deep/d.html"]
    assert names(open_corpus(folder, ext=["md", "html"]), folder) == ["sub/c.md", "sub/deep/d.html"]
    everything = names(open_corpus(folder, ext="*"), folder)
    assert "skip.bin" in everything and "noext" in everything and "link.txt" not in everything


def test_the_extension_is_that_of_the_uncompressed_file(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"in gzip"))
    (tmp_path / "b.bin.gz").write_bytes(gzip.compress(b"other"))
    assert names(open_corpus(tmp_path), tmp_path) == ["a.txt.gz"]


def test_a_named_file_or_link_is_read_whatever_its_extension(folder):
    assert documents(folder / "skip.bin") == [b"binary"]
    assert documents(folder / "link.txt") == [b"ay"]


def test_globs_are_sorted_by_bytes_and_may_be_recursive(folder):
    assert names(open_corpus(str(folder / "*.txt")), folder)[:2] == ["a.txt", "b.txt"]
    assert "sub/c.md" in names(open_corpus(str(folder / "**" / "*.md")), folder)


def test_a_file_with_a_glob_character_in_its_name_is_a_file(tmp_path):
    (tmp_path / "a[1].txt").write_bytes(b"one")
    assert documents(tmp_path / "a[1].txt") == [b"one"]


def test_a_list_is_read_in_order_with_repetitions(folder):
    paths = [folder / "b.txt", str(folder / "a.txt"), folder / "b.txt"]
    assert documents(paths) == [b"bee", b"ay", b"bee"]
    assert documents(tuple(paths)) == [b"bee", b"ay", b"bee"]


@pytest.mark.parametrize("name", ["nowhere.txt", "nowhere/", "*.nothing", "no[w]here"])
def test_a_source_that_does_not_exist_is_named(folder, name):
    with pytest.raises(FileNotFoundError) as caught:
        open_corpus([folder / "a.txt", f"{folder}/{name}"])
    assert name.rstrip("/") in str(caught.value)


def test_a_folder_without_matching_files_is_an_error_that_lists_the_extensions(tmp_path):
    with pytest.raises(CorpusError, match=r"\.txt.*ext"):
        open_corpus(tmp_path)
    with pytest.raises(CorpusError):
        open_corpus(tmp_path, ext="*")
    with pytest.raises(CorpusError):
        open_corpus([])


@pytest.mark.parametrize("source", [5, None, [5]])
def test_a_path_of_another_type_is_a_type_error(source):
    with pytest.raises(TypeError):
        open_corpus(source)


def test_a_corpus_can_be_counted_and_knows_its_size(folder):
    corpus = open_corpus([folder / "a.txt", folder / "b.txt"])
    assert isinstance(corpus, Corpus)
    assert corpus.total_bytes == 5
    assert byteweld.count(corpus, recipe="plain").items() == [(b"ay", 1), (b"bee", 1)]


# ---------------------------------------------------------------------- text files


def write(folder: Path, content: bytes, name: str = "x.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_text_file_is_one_document_with_every_byte(tmp_path):
    content = b"\xef\xbb\xbfone\r\ntwo\n\n\x00\xff\xfe three"
    assert documents(write(tmp_path, content)) == [content]


def test_lines_keep_their_endings(tmp_path):
    path = write(tmp_path, b"one\ntwo\r\n\nthree\rstill\n\nlast")
    expected = [b"one\n", b"two\r\n", b"\n", b"three\rstill\n", b"\n", b"last"]
    assert documents(path, unit="line") == expected
    counted = byteweld.count(path, lines=True, recipe="plain")
    assert counted.total == 6 and counted[b"\n"] == 2


@pytest.mark.parametrize("separator", ["\n---\n", "<|endoftext|>", "é", "\x00"])
def test_a_separator_splits_documents_and_belongs_to_none(tmp_path, separator):
    path = write(tmp_path, separator.join(["one", "two", "", "three\n"]).encode())
    found = [document for document in documents(path, separator=separator) if document]
    assert found == [b"one", b"two", b"three\n"]
    counted = byteweld.count(path, separator=separator, recipe="plain")
    assert counted.items() == [(b"one", 1), (b"three\n", 1), (b"two", 1)]


def test_a_separator_across_the_edge_of_a_block_is_found(tmp_path):
    separator = "<|document|>"
    for power in (12, 16, 20):
        for shift in range(-len(separator) - 1, 3):
            first = b"a" * (2**power + shift)
            path = write(tmp_path, first + separator.encode() + b"b")
            assert [len(d) for d in documents(path, separator=separator)] == [len(first), 1]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"separator": ""}, "separator"),
        ({"on_error": "ignore"}, "expected 'fail', 'skip', 'replace'"),
        ({"unit": "paragraph"}, "line"),
    ],
)
def test_a_wrong_option_is_a_value_error(tmp_path, option, words):
    with pytest.raises(ValueError, match=words):
        documents(write(tmp_path, b"ab"), **option)


def test_empty_files_give_an_empty_corpus(tmp_path):
    path = write(tmp_path, b"")
    assert byteweld.count(path).items() == []
    tok = byteweld.train(path, vocab_size=300)
    assert tok.training.stop == "no pairs" and len(tok) == 256


# ---------------------------------------------------------------------- JSON lines


def test_a_jsonl_file_has_one_document_per_line(tmp_path):
    fields = ["ab", "", "new\nline", "é漢👍", '"quoted" \\ \t', "\u0000", "a" * 100_000]
    lines = [json.dumps({"id": n, "text": text}) for n, text in enumerate(fields)]
    lines += [json.dumps({"text": "é漢👍", "x": [1, {"text": "no"}]}, ensure_ascii=False), "", "  "]
    for name in ("x.jsonl", "x.ndjson", "X.JSONL"):
        path = write(tmp_path, "\n".join(lines).encode(), name)
        found = [document.decode() for document in documents(path)]
        assert [text for text in found if text] == [t for t in [*fields, "é漢👍"] if t]


def test_the_field_can_be_named(tmp_path):
    path = write(tmp_path, b'{"text": "no", "body": "yes"}\n{"body": "too"}\r\n', "x.jsonl")
    assert documents(path, field="body") == [b"yes", b"too"]


BAD_LINES = {
    "not JSON": b"{bad",
    "not an object": b'["text"]',
    "no field": b'{"other": "x"}',
    "a number": b'{"text": 5}',
    "null": b'{"text": null}',
    "not UTF-8": b'{"text": "\xff"}',
    "two values": b'{"text": "x"} {"text": "y"}',
    "bad escape": rb'{"text": "\x"}',
    "truncated": b'{"text": "x',
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_fails_with_file_and_line_or_is_skipped(tmp_path, bad):
    path = write(tmp_path, b'{"text": "one"}\n' + bad + b'\n{"text": "two"}\n', "x.jsonl")
    with pytest.raises(CorpusError) as caught:
        documents(path)
    assert str(caught.value).startswith(f"{path}:2: byte 16: ")
    assert caught.value.offset == 16
    assert "skip" in str(caught.value)
    with pytest.raises(CorpusError):
        byteweld.count(path)
    assert documents(path, on_error="skip") == [b"one", b"two"]
    assert byteweld.count(path, recipe="plain", on_error="skip").total == 2


def test_a_lone_surrogate_in_json_never_reaches_a_document(tmp_path):
    path = write(tmp_path, b'{"text": "a\\ud800b"}\n{"text": "two"}\n', "x.jsonl")
    for on_error in ("fail", "skip", "replace"):
        try:
            found = documents(path, on_error=on_error)
        except CorpusError:
            assert on_error == "fail"
        else:
            assert found[-1] == b"two"
            assert all(document.decode() for document in found)


def test_a_null_and_another_value_are_named(tmp_path):
    for value, found in (("null", "is null"), ("5", "is a number"), ("[]", "is a list")):
        path = write(tmp_path, f'{{"text": {value}}}\n'.encode(), "x.jsonl")
        with pytest.raises(CorpusError, match=f'the field "text" {found}; expected a string'):
            documents(path)


def test_text_that_is_not_utf8_is_kept_skipped_or_replaced(tmp_path):
    bad, good = write(tmp_path, b"ab \xff cd", "bad.txt"), write(tmp_path, b"good", "good.txt")
    assert documents([bad, good]) == [b"ab \xff cd", b"good"]
    assert documents([bad, good], on_error="skip") == [b"good"]
    assert documents([bad, good], on_error="replace") == ["ab � cd".encode(), b"good"]
    for on_error in ("fail", "skip", "replace"):
        counted = byteweld.count([bad, good], recipe="plain", on_error=on_error)
        expected = sorted(set(documents([bad, good], on_error=on_error)))
        assert [pretoken for pretoken, _ in counted.items()] == expected


# ---------------------------------------------------------------------- compression


COMPRESSIONS = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstd, "bz2": bz2.compress}


@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
def test_compression_is_recognized_by_content_whatever_the_name(tmp_path, compress):
    content = ("some text, " * 50_000).encode()
    for name in ("x.txt", "x.txt.gz", "x.dat"):
        assert documents(write(tmp_path, compress(content), name)) == [content]
    jsonl = b'{"text": "one"}\n{"text": "two"}\n'
    for suffix in COMPRESSED_SUFFIXES:
        assert documents(write(tmp_path, compress(jsonl), f"x.jsonl{suffix}")) == [b"one", b"two"]


def test_archives_with_several_members_are_read_to_the_end(tmp_path):
    for name, compress in COMPRESSIONS.items():
        content = compress(b"one ") + compress(b"two")
        assert documents(write(tmp_path, content, f"x.txt.{name}")) == [b"one two"]


@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS)
def test_a_truncated_or_damaged_archive_is_a_corpus_error_with_its_path(tmp_path, compress):
    whole = compress(bytes(range(256)) * 500)
    for keep in (len(whole) // 3, len(whole) - 9, len(whole) - 1):
        path = write(tmp_path, whole[:keep], "x.txt.gz")
        with pytest.raises(CorpusError) as caught:
            documents(path)
        assert caught.value.path == str(path)
        counts = byteweld.count(path, on_error="skip")
        assert len(counts) == 0 and counts.skipped_documents == 1


def test_a_small_archive_of_a_large_text_is_read_in_full(tmp_path):
    content = b"word " * 2_000_000
    path = write(tmp_path, gzip.compress(content), "x.txt.gz")
    counts = byteweld.count(path, recipe="from-scratch", num_threads=1)
    assert counts.total_bytes == len(content)


def test_an_unsupported_archive_is_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x.txt", "some text")
    with pytest.raises(CorpusError, match="zip archive"):
        documents(tmp_path / "x.zip")
    with pytest.raises(CorpusError, match="lz4 archive"):
        documents(write(tmp_path, b"\x04\x22\x4d\x18rest", "x.txt.lz4"))


# ---------------------------------------------------------------------- WARC


def warc(kind: str, content: bytes) -> bytes:
    header = f"WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
    return header.encode() + content + b"\r\n\r\n"


def test_a_wet_file_of_warcio_is_read(tmp_path):
    stored = (DATA / "warcio.warc.wet.gz").read_bytes()
    expected = ["one é 漢\n".encode(), b"", b"WARC/1.0\r\n\r\nthree\r\n\r\n", b"word " * 3000]
    assert documents(DATA / "warcio.warc.wet.gz") == expected
    content = gzip.decompress(stored)
    for name, compress in {"": bytes, **{f".{n}": c for n, c in COMPRESSIONS.items()}}.items():
        for extension in ("warc", "wet", "WARC.WET"):
            assert documents(write(tmp_path, compress(content), f"x.{extension}{name}")) == expected
    assert byteweld.count(tmp_path / "x.warc", recipe="plain").total == 3  # and an empty one
    with pytest.raises(CorpusError, match="inside a WARC record"):
        documents(write(tmp_path, content[:-3], "x.warc"))


def test_the_responses_of_a_crawl_are_refused_with_advice_or_skipped(tmp_path):
    first = warc("warcinfo", b"x") + warc("conversion", b"one")
    content = first + warc("response", b"<html>") + warc("conversion", b"two")
    path = write(tmp_path, content, "x.warc")
    with pytest.raises(CorpusError, match="trafilatura or datatrove") as caught:
        documents(path)
    assert (caught.value.path, caught.value.offset) == (str(path), len(first))
    counts = byteweld.count(path, recipe="plain", on_error="skip")
    assert counts.items() == [(b"one", 1), (b"two", 1)] and counts.skipped_documents == 1


# ---------------------------------------------------------------------- encode_files


def test_files_are_encoded_with_the_same_reading_options(tmp_path):
    tok = byteweld.train(iter(["ab ab"]), vocab_size=257)
    path = write(tmp_path, b"ab\nab ab\n", "x.txt")
    ids, offsets = tok.encode_files(path, lines=True)
    rows = [ids[a:b].tolist() for a, b in pairwise(offsets)]
    assert rows == [tok.encode("ab\n"), tok.encode("ab ab\n")]
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        tok.encode_files(tmp_path / "nowhere.txt")
    with pytest.raises(TypeError, match="seperator"):
        tok.encode_files(path, seperator="x")


# ---------------------------------------------------------------------- regressions


def test_a_forbidden_byte_is_reported_with_its_offset(tmp_path):
    path = write(tmp_path, "ab||c\u00e9".encode(), "a.txt")
    for options in ({}, {"separator": "||"}):
        with pytest.raises(CorpusError) as caught:
            byteweld.count(path, recipe="ck-ascii", **options)
        assert (caught.value.path, caught.value.offset) == (str(path), 5)
    # An offset in a decoded record is not an offset in its file, so none is reported.
    record = write(tmp_path, '{"text": "\u00e9"}\n'.encode(), "a.jsonl")
    with pytest.raises(CorpusError, match="0xC3") as caught:
        byteweld.count(record, recipe="ck-ascii")
    assert (caught.value.path, caught.value.offset) == (str(record), None)


def test_a_special_token_may_contain_bytes_outside_the_alphabet():
    tok = byteweld.train(
        iter(["abab<\u00e9>abab"]), vocab_size=104, recipe="ck-ascii", special_tokens=["<\u00e9>"]
    )
    assert tok.vocab.merges == [(b"a", b"b")]
    with pytest.raises(byteweld.UnsupportedError, match="base alphabet"):
        byteweld.train(
            iter(["ab\u00e9"]), vocab_size=104, recipe="ck-ascii", special_tokens=["<\u00e9>"]
        )


@pytest.mark.parametrize("name", ["a.json", "a.txt.gz", "noext"])
def test_text_files_may_be_json_lines_whatever_their_name(tmp_path, name):
    record = b'{"text": "one"}\n'
    path = write(tmp_path, gzip.compress(record) if name.endswith(".gz") else record, name)
    assert documents(path) == [record]
    assert documents(path, json_lines=True) == [b"one"]
    assert not open_corpus(path).has_records
    assert open_corpus(path, json_lines=True).has_records
    assert byteweld.count(path, json_lines=True).items() == [(b"one", 1)]
    for other in ({"lines": True}, {"separator": "x"}):
        with pytest.raises(ValueError, match="cannot be combined"):
            byteweld.count(path, json_lines=True, **other)


def test_a_wrong_checksum_of_a_zstd_file_is_an_error(tmp_path):
    # "ab" in a raw block with its checksum, as written by the zstd library.
    frame = bytes.fromhex("28b52ffd24021100006162614ad092")
    assert documents(write(tmp_path, frame, "a.txt.zst")) == [b"ab"]
    damaged = write(tmp_path, frame.replace(b"ab", b"ac"), "b.txt.zst")
    with pytest.raises(CorpusError, match="checksum"):
        documents(damaged)
