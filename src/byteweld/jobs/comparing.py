"""Compares tokenizers in tasks: each compares one slice, and the sums are added in order.

The result is that of `compare_files` on the whole corpus, except for the seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Unpack

from byteweld.comparison.corpora import MAX_DIFFERENCES, Comparison, Sums, sum_files, to_comparison
from byteweld.corpus import Corpus
from byteweld.evaluation.corpora import EncodingOptions
from byteweld.jobs import Runner
from byteweld.jobs._ordered import Progress, continues, results_in_order
from byteweld.tokenizer import Tokenizer


class Compared(NamedTuple):
    """A comparison, and the number of malformed documents that were skipped."""

    comparison: Comparison
    skipped: int


def compare_corpus(
    runner: Runner,
    tokenizers: Sequence[Tokenizer],
    corpus: Corpus,
    *,
    names: Sequence[str] | None = None,
    max_differences: int = MAX_DIFFERENCES,
    progress: Progress | None = None,
    resumed: Progress | None = None,
    **options: Unpack[EncodingOptions],
) -> Compared:
    """Compare tokenizers on a corpus, in tasks of a runner; see `compare_files`.

    `progress` and `resumed` are as in `results_in_order`.
    """
    options["num_threads"] = runner.threads_per_task
    task = _CompareSlice(tuple(tokenizers), max_differences, options)
    specials = (options.get("allowed_special"), options.get("disallowed_special", "all"))
    facts = {
        "job": "compare",
        "tokenizers": [tok.vocab.fingerprint for tok in tokenizers],
        "specials": [some if some in (None, "all") else sorted(some) for some in specials],
        "max_differences": max_differences,
    }
    total, skipped = Sums.of(len(tokenizers)), 0
    for part, found in results_in_order(
        runner, corpus, task, tuple[Sums, int], facts, progress=progress, resumed=resumed
    ):
        sums, malformed = found
        total.add(sums, max_differences, continues=continues(part))
        skipped += malformed
    return Compared(to_comparison(tokenizers, total, names=names), skipped)


@dataclass(frozen=True)
class _CompareSlice:
    """Compares the documents of a slice."""

    tokenizers: tuple[Tokenizer, ...]
    max_differences: int
    options: EncodingOptions

    def __call__(self, corpus: Corpus) -> tuple[Sums, int]:
        files = _Files(corpus)
        sums = sum_files(
            self.tokenizers, files, max_differences=self.max_differences, **self.options
        )
        return sums, files.skipped


class _Files:
    """The files of a slice, and how many malformed documents of them were skipped."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.skipped = 0

    def __iter__(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        for name, documents in self._corpus.by_file():
            yield name, documents
            self.skipped += documents.skipped
