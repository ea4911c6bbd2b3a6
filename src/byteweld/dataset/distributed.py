"""Makes a dataset in tasks: the same files, byte for byte, as `run` makes on one machine.

1. Each slice of the corpus is encoded: ids and document lengths, in the work folder.
2. Only now are the numbers of documents known. With a validation split or shuffling, the documents
   of each slice are put in groups; with shuffling, each bucket is put in random order.
3. Only now is it known where shards end. Each is written and published by a task.
4. The manifest is put together from what the tasks have returned.

Everything is done in tasks that may run again. What is done is kept, so the same call goes on where
an interrupted one was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from byteweld._folders import Folder, LocalFolder, open_folder
from byteweld.corpus import Corpus, file_state, is_remote, whole_file
from byteweld.corpus._parts import FilePart
from byteweld.corpus._remote import list_again
from byteweld.corpus._slices import Slice, divide
from byteweld.dataset._checks import is_plain_path
from byteweld.dataset._job import FACTS, WORK, Job, locked, published_by_tasks
from byteweld.dataset._manifest import (
    MANIFEST,
    MAX_LISTED_SKIPS,
    FileEntry,
    Manifest,
    ShardEntry,
    SkipEntry,
    SourceEntry,
    parse_manifest,
)
from byteweld.dataset._pieces import Piece, ShardPlan, SplitPlan, plan_split
from byteweld.dataset._shard import ShardName, Split
from byteweld.dataset._shuffle import num_buckets
from byteweld.dataset._tasks import (
    BUCKETS,
    DIGESTS,
    GROUPS,
    SHARDS,
    SLICES,
    Bucket,
    DigestFile,
    DividedFile,
    EncodeSlice,
    GroupSlice,
    Numbered,
    ShuffleBucket,
    WriteShard,
    piece_lengths,
    publish,
)
from byteweld.dataset.formats import FORMATS
from byteweld.dataset.options import Plan
from byteweld.dataset.run import Progress, Result
from byteweld.errors import CorpusError
from byteweld.jobs import RankRunner, Runner
from byteweld.jobs._work import JOB, Work, begin, digest_of, resumed, slice_facts
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

Report = Callable[[Progress], object]

_TOTALS: Final = ("documents", "tokens", "text_bytes")  # of slices, as progress has them


def run_on(
    runner: Runner,
    sources: Sources,
    tok: Tokenizer,
    out: str,
    plan: Plan,
    *,
    overwrite: bool = False,
    progress: Report | None = None,
) -> Result:
    """Make the dataset, or what is left to make of it; `out` may be a URL."""
    started = time.perf_counter()
    target = _Target(sources, tok, out, plan)
    with target.locked(overwrite=overwrite):
        done = target.complete_manifest()
        if done is not None:
            return Result(done, True, done.documents, time.perf_counter() - started)
        making, slices = target.begin(runner, progress)
        resumed = making.documents
        making.encode(slices, tok, target.corpus, plan)
        manifest = making.finish()
    return Result(manifest, False, resumed, time.perf_counter() - started)


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
    target = _Target(sources, tok, out, plan)
    if isinstance(target.out, LocalFolder):
        target.job.check_folder()
    if target.complete_manifest() is None:
        target.check_unfinished()
        making, slices = target.begin(runner, progress)
        making.encode(slices, tok, target.corpus, plan)


def has_ranks(out: str) -> bool:
    """Whether ranks have begun to make a dataset."""
    return open_folder(out).folder(WORK).exists(JOB)


def merge_ranks(out: str, runner: Runner, *, progress: Report | None = None) -> Result:
    """Make the dataset of what all ranks have encoded."""
    started = time.perf_counter()
    folder = open_folder(out)
    with locked(folder.path) if isinstance(folder, LocalFolder) else contextlib.nullcontext():
        work, _ = resumed(folder.folder(WORK))
        making = _Making(folder, work, work.details(), runner, progress)
        making.check_encoded()
        return Result(making.finish(), False, 0, time.perf_counter() - started)


class _Target:
    """The dataset to be made, in a folder or at a URL."""

    def __init__(self, sources: Sources, tok: Tokenizer, out: str, plan: Plan) -> None:
        if sources.documents is not None or sources.corpus is None or sources.corpus.table:
            raise TypeError("documents in memory cannot be divided among tasks; pass files")
        self.corpus: Corpus = sources.corpus
        self.out: Folder = open_folder(out)
        self.job = Job(sources, tok, Path(out), plan)
        self.work: Folder = self.out.folder(WORK)

    @contextlib.contextmanager
    def locked(self, *, overwrite: bool) -> Iterator[None]:
        """Make the folder ready; keep other runs out of it, where that is possible."""
        if isinstance(self.out, LocalFolder):
            with self.job.locked(overwrite=overwrite):
                self.check_unfinished()
                yield
            return
        if overwrite:
            self._remove()
        yield

    def check_unfinished(self) -> None:
        """Raise if the work folder is that of a run without tasks."""
        if self.work.exists(FACTS):
            raise FileExistsError(
                f"{self.out} holds an unfinished dataset that was begun without tasks; run the "
                "same job without --runner and --rank to finish it, or pass overwrite=True "
                "(--force) to start over"
            )

    def _remove(self) -> None:
        """Remove an earlier dataset at a URL: the files that it is known to have."""
        names = published_by_tasks(self.work)
        if self.out.exists(MANIFEST):
            manifest = parse_manifest(self.out.read(MANIFEST), f"{self.out}/{MANIFEST}")
            shards = itertools.chain(*(shard.files for shard in manifest.shards))
            names += [entry.name for entry in (*shards, *manifest.files)]
        self.out.remove(MANIFEST)
        for name in filter(is_plain_path, names):
            self.out.remove(name)
        self.work.remove_all()

    def complete_manifest(self) -> Manifest | None:
        """Return the manifest if all is done; raise if it is of another job."""
        if isinstance(self.out, LocalFolder):
            return self.job.complete_manifest()
        if not self.out.exists(MANIFEST):
            return None
        manifest = parse_manifest(self.out.read(MANIFEST), f"{self.out}/{MANIFEST}")
        self.job.check_same(manifest)
        self.work.remove_all()  # if the last run was killed at its very end
        return manifest

    def begin(self, runner: Runner, progress: Report | None) -> tuple[_Making, list[Slice]]:
        """Divide the corpus, and begin the job or go on with it."""
        self.job.check_packages()
        slices = divide(self.corpus, runner.slice_bytes)
        facts = json.loads(json.dumps(self.job.facts()))
        identity = {
            **facts,
            "sources": digest_of(facts["sources"]),
            "slices": slice_facts(slices),
        }
        files = [whole_file(file) for file in self.corpus.files]
        details = {
            **facts,
            "paths": [f if isinstance(f, str) else os.fspath(f.absolute()) for f in files],
            "total_bytes": self.job.total_bytes,
            "num_slices": len(slices),
            "divided": [file.number for file in _divided(slices)],
        }
        work = begin(self.work, identity, overwrite=False, details=details)
        return _Making(self.out, work, details, runner, progress), slices


class _Making:
    """The tasks of a dataset, and what they have returned.

    `details` are the facts of the job, and: the paths of the sources, the size of the corpus, the
    number of slices, and the numbers of the files that are divided.
    """

    def __init__(
        self,
        out: Folder,
        work: Work,
        details: dict[str, Any],
        runner: Runner,
        progress: Report | None,
    ) -> None:
        self._out = out
        self._work = work
        self._details = details
        self._runner = runner
        self._progress = progress
        self._options: dict[str, Any] = details["options"]
        self._format = FORMATS[details["format"]]
        self._dtype: str = details["dtype"]
        self._splits: list[Split] = ["train"]
        if self._options["validation"]:
            self._splits.append("validation")
        self._num_slices: int = details["num_slices"]
        self._names = [name for name, *_ in details["sources"]]
        self._encoded: dict[int, Any] = {}
        self._totals: Counter[str] = Counter()  # of what is encoded
        for number, result in work.results(SLICES).items():
            self._add(number, result)
        self._digests: dict[int, Any] = work.results(DIGESTS)

    @property
    def documents(self) -> int:
        """The number of documents encoded so far."""
        return self._totals["documents"]

    def _add(self, number: int, result: Any) -> None:
        self._encoded[number] = result
        self._totals.update({name: result[name] for name in _TOTALS})

    # ---------------------------------------------------------------- encoding

    def encode(self, slices: list[Slice], tok: Tokenizer, corpus: Corpus, plan: Plan) -> None:
        """Encode the slices that are not encoded yet, and hash divided files; a rank, its share."""
        runner = self._runner
        mine = runner.share(slices)
        todo = [part for part in mine if part.number not in self._encoded]
        sizes = {part.number: part.size for part in mine}
        total = sum(sizes.values())
        done = total - sum(part.size for part in todo)
        task = EncodeSlice.of(self._work, tok, corpus, plan, runner.threads_per_task)
        self._report("encoding", done, total)
        for number, result in runner.map_unordered(task, todo):
            self._add(number, result)
            done += sizes[number]
            self._report("encoding", done, total)
        digest = DigestFile(self._work, corpus.reading.on_error == "skip")
        files = [f for f in runner.share(_divided(slices)) if f.number not in self._digests]
        self._digests.update(runner.map_unordered(digest, files))

    def check_encoded(self) -> None:
        """Raise unless all slices are encoded and all divided files hashed."""
        slices = [number for number in range(self._num_slices) if number not in self._encoded]
        files = [number for number in self._details["divided"] if number not in self._digests]
        if slices or files:
            missing = (
                f"{len(slices)} of {self._num_slices} slices are not encoded yet, the first is "
                f"number {slices[0]}"
                if slices
                else f"{len(files)} divided files are not hashed yet"
            )
            raise FileNotFoundError(
                f"{self._work.folder}: {missing}; run the ranks that do it, with the same options"
            )

    def _report(self, stage: str, done: int, total: int | None) -> None:
        if self._progress is not None:
            totals = [self._totals[name] for name in _TOTALS]
            self._progress(Progress(stage, done, total, *totals))

    # ---------------------------------------------------------------- shards

    def finish(self) -> Manifest:
        """Write all shards and the manifest."""
        self._check_unchanged()
        plans: list[SplitPlan] = []
        first = 0
        for split, pieces in zip(self._splits, self._pieces(), strict=True):
            plan = plan_split(
                split,
                pieces,
                shard_tokens=self._options["shard_tokens"],
                splits_documents=self._format.splits_documents,
                pack=self._options["pack"],
                lengths=lambda piece: piece_lengths(self._work.folder, piece),
                first_task=first,
            )
            plans.append(plan)
            first += len(plan.shards)
        entries = self._write_shards([shard for plan in plans for shard in plan.shards])
        manifest = self._manifest(plans, entries)
        if isinstance(self._out, LocalFolder):
            manifest.save(self._out.path)
        else:
            self._out.write(MANIFEST, manifest.to_json())
        self._work.folder.remove_all()
        return manifest

    def _check_unchanged(self) -> None:
        """Raise if a file of the corpus is not what it was at the beginning."""
        paths = [str(path) for path in self._details["paths"]]  # without what was known of them
        list_again(path for path in paths if is_remote(path))
        for (name, *state), path in zip(self._details["sources"], paths, strict=True):
            if list(file_state(path if is_remote(path) else Path(path))) != state:
                raise CorpusError(
                    "the file changed since the work began; start again when nothing writes to it, "
                    "with overwrite=True (--force)",
                    path=name,
                )

    def _pieces(self) -> list[list[Piece]]:
        """Return the pieces of each split, in the order of its documents."""
        numbered = list(self._numbered())
        is_shuffled, seed = self._options["shuffle"], self._options["seed"]
        if len(self._splits) == 1 and not is_shuffled:
            return [[Piece(SLICES, n.slice, 0, n.tokens, 0, n.documents) for n in numbered]]
        count = num_buckets(self._details["total_bytes"]) if is_shuffled else None
        group = GroupSlice(self._work, self._dtype, seed, self._options["validation"], count)
        grouped = self._run_stage(
            GROUPS, group, {item.slice: item for item in numbered}, "grouping"
        )
        groups: list[list[Piece]] = [[] for _ in range(len(self._splits) * (count or 1))]
        for number, found in sorted(grouped.items()):
            token = document = 0
            for target, documents, tokens in found:
                groups[target].append(Piece(GROUPS, number, token, tokens, document, documents))
                token, document = token + tokens, document + documents
        if count is None:
            return groups
        shuffle = ShuffleBucket(self._work, self._dtype, seed)
        buckets = {number: Bucket(number, tuple(found)) for number, found in enumerate(groups)}
        shuffled = self._run_stage(BUCKETS, shuffle, buckets, "shuffling")
        pieces = [
            Piece(BUCKETS, number, 0, tokens, 0, documents)
            for number, (documents, tokens) in sorted(shuffled.items())
        ]
        return [pieces[at : at + count] for at in range(0, len(pieces), count)]

    def _numbered(self) -> Iterator[Numbered]:
        first = 0
        for number in range(self._num_slices):
            result = self._encoded[number]
            yield Numbered(number, first, result["documents"], result["tokens"])
            first += result["documents"]

    def _run_stage(
        self, stage: str, task: Callable[[Any], Any], items: dict[int, Any], name: str
    ) -> dict[int, Any]:
        """Run the tasks of a stage that are not done yet, and return the results of all."""
        results = self._work.results(stage)
        todo = [item for number, item in items.items() if number not in results]
        self._report(name, len(items) - len(todo), len(items))
        for number, result in self._runner.map_unordered(task, todo):
            results[number] = result
            self._report(name, len(results), len(items))
        return results

    def _write_shards(self, plans: list[ShardPlan]) -> list[ShardEntry]:
        name = ShardName(
            is_only=self._options["shard_tokens"] is None,
            has_validation=len(self._splits) > 1,
            prefix=self._options["prefix"],
            is_shuffled=self._options["shuffle"],
        )
        task = WriteShard(
            self._work,
            self._out,
            self._format.name,
            self._dtype,
            name,
            self._options["pack"],
        )
        items = {plan.task: plan for plan in plans}
        results = self._run_stage(SHARDS, task, items, "writing")
        return [_shard_entry(results[plan.task]) for plan in plans]

    # ---------------------------------------------------------------- manifest

    def _manifest(self, plans: list[SplitPlan], shards: list[ShardEntry]) -> Manifest:
        results = [self._encoded[number] for number in range(self._num_slices)]
        specials: Counter[str] = Counter()
        for result in results:
            specials.update(result["special_text"])
        manifest = Manifest(
            format=self._format.name,
            dtype=self._dtype,
            tokenizer=self._details["tokenizer"],
            options=self._options,
            is_complete=True,
            documents=sum(result["documents"] for result in results),
            tokens=sum(plan.tokens for plan in plans),
            text_bytes=sum(result["text_bytes"] for result in results),
            splits={
                split: {"documents": plan.documents, "tokens": plan.tokens}
                for split, plan in zip(self._splits, plans, strict=True)
            },
            special_text=dict(sorted(specials.items())),
            skipped_documents=sum(result["skipped"] for result in results),
            skipped=tuple(itertools.islice(self._skips(results), MAX_LISTED_SKIPS)),
            dropped_tokens=sum(plan.dropped for plan in plans),
            shards=tuple(shards),
            sources=self._sources(results),
        )
        if self._format.finish is None:
            return manifest
        with self._work.folder.scratch() as scratch:
            names = tuple(self._format.finish(Path(str(self._out)), manifest, scratch))
            files = publish(scratch, self._out, names, {})
            return dataclasses.replace(manifest, files=files)

    def _skips(self, results: list[Any]) -> Iterator[SkipEntry]:
        """Yield what was skipped, in order, with the lines of the files."""
        lines: Counter[int] = Counter()  # of the parts of each file before
        for result in results:
            for file, line, row, offset, reason in result["skips"]:
                whole = None if line is None else line + lines[file]
                yield SkipEntry(
                    source=self._names[file], reason=reason, line=whole, row=row, offset=offset
                )
            if result["is_divided"]:
                for file, _, _, _, count in result["finished"]:
                    lines[file] += count

    def _sources(self, results: list[Any]) -> tuple[SourceEntry, ...]:
        """Return all sources; those that could not be read have no size and digest."""
        facts: dict[int, tuple[int | None, str | None]] = {}
        documents: Counter[int] = Counter()
        for result in results:
            for file, size, digest, count, _ in result["finished"]:
                documents[file] += count
                if digest is not None:
                    facts[file] = (size, digest)
                elif result["is_divided"]:
                    facts[file] = self._digests[file] or (None, None)
        return tuple(
            SourceEntry(
                name=name,
                size=facts.get(number, (None, None))[0],
                xxh3_128=facts.get(number, (None, None))[1],
                documents=documents[number],
            )
            for number, name in enumerate(self._names)
        )


def _divided(slices: list[Slice]) -> list[DividedFile]:
    """Return the files of which each task reads only a part."""
    files = {
        part.first_file: file.file
        for part in slices
        for file in part.files
        if isinstance(file, FilePart)
    }
    return [DividedFile(number, file) for number, file in files.items()]


def _shard_entry(values: dict[str, Any]) -> ShardEntry:
    files = tuple(FileEntry(**file) for file in values["files"])
    return ShardEntry(**values | {"files": files})
