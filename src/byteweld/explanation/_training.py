"""Explain how merges are learned: every step of a training run, as the engine takes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from byteweld._amounts import amount
from byteweld.counts import Counts, Memory
from byteweld.explanation._report import MAX_PARTS, MAX_ROWS
from byteweld.recipes import Recipe, TieBreak, find_recipe
from byteweld.render import token_names
from byteweld.report import Displayable, Report
from byteweld.sources import open_sources
from byteweld.training import Stop
from byteweld.training.plan import LearnedMerge, make_plan
from byteweld.training.run import learn, with_letters_of
from byteweld.vocab import Vocabulary

# What the engine records of each step: pairs, pre-tokens, and parts of each. The first of the pairs
# is the winner; as many others may be tied with it.
_LIMITS = (MAX_ROWS + 1, MAX_ROWS, MAX_PARTS)

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
                {"pairs": fields.pop("rows"), **fields, "merge": step.merge._asdict()}
                for step in self.steps
                for fields in [asdict(step)]
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

    Examples:
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
    plan = with_letters_of(counts, make_plan(vocab_size, recipe))
    if memory is not None:  # tracking every pair takes more than training
        counts.check_training(plan.max_new_ids, memory, step_by_step=True)
    done = 0

    def report(merges: Sequence[object]) -> None:
        nonlocal done
        done += len(merges)
        if progress is not None and merges:
            progress(done)

    learned = learn(counts, plan, num_threads=num_threads, steps=_LIMITS, progress=report)
    if progress is not None and done < len(learned.merges):
        progress(len(learned.merges))
    before, steps = learned.steps
    vocab = plan.vocabulary([merge[:3] for merge in learned.merges])
    return TrainingExplanation(
        recipe=recipe,
        vocab=vocab,
        corpus=_pretokens(before),
        total_pretokens=len(counts),
        steps=tuple(
            _explain_step(step, merge[2], vocab.tokens, recipe.tie_break)
            for merge, step in zip(learned.merges, steps, strict=True)
        ),
        stopped=learned.stop,
    )


def _pretokens(rows: Iterable[tuple[list[int], int, int]]) -> tuple[PretokenRow, ...]:
    return tuple(PretokenRow(tuple(parts), total, count) for parts, total, count in rows)


def _explain_step(
    step: Any, new: int, tokens: Mapping[int, bytes], tie_break: TieBreak
) -> TrainingStep:
    """Explain what the engine recorded of a step."""
    pairs, total_pairs, total_tied, (around, is_start, is_end, count), pretokens = step
    rows = tuple(CountRow(*pair) for pair in pairs)  # in merge order: the merged pair is the first
    winner = rows[0]
    tied = tuple(row for row in rows[1:] if row.count == winner.count)
    # Undoing the merge shows what was there before: no other merge has made the token yet.
    pair = (winner.left, winner.right)
    before = [id for part in around for id in (pair if part == new else (part,))]
    return TrainingStep(
        rows=rows[:MAX_ROWS],
        total_pairs=total_pairs,
        merge=LearnedMerge(*pair, new, winner.count),
        tied=tied,
        total_tied=total_tied,
        why=_why(winner, tied, tokens, tie_break),
        example=ExampleRow(tuple(before), tuple(around), is_start, is_end, count),
        corpus=_pretokens(pretokens),
    )


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
