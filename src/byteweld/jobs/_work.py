"""The work folder of a job: what identifies the job, and what its tasks have done so far.

A task writes its files first and a small JSON file last. A task whose JSON file is there is not run
again, so a job that was interrupted goes on where it was.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import byteweld._native as _native
from byteweld._folders import Folder, LocalFolder, open_folder
from byteweld.corpus._slices import Slice
from byteweld.errors import FormatError
from byteweld.jobs import Runner

JOB: Final = "tasks.json"
_DETAILS: Final = "details.json"
_REMOVALS: Final = 20
_SECONDS_BETWEEN_REMOVALS: Final = 0.1


class Work(NamedTuple):
    """A work folder, as tasks see it."""

    folder: Folder
    job: str  # the SHA-256 of what identifies the job

    def check(self) -> None:
        """Raise if this machine does not see the work folder of the job."""
        try:
            found = json.loads(self.folder.read(JOB))["sha256"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            found = None
        if found != self.job:
            raise FileNotFoundError(
                f"{self.folder} is not the work folder of this job on {socket.gethostname()}; "
                "choose one that all machines see, with work= (--work)"
            )

    def details(self) -> dict[str, Any]:
        """Return the details of the job."""
        return _read_json(self.folder, _DETAILS)

    def results(self, stage: str) -> dict[int, Any]:
        """Return the results of the tasks of a stage that are done, by their numbers.

        A task is not done if one of its files is missing or short, as after a power failure.
        """
        found = {}
        for name in sorted(self.folder.folder(stage).names()):
            if not name.endswith(".json"):
                continue
            try:
                noted = json.loads(self.folder.read(f"{stage}/{name}"))
                files, result = noted["files"], noted["result"]
            except (ValueError, KeyError, TypeError):
                continue
            if all(self.folder.size(file) == size for file, size in files.items()):
                found[int(name[:-5])] = result
        return found

    def put(self, stage: str, number: int, result: Any, files: Mapping[str, Path]) -> Any:
        """Move files to the folder, and note the result of a task; return it as it will be read."""
        sizes = {}
        for name, file in files.items():
            sizes[name] = file.stat().st_size
            self.folder.put(file, name)
        noted = json.dumps({"result": result, "files": sizes})
        self.folder.write(f"{stage}/{number:07d}.json", noted.encode())
        return json.loads(noted)["result"]


@contextlib.contextmanager
def begun(
    runner: Runner,
    facts: Mapping[str, Any],
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
            yield begin(LocalFolder(made / "work"), facts, overwrite=True)
        finally:
            _remove_in_use(made)
        return
    if runner.work is None:
        assert near is not None
        folder = unfinished(near)
    else:
        # A name of its own for each job: the folder may have other files, and other jobs.
        folder = open_folder(runner.work).folder(f"byteweld-{_digest(facts)[:16]}")
    work = begin(folder, facts, overwrite=overwrite)
    yield work
    work.folder.remove_all()


def _remove_in_use(folder: Path) -> None:
    """Remove a folder that tasks may still write to: after a failure, those that run go on.

    Whatever happens here must not hide the failure.
    """
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_SECONDS_BETWEEN_REMOVALS)


def resumed(folder: Folder) -> tuple[Work, dict[str, Any]]:
    """Return the work folder of a job that others have begun, and what identifies the job."""
    facts = _read_json(folder, JOB)
    return Work(folder, str(facts.get("sha256"))), facts


def _read_json(folder: Folder, name: str) -> dict[str, Any]:
    try:
        found = json.loads(folder.read(name))
        if not isinstance(found, dict):
            raise ValueError(f"expected an object, found {type(found).__name__}")
    except ValueError as error:
        raise FormatError(
            f"damaged ({error}); remove {folder} to start over", path=f"{folder}/{name}"
        ) from None
    return found


def unfinished(path: str | os.PathLike[str]) -> Folder:
    """Return the work folder next to a result."""
    return open_folder(os.fspath(path).rstrip("/") + ".unfinished")


def _digest(facts: Mapping[str, Any]) -> str:
    described = {**facts, "byteweld": _native.__version__}
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def begin(
    folder: Folder,
    facts: Mapping[str, Any],
    *,
    overwrite: bool,
    details: Mapping[str, Any] | None = None,
) -> Work:
    """Return the work folder of a job, begun by this process or another one.

    `details` are kept as well, for whoever goes on with the job. Raises FileExistsError if the
    folder is that of another job, unless `overwrite`.
    """
    described = json.loads(json.dumps({**facts, "byteweld": _native.__version__}))
    digest = _digest(facts)
    if overwrite:
        folder.remove_all()
    if folder.exists(JOB):
        before = _read_json(folder, JOB)
        if before.get("sha256") != digest:
            changed = [name for name, value in described.items() if before.get(name) != value]
            raise FileExistsError(
                f"{folder} has the unfinished work of another job, with other "
                f"{', '.join(changed) or 'facts'}; run that job again to finish it, or pass "
                "overwrite=True (--force) to start over"
            )
    else:
        if details is not None:
            folder.write(_DETAILS, json.dumps(details).encode())
        folder.write(JOB, json.dumps({**described, "sha256": digest}).encode())
    return Work(folder, digest)


def slice_facts(slices: Sequence[Slice]) -> dict[str, Any]:
    """Return what identifies the slices of a corpus."""
    plans = ([part.first_file, part.size, *map(str, part.files)] for part in slices)
    return {"number": len(slices), "sha256": digest_of(plans)}


def digest_of(values: Iterable[object]) -> str:
    """Return the SHA-256 of JSON values, which may be too many to list."""
    digest = hashlib.sha256()
    for value in values:
        digest.update(json.dumps(value).encode() + b"\n")
    return digest.hexdigest()
