"""The sources of verbs that count: files, folders, globs, saved counts, and standard input."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import byteweld
from byteweld.cli import _input, _output
from byteweld.cli._documents import say_skipped_files
from byteweld.corpus import ReadingOptions
from byteweld.sources import Counted, Sources, open_sources


def open_all(
    sources: Sequence[str],
    recipe: byteweld.Recipe | None,
    reading: ReadingOptions,
    without: str | None = None,
) -> Sources:
    """Find the files of all sources; `-` is standard input.

    `without` is a folder to exclude, even if it is inside a source.
    """
    files = _input.files(sources, reading)
    found = open_sources(files, recipe=recipe, options=reading, without=without)
    say_skipped_files(found.skipped_files)
    return found


class Bars(contextlib.ExitStack):
    """Progress bars, one at a time: a new stage or total replaces the current one."""

    def __init__(self, sources: Sources) -> None:
        super().__init__()
        corpus = sources.corpus
        self.is_compressed = corpus is not None and corpus.has_compressed
        self._shown: tuple[str, int | None] | None = None
        self._advance: Callable[[int], None] = lambda done: None

    def close(self) -> None:
        """Remove the bar."""
        super().close()
        self._shown = None

    def show(
        self,
        what: str,
        done: int,
        total: int | None,
        unit: _output.Unit,
        detail: Callable[[], str] = str,
    ) -> None:
        """Show how much of a stage is done; the first call of a stage sets the starting point."""
        if self._shown != (what, total):
            self.close()
            self._shown = (what, total)
            already = done if unit == "merges" else 0
            how: dict[str, Any] = {"already": already, "is_compressed": self.is_compressed}
            bar = _output.progress(what, total, unit, detail=detail, **how)
            self._advance = self.enter_context(bar)
        self._advance(done)

    def count(self, done: int, total: int | None) -> None:
        """Show the number of bytes counted."""
        self.show("counting", done, total, "bytes")

    def say_counted(self, counted: Counted) -> None:
        """Summarize a count in one sentence."""
        counts = counted.counts
        parts = []
        if counted.files:
            size = _output.size(counted.file_bytes or 0, is_compressed=self.is_compressed)
            parts.append(f"{_output.amount(counted.files, 'file')}, {size}")
        if counted.tables:
            parts.append(f"{_output.amount(counted.tables, 'table')} of counts")
        sentence = (
            f"counted {_output.amount(counts.total, 'pre-token')}, {len(counts):,} distinct, "
            f"in {' and '.join(parts)} ({_output.seconds(counted.seconds)})"
        )
        if counts.skipped_documents:
            sentence += f"; skipped {_output.amount(counts.skipped_documents, 'document')}"
        if counts.pruning is not None:
            pruning = counts.pruning
            sentence += (
                f"; pruned {_output.amount(pruning.distinct, 'distinct pre-token')} below "
                f"{pruning.threshold:,}, {pruning.occurrences:,} in total: pair counts are too "
                f"small by at most {pruning.pair_error:,}"
            )
        _output.say(sentence)


def bytes_per_token(
    tok: byteweld.Tokenizer, counts: byteweld.Counts, threads: int | None = None
) -> float | None:
    """Return the exact bytes per token of the encoded training corpus; None if it is empty.

    If encoding splits text as training did, the training report has the answer. Otherwise each
    distinct pre-token is encoded once and weighted by its count.
    """
    if tok.training is not None and tok.vocab.pattern == tok.training.recipe.pattern:
        return tok.training.bytes_per_token
    import numpy as np

    num_tokens = 0
    for batch, weight in counts.batches():
        _, offsets = tok.encode_ragged(batch, num_threads=threads, disallowed_special=())
        num_tokens += int(np.dot(np.diff(offsets).astype(np.uint64), weight))
    return counts.total_bytes / num_tokens if num_tokens else None
