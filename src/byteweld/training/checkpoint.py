"""Checkpoint: a folder from which an interrupted training run resumes.

    checkpoint.json   what identifies the run: recipe, size, files
    counts/           the counts, once all files have been read
    merges.log        16 bytes of magic, then 32 bytes per merge, appended as it is learned

The log is append-only. The checksum of each record covers its index, so a torn end is detected and
dropped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, get_args

from byteweld._atomic import is_leftover, naming, write_all
from byteweld._files import open_regular, read_descriptor, read_start
from byteweld._native import __version__
from byteweld._saves import settle, write_atomic
from byteweld.counts import Counts, Memory
from byteweld.counts_files import arrow
from byteweld.errors import FormatError
from byteweld.formats import _json
from byteweld.recipes import Recipe
from byteweld.training.report import Stop
from byteweld.vocab import Vocabulary

LearnedMerge = tuple[int, int, int, int, int]  # left, right, new, count, tokens it removed

_FACTS = "checkpoint.json"
_COUNTS = "counts"
_LOG = "merges.log"
_FORMAT = "byteweld checkpoint 1"
_MAGIC = b"byteweld merges\n"
_U64_MAX = 2**64 - 1
_RECORD = struct.Struct("<IIIQQ")
_CHECK = struct.Struct("<I")
_RECORD_BYTES = _RECORD.size + _CHECK.size
# The last record of a finished run has this id three times, why it stopped, and the number of
# tokens before the first merge.
_END = 2**32 - 1
_STOPS: tuple[Stop, ...] = get_args(Stop)  # the log stores an index
_SYNC_SECONDS = 1.0
# Above this number, files are identified by a single digest instead of one by one.
_MAX_LISTED_FILES = 10_000


class Checkpoint:
    """Opens the checkpoint in a folder, or starts one there.

    `facts` are everything that the result depends on, by name, as JSON values. If those of the
    checkpoint are different, raises a ValueError that lists the differences.
    """

    def __init__(self, path: str | os.PathLike[str], facts: Mapping[str, object]) -> None:
        self.path = Path(path)
        self.merges: list[LearnedMerge] = []  # the merges in the log when it was opened
        self.stop: Stop | None = None  # why the training stopped; None if it had not finished
        self.first_tokens = 0  # tokens before the first merge, if the training had finished
        self._counts: Counts | None = None
        self._logged = 0
        self._synced = time.monotonic()
        arrow()  # now, not after the work; and so that a memory budget includes it
        self.path.mkdir(parents=True, exist_ok=True)
        _check_ours(self.path)
        is_new = not os.path.lexists(self.path / _LOG)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        self._log = os.fdopen(open_regular(self.path / _LOG, flags), "a+b", buffering=0)
        try:
            _lock(self._log, self.path)  # first, or the facts of a running training could change
            self._compare_or_start(dict(facts))
            self._read_log()
        except BaseException:
            if is_new and not os.fstat(self._log.fileno()).st_size:
                (self.path / _LOG).unlink(missing_ok=True)
            self._log.close()
            raise

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        *,
        recipe: Recipe,
        vocab_size: int,
        start: Vocabulary | None = None,
        files: Iterable[str | os.PathLike[str] | list[object]] = (),
        **facts: object,
    ) -> Checkpoint:
        """Open or start the checkpoint of a training run; the arguments are its facts.

        Files are identified by path, size and modification time; a list identifies itself.
        """
        return cls(
            path,
            {
                "version": __version__,
                "recipe": dataclasses.asdict(recipe),
                "vocab_size": vocab_size,
                "start": None if start is None else start.fingerprint,
                "files": describe_files(files),
                **facts,
            },
        )

    # ------------------------------------------------------------------ counts

    def counts(self, *, memory: Memory | None = None) -> Counts | None:
        """Return the counts if counting had finished; on disk, if they exceed the memory budget."""
        if not (self.path / _COUNTS).is_dir():
            return None
        self._counts = Counts.load(self.path / _COUNTS, memory=memory)
        return self._counts

    def keep_counts(self, counts: Counts) -> None:
        """Save the counts atomically; if the checkpoint already has counts, they must be equal."""
        if (self.path / _COUNTS).is_dir():
            if counts is not self._counts and counts != Counts.load(self.path / _COUNTS):
                raise ValueError(
                    f"{self.path} is the checkpoint of a run on other counts; pass the same "
                    "counts or another folder, or remove this one"
                )
            return
        _remove_torn_counts(self.path)
        counts.save(self.path / _COUNTS)
        self._counts = counts

    # ------------------------------------------------------------------ merges

    def append(self, merges: Sequence[LearnedMerge]) -> None:
        """Log merges as they are learned."""
        records = []
        for merge in merges:
            record = _RECORD.pack(*merge)
            records.append(record + _CHECK.pack(zlib.crc32(record, self._logged)))
            self._logged += 1
        with naming(self.path / _LOG):
            write_all(self._log.fileno(), b"".join(records))
            if time.monotonic() - self._synced >= _SYNC_SECONDS:
                self._sync()

    def finish(self, stop: Stop, first_tokens: int) -> None:
        """Log that training has finished."""
        if first_tokens > _U64_MAX:  # does not fit; resuming then learns nothing more, and ends
            return
        self.append([(_END, _END, _END, _STOPS.index(stop), first_tokens)])
        self._sync()

    def close(self) -> None:
        """Close the log and release the lock."""
        self._log.close()

    # ------------------------------------------------------------------ opening

    def _compare_or_start(self, facts: dict[str, object]) -> None:
        file = self.path / _FACTS
        facts = json.loads(json.dumps({"format": _FORMAT, **facts}))  # as they will be read
        if file.exists():
            found = _json.parse_object(_json.read_file(file, _json.MAX_BESIDE_BYTES), file)
            changes = list(differences(found, facts))
            if not changes:
                return
            if found.get("format") != _FORMAT or (self.path / _COUNTS).exists():
                raise ValueError(
                    f"{self.path} is the checkpoint of another run: {'; '.join(changes)}; "
                    "pass the same inputs and options or another folder, or remove this one"
                )
            # No work is lost by starting over. The log may have merges: a process may have been
            # killed while it removed the checkpoint.
            self._log.truncate(0)
        write_atomic(file, json.dumps(facts, indent=1).encode(), overwrite=True)

    def _read_log(self) -> None:
        """Read the log, and truncate it at the first incomplete record."""
        self._log.seek(0)
        size = os.fstat(self._log.fileno()).st_size
        if size > _json.MAX_FILE_BYTES:
            raise FormatError(
                f"the log has {size} bytes; expected at most {_json.MAX_FILE_BYTES}",
                path=self.path / _LOG,
            )
        data = read_descriptor(self._log.fileno(), size, _json.MAX_FILE_BYTES)
        if data[: len(_MAGIC)] != _MAGIC:
            if not _MAGIC.startswith(data):
                raise FormatError(
                    f"expected a log of merges, found {data[:16]!r}", path=self.path / _LOG
                )
            self._log.truncate(0)
            with naming(self.path / _LOG):
                write_all(self._log.fileno(), _MAGIC)
            data = b""
        self._read(memoryview(data)[len(_MAGIC) :])
        self._log.truncate(len(_MAGIC) + self._logged * _RECORD_BYTES)

    def _read(self, records: memoryview) -> None:
        whole = len(records) // _RECORD_BYTES * _RECORD_BYTES
        for index, start in enumerate(range(0, whole, _RECORD_BYTES)):
            record = records[start : start + _RECORD.size]
            (check,) = _CHECK.unpack_from(records, start + _RECORD.size)
            if self.stop is not None or zlib.crc32(record, index) != check:
                break
            merge = _RECORD.unpack(record)
            if merge[0] == _END:
                self.stop = _STOPS[merge[3] % len(_STOPS)]
                self.first_tokens = merge[4]
            else:
                self.merges.append(merge)
            self._logged += 1

    def _sync(self) -> None:
        os.fsync(self._log.fileno())
        self._synced = time.monotonic()


def remove_checkpoint(path: str | os.PathLike[str]) -> None:
    """Remove a checkpoint once its result is saved; files that do not belong to it stay."""
    folder = Path(path)
    if (folder / _COUNTS).is_dir():  # renamed, so that a crash cannot leave half of the counts
        (folder / _COUNTS).rename(folder / f".{_COUNTS}.removed")
    _remove_torn_counts(folder)
    settle(folder)
    # The facts go last: without them, the folder is no longer recognized as a checkpoint.
    for file in (folder / _LOG, folder / _FACTS):
        file.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _check_ours(folder: Path) -> None:
    """Raise if a folder is neither empty nor a checkpoint, before anything is written to it."""
    if (folder / _FACTS).exists():
        return
    others = {entry.name for entry in folder.iterdir() if not is_leftover(entry.name)}
    log = folder / _LOG
    if log.is_file() and _MAGIC.startswith(read_start(log, len(_MAGIC) + 1)):
        others.discard(_LOG)  # left by a process killed before it wrote the facts
    if others:
        raise FileExistsError(
            f"{folder} is not empty and not a checkpoint (it has {min(others)!r}); "
            "pass an empty or new folder"
        )


def _remove_torn_counts(folder: Path) -> None:
    """Remove the folders left by a process killed while saving or removing counts."""
    for torn in folder.glob(f".{_COUNTS}.*"):
        shutil.rmtree(torn, ignore_errors=True)


# ---------------------------------------------------------------------------- facts


def describe_files(files: Iterable[str | os.PathLike[str] | list[object]]) -> object:
    """Return each file's path, size and modification time; one digest, if there are many."""
    known: list[list[object]] = []
    for file in files:
        if isinstance(file, list):
            known.append(file)
            continue
        status = Path(file).stat()
        # A file name can be any bytes, but a JSON string cannot.
        name = os.fsencode(Path(file).absolute()).decode("utf-8", "backslashreplace")
        known.append([name, status.st_size, status.st_mtime_ns])
    if len(known) <= _MAX_LISTED_FILES:
        return known
    digest = hashlib.sha256(json.dumps(known).encode()).hexdigest()
    return f"{len(known)} files with digest {digest[:16]}"


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    """Yield in words what differs between two sets of facts."""
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        if name == "files" and isinstance(was, list) and isinstance(now, list):
            yield _file_difference(was, now)
        elif isinstance(was, dict) and isinstance(now, dict):
            yield from differences(was, now)
        else:
            yield f"{name} was {_json.show(was)}, now it is {_json.show(now)}"


def _file_difference(was: list[Any], now: list[Any]) -> str:
    for old, new in zip(was, now, strict=False):
        if not isinstance(old, list) or len(old) != 3:
            return f"a file was {_json.show(old)}, now it is {new[0]!r}"
        if old[0] != new[0]:
            return f"the file was {old[0]!r}, now it is {new[0]!r}"
        if old[1] != new[1]:
            return f"the file {old[0]!r} had {old[1]} bytes, now it has {new[1]}"
        if old[2] != new[2]:
            return f"the file {old[0]!r} has changed"
    return f"there were {len(was)} files, now there are {len(now)}"


def _lock(file: BinaryIO, path: Path) -> None:
    """Raise if another process is using the checkpoint. The lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(
            f"another run is using the checkpoint {path}; wait for it, or pass another folder"
        ) from None
