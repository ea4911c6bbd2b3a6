"""Checkpoint: a folder from which a training that was killed goes on.

    checkpoint.json   what is trained: recipe, size, files; another training is refused
    counts/           the counts, once all files are read
    merges.log        16 bytes of magic, then 32 for each merge as it is learned

The log is only ever appended to. Each record holds a check of itself and its place, so that a torn
end is seen and dropped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import shutil
import struct
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from byteweld._files import write_atomic
from byteweld._native import __version__
from byteweld.counts import Counts, Memory
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
_RECORD = struct.Struct("<IIIQQ")
_CHECK = struct.Struct("<I")
_RECORD_BYTES = _RECORD.size + _CHECK.size
# The record that says that the training is done: ids that no merge has, why it stopped, and how
# many tokens the corpus had before the first merge.
_END = 2**32 - 1
_STOPS: tuple[Stop, ...] = ("size", "no pairs", "min frequency")
_SYNC_SECONDS = 1.0
# More files than this are remembered by one digest instead of one by one.
_MANY_FILES = 10_000


class Checkpoint:
    """Opens the checkpoint in a folder, or starts one there.

    `facts` are everything that the result depends on, by name, as JSON has it. If the folder holds
    the checkpoint of a training with other facts, that is a ValueError which says what differs.
    """

    def __init__(self, path: str | os.PathLike[str], facts: Mapping[str, object]) -> None:
        self.path = Path(path)
        self.merges: list[LearnedMerge] = []  # those that the log held when it was opened
        self.stop: Stop | None = None  # why it stopped, if the training was done
        self.first_tokens = 0  # then also how many tokens the corpus had before the first merge
        self._counts: Counts | None = None
        self._logged = 0
        self._synced = time.monotonic()
        _check_arrow()
        self.path.mkdir(parents=True, exist_ok=True)
        self._compare_or_start(dict(facts))
        self._log = self._open_log()

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        *,
        recipe: Recipe,
        vocab_size: int,
        start: Vocabulary | None = None,
        files: Iterable[str | os.PathLike[str]] = (),
        **facts: object,
    ) -> Checkpoint:
        """The checkpoint of a training: recipe, size and files are what the result depends on.

        Files are known again by their names, sizes and times of change.
        """
        return cls(
            path,
            {
                "version": __version__,
                "recipe": dataclasses.asdict(recipe),
                "vocab_size": vocab_size,
                "start": None if start is None else start.fingerprint,
                "files": _describe(files),
                **facts,
            },
        )

    # ------------------------------------------------------------------ counts

    def counts(self, *, memory: Memory | None = None) -> Counts | None:
        """The counts, if the counting was done; within a budget of memory, they stay on disk."""
        if not (self.path / _COUNTS).is_dir():
            return None
        self._counts = Counts.load(self.path / _COUNTS, memory=memory)
        return self._counts

    def keep_counts(self, counts: Counts) -> None:
        """Save the counts, whole or not at all; if there are some already, they must be the same.

        (Those that `counts` gave are the same without a look.)
        """
        if (self.path / _COUNTS).is_dir():
            if counts is not self._counts and counts != Counts.load(self.path / _COUNTS):
                raise ValueError(
                    f"{self.path} is the checkpoint of a training from other counts; give the "
                    "same, or another folder, or remove this one"
                )
            return
        self._remove_torn_counts()
        counts.save(self.path / _COUNTS)
        self._counts = counts

    # ------------------------------------------------------------------ merges

    def append(self, merges: Sequence[LearnedMerge]) -> None:
        """Write down merges as they are learned."""
        records = []
        for merge in merges:
            record = _RECORD.pack(*merge)
            records.append(record + _CHECK.pack(zlib.crc32(record, self._logged)))
            self._logged += 1
        data = b"".join(records)
        if self._log.write(data) != len(data):
            raise OSError(f"{self.path / _LOG}: could not be written whole; is the disk full?")
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            self._sync()

    def finish(self, stop: Stop, first_tokens: int) -> None:
        """Write down that the training is done."""
        self.append([(_END, _END, _END, _STOPS.index(stop), first_tokens)])
        self._sync()

    def close(self) -> None:
        """Let go of the folder; what is in it stays."""
        self._log.close()

    def remove(self) -> None:
        """Remove the checkpoint: its result is safe elsewhere."""
        self.close()
        self._remove_torn_counts()
        shutil.rmtree(self.path / _COUNTS, ignore_errors=True)
        # The facts go last: without them, what is left would be a folder of nobody's.
        for file in (*self._torn_facts(), self.path / _LOG, self.path / _FACTS):
            file.unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def _remove_torn_counts(self) -> None:
        """Remove what a kill in the middle of saving left: folders under other names."""
        for folder in self.path.glob(f".{_COUNTS}.*"):
            shutil.rmtree(folder, ignore_errors=True)

    # ------------------------------------------------------------------ opening

    def _compare_or_start(self, facts: dict[str, object]) -> None:
        file = self.path / _FACTS
        facts = json.loads(json.dumps({"format": _FORMAT, **facts}))  # as they will be read
        if file.exists():
            found = _json.parse_object(_json.read_file(file), file)
            differences = list(_differences(found, facts))
            is_empty = found.get("format") == _FORMAT and not (self.path / _COUNTS).exists()
            if differences and is_empty:
                write_atomic(file, json.dumps(facts, indent=1).encode(), overwrite=True)
            elif differences:
                raise ValueError(
                    f"{self.path} is the checkpoint of another training: {'; '.join(differences)}; "
                    "give the same inputs and options, or another folder, or remove this one"
                )
            return  # one without counts has nothing to lose: it is started anew
        others = {entry.name for entry in self.path.iterdir()}
        others -= {file.name for file in self._torn_facts()}
        if others:
            raise FileExistsError(
                f"{self.path} is not empty and holds no checkpoint (there is {min(others)!r}); "
                "give a folder of its own"
            )
        write_atomic(file, json.dumps(facts, indent=1).encode())

    def _torn_facts(self) -> list[Path]:
        """The temporary files that a kill may leave while the facts are written."""
        return list(self.path.glob(f".{_FACTS}.*"))

    def _open_log(self) -> BinaryIO:
        """Read the log up to its first record that is not whole, cut it there, and go on."""
        file = (self.path / _LOG).open("a+b", buffering=0)
        try:
            _lock(file, self.path)
            file.seek(0)
            data = file.read()
            if data[: len(_MAGIC)] != _MAGIC:
                if not _MAGIC.startswith(data):
                    raise FormatError(
                        f"expected a log of merges, found {data[:16]!r}", path=self.path / _LOG
                    )
                file.truncate(0)
                file.write(_MAGIC)
                data = b""
            self._read(memoryview(data)[len(_MAGIC) :])
            file.truncate(len(_MAGIC) + self._logged * _RECORD_BYTES)
        except BaseException:
            file.close()
            raise
        return file

    def _read(self, records: memoryview) -> None:
        whole = len(records) // _RECORD_BYTES * _RECORD_BYTES
        for place, start in enumerate(range(0, whole, _RECORD_BYTES)):
            record = records[start : start + _RECORD.size]
            (check,) = _CHECK.unpack_from(records, start + _RECORD.size)
            if self.stop is not None or zlib.crc32(record, place) != check:
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


# ---------------------------------------------------------------------------- facts


def _describe(files: Iterable[str | os.PathLike[str]]) -> object:
    known: list[list[object]] = []
    for file in files:
        status = Path(file).stat()
        # A name may be any bytes, but JSON holds text.
        name = os.fsencode(file).decode("utf-8", "backslashreplace")
        known.append([name, status.st_size, status.st_mtime_ns])
    if len(known) <= _MANY_FILES:
        return known
    digest = hashlib.sha256(json.dumps(known).encode()).hexdigest()
    return f"{len(known)} files with digest {digest[:16]}"


def _differences(old: Mapping[str, object], new: Mapping[str, object]) -> Iterable[str]:
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        if name == "files" and isinstance(was, list) and isinstance(now, list):
            yield _file_difference(was, now)
        elif isinstance(was, dict) and isinstance(now, dict):
            yield from _differences(was, now)
        else:
            yield f"{name} was {_json.show(was)}, now it is {_json.show(now)}"


def _file_difference(was: list[Any], now: list[Any]) -> str:
    for old, new in zip(was, now, strict=False):
        if old[0] != new[0]:
            return f"there was the file {old[0]!r}, now there is {new[0]!r}"
        if old[1] != new[1]:
            return f"the file {old[0]!r} had {old[1]} bytes, now it has {new[1]}"
        if old[2] != new[2]:
            return f"the file {old[0]!r} was changed meanwhile"
    return f"there were {len(was)} files, now there are {len(now)}"


def _check_arrow() -> None:
    """Find out before the work what would only show after it."""
    try:
        importlib.import_module("pyarrow.parquet")  # now, so that a memory budget knows of it
    except ImportError as error:
        raise ImportError(
            "a checkpoint holds counts, which are Parquet files; "
            "install pyarrow with: pip install 'byteweld[arrow]'"
        ) from error


def _lock(file: BinaryIO, path: Path) -> None:
    """Refuse a checkpoint that another process is using. The lock goes with the process."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(
            f"another training is using the checkpoint {path}; wait for it, or give another folder"
        ) from None
