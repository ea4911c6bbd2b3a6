"""Counts a corpus in tasks: slices are counted one by one, then the counts of each part added up.

Map: a task counts a slice into a folder of counts, sixteen sorted Parquet files by the hash of the
pre-token. Reduce: a task merges one part of all slices. At the end, each part is written once more,
now that the totals are known that its footer must have. The result is, byte for byte, what
`Counts.save` writes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from byteweld import _memory, _native, counts_files
from byteweld._folders import LocalFolder
from byteweld.corpus import Corpus
from byteweld.corpus._slices import Slice, divide, slice_corpus, with_lines
from byteweld.counts import Counts, Memory, count_corpus, merge_facts
from byteweld.counts_files import PARTS, Facts, Pruning, Sums, part_name
from byteweld.distributed._work import JOB, Work, begin, begun, digest_of, unfinished
from byteweld.engines import Engine, RankEngine
from byteweld.errors import CorpusError
from byteweld.recipes import Recipe

_SLICES: Final = "slices"
_PARTS: Final = "parts"
_FINAL: Final = "final"
# The budget of a task for each of its threads, unless one is given.
_THREAD_MEMORY: Final = 1 << 30

Progress = Callable[[int, int | None], object]


# ---------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class _CountSlice:
    """Counts a slice; returns how large it is."""

    work: Work
    recipe: Recipe
    corpus: Corpus  # how it is read
    num_threads: int | None
    memory: Memory | None

    def __call__(self, part: Slice) -> int:
        self.work.check()
        counts = self._count(part)
        table, facts = counts._table, counts._facts
        whole, by_part = table.sums(), table.sums_by_part()
        with self.work.folder.scratch() as scratch:
            for number, sums in enumerate(by_part):
                file = scratch / part_name(number)
                counts_files.write_part(file, table, number, facts, whole, sums)
                self.work.folder.put(file, _run_name(part.number, number))
        result = {"facts": _facts_to_dict(facts), "sums": by_part}
        self.work.finish(_SLICES, part.number, result)
        return part.size

    def _count(self, part: Slice) -> Counts:
        corpus = slice_corpus(self.corpus, part, builder=_builder(self.recipe))
        try:
            return self._count_corpus(corpus)
        except CorpusError:
            # Once more, with the lines of the file instead of those of the slice in the message.
            numbered = with_lines(corpus)
            if numbered == corpus:
                raise
        return self._count_corpus(numbered)

    def _count_corpus(self, corpus: Corpus) -> Counts:
        return count_corpus(corpus, self.recipe, num_threads=self.num_threads, memory=self.memory)


class _Part(NamedTuple):
    """One of the sixteen parts of counts."""

    number: int

    def __str__(self) -> str:
        return f"part {self.number} of {PARTS}"


@dataclass(frozen=True)
class _MergePart:
    """Adds up one part of all slices."""

    work: Work
    num_slices: int
    facts: Facts
    num_threads: int | None
    memory: Memory | None

    def __call__(self, item: _Part) -> None:
        self.work.check()
        folder, part = self.work.folder, item.number
        limit = None if self.memory is None else _memory.plan(self.memory, 1).limit
        if limit is not None:
            sums = [self.work.result(_SLICES, n)["sums"][part] for n in range(self.num_slices)]
            # Twice: the tables, and their sum.
            if limit.can_keep(2 * sum(s[0] for s in sums), 2 * sum(s[1] for s in sums)):
                limit = None
        tables = []
        for number in range(self.num_slices):
            with folder.local(_run_name(number, part)) as file:
                tables.append(counts_files.read_part(file, part, limit))
        merged = _native.Counts.merge(tables, limit=limit, num_threads=self.num_threads)
        whole = merged.sums()
        with folder.scratch() as scratch:
            file = scratch / part_name(part)
            counts_files.write_part(file, merged, part, self.facts, whole, whole)
            folder.put(file, f"{_PARTS}/{part_name(part)}")
        self.work.finish(_PARTS, part, whole)


@dataclass(frozen=True)
class _FinishPart:
    """Writes a part with the footer that it has in the end."""

    work: Work
    facts: Facts
    sums: list[Sums]

    def __call__(self, item: _Part) -> None:
        self.work.check()
        folder, part = self.work.folder, item.number
        whole: Any = tuple(map(sum, zip(*self.sums, strict=True)))
        with folder.local(f"{_PARTS}/{part_name(part)}") as source, folder.scratch() as scratch:
            file = scratch / part_name(part)
            counts_files.rewrite_part(file, source, part, self.facts, whole, self.sums[part])
            folder.put(file, f"{_FINAL}/{part_name(part)}")
        self.work.finish(_FINAL, part, None)


# ---------------------------------------------------------------------- a job


@contextlib.contextmanager
def counted(
    engine: Engine,
    corpus: Corpus,
    recipe: Recipe,
    *,
    near: str | os.PathLike[str] | None = None,
    memory: Memory | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Iterator[Work]:
    """Count a corpus, and yield the work folder with the counts, for `publish` or `load_final`.

    Args:
        engine: what runs the tasks.
        corpus: files.
        recipe: how documents are split.
        near: where the result goes; without a work folder of the engine, that is next to it.
        memory: the budget of each task. Default: 1 GiB per thread.
        overwrite: start over if the work folder is that of another job.
        progress: called with the bytes counted, and those of the corpus.
    """
    slices, facts = _planned(engine, corpus, recipe)
    with begun(engine, facts, near, overwrite=overwrite) as work:
        _count_slices(work, slices, corpus, recipe, engine, memory, progress)
        if digest_of(corpus.states()) != facts["sources"]:
            raise CorpusError(
                "files of the corpus changed while they were counted; start again when nothing "
                "writes to them"
            )
        merge_slices(work, len(slices), engine, memory)
        yield work


def count_share(
    engine: RankEngine,
    corpus: Corpus,
    recipe: Recipe,
    near: str | os.PathLike[str],
    *,
    memory: Memory | None = None,
    progress: Progress | None = None,
) -> None:
    """Count the slices of one rank into the work folder next to `near`."""
    slices, facts = _planned(engine, corpus, recipe)
    work = begin(unfinished(near), facts, overwrite=False)
    _count_slices(work, slices, corpus, recipe, engine, memory, progress)


def merge_ranks(
    near: str | os.PathLike[str], engine: Engine, *, memory: Memory | None, overwrite: bool
) -> None:
    """Add up what all ranks have counted, and save it."""
    folder = unfinished(near)
    facts = json.loads(folder.read(JOB))
    work = Work(folder, facts["sha256"])
    merge_slices(work, facts["slices"], engine, memory)
    publish(work, Path(near), overwrite=overwrite)
    folder.remove_all()


def _planned(engine: Engine, corpus: Corpus, recipe: Recipe) -> tuple[list[Slice], dict[str, Any]]:
    """Return the slices, and what identifies the job."""
    counts_files.arrow()
    if corpus.table is not None:
        raise TypeError("a table in memory cannot be divided among tasks; pass files")
    slices = divide(corpus, engine.slice_bytes, builder=_builder(recipe))
    facts = {
        "job": "count",
        "pattern": recipe.pattern,
        "special_tokens": sorted(set(recipe.boundaries)),
        "alphabet": recipe.alphabet,
        "reading": {**dataclasses.asdict(corpus.reading), "ext": None},
        "sources": digest_of(corpus.states()),
        "slices": len(slices),
    }
    return slices, facts


def _count_slices(
    work: Work,
    slices: list[Slice],
    corpus: Corpus,
    recipe: Recipe,
    engine: Engine,
    memory: Memory | None,
    progress: Progress | None,
) -> None:
    """Count the slices that are not counted yet."""
    done = work.done(_SLICES)
    mine = engine.share(slices)
    todo = [part for part in mine if part.number not in done]
    total = sum(part.size for part in mine)
    counted = total - sum(part.size for part in todo)
    task = _CountSlice(
        work,
        recipe,
        dataclasses.replace(corpus, files=(), skipped_files={}),
        engine.threads_per_task,
        _task_memory(engine, memory),
    )
    if progress is not None:
        progress(counted, total)
    for size in engine.map_unordered(task, todo):
        counted += size
        if progress is not None:
            progress(counted, total)


def merge_slices(work: Work, num_slices: int, engine: Engine, memory: Memory | None) -> None:
    """Add up the counts of all slices into a folder of counts, `final` in the work folder."""
    missing = sorted(set(range(num_slices)) - work.done(_SLICES))
    if missing:
        raise FileNotFoundError(
            f"{work.folder}: {len(missing)} of {num_slices} slices are not counted yet, the first "
            f"is number {missing[0]}; run the ranks that count them"
        )
    results = [work.result(_SLICES, number) for number in range(num_slices)]
    facts = merge_facts([_facts_of(result["facts"]) for result in results])
    merge = _MergePart(
        work, num_slices, facts, engine.threads_per_task, _task_memory(engine, memory)
    )
    _run_parts(engine, merge, work.done(_PARTS))
    sums = [tuple(work.result(_PARTS, part)) for part in range(PARTS)]
    finish = _FinishPart(work, facts, sums)
    _run_parts(engine, finish, work.done(_FINAL))


def _run_parts(engine: Engine, task: Callable[[_Part], None], done: set[int]) -> None:
    for _ in engine.map_unordered(task, [_Part(n) for n in range(PARTS) if n not in done]):
        pass


def publish(work: Work, out: Path, *, overwrite: bool) -> None:
    """Put the finished counts in their place."""
    final = work.folder.folder(_FINAL)
    with counts_files.replaced_folder(out, overwrite=overwrite) as folder:
        for part in range(PARTS):
            with final.local(part_name(part)) as file:
                if isinstance(final, LocalFolder):
                    _link_or_copy(file, folder / part_name(part))
                else:
                    shutil.copyfile(file, folder / part_name(part))
            counts_files.sync_file(folder / part_name(part))


def load_final(work: Work, memory: Memory | None) -> Counts:
    """Read the finished counts."""
    final = work.folder.folder(_FINAL)
    if isinstance(final, LocalFolder):
        return Counts.load(final.path, memory=memory)
    with LocalFolder(Path.cwd()).scratch() as scratch:
        for part in range(PARTS):
            with final.local(part_name(part)) as file:
                shutil.copyfile(file, scratch / part_name(part))
        return Counts.load(scratch, memory=memory)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def _task_memory(engine: Engine, memory: Memory | None) -> Memory | None:
    if memory is not None or engine.threads_per_task is None:
        return memory
    return _THREAD_MEMORY * engine.threads_per_task


def _builder(recipe: Recipe) -> _native.CountBuilder:
    return _native.CountBuilder(
        pattern=recipe.pattern,
        boundaries=recipe.boundaries,
        alphabet=None,
        num_threads=1,
        limit=None,
    )


def _run_name(number: int, part: int) -> str:
    return f"{_SLICES}/{number:07d}/{part_name(part)}"


def _facts_to_dict(facts: Facts) -> dict[str, Any]:
    return dataclasses.asdict(facts)


def _facts_of(values: dict[str, Any]) -> Facts:
    boundaries, pruning = values["boundaries"], values["pruning"]
    return Facts(
        **values
        | {
            "boundaries": None if boundaries is None else tuple(boundaries),
            "pruning": None if pruning is None else Pruning(**pruning),
        }
    )
