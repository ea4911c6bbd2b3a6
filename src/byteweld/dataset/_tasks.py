"""The tasks of a dataset: encode a slice, group its documents, shuffle a bucket, write a shard.

Each reads and writes files of the work folder, or publishes a shard. It may run more than once, and
gives the same bytes each time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from byteweld._folders import Folder
from byteweld.corpus import Corpus, File, digest_file
from byteweld.corpus._parts import FilePart
from byteweld.corpus._slices import Slice, slice_corpus, with_lines
from byteweld.dataset import _order
from byteweld.dataset._document_files import DocumentFiles
from byteweld.dataset._encoding import encode_blocks
from byteweld.dataset._manifest import MAX_LISTED_SKIPS, FileEntry, ShardEntry
from byteweld.dataset._pieces import Piece, ShardPlan
from byteweld.dataset._shard import LENGTH_BYTES, Shard, ShardName, mapped
from byteweld.dataset._writer import file_digest
from byteweld.dataset.formats import FORMATS
from byteweld.dataset.options import Plan
from byteweld.errors import CorpusError
from byteweld.jobs._work import Work
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SLICES: Final = "slices"
DIGESTS: Final = "digests"
GROUPS: Final = "groups"
BUCKETS: Final = "buckets"
SHARDS: Final = "shards"
_BATCH_TOKENS: Final = 1 << 22


def _put(work: Work, stage: str, number: int, result: Any, files: DocumentFiles) -> Any:
    """Move the files of documents to the work folder, and note the result."""
    files.close()
    named = {f"{stage}/{number:07d}{path.suffix}": path for path in files.paths}
    return work.put(stage, number, result, named)


# ---------------------------------------------------------------------- slices


@dataclass(frozen=True)
class EncodeSlice:
    """Encodes the documents of a slice, and returns what is to be said of them."""

    work: Work
    tok: Tokenizer
    corpus: Corpus  # how it is read
    dtype: str
    special_text: str
    before: list[int]
    after: list[int]
    marks_empty: bool
    num_threads: int | None

    @classmethod
    def of(
        cls, work: Work, tok: Tokenizer, corpus: Corpus, plan: Plan, num_threads: int | None
    ) -> EncodeSlice:
        """Return the task for a corpus."""
        return cls(
            work,
            tok,
            dataclasses.replace(corpus, files=(), skipped_files={}),
            plan.options.dtype or "",
            plan.options.special_text,
            plan.before,
            plan.after,
            plan.format.marks_empty,
            num_threads,
        )

    def __call__(self, part: Slice) -> tuple[int, Any]:
        self.work.check()
        corpus = slice_corpus(self.corpus, part)
        try:
            return part.number, self._encode(part, corpus)
        except CorpusError:
            # Once more, with the lines of the file instead of those of the slice in the message.
            numbered = with_lines(corpus)
            if numbered == corpus:
                raise
        return part.number, self._encode(part, numbered)

    def _encode(self, part: Slice, corpus: Corpus) -> Any:
        import numpy as np

        totals = {"text_bytes": 0, "skipped": 0}
        specials: Counter[str] = Counter()
        finished: list[Any] = []
        skips: list[Any] = []

        def note(events: Any) -> None:
            finished.extend(
                (part.first_file + file, size, None if digest is None else f"{digest:032x}", *rest)
                for file, size, digest, *rest in events[0]
            )
            room = MAX_LISTED_SKIPS - len(skips)
            skips.extend((part.first_file + file, *rest) for file, *rest in events[1][:room])
            totals["skipped"] += events[2]

        with self.work.folder.scratch() as scratch:
            kind = np.dtype(self.dtype).newbyteorder("<")
            files = DocumentFiles(scratch / "documents", kind)

            def receive(ids: Any, ends: Any, *rest: Any) -> None:
                _, text_bytes, _, special, _, events = rest
                files.append(ids, ends.astype(np.int64))
                totals["text_bytes"] += text_bytes
                specials.update(special)
                note(events)

            try:
                if corpus.files:
                    last = encode_blocks(
                        Sources(corpus=corpus),
                        self.tok,
                        special_text=self.special_text,
                        prefix=self.before,
                        suffix=self.after,
                        marks_empty=self.marks_empty,
                        num_threads=self.num_threads,
                        receive=receive,
                        progress=lambda: None,
                        unit="slice",
                    )
                    note(last)
                result = {
                    "documents": files.documents,
                    "tokens": files.tokens,
                    **totals,
                    "special_text": specials,
                    "skips": skips,
                    "finished": finished,
                    "is_divided": isinstance(part.files[0], FilePart),
                }
                return _put(self.work, SLICES, part.number, result, files)
            finally:
                files.close()


class DividedFile(NamedTuple):
    """A file of which each task reads only a part."""

    number: int
    file: File

    def __str__(self) -> str:
        return str(self.file)


@dataclass(frozen=True)
class DigestFile:
    """Reads a divided file once more, for its size and its digest; None if it cannot be opened."""

    work: Work
    is_skipped: bool  # a file that cannot be opened

    def __call__(self, item: DividedFile) -> tuple[int, Any]:
        self.work.check()
        result: Any = None
        try:
            result = digest_file(item.file)
        except (FileNotFoundError, PermissionError):
            if not self.is_skipped:
                raise
        return item.number, self.work.put(DIGESTS, item.number, result, {})


# ---------------------------------------------------------------------- groups and buckets


class Numbered(NamedTuple):
    """A slice, and the number of its first document in the corpus."""

    slice: int
    first_number: int
    documents: int
    tokens: int

    def __str__(self) -> str:
        return f"the documents of slice {self.slice:,}"


@dataclass(frozen=True)
class GroupSlice:
    """Puts the documents of a slice in groups, one for each split or bucket of a split.

    Returns the (group, documents, tokens) of those that are not empty.
    """

    work: Work
    dtype: str
    seed: int
    validation: float
    num_buckets: int | None  # None: documents are not shuffled

    def __call__(self, item: Numbered) -> tuple[int, Any]:
        import numpy as np

        self.work.check()
        folder = self.work.folder
        stem = f"{SLICES}/{item.slice:07d}"
        lengths = read_lengths(folder, stem, 0, item.documents)
        numbers = np.arange(item.first_number, item.first_number + item.documents, dtype=np.uint64)
        targets = np.zeros(item.documents, np.int64)
        if self.validation:
            targets += _order.is_validation(numbers, self.seed, self.validation)
        if self.num_buckets is not None:
            buckets = _order.bucket_of(numbers, self.seed, self.num_buckets)
            targets = targets * self.num_buckets + buckets
        order = np.argsort(targets, kind="stable")
        starts = (np.cumsum(lengths) - lengths)[order]
        lengths, targets = lengths[order], targets[order]
        groups, firsts = np.unique(targets, return_index=True)
        parts = np.split(lengths, firsts[1:]) if len(groups) else []
        result = [
            (int(group), len(part), int(part.sum()))
            for group, part in zip(groups, parts, strict=True)
        ]
        kind = np.dtype(self.dtype).newbyteorder("<")
        with folder.scratch() as scratch, folder.local(f"{stem}.tokens") as tokens:
            files = DocumentFiles(scratch / "documents", kind)
            try:
                ids = mapped(tokens, self.dtype, item.tokens, 0)
                for some in _batches(lengths):
                    files.append(
                        _order.gather(ids, starts[some], lengths[some]), np.cumsum(lengths[some])
                    )
                return item.slice, _put(self.work, GROUPS, item.slice, result, files)
            finally:
                files.close()


class Bucket(NamedTuple):
    """A bucket, and the pieces of all slices that belong to it."""

    number: int
    pieces: tuple[Piece, ...]

    def __str__(self) -> str:
        return f"bucket {self.number}"


@dataclass(frozen=True)
class ShuffleBucket:
    """Puts the documents of a bucket in random order."""

    work: Work
    dtype: str
    seed: int

    def __call__(self, item: Bucket) -> tuple[int, Any]:
        import numpy as np

        self.work.check()
        kind = np.dtype(self.dtype).newbyteorder("<")
        with self.work.folder.scratch() as scratch:
            gathered = DocumentFiles(scratch / "gathered", kind)
            shuffled = DocumentFiles(scratch / "documents", kind)
            try:
                for piece in item.pieces:
                    lengths = piece_lengths(self.work.folder, piece)
                    ends = np.cumsum(lengths)
                    blocks = piece_blocks(self.work.folder, piece, kind)
                    _append_blocks(gathered, blocks, ends)
                gathered.close()
                order = _order.order_in_bucket(item.number, gathered.documents, self.seed)
                for ids, ends in gathered.batches(order, 0):
                    shuffled.append(ids, ends)
                result = [shuffled.documents, shuffled.tokens]
                return item.number, _put(self.work, BUCKETS, item.number, result, shuffled)
            finally:
                gathered.close()
                shuffled.close()


def _append_blocks(
    files: DocumentFiles, blocks: Iterator[NDArray[Any]], ends: NDArray[np.int64]
) -> None:
    """Append documents whose ids come in blocks."""
    import numpy as np

    done = 0
    for ids in blocks:
        first, last = np.searchsorted(ends, [done, done + len(ids)], side="right")
        # Documents without ids at the start come with the first block.
        here = ends[: int(last)] if done == 0 else ends[int(first) : int(last)]
        files.append(ids, here - done)
        done += len(ids)
    if done == 0:
        files.append(np.empty(0, np.uint32), ends)


def _batches(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Yield ranges of documents with about as many ids each, or one longer document."""
    import numpy as np

    ends = np.cumsum(lengths)
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BATCH_TOKENS, side="right"))
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop


def read_lengths(folder: Folder, stem: str, first: int, count: int) -> NDArray[np.int64]:
    """Return the lengths of some documents of a task."""
    import numpy as np

    first, stop = first * LENGTH_BYTES, (first + count) * LENGTH_BYTES
    return np.frombuffer(folder.read(f"{stem}.lengths", first, stop), "<i8")


def piece_lengths(folder: Folder, piece: Piece) -> NDArray[np.int64]:
    """Return the lengths of the documents of a piece."""
    return read_lengths(folder, piece.name, piece.first_document, piece.documents)


def piece_blocks(folder: Folder, piece: Piece, kind: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Yield the ids of a piece, some at a time."""
    import numpy as np

    start = piece.first_token * kind.itemsize
    stop = start + piece.tokens * kind.itemsize
    for block in folder.blocks(f"{piece.name}.tokens", start, stop):
        yield np.frombuffer(block, kind)


# ---------------------------------------------------------------------- shards


@dataclass(frozen=True)
class WriteShard:
    """Writes a shard in its format, publishes its files, and returns its part of the manifest."""

    work: Work
    out: Folder
    format: str
    dtype: str
    name: ShardName
    pack: int | None

    def __call__(self, plan: ShardPlan) -> tuple[int, Any]:
        self.work.check()
        format = FORMATS[self.format]
        name = self.name._replace(split=plan.split, number=plan.number)
        names = format.file_names(name)
        with self.work.folder.scratch() as scratch:
            tokens, lengths = scratch / "shard.tokens", scratch / "shard.lengths"
            digest = self._write_tokens(plan, tokens, format.header_bytes)
            self._write_lengths(plan, lengths)
            shard = Shard(
                name=name,
                tokens=tokens,
                lengths=lengths,
                dtype=self.dtype,
                header_bytes=format.header_bytes,
                num_tokens=plan.tokens,
                num_documents=plan.documents,
                continues=plan.continues,
                pack=self.pack,
            )
            made = scratch / "files"
            for file in names:
                (made / file).parent.mkdir(parents=True, exist_ok=True)
            format.write(shard, made)
            known = {names[0]: digest} if self._is_final else {}
            files = publish(made, self.out, names, known)
        entry = ShardEntry(
            split=plan.split,
            number=plan.number,
            documents=plan.documents,
            tokens=plan.tokens,
            files=files,
            continues=plan.continues,
        )
        return plan.task, self.work.put(SHARDS, plan.task, dataclasses.asdict(entry), {})

    @property
    def _is_final(self) -> bool:
        """Whether the file of ids is published as it is."""
        format = FORMATS[self.format]
        return format.is_raw and not format.header_bytes

    def _write_tokens(self, plan: ShardPlan, path: Path, header_bytes: int) -> str:
        import numpy as np

        size = np.dtype(self.dtype).itemsize
        digest = hashlib.sha256()
        with path.open("xb") as file:
            file.write(bytes(header_bytes))
            for piece in plan.pieces:
                start, stop = piece.first_token * size, (piece.first_token + piece.tokens) * size
                for block in self.work.folder.blocks(f"{piece.name}.tokens", start, stop):
                    file.write(block)
                    digest.update(block)
                    if self._is_final:
                        _start_writing(file)
        return digest.hexdigest()

    def _write_lengths(self, plan: ShardPlan, path: Path) -> None:
        import numpy as np

        with path.open("xb") as file:
            if plan.rows is not None:
                file.write(np.full(plan.rows, self.pack, "<i8").tobytes())
                return
            left, first_length = plan.tokens, plan.first_length
            for piece in plan.pieces:
                if not piece.documents:
                    continue
                lengths = piece_lengths(self.work.folder, piece)
                if first_length is not None:
                    lengths = lengths.copy()
                    lengths[0], first_length = first_length, None
                left -= int(lengths.sum())
                file.write(lengths.astype("<i8").tobytes())
            if plan.continues:
                file.write(np.array([left], "<i8").tobytes())


def _start_writing(file: Any) -> None:
    """Have the system begin to write a file to disk, where it can: syncing it then takes less."""
    file.flush()
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def publish(
    made: Path, out: Folder, names: tuple[str, ...], known: dict[str, str]
) -> tuple[FileEntry, ...]:
    """Move files to the dataset, the first one last, and return their entries."""
    entries = []
    for name in names:
        with (made / name).open("rb") as file:
            digest = known.get(name) or file_digest(file)
        entries.append(FileEntry(name=name, size=(made / name).stat().st_size, sha256=digest))
    for name in reversed(names):
        out.put(made / name, name, sync=True)
    return tuple(entries)
