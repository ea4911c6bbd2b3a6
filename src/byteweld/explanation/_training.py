"""Explain how merges are learned: every step of a training run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from byteweld.explanation._text import (
    MAX_PARTS,
    MAX_ROWS,
    Show,
    marked_columns,
    tokens_to_dict,
)
from byteweld.recipes import Recipe, TieBreak, find_recipe
from byteweld.reference.encode import utf8
from byteweld.reference.train import (
    Ids,
    LearnedMerge,
    Pair,
    TrainStep,
    count_pretokens,
    in_tie_order,
    train,
)
from byteweld.render import Displayable, amount, more_line, namer, visible
from byteweld.training import Stop
from byteweld.vocab import Vocabulary

if TYPE_CHECKING:
    from byteweld.markup import Html  # only HTML needs it

_BAR = 20  # characters in the longest bar

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

    parts: Ids
    total_parts: int
    count: int


@dataclass(frozen=True)
class TrainingStep:
    """One merge: the pair counts before it, the winner, the ties, why it won, the corpus after it.

    `rows` holds the highest counts, ties in tie order, so the winner is first. `tied` holds the
    first of the `total_tied` pairs that had the same count and lost.
    """

    rows: tuple[CountRow, ...]
    total_pairs: int
    merge: LearnedMerge
    tied: tuple[CountRow, ...]
    total_tied: int
    why: str
    corpus: tuple[PretokenRow, ...]


@dataclass(frozen=True)
class TrainingExplanation(Displayable):
    """How merges are learned. `str()` is for people, `to_dict()` for programs."""

    recipe: Recipe
    vocab: Vocabulary
    corpus: tuple[PretokenRow, ...]  # before the first merge
    total_pretokens: int  # distinct; merging never makes two of them equal
    steps: tuple[TrainingStep, ...]
    stopped: Stop

    @property
    def merges(self) -> tuple[LearnedMerge, ...]:
        """Every merge with its count, in order."""
        return tuple(step.merge for step in self.steps)

    def lines(self, *, color: bool = False) -> list[str]:
        """Return the explanation as lines of text; `color` is for a terminal."""
        show = namer(self.vocab.tokens, color)
        result = ["corpus:", *_corpus_lines(self.corpus, self.total_pretokens, show), ""]
        for number, step in enumerate(self.steps, 1):
            result += [*_training_step_lines(number, step, show, self.total_pretokens), ""]
        result += [f"stopped after {amount(len(self.steps), 'merge')}: {self.stop_words}", ""]
        return [*result, *_merge_log_lines(self.merges, show), *_vocabulary_lines(self, show)]

    @property
    def stop_words(self) -> str:
        """Why the training stopped."""
        return _STOPS[self.stopped]

    def to_html(self) -> Html:
        """Return the explanation as part of a page."""
        from byteweld.explanation._html import training

        return training(self)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-serializable values; `tokens` maps the ids used everywhere else to bytes."""
        return {
            "recipe": self.recipe.name,
            "tie_break": self.recipe.tie_break,
            "tokens": tokens_to_dict(self.vocab.tokens),
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
                    "corpus": [asdict(row) for row in step.corpus],
                }
                for step in self.steps
            ],
            "merges": [merge._asdict() for merge in self.merges],
            "stopped": self.stopped,
        }


def explain_training(
    documents: Iterable[str | bytes] | Mapping[bytes, int],
    vocab_size: int,
    recipe: str | Recipe = "plain",
) -> TrainingExplanation:
    """Train with the reference and show every step; for a page of text, not for a large corpus.

    Args:
        documents: the documents themselves (never paths), or counts of pre-tokens.
        vocab_size: as in `train`.
        recipe: a preset's name or a Recipe.

    >>> explain_training(documents=["low low lower"], vocab_size=257).vocab.merges
    [(b'l', b'o')]
    """
    recipe = find_recipe(recipe)
    if isinstance(documents, str | bytes | os.PathLike):
        raise TypeError(
            f"explain_training takes a list of documents, not {type(documents).__name__}; "
            "pass documents=[...] with the documents themselves"
        )
    counts = (
        documents
        if isinstance(documents, Mapping)
        else count_pretokens((utf8(document) for document in documents), recipe)
    )
    steps: list[TrainingStep] = []
    result = train(counts, vocab_size, recipe, lambda step: steps.append(_watch(step, recipe)))
    byte_ids = result.vocab.ids
    before = {
        tuple(byte_ids[bytes([byte])] for byte in pretoken): count
        for pretoken, count in counts.items()
        if count
    }
    return TrainingExplanation(
        recipe=recipe,
        vocab=result.vocab,
        corpus=_top_pretokens(before),
        total_pretokens=len(before),
        steps=tuple(steps),
        stopped=result.stopped,
    )


def _watch(step: TrainStep, recipe: Recipe) -> TrainingStep:
    """Reduce a step to what is displayed: all pairs and pre-tokens of all steps would be large."""
    counts, merge = step.pair_counts, step.merge
    winner = (merge.left, merge.right)
    tied = [pair for pair, count in counts.items() if count == merge.pair_count and pair != winner]
    losers = in_tie_order(tied, step.tokens, recipe.tie_break)
    return TrainingStep(
        rows=tuple(CountRow(*pair, counts[pair]) for pair in _top_pairs(step, recipe.tie_break)),
        total_pairs=len(counts),
        merge=merge,
        tied=tuple(CountRow(*pair, counts[pair]) for pair in losers[:MAX_ROWS]),
        total_tied=len(losers),
        why=_why(winner, losers, step.tokens, recipe.tie_break),
        corpus=_top_pretokens(step.corpus),
    )


def _top_pairs(step: TrainStep, tie_break: TieBreak) -> list[Pair]:
    by_count: dict[int, list[Pair]] = {}
    for pair, count in step.pair_counts.items():
        by_count.setdefault(count, []).append(pair)
    ordered = (
        pair
        for count in sorted(by_count, reverse=True)
        for pair in in_tie_order(by_count[count], step.tokens, tie_break)
    )
    return list(islice(ordered, MAX_ROWS))


def _top_pretokens(corpus: Mapping[Ids, int]) -> tuple[PretokenRow, ...]:
    most = sorted(corpus.items(), key=lambda item: -item[1])[:MAX_ROWS]  # stable: first seen first
    return tuple(PretokenRow(ids[:MAX_PARTS], len(ids), count) for ids, count in most)


def _why(
    winner: Pair, losers: Sequence[Pair], tokens: Mapping[int, bytes], tie_break: TieBreak
) -> str:
    """Explain why the winner won over the next pair in tie order."""
    if not losers:
        return "it has the highest count"
    loser = losers[0]
    side = 0 if winner[0] != loser[0] else 1
    which = ("left", "right")[side]
    if tie_break == "smallest-ids":
        against = f"{which} id {winner[side]} is smaller than {loser[side]}"
    else:
        word = "greater" if tie_break == "greatest-bytes" else "smaller"
        ours, theirs = tokens[winner[side]], tokens[loser[side]]
        against = f"{which} {ours!r} is {word} than {theirs!r}"
    return f"{tie_break}: {_RULES[tie_break]}; {against}"


def _training_step_lines(
    number: int, step: TrainingStep, show: Show, total_pretokens: int
) -> Iterator[str]:
    merge = step.merge
    yield f"step {number}:"
    best = step.rows[0].count
    rows = [
        [
            f"{show(row.left)} {show(row.right)}",
            f"{row.left} {row.right}",
            str(row.count),
            "#" * max(1, _BAR * row.count // best),
        ]
        for row in step.rows
    ]
    marks = ["<- merged"] + ["tie" if row.count == best else "" for row in step.rows[1:]]
    yield from (f"  {line}" for line in marked_columns(rows, marks))
    yield from more_line(step.total_pairs - len(step.rows), "pair", indent=2)
    left, right = show(merge.left), show(merge.right)
    yield f"  merge ({left}, {right}) -> {merge.new} {show(merge.new)}"
    if step.total_tied:
        others = ", ".join(f"({show(row.left)}, {show(row.right)})" for row in step.tied)
        more = step.total_tied - len(step.tied)
        others += f" and {more} more" if more else ""
        yield f"  tie at {merge.pair_count} with {others}"
        yield f"  why: {step.why}"
    yield "  corpus:"
    yield from (f"  {line}" for line in _corpus_lines(step.corpus, total_pretokens, show))


def _corpus_lines(rows: Sequence[PretokenRow], total: int, show: Show) -> Iterator[str]:
    width = max((len(str(row.count)) for row in rows), default=0)
    for row in rows:
        rest = row.total_parts - len(row.parts)
        more = f" ... {rest} more" if rest else ""
        parts = " ".join(map(show, row.parts))
        yield f"  {row.count:>{width}} x {parts}{more}"
    yield from more_line(total - len(rows), "pre-token", indent=2)


def _merge_log_lines(merges: Sequence[LearnedMerge], show: Show) -> Iterator[str]:
    yield "merges:"
    rows = [
        [
            f"rank {rank}",
            f"count {merge.pair_count}",
            f"({show(merge.left)}, {show(merge.right)})",
            f"-> {merge.new} {show(merge.new)}",
        ]
        for rank, merge in enumerate(merges)
    ]
    yield from (f"  {line}" for line in marked_columns(rows, []))
    yield ""


def _vocabulary_lines(training: TrainingExplanation, show: Show) -> Iterator[str]:
    vocab = training.vocab
    learned = {merge.new for merge in training.merges}
    specials = set(vocab.special_tokens.values())
    yield f"vocabulary: {len(vocab)} tokens"
    base = [i for i in vocab.tokens if i not in learned and i not in specials]
    yield f"  ids {base[0]} to {base[-1]}: the {len(base)} single bytes"
    for text, token_id in vocab.special_tokens.items():
        also = ", learned too" if token_id in learned else ""
        yield f"  id {token_id}: {visible(text.encode())}  special{also}"
    for token_id in sorted(learned - specials):
        yield f"  id {token_id}: {show(token_id)}"
