"""Counts made in tasks: the same files as on one machine, whatever happens to the tasks."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import byteweld
from byteweld._memory import resident_bytes
from byteweld.corpus import open_corpus
from byteweld.jobs import LocalRunner, Runner, counting
from byteweld.jobs._work import begun
from byteweld.recipes import find_recipe
from byteweld.sources import Sources
from tests.helpers.sliced import Drawn, Ending, MixedUp, corpora
from tests.helpers.tokenized import digests, make_documents, write_jsonl

pytest.importorskip("pyarrow")
SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None
)
RECIPE = find_recipe("modern").replace(special_tokens=("<|end|>",))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_jsonl(folder / "a.jsonl", make_documents(90, 1))
    (folder / "b.txt").write_text("one document, not very long. " * 300, encoding="utf-8")
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"compressed text " * 500))
    return folder


@pytest.fixture(scope="module")
def local(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of one machine."""
    folder = tmp_path_factory.mktemp("local") / "counts"
    byteweld.count(corpus, recipe=RECIPE).save(folder)
    return digests(folder)


def count_in_tasks(
    runner: Runner, source: Any, out: Path, recipe: byteweld.Recipe = RECIPE, **options: Any
) -> None:
    corpus = open_corpus(source)
    with counting.counted(runner, corpus, recipe, near=out, **options) as merged:
        merged.publish(out, overwrite=False)


@pytest.mark.parametrize("has_budget", [False, True])
@pytest.mark.parametrize("slice_bytes", [300, 4000, 10**9])
def test_the_files_are_those_of_one_machine(corpus, local, tmp_path, slice_bytes, has_budget):
    memory = resident_bytes() + 300_000_000 if has_budget else None
    runner = MixedUp(1, slice_bytes=slice_bytes)
    count_in_tasks(runner, corpus, tmp_path / "tasks", memory=memory)
    assert digests(tmp_path / "tasks") == local
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tasks"]
    saved = counting.saved_counts(tmp_path / "tasks")
    assert saved.distinct == len(byteweld.Counts.load(tmp_path / "tasks"))


def test_many_runs_are_merged_in_levels(corpus, local, tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "_FAN_IN", 3)
    runner = MixedUp(2, slice_bytes=1500)
    count_in_tasks(runner, corpus, tmp_path / "tasks")
    levels = {item.number for item in runner.ran if type(item).__name__ == "_Merge"}
    assert len(levels) > 2 * 16  # more than one level
    assert digests(tmp_path / "tasks") == local


@SETTINGS
@given(drawn=corpora(), slice_bytes=st.integers(1, 60), seed=st.integers(0, 9))
def test_any_corpus_has_the_same_counts_or_the_same_error(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn, slice_bytes: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    corpus = drawn.write(folder)
    sources = Sources(corpus=corpus)
    runner = MixedUp(seed, slice_bytes=slice_bytes)
    try:
        expected = sources.count(RECIPE).counts
    except byteweld.CorpusError as error:
        with pytest.raises(byteweld.TaskError) as failed:
            counting.count_sources(sources, RECIPE, runner=runner)
        # In tasks, another error may come first, but it is one of this corpus.
        assert str(folder) in str(failed.value) and str(folder) in str(error)
        return
    found = counting.count_sources(sources, RECIPE, runner=runner).counts
    assert found == expected
    assert found.skipped_documents == expected.skipped_documents


def test_training_in_tasks_is_training(corpus, tmp_path):
    here = byteweld.train(corpus, vocab_size=300)
    there = byteweld.train(corpus, vocab_size=300, runner=MixedUp(slice_bytes=2000))
    assert there.vocab.fingerprint == here.vocab.fingerprint
    assert there.training.merge_counts == here.training.merge_counts
    pruned = byteweld.train(corpus, vocab_size=300, runner=MixedUp(slice_bytes=2000), prune=3)
    assert (
        pruned.training.pair_error
        == byteweld.train(corpus, vocab_size=300, prune=3).training.pair_error
    )


def test_saved_counts_and_documents_are_added_to_files(corpus, tmp_path):
    byteweld.count(documents=["more text"]).save(tmp_path / "more")
    sources = [corpus, tmp_path / "more"]
    runner = LocalRunner(slice_bytes=3000)
    assert byteweld.count(sources, runner=runner) == byteweld.count(sources)


def test_an_interrupted_count_goes_on_where_it_was(corpus, local, tmp_path):
    stops = 0
    while True:
        try:
            count_in_tasks(Ending(3, slice_bytes=4000), corpus, tmp_path / "tasks")
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops > 5
    assert digests(tmp_path / "tasks") == local
    assert not (tmp_path / "tasks.unfinished").exists()


def test_a_task_whose_files_are_short_is_run_again(corpus, local, tmp_path):
    """As after a power failure: the note of a task is there, but not all of its files."""

    class Failing(LocalRunner):
        def _run(self, function, items):
            task = function.args[-1]
            if task.func.__name__ != "_count_slice":
                raise KeyboardInterrupt
            return super()._run(function, items)

    with pytest.raises(KeyboardInterrupt):
        count_in_tasks(Failing(slice_bytes=4000), corpus, tmp_path / "tasks")
    runs = sorted((tmp_path / "tasks.unfinished").rglob("*.parquet"))
    runs[0].write_bytes(runs[0].read_bytes()[:-5])
    runs[20].unlink()
    (tmp_path / "tasks.unfinished/slices/0000002.json").write_text("{")
    count_in_tasks(LocalRunner(slice_bytes=4000), corpus, tmp_path / "tasks")
    assert digests(tmp_path / "tasks") == local


def test_another_job_in_the_work_folder_is_refused(corpus, tmp_path):
    out = tmp_path / "tasks"
    with pytest.raises(KeyboardInterrupt):
        count_in_tasks(Ending(0, slice_bytes=4000), corpus, out)
    with pytest.raises(FileExistsError, match="another job: other slices"):
        count_in_tasks(LocalRunner(slice_bytes=3000), corpus, out)
    with pytest.raises(FileExistsError, match=r"another job: .*special_tokens"):
        count_in_tasks(LocalRunner(slice_bytes=4000), corpus, out, find_recipe("modern"))
    count_in_tasks(LocalRunner(slice_bytes=3000), corpus, out, overwrite=True)
    assert byteweld.Counts.load(out) == byteweld.count(corpus, recipe=RECIPE)


def test_the_work_folder_of_an_runner_may_have_other_files(corpus, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "mine.txt").write_text("mine")
    byteweld.count(corpus, runner=LocalRunner(slice_bytes=4000, work=work))
    assert [path.name for path in work.iterdir()] == ["mine.txt"]


def test_several_machines_need_a_folder(corpus):
    class Elsewhere(LocalRunner):
        is_one_machine = False

    with pytest.raises(ValueError, match=r"a folder that all of them see; pass it as work="):
        byteweld.count(corpus, runner=Elsewhere())


def test_remote_work_folders(corpus, local, tmp_path, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    system = fsspec.filesystem("memory")
    try:
        runner = LocalRunner(slice_bytes=4000, work="memory://counting/work")
        count_in_tasks(runner, corpus, tmp_path / "tasks")
        assert digests(tmp_path / "tasks") == local
        assert byteweld.count(corpus, runner=runner) == byteweld.count(corpus)
        assert not system.find("/counting")
        assert not list(here.iterdir())
    finally:
        if system.exists("/counting"):
            system.rm("/counting", recursive=True)


def test_a_task_that_still_writes_does_not_hide_the_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folders: list[Path] = []
    real_rmdir = os.rmdir
    refused: list[str] = []

    def rmdir(path: os.PathLike[str] | str, **options: Any) -> None:
        if not refused and os.fspath(path).endswith("slices"):  # a file has just been added
            refused.append(os.fspath(path))
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
        real_rmdir(path, **options)

    def fail() -> None:
        with LocalRunner() as runner, begun(runner, {"job": "count"}, None) as work:
            folders.append(Path(str(work.folder)))
            (folders[0] / "slices").mkdir()
            raise LookupError("the failure")

    monkeypatch.setattr(os, "rmdir", rmdir)
    with pytest.raises(LookupError, match="the failure"):
        fail()
    assert refused and not folders[0].parent.exists()
