"""The Training view: a training on a small corpus step by step; and the log of a real one."""

from __future__ import annotations

from typing import Any

import byteweld
from byteweld.evaluation import training_curve
from byteweld.studio.examples import CORPORA
from byteweld.studio.request import Asked, Refused
from byteweld.studio.session import Session

_MAX_CORPUS_BYTES = 50_000
_MAX_MERGES = 500
# The reference looks at every byte of every pre-token at every step; this is about two seconds.
_MAX_WORK = 3_000_000
_MAX_ROWS = 500
# One of each kind: with and without a pattern, and every tie rule.
_RECIPES = ("plain", "from-scratch", "bpetite", "modern")


def recipes() -> list[tuple[str, str]]:
    """The recipes to choose from: name, and what it is in a few words."""
    words = []
    for name in _RECIPES:
        recipe = byteweld.RECIPES[name]
        known = (known for known, pattern in byteweld.PATTERNS.items() if pattern == recipe.pattern)
        pattern = "no pattern" if recipe.pattern is None else f"pattern {next(known)}"
        ties = recipe.tie_break.replace("-", " ")
        least = "" if recipe.min_frequency < 2 else f", pairs seen {recipe.min_frequency} times"
        words.append((name, f"{name}: {pattern}, ties go to the {ties}{least}"))
    return words


def answer(session: Session, asked: Asked) -> dict[str, Any]:
    """Every step of a training, by the reference; how the corpus shrinks, by the engine."""
    text = asked.text("corpus", "", _MAX_CORPUS_BYTES) or CORPORA[0].text
    recipe = byteweld.RECIPES[asked.choice("recipe", CORPORA[0].recipe, _RECIPES)]
    merges = asked.number("merges", CORPORA[0].merges, 1, _MAX_MERGES)
    # A line is a document, so that with no pattern nothing merges across lines.
    documents = [line for line in text.splitlines() if line]
    counts = byteweld.count(iter(documents), recipe=recipe)
    table = dict(counts.items())
    distinct = sum(map(len, table))
    if distinct * merges > _MAX_WORK:
        raise Refused(
            413,
            f"{merges} merges of {distinct:,} bytes of distinct pre-tokens are too many to show "
            f"step by step; take a shorter corpus, or at most {max(1, _MAX_WORK // distinct)}",
        )
    size = recipe.minimum_size + merges
    explained = byteweld.explain_training(table, size, recipe)
    done = byteweld.train(counts, vocab_size=size, recipe=recipe).training
    assert done is not None  # it was trained just now
    tokens_after = [done.first_tokens]
    for removed in done.removed_tokens:
        tokens_after.append(tokens_after[-1] - removed)
    answer = explained.to_dict()
    # Of the 256 bytes only those that are seen are sent.
    seen = {i for step in explained.steps for row in step.rows for i in (row.left, row.right)}
    seen |= {i for row in explained.corpus for i in row.parts}
    seen |= {merge.new for merge in explained.merges}
    seen |= {i for step in explained.steps for row in step.tied for i in (row.left, row.right)}
    answer["tokens"] = {i: t for i, t in answer["tokens"].items() if int(i) in seen}
    return answer | {
        "total_bytes": done.total_bytes,
        "tokens_after": tokens_after,
        "first_size": recipe.minimum_size,
        "min_frequency": recipe.min_frequency,
    }


def log(session: Session, asked: Asked) -> dict[str, Any]:
    """A page of a tokenizer's merges, with counts and the curve where its training is known."""
    opened = session.tokenizer(asked)
    vocab = opened.tok.vocab
    first = asked.number("first", 0, 0, 2**31)
    rows = vocab.merge_ids[first : first + asked.number("rows", 100, 0, _MAX_ROWS)]
    training = opened.tok.training
    shown = {part for merge in rows for part in merge}
    facts = None
    if training is not None:
        facts = {
            "recipe": training.recipe.name,
            "total_bytes": training.total_bytes,
            "total_pretokens": training.total_pretokens,
            "distinct_pretokens": training.distinct_pretokens,
            "said": str(training),
            "first_merge": training.start.merges if training.start else 0,
            "base_size": len(vocab) - training.merges_learned,
            "curve": [list(point) for point in training_curve(training)],
        }
    return {
        "name": opened.name,
        "ranked_by": vocab.ranking,
        "total": len(vocab.merge_ids),
        "first": first,
        "rows": [
            [first + n, *merge, opened.merge_count(first + n)] for n, merge in enumerate(rows)
        ],
        "tokens": {str(i): vocab.tokens[i].hex() for i in sorted(shown)},
        "training": facts,
    }
