"""Makes a dataset: a corpus is encoded, put in order, divided into shards and published.

1. Documents are encoded. On this machine that is one pass over them (`_stream`); with a runner, or
   if a runner has begun, it is a task for each slice of the corpus that is left (`_tasks`).
2. If there is a validation split, the documents of each slice are grouped, since only now are their
   numbers known. If they are shuffled, each bucket is put in random order.
3. Where shards end is computed (`_plan`), and each is written and published.
4. The manifest is put together from what all of these have noted in the work folder.

What is noted there is not done again, by whichever runner. The files are the same, byte for byte.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from byteweld._folders import Folder, LocalFolder, open_folder
from byteweld.corpus import Corpus, file_state, is_remote, whole_file
from byteweld.corpus._files import file_size
from byteweld.corpus._parts import FilePart
from byteweld.corpus._remote import list_again
from byteweld.corpus._slices import Slice, divide
from byteweld.dataset._complete import complete
from byteweld.dataset._encoding import DocumentEncoding, Encoded
from byteweld.dataset._job import WORK, Job, changes, locked
from byteweld.dataset._manifest import MANIFEST, Manifest, ShardEntry
from byteweld.dataset._order import Targets, num_buckets
from byteweld.dataset._plan import Cutting, Piece, ShardPlan, plan_shards
from byteweld.dataset._shard import ShardName, Split
from byteweld.dataset._stream import (
    ORDER,
    STREAM,
    EncodingPass,
    OrderingPass,
    Record,
    bucket_name,
    full_shards,
)
from byteweld.dataset._tasks import (
    BUCKETS,
    DIGESTS,
    GROUPS,
    SLICES,
    Bucket,
    DividedFile,
    Numbered,
    Storage,
    WriteShard,
    digest_divided,
    encode_slice,
    group_slice,
    publish,
    shard_stage,
    shuffle_bucket,
    stem_of,
)
from byteweld.dataset.formats import FORMATS
from byteweld.dataset.options import Plan
from byteweld.errors import ByteweldError, CorpusError
from byteweld.jobs import RankRunner, Runner
from byteweld.jobs._work import (
    Stage,
    Task,
    Work,
    begin,
    digest_of,
    read_record,
    resumed,
    run_stage,
    slice_facts,
    write_record,
)
from byteweld.jobs.runners import Here
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

# In the work folder, once tasks have begun: how the corpus is divided, and the SHA-256 of that.
_DIVISION: Final = "division.json"
_DIVIDED: Final = "divided.json"
_LIST_SECONDS: Final = 10.0  # between two manifests that list the shards so far


class Progress(NamedTuple):
    """How far a run is."""

    stage: str  # "encoding", "grouping", "shuffling" or "writing"
    done: int  # stored bytes of the sources, documents, or tasks of the stage
    total: int | None
    documents: int
    tokens: int
    text_bytes: int
    note: str = ""  # at the start: how much earlier runs have done, or why it starts over


class Made(NamedTuple):
    """The manifest, and what this run did for it."""

    manifest: Manifest
    was_complete: bool  # nothing was left to do
    resumed_documents: int  # that earlier runs had encoded


Report = Callable[[Progress], object]


def make(
    sources: Sources,
    tok: Tokenizer,
    out: str | os.PathLike[str],
    plan: Plan,
    *,
    runner: Runner | None = None,
    overwrite: bool = False,
    num_threads: int | None = None,
    progress: Report | None = None,
) -> Made:
    """Make the dataset in a folder, or at a URL, or what is left to make of it.

    Without a runner, documents are encoded in one pass here, with `num_threads`. With `overwrite`,
    start over if there is a dataset.
    """
    job = Job(sources, tok, open_folder(out), plan)
    with job.ready(overwrite=overwrite):
        done = job.complete_manifest()
        if done is not None:
            return Made(done, True, done.documents)
        making = _begin(job, runner or Here(num_threads=num_threads), progress)
        before = making.total.documents
        try:
            making.say_resumed()
            making.encode(job)
            return Made(making.finish(), False, before)
        except BaseException:
            with contextlib.suppress(OSError, ByteweldError):
                making.list_shards()
            raise


def encode_share(
    runner: RankRunner,
    sources: Sources,
    tok: Tokenizer,
    out: str,
    plan: Plan,
    *,
    progress: Report | None = None,
) -> None:
    """Encode the slices of one rank; `merge_ranks` makes the dataset when all have."""
    job = Job(sources, tok, open_folder(out), plan)
    job.check_folder()
    if job.complete_manifest() is None:
        _begin(job, runner, progress).encode(job)


def has_ranks(out: str) -> bool:
    """Whether ranks have begun to make a dataset."""
    return open_folder(out).folder(WORK).exists(_DIVISION)


def merge_ranks(out: str, runner: Runner, *, progress: Report | None = None) -> Made:
    """Make the dataset of what all ranks have encoded."""
    folder = open_folder(out)
    with locked(folder) if isinstance(folder, LocalFolder) else contextlib.nullcontext():
        work = resumed(folder.folder(WORK))
        making = _Making(folder, work, work.facts(), runner, progress)
        making.check_encoded()
        return Made(making.finish(), False, 0)


def _begin(job: Job, runner: Runner, progress: Report | None) -> _Making:
    is_here = isinstance(runner, Here) and isinstance(job.out, LocalFolder)
    has_files = job.corpus is not None and job.corpus.table is None
    if not is_here and (not has_files or job.sources.documents is not None):
        raise TypeError("documents in memory cannot be divided among tasks; pass files")
    job.check_packages()
    facts = job.facts()
    work = begin(job.work, facts, changes=changes, stages=(STREAM, SLICES))
    slices: list[Slice] = []
    last: Record = (work.records(STREAM) or [Record((), (), is_last=False)])[-1]
    if not last.is_last and (not is_here or work.folder.exists(_DIVISION)):
        work, slices = _divide(job, work, last.position, runner)
    return _Making(job.out, work, facts, runner, progress, slices)


def _divide(
    job: Job, work: Work, position: Sequence[int] | None, runner: Runner
) -> tuple[Work, list[Slice]]:
    """Divide what is after a position into slices: always the same ones for a job."""
    assert job.corpus is not None
    known = _division(work)
    slice_bytes = runner.slice_bytes if known is None else known.slice_bytes
    slices = _divide_rest(job.corpus, position, slice_bytes)
    files = [whole_file(file) for file in job.corpus.files]
    division = known or _Division(
        slice_bytes,
        slice_facts(slices),
        [f if isinstance(f, str) else os.fspath(f.absolute()) for f in files],
        [file.number for file in _divided_files(slices)],
    )
    if known is None:
        write_record(work.folder, _DIVISION, division, sync=True)
    work = work.marked(_DIVIDED, digest_of([division]))
    # Ranks may begin at the same time: all of them must divide the corpus in the same way.
    if _division(work) != division:
        raise FileExistsError(
            f"{work.folder}: another rank has begun with other slices; start all ranks with the "
            "same options"
        )
    return work, slices


class _Division(NamedTuple):
    """How a corpus is divided among tasks."""

    slice_bytes: int | None
    slices: dict[str, Any]  # what identifies them
    paths: list[str]  # of all files
    divided: list[int]  # the numbers of those of which tasks read parts


def _division(work: Work) -> _Division | None:
    if not work.folder.exists(_DIVISION):
        return None
    found: _Division = read_record(work.folder, _DIVISION, _Division)
    return found


class _Making:
    """The stages of a dataset, and what they have noted. `facts` are those of the job."""

    def __init__(
        self,
        out: Folder,
        work: Work,
        facts: dict[str, Any],
        runner: Runner,
        progress: Report | None,
        slices: Sequence[Slice] = (),  # of which documents are encoded in tasks
    ) -> None:
        self._out = out
        self._slices = slices
        self._work = work
        self._facts = facts
        self._runner = runner
        self._progress = progress
        self._options: dict[str, Any] = facts["options"]
        self._format = FORMATS[facts["format"]]
        self._splits: list[Split] = ["train"]
        if self._options["validation"]:
            self._splits.append("validation")
        is_shuffled = self._options["shuffle"]
        self._targets = Targets(
            self._options["seed"],
            self._options["validation"],
            num_buckets(facts["total_bytes"]) if is_shuffled else None,
        )
        header_bytes = self._format.header_bytes
        self._storage = Storage(
            work, facts["dtype"], header_bytes, self._format.is_raw and not header_bytes
        )
        self._cutting = Cutting.of(
            self._options["shard_tokens"],
            self._options["pack"],
            splits_documents=self._format.splits_documents,
        )
        name = ShardName(
            is_only=self._options["shard_tokens"] is None,
            has_validation=len(self._splits) > 1,
            prefix=self._options["prefix"],
            is_shuffled=is_shuffled,
        )
        self._write = WriteShard(self._storage, out, self._format.name, name, self._options["pack"])
        self._streamed: list[Record] = work.records(STREAM)
        self._encoded: dict[int, Encoded] = work.results(SLICES)
        self._digests: dict[int, tuple[int, str] | None] = work.results(DIGESTS)
        self._entries: dict[tuple[Split, int], ShardEntry] = {
            (split, number): entry
            for split in self._splits
            for number, entry in work.results(shard_stage(split)).items()
        }
        self._num_listed = len(self._entries)  # shards in the manifest that was saved last
        self._listed = time.monotonic()
        self.total = Encoded()
        for result in self._noted():
            self._add(result)

    def _noted(self) -> list[Encoded]:
        """Return what was encoded, in the order of the corpus."""
        slices = (result for _, result in sorted(self._encoded.items()))
        return [*(record.encoded for record in self._streamed), *slices]

    def _add(self, result: Encoded) -> None:
        self.total.add(result.tokens, result.documents, result.text_bytes, result.special_text)

    def _report(self, stage: str, done: int, total: int | None, note: str = "") -> None:
        if self._progress is not None:
            found = self.total
            self._progress(
                Progress(stage, done, total, found.documents, found.tokens, found.text_bytes, note)
            )

    def say_resumed(self) -> None:
        """Report how much earlier runs have done, or why this one starts over."""
        if self._work.restarted:
            note = f"starting over, as nothing was encoded yet: {'; '.join(self._work.restarted)}"
        elif self.total.documents:
            note = f"resuming after {self.total.documents:,} documents"
        else:
            return
        total = self._facts["total_bytes"]
        self._report("encoding", self._stored_bytes(), total, note)

    @property
    def _is_streamed(self) -> bool:
        """Whether all documents were encoded in one pass."""
        return bool(self._streamed) and self._streamed[-1].is_last

    def _stored_bytes(self) -> int:
        """Return the size of the sources that are known to be encoded."""
        done = 0
        if self._streamed and self._streamed[-1].position:
            file = self._streamed[-1].position[0]
            done = sum(size or 0 for _, size, *_ in self._facts["sources"][:file])
        return done

    # ---------------------------------------------------------------- encoding

    def encode(self, job: Job) -> None:
        """Encode what is not encoded yet; a rank, its share."""
        if self._is_streamed:
            return
        if self._slices:
            assert job.corpus is not None
            self._encode_slices(job, job.corpus)
        elif not self._work.folder.exists(_DIVISION):
            self._encode_stream(job)

    def _encode_stream(self, job: Job) -> None:
        total = self._facts["total_bytes"]
        before = self._stored_bytes()

        def report(stored_bytes: int) -> None:
            done = before + stored_bytes
            self._report("encoding", done if total is None else min(done, total), total)

        for plan in full_shards(self._streamed):
            self._publish(plan)
        stream = EncodingPass(
            self._storage,
            self._targets,
            self._splits,
            self._cutting,
            self._publish,
            self.total,
            report,
        )
        try:
            stream.encode(
                job.sources, DocumentEncoding.of(job.tok, job.plan), self._runner.threads_per_task
            )
        finally:
            stream.close()
        self._streamed = self._work.records(STREAM)

    def _publish(self, plan: ShardPlan) -> None:
        """Publish a shard of the stream, unless an earlier run has; remove its work files."""
        if (plan.split, plan.number) not in self._entries:
            _, self._entries[plan.split, plan.number] = self._write(plan)
        self._storage.remove(plan.pieces[0])
        if time.monotonic() - self._listed >= _LIST_SECONDS:
            self.list_shards()

    def list_shards(self) -> None:
        """Save a manifest that lists the shards so far."""
        if len(self._entries) > self._num_listed:
            self._save(self._empty_manifest())
            self._num_listed = len(self._entries)
        self._listed = time.monotonic()

    def _encode_slices(self, job: Job, corpus: Corpus) -> None:
        slices, runner = self._slices, self._runner
        sizes = {part.number: part.size for part in runner.share(slices)}
        total, done = sum(sizes.values()), 0
        encoding = DocumentEncoding.of(job.tok, job.plan)
        how = dataclasses.replace(corpus, files=(), skipped_files={})
        task = functools.partial(
            encode_slice, self._storage, encoding, how, runner.threads_per_task
        )

        def report(results: Mapping[int, Any]) -> None:
            nonlocal done
            for number, result in results.items():
                done += sizes[number]
                if number not in self._encoded:
                    self._encoded[number] = result
                    self._add(result)
            self._report("encoding", done, total)

        run_stage(self._work, SLICES, runner.share(slices), task, runner, report)
        digest = functools.partial(digest_divided, corpus.reading.on_error == "skip")
        files = runner.share(_divided_files(slices))
        self._digests.update(run_stage(self._work, DIGESTS, files, digest, runner))

    def check_encoded(self) -> None:
        """Raise unless all slices are encoded and all divided files hashed."""
        division = _division(self._work)
        if division is None:
            raise FileNotFoundError(f"{self._work.folder}: no rank has begun")
        count = division.slices["number"]
        slices = [number for number in range(count) if number not in self._encoded]
        files = [number for number in division.divided if number not in self._digests]
        if slices or files:
            missing = (
                f"{len(slices)} of {count} slices are not encoded yet, the first is number "
                f"{slices[0]}"
                if slices
                else f"{len(files)} divided files are not hashed yet"
            )
            raise FileNotFoundError(
                f"{self._work.folder}: {missing}; run the ranks that do it, with the same options"
            )

    # ---------------------------------------------------------------- order and shards

    def finish(self) -> Manifest:
        """Put documents in order, write all shards and the manifest."""
        self._check_unchanged()
        for plan in full_shards([*self._streamed, *self._work.records(ORDER)]):
            self._publish(plan)
        is_here = isinstance(self._runner, Here)
        if is_here and self._targets.buckets is not None and self._is_streamed:
            self._shuffle_stream()
        ordered = self._work.records(ORDER)
        ended = Counter(plan.split for plan in full_shards([*self._streamed, *ordered]))
        plans: list[ShardPlan] = []
        for split, pieces in zip(self._splits, self._pieces(ordered), strict=True):
            plans += plan_shards(split, pieces, self._cutting, self._storage.lengths, ended[split])
        todo = [plan for plan in plans if (plan.split, plan.number) not in self._entries]
        self._report("writing", len(plans) - len(todo), len(plans))
        for plan, entry in self._runner.map_unordered(self._write, todo):
            self._entries[plan.split, plan.number] = entry
            self._report("writing", len(plans) - len(todo), len(plans))
        manifest = self._manifest()
        self._save(manifest)
        self._work.folder.remove_all()
        return manifest

    def _check_unchanged(self) -> None:
        """Raise if a file of a divided corpus is not what it was at the beginning."""
        division = _division(self._work)
        if division is None:
            return
        paths = division.paths
        list_again(path for path in paths if is_remote(path))
        for (name, *state), path in zip(self._facts["sources"], paths, strict=True):
            if list(file_state(path if is_remote(path) else Path(path))) != state:
                raise CorpusError(
                    "the file changed since the work began; start again when nothing writes to it, "
                    "with overwrite=True (--force)",
                    path=name,
                )

    def _shuffle_stream(self) -> None:
        ordering = OrderingPass(self._storage, self._splits, self._cutting, self._publish)
        try:
            ordering.shuffle(
                self._streamed[-1].files,
                self._options["seed"],
                lambda done: self._report("shuffling", done, self.total.documents),
            )
        finally:
            ordering.close()

    def _pieces(self, ordered: Sequence[Record]) -> list[list[Piece]]:
        """Return the pieces of each split, in order, after the shards that have ended."""
        numbered = list(self._numbered())
        groups: list[list[Piece]] = [[] for _ in range(self._targets.count)]
        is_shuffled = self._targets.buckets is not None
        names = list(map(bucket_name, range(len(groups)))) if is_shuffled else self._splits
        if self._streamed:
            for group, name, state in zip(groups, names, self._streamed[-1].files, strict=True):
                group.append(state.piece(name))
        if self._targets.is_one:
            for item in numbered:
                stem = stem_of(SLICES, item.number)
                groups[0].append(Piece(stem, 0, item.tokens, 0, item.documents))
            return groups
        task = functools.partial(group_slice, self._storage, self._targets)
        grouped = self._run_stage(GROUPS, task, numbered, "grouping")
        for number, found in sorted(grouped.items()):
            token = document = 0
            for target, documents, tokens in found:
                piece = Piece(stem_of(GROUPS, number), token, tokens, document, documents)
                groups[target].append(piece)
                token, document = token + tokens, document + documents
        return self._shuffled(groups, ordered) if is_shuffled else groups

    def _shuffled(self, groups: list[list[Piece]], ordered: Sequence[Record]) -> list[list[Piece]]:
        """Return the pieces of each split, of buckets that the stream has not shuffled."""
        first = ordered[-1].shuffled if ordered else 0
        buckets = [Bucket(n, tuple(pieces)) for n, pieces in enumerate(groups) if n >= first]
        task = functools.partial(shuffle_bucket, self._storage, self._options["seed"])
        shuffled = self._run_stage(BUCKETS, task, buckets, "shuffling")
        splits: list[list[Piece]] = [[] for _ in self._splits]
        if ordered:
            for pieces, name, state in zip(splits, self._splits, ordered[-1].files, strict=True):
                pieces.append(state.piece(name))
        for bucket in buckets:
            documents, tokens = shuffled[bucket.number]
            piece = Piece(stem_of(BUCKETS, bucket.number), 0, tokens, 0, documents)
            splits[bucket.number // (self._targets.buckets or 1)].append(piece)
        return splits

    def _numbered(self) -> Iterator[Numbered]:
        first = sum(record.encoded.documents for record in self._streamed)
        for number, result in sorted(self._encoded.items()):
            yield Numbered(number, first, result.documents, result.tokens)
            first += result.documents

    def _run_stage(
        self, stage: Stage, task: Task, items: Sequence[Any], name: str
    ) -> dict[int, Any]:
        """Run the tasks of a stage that are not done yet, and return the results of all."""
        done = 0

        def report(results: Mapping[int, Any]) -> None:
            nonlocal done
            done += len(results)
            self._report(name, done, len(items))

        return run_stage(self._work, stage, items, task, self._runner, report)

    # ---------------------------------------------------------------- manifest

    def _empty_manifest(self) -> Manifest:
        """Return a manifest that lists the shards so far."""
        return Manifest(
            format=self._format.name,
            dtype=self._storage.dtype,
            tokenizer=self._facts["tokenizer"],
            options=self._options,
            shards=tuple(entry for _, entry in sorted(self._entries.items(), key=lambda e: e[0])),
        )

    def _manifest(self) -> Manifest:
        manifest = complete(
            self._empty_manifest(),
            self._facts["sources"],
            self._splits,
            self._noted(),
            self._digests,
        )
        if self._format.finish is None:
            return manifest
        with self._work.folder.scratch() as scratch:
            names = tuple(self._format.finish(Path(str(self._out)), manifest, scratch))
            files = publish(self._work, scratch, self._out, names, {})
            return dataclasses.replace(manifest, files=files)

    def _save(self, manifest: Manifest) -> None:
        if isinstance(self._out, LocalFolder):
            manifest.save(self._out.path)
        else:
            self._out.write(MANIFEST, manifest.to_json())


def _divide_rest(
    corpus: Corpus, position: Sequence[int] | None, slice_bytes: int | None
) -> list[Slice]:
    """Divide what is after a position of a corpus into slices."""
    if position is None:
        return divide(corpus, slice_bytes)
    first, *place = position
    files = corpus.files[first:]
    slices: list[Slice] = []
    if any(place) and files:  # the rest of a file is not divided
        size = file_size(whole_file(files[0]))
        slices.append(Slice(0, first, files[:1], size, (0, *place)))
        first, files = first + 1, files[1:]
    for part in divide(dataclasses.replace(corpus, files=files), slice_bytes):
        slices.append(part._replace(number=len(slices), first_file=first + part.first_file))
    return slices


def _divided_files(slices: Sequence[Slice]) -> list[DividedFile]:
    """Return the files of which each task reads only a part."""
    files = {
        part.first_file: file.file
        for part in slices
        for file in part.files
        if isinstance(file, FilePart)
    }
    return [DividedFile(number, file) for number, file in files.items()]
