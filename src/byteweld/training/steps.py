"""Training step by step: what the engine finds before and after each merge.

The counts are those of any corpus: every step reads the pair table, never the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from byteweld.counts import Counts, Memory
from byteweld.recipes import Recipe
from byteweld.training.checkpoint import MergeRecord
from byteweld.training.plan import make_plan
from byteweld.training.report import Stop
from byteweld.training.run import learn, with_letters_of
from byteweld.vocab import Vocabulary


class Limits(NamedTuple):
    """How much of each step is recorded."""

    pairs: int
    pretokens: int
    parts: int  # of each pre-token


@dataclass(frozen=True)
class CountRow:
    """A pair and its count."""

    left: int
    right: int
    count: int


@dataclass(frozen=True)
class PretokenRow:
    """A pre-token of the corpus: its first parts, how many parts it has, and its count."""

    parts: tuple[int, ...]
    total_parts: int
    count: int


@dataclass(frozen=True)
class Example:
    """A place where the pair was merged: the parts around it, after the merge."""

    parts: tuple[int, ...]
    is_start: bool  # whether the first part is the first of the pre-token
    is_end: bool
    count: int


class Step(NamedTuple):
    """The pair counts before a merge, the merge, and the pre-tokens after it.

    `pairs` are in merge order, so the merged pair is the first. `total_tied` is the number of other
    pairs with its count.
    """

    pairs: tuple[CountRow, ...]
    total_pairs: int
    total_tied: int
    new: int
    example: Example
    pretokens: tuple[PretokenRow, ...]


class Steps(NamedTuple):
    """A training, step by step. `before` are the most frequent pre-tokens before the first."""

    recipe: Recipe
    vocab: Vocabulary
    before: tuple[PretokenRow, ...]
    steps: tuple[Step, ...]
    stop: Stop


def train_step_by_step(
    counts: Counts,
    vocab_size: int,
    recipe: Recipe,
    limits: Limits,
    *,
    num_threads: int | None = None,
    memory: Memory | None = None,
    progress: Callable[[int], object] | None = None,
) -> Steps:
    """Learn merges and record every step; `progress` is called with the merges so far.

    Takes more memory than `run`, since every pair is tracked. With `memory`, raises if it may not
    fit.
    """
    plan = with_letters_of(counts, make_plan(vocab_size, recipe))
    if memory is not None:
        counts.check_training(plan.max_new_ids, memory, step_by_step=True)
    done = 0

    def report(merges: list[MergeRecord]) -> None:
        nonlocal done
        done += len(merges)
        if progress is not None and merges:
            progress(done)

    learned = learn(counts, plan, num_threads=num_threads, steps=limits, progress=report)
    if progress is not None and done < len(learned.merges):
        progress(len(learned.merges))
    before, steps = learned.steps
    return Steps(
        recipe=plan.recipe,
        vocab=plan.vocabulary([merge[:3] for merge in learned.merges]),
        before=_pretokens(before),
        steps=tuple(
            Step(
                tuple(CountRow(*pair) for pair in pairs),
                total,
                tied,
                merge[2],
                Example(tuple(around), is_start, is_end, count),
                _pretokens(pretokens),
            )
            for merge, (pairs, total, tied, (around, is_start, is_end, count), pretokens) in zip(
                learned.merges, steps, strict=True
            )
        ),
        stop=learned.stop,
    )


def _pretokens(rows: list[tuple[list[int], int, int]]) -> tuple[PretokenRow, ...]:
    return tuple(PretokenRow(tuple(parts), total, count) for parts, total, count in rows)
