"""Sources: what a user passes as a corpus (files, saved counts, documents), and how to count it."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from byteweld._files import sha256
from byteweld._text import utf8
from byteweld.corpus import (
    ArrowTable,
    Corpus,
    File,
    Reading,
    ReadingOptions,
    describe,
    is_table,
    open_corpus,
    whole_file,
)
from byteweld.counts import Counts, Memory, count_corpus, same_pattern
from byteweld.recipes import Recipe

Path_ = str | os.PathLike[str]
Document = str | bytes

# Above this number, files are identified by a single digest instead of one by one.
_MAX_LISTED_FILES = 10_000


class Counted(NamedTuple):
    """Counts, and what they were made from."""

    counts: Counts
    files: int | None  # None if only documents in memory or saved counts were counted
    file_bytes: int | None
    tables: int  # saved counts that were added
    seconds: float
    is_resumed: bool = False  # from a checkpoint


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Files, saved counts and documents. Their counts are added up."""

    corpus: Corpus | None = None
    tables: tuple[Counts | Path, ...] = ()
    documents: Iterable[Document] | None = None

    def count(
        self,
        recipe: Recipe,
        *,
        num_threads: int | None = None,
        memory: Memory | None = None,
        of_files: Counts | None = None,
        progress: Callable[[int, int | None], object] | None = None,
    ) -> Counted:
        """Count all pre-tokens; `progress` is called with the bytes read and the total or None.

        If the files have been counted (`jobs.counting.count_sources`), `of_files` are their counts.
        """
        started = time.perf_counter()
        resources: dict[str, Any] = {"num_threads": num_threads, "memory": memory}
        tables: list[Counts] = []
        files = None if self.corpus is None else self.corpus.files
        file_bytes = self.corpus.total_bytes if self.corpus and files else None
        if of_files is not None:
            tables.append(of_files)
        elif self.corpus is not None:
            read = 0

            def report(done: int) -> None:
                nonlocal read
                read = done
                if progress is not None:
                    progress(min(done, file_bytes) if file_bytes else done, file_bytes or None)

            tables.append(count_corpus(self.corpus, recipe, progress=report, **resources))
            if file_bytes is not None and not self.corpus.has_tables:
                file_bytes = max(file_bytes, read)  # the size of a pipe was not known
        for table in self.tables:
            tables.append(_load(table, recipe, memory))
        if self.documents is not None:
            of_documents = None if progress is None else lambda done: progress(done, None)
            tables.append(count_corpus(self.documents, recipe, progress=of_documents, **resources))
        counts = tables[0] if len(tables) == 1 else Counts.merge(tables, **resources)
        return Counted(
            counts, self.num_files, file_bytes, len(self.tables), time.perf_counter() - started
        )

    @property
    def num_files(self) -> int | None:
        """Number of files; None if there are none."""
        return len(self.corpus.files) or None if self.corpus else None

    @property
    def is_counted(self) -> bool:
        """Whether all sources are Counts objects, so that nothing needs to be read."""
        has_text = self.corpus is not None or self.documents is not None
        return not has_text and all(isinstance(table, Counts) for table in self.tables)

    @property
    def skipped_files(self) -> Mapping[str, int]:
        """Number of files skipped in folders, by extension."""
        return {} if self.corpus is None else self.corpus.skipped_files

    def facts(self) -> dict[str, Any]:
        """Return what identifies the sources, for a checkpoint."""
        if self.documents is not None or (self.corpus and self.corpus.table is not None):
            raise TypeError(
                "a checkpoint needs files or saved counts, which can be read again; "
                "documents in memory cannot"
            )
        files = [] if self.corpus is None else [whole_file(file) for file in self.corpus.files]
        counts = []
        for table in self.tables:
            if isinstance(table, Counts):
                counts.append({"distinct": len(table), "total": table.total})
            else:
                files += sorted(path for path in table.rglob("*") if path.is_file())
        facts: dict[str, Any] = {"files": _identified(files), "counts": counts, "reading": None}
        if self.corpus is not None:
            facts["reading"] = dataclasses.asdict(self.corpus.reading)
            del facts["reading"]["ext"]  # the files it selects are listed above
        return facts

    def by_file(self) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Yield each file's name and its documents; documents in memory count as one file."""
        if self.tables:
            raise TypeError("counts have no documents; pass paths, or documents=[...]")
        if self.corpus is not None:
            yield from self.corpus.by_file()
        if self.documents is not None:
            yield "documents", map(utf8, self.documents)


def _identified(files: Iterable[File]) -> list[list[object]] | str:
    """Return the name, size and version of each file; one digest, if there are many."""
    known: list[list[object]] = []
    for file in files:
        if isinstance(file, str):
            found = describe(file)
            known.append([str(file), found.size, found.version])
            continue
        status = file.stat()
        # A file name can be any bytes, but a JSON string cannot.
        name = os.fsencode(file.absolute()).decode("utf-8", "backslashreplace")
        known.append([name, status.st_size, status.st_mtime_ns])
    if len(known) <= _MAX_LISTED_FILES:
        return known
    return f"{len(known)} files with digest {sha256(json.dumps(known).encode())[:16]}"


Source = Path_ | Sequence[Path_] | Iterable[Document] | ArrowTable | Counts | Corpus | Sources


def open_sources(
    source: Source | None,
    *,
    documents: Iterable[Document] | None = None,
    recipe: Recipe | None = None,
    options: ReadingOptions | None = None,
    without: Path_ | None = None,
) -> Sources:
    """Find the files; read nothing yet.

    A source is a path, folder, glob or URL, or a list of them; saved counts; a Corpus; an object
    with `__arrow_c_stream__`; an iterator of documents; or Sources, which are open. `recipe` sets
    the default extensions and unit. The folder `without` is left out, even inside a source.
    """
    options = {} if options is None else options
    if isinstance(documents, str | bytes):
        raise TypeError(
            "documents is a single string; expected a list or another iterable of documents"
        )
    if isinstance(source, Sources):
        return source
    if source is None:
        if documents is None:
            raise TypeError("pass a source (paths, folders, globs), or documents=[...]")
        found = Sources(documents=documents)
    elif isinstance(source, Counts):
        found = Sources(tables=(source,), documents=documents)
    elif isinstance(source, Corpus):
        found = Sources(corpus=source, documents=documents)
    elif is_table(source):
        return _open_table(source, documents, options)
    elif _is_paths(source):
        return _open_paths(source, documents, recipe, options, without)
    elif documents is not None:
        raise TypeError("the source is an iterable of documents; pass either it or documents=[...]")
    else:
        found = Sources(documents=source)  # type: ignore[arg-type]  # _is_paths has ruled paths out
    if Reading.of(options) != Reading():
        given = "documents" if source is None else type(source).__name__
        raise TypeError(
            "ext, lines, separator, field, json_lines and on_error say how files are read; "
            f"they have no effect on {given}"
        )
    return found


def _open_paths(
    source: Path_ | Sequence[Path_],
    documents: Iterable[Document] | None,
    recipe: Recipe | None,
    options: ReadingOptions,
    without: Path_ | None,
) -> Sources:
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    saved: list[Path] = []
    others: list[Path_] = []
    for path in paths:
        if Counts.is_saved_at(path):
            saved.append(Path(path))
        else:
            others.append(path)
    corpus = None
    if others:
        defaults: dict[str, Any] = {}
        if recipe is not None:
            defaults = {"unit": recipe.document_unit, "ext": recipe.extensions}
        corpus = open_corpus(others, Reading.of(options, **defaults), without=without)
    return Sources(corpus=corpus, tables=tuple(saved), documents=documents)


def _open_table(
    source: ArrowTable, documents: Iterable[Document] | None, options: ReadingOptions
) -> Sources:
    reading = Reading.of(options)
    if reading != Reading(field=reading.field, on_error=reading.on_error):
        raise TypeError(
            "ext, lines, separator and json_lines say how files are read; "
            f"they have no effect on {type(source).__name__}"
        )
    return Sources(corpus=Corpus(table=source, reading=reading), documents=documents)


def _is_paths(source: Source) -> TypeGuard[Path_ | Sequence[Path_]]:
    if isinstance(source, str | os.PathLike):
        return True
    if isinstance(source, bytes):
        raise TypeError("the source is bytes; for a document, pass documents=[...]")
    if isinstance(source, set | frozenset):
        raise TypeError("a set has no order; pass a list of paths, or documents=[...]")
    if isinstance(source, Mapping):
        keys = ", ".join(map(repr, list(source)[:10]))
        raise TypeError(f"the source is a dict with the keys {keys}; pass one of its values")
    if not isinstance(source, list | tuple) or not source:
        return False
    kinds = {isinstance(item, bytes) for item in source}
    if len(kinds) > 1:
        raise TypeError("the list has both paths and bytes; pass documents as documents=[...]")
    for item in source:
        if not isinstance(item, bytes | str | os.PathLike):
            raise TypeError(
                f"the list contains {item!r}; expected paths of files, folders or saved counts"
            )
    return not kinds.pop()


def _load(table: Counts | Path, recipe: Recipe, memory: Memory | None) -> Counts:
    """Load saved counts; raise if they were made with another pattern or special tokens."""
    counts = table if isinstance(table, Counts) else Counts.load(table, memory=memory)
    is_known = counts.boundaries is not None
    if (is_known or counts.pattern is not None) and not same_pattern(
        counts.pattern, recipe.pattern
    ):
        raise ValueError(
            f"the counts were made with pattern {counts.pattern!r}, but the recipe has "
            f"{recipe.pattern!r}; train with the same pattern, or count again"
        )
    if is_known and counts.boundaries != tuple(sorted(set(recipe.boundaries))):
        raise ValueError(
            f"the counts were split at the special tokens {counts.boundaries}, but the recipe has "
            f"{recipe.boundaries}; count again with the same special_tokens="
        )
    return counts
