"""Runs a task on each slice of a corpus, and takes the results in the order of the corpus.

Used where a result is small, so that tasks return it. With a work folder, results are also written
there, and a job that was interrupted resumes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from byteweld.corpus import Corpus
from byteweld.corpus._parts import FilePart
from byteweld.corpus._slices import Slice, on_slice
from byteweld.errors import ByteweldError
from byteweld.jobs import Runner
from byteweld.jobs._work import Stage, Work, begun, check_unchanged, sliced

Progress = Callable[[int], object]


class SliceResult(NamedTuple):
    """What a task has found in its slice, or the error that ended it."""

    number: int
    found: Any
    is_last: bool = False  # whether the slices after it do not matter
    error: ByteweldError | None = None


def _run(
    function: Callable[[Corpus], Any], how: Corpus, work: Work | None, stage: Stage, part: Slice
) -> SliceResult:
    """Run a function, which returns a result or an `End`, on the documents of a slice.

    If a document cannot be read or encoded, the error is a result too: that of an earlier slice
    comes first, even if it is found later.
    """
    if work is not None:
        work.check()
    try:
        found = on_slice(how, part, function)
    except ByteweldError as error:
        return SliceResult(part.number, None, True, error)
    if isinstance(found, End):
        return SliceResult(part.number, found.found, True)
    if work is not None:
        work.put(stage, part.number, found)
    return SliceResult(part.number, found)


class End(NamedTuple):
    """The last thing to find; nothing after it matters. Picklable, and never kept."""

    found: Any


class Files:
    """The files of a slice, and how many malformed documents of those before were skipped."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.skipped = 0

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name, documents in self._corpus.by_file():
            yield name, documents
            self.skipped += documents.skipped


def results_in_order(
    runner: Runner,
    corpus: Corpus,
    function: Callable[[Corpus], Any],
    result: Any,
    facts: Mapping[str, Any],
    *,
    progress: Progress | None = None,
    resumed: Progress | None = None,
) -> Iterator[tuple[Slice, Any]]:
    """Yield each slice of a corpus and what the function finds in it, up to the first `End`.

    `result` is the type of what the function returns, and `facts` are what that depends on besides
    the corpus: a work folder of the runner keeps results. `progress` is called with the stored
    bytes of the slices that are done, and `resumed` with those that earlier runs have done, if any.
    """
    slices, described = sliced(runner, corpus, facts)
    # Without a place for them, no results are kept: none of them is large.
    opened: contextlib.AbstractContextManager[Work | None] = (
        contextlib.nullcontext() if runner.work is None else begun(runner, described, None)
    )
    with opened as work:
        how = dataclasses.replace(corpus, files=(), skipped_files={})
        stage = Stage("slices", result)
        kept = {} if work is None else work.results(stage)
        task = functools.partial(_run, function, how, work, stage)
        error: ByteweldError | None = None  # of the last slice
        for number, found, _, error in _ordered(runner, task, slices, kept, progress, resumed):
            if error is None:
                yield slices[number], found
        check_unchanged(corpus, described)
        if error is not None:
            raise error


def _ordered(
    runner: Runner,
    task: Callable[[Slice], SliceResult],
    slices: list[Slice],
    kept: dict[int, Any],
    progress: Progress | None,
    resumed: Progress | None,
) -> Iterator[SliceResult]:
    """Yield the results of slices in their order, up to the first that is the last."""
    stop = len(slices)  # the slices from here on do not matter

    def todo() -> Iterator[Slice]:
        for part in slices:
            if part.number >= stop:
                return
            if part.number not in known:
                yield part

    known = set(kept)
    done = sum(slices[number].size for number in known)
    if resumed is not None and done:
        resumed(done)
    if progress is not None:
        progress(done)
    waiting: dict[int, SliceResult] = {}
    upcoming = 0

    def ready() -> Iterator[SliceResult]:
        nonlocal upcoming
        while upcoming < stop:
            if upcoming in kept:
                result = SliceResult(upcoming, kept.pop(upcoming))
            elif upcoming in waiting:
                result = waiting.pop(upcoming)
            else:
                return
            upcoming += 1
            yield result

    yield from ready()
    running: Any = runner.map_unordered(task, todo())
    with contextlib.closing(running):  # which ends tasks that do not matter
        for result in running:
            done += slices[result.number].size
            if progress is not None:
                progress(done)
            if result.number < stop:
                waiting[result.number] = result
                if result.is_last:
                    stop = result.number + 1
            yield from ready()
            if upcoming >= stop:
                return


def continues(part: Slice) -> bool:
    """Whether a slice starts in the middle of a file."""
    first = part.files[0]
    return isinstance(first, FilePart) and first.start > 0
