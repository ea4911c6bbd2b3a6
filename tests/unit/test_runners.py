"""Runners: order, failures, ranks; and folders that tasks share."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import byteweld
from byteweld._folders import LocalFolder, open_folder, read_blocks
from byteweld.corpus import open_corpus
from byteweld.errors import FormatError
from byteweld.jobs import LocalRunner, RankRunner, Runner, open_runner
from byteweld.jobs.proving import prove_corpus
from tests.helpers.sliced import Encoder
from tests.helpers.tokenized import make_documents, write_jsonl

END = {"<|endoftext|>": 256}
TOK = byteweld.Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, [], special_tokens=END)


def fails_on_odd(item: int) -> int:
    if item % 2:
        raise ValueError(f"{item} is odd")
    return item


def test_results_of_tasks_before_and_after_failures():
    runner = LocalRunner(max_failures=3)
    found = []
    with pytest.raises(byteweld.TaskError) as failed:
        found.extend(runner.map_unordered(fails_on_odd, range(6)))
    assert failed.value.failures == ("1: 1 is odd", "3: 3 is odd", "5: 5 is odd")
    assert str(failed.value) == "3 tasks failed:\n  1: 1 is odd\n  3: 3 is odd\n  5: 5 is odd"
    assert isinstance(failed.value.__cause__, ValueError)


def test_the_first_failure_ends_the_work():
    ran = []

    def task(item: int) -> int:
        ran.append(item)
        return fails_on_odd(item)

    with pytest.raises(byteweld.TaskError, match=r"^1: 1 is odd$"):
        list(LocalRunner().map_unordered(task, range(10)))
    assert ran == [0, 1]


def test_many_failures_are_listed_in_part():
    with pytest.raises(byteweld.TaskError) as failed:
        list(LocalRunner(max_failures=100).map_unordered(fails_on_odd, range(100)))
    assert str(failed.value).count("\n") == 11
    assert str(failed.value).endswith("and 40 more")
    assert len(failed.value.failures) == 50
    again = pickle.loads(pickle.dumps(failed.value))
    assert again.failures == failed.value.failures and str(again) == str(failed.value)


def test_an_interrupt_is_not_a_failure():
    def task(item: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(LocalRunner(max_failures=9).map_unordered(task, [1]))


def test_ranks_share_everything_once():
    items = list(range(23))
    for world_size in (1, 4, 30):
        shares = [RankRunner(rank, world_size).share(items) for rank in range(world_size)]
        assert sorted(item for share in shares for item in share) == items


def test_an_runner_is_started_once_and_ended_once():
    class Counting(LocalRunner):
        events = ""

        def _start(self) -> None:
            self.events += "s"

        def _end(self) -> None:
            self.events += "e"

    runner = Counting()
    with runner, runner:
        assert runner.events == "s"
    with runner:
        pass
    assert runner.events == "sese"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: open_runner("spark"), "runner is 'spark'; expected one of 'local', 'ray'"),
        (lambda: LocalRunner(slice_bytes=0), "slice_bytes is 0; expected a whole number"),
        (lambda: LocalRunner(max_failures=-1), "max_failures is -1"),
        (lambda: RankRunner(4, 4), "rank is 4; expected a whole number from 0 to 3"),
        (lambda: RankRunner(0, 0), "world_size is 0"),
        (lambda: open_runner("ray", cpus_per_task=0), "cpus_per_task is 0"),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_threads_of_this_process_have_no_effect_in_tasks(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(ValueError, match="num_threads is 2, but the tasks of a runner"):
        byteweld.count(tmp_path, num_threads=2, runner=LocalRunner())


def test_without_ray_the_error_says_what_to_install(monkeypatch, tmp_path):
    import sys

    (tmp_path / "a.txt").write_text("text")
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'byteweld\[ray\]'"):
        byteweld.count(tmp_path, runner="ray")
    import os

    assert "RAY_AUTH_TOKEN" not in os.environ


# ---------------------------------------------------------------------- every verb

OURS = Encoder("ours", TOK)
# What is done with a corpus, here or in tasks; a dataset is made in `out`.
VERBS: dict[str, Callable[..., object]] = {
    "count": lambda corpus, **how: byteweld.count(corpus, **how),
    "train": lambda corpus, **how: byteweld.train(corpus, vocab_size=260, **how),
    "compare": lambda corpus, **how: byteweld.compare(TOK, TOK, corpus, **how),
    "tokenize": lambda corpus, **how: byteweld.tokenize(corpus, TOK, out="out", **how),
    "prove": lambda corpus, runner=None: (
        prove_corpus(runner, open_corpus(corpus), OURS, lambda: OURS)
        if runner
        else [*open_corpus(corpus).documents()]
    ),
}


@pytest.fixture(params=VERBS)
def name(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return request.param


@pytest.fixture
def verb(name):
    return VERBS[name]


def test_errors_name_the_slice_and_the_line_of_the_file(name, verb, tmp_path):
    lines = [json.dumps({"text": f"line {number}"}) for number in range(300)]
    lines[250] = "{broken"
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.raises(byteweld.CorpusError) as here:
        verb(tmp_path / "a.jsonl")
    # To compare and to prove is to find what comes first: the error is that of one process.
    is_of_task = name not in ("compare", "prove")
    with pytest.raises(byteweld.TaskError if is_of_task else byteweld.CorpusError) as found:
        verb(tmp_path / "a.jsonl", runner=LocalRunner(slice_bytes=1000))
    assert str(found.value).endswith(str(here.value)) and ":251: " in str(here.value)
    assert str(found.value).startswith("slice 5 (" if is_of_task else str(here.value))


def test_a_corpus_that_changes_meanwhile_is_an_error(verb, tmp_path):
    file = write_jsonl(tmp_path / "a.jsonl", make_documents(50))

    class Changing(LocalRunner):
        def _run(self, function, items):
            for result in super()._run(function, items):
                file.touch()
                yield result

    with pytest.raises(byteweld.CorpusError, match=r"changed (while they were|since the work)"):
        verb(file, runner=Changing(slice_bytes=500))


def test_what_is_in_memory_cannot_be_divided(verb):
    table = pytest.importorskip("pyarrow").table({"text": ["a"]})
    with pytest.raises(TypeError, match="cannot be divided among tasks"):
        verb(table, runner=LocalRunner())


# ---------------------------------------------------------------------- folders


@pytest.fixture(params=["local", "remote"])
def folder(request, tmp_path):
    if request.param == "local":
        yield open_folder(tmp_path / "folder")
        return
    fsspec = pytest.importorskip("fsspec")
    yield open_folder("memory://folders/folder")
    system = fsspec.filesystem("memory")
    if system.exists("/folders"):
        system.rm("/folders", recursive=True)


def test_files_of_a_folder(folder):
    assert folder.names() == set()
    assert folder.size("a") is None and not folder.exists("a")
    folder.write("a", b"0123456789")
    folder.write("below/b", b"b")
    folder.write("a", b"abcdefghij")
    assert folder.names() - {"scratch"} == {"a"}
    assert folder.folder("below").names() == {"b"}
    assert folder.read("a") == b"abcdefghij"
    assert folder.read("a", 2, 5) == b"cde"
    assert folder.size("a") == 10
    with folder.scratch() as scratch:
        (scratch / "made").write_bytes(b"made")
        folder.put(scratch / "made", "deep/er/made", sync=True)
    assert not scratch.exists()
    with folder.local("deep/er/made") as path:
        assert path.read_bytes() == b"made"
    folder.remove("a")
    folder.remove("a")
    assert not folder.exists("a")
    folder.remove_all()
    assert folder.folder("below").names() == set()
    folder.remove_all()


def test_blocks_of_a_short_file_are_an_error(folder, monkeypatch):
    from byteweld import _folders

    monkeypatch.setattr(_folders, "_BLOCK_BYTES", 3)
    folder.write("a", b"0123456789")
    assert list(read_blocks(folder, "a", 1, 9)) == [b"123", b"456", b"78"]
    with pytest.raises(FormatError, match="ends at byte 10, before 12"):
        list(read_blocks(folder, "a", 0, 12))


def test_a_missing_file_is_named(folder):
    with pytest.raises(FileNotFoundError, match="nothing"):
        folder.read("nothing")


def test_paths_with_two_slashes_are_not_remote(tmp_path):
    assert isinstance(open_folder(tmp_path), LocalFolder)
    assert isinstance(open_folder(Path("a")), LocalFolder)
    assert issubclass(RankRunner, Runner)
