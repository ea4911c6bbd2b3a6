"""Comparisons in tasks: the result of one process, whatever the slices and the order of tasks."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.comparison.corpora import Comparison, compare_files
from byteweld.jobs import LocalRunner
from byteweld.jobs.comparing import compare_corpus
from tests.helpers.sliced import IDS, OTHER, SAME, Drawn, MixedUp, corpora
from tests.helpers.strategies import examples


def timeless(found: Comparison) -> Comparison:
    return dataclasses.replace(found, seconds=(0.0,) * len(found.names))


def outcome(function: Any) -> Any:
    try:
        return function()
    except byteweld.ByteweldError as error:
        return type(error), str(error)


@examples(200)
@given(
    drawn=corpora(),
    others=st.lists(st.sampled_from([SAME, OTHER, IDS]), min_size=1, max_size=3),
    max_differences=st.sampled_from([0, 1, 3, 10]),
    slice_bytes=st.integers(1, 60),
    seed=st.integers(0, 99),
    specials=st.sampled_from([{}, {"disallowed_special": ()}]),
)
def test_slices_have_the_result_of_the_whole(
    tmp_path: Path,
    drawn: Drawn,
    others: list[byteweld.Tokenizer],
    max_differences: int,
    slice_bytes: int,
    seed: int,
    specials: dict[str, Any],
) -> None:
    corpus = drawn.write(tmp_path)
    runner = MixedUp(seed, slice_bytes=slice_bytes, num_threads=1)
    skipped = 0

    def here() -> tuple[Comparison, int]:
        def files() -> Any:
            nonlocal skipped
            for name, documents in corpus.by_file():
                yield name, documents
                skipped += documents.skipped

        options = {"max_differences": max_differences, "num_threads": 1, **specials}
        return timeless(compare_files([SAME, *others], files(), **options)), skipped

    def in_tasks() -> tuple[Comparison, int]:
        options = {"max_differences": max_differences, **specials}
        found, skips = compare_corpus(runner, [SAME, *others], corpus, **options)
        return timeless(found), skips

    expected, found = outcome(here), outcome(in_tasks)
    assert found == expected
    if isinstance(found[0], Comparison):
        assert [list(rates) for rates in found[0].scripts] == [
            list(rates) for rates in expected[0].scripts
        ]
        assert str(found[0]) == str(expected[0])


def test_a_special_token_that_is_refused_is_the_error_of_one_process(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ab\n" * 30 + "<|end|>\n" * 3)
    refused: dict[str, Any] = {"allowed_special": (), "lines": True}
    with pytest.raises(byteweld.SpecialTokenError) as here:
        byteweld.compare(SAME, OTHER, tmp_path, **refused)
    for seed in range(3):
        runner = MixedUp(seed, slice_bytes=7, num_threads=1)
        with pytest.raises(byteweld.SpecialTokenError) as found:
            byteweld.compare(SAME, OTHER, tmp_path, runner=runner, **refused)
        assert str(found.value) == str(here.value)


def test_a_work_folder_keeps_what_tasks_have_found(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc é 漢\n" * 30)
    (tmp_path / "b.jsonl").write_text("{broken\n")
    work = tmp_path / "work"
    options = {"slice_bytes": 50, "work": work, "num_threads": 1}
    with pytest.raises(byteweld.CorpusError):
        byteweld.compare(
            SAME, OTHER, [tmp_path / "a.txt", tmp_path / "b.jsonl"], runner=LocalRunner(**options)
        )
    (kept,) = work.iterdir()
    assert (kept / "job.json").is_file()
    runner = MixedUp(**options)
    with pytest.raises(byteweld.CorpusError, match=r"b\.jsonl:1: "):
        byteweld.compare(SAME, OTHER, [tmp_path / "a.txt", tmp_path / "b.jsonl"], runner=runner)
    assert [part.number for part in runner.ran] == [1]
    # Without the damaged file, what is kept is read back as it was.
    lines = {"lines": True, "runner": MixedUp(**options)}
    found = byteweld.compare(SAME, OTHER, tmp_path / "a.txt", **lines)
    assert timeless(found) == timeless(
        byteweld.compare(SAME, OTHER, tmp_path / "a.txt", lines=True)
    )


def test_progress_is_the_stored_bytes_of_slices(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc\n" * 30)
    seen: list[int] = []
    runner = LocalRunner(slice_bytes=30)
    byteweld.compare(SAME, OTHER, tmp_path, lines=True, runner=runner, progress=seen.append)
    assert seen == [0, 30, 60, 90, 120]


def test_documents_in_memory_need_no_tasks() -> None:
    with pytest.raises(ValueError, match="runner is 'slurm'; expected one of 'local', 'ray'"):
        byteweld.compare(SAME, OTHER, documents=["a"], runner="slurm")
    assert byteweld.compare(SAME, OTHER, documents=["a"], runner="local").is_identical


def test_threads_are_those_of_the_runner(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc")
    with pytest.raises(ValueError, match="num_threads"):
        byteweld.compare(SAME, OTHER, tmp_path, runner=LocalRunner(), num_threads=2)
