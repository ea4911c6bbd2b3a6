"""Writes the shards of one split: documents in, files of the format out."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from byteweld._atomic import naming, sync_folder
from byteweld._files import read_regular
from byteweld.dataset._checks import is_plain_path
from byteweld.dataset._manifest import FileEntry, ShardEntry
from byteweld.dataset._shard import LENGTH_BYTES, Shard, ShardName
from byteweld.dataset.formats import Format
from byteweld.errors import ByteweldError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BUFFER_BYTES: Final = 1 << 20
_HASH_BYTES: Final = 1 << 22
_PUBLISHED: Final = "published.json"
_MAX_PUBLISHED_BYTES: Final = 1 << 30
_STATE: Final = (
    *("number", "tokens", "documents", "open_tokens"),
    *("total_tokens", "total_documents", "dropped"),
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a dataset is written, and how."""

    folder: Path
    work: Path  # for shards that are not complete
    format: Format
    dtype: str
    shard_tokens: int | None
    pack: int | None


class SplitWriter:
    """Appends documents to the shard being written, and publishes it when it is full.

    Shards that have been published before, by a run that was interrupted later, are not written
    again: their ids only count.
    """

    def __init__(
        self,
        place: Place,
        name: ShardName,
        published: list[ShardEntry],
        publish: Callable[[ShardEntry], None],
        state: dict[str, int] | None = None,
    ) -> None:
        """Start, or go back to an earlier state of a run that was interrupted."""
        import numpy as np

        self._place = place
        self._name = name
        self._dtype = np.dtype(place.dtype).newbyteorder("<")
        self._published = published  # of this split
        self._publish = publish
        state = dict.fromkeys(_STATE, 0) if state is None else state
        self._number, self._tokens = state["number"], state["tokens"]
        self._documents = state["documents"]
        self._open_tokens = state["open_tokens"]  # of a document, or packed row, that has not ended
        self.total_tokens, self.total_documents = state["total_tokens"], state["total_documents"]
        self.dropped = state["dropped"]
        self._is_full = False  # the shard, in the middle of a document; never between documents
        self._tokens_file: Any = None
        self._lengths_file: Any = None
        self._hash: Any = None
        self._open()

    # ---------------------------------------------------------------- state

    def state(self) -> dict[str, int]:
        """Return where the writer is; only between documents."""
        values = (
            *(self._number, self._tokens, self._documents, self._open_tokens),
            *(self.total_tokens, self.total_documents, self.dropped),
        )
        return dict(zip(_STATE, values, strict=True))

    def sync(self) -> None:
        """Put everything written so far on disk."""
        for file in (self._tokens_file, self._lengths_file):
            if file is not None:
                with naming(file.name):
                    file.flush()
                    os.fdatasync(file.fileno())

    # ---------------------------------------------------------------- documents

    def append(self, ids: NDArray[Any], ends: NDArray[np.int64]) -> None:
        """Append ids; `ends` are the offsets in them where documents end."""
        import numpy as np

        size = self._place.shard_tokens
        start = 0
        ends = ends.astype(np.int64, copy=False)
        if self._is_full:
            # Whether the open document ends with the shard is known only now.
            self._is_full = False
            if len(ends) and ends[0] == 0:
                self._append(ids[:0], ends[:1])
                ends = ends[1:]
            self._finish_shard()
        if self._place.pack is not None:
            first = self._place.pack - self._open_tokens
            ends = np.arange(first, len(ids) + 1, self._place.pack, dtype=np.int64)
        while True:
            stop, here = len(ids), len(ends)
            is_full = False
            # Of documents that end where the shard does, the first is its last one. So it does not
            # matter in which blocks they come.
            if size is not None and self._place.format.splits_documents:
                if self._tokens + stop - start >= size:
                    stop, is_full = start + size - self._tokens, True
                    here = int(np.searchsorted(ends, stop))
                    here += here < len(ends) and bool(ends[here] == stop)
            elif size is not None:
                at = int(np.searchsorted(ends, start + size - self._tokens))
                if at < len(ends):
                    stop, here, is_full = int(ends[at]), at + 1, True
            self._append(ids[start:stop], ends[:here] - start)
            ends = ends[here:]
            start = stop
            if not is_full:
                return
            if self._open_tokens and start == len(ids) and self._place.pack is None:
                self._is_full = True
                return
            self._finish_shard()

    def _append(self, ids: NDArray[Any], ends: NDArray[np.int64]) -> None:
        """Append to the current shard."""
        import numpy as np

        if len(ends):
            lengths = np.diff(ends, prepend=0)
            lengths[0] += self._open_tokens
            self._open_tokens = len(ids) - int(ends[-1])
            self._write_lengths(lengths)
        else:
            self._open_tokens += len(ids)
        self._tokens += len(ids)
        self.total_tokens += len(ids)
        if self._tokens_file is not None:
            data = ids.astype(self._dtype, copy=False).data.cast("B")
            with naming(self._tokens_file.name):
                self._tokens_file.write(data)
            if self._hash is not None:
                self._hash.update(data)

    def _write_lengths(self, lengths: NDArray[np.int64]) -> None:
        self._documents += len(lengths)
        self.total_documents += len(lengths)
        if self._lengths_file is not None:
            with naming(self._lengths_file.name):
                self._lengths_file.write(lengths.astype("<i8").tobytes())

    def drop_rest(self) -> None:
        """Forget the ids that do not fill a packed row."""
        if self._place.pack is not None and self._open_tokens:
            self._tokens -= self._open_tokens
            self.total_tokens -= self._open_tokens
            self.dropped, self._open_tokens = self._open_tokens, 0

    def finish(self) -> None:
        """Publish the last shard."""
        if self.dropped and self._tokens_file is not None:
            with naming(self._tokens_file.name):
                self._tokens_file.flush()
                self._tokens_file.truncate(self._tokens_bytes())
            self._hash = None
        if self._tokens or self._documents or self._number == 0:
            self._finish_shard()

    # ---------------------------------------------------------------- shards

    def _tokens_bytes(self) -> int:
        return self._place.format.header_bytes + self._tokens * self._dtype.itemsize

    def _paths(self) -> tuple[Path, Path]:
        stem = f"{self._name.split}-{self._number:06d}"
        return self._place.work / f"{stem}.tokens", self._place.work / f"{stem}.lengths"

    def _open(self) -> None:
        """Open the files of the current shard, cut back to the current state."""
        self._hash = None
        if self._number < len(self._published):
            self._tokens_file = self._lengths_file = None
            return
        tokens, lengths = self._paths()
        if self._tokens and not tokens.exists():
            self._take_back(tokens)
        self._tokens_file = open_at(tokens, self._tokens_bytes() if self._tokens else 0)
        with closing_on_error(self):
            self._lengths_file = open_at(lengths, self._documents * LENGTH_BYTES)
        if not self._tokens:
            header = bytes(self._place.format.header_bytes)
            self._tokens_file.write(header)
            if self._place.format.is_raw and not header:
                self._hash = hashlib.sha256()

    def _take_back(self, tokens: Path) -> None:
        """Move a main file back that a killed run had moved but not yet published."""
        name = self._place.format.file_names(self._name._replace(number=self._number))[0]
        for folder in (self._place.work / "scratch", self._place.folder):
            if (folder / name).exists():
                (folder / name).rename(tokens)
                return

    def close(self) -> None:
        """Close all files."""
        for file in (self._tokens_file, self._lengths_file):
            if file is not None:
                with contextlib.suppress(OSError):  # it was synced, or is cut back later
                    file.close()
        self._tokens_file = self._lengths_file = None

    def _finish_shard(self) -> None:
        continues = self._place.format.splits_documents and self._open_tokens > 0
        if continues:
            import numpy as np

            self._write_lengths(np.array([self._open_tokens], np.int64))
            self.total_documents -= 1  # it is counted where it ends
            self._open_tokens = 0
        if self._tokens_file is not None:
            self._publish_shard(continues)
        self._number += 1
        self._tokens = self._documents = 0
        self._open()

    def _publish_shard(self, continues: bool) -> None:
        self.sync()
        tokens, lengths = self._paths()
        digest = None if self._hash is None else self._hash.hexdigest()
        self.close()
        name = self._name._replace(number=self._number)
        shard = Shard(
            name=name,
            tokens=tokens,
            lengths=lengths,
            dtype=self._place.dtype,
            header_bytes=self._place.format.header_bytes,
            num_tokens=self._tokens,
            num_documents=self._documents,
            continues=continues,
            pack=self._place.pack,
        )
        names = self._place.format.file_names(name)
        with scratch_folder(self._place.work, names) as scratch:
            with naming(self._place.folder / names[0]):
                self._place.format.write(shard, scratch)
            known = {names[0]: digest} if digest is not None else {}
            files = publish_files(scratch, self._place.folder, names, known)
        entry = ShardEntry(
            split=name.split,
            number=name.number,
            documents=self._documents,
            tokens=self._tokens,
            files=files,
            continues=continues,
        )
        self._published.append(entry)
        self._publish(entry)
        tokens.unlink(missing_ok=True)
        lengths.unlink(missing_ok=True)


def open_at(path: Path, size: int, buffering: int = _BUFFER_BYTES) -> Any:
    """Open a file to append after its first `size` bytes; what follows them is dropped."""
    with naming(path):
        file = path.open("r+b" if path.exists() else "x+b", buffering=buffering)
        found = file.seek(0, os.SEEK_END)
        if found < size:
            file.close()
            raise OSError(
                f"{path} has {found} bytes, but {size} were written before the interruption; "
                "start again with overwrite=True (--force)"
            )
        file.truncate(size)
        file.seek(size)
        return file


@contextlib.contextmanager
def closing_on_error(part: Any) -> Iterator[None]:
    """Close what was opened so far if something else cannot be."""
    try:
        yield
    except BaseException:
        part.close()
        raise


@contextlib.contextmanager
def scratch_folder(work: Path, names: tuple[str, ...]) -> Any:
    """Yield an empty folder for files that are not complete, with the subfolders of these names."""
    import shutil

    scratch = work / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    for name in names:
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
    yield scratch
    shutil.rmtree(scratch, ignore_errors=True)


def publish_files(
    scratch: Path, folder: Path, names: tuple[str, ...], known: dict[str, str]
) -> tuple[FileEntry, ...]:
    """Sync files, move them into the dataset, and return their entries; `known` has digests."""
    entries = []
    for name in names:
        with naming(folder / name), (scratch / name).open("rb+") as file:
            os.fsync(file.fileno())
            digest = known.get(name) or file_digest(file)
            size = os.fstat(file.fileno()).st_size
        entries.append(FileEntry(name=name, size=size, sha256=digest))
    with naming(scratch.parent / _PUBLISHED):
        (scratch.parent / _PUBLISHED).write_text(json.dumps(names), encoding="utf-8")
    for name in reversed(names):  # the main file last
        with naming(folder / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).replace(folder / name)
    for parent in {(folder / name).parent for name in names}:
        sync_folder(parent)
    return tuple(entries)


def published_last(work: Path) -> list[str]:
    """Return the names of the files that were published last; they may not be in the manifest."""
    try:
        names = json.loads(read_regular(work / _PUBLISHED, _MAX_PUBLISHED_BYTES))
    except (OSError, ValueError, RecursionError, ByteweldError):
        return []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return []
    return [name for name in names if is_plain_path(name)]


def file_digest(file: Any) -> str:
    """Return the SHA-256 of an open file, read in blocks."""
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(_HASH_BYTES):
        digest.update(block)
    return digest.hexdigest()
