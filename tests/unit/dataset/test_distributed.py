"""Datasets made in tasks: the same files as on one machine, whatever happens to the tasks."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import byteweld
from byteweld.corpus import open_corpus
from byteweld.corpus._slices import divide
from byteweld.dataset._manifest import load_manifest
from byteweld.dataset._plan import Cutting, Piece, plan_shards
from byteweld.jobs import LocalRunner
from tests.helpers.sliced import Ending, MixedUp
from tests.helpers.tokenized import EOT, digests, make_documents, write_corpus, write_jsonl

SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Divided files, small ones, compressed ones, tables, broken records, special tokens."""
    folder = tmp_path_factory.mktemp("corpus")
    write_jsonl(folder / "a.jsonl", make_documents(90, 1))
    broken = (folder / "a.jsonl").read_text("utf-8").splitlines()
    broken[3] = broken[50] = "{broken"
    broken[70] = ""
    (folder / "b.jsonl").write_text("\n".join(broken), encoding="utf-8")
    write_jsonl(folder / "c.jsonl", make_documents(3, 2))
    write_jsonl(folder / "d.jsonl", make_documents(5, 3))
    lines = (folder / "a.jsonl").read_bytes()
    (folder / "e.jsonl.gz").write_bytes(gzip.compress(lines))
    (folder / "f.txt").write_text("one document " * 300 + EOT, encoding="utf-8")
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    texts = [*make_documents(40, 4), None, *make_documents(20, 5)]
    pq.write_table(pa.table({"text": texts}), folder / "g.parquet", row_group_size=10)
    return folder


OPTIONS = [
    {},
    {"shard_tokens": 500},
    {"shard_tokens": 60},
    {"shard_tokens": 700, "eot": "none"},
    {"validation": 0.2, "seed": 5},
    {"validation": 0.2, "shard_tokens": 400},
    {"shuffle": True},
    {"shuffle": True, "validation": 0.3, "seed": 9, "shard_tokens": 300},
    {"format": "llmc", "shard_tokens": 500},
    {"format": "llmc", "shard_tokens": 70, "eot": "none", "validation": 0.1},
    {"format": "megatron", "shard_tokens": 600},
    {"format": "megatron", "pack": 64},
    {"format": "parquet", "pack": 100, "shard_tokens": 1000, "validation": 0.3},
    {"format": "parquet", "shard_tokens": 900, "bos": True},
    {"format": "npy", "pack": 33, "shuffle": True},
    *(
        {"format": name, "shard_tokens": 800}
        for name in ("olmo", "datatrove", "arrow", "hf", "mds")
    ),
    {"format": "litdata", "shard_tokens": 800, "validation": 0.4},
    {"special_text": "special"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_files_are_those_of_one_machine(tok, corpus, tmp_path, options):
    same = {"on_error": "skip", **options}
    byteweld.tokenize(corpus, tok, out=tmp_path / "local", **same)
    expected = digests(tmp_path / "local")
    for seed, slice_bytes in enumerate((900, 6000, 10**9)):
        out = tmp_path / f"tasks-{slice_bytes}"
        runner = MixedUp(seed, window=50, slice_bytes=slice_bytes, num_threads=2)
        manifest = byteweld.tokenize(corpus, tok, out=out, runner=runner, **same)
        assert digests(out) == expected
        assert manifest.is_complete


@SETTINGS
@given(
    documents=st.lists(st.text("ab ", max_size=6), max_size=30),
    options=st.fixed_dictionaries(
        {
            "shard_tokens": st.one_of(st.none(), st.integers(1, 20)),
            "validation": st.sampled_from([0.0, 0.5]),
            "shuffle": st.booleans(),
            "eot": st.sampled_from(["none", "append"]),
            "format": st.sampled_from(["flat", "llmc", "npy", "parquet"]),
        }
    ),
    pack=st.one_of(st.none(), st.integers(1, 9)),
    slice_bytes=st.integers(1, 60),
)
def test_documents_without_ids_and_small_shards(
    tok, tmp_path_factory, documents, options, pack, slice_bytes
):
    if pack is not None and options["format"] in ("npy", "parquet"):
        options = {**options, "pack": pack}
    folder = tmp_path_factory.mktemp("small")
    source = write_jsonl(folder / "a.jsonl", documents)
    if not documents:
        source.write_text("\n")
    byteweld.tokenize(source, tok, out=folder / "local", **options)
    runner = MixedUp(0, slice_bytes=slice_bytes)
    byteweld.tokenize(source, tok, out=folder / "tasks", runner=runner, **options)
    assert digests(folder / "tasks") == digests(folder / "local")


@SETTINGS
@given(
    pieces=st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=5),
    size=st.one_of(st.none(), st.integers(1, 12)),
    splits_documents=st.booleans(),
    pack=st.one_of(st.none(), st.integers(1, 5)),
)
def test_shards_have_all_ids_once_and_in_order(pieces, size, splits_documents, pack):
    planned = [Piece(str(n), 0, sum(x), 0, len(x)) for n, x in enumerate(pieces)]
    read: list[str] = []

    def lengths(piece):
        import numpy as np

        read.append(piece.stem)
        return np.array(pieces[int(piece.stem)], np.int64)

    cutting = Cutting.of(size, pack, splits_documents=splits_documents)
    shards = plan_shards("train", planned, cutting, lengths)
    starts = [sum(map(sum, pieces[:n])) for n in range(len(pieces))]
    at = 0
    for shard in shards:
        for piece in shard.pieces:
            assert starts[int(piece.stem)] + piece.first_token == at
            at += piece.tokens
    total = sum(map(sum, pieces))
    assert at == (total if pack is None else total - total % pack)
    assert len(read) == len(set(read))  # of each piece at most once
    assert [shard.number for shard in shards] == list(range(max(1, len(shards))))
    if pack is not None:
        assert [shard.documents * pack for shard in shards] == [shard.tokens for shard in shards]
    elif size is not None and splits_documents:
        assert all(shard.tokens == size for shard in shards[:-1])
    else:
        assert sum(shard.documents for shard in shards) == sum(map(len, pieces))


# ---------------------------------------------------------------------- interruptions


def is_complete(out: Path) -> bool:
    return (out / "manifest.json").exists() and load_manifest(out).is_complete


def test_only_the_same_job_is_resumed(tok, corpus, out):
    same = {"on_error": "skip"}
    with pytest.raises(KeyboardInterrupt):
        byteweld.tokenize(corpus, tok, out=out, runner=Ending(3, slice_bytes=1500), **same)
    for runner in (LocalRunner(), "local"):
        with pytest.raises(FileExistsError, match="another job: bos was False, now True"):
            byteweld.tokenize(corpus, tok, out=out, runner=runner, bos=True, **same)
    runner = LocalRunner(slice_bytes=3000)
    byteweld.tokenize(corpus, tok, out=out, runner=runner, bos=True, overwrite=True, **same)
    names = ["manifest.json", "train.bin", "train.bin.index"]
    assert sorted(file.name for file in out.iterdir()) == names
    # Complete, it is the same dataset for every runner.
    assert byteweld.tokenize(corpus, tok, out=out, bos=True, **same).is_complete


def test_starting_over_removes_the_shards_of_tasks(tok, corpus, out):
    same = {"on_error": "skip", "shard_tokens": 500}
    with pytest.raises(KeyboardInterrupt):
        byteweld.tokenize(corpus, tok, out=out, runner=Ending(12, slice_bytes=10**9), **same)
    assert any(out.glob("train_*.bin"))
    (out / "mine.txt").write_text("mine")
    byteweld.tokenize(corpus, tok, out=out, overwrite=True, on_error="skip")
    names = ["manifest.json", "mine.txt", "train.bin", "train.bin.index"]
    assert sorted(file.name for file in out.iterdir()) == names


RESUMED = [
    {},
    {"shard_tokens": 40_000, "validation": 0.2},
    {"shuffle": True, "validation": 0.3, "shard_tokens": 50_000},
    {"format": "llmc", "shard_tokens": 33_333},
    {"format": "npy", "pack": 100, "shard_tokens": 70_000},
    {"format": "hf", "validation": 0.1, "shard_tokens": 90_000},
]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several blocks of text in each file; one cannot be divided, one has broken records."""
    folder = write_corpus(tmp_path_factory.mktemp("large") / "corpus", 3, 9000)
    lines = (folder / "0.jsonl").read_text("utf-8").splitlines()
    lines[5] = lines[4000] = lines[-1] = "{broken"
    (folder / "0.jsonl").write_text("\n".join(lines), "utf-8")
    (folder / "1.jsonl.gz").write_bytes(gzip.compress((folder / "2.jsonl").read_bytes(), 1))
    return folder


@pytest.mark.parametrize("options", RESUMED, ids=str)
def test_any_runner_resumes_the_run_of_any_other(tok, large, tmp_path, monkeypatch, options):
    from byteweld.dataset import _stream

    options = {"on_error": "skip", **options}
    byteweld.tokenize(large, tok, out=tmp_path / "once", **options)
    expected = digests(tmp_path / "once")
    monkeypatch.setattr(_stream, "_RECORD_SECONDS", 0)
    for blocks, tasks, order in (
        (3, None, ["here", "tasks"]),
        (6, None, ["here", "here", "tasks", "here"]),
        (1, 2, ["here", "stopping", "here"]),
        (None, 3, ["stopping", "here"]),
        (5, 8, ["here", "stopping", "stopping", "stopping", "tasks"]),
        (1000, 4, ["buckets", "stopping", "here"]),
    ):
        out = tmp_path / f"out-{blocks}-{tasks}"
        for how in order:
            runner: Any = "local"
            with monkeypatch.context() as patch:
                if how in ("here", "buckets") and how != order[-1]:
                    _stop_after(patch, blocks, in_buckets=how == "buckets")
                elif how != "here":
                    after = 1000 if how == "tasks" else tasks
                    runner = Ending(after, slice_bytes=300_000)
                try:
                    byteweld.tokenize(large, tok, out=out, runner=runner, **options)
                except KeyboardInterrupt:
                    assert not is_complete(out)
        assert digests(out) == expected, order


def _stop_after(patch: Any, blocks: int, *, in_buckets: bool) -> None:
    """Interrupt a run in this process after some blocks, or while it shuffles."""
    from byteweld.dataset import _stream

    real, seen = _stream.EncodingPass._receive, []

    def receive(self: Any, *block: Any) -> None:
        real(self, *block)
        seen.append(1)
        if len(seen) == blocks:
            raise KeyboardInterrupt

    def publish(self: Any, *, is_last: bool = False, **found: Any) -> None:
        record(self, is_last=is_last, **found)
        if is_last or self._stage == _stream.ORDER:
            raise KeyboardInterrupt

    if in_buckets:
        record = _stream._Pass.record
        patch.setattr(_stream._Pass, "record", publish)
    else:
        patch.setattr(_stream.EncodingPass, "_receive", receive)


# ---------------------------------------------------------------------- errors


def test_max_failures_shows_all_causes_and_a_second_run_does_the_rest(tok, tmp_path, out):
    folder = write_corpus(tmp_path / "corpus", 6, 10)
    for number in (1, 4):
        with (folder / f"{number}.jsonl").open("ab") as file:
            file.write(b"{broken\n")
    largest = max(file.stat().st_size for file in folder.iterdir())
    runner = LocalRunner(slice_bytes=largest, max_failures=5)  # about a file in each slice
    with pytest.raises(byteweld.TaskError) as found:
        byteweld.tokenize(folder, tok, out=out, runner=runner)
    assert len(found.value.failures) == 2
    assert "2 tasks failed" in str(found.value)
    assert "1.jsonl" in found.value.failures[0] and "4.jsonl" in found.value.failures[1]
    # What is done is done: the same call only encodes the rest.
    done = list(out.rglob("slices/*.json"))
    assert len(done) == len(divide(open_corpus(folder), largest)) - 2


def test_a_folder_that_a_machine_does_not_see_is_an_error(tok, tmp_path, out):
    """As on a node where the folder of the result is another one."""
    file = write_jsonl(tmp_path / "a.jsonl", make_documents(50))

    class Elsewhere(LocalRunner):
        def _run(self, function, items):
            (out / ".unfinished/job.json").unlink()
            yield from super()._run(function, items)

    with pytest.raises(byteweld.TaskError, match="is not the work folder of this job on"):
        byteweld.tokenize(file, tok, out=out, runner=Elsewhere())


def test_remote_folders(tok, corpus, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    runner = MixedUp(1, slice_bytes=2000)

    def tokenize_there(**options: Any) -> None:
        where = {"out": "memory://remote/out", "runner": runner}
        byteweld.tokenize("memory://remote/corpus", tok, on_error="skip", **where, **options)

    try:
        for file in corpus.iterdir():
            system.pipe(f"/remote/corpus/{file.name}", file.read_bytes())
        options = {"shard_tokens": 700, "validation": 0.1, "shuffle": True}
        out = tmp_path / "local"
        byteweld.tokenize("memory://remote/corpus", tok, out=out, on_error="skip", **options)
        tokenize_there(**options)
        system.get("/remote/out/", str(tmp_path / "copy"), recursive=True)
        assert digests(tmp_path / "copy") == digests(out)
        # Complete, and then replaced.
        tokenize_there(**options)
        with pytest.raises(FileExistsError, match="complete dataset of another job"):
            tokenize_there()
        tokenize_there(overwrite=True)
        names = [name.rpartition("/")[2] for name in system.find("/remote/out")]
        assert sorted(names) == ["manifest.json", "train.bin", "train.bin.index"]
    finally:
        system.rm("/remote", recursive=True)
