"""Checkpoint: a folder from which an interrupted training run resumes.

    checkpoint.json   what identifies the run: recipe, size, files
    counts/           the counts, once all files have been read
    merges.log        16 bytes of magic, then 32 bytes per merge, appended as it is learned

The log is append-only. The checksum of each record covers its index, so a torn end is detected and
dropped.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from byteweld._atomic import is_leftover, lock, naming, write_all
from byteweld._extras import arrow
from byteweld._files import open_regular, read_descriptor, read_start
from byteweld._saves import settle, write_atomic
from byteweld.counts import Counts, Memory
from byteweld.errors import FormatError
from byteweld.formats import _json
from byteweld.jobs._changes import changed_facts
from byteweld.training.report import Stop

MergeRecord = tuple[int, int, int, int, int]  # left, right, new, count, tokens it removed

_FACTS = "checkpoint.json"
_COUNTS = "counts"
_LOG = "merges.log"
_FORMAT = "byteweld checkpoint 1"
_MAGIC = b"byteweld merges\n"
_U64_MAX = 2**64 - 1
_RECORD = struct.Struct("<IIIQQ")
_RECORD_BYTES = _RECORD.size + 4  # with its checksum
# The last record of a finished run has this id three times, why it stopped, and the number of
# tokens before the first merge.
_END = 2**32 - 1
_STOPS: tuple[Stop, ...] = get_args(Stop)  # the log stores an index
_SYNC_SECONDS = 1.0


class Checkpoint:
    """Opens the checkpoint in a folder, or starts one there.

    `facts` are everything that the result depends on, by name, as JSON values. If those of the
    checkpoint are different, raises a ValueError that lists the differences.
    """

    def __init__(self, path: str | os.PathLike[str], facts: Mapping[str, object]) -> None:
        self.path = Path(path)
        self.merges: list[MergeRecord] = []  # the merges in the log when it was opened
        self.stop: Stop | None = None  # why the training stopped; None if it had not finished
        self.first_tokens = 0  # tokens before the first merge, if the training had finished
        self._logged = 0
        self._synced = time.monotonic()
        arrow()  # now, not after the work; and so that a memory budget includes it
        self.path.mkdir(parents=True, exist_ok=True)
        _check_ours(self.path)
        is_new = not os.path.lexists(self.path / _LOG)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        self._log = os.fdopen(open_regular(self.path / _LOG, flags), "a+b", buffering=0)
        try:
            # First, or the facts of a running training could change.
            if lock(self._log.fileno()) is False:
                raise ValueError(
                    f"another run is using the checkpoint {self.path}; wait for it, or pass "
                    "another folder"
                )
            self._compare_or_start(facts)
            self._read_log()
        except BaseException:
            if is_new and not os.fstat(self._log.fileno()).st_size:
                (self.path / _LOG).unlink(missing_ok=True)
            self._log.close()
            raise

    # ------------------------------------------------------------------ counts

    def counts(self, *, memory: Memory | None = None) -> Counts | None:
        """Return the counts if counting had finished; on disk, if they exceed the memory budget."""
        saved = self.path / _COUNTS
        return Counts.load(saved, memory=memory) if saved.is_dir() else None

    def keep_counts(self, counts: Counts) -> None:
        """Save the counts atomically; if the checkpoint already has counts, they must be equal."""
        saved = self.counts()
        if saved is None:
            _remove_torn_counts(self.path)
            counts.save(self.path / _COUNTS)
        elif counts != saved:
            raise ValueError(
                f"{self.path} is the checkpoint of a run on other counts; pass the same "
                "counts or another folder, or remove this one"
            )

    # ------------------------------------------------------------------ merges

    def append(self, merges: Sequence[MergeRecord]) -> None:
        """Log merges as they are learned."""
        first = self._logged
        records = [_sealed(_RECORD.pack(*merge), at) for at, merge in enumerate(merges, first)]
        self._logged += len(records)
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

    def _sync(self) -> None:
        os.fsync(self._log.fileno())
        self._synced = time.monotonic()

    # ------------------------------------------------------------------ opening

    def _compare_or_start(self, given: Mapping[str, object]) -> None:
        file = self.path / _FACTS
        facts = json.loads(json.dumps({"format": _FORMAT, **given}))  # as they will be read
        if file.exists():
            found = _json.parse_object(_json.read_file(file, _json.MAX_BESIDE_BYTES), file)
            changes = changed_facts(found, facts)
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
        file, size = self.path / _LOG, os.fstat(self._log.fileno()).st_size
        if size > _json.MAX_FILE_BYTES:
            raise FormatError(
                f"the log has {size} bytes; expected at most {_json.MAX_FILE_BYTES}", path=file
            )
        self._log.seek(0)
        data = read_descriptor(self._log.fileno(), size, _json.MAX_FILE_BYTES)
        if not data.startswith(_MAGIC):
            if not _MAGIC.startswith(data):
                raise FormatError(f"expected a log of merges, found {data[:16]!r}", path=file)
            self._log.truncate(0)
            with naming(file):
                write_all(self._log.fileno(), _MAGIC)
        for start in range(len(_MAGIC), len(data), _RECORD_BYTES):
            sealed = data[start : start + _RECORD_BYTES]
            record = sealed[: _RECORD.size]
            if self.stop is not None or sealed != _sealed(record, self._logged):
                break
            merge = _RECORD.unpack(record)
            if merge[0] == _END:
                self.stop = _STOPS[merge[3] % len(_STOPS)]
                self.first_tokens = merge[4]
            else:
                self.merges.append(merge)
            self._logged += 1
        self._log.truncate(len(_MAGIC) + self._logged * _RECORD_BYTES)


def _sealed(record: bytes, index: int) -> bytes:
    return record + zlib.crc32(record, index).to_bytes(4, "little")


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
