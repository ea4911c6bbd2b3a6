"""Counts a corpus in tasks: slices are counted one by one, then the counts of each part added up.

Map: a task counts a slice into sixteen sorted Parquet files, called runs, by the hash of the
pre-token. Reduce: a task merges the runs of one part, up to 512 of them; the results are merged
again, until there is one run of each part. With the totals in a manifest, these are, byte for byte,
what `Counts.save` writes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from byteweld import _memory, _native, counts_files
from byteweld._extras import arrow
from byteweld._folders import Folder, link_or_copy
from byteweld.corpus import Corpus
from byteweld.corpus._slices import Slice, on_slice
from byteweld.counts import Counts, Memory, count_corpus, limit_of, merge_facts
from byteweld.counts_files import PART_NAMES, PARTS, CountFacts, Sums
from byteweld.jobs import RankRunner, Runner
from byteweld.jobs._work import (
    JOB,
    Stage,
    Work,
    begin,
    begun,
    check_unchanged,
    resumed,
    run_stage,
    sliced,
    unfinished,
)
from byteweld.recipes import Recipe
from byteweld.sources import Counted, Sources

_FAN_IN: Final = 512  # runs that a task merges
# The budget of a task for each of its threads, unless one is given.
_THREAD_MEMORY: Final = 1 << 30

Progress = Callable[[int, int | None], object]


# ---------------------------------------------------------------------- tasks


class _Slice(NamedTuple):
    """What was counted in a slice: the sums of each part."""

    facts: CountFacts
    sums: tuple[Sums, ...]


_BITS: Final = 128  # counts have 64 bits, but sums of them may have more
_SLICES: Final = Stage("slices", _Slice, _BITS)


def _count_slice(
    recipe: Recipe,
    how: Corpus,
    num_threads: int | None,
    memory: Memory | None,
    part: Slice,
    scratch: Path,
) -> tuple[_Slice, dict[str, Path]]:
    def count(corpus: Corpus) -> Counts:
        budget = memory if num_threads is None else _budget(memory, num_threads)
        return count_corpus(corpus, recipe, num_threads=num_threads, memory=budget)

    counts = on_slice(how, part, count, _builder(recipe))
    files = {}
    for number in range(PARTS):
        file = files[_run_name(part.number, number)] = scratch / PART_NAMES[number]
        counts_files.write_part(file, counts._table, number)
    return _Slice(counts._facts, tuple(counts._table.sums_by_part())), files


class Run(NamedTuple):
    """A sorted file with pre-tokens of one part."""

    name: str
    sums: Sums


class _Merge(NamedTuple):
    """The runs of one part that a task merges."""

    number: int
    part: int
    runs: tuple[Run, ...]

    def __str__(self) -> str:
        return f"merge of {len(self.runs)} runs of part {self.part}"


def _merge_runs(
    folder: Folder,
    stage: Stage,
    num_threads: int | None,
    memory: Memory | None,
    item: _Merge,
    scratch: Path,
) -> tuple[Sums, dict[str, Path]]:
    # Sorted runs are merged faster on disk, or in the page cache, than added up in memory.
    limit = _memory.divide(_budget(memory, 1), 1).limit
    tables = []
    for run in item.runs:
        with folder.local(run.name) as file:
            tables.append(counts_files.read_part(file, item.part, run.sums, limit))
    merged = _native.Counts.merge(tables, limit=limit, num_threads=num_threads)
    file = scratch / PART_NAMES[item.part]
    counts_files.write_part(file, merged, item.part)
    return merged.sums(), {_merged_name(stage, item.number): file}


class Merged(NamedTuple):
    """The counts of a corpus, as one run of each part."""

    folder: Folder
    facts: CountFacts
    runs: tuple[Run, ...]

    def publish(self, out: Path, *, overwrite: bool) -> None:
        """Save the counts; their files are linked if they can be."""
        sums = [run.sums for run in self.runs]
        with counts_files.new_counts(out, self.facts, sums, overwrite=overwrite) as folder:
            for part, run in enumerate(self.runs):
                with self.folder.local(run.name) as file:
                    link_or_copy(file, folder / PART_NAMES[part])

    def load(self, memory: Memory | None) -> Counts:
        """Read the counts."""
        sums: Any = tuple(map(sum, zip(*(run.sums for run in self.runs), strict=True)))
        loader = _native.CountLoader(limit=limit_of(memory, sums))
        for run in self.runs:
            with self.folder.local(run.name) as file:
                counts_files.load_part(loader, file, run.sums)
        return Counts._of(loader.finish(), self.facts)


# ---------------------------------------------------------------------- a job


@contextlib.contextmanager
def counted(
    runner: Runner,
    corpus: Corpus,
    recipe: Recipe,
    *,
    near: str | os.PathLike[str] | None = None,
    memory: Memory | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Iterator[Merged]:
    """Count a corpus, and yield the counts in the work folder, to `publish` or `load`.

    The work folder is the runner's, or next to `near`, where the result goes. `memory` is the
    budget of each task, by default 1 GiB per thread. `progress` is called with the bytes counted,
    and those of the corpus.
    """
    slices, facts = _planned(runner, corpus, recipe)
    with begun(runner, facts, near, overwrite=overwrite) as work:
        _count_slices(work, slices, corpus, recipe, runner, memory, progress)
        check_unchanged(corpus, facts)
        yield merge_slices(work, len(slices), runner, memory)


def count_sources(
    sources: Sources,
    recipe: Recipe,
    *,
    runner: Runner | None,
    near: str | os.PathLike[str] | None = None,
    num_threads: int | None = None,
    memory: Memory | None = None,
    progress: Progress | None = None,
) -> Counted:
    """Count sources, their files in the tasks of a runner if there is one; see `counted`."""
    resources: dict[str, Any] = {"memory": memory, "progress": progress}
    if runner is None or sources.corpus is None:
        return sources.count(recipe, num_threads=num_threads, **resources)
    started = time.perf_counter()
    with counted(runner, sources.corpus, recipe, near=near, **resources) as merged:
        found = sources.count(
            recipe, num_threads=num_threads, of_files=merged.load(memory), **resources
        )
    return found._replace(seconds=time.perf_counter() - started)


def count_share(
    runner: RankRunner,
    corpus: Corpus,
    recipe: Recipe,
    near: str | os.PathLike[str],
    *,
    memory: Memory | None = None,
    progress: Progress | None = None,
) -> None:
    """Count the slices of one rank into the work folder next to `near`."""
    slices, facts = _planned(runner, corpus, recipe)
    work = begin(unfinished(near), facts)
    _count_slices(work, slices, corpus, recipe, runner, memory, progress)
    check_unchanged(corpus, facts)


def has_ranks(near: str | os.PathLike[str]) -> bool:
    """Whether ranks have begun to count for a result."""
    return unfinished(near).exists(JOB)


def merge_ranks(
    near: str | os.PathLike[str], runner: Runner, *, memory: Memory | None, overwrite: bool
) -> None:
    """Add up what all ranks have counted, and save it."""
    work = resumed(unfinished(near))
    merged = merge_slices(work, work.facts()["slices"]["number"], runner, memory)
    merged.publish(Path(near), overwrite=overwrite)
    work.folder.remove_all()


def _planned(runner: Runner, corpus: Corpus, recipe: Recipe) -> tuple[list[Slice], dict[str, Any]]:
    """Return the slices, and what identifies the job."""
    arrow()
    facts = {
        "job": "count",
        "pattern": recipe.pattern,
        "special_tokens": sorted(set(recipe.boundaries)),
        "alphabet": recipe.alphabet,
    }
    return sliced(runner, corpus, facts, _builder(recipe))


def _count_slices(
    work: Work,
    slices: list[Slice],
    corpus: Corpus,
    recipe: Recipe,
    runner: Runner,
    memory: Memory | None,
    progress: Progress | None,
) -> None:
    """Count the slices that are not counted yet."""
    sizes = {part.number: part.size for part in runner.share(slices)}
    total, done = sum(sizes.values()), 0
    how = dataclasses.replace(corpus, files=(), skipped_files={})
    task = functools.partial(_count_slice, recipe, how, runner.threads_per_task, memory)

    def report(counted: Mapping[int, Any]) -> None:
        nonlocal done
        done += sum(sizes[number] for number in counted)
        if progress is not None:
            progress(done, total)

    run_stage(work, _SLICES, runner.share(slices), task, runner, report)


def merge_slices(work: Work, num_slices: int, runner: Runner, memory: Memory | None) -> Merged:
    """Add up the counts of all slices into one run of each part."""
    results = work.results(_SLICES)
    missing = sorted(set(range(num_slices)) - results.keys())
    if missing:
        raise FileNotFoundError(
            f"{work.folder}: {len(missing)} of {num_slices} slices are not counted yet, the first "
            f"is number {missing[0]}; run the ranks that count them"
        )
    ordered = [results[number] for number in range(num_slices)]
    facts = merge_facts([result.facts for result in ordered])
    parts = [
        [Run(_run_name(number, part), result.sums[part]) for number, result in enumerate(ordered)]
        for part in range(PARTS)
    ]
    level = 0
    while any(len(runs) != 1 for runs in parts):
        parts = _merge_level(work, parts, Stage(f"merged-{level}", Sums, _BITS), runner, memory)
        level += 1
    return Merged(work.folder, facts, tuple(runs[0] for runs in parts))


def _merge_level(
    work: Work, parts: list[list[Run]], stage: Stage, runner: Runner, memory: Memory | None
) -> list[list[Run]]:
    """Merge up to 512 runs of each part at a time; return the runs that are left."""
    merges: list[_Merge] = []
    for part, runs in enumerate(parts):
        for first in range(0, max(1, len(runs)), _FAN_IN):
            merges.append(_Merge(len(merges), part, tuple(runs[first : first + _FAN_IN])))
    task = functools.partial(_merge_runs, work.folder, stage, runner.threads_per_task, memory)
    results = run_stage(work, stage, merges, task, runner)
    found: list[list[Run]] = [[] for _ in parts]
    for merge in merges:
        found[merge.part].append(Run(_merged_name(stage, merge.number), results[merge.number]))
    return found


class Saved(NamedTuple):
    """What saved counts say of themselves."""

    total: int
    distinct: int
    skipped_documents: int


def saved_counts(path: str | os.PathLike[str]) -> Saved:
    """Return the totals of saved counts, without loading them."""
    folder = counts_files.open_folder(path)
    return Saved(folder.sums[2], folder.sums[0], folder.facts.skipped_documents)


def _budget(memory: Memory | None, num_threads: int) -> Memory:
    """Return the budget of a task; if none is given, 1 GiB per thread beyond what is used now."""
    if memory is not None:
        return memory
    return _memory.resident_bytes() + _THREAD_MEMORY * num_threads


def _builder(recipe: Recipe) -> _native.CountBuilder:
    return _native.CountBuilder(
        pattern=recipe.pattern,
        boundaries=recipe.boundaries,
        alphabet=None,
        num_threads=1,
        limit=None,
    )


def _run_name(number: int, part: int) -> str:
    return f"{_SLICES.name}/{number:07d}/{PART_NAMES[part]}"


def _merged_name(stage: Stage, number: int) -> str:
    return f"{stage.name}/{number:07d}.parquet"
