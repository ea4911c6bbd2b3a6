"""The sources of a verb: files, folders, globs, saved counts, and standard input."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Self, cast

import byteweld
from byteweld.cli import _errors, _input, _output
from byteweld.cli._options import Reading
from byteweld.corpus import Corpus, open_corpus
from byteweld.corpus import Reading as CorpusReading
from byteweld.sources import Counted, Sources, open_sources


def open_all(
    sources: Sequence[str],
    recipe: byteweld.Recipe,
    reading: Reading,
    checkpoint: str | None = None,
) -> Sources:
    """Find the files of all sources; `-` is standard input, read as documents."""
    _check_stdin(sources, reading)
    paths = [source for source in sources if source != _input.STDIN]
    documents = None
    if len(paths) < len(sources):
        by_line = reading.lines or recipe.document_unit == "line"
        documents = _input.stdin_documents(lines=by_line, separator=reading.separator)
    if not paths:
        return Sources(documents=documents, document_files=1)
    found = open_sources(
        paths,
        documents=documents,
        recipe=recipe,
        options=reading.options(),
        without=checkpoint,
    )
    say_skipped_files(found.corpus)
    if documents is None:
        return found
    return Sources(corpus=found.corpus, tables=found.tables, documents=documents, document_files=1)


def say_skipped_files(corpus: Corpus | None) -> None:
    """Say in one line which files in folders were not read because of their extension."""
    skipped = {} if corpus is None else corpus.skipped_files
    if not skipped:
        return
    by_count = sorted(skipped.items(), key=lambda item: (-item[1], item[0]))
    names = [f"{extension or 'no extension'} ({count:,})" for extension, count in by_count]
    more = f", {len(names) - 5} more" if len(names) > 5 else ""
    total = _output.amount(sum(skipped.values()), "file")
    _output.say(
        f"skipped {total} with other extensions: {', '.join(names[:5])}{more}; "
        "choose with --ext, such as --ext '*' for all"
    )


class Bars:
    """Progress bars, one after another: a new stage or total takes the place of the last."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._shown: tuple[str, int | None] | None = None
        self._advance: Callable[[int], None] = lambda done: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the bar."""
        self._stack.close()
        self._shown = None

    def show(self, what: str, done: int, total: int | None, unit: _output.Unit) -> None:
        """Show how much of a stage is done; the first call says where it starts."""
        if self._shown != (what, total):
            self.close()
            self._shown = (what, total)
            already = done if unit == "merges" else 0
            bar = _output.progress(what, total, unit, already=already)
            self._advance = self._stack.enter_context(bar)
        self._advance(done)

    def count(self, done: int, total: int | None) -> None:
        """Show how many bytes are counted."""
        self.show("counting", done, total, "bytes")


def count_sentence(counted: Counted) -> str:
    """What was counted, for people."""
    counts = counted.counts
    parts = []
    if counted.files:
        files = _output.amount(counted.files, "file")
        parts.append(f"{files}, {_output.size(counted.file_bytes or 0)}")
    if counted.tables:
        parts.append(f"{_output.amount(counted.tables, 'table')} of counts")
    said = (
        f"counted {_output.amount(counts.total, 'pre-token')}, {len(counts):,} distinct, "
        f"in {' and '.join(parts)} ({_output.seconds(counted.seconds)})"
    )
    if counts.skipped_documents:
        said += f"; skipped {_output.amount(counts.skipped_documents, 'document')}"
    if counts.pruning is not None:
        pruning = counts.pruning
        said += (
            f"; pruned {_output.amount(pruning.distinct, 'distinct pre-token')} below "
            f"{pruning.threshold:,}, {pruning.occurrences:,} in all: the count of a pair is at "
            f"most {pruning.pair_error:,} too small"
        )
    return said


def bytes_per_token(
    tok: byteweld.Tokenizer, counts: byteweld.Counts, threads: int | None = None
) -> float | None:
    """Bytes per token of the training corpus as encoded, exactly; None for an empty corpus.

    If encoding splits as the training did, the training knows. Otherwise each distinct pre-token is
    encoded once and weighted by its count.
    """
    if tok.training is not None and tok.vocab.pattern == tok.training.recipe.pattern:
        return tok.training.bytes_per_token
    import numpy as np

    num_bytes = num_tokens = 0
    for batch, weight in counts.batches():
        _, offsets = tok.encode_ragged(batch, num_threads=threads, disallowed_special=())
        lengths = np.array([len(pretoken) for pretoken in batch], np.uint64)
        num_tokens += int(np.dot(np.diff(offsets).astype(np.uint64), weight))
        num_bytes += int(np.dot(lengths, weight))
    return num_bytes / num_tokens if num_tokens else None


# ---------------------------------------------------------------------------- documents by file


def documents_by_file(
    sources: Sequence[str], reading: Reading
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Each file's name and its documents, in the order of the sources; `-` is standard input."""
    _check_stdin(sources, reading)
    # All sources are resolved before the first is read: a wrong name fails at once.
    how = CorpusReading.of(reading.options())
    corpora = [None if s == _input.STDIN else open_corpus(s, how) for s in sources]
    for corpus in corpora:
        say_skipped_files(corpus)
    for corpus in corpora:
        if corpus is None:
            documents = _input.stdin_documents(lines=reading.lines, separator=reading.separator)
            yield _input.STDIN, documents
        else:
            yield from corpus.by_file()


class Files:
    """Each file's name and its documents, once; counts skipped documents."""

    def __init__(self, sources: Sequence[str], reading: Reading) -> None:
        self._by_file = documents_by_file(sources, reading)
        self.skipped = 0

    def __iter__(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        for name, documents in self._by_file:
            yield name, documents
            self.skipped += skipped(documents)

    def say_skipped(self) -> None:
        """Say how many documents were skipped, if any."""
        if self.skipped:
            _output.say(f"skipped {_output.amount(self.skipped, 'document')}")


def skipped(documents: Iterator[bytes]) -> int:
    """Number of documents skipped so far; 0 for standard input."""
    return cast(int, getattr(documents, "skipped", 0))


def _check_stdin(sources: Sequence[str], reading: Reading) -> None:
    """Refuse options that have no effect on standard input."""
    if _input.STDIN not in sources:
        return
    for flag, is_given in (
        ("--field", reading.field is not None),
        (f"--on-error {reading.on_error}", reading.on_error != "fail"),
    ):
        if is_given:
            raise _errors.UsageError(
                f"{flag} has no effect on standard input (-), which is plain text; "
                f"pass the name of a file, or leave {flag} out"
            )
