"""Explain how merges are learned: every step of a training run, as the engine takes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from byteweld.counts import Counts, Memory
from byteweld.explanation._report import MAX_PARTS, MAX_ROWS
from byteweld.recipes import Recipe, TieBreak, find_recipe
from byteweld.render import amount, token_names
from byteweld.report import Displayable, Report
from byteweld.sources import open_sources
from byteweld.training import Stop
from byteweld.training.plan import LearnedMerge
from byteweld.training.steps import (
    CountRow,
    Example,
    Limits,
    PretokenRow,
    Step,
    train_step_by_step,
)
from byteweld.vocab import Vocabulary

# The first of the pairs is the winner; as many others may be tied with it.
_LIMITS = Limits(pairs=MAX_ROWS + 1, pretokens=MAX_ROWS, parts=MAX_PARTS)

_RULES: dict[TieBreak, str] = {
    "smallest-ids": "the smallest left id wins, then the smallest right id",
    "greatest-bytes": "the greatest pair of byte strings wins, left before right",
    "smallest-bytes": "the smallest pair of byte strings wins, left before right",
}

_STOPS: dict[Stop, str] = {
    "size": "the vocabulary has the requested size",
    "no pairs": "no pair can merge",
    "min frequency": "the highest count is below min_frequency",
}


@dataclass(frozen=True)
class ExampleRow:
    """A place where a pair was merged: the parts around it, before and after.

    It is in the most frequent pre-token that has the pair; `count` is how often that occurs.
    `is_start` and `is_end` say whether the parts reach its start and its end.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    is_start: bool
    is_end: bool
    count: int


@dataclass(frozen=True)
class TrainingStep:
    """One merge: the pair counts before it, the winner, the ties, why it won, the corpus after it.

    `rows` holds the highest counts, ties in tie order, so the winner is first. `tied` holds the
    first of the `total_tied` pairs that had the same count and lost. `corpus` holds the most
    frequent pre-tokens, in which the pair need not occur; in `example` it does.
    """

    rows: tuple[CountRow, ...]
    total_pairs: int
    merge: LearnedMerge
    tied: tuple[CountRow, ...]
    total_tied: int
    why: str
    example: ExampleRow
    corpus: tuple[PretokenRow, ...]

    @property
    def is_in_corpus(self) -> bool:
        """Whether the new token is among the parts in `corpus`."""
        return any(self.merge.new in row.parts for row in self.corpus)


@dataclass(frozen=True, repr=False)
class TrainingExplanation(Displayable):
    """How merges are learned; made by `byteweld.explain_training`.

    `str()` is for people, `to_dict()` for programs, and a notebook shows it as HTML.

    Attributes:
        recipe: the recipe.
        vocab: the vocabulary that was learned.
        corpus: the most frequent pre-tokens, before the first merge.
        total_pretokens: number of distinct pre-tokens; merging never makes two of them equal.
        steps: for each merge, the pair counts before it, the ties, why it won, and an example.
        stopped: why training stopped, as in `Training.stop`.

    Examples:
        >>> import byteweld
        >>> found = byteweld.explain_training(["low low lower"], vocab_size=257)
        >>> step = found.steps[0]
        >>> step.merge.pair_count, step.total_pairs, step.total_tied
        (3, 6, 1)
    """

    recipe: Recipe
    vocab: Vocabulary
    corpus: tuple[PretokenRow, ...]  # before the first merge
    total_pretokens: int  # distinct; merging never makes two of them equal
    steps: tuple[TrainingStep, ...]
    stopped: Stop

    def __repr__(self) -> str:
        merges = amount(len(self.steps), "merge")
        return f"<{type(self).__name__}: {merges}, recipe {self.recipe.name!r}>"

    @property
    def merges(self) -> tuple[LearnedMerge, ...]:
        """Every merge with its count, in order."""
        return tuple(step.merge for step in self.steps)

    def report(self) -> Report:
        """Return what is shown of the explanation."""
        from byteweld.explanation._report import training

        return training(self)

    @property
    def stop_words(self) -> str:
        """Why the training stopped."""
        return _STOPS[self.stopped]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-serializable values; `tokens` maps the ids used everywhere else to bytes."""
        return {
            "recipe": self.recipe.name,
            "tie_break": self.recipe.tie_break,
            "tokens": token_names(self.vocab.tokens),
            "special_tokens": dict(self.vocab.special_tokens),
            "corpus": [asdict(row) for row in self.corpus],
            "total_pretokens": self.total_pretokens,
            "steps": [
                {
                    "pairs": [asdict(row) for row in step.rows],
                    "total_pairs": step.total_pairs,
                    "merge": step.merge._asdict(),
                    "tied": [asdict(row) for row in step.tied],
                    "total_tied": step.total_tied,
                    "why": step.why,
                    "example": asdict(step.example),
                    "corpus": [asdict(row) for row in step.corpus],
                }
                for step in self.steps
            ],
            "merges": [merge._asdict() for merge in self.merges],
            "stopped": self.stopped,
        }


def explain_training(
    documents: Iterable[str | bytes] | Mapping[bytes, int] | Counts,
    vocab_size: int,
    recipe: str | Recipe = "plain",
    *,
    num_threads: int | None = None,
    memory: Memory | None = None,
    progress: Callable[[int], object] | None = None,
) -> TrainingExplanation:
    """Train with the engine and show every step.

    For a large corpus, count it first, in whatever way `byteweld.count` offers, and pass the
    Counts. A step shows the top of the pair table of the whole corpus.

    Args:
        documents: the documents themselves (never paths), or counts of pre-tokens.
        vocab_size: as in `train`.
        recipe: a preset's name or a Recipe. Default: `plain`, which is easy to check by hand.
        num_threads: as in `train`.
        memory: as in `train`.
        progress: called with the number of merges so far.

    Returns:
        A TrainingExplanation with `steps`, `merges`, `vocab`, `to_dict()` and `to_html()`;
            `print` shows it.

    Examples:
        >>> import byteweld
        >>> found = byteweld.explain_training(["low low lower"], vocab_size=258)
        >>> [(found.vocab.tokens[merge.new], merge.pair_count) for merge in found.merges]
        [(b'lo', 3), (b'low', 3)]
        >>> found.steps[1].why
        'it has the highest count'
        >>> print(found.lines()[0])
        corpus:
    """
    recipe = find_recipe(recipe)
    if isinstance(documents, str | bytes | os.PathLike):
        raise TypeError(
            f"explain_training takes a list of documents, not {type(documents).__name__}; "
            "pass documents=[...] with the documents themselves"
        )
    if isinstance(documents, Counts):
        sources = open_sources(documents)
    elif isinstance(documents, Mapping):
        sources = open_sources(Counts(documents))
    else:
        sources = open_sources(None, documents=documents)
    counts = sources.count(recipe, num_threads=num_threads, memory=memory).counts
    found = train_step_by_step(
        counts,
        vocab_size,
        recipe,
        _LIMITS,
        num_threads=num_threads,
        memory=memory,
        progress=progress,
    )
    return TrainingExplanation(
        recipe=recipe,
        vocab=found.vocab,
        corpus=found.before,
        total_pretokens=len(counts),
        steps=tuple(_explain_step(step, found.vocab.tokens, recipe) for step in found.steps),
        stopped=found.stop,
    )


def _explain_step(step: Step, tokens: Mapping[int, bytes], recipe: Recipe) -> TrainingStep:
    winner, *others = step.pairs
    losers = [row for row in others if row.count == winner.count]
    merge = LearnedMerge(winner.left, winner.right, step.new, winner.count)
    return TrainingStep(
        rows=(winner, *others)[:MAX_ROWS],
        total_pairs=step.total_pairs,
        merge=merge,
        tied=tuple(losers),
        total_tied=step.total_tied,
        why=_why(winner, losers, tokens, recipe.tie_break),
        example=_example_row(step.example, merge),
        corpus=step.pretokens,
    )


def _example_row(example: Example, merge: LearnedMerge) -> ExampleRow:
    """Undo the merge to show what was there before: no other merge has made the token yet."""
    before: list[int] = []
    for part in example.parts:
        before += (merge.left, merge.right) if part == merge.new else (part,)
    return ExampleRow(tuple(before), example.parts, example.is_start, example.is_end, example.count)


def _why(
    winner: CountRow, losers: Sequence[CountRow], tokens: Mapping[int, bytes], tie_break: TieBreak
) -> str:
    """Explain why the winner won over the next pair in tie order."""
    if not losers:
        return "it has the highest count"
    loser = losers[0]
    which, ours_id, theirs_id = "left", winner.left, loser.left
    if ours_id == theirs_id:
        which, ours_id, theirs_id = "right", winner.right, loser.right
    if tie_break == "smallest-ids":
        against = f"{which} id {ours_id} is smaller than {theirs_id}"
    else:
        word = "greater" if tie_break == "greatest-bytes" else "smaller"
        ours, theirs = tokens[ours_id], tokens[theirs_id]
        against = f"{which} {ours!r} is {word} than {theirs!r}"
    return f"{tie_break}: {_RULES[tie_break]}; {against}"
