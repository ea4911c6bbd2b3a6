"""What pruning rare pre-tokens changes in a vocabulary: measured, where the bound says little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from scaling.heaps import RECIPE

THRESHOLDS = (1, 2, 5, 10, 100, 1000)
SIZES = (32_000, 128_000)


def measure(whole: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """Train on the counts of a corpus, pruned more and more, and compare with the exact tokens."""
    import byteweld

    counts = byteweld.count(documents=whole, recipe=RECIPE)
    exact: dict[int, list[bytes]] = {}
    for threshold in THRESHOLDS:
        kept = counts.prune(threshold)
        error = 0 if kept.pruning is None else kept.pruning.pair_error
        tok = byteweld.train(kept, vocab_size=max(SIZES))
        for size in SIZES:
            learned = [a + b for a, b in tok.vocab.merges[: size - 256]]
            right = exact.setdefault(size, learned)
            same = sum(1 for _ in takewhile(bool, map(bytes.__eq__, right, learned)))
            yield {
                "threshold": threshold,
                "vocab_size": size,
                "distinct": len(kept),
                "learned": len(learned),
                "common": len(set(right) & set(learned)),
                "same_start": same,
                "pair_error": error,
                "last_merge": tok.training.merge_counts[len(learned) - 1],
            }


def report(lines: Sequence[dict[str, Any]]) -> str:
    shown = ["prune below    distinct   vocabulary   tokens in common   identical first merges"]
    for line in lines:
        shown.append(
            f"{line['threshold']:11,} {line['distinct']:11,} {line['vocab_size']:12,} "
            f"{line['common'] / (line['vocab_size'] - 256):18.3%} {line['same_start']:24,}"
        )
    return "\n".join(shown)
