"""The work folder of a job: what identifies the job, and what its tasks have done so far.

A task writes its files first and its record last, a small JSON file. A task whose record is there
is not run again, so a job that was interrupted resumes, on any runner.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import byteweld._native as _native
from byteweld._folders import Folder, LocalFolder, open_folder
from byteweld._typed import WrongError, parse, reader, to_json
from byteweld.corpus import Corpus
from byteweld.corpus._slices import Slice, divide
from byteweld.errors import CorpusError, FormatError
from byteweld.jobs import Runner
from byteweld.jobs._changes import Facts, changed_facts

JOB: Final = "job.json"  # the SHA-256 of the facts
_FACTS: Final = "facts.json"
_SURROGATES: Final = ("utf-8", "backslashreplace")  # of names of files that are not UTF-8
_REMOVALS: Final = 20
_SECONDS_BETWEEN_REMOVALS: Final = 0.1


Task = Callable[[Any, Path], tuple[Any, Mapping[str, Path]]]


class Stage(NamedTuple):
    """Tasks of one kind: their name, and the type of their results."""

    name: str
    result: Any
    bits: int = 63  # of whole numbers

    def record(self, number: int) -> str:
        """Return the name of the record of a task."""
        return f"{self.name}/{number:07d}.json"


class _Noted(NamedTuple):
    """What the record of a task has: its result, and the sizes of its files."""

    result: Any
    files: dict[str, int]


class Work(NamedTuple):
    """A work folder, as tasks see it."""

    folder: Folder
    marks: tuple[tuple[str, str], ...] = ()  # what tasks must find there: names and SHA-256
    restarted: tuple[str, ...] = ()  # what had changed, if the job started over

    def check(self) -> None:
        """Raise if this machine does not see the work folder of the job."""
        try:
            found = [(name, read_record(self.folder, name, str)) for name, _ in self.marks]
        except (FileNotFoundError, FormatError):
            found = []
        if tuple(found) != self.marks:
            raise FileNotFoundError(
                f"{self.folder} is not the work folder of this job on {socket.gethostname()}; "
                "choose one that all machines see, with work= (--work)"
            )

    def marked(self, name: str, sha256: str) -> Work:
        """Return the work folder with a mark; tasks with another value of it fail."""
        write_record(self.folder, name, sha256, sync=True)
        return self._replace(marks=(*self.marks, (name, sha256)))

    def facts(self) -> dict[str, Any]:
        """Return what identifies the job."""
        found: dict[str, Any] = read_record(self.folder, _FACTS, dict[str, Any])
        return found

    def has_records(self, stage: Stage) -> bool:
        """Whether a task of a stage is done."""
        return bool(_records(self.folder, stage))

    def results(self, stage: Stage) -> dict[int, Any]:
        """Return the results of the tasks of a stage that are done, by their numbers.

        A task is not done if its record is damaged, or one of its files is missing or short, as
        after a power failure.
        """
        found = {}
        for name in _records(self.folder, stage):
            with contextlib.suppress(FormatError, ValueError):
                number, noted = int(name.removesuffix(".json")), self._noted(stage, name)
                if all(self.folder.size(file) == size for file, size in noted.files.items()):
                    found[number] = noted.result
        return found

    def records(self, stage: Stage) -> list[Any]:
        """Return the results of a stage whose tasks were done one after another.

        Raises FormatError if one is damaged.
        """
        return [self._noted(stage, name).result for name in _records(self.folder, stage)]

    def _noted(self, stage: Stage, name: str) -> _Noted:
        hint = tuple[stage.result, dict[str, int]]  # type: ignore[name-defined]
        return _Noted(*read_record(self.folder, f"{stage.name}/{name}", hint, stage.bits))

    def put(
        self,
        stage: Stage,
        number: int,
        result: Any,
        files: Mapping[str, Path] | None = None,
        *,
        sync: bool = False,
    ) -> None:
        """Move files to the folder, and note the result of a task."""
        sizes = {}
        for name, file in (files or {}).items():
            sizes[name] = file.stat().st_size
            self.folder.put(file, name)
        write_record(self.folder, stage.record(number), _Noted(result, sizes), sync=sync)


# ---------------------------------------------------------------------- records


def _records(folder: Folder, stage: Stage) -> list[str]:
    return sorted(name for name in folder.folder(stage.name).names() if name.endswith(".json"))


def write_record(folder: Folder, name: str, value: Any, *, sync: bool = False) -> None:
    """Write a value as JSON and, in another line, its SHA-256."""
    line = to_json(value).encode(*_SURROGATES) + b"\n"
    digest = hashlib.sha256(line).hexdigest().encode()
    folder.write(name, line + digest + b"\n", sync=sync)


def read_record(folder: Folder, name: str, hint: Any, bits: int = 63) -> Any:
    """Read a value that `write_record` wrote, of the type that a hint says."""
    line, _, digest = folder.read(name).partition(b"\n")
    try:
        if digest != hashlib.sha256(line + b"\n").hexdigest().encode() + b"\n":
            raise WrongError("its SHA-256 is not that in its last line")
        return reader(hint, bits)(parse(line))
    except WrongError as error:
        raise FormatError(
            f"damaged: {error}; start over with overwrite=True (--force), or remove {folder}",
            path=f"{folder}/{name}",
        ) from None


# ---------------------------------------------------------------------- jobs


@contextlib.contextmanager
def begun(
    runner: Runner, facts: Facts, near: str | os.PathLike[str] | None, *, overwrite: bool = False
) -> Iterator[Work]:
    """Yield the work folder of a job, and remove it unless the job fails.

    It is in the folder that the runner was given, or next to `near`, the result; without any of
    them, it is a temporary folder, if all tasks run on this machine.
    """
    if runner.work is None and near is None:
        if not runner.is_one_machine:
            raise ValueError(
                "tasks run on several machines, which need a folder that all of them see; pass it "
                "as work= (--work)"
            )
        made = Path(tempfile.mkdtemp(prefix="byteweld-"))
        try:
            yield begin(LocalFolder(made / "work"), facts)
        finally:
            _remove_in_use(made)
        return
    if runner.work is None:
        assert near is not None
        folder = unfinished(near)
    else:
        # The folder may have other files and other jobs, so each job has a folder in it.
        folder = open_folder(runner.work).folder(f"byteweld-{digest_of([facts])[:16]}")
    work = begin(folder, facts, overwrite=overwrite)
    yield work
    work.folder.remove_all()


def _remove_in_use(folder: Path) -> None:
    """Remove a folder that tasks may still write to: after a failure, those that run continue.

    Whatever happens here must not hide the failure.
    """
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_SECONDS_BETWEEN_REMOVALS)


def unfinished(path: str | os.PathLike[str]) -> Folder:
    """Return the work folder next to a result."""
    return open_folder(os.fspath(path).rstrip("/") + ".unfinished")


def resumed(folder: Folder) -> Work:
    """Return the work folder of a job that others have begun."""
    return Work(folder, ((JOB, read_record(folder, JOB, str)),))


def begin(
    folder: Folder,
    facts: Facts,
    *,
    overwrite: bool = False,
    changes: Callable[[Facts, Facts], list[str]] = changed_facts,
    stages: Sequence[Stage] = (),
) -> Work:
    """Return the work folder of a job, begun by this process or another one.

    If `changes` finds no difference between the facts, the job is the same. If the job has changed,
    it starts over with `overwrite`, or if none of the `stages` has any result; otherwise the folder
    is that of another job, a FileExistsError.
    """
    described = parse(to_json({**facts, "byteweld": _native.__version__}).encode(*_SURROGATES))
    restarted: list[str] = []
    if overwrite:
        folder.remove_all()
    elif folder.exists(JOB):
        known = resumed(folder)
        before = known.facts()
        restarted = changes(before, described)
        if before.get("byteweld") != described["byteweld"]:
            restarted += changed_facts(
                *({"byteweld": f.get("byteweld")} for f in (before, described))
            )
        if restarted and (not stages or any(map(known.has_records, stages))):
            raise FileExistsError(
                f"{folder} has the unfinished work of another job: {'; '.join(restarted)}; run "
                "that job again to finish it, or pass overwrite=True (--force) to start over"
            )
        if restarted:
            folder.remove_all()
        elif before == described:
            return known
    write_record(folder, _FACTS, described, sync=True)
    return Work(folder, (), tuple(restarted)).marked(JOB, digest_of([described]))


def _run_task(work: Work, stage: Stage, task: Task, item: Any) -> tuple[int, Any]:
    """Run a task of a stage, and note its result."""
    work.check()
    with work.folder.scratch() as scratch:
        result, files = task(item, scratch)
        work.put(stage, item.number, result, files)
    return item.number, result


def run_stage(
    work: Work,
    stage: Stage,
    items: Iterable[Any],
    task: Task,
    runner: Runner,
    report: Callable[[Mapping[int, Any]], object] = lambda results: None,
) -> dict[int, Any]:
    """Run the tasks of a stage that are not done yet, and return the results of all.

    Each item has a `number`. For an item and a scratch folder, a task returns the result, and files
    by the names that they get in the work folder. `report` is called with results: first those of
    earlier runs, then each one as it comes.
    """
    numbered = {item.number: item for item in items}
    results = {number: found for number, found in work.results(stage).items() if number in numbered}
    report(results)
    todo = [item for number, item in numbered.items() if number not in results]
    run = functools.partial(_run_task, work, stage, task)
    for number, found in runner.map_unordered(run, todo):
        results[number] = found
        report({number: found})
    return results


# ---------------------------------------------------------------------- slices


def sliced(
    runner: Runner, corpus: Corpus, facts: Facts, builder: _native.CountBuilder | None = None
) -> tuple[list[Slice], dict[str, Any]]:
    """Return the slices of a corpus, and what identifies a job on them besides `facts`."""
    if corpus.table is not None:
        raise TypeError("a table in memory cannot be divided among tasks; pass files")
    slices = divide(corpus, runner.slice_bytes, builder=builder)
    return slices, {
        **facts,
        "reading": {**dataclasses.asdict(corpus.reading), "ext": None},
        "sources": digest_of(corpus.states()),
        "slices": slice_facts(slices),
    }


def check_unchanged(corpus: Corpus, facts: Facts) -> None:
    """Raise if a file of a corpus is not what it was when its slices were planned."""
    if digest_of(corpus.states(anew=True)) != facts["sources"]:
        raise CorpusError(
            "files of the corpus changed while they were read; start again when nothing writes to "
            "them"
        )


def slice_facts(slices: Sequence[Slice]) -> dict[str, Any]:
    """Return what identifies the slices of a corpus."""
    plans = ([part.first_file, part.size, *map(str, part.files)] for part in slices)
    return {"number": len(slices), "sha256": digest_of(plans)}


def digest_of(values: Iterable[object]) -> str:
    """Return the SHA-256 of JSON values, which may be too many to list."""
    digest = hashlib.sha256()
    for value in values:
        digest.update(json.dumps(value, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()
