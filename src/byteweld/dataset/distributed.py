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
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from byteweld._folders import Folder, LocalFolder, open_folder
from byteweld.corpus import Corpus
from byteweld.corpus._parts import FilePart
from byteweld.corpus._slices import Slice, divide
from byteweld.dataset._checks import is_plain_path
from byteweld.dataset._encoding import source_names
from byteweld.dataset._job import FACTS, WORK, Job, published_by_tasks
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
from byteweld.dataset.options import Plan
from byteweld.dataset.run import Progress, Result
from byteweld.distributed._work import begin, digest_of, slice_facts
from byteweld.engines import Engine, LocalEngine, RankEngine
from byteweld.errors import CorpusError
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

Report = Callable[[Progress], object]


def run_on(
    engine: Engine,
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
    target.job.check_packages()
    with target.locked(overwrite=overwrite):
        done = target.complete_manifest()
        if done is not None:
            return Result(done, True, done.documents, time.perf_counter() - started)
        making = _Making(target, engine, progress)
        resumed = making.resumed_documents()
        making.encode()
        manifest = making.finish()
    return Result(manifest, False, resumed, time.perf_counter() - started)


def encode_share(
    engine: RankEngine,
    sources: Sources,
    tok: Tokenizer,
    out: str,
    plan: Plan,
    *,
    progress: Report | None = None,
) -> None:
    """Encode the slices of one rank; `merge_ranks` makes the dataset when all have."""
    target = _Target(sources, tok, out, plan)
    target.job.check_packages()
    if target.complete_manifest() is None:
        target.check_unfinished()
        making = _Making(target, engine, progress)
        making.resumed_documents()
        making.encode()


def merge_ranks(
    sources: Sources,
    tok: Tokenizer,
    out: str,
    plan: Plan,
    *,
    engine: Engine | None = None,
    progress: Report | None = None,
) -> Result:
    """Make the dataset of what all ranks have encoded."""
    started = time.perf_counter()
    target = _Target(sources, tok, out, plan)
    with target.locked(overwrite=False):
        done = target.complete_manifest()
        if done is not None:
            return Result(done, True, done.documents, time.perf_counter() - started)
        making = _Making(target, engine or LocalEngine(), progress)
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
        self.plan = plan
        self.tok = tok
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
                "same job without --engine and --rank to finish it, or pass overwrite=True "
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

    def save(self, manifest: Manifest) -> None:
        """Write the manifest, and remove the work folder."""
        if isinstance(self.out, LocalFolder):
            manifest.save(self.out.path)
        else:
            self.out.write(MANIFEST, manifest.to_json())
        self.work.remove_all()


class _Making:
    """The tasks of a dataset, and what they have returned."""

    def __init__(self, target: _Target, engine: Engine, progress: Report | None) -> None:
        self._target = target
        self._engine = engine
        self._progress = progress
        self._options = target.plan.options
        self._format = target.plan.format
        self._dtype = self._options.dtype or ""
        self._splits: list[Split] = ["train"]
        if self._options.validation:
            self._splits.append("validation")
        self._slices = divide(target.corpus, engine.slice_bytes)
        self._facts = target.job.facts()
        described = {**self._facts, "sources": digest_of(self._facts["sources"])}
        described["slices"] = slice_facts(self._slices)
        self._work = begin(target.work, described, overwrite=False)
        self._encoded: dict[int, Any] = {}
        self._digests: dict[int, Any] = {}

    def resumed_documents(self) -> int:
        """Return the number of documents that earlier runs have encoded."""
        self._encoded = self._work.results(SLICES)
        self._digests = self._work.results(DIGESTS)
        return sum(result["documents"] for result in self._encoded.values())

    def _divided(self) -> list[DividedFile]:
        """Return the files of which each task reads only a part."""
        files = {
            part.first_file: file.file
            for part in self._slices
            for file in part.files
            if isinstance(file, FilePart)
        }
        return [DividedFile(number, file) for number, file in files.items()]

    # ---------------------------------------------------------------- encoding

    def encode(self) -> None:
        """Encode the slices that are not encoded yet, and hash divided files; a rank, its share."""
        target, engine = self._target, self._engine
        mine = engine.share(self._slices)
        todo = [part for part in mine if part.number not in self._encoded]
        sizes = {part.number: part.size for part in mine}
        total = sum(sizes.values())
        done = total - sum(part.size for part in todo)
        task = EncodeSlice.of(
            self._work, target.tok, target.corpus, target.plan, engine.threads_per_task
        )
        self._report("encoding", done, total)
        for number, result in engine.map_unordered(task, todo):
            self._encoded[number] = result
            done += sizes[number]
            self._report("encoding", done, total)
        digest = DigestFile(self._work, target.corpus.reading.on_error == "skip")
        files = [file for file in engine.share(self._divided()) if file.number not in self._digests]
        self._digests.update(engine.map_unordered(digest, files))

    def check_encoded(self) -> None:
        """Raise unless all slices are encoded and all divided files hashed."""
        self.resumed_documents()
        slices = [part.number for part in self._slices if part.number not in self._encoded]
        files = [file.number for file in self._divided() if file.number not in self._digests]
        if slices or files:
            missing = (
                f"{len(slices)} of {len(self._slices)} slices are not encoded yet, the first is "
                f"number {slices[0]}"
                if slices
                else f"{len(files)} divided files are not hashed yet"
            )
            raise FileNotFoundError(
                f"{self._work.folder}: {missing}; run the ranks that do it, with the same options"
            )

    def _report(self, stage: str, done: int, total: int | None) -> None:
        if self._progress is not None:
            results = self._encoded.values()
            documents, tokens, text_bytes = (
                sum(result[name] for result in results)
                for name in ("documents", "tokens", "text_bytes")
            )
            self._progress(Progress(stage, done, total, documents, tokens, text_bytes))

    # ---------------------------------------------------------------- shards

    def finish(self) -> Manifest:
        """Write all shards and the manifest."""
        if self._target.job.facts() != self._facts:
            raise CorpusError(
                "files of the corpus changed while they were encoded; start again when nothing "
                "writes to them, with overwrite=True (--force)"
            )
        plans: list[SplitPlan] = []
        first = 0
        for split, pieces in zip(self._splits, self._pieces(), strict=True):
            plan = plan_split(
                split,
                pieces,
                shard_tokens=self._options.shard_tokens,
                splits_documents=self._format.splits_documents,
                pack=self._options.pack,
                lengths=lambda piece: piece_lengths(self._work.folder, piece),
                first_task=first,
            )
            plans.append(plan)
            first += len(plan.shards)
        entries = self._write_shards([shard for plan in plans for shard in plan.shards])
        manifest = self._manifest(plans, entries)
        self._target.save(manifest)
        return manifest

    def _pieces(self) -> list[list[Piece]]:
        """Return the pieces of each split, in the order of its documents."""
        numbered = list(self._numbered())
        if len(self._splits) == 1 and not self._options.shuffle:
            return [[Piece(SLICES, n.slice, 0, n.tokens, 0, n.documents) for n in numbered]]
        count = num_buckets(self._target.job.total_bytes) if self._options.shuffle else None
        group = GroupSlice(
            self._work, self._dtype, self._options.seed, self._options.validation, count
        )
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
        shuffle = ShuffleBucket(self._work, self._dtype, self._options.seed)
        buckets = {number: Bucket(number, tuple(found)) for number, found in enumerate(groups)}
        shuffled = self._run_stage(BUCKETS, shuffle, buckets, "shuffling")
        pieces = [
            Piece(BUCKETS, number, 0, tokens, 0, documents)
            for number, (documents, tokens) in sorted(shuffled.items())
        ]
        return [pieces[at : at + count] for at in range(0, len(pieces), count)]

    def _numbered(self) -> Iterator[Numbered]:
        first = 0
        for number in range(len(self._slices)):
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
        for number, result in self._engine.map_unordered(task, todo):
            results[number] = result
            self._report(name, len(results), len(items))
        return results

    def _write_shards(self, plans: list[ShardPlan]) -> list[ShardEntry]:
        name = ShardName(
            is_only=self._options.shard_tokens is None,
            has_validation=bool(self._options.validation),
            prefix=self._options.prefix,
            is_shuffled=self._options.shuffle,
        )
        task = WriteShard(
            self._work,
            self._target.out,
            self._format.name,
            self._dtype,
            name,
            self._options.pack,
        )
        items = {plan.task: plan for plan in plans}
        results = self._run_stage(SHARDS, task, items, "writing")
        return [_shard_entry(results[plan.task]) for plan in plans]

    # ---------------------------------------------------------------- manifest

    def _manifest(self, plans: list[SplitPlan], shards: list[ShardEntry]) -> Manifest:
        results = [self._encoded[number] for number in range(len(self._slices))]
        specials: Counter[str] = Counter()
        for result in results:
            specials.update(result["special_text"])
        manifest = dataclasses.replace(
            self._target.job.manifest(),
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
            names = tuple(self._format.finish(Path(str(self._target.out)), manifest, scratch))
            return dataclasses.replace(
                manifest, files=publish(scratch, self._target.out, names, {})
            )

    def _skips(self, results: list[Any]) -> Iterator[SkipEntry]:
        """Yield what was skipped, in order, with the lines of the files."""
        names = source_names(self._target.job.sources)
        lines: Counter[int] = Counter()  # of the parts of each file before
        for part, result in zip(self._slices, results, strict=True):
            for file, line, row, offset, reason in result["skips"]:
                whole = None if line is None else line + lines[file]
                yield SkipEntry(
                    source=names[file], reason=reason, line=whole, row=row, offset=offset
                )
            if _is_divided(part):
                for file, _, _, _, count in result["finished"]:
                    lines[file] += count

    def _sources(self, results: list[Any]) -> tuple[SourceEntry, ...]:
        """Return all sources; those that could not be read have no size and digest."""
        facts: dict[int, tuple[int | None, str | None]] = {}
        documents: Counter[int] = Counter()
        for part, result in zip(self._slices, results, strict=True):
            for file, size, digest, count, _ in result["finished"]:
                documents[file] += count
                if digest is not None:
                    facts[file] = (size, digest)
                elif _is_divided(part):
                    facts[file] = self._digests[file] or (None, None)
        names = source_names(self._target.job.sources)
        return tuple(
            SourceEntry(
                name=name,
                size=facts.get(number, (None, None))[0],
                xxh3_128=facts.get(number, (None, None))[1],
                documents=documents[number],
            )
            for number, name in enumerate(names)
        )


def _is_divided(part: Slice) -> bool:
    return isinstance(part.files[0], FilePart)


def _shard_entry(values: dict[str, Any]) -> ShardEntry:
    files = tuple(FileEntry(**file) for file in values["files"])
    return ShardEntry(**values | {"files": files})
