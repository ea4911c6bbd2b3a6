"""Compares tokenizers in tasks: each compares one slice, and the sums are added in order.

The result is that of `compare_files` on the whole corpus, except for the seconds.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple, Unpack

from byteweld.comparison.corpora import MAX_DIFFERENCES, Comparison, Sums, sum_files, to_comparison
from byteweld.corpus import Corpus
from byteweld.evaluation.corpora import EncodingOptions
from byteweld.jobs import Runner
from byteweld.jobs._ordered import Files, Progress, continues, results_in_order
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
    task = functools.partial(_compare_slice, tuple(tokenizers), max_differences, options)
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


def _compare_slice(
    tokenizers: Sequence[Tokenizer], max_differences: int, options: EncodingOptions, corpus: Corpus
) -> tuple[Sums, int]:
    files = Files(corpus)
    sums = sum_files(tokenizers, files, max_differences=max_differences, **options)
    return sums, files.skipped
