"""Sources -> counts, and documents by file. Standard input and saved counts are sources as well."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import byteweld
from byteweld.cli import _errors, _input, _output
from byteweld.cli._options import Reading
from byteweld.corpus import Reading as Reading_
from byteweld.corpus import ReadingOptions


class Counted(NamedTuple):
    """Counts, and what they were made of: files (standard input is one) and saved tables."""

    counts: byteweld.Counts
    files: int
    bytes_read: int
    tables: int
    seconds: float

    def sentence(self) -> str:
        """What was counted, for people."""
        return (
            f"counted {_output.amount(self.counts.total, 'pre-token')}, "
            f"{len(self.counts)} distinct, in {' and '.join(self._parts())} "
            f"({_output.seconds(self.seconds)})" + self._skipped() + self._pruned()
        )

    def _pruned(self) -> str:
        pruning = self.counts.pruning
        if pruning is None:
            return ""
        return (
            f"; left out {_output.amount(pruning.distinct, 'distinct pre-token')} below "
            f"{pruning.threshold}, {pruning.occurrences} in all: the count of a pair is at most "
            f"{pruning.pair_error} too small"
        )

    def _skipped(self) -> str:
        skipped = self.counts.skipped_documents
        return f"; skipped {_output.amount(skipped, 'document')}" if skipped else ""

    def _parts(self) -> list[str]:
        files = f"{_output.amount(self.files, 'file')}, {_output.size(self.bytes_read)}"
        tables = _output.amount(self.tables, "table") + " of counts"
        return [*([files] if self.files else []), *([tables] if self.tables else [])]


def documents_by_file(
    sources: Sequence[str], reading: Reading
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Each file's name and its documents, in the order of the sources; `-` is standard input."""
    _check_stdin(sources, reading)
    # All sources are looked up before the first is read: a wrong name shows at once.
    corpora = [None if s == _input.STDIN else _open([s], reading) for s in sources]
    for corpus in corpora:
        if corpus is None:
            documents = _input.stdin_documents(lines=reading.lines, separator=reading.separator)
            yield _input.STDIN, documents
            continue
        yield from corpus.by_file()


class Files:
    """Each file's name and its documents, once; counts what was left out."""

    def __init__(self, sources: Sequence[str], reading: Reading) -> None:
        self._by_file = documents_by_file(sources, reading)
        self.skipped = 0

    def __iter__(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        for name, documents in self._by_file:
            yield name, documents
            self.skipped += skipped(documents)

    def tell_skipped(self) -> None:
        """Say how many documents were left out, if any were."""
        if self.skipped:
            _output.say(f"skipped {_output.amount(self.skipped, 'document')}")


def skipped(documents: Iterator[bytes]) -> int:
    """How many documents were left out; known when all are read. Of standard input, none is."""
    return cast(int, getattr(documents, "skipped", 0))


def count(
    sources: Sequence[str],
    recipe: byteweld.Recipe,
    reading: Reading,
    threads: int | None,
    *,
    memory: str | None = None,
    prune: int | None = None,
    checkpoint: Path | None = None,
) -> Counted:
    """Count the pre-tokens of all sources, with progress, and add saved counts.

    What lies in the folder of the checkpoint is no part of the corpus.
    """
    _check_stdin(sources, reading)
    started = time.perf_counter()
    resources: dict[str, Any] = {"num_threads": threads, "memory": memory}
    tables: list[byteweld.Counts] = []
    saved = [source for source in sources if byteweld.Counts.is_saved_at(source)]
    paths = [s for s in sources if s != _input.STDIN and s not in saved]
    files = bytes_read = 0
    if paths:
        corpus = _open(paths, reading, recipe.document_unit, recipe.extensions, checkpoint)
        files, bytes_read = len(corpus.files), corpus.total_bytes
        with _output.progress("counting", bytes_read, "bytes") as advance:
            tables.append(byteweld.count(corpus, recipe=recipe, progress=advance, **resources))
    tables += [byteweld.count(folder, recipe=recipe, memory=memory) for folder in saved]
    if _input.STDIN in sources:
        size = 0

        def documents() -> Iterator[bytes]:
            nonlocal size
            by_line = reading.lines or recipe.document_unit == "line"
            for document in _input.stdin_documents(lines=by_line, separator=reading.separator):
                size += len(document)
                yield document

        with _output.progress("counting", None, "bytes") as advance:
            tables.append(byteweld.count(documents(), recipe=recipe, progress=advance, **resources))
        files, bytes_read = files + 1, bytes_read + size
    counts = tables[0] if len(tables) == 1 else byteweld.Counts.merge(tables, **resources)
    if prune is not None:
        counts = counts.prune(prune, memory=memory)
    return Counted(counts, files, bytes_read, len(saved), time.perf_counter() - started)


def files(
    sources: Sequence[str], recipe: byteweld.Recipe, reading: Reading, checkpoint: Path
) -> list[Path]:
    """The files of all sources, those of saved counts included; standard input has none.

    Those of the checkpoint are left out.
    """
    found: list[Path] = []
    for source in sources:
        if byteweld.Counts.is_saved_at(source):
            found += sorted(path for path in Path(source).rglob("*") if path.is_file())
        elif source != _input.STDIN:
            unit, extensions = recipe.document_unit, recipe.extensions
            found += _open([source], reading, unit, extensions, checkpoint).files
    return found


def counted_before(
    counts: byteweld.Counts,
    sources: Sequence[str],
    recipe: byteweld.Recipe,
    reading: Reading,
    checkpoint: Path,
    *,
    seconds: float,
) -> Counted:
    """The same as `count` gave before the training was killed, for counts that were kept."""
    tables = sum(byteweld.Counts.is_saved_at(source) for source in sources)
    others = [source for source in sources if not byteweld.Counts.is_saved_at(source)]
    found = files(others, recipe, reading, checkpoint)
    return Counted(counts, len(found), sum(file.stat().st_size for file in found), tables, seconds)


def _check_stdin(sources: Sequence[str], reading: Reading) -> None:
    """Refuse what would have no effect on standard input."""
    if _input.STDIN not in sources:
        return
    for flag, is_given in (
        ("--field", reading.field is not None),
        (f"--on-error {reading.on_error}", reading.on_error != "fail"),
    ):
        if is_given:
            raise _errors.UsageError(
                f"{flag} has no effect on standard input (-), which is plain text; "
                f"give the name of a file, or leave {flag} out"
            )


def _open(
    sources: Sequence[str],
    reading: Reading,
    unit: Literal["file", "line"] = "file",
    extensions: Sequence[str] | None = None,
    checkpoint: Path | None = None,
) -> byteweld.Corpus:
    """Resolve sources; `unit` and `extensions` are the recipe's, where the user says nothing."""
    options: ReadingOptions = {**reading._asdict()}  # type: ignore[typeddict-item]
    return byteweld.open_corpus(
        list(sources), Reading_.of(options, unit=unit, ext=extensions), without=checkpoint
    )
