"""The tasks of a dataset: encode a slice, group its documents, shuffle a bucket, write a shard.

Each reads and writes files of the work folder, or publishes a shard. It may run more than once, and
gives the same bytes each time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from byteweld._folders import Folder, LocalFolder, link_or_copy, read_blocks
from byteweld.corpus import Corpus, File, digest_file
from byteweld.corpus._parts import FilePart
from byteweld.corpus._slices import Slice, on_slice
from byteweld.dataset import _order
from byteweld.dataset._document_files import SUFFIXES, DocumentFiles, batches, in_order
from byteweld.dataset._encoding import DocumentEncoding, Encoded
from byteweld.dataset._job import ANNOUNCED
from byteweld.dataset._manifest import FileEntry, ShardEntry
from byteweld.dataset._order import Targets
from byteweld.dataset._plan import Piece, ShardPlan
from byteweld.dataset._shard import LENGTH_BYTES, Shard, ShardName, mapped
from byteweld.dataset.formats import FORMATS
from byteweld.jobs._work import Stage, Work, write_record
from byteweld.sources import Sources

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Group(NamedTuple):
    """The documents of a slice that belong to one target."""

    target: int
    documents: int
    tokens: int


SLICES: Final = Stage("slices", Encoded)
DIGESTS: Final = Stage("digests", tuple[int, str] | None)  # of divided files: size and XXH3-128
GROUPS: Final = Stage("groups", tuple[Group, ...])
BUCKETS: Final = Stage("buckets", tuple[int, int])  # documents and tokens
_BATCH_DOCUMENTS: Final = 1 << 20


def stem_of(stage: Stage, number: int) -> str:
    """Return the name of the files of a task's documents, without suffixes."""
    return f"{stage.name}/{number:07d}"


def shard_stage(split: str) -> Stage:
    """Return the stage that has the shards of a split."""
    return Stage(f"shards-{split}", ShardEntry)


@dataclass(frozen=True)
class Storage:
    """Where tasks keep documents, and how."""

    work: Work
    dtype: str
    header_bytes: int  # before the ids; for the format
    is_hashed: bool  # the ids alone are a file of the format, whose SHA-256 is needed

    @property
    def kind(self) -> np.dtype[Any]:
        """The dtype of ids on disk."""
        import numpy as np

        return np.dtype(self.dtype).newbyteorder("<")

    @property
    def local_folder(self) -> Path:
        """The work folder as a path; only if it is local."""
        assert isinstance(self.work.folder, LocalFolder)
        return self.work.folder.path

    def remove(self, piece: Piece) -> None:
        """Remove the files of a piece."""
        for suffix in SUFFIXES:
            self.work.folder.remove(piece.stem + suffix)

    def create(self, scratch: Path) -> DocumentFiles:
        """Open files for documents in a scratch folder."""
        return DocumentFiles(scratch / "documents", self.kind, self.header_bytes)

    def named(self, stage: Stage, number: int, files: DocumentFiles) -> dict[str, Path]:
        """Return the files of a task's documents by their names in the work folder."""
        stem = stem_of(stage, number)
        return {stem + suffix: path for suffix, path in zip(SUFFIXES, files.paths, strict=True)}

    def lengths(self, piece: Piece) -> NDArray[np.int64]:
        """Return the lengths of the documents of a piece."""
        import numpy as np

        start = piece.first_document * LENGTH_BYTES
        stop = start + piece.documents * LENGTH_BYTES
        return np.frombuffer(self.work.folder.read(f"{piece.stem}.lengths", start, stop), "<i8")

    def blocks(self, piece: Piece) -> Iterator[bytes]:
        """Yield the ids of a piece, some at a time."""
        size = self.kind.itemsize
        start = self.header_bytes + piece.first_token * size
        stop = start + piece.tokens * size
        return read_blocks(self.work.folder, f"{piece.stem}.tokens", start, stop)


# ---------------------------------------------------------------------- slices


def encode_slice(
    storage: Storage,
    encoding: DocumentEncoding,
    how: Corpus,
    num_threads: int | None,
    part: Slice,
    scratch: Path,
) -> tuple[Encoded, dict[str, Path]]:
    """Encode the documents of a slice; `how` says how files are read."""
    import numpy as np

    def encode(corpus: Corpus) -> tuple[Encoded, dict[str, Path]]:
        encoded = Encoded(is_divided=isinstance(part.files[0], FilePart))
        with storage.create(scratch) as files:

            def receive(
                ids: Any, ends: Any, _open: bool, text_bytes: int, _stored: int, *rest: Any
            ) -> None:
                specials, _, events = rest
                files.append(ids, ends.astype(np.int64))
                encoded.add(len(ids), len(ends), text_bytes, specials)
                encoded.note(events, part.first_file)

            if corpus.files:
                sources = Sources(corpus=corpus)
                last = encoding.encode(
                    sources, receive, start=part.start, num_threads=num_threads, unit="slice"
                )
                encoded.note(last, part.first_file)
        return encoded, storage.named(SLICES, part.number, files)

    return on_slice(how, part, encode)


class DividedFile(NamedTuple):
    """A file of which each task reads only a part."""

    number: int
    file: File

    def __str__(self) -> str:
        return str(self.file)


def digest_divided(
    is_skipped: bool, item: DividedFile, scratch: Path
) -> tuple[tuple[int, str] | None, dict[str, Path]]:
    """Read a divided file once more, for its size and digest; None if it may be skipped, and is."""
    try:
        return digest_file(item.file), {}
    except (FileNotFoundError, PermissionError):
        if not is_skipped:
            raise
        return None, {}


# ---------------------------------------------------------------------- groups and buckets


class Numbered(NamedTuple):
    """A slice, and the number of its first document in the corpus."""

    number: int
    first_document: int
    documents: int
    tokens: int

    def __str__(self) -> str:
        return f"the documents of slice {self.number:,}"


def group_slice(
    storage: Storage, targets: Targets, item: Numbered, scratch: Path
) -> tuple[tuple[Group, ...], dict[str, Path]]:
    """Put the documents of a slice in groups, one for each target that has any."""
    import numpy as np

    whole = Piece(stem_of(SLICES, item.number), 0, item.tokens, 0, item.documents)
    lengths = storage.lengths(whole)
    stop = item.first_document + item.documents
    target_of = targets.of(np.arange(item.first_document, stop, dtype=np.uint64))
    order = np.argsort(target_of, kind="stable")
    starts = (np.cumsum(lengths) - lengths)[order]
    lengths = lengths[order]
    groups, firsts = np.unique(target_of[order], return_index=True)
    parts = np.split(lengths, firsts[1:]) if len(groups) else []
    found = [
        Group(int(group), len(part), int(part.sum()))
        for group, part in zip(groups, parts, strict=True)
    ]
    with (
        storage.work.folder.local(f"{whole.stem}.tokens") as tokens,
        storage.create(scratch) as files,
    ):
        ids = mapped(tokens, storage.dtype, item.tokens, storage.header_bytes)
        for some in batches(lengths):
            files.append(_order.gather(ids, starts[some], lengths[some]), np.cumsum(lengths[some]))
    return tuple(found), storage.named(GROUPS, item.number, files)


class Bucket(NamedTuple):
    """A bucket, and the pieces of the corpus that belong to it."""

    number: int
    pieces: tuple[Piece, ...]

    def __str__(self) -> str:
        return f"bucket {self.number}"


def shuffle_bucket(
    storage: Storage, seed: int, item: Bucket, scratch: Path
) -> tuple[tuple[int, int], dict[str, Path]]:
    """Put the documents of a bucket in random order; return their number and their tokens."""
    import numpy as np

    stem = scratch / "gathered"
    with DocumentFiles(stem, storage.kind) as gathered:
        for piece in item.pieces:
            done, ends = 0, np.cumsum(storage.lengths(piece))
            for block in storage.blocks(piece):
                ids = np.frombuffer(block, storage.kind)
                first, last = np.searchsorted(ends, [done, done + len(ids)], side="right")
                # Documents without ids at the start come with the first block.
                gathered.append(ids, ends[int(first) if done else 0 : int(last)] - done)
                done += len(ids)
            if not done:
                gathered.append(np.zeros(0, np.uint32), ends)
    tokens, documents = gathered.tokens, gathered.documents
    order = _order.order_in_bucket(item.number, documents, seed)
    with storage.create(scratch) as shuffled:
        for ids, ends in in_order(stem, storage.kind, 0, tokens, documents, order):
            shuffled.append(ids, ends)
    return (documents, tokens), storage.named(BUCKETS, item.number, shuffled)


# ---------------------------------------------------------------------- shards


@dataclass(frozen=True)
class WriteShard:
    """Writes a shard in its format and publishes its files; returns its part of the manifest."""

    storage: Storage
    out: Folder
    format: str
    name: ShardName
    pack: int | None

    def __call__(self, plan: ShardPlan) -> tuple[ShardPlan, ShardEntry]:
        work = self.storage.work
        work.check()
        format = FORMATS[self.format]
        name = self.name._replace(split=plan.split, number=plan.number)
        names = format.file_names(name)
        with work.folder.scratch() as scratch:
            tokens, digest = self._tokens(plan, scratch)
            shard = Shard(
                name=name,
                tokens=tokens,
                lengths=self._lengths(plan, scratch),
                dtype=self.storage.dtype,
                header_bytes=self.storage.header_bytes,
                num_tokens=plan.tokens,
                num_documents=plan.documents,
                continues=plan.continues,
                pack=self.pack,
            )
            made = scratch / "files"
            for file in names:
                (made / file).parent.mkdir(parents=True, exist_ok=True)
            format.write(shard, made)
            known = {names[0]: digest}
            files = publish(work, made, self.out, names, known)
        entry = ShardEntry(
            split=plan.split,
            number=plan.number,
            documents=plan.documents,
            tokens=plan.tokens,
            files=files,
            continues=plan.continues,
        )
        work.put(shard_stage(plan.split), plan.number, entry, sync=True)
        return plan, entry

    def _tokens(self, plan: ShardPlan, scratch: Path) -> tuple[Path, str | None]:
        """Return a file with the ids of the shard, which may be changed, and their SHA-256."""
        path, header = scratch / "shard.tokens", self.storage.header_bytes
        first = plan.pieces[0] if len(plan.pieces) == 1 else None
        size = header + plan.tokens * self.storage.kind.itemsize
        if (
            first is not None
            and first.first_token == 0
            and self._link(f"{first.stem}.tokens", size, path)
        ):
            return path, first.digest
        digest = hashlib.sha256() if self.storage.is_hashed else None
        with path.open("xb") as file:
            file.write(bytes(header))
            for piece in plan.pieces:
                for block in self.storage.blocks(piece):
                    file.write(block)
                    _start_writing(file)
                    if digest is not None:
                        digest.update(block)
        return path, None if digest is None else digest.hexdigest()

    def _lengths(self, plan: ShardPlan, scratch: Path) -> Path:
        """Return a file with the lengths of the documents, or rows, of the shard."""
        import numpy as np

        path, left, first_length = scratch / "shard.lengths", plan.tokens, plan.first_length
        if plan.rows is None and len(plan.pieces) == 1 and not plan.continues:
            piece, size = plan.pieces[0], plan.documents * LENGTH_BYTES
            is_whole = piece.first_document == 0 and first_length is None
            if is_whole and self._link(f"{piece.stem}.lengths", size, path):
                return path
        with path.open("xb") as file:
            for first in range(0, plan.rows or 0, _BATCH_DOCUMENTS):
                count = min(_BATCH_DOCUMENTS, (plan.rows or 0) - first)
                file.write(np.full(count, self.pack, "<i8").tobytes())
            for piece in plan.pieces if plan.rows is None else ():
                for first in range(0, piece.documents, _BATCH_DOCUMENTS):
                    count = min(_BATCH_DOCUMENTS, piece.documents - first)
                    lengths = self.storage.lengths(piece.part(0, 0, first, count))
                    if first_length is not None:
                        lengths = lengths.copy()
                        lengths[0], first_length = first_length, None
                    left -= int(lengths.sum())
                    file.write(lengths.astype("<i8").tobytes())
            if plan.continues:
                file.write(np.array([left], "<i8").tobytes())
        return path

    def _link(self, name: str, size: int, path: Path) -> bool:
        """Link a whole file of the work folder instead of copying it, if that is possible."""
        folder = self.storage.work.folder
        if not isinstance(folder, LocalFolder) or folder.size(name) != size:
            return False
        link_or_copy(folder.path / name, path)
        return True


def _start_writing(file: Any) -> None:
    """Have the system begin to write a file to disk, where it can: syncing it then takes less."""
    file.flush()
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def publish(
    work: Work, made: Path, out: Folder, names: tuple[str, ...], known: Mapping[str, str | None]
) -> tuple[FileEntry, ...]:
    """Move files to the dataset, the first one last, and return their entries."""
    entries = []
    for name in names:
        digest = known.get(name) or _digest(made / name)
        entries.append(FileEntry(name=name, size=(made / name).stat().st_size, sha256=digest))
    # First, so that starting over finds them, even if this process is killed.
    write_record(work.folder, f"{ANNOUNCED}/{names[0].replace('/', '-')}.json", names)
    for name in reversed(names):
        out.put(made / name, name, sync=True)
    return tuple(entries)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
