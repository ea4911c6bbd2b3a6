"""`byteweld.tokenize`: what is written, with every option, and what is refused."""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

import byteweld
from byteweld.dataset import _stream, make
from byteweld.dataset._manifest import load_manifest
from tests.helpers.tokenized import (
    EOT,
    digests,
    encoded,
    flat,
    make_documents,
    write_corpus,
    write_jsonl,
)


def documents_of(corpus: Path) -> list[str]:
    lines = [line for file in sorted(corpus.iterdir()) for line in file.read_text().splitlines()]
    return [json.loads(line)["text"] for line in lines]


def joined(documents: list[list[int]]) -> list[int]:
    return list(itertools.chain(*documents))


# ---------------------------------------------------------------------- what is written


def test_ids_of_all_documents_in_order(tok, corpus, out):
    manifest = byteweld.tokenize(corpus, tok, out=out)
    expected = encoded(tok, documents_of(corpus))
    assert flat(out / "train.bin") == joined(expected)
    ends = flat(out / "train.bin.index", "uint64")
    assert ends == np.cumsum([len(ids) for ids in expected]).tolist()
    assert manifest.documents == len(expected) == 210
    assert manifest.tokens == len(joined(expected))
    assert manifest.text_bytes == sum(len(text.encode()) for text in documents_of(corpus))
    names = ["manifest.json", "train.bin", "train.bin.index"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert load_manifest(out) == manifest


def test_manifest_names_sources_tokenizer_and_special_text(tok, corpus, out):
    manifest = byteweld.tokenize(corpus, tok, out=out)
    assert manifest.is_complete
    assert manifest.tokenizer["fingerprint"] == tok.vocab.fingerprint
    assert manifest.tokenizer["eot"] == {"text": EOT, "id": tok.eot_token}
    text = "".join(documents_of(corpus))
    assert manifest.special_text == {EOT: text.count(EOT)} and text.count(EOT) > 100
    assert len(manifest.sources) == 3
    for number, source in enumerate(manifest.sources):
        assert Path(source.name).name == f"{number}.jsonl"
        assert source.size == (corpus / f"{number}.jsonl").stat().st_size
        assert source.documents == 70
        assert source.xxh3_128 is not None and len(source.xxh3_128) == 32
    assert len({source.xxh3_128 for source in manifest.sources}) == 3
    digest = digests(out)
    for file in manifest.shards[0].files:
        assert digest[file.name] == file.sha256
        assert (out / file.name).stat().st_size == file.size


@pytest.mark.parametrize("eot", ["append", "prepend", "none"])
@pytest.mark.parametrize("bos", [False, True])
def test_marks(tok, corpus, out, eot, bos):
    byteweld.tokenize(corpus, tok, out=out, eot=eot, bos=bos)
    expected = encoded(tok, documents_of(corpus), eot, bos=bos)
    assert flat(out / "train.bin") == joined(expected)


def test_another_eot_token_by_name(tok, corpus, out):
    byteweld.tokenize(corpus, tok, out=out, eot_token="<|start|>")
    assert flat(out / "train.bin")[-1] == tok.vocab.roles["bos"]


def test_special_text_as_ids(tok, corpus, out):
    byteweld.tokenize(corpus, tok, out=out, special_text="special", eot="none")
    expected = [tok.encode(text, allowed_special="all") for text in documents_of(corpus)]
    assert flat(out / "train.bin") == joined(expected)


def test_special_text_can_be_refused_and_names_the_document(tok, tmp_path, out):
    corpus = write_jsonl(tmp_path / "a.jsonl", ["good", "better", f"bad {EOT}"])
    with pytest.raises(byteweld.SpecialTokenError, match="document 2 of this run"):
        byteweld.tokenize(corpus, tok, out=out, special_text="fail")


def test_validation_split_is_by_document_and_by_seed(tok, corpus, tmp_path):
    all_documents = encoded(tok, documents_of(corpus))
    chosen = []
    for seed in (0, 1):
        out = tmp_path / f"out{seed}"
        manifest = byteweld.tokenize(corpus, tok, out=out, validation=0.25, seed=seed)
        parts = {}
        for split, stem in (("train", "train"), ("validation", "val")):
            ids, ends = flat(out / f"{stem}.bin"), flat(out / f"{stem}.bin.index", "uint64")
            parts[split] = [ids[a:b] for a, b in itertools.pairwise([0, *ends])]
            assert manifest.splits[split] == {"documents": len(ends), "tokens": len(ids)}
        assert 25 < len(parts["validation"]) < 85
        rest = iter(all_documents)
        merged = {"train": iter(parts["train"]), "validation": iter(parts["validation"])}
        # Both are subsequences of the corpus that together are all of it.
        heads = {split: next(documents, None) for split, documents in merged.items()}
        for document in rest:
            split = next(split for split, head in heads.items() if head == document)
            heads[split] = next(merged[split], None)
        assert set(heads.values()) == {None}
        chosen.append(parts["validation"])
    assert chosen[0] != chosen[1]


def test_shuffle_is_a_permutation_by_seed(tok, corpus, tmp_path):
    expected = encoded(tok, documents_of(corpus))
    orders = []
    for seed in (0, 0, 1):
        out = tmp_path / f"out{len(orders)}"
        byteweld.tokenize(corpus, tok, out=out, shuffle=True, seed=seed)
        ids, ends = flat(out / "train.bin"), flat(out / "train.bin.index", "uint64")
        orders.append([ids[a:b] for a, b in itertools.pairwise([0, *ends])])
        assert sorted(orders[-1]) == sorted(expected)
    assert orders[0] == orders[1] != orders[2] != expected != orders[0]


def test_shards_end_with_documents(tok, corpus, out):
    manifest = byteweld.tokenize(corpus, tok, out=out, shard_tokens=1000)
    expected = encoded(tok, documents_of(corpus))
    shards = [flat(out / shard.files[0].name) for shard in manifest.shards]
    assert joined(shards) == joined(expected)
    assert len(shards) > 3 and [s.number for s in manifest.shards] == list(range(len(shards)))
    ends = set(np.cumsum([len(ids) for ids in expected]).tolist())
    assert set(np.cumsum([len(shard) for shard in shards]).tolist()) <= ends
    longest = max(map(len, expected))
    assert all(1000 <= len(shard) < 1000 + longest for shard in shards[:-1])


def test_llmc_shards_have_exactly_so_many_tokens(tok, corpus, out):
    manifest = byteweld.tokenize(corpus, tok, out=out, format="llmc", shard_tokens=777)
    shards = [flat(out / shard.files[0].name, header_bytes=1024) for shard in manifest.shards]
    assert joined(shards) == joined(encoded(tok, documents_of(corpus), "prepend"))
    assert {len(shard) for shard in shards[:-1]} == {777}
    assert manifest.splits["train"]["documents"] == 210
    assert sum(shard.continues for shard in manifest.shards) > len(shards) // 2


@pytest.mark.parametrize("shard_tokens", [None, 500])
def test_packed_rows_and_what_is_dropped(tok, corpus, out, shard_tokens):
    manifest = byteweld.tokenize(
        corpus, tok, out=out, format="npy", pack=64, shard_tokens=shard_tokens
    )
    rows = np.concatenate([np.load(out / shard.files[0].name) for shard in manifest.shards])
    stream = joined(encoded(tok, documents_of(corpus)))
    whole = len(stream) // 64 * 64
    assert rows.shape == (whole // 64, 64)
    assert rows.ravel().tolist() == stream[:whole]
    assert manifest.dropped_tokens == len(stream) - whole > 0
    assert manifest.splits["train"] == {"documents": whole // 64, "tokens": whole}


@pytest.mark.parametrize("format", sorted(byteweld.DATASET_FORMATS))
def test_no_option_depends_on_the_number_of_threads(tok, corpus, tmp_path, format):
    options = {"validation": 0.3, "shuffle": True, "shard_tokens": 2000}
    found = []
    for threads in (1, 3):
        out = tmp_path / f"out{threads}"
        byteweld.tokenize(corpus, tok, out=out, format=format, num_threads=threads, **options)
        found.append(digests(out))
    assert found[0] == found[1]


@pytest.mark.parametrize("format", sorted(byteweld.DATASET_FORMATS))
@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_documents(tok, tmp_path, out, format, count):
    corpus = write_jsonl(tmp_path / "a.jsonl", ["the cat"] * count)
    manifest = byteweld.tokenize(corpus, tok, out=out, format=format, validation=0.5)
    assert manifest.documents == count
    assert [shard.split for shard in manifest.shards] == ["train", "validation"]


def test_long_documents_are_not_cut(tok, tmp_path, out):
    text = " ".join(make_documents(30_000, 5))
    (tmp_path / "long.txt").write_text(text)
    (tmp_path / "short.txt").write_text("the end")
    files = [tmp_path / "long.txt", tmp_path / "short.txt"]
    assert len(text) > 4_000_000
    manifest = byteweld.tokenize(files, tok, out=out, format="megatron", num_threads=2)
    expected = encoded(tok, [text, "the end"])
    assert flat(out / manifest.shards[0].files[0].name) == joined(expected)
    assert manifest.documents == 2


def test_documents_in_memory_that_are_not_utf8(tok, out):
    with pytest.raises(ValueError, match=r"documents\[1\] is not UTF-8"):
        byteweld.tokenize(documents=["a", b"\xff"], tokenizer=tok, out=out)


def test_files_and_documents_together(tok, corpus, out):
    texts = make_documents(20, 9)
    manifest = byteweld.tokenize(corpus, tok, documents=iter(texts), out=out)
    assert flat(out / "train.bin") == joined(encoded(tok, [*documents_of(corpus), *texts]))
    assert [source.documents for source in manifest.sources] == [70, 70, 70, 20]
    assert manifest.sources[-1].name == "documents"


def test_an_arrow_table(tok, out):
    pyarrow = pytest.importorskip("pyarrow")
    texts = make_documents(50, 4)
    table = pyarrow.table({"body": texts})
    byteweld.tokenize(table, tok, out=out, field="body")
    assert flat(out / "train.bin") == joined(encoded(tok, texts))


def test_every_kind_of_file_gives_the_same_ids(tok, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = [text for text in make_documents(80, 6) if EOT not in text and text]
    plain = write_jsonl(tmp_path / "a.jsonl", texts)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "c.parquet", row_group_size=7)
    (tmp_path / "d.txt").write_text(EOT.join(texts))
    expected = joined(encoded(tok, texts))
    for name in ("a.jsonl", "b.jsonl.gz", "c.parquet", "d.txt"):
        out = tmp_path / f"out-{name}"
        byteweld.tokenize(tmp_path / name, tok, out=out, separator=EOT)
        assert flat(out / "train.bin") == expected, name


# ---------------------------------------------------------------------- broken records


def test_skipped_records_are_listed(tok, tmp_path, out):
    corpus = tmp_path / "a.jsonl"
    corpus.write_bytes(
        b'{"text": "one"}\nnot json\n{"text": null}\n{"other": 1}\n{"text": "\xff"}\n'
        b'{"text": "two"}\n'
    )
    manifest = byteweld.tokenize(corpus, tok, out=out, on_error="skip")
    assert flat(out / "train.bin") == joined(encoded(tok, ["one", "two"]))
    assert manifest.skipped_documents == 4
    assert [skip.line for skip in manifest.skipped] == [2, 3, 4, 5]
    assert [skip.offset for skip in manifest.skipped] == [16, 25, 40, 53]
    assert all(skip.source == str(corpus) and skip.reason for skip in manifest.skipped)


def test_broken_records_fail_by_default_and_may_be_skipped_in_the_next_run(tok, tmp_path, out):
    corpus = tmp_path / "a.jsonl"
    corpus.write_text('{"text": "one"}\nnot json\n{"text": "two"}\n')
    with pytest.raises(byteweld.CorpusError, match=r"a.jsonl:2"):
        byteweld.tokenize(corpus, tok, out=out)
    assert not (out / "train.bin").exists()
    byteweld.tokenize(corpus, tok, out=out, on_error="skip")
    assert flat(out / "train.bin") == joined(encoded(tok, ["one", "two"]))


def test_the_rest_of_an_archive_that_was_cut_can_be_skipped(tok, tmp_path, out):
    texts = make_documents(2000, 3)
    whole = write_jsonl(tmp_path / "a.jsonl", texts).read_bytes()
    cut = tmp_path / "b.jsonl.gz"
    cut.write_bytes(gzip.compress(whole, 1)[:-2000])
    corpus = [cut, tmp_path / "a.jsonl"]
    with pytest.raises(
        byteweld.CorpusError, match=r"b.jsonl.gz: byte \d+: the archive is truncated"
    ):
        byteweld.tokenize(corpus, tok, out=out)
    byteweld.tokenize(corpus, tok, out=out, overwrite=True, on_error="skip")
    manifest = load_manifest(out)
    assert manifest.skipped_documents == 1
    assert manifest.skipped[0].reason == "the archive is truncated"
    before = manifest.sources[0].documents
    assert 1000 < before < 2000 and manifest.sources[0].size == cut.stat().st_size
    ids = joined(encoded(tok, [*texts[:before], *texts]))
    assert flat(out / "train.bin") == ids
    assert byteweld.tokenize(corpus, tok, out=out, on_error="skip") == manifest
    assert byteweld.verify(out, corpus, tokenizer=tok).problems == ()


def test_text_that_is_not_utf8_is_an_error(tok, tmp_path, out):
    corpus = tmp_path / "a.txt"
    corpus.write_bytes(b"good \xff bad")
    with pytest.raises(byteweld.CorpusError, match="UTF-8"):
        byteweld.tokenize(corpus, tok, out=out)
    byteweld.tokenize(corpus, tok, out=out, on_error="replace")
    assert flat(out / "train.bin") == joined(encoded(tok, ["good \ufffd bad"]))


# ---------------------------------------------------------------------- what is refused


def test_no_end_of_text_token(out):
    tok = byteweld.train(documents=["the cat"], vocab_size=258)
    with pytest.raises(ValueError, match=r"no end-of-text token.*eot_token=.*eot="):
        byteweld.tokenize(documents=["a"], tokenizer=tok, out=out)
    byteweld.tokenize(documents=["a"], tokenizer=tok, out=out, eot="none")
    assert flat(out / "train.bin") == [97]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "nope"}, "format is 'nope'"),
        ({"eot": "nowhere"}, "eot is 'nowhere'"),
        ({"eot_token": "<nope>"}, "not a special token"),
        ({"special_text": "x"}, "special_text is 'x'"),
        ({"validation": 1.0}, "validation is 1.0"),
        ({"validation": -0.1}, "validation is -0.1"),
        ({"validation": "a"}, "validation is 'a'"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None"),
        ({"shard_tokens": 0}, "shard_tokens is 0"),
        ({"pack": 0}, "pack is 0"),
        ({"pack": 8}, "one stream of ids"),
        ({"dtype": "float32"}, "dtype is 'float32'"),
        ({"dtype": "uint8", "format": "olmo"}, "ids up to 289"),
        ({"prefix": "a/b", "format": "llmc"}, "prefix is 'a/b'"),
        ({"prefix": "", "format": "llmc"}, "prefix is ''"),
        ({"prefix": "a\0", "format": "llmc"}, "expected the start of a file name"),
        ({"prefix": "é" * 101, "format": "llmc"}, "at most 200 bytes"),
        ({"prefix": "a"}, "has names of its own.*llmc, megatron, datatrove"),
        ({"shard_tokens": 2**31, "format": "llmc"}, "has at most 2147483647"),
    ],
)
def test_options_are_checked_before_anything_is_written(tok, corpus, out, options, message):
    with pytest.raises(ValueError, match=message):
        byteweld.tokenize(corpus, tok, out=out, **options)
    assert not out.exists()


def test_an_unknown_option_and_no_tokenizer(tok, corpus, out):
    with pytest.raises(TypeError, match="unknown option 'packing'"):
        byteweld.tokenize(corpus, tok, out=out, packing=3)
    with pytest.raises(TypeError, match="must be a Tokenizer"):
        byteweld.tokenize(corpus, out=out)


def test_a_folder_with_other_files_is_left_alone(tok, corpus, tmp_path, out):
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="holds other files"):
            byteweld.tokenize(corpus, tok, out=out, overwrite=overwrite)
    assert (out / "mine.txt").read_text() == "keep"
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileExistsError, match="not a folder"):
        byteweld.tokenize(corpus, tok, out=tmp_path / "file")


def test_a_complete_dataset_is_not_made_again(tok, corpus, out):
    first = byteweld.tokenize(corpus, tok, out=out)
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert byteweld.tokenize(corpus, tok, out=out) == first
    assert before == {path: path.stat().st_mtime_ns for path in out.iterdir()}
    with pytest.raises(FileExistsError, match=r"another job: validation was 0.0, now 0.5"):
        byteweld.tokenize(corpus, tok, out=out, validation=0.5)
    other = byteweld.tokenize(corpus, tok, out=out, validation=0.5, overwrite=True)
    assert set(other.splits) == {"train", "validation"}
    byteweld.tokenize(corpus, tok, out=out, format="npy", overwrite=True)
    assert not (out / "train.bin").exists()


def test_two_runs_at_once(tok, corpus, out):
    inside, go_on = threading.Event(), threading.Event()

    def wait(event: make.Progress) -> None:
        inside.set()
        go_on.wait(20)

    first = threading.Thread(
        target=byteweld.tokenize, args=(corpus, tok), kwargs={"out": out, "progress": wait}
    )
    first.start()
    assert inside.wait(20)
    with pytest.raises(BlockingIOError, match="another process"):
        byteweld.tokenize(corpus, tok, out=out)
    go_on.set()
    first.join()
    assert load_manifest(out).is_complete


# ---------------------------------------------------------------------- interrupted runs


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Several blocks of text."""
    return write_corpus(tmp_path / "large", 3, 9000)


def test_an_unfinished_dataset_names_what_changed(tok, large, out, monkeypatch):
    receive = _stream.EncodingPass._receive

    def stop(self, *block) -> None:
        receive(self, *block)
        raise InterruptedError

    def interrupted(**options):
        return byteweld.tokenize(large, tok, out=out, **options)

    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr(_stream.EncodingPass, "_receive", stop)
        interrupted()
    with pytest.raises(FileExistsError, match="eot was 'append', now 'none'"):
        interrupted(eot="none")
    with pytest.raises(FileExistsError, match="the tokenizer's fingerprint was"):
        other = byteweld.train(documents=["another"], vocab_size=300, eos=EOT)
        byteweld.tokenize(large, other, out=out)
    with pytest.raises(FileExistsError, match="format was 'flat', now 'npy'"):
        byteweld.tokenize(large, tok, out=out, format="npy")
    new = write_jsonl(large / "9.jsonl", ["new"])
    with pytest.raises(FileExistsError, match=r"source .*9.jsonl is new"):
        interrupted()
    new.unlink()
    content = (large / "1.jsonl").read_bytes()
    (large / "1.jsonl").write_bytes(content + b"\n")
    with pytest.raises(FileExistsError, match=r"source .*1.jsonl had \d+ bytes, now \d+"):
        interrupted()
    (large / "1.jsonl").unlink()
    with pytest.raises(FileExistsError, match=r"source .*1.jsonl is gone"):
        interrupted()
    byteweld.tokenize(large, tok, out=out, overwrite=True)
    assert load_manifest(out).documents == 18_000


def test_a_source_that_vanishes_later(tok, large, tmp_path, out, monkeypatch):
    for number in range(3, 9):  # more than is read ahead
        shutil.copyfile(large / f"{number % 3}.jsonl", large / f"{number}.jsonl")
    last, kept = large / "8.jsonl", tmp_path / "kept.jsonl"
    receive = _stream.EncodingPass._receive

    def remove(self, *block) -> None:
        receive(self, *block)
        if last.exists():
            last.rename(kept)

    with monkeypatch.context() as patch, pytest.raises(FileNotFoundError, match=r"8.jsonl"):
        patch.setattr(_stream.EncodingPass, "_receive", remove)
        byteweld.tokenize(large, tok, out=out, num_threads=1)
    kept.rename(last)
    seen: list[make.Progress] = []
    byteweld.tokenize(large, tok, out=out, progress=seen.append)
    assert seen[0].documents > 7 * 9000  # it did not start over
    byteweld.tokenize(large, tok, out=tmp_path / "once")
    assert digests(out) == digests(tmp_path / "once")
