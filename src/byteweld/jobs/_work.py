"""The work folder of a job: what identifies the job, and what its tasks have done so far.

A task writes its files first and its record last, a small JSON file. A task whose record is there
is not run again, so a job that was interrupted resumes, on any runner.
"""

from __future__ import annotations

import contextlib
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
from byteweld.corpus._slices import Slice
from byteweld.errors import FormatError
from byteweld.jobs import Runner
from byteweld.jobs._changes import Facts, changed_facts

JOB: Final = "job.json"  # the SHA-256 of the facts
_FACTS: Final = "facts.json"
_REMOVALS: Final = 20
_SECONDS_BETWEEN_REMOVALS: Final = 0.1


class Work(NamedTuple):
    """A work folder, as tasks see it."""

    folder: Folder
    job: str  # the SHA-256 of what identifies the job
    restarted: tuple[str, ...] = ()  # what had changed, if the job started over

    def check(self) -> None:
        """Raise if this machine does not see the work folder of the job."""
        try:
            found = read_record(self.folder, JOB)["sha256"]
        except (FileNotFoundError, FormatError, KeyError, TypeError):
            found = None
        if found != self.job:
            raise FileNotFoundError(
                f"{self.folder} is not the work folder of this job on {socket.gethostname()}; "
                "choose one that all machines see, with work= (--work)"
            )

    def renamed(self, job: str) -> Work:
        """Return the work folder under another name of the job; tasks of the old name fail."""
        write_record(self.folder, JOB, {"sha256": job}, sync=True)
        return self._replace(job=job)

    def facts(self) -> dict[str, Any]:
        """Return what identifies the job."""
        return _read_object(self.folder, _FACTS)

    def results(self, stage: str) -> dict[int, Any]:
        """Return the results of the tasks of a stage that are done, by their numbers.

        A task is not done if its record is damaged, or one of its files is missing or short, as
        after a power failure.
        """
        found = {}
        for name in _records(self.folder, stage):
            try:
                noted = read_record(self.folder, f"{stage}/{name}")
                number, files = int(name.removesuffix(".json")), noted["files"].items()
                if all(self.folder.size(file) == size for file, size in files):
                    found[number] = noted["result"]
            except (FormatError, ValueError, KeyError, TypeError, AttributeError):
                continue
        return found

    def records(self, stage: str) -> list[Any]:
        """Return the results of a stage whose tasks were done one after another.

        Raises FormatError if one is damaged.
        """
        names = (
            f"{stage}/{number:07d}.json" for number in range(len(_records(self.folder, stage)))
        )
        return [read_record(self.folder, name)["result"] for name in names]

    def put(
        self,
        stage: str,
        number: int,
        result: Any,
        files: Mapping[str, Path] | None = None,
        *,
        sync: bool = False,
    ) -> Any:
        """Move files to the folder, and note the result of a task; return it as it will be read."""
        sizes = {}
        for name, file in (files or {}).items():
            sizes[name] = file.stat().st_size
            self.folder.put(file, name)
        noted = {"result": result, "files": sizes}
        return write_record(self.folder, f"{stage}/{number:07d}.json", noted, sync=sync)["result"]


# ---------------------------------------------------------------------- records


def _records(folder: Folder, stage: str) -> list[str]:
    return sorted(name for name in folder.folder(stage).names() if name.endswith(".json"))


def write_record(folder: Folder, name: str, value: Any, *, sync: bool = False) -> Any:
    """Write a JSON value and, in another line, its SHA-256; return the value as it will be read."""
    line = json.dumps(value).encode() + b"\n"
    digest = hashlib.sha256(line).hexdigest().encode()
    folder.write(name, line + digest + b"\n", sync=sync)
    return json.loads(line)


def read_record(folder: Folder, name: str) -> Any:
    """Read what `write_record` wrote."""
    line, _, digest = folder.read(name).partition(b"\n")
    if digest != hashlib.sha256(line + b"\n").hexdigest().encode() + b"\n":
        raise FormatError(
            "damaged: its SHA-256 is not that in its last line; start over with overwrite=True "
            f"(--force), or remove {folder}",
            path=f"{folder}/{name}",
        )
    return json.loads(line)


def _read_object(folder: Folder, name: str) -> dict[str, Any]:
    found = read_record(folder, name)
    if not isinstance(found, dict):
        raise FormatError(
            f"damaged: expected an object, found {type(found).__name__}", path=f"{folder}/{name}"
        )
    return found


# ---------------------------------------------------------------------- jobs


@contextlib.contextmanager
def begun(
    runner: Runner,
    facts: Facts,
    near: str | os.PathLike[str] | None,
    *,
    overwrite: bool = False,
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
    return Work(folder, str(_read_object(folder, JOB).get("sha256")))


def begin(
    folder: Folder,
    facts: Facts,
    *,
    overwrite: bool = False,
    changes: Callable[[Facts, Facts], list[str]] = changed_facts,
    stages: Sequence[str] = (),
) -> Work:
    """Return the work folder of a job, begun by this process or another one.

    Args:
        folder: the work folder.
        facts: what identifies the job, as JSON values.
        overwrite: start over, whatever the folder has.
        changes: says what differs between two jobs. If it finds nothing, the job is the same.
        stages: the job starts over if it has changed and none of these stages has any result.

    Raises:
        FileExistsError: if the folder is that of another job.
    """
    described = json.loads(json.dumps({**facts, "byteweld": _native.__version__}))
    restarted: list[str] = []
    if overwrite:
        folder.remove_all()
    elif folder.exists(JOB):
        known, before = resumed(folder), _read_object(folder, _FACTS)
        restarted = changes(before, described)
        if before.get("byteweld") != described["byteweld"]:
            restarted += changed_facts(
                *({"byteweld": f.get("byteweld")} for f in (before, described))
            )
        if restarted and (not stages or any(_records(folder, name) for name in stages)):
            raise FileExistsError(
                f"{folder} has the unfinished work of another job: {'; '.join(restarted)}; run "
                "that job again to finish it, or pass overwrite=True (--force) to start over"
            )
        if restarted:
            folder.remove_all()
        elif before == described:
            return known
    write_record(folder, _FACTS, described, sync=True)
    return Work(folder, "", tuple(restarted)).renamed(digest_of([described]))


def run_stage(
    work: Work,
    stage: str,
    items: Mapping[int, Any],
    task: Callable[[Any], tuple[int, Any]],
    runner: Runner,
    report: Callable[[Mapping[int, Any]], object],
) -> dict[int, Any]:
    """Run the tasks of a stage that are not done yet, and return the results of all.

    Args:
        work: where results are noted.
        stage: the name of the stage.
        items: those of the tasks, by number.
        task: returns the number of its item, and the result as it was noted.
        runner: what runs the tasks.
        report: called with results: first those of earlier runs, then each one as it comes.
    """
    results = {number: found for number, found in work.results(stage).items() if number in items}
    report(results)
    todo = [item for number, item in items.items() if number not in results]
    for number, found in runner.map_unordered(task, todo):
        results[number] = found
        report({number: found})
    return results


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
