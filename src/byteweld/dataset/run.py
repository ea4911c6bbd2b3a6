"""Makes a dataset: encodes a corpus, writes shards, and goes on where an interrupted run was.

The work folder has the shards being written and a checkpoint: where reading is, what was counted
so far, and how long each growing file was at that point, always between two documents. A run that
finds a checkpoint of the same job cuts the files back to it and reads on from there, so the final
bytes are those of an uninterrupted run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from byteweld.corpus import check_local
from byteweld.dataset import _order
from byteweld.dataset._encoding import DOCUMENTS, Events, encode_sources, source_names
from byteweld.dataset._job import SHARDS, STATE, Job, published_shards, read_json, write_json
from byteweld.dataset._log import Log
from byteweld.dataset._manifest import (
    MAX_LISTED_SKIPS,
    Manifest,
    ShardEntry,
    SkipEntry,
    SourceEntry,
)
from byteweld.dataset._shard import ShardName, Split
from byteweld.dataset._shuffle import Buckets
from byteweld.dataset._writer import (
    Place,
    SplitWriter,
    closing_on_error,
    publish_files,
    scratch_folder,
)
from byteweld.dataset.options import Plan
from byteweld.errors import ByteweldError
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHECKPOINT_SECONDS: float = 10.0
# The checkpoint of a run that has done nothing.
_START: Final[dict[str, Any]] = {
    "position": None,
    "is_encoded": False,
    "documents": 0,
    "tokens": 0,
    "text_bytes": 0,
    "skipped": 0,
    "special_text": {},
    "writers": None,
    "logs": {"sources": None, "skips": None},
    "buckets": None,
}


class Progress(NamedTuple):
    """How far a run is."""

    stage: str  # "encoding" or "shuffling"
    done: int  # bytes of the sources read, or documents shuffled
    total: int | None
    documents: int
    tokens: int
    text_bytes: int


class Result(NamedTuple):
    """The manifest, and what this run did for it."""

    manifest: Manifest
    was_complete: bool  # nothing was left to do
    resumed_documents: int  # that an earlier run had encoded
    seconds: float


def run(
    sources: Sources,
    tok: Tokenizer,
    out: str | os.PathLike[str],
    plan: Plan,
    *,
    overwrite: bool = False,
    num_threads: int | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Result:
    """Make the dataset, or what is left to make of it."""
    started = time.perf_counter()
    check_local(out, ", or make it in tasks: runner='ray' (--runner), --rank")
    job = Job(sources, tok, Path(out), plan)
    job.check_packages()
    with job.locked(overwrite=overwrite):
        done = job.complete_manifest()
        if done is not None:
            return Result(done, True, done.documents, time.perf_counter() - started)
        running = _Run(job, progress)
        resumed = running.documents
        try:
            running.encode(num_threads)
            running.shuffle()
            manifest = running.finish()
        except BaseException:
            # What is done is kept; if this fails as well, the last checkpoint counts.
            with contextlib.suppress(OSError, ByteweldError):
                running.list_shards()
                running.checkpoint()
            raise
        finally:
            running.close()
    return Result(manifest, False, resumed, time.perf_counter() - started)


class _Run:
    """One run of a job: receives encoded blocks and passes their documents on to the writers."""

    def __init__(self, job: Job, progress: Callable[[Progress], object] | None) -> None:
        self._job = job
        self._progress = progress
        options = job.plan.options
        state = _START
        if job.same_as_before() and (job.work / STATE).exists():
            state = read_json(job.work / STATE)
        self._position: tuple[int, ...] | None = state["position"] and tuple(state["position"])
        self._is_encoded: bool = state["is_encoded"]
        self.documents: int = state["documents"]
        self._tokens: int = state["tokens"]
        self._text_bytes: int = state["text_bytes"]
        self._skipped: int = state["skipped"]
        self._specials: Counter[str] = Counter(state["special_text"])
        self._stored_bytes = 0
        # Two documents, so that a checkpoint is possible: Ctrl-C may come between any two lines.
        self._is_between = True
        self._last_checkpoint = time.monotonic()
        self._splits: list[Split] = ["train", "validation"] if options.validation else ["train"]
        self._logs: dict[str, Log] = {}
        self._shard_log: Log | None = None
        self._shards: list[ShardEntry] = []
        self._num_listed = 0  # shards in the manifest that was saved last
        self._writers: list[SplitWriter] = []
        self._buckets: Buckets | None = None
        with closing_on_error(self):
            self._open(state)

    def _open(self, state: dict[str, Any]) -> None:
        """Open everything that grows on disk, cut back to a checkpoint."""
        job, options = self._job, self._job.plan.options
        for log, saved in state["logs"].items():
            self._logs[log] = Log(job.work / f"{log}.jsonl", saved)
        self._shard_log = Log.complete(job.work / SHARDS)
        self._shards = published_shards(job.work)
        place = Place(
            folder=job.folder,
            work=job.work,
            format=job.plan.format,
            dtype=options.dtype or "",
            shard_tokens=options.shard_tokens,
            pack=options.pack,
        )
        for split, saved in zip(self._splits, state["writers"] or (None, None), strict=False):
            self._writers.append(self._writer(place, split, saved))
        if options.shuffle:
            self._buckets = Buckets(
                job.work,
                place.dtype,
                len(self._splits),
                job.total_bytes,
                options.seed,
                state["buckets"],
            )

    def _writer(self, place: Place, split: Split, state: dict[str, int] | None) -> SplitWriter:
        options = self._job.plan.options
        name = ShardName(
            split=split,
            is_only=options.shard_tokens is None,
            has_validation=bool(options.validation),
            prefix=options.prefix,
            is_shuffled=options.shuffle,
        )
        published = [shard for shard in self._shards if shard.split == split]
        return SplitWriter(place, name, published, self._publish, state)

    # ---------------------------------------------------------------- checkpoints

    def checkpoint(self) -> None:
        """Put everything on disk, and note where it ends; nothing inside a document."""
        if not self._is_between:
            return
        for part in self._parts():
            part.sync()
        self.list_shards()
        state = {
            "position": self._position,
            "is_encoded": self._is_encoded,
            "documents": self.documents,
            "tokens": self._tokens,
            "text_bytes": self._text_bytes,
            "skipped": self._skipped,
            "special_text": self._specials,
            "writers": [writer.state() for writer in self._writers],
            "logs": {name: log.state() for name, log in self._logs.items()},
            "buckets": None if self._buckets is None else self._buckets.state(),
        }
        write_json(self._job.work / STATE, state)
        self._last_checkpoint = time.monotonic()

    def list_shards(self) -> None:
        """Save a manifest that lists the shards so far."""
        if len(self._shards) > self._num_listed:
            self._listed().save(self._job.folder)
            self._num_listed = len(self._shards)

    def _checkpoint_in_time(self) -> None:
        if self._is_between and time.monotonic() - self._last_checkpoint >= _CHECKPOINT_SECONDS:
            self.checkpoint()

    def close(self) -> None:
        """Close all files."""
        for part in self._parts():
            part.close()

    def _parts(self) -> list[SplitWriter | Log | Buckets]:
        """Everything that grows on disk."""
        buckets = [] if self._buckets is None else [self._buckets]
        shards = [] if self._shard_log is None else [self._shard_log]
        return [*self._writers, *self._logs.values(), *shards, *buckets]

    def _publish(self, entry: ShardEntry) -> None:
        # Not in the manifest at once: writing that takes longer the more shards there are.
        assert self._shard_log is not None
        self._shard_log.extend([entry])
        self._shard_log.sync()
        self._shards.append(entry)

    def _listed(self) -> Manifest:
        """Return the manifest with all shards so far."""
        shards = sorted(self._shards, key=lambda shard: (shard.split, shard.number))
        return dataclasses.replace(self._job.manifest(), shards=tuple(shards))

    # ---------------------------------------------------------------- encoding

    def encode(self, num_threads: int | None) -> None:
        """Encode all documents that are not encoded yet."""
        if self._is_encoded:
            return
        plan = self._job.plan
        events = encode_sources(
            self._job.sources,
            self._job.tok,
            start=self._position,
            special_text=plan.options.special_text,
            prefix=plan.before,
            suffix=plan.after,
            marks_empty=plan.format.marks_empty,
            num_threads=num_threads,
            receive=self._receive,
            progress=self._report_bytes,
        )
        self._report_bytes()
        self._is_between = False
        self._note(events)
        self._is_encoded = True
        self._is_between = True
        self.checkpoint()

    def _receive(
        self,
        ids: NDArray[np.uint32],
        ends: NDArray[np.int64],
        is_open: bool,
        text_bytes: int,
        stored_bytes: int,
        specials: dict[str, int],
        position: tuple[int, ...] | None,
        events: Events,
    ) -> None:
        """Take a block of encoded documents; the last one may continue in the next block."""
        self._is_between = False
        self._route(ids, ends, is_open)
        self.documents += len(ends)
        self._tokens += len(ids)
        self._text_bytes += text_bytes
        self._stored_bytes = stored_bytes
        self._specials.update(specials)
        self._note(events)
        if not is_open:
            self._position = position
            self._is_between = True
            self._checkpoint_in_time()

    def _note(self, events: Events) -> None:
        self._logs["sources"].extend(events.finished)
        room = MAX_LISTED_SKIPS - self._logs["skips"].entries
        self._logs["skips"].extend(events.skips[: max(0, room)])
        self._skipped += events.skipped

    def _route(self, ids: NDArray[np.uint32], ends: NDArray[np.int64], is_open: bool) -> None:
        """Pass documents on to the writer of their split, or to their bucket."""
        import numpy as np

        ends = ends.astype(np.int64)
        options = self._job.plan.options
        if len(self._splits) == 1 and self._buckets is None:
            self._writers[0].append(ids, ends)
            return
        count = len(ends) + is_open
        numbers = np.arange(self.documents, self.documents + count, dtype=np.uint64)
        targets = np.zeros(count, np.int64)
        if len(self._splits) > 1:
            targets += _order.is_validation(numbers, options.seed, options.validation)
        if self._buckets is not None:
            targets = self._buckets.targets(numbers, targets)
        stops = np.append(ends, len(ids)) if is_open else ends
        starts = np.concatenate(([0], stops[:-1])) if count else stops
        for target, part_ids, part_ends in _order.grouped(ids, starts, stops, targets):
            # The open document is the last of its group.
            if is_open and target == targets[-1]:
                part_ends = part_ends[:-1]
            writer = self._writers[target] if self._buckets is None else self._buckets[target]
            writer.append(part_ids, part_ends)

    def _report_bytes(self) -> None:
        total = self._job.total_bytes
        done = self._stored_bytes
        self._report("encoding", done if total is None else min(done, total), total)

    def _report(self, stage: str, done: int, total: int | None) -> None:
        if self._progress is not None:
            self._progress(
                Progress(stage, done, total, self.documents, self._tokens, self._text_bytes)
            )

    # ---------------------------------------------------------------- the end

    def shuffle(self) -> None:
        """Pass the documents of all buckets on to the writers, in random order."""
        if self._buckets is None:
            return
        self._is_between = False
        for done, split, ids, ends in self._buckets.documents():
            self._writers[split].append(ids, ends)
            self._is_between = True
            self._report("shuffling", done, self.documents)
            self._checkpoint_in_time()
            self._is_between = False
        self._is_between = True

    def finish(self) -> Manifest:
        """Publish the last shards, what describes them all, and the complete manifest."""
        job = self._job
        self._is_between = False
        for writer in self._writers:
            writer.drop_rest()
        self._is_between = True
        self.checkpoint()
        self._is_between = False  # what follows is done again by a run that goes on
        for writer in self._writers:
            writer.finish()
        totals: dict[str, dict[str, int]] = {
            split: {"documents": writer.total_documents, "tokens": writer.total_tokens}
            for split, writer in zip(self._splits, self._writers, strict=True)
        }
        manifest = dataclasses.replace(
            self._listed(),
            is_complete=True,
            documents=self.documents,
            tokens=sum(writer.total_tokens for writer in self._writers),
            text_bytes=self._text_bytes,
            splits=totals,
            special_text=dict(sorted(self._specials.items())),
            skipped_documents=self._skipped,
            skipped=tuple(SkipEntry(**entry) for entry in self._logs["skips"].read()),
            dropped_tokens=sum(writer.dropped for writer in self._writers),
            options=job.option_facts(),
            sources=self._sources(),
        )
        manifest = self._describe(manifest)
        manifest.save(job.folder)
        shutil.rmtree(job.work, ignore_errors=True)
        return manifest

    def _describe(self, manifest: Manifest) -> Manifest:
        """Publish the files that describe all shards, if the format has any."""
        job = self._job
        if job.plan.format.finish is None:
            return manifest
        with scratch_folder(job.work, ()) as scratch:
            names = tuple(job.plan.format.finish(job.folder, manifest, scratch))
            files = publish_files(scratch, job.folder, names, {})
        return dataclasses.replace(manifest, files=files)

    def _sources(self) -> tuple[SourceEntry, ...]:
        """Return all sources in order; those that could not be read have no size and digest."""
        read = deque(SourceEntry(**entry) for entry in self._logs["sources"].read())
        sources = []
        for name in source_names(self._job.sources):
            if read and read[0].name == name:
                sources.append(read.popleft())
            else:
                sources.append(SourceEntry(name=name, size=None, xxh3_128=None, documents=0))
        if self._job.sources.documents is not None:
            rest = self.documents - sum(source.documents for source in sources)
            sources.append(SourceEntry(name=DOCUMENTS, size=None, xxh3_128=None, documents=rest))
        return tuple(sources)
