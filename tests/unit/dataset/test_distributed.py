"""Datasets made in tasks: the same files as on one machine, whatever happens to the tasks."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import byteweld
from byteweld.corpus import open_corpus
from byteweld.corpus._slices import divide
from byteweld.dataset._pieces import Piece, plan_split
from byteweld.jobs import Failure, LocalRunner, Runner
from tests.helpers.tokenized import EOT, digests, make_documents, make_tokenizer, write_jsonl

SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None
)


class Chaos(Runner):
    """Runs tasks in random order, some of them twice."""

    name = "chaos"
    threads_per_task = 2

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(**options)
        self._random = random.Random(seed)

    def _run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        todo = list(items)
        self._random.shuffle(todo)
        for item in todo:
            try:
                result = function(item)
                if self._random.random() < 0.3:
                    assert function(item) == result
            except Exception as error:
                result = Failure(item, error)
            yield result


@pytest.fixture(scope="module")
def tok() -> byteweld.Tokenizer:
    return make_tokenizer()


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
        runner = Chaos(seed, slice_bytes=slice_bytes)
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
    runner = Chaos(0, slice_bytes=slice_bytes)
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
    planned = [Piece("slices", n, 0, sum(x), 0, len(x)) for n, x in enumerate(pieces)]
    read: list[int] = []

    def lengths(piece):
        import numpy as np

        read.append(piece.number)
        return np.array(pieces[piece.number], np.int64)

    plan = plan_split(
        "train",
        planned,
        shard_tokens=size,
        splits_documents=splits_documents,
        pack=pack,
        lengths=lengths,
    )
    starts = [sum(map(sum, pieces[:n])) for n in range(len(pieces))]
    at = 0
    for shard in plan.shards:
        for piece in shard.pieces:
            assert starts[piece.number] + piece.first_token == at
            at += piece.tokens
    assert at == plan.tokens
    assert plan.tokens + plan.dropped == sum(map(sum, pieces))
    assert len(read) == len(set(read))  # of each piece at most once
    if pack is None and size is not None and splits_documents:
        assert all(shard.tokens == size for shard in plan.shards[:-1])
    if pack is None and not splits_documents:
        assert sum(shard.documents for shard in plan.shards) == sum(map(len, pieces))


# ---------------------------------------------------------------------- interruptions


class Stopping(LocalRunner):
    """Stops before the n-th task, as if the driver had been killed."""

    def __init__(self, after: int, **options: Any) -> None:
        super().__init__(**options)
        self._left = after

    def _run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            if self._left == 0:
                raise KeyboardInterrupt
            self._left -= 1
            yield function(item)


@pytest.mark.parametrize("options", [{}, {"shuffle": True, "validation": 0.3, "shard_tokens": 900}])
def test_a_run_goes_on_where_it_was(tok, corpus, tmp_path, options):
    same = {"on_error": "skip", **options}
    byteweld.tokenize(corpus, tok, out=tmp_path / "local", **same)
    out = tmp_path / "tasks"
    stops = 0
    for _ in range(200):
        try:
            byteweld.tokenize(corpus, tok, out=out, runner=Stopping(2, slice_bytes=4000), **same)
            break
        except KeyboardInterrupt:
            stops += 1
            assert not (out / "manifest.json").exists()
    assert stops > 3
    assert digests(out) == digests(tmp_path / "local")


def test_a_run_goes_on_with_the_same_job_only(tok, corpus, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        byteweld.tokenize(
            corpus, tok, out=out, runner=Stopping(3, slice_bytes=1500), on_error="skip"
        )
    with pytest.raises(FileExistsError, match="another job, with other slices"):
        byteweld.tokenize(
            corpus, tok, out=out, runner=LocalRunner(slice_bytes=3000), on_error="skip"
        )
    with pytest.raises(FileExistsError, match="another job, with other tokenizer, options"):
        byteweld.tokenize(
            corpus, tok, out=out, runner=LocalRunner(slice_bytes=1500), on_error="skip", bos=True
        )
    with pytest.raises(FileExistsError, match="unfinished dataset of tasks"):
        byteweld.tokenize(corpus, tok, out=out, on_error="skip")
    byteweld.tokenize(
        corpus,
        tok,
        out=out,
        runner=LocalRunner(slice_bytes=3000),
        on_error="skip",
        bos=True,
        overwrite=True,
    )
    assert sorted(file.name for file in out.iterdir()) == [
        "manifest.json",
        "train.bin",
        "train.bin.index",
    ]
    # Complete, it is the same dataset for every runner.
    again = byteweld.tokenize(corpus, tok, out=out, on_error="skip", bos=True)
    assert again.is_complete


def test_starting_over_removes_the_shards_of_tasks(tok, corpus, tmp_path):
    out = tmp_path / "out"
    same = {"on_error": "skip", "shard_tokens": 500}
    with pytest.raises(KeyboardInterrupt):
        byteweld.tokenize(corpus, tok, out=out, runner=Stopping(12, slice_bytes=10**9), **same)
    assert any(out.glob("train_*.bin"))
    (out / "mine.txt").write_text("mine")
    byteweld.tokenize(corpus, tok, out=out, overwrite=True, on_error="skip")
    assert sorted(file.name for file in out.iterdir()) == [
        "manifest.json",
        "mine.txt",
        "train.bin",
        "train.bin.index",
    ]


def test_a_run_without_tasks_is_not_continued_with_tasks(tok, corpus, tmp_path, monkeypatch):
    from byteweld.dataset import run

    def stop(self, *block):
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run._Run, "_receive", stop)
        byteweld.tokenize(corpus, tok, out=out, on_error="skip")
    with pytest.raises(FileExistsError, match="begun without tasks"):
        byteweld.tokenize(corpus, tok, out=out, runner=LocalRunner(), on_error="skip")


# ---------------------------------------------------------------------- errors


def test_errors_name_the_slice_and_the_line_of_the_file(tok, tmp_path):
    lines = [json.dumps({"text": f"line {number}"}) for number in range(300)]
    lines[250] = "{broken"
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(byteweld.CorpusError) as local:
        byteweld.tokenize(file, tok, out=tmp_path / "local")
    with pytest.raises(byteweld.TaskError) as found:
        byteweld.tokenize(file, tok, out=tmp_path / "out", runner=LocalRunner(slice_bytes=1000))
    assert str(found.value).startswith("slice 5 (")
    assert str(found.value).endswith(str(local.value))
    assert ":251: " in str(found.value)


def test_max_failures_shows_all_causes_and_a_second_run_does_the_rest(tok, tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(6):
        write_jsonl(folder / f"{number}.jsonl", make_documents(10, number))
    for number in (1, 4):
        with (folder / f"{number}.jsonl").open("ab") as file:
            file.write(b"{broken\n")
    largest = max(file.stat().st_size for file in folder.iterdir())
    runner = LocalRunner(slice_bytes=largest, max_failures=5)  # about a file in each slice
    with pytest.raises(byteweld.TaskError) as found:
        byteweld.tokenize(folder, tok, out=tmp_path / "out", runner=runner)
    assert len(found.value.failures) == 2
    assert "2 tasks failed" in str(found.value)
    assert "1.jsonl" in found.value.failures[0] and "4.jsonl" in found.value.failures[1]
    # What is done is done: the same call only encodes the rest.
    done = list((tmp_path / "out").rglob("slices/*.json"))
    assert len(done) == len(divide(open_corpus(folder), largest)) - 2


@pytest.mark.parametrize("source", ["documents", "table"])
def test_documents_in_memory_cannot_be_divided(tok, tmp_path, source):
    pa = pytest.importorskip("pyarrow")
    given: dict[str, Any] = (
        {"documents": ["a"]} if source == "documents" else {"source": pa.table({"text": ["a"]})}
    )
    with pytest.raises(TypeError, match="cannot be divided among tasks"):
        byteweld.tokenize(tokenizer=tok, out=tmp_path / "out", runner=LocalRunner(), **given)


def test_a_corpus_that_changes_meanwhile_is_an_error(tok, tmp_path):
    file = write_jsonl(tmp_path / "a.jsonl", make_documents(50))

    class Changing(LocalRunner):
        def _run(self, function, items):
            yield from super()._run(function, items)
            file.touch()

    with pytest.raises(byteweld.CorpusError, match="the file changed since the work began"):
        byteweld.tokenize(file, tok, out=tmp_path / "out", runner=Changing(slice_bytes=500))


def test_a_folder_that_a_machine_does_not_see_is_an_error(tok, tmp_path):
    """As on a node where the folder of the result is another one."""
    file = write_jsonl(tmp_path / "a.jsonl", make_documents(50))

    class Elsewhere(LocalRunner):
        def _run(self, function, items):
            (tmp_path / "out/.unfinished/tasks.json").unlink()
            yield from super()._run(function, items)

    with pytest.raises(byteweld.TaskError, match="is not the work folder of this job on"):
        byteweld.tokenize(file, tok, out=tmp_path / "out", runner=Elsewhere())


def test_remote_folders(tok, corpus, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    try:
        for file in corpus.iterdir():
            system.pipe(f"/remote/corpus/{file.name}", file.read_bytes())
        same = {"on_error": "skip", "shard_tokens": 700, "validation": 0.1, "shuffle": True}
        byteweld.tokenize("memory://remote/corpus", tok, out=tmp_path / "local", **same)
        runner = Chaos(1, slice_bytes=2000)
        byteweld.tokenize(
            "memory://remote/corpus", tok, out="memory://remote/out", runner=runner, **same
        )
        system.get("/remote/out/", str(tmp_path / "copy"), recursive=True)
        assert digests(tmp_path / "copy") == digests(tmp_path / "local")
        # Complete, and then replaced.
        byteweld.tokenize(
            "memory://remote/corpus", tok, out="memory://remote/out", runner=runner, **same
        )
        other = {"on_error": "skip"}
        with pytest.raises(FileExistsError, match="complete dataset of another job"):
            byteweld.tokenize(
                "memory://remote/corpus", tok, out="memory://remote/out", runner=runner, **other
            )
        byteweld.tokenize(
            "memory://remote/corpus",
            tok,
            out="memory://remote/out",
            runner=runner,
            overwrite=True,
            **other,
        )
        names = [name.rpartition("/")[2] for name in system.find("/remote/out")]
        assert sorted(names) == ["manifest.json", "train.bin", "train.bin.index"]
    finally:
        system.rm("/remote", recursive=True)
