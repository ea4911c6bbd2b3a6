"""The Training view: training on a small corpus step by step, and a tokenizer's merge log."""

from __future__ import annotations

from typing import Any

import byteweld
from byteweld.evaluation import tokens_after, training_curve
from byteweld.studio.corpus import check_alphabet, lines
from byteweld.studio.examples import CORPORA
from byteweld.studio.request import Fields, Refused
from byteweld.studio.session import Session

_MAX_CORPUS_BYTES = 50_000
_MAX_MERGES = 500
# Bytes of distinct pre-tokens times merges, all of which the reference visits: about two seconds.
_MAX_WORK = 3_000_000
_MAX_ROWS = 500


def answer(session: Session, fields: Fields) -> dict[str, Any]:
    """Return every step of training, by the reference, and the corpus sizes, by the engine."""
    text = fields.text("corpus", "", _MAX_CORPUS_BYTES) or CORPORA[0].text
    recipe = byteweld.RECIPES[fields.choice("recipe", CORPORA[0].recipe, tuple(byteweld.RECIPES))]
    merges = fields.number("merges", CORPORA[0].merges, 1, _MAX_MERGES)
    # Each line is a document, so that nothing merges across lines even without a pattern.
    documents = lines(text)
    check_alphabet(documents, recipe)
    counts = byteweld.count((line for _, line in documents), recipe=recipe)
    table = dict(counts.items())
    distinct = sum(map(len, table))
    if distinct * merges > _MAX_WORK:
        raise Refused(
            413,
            f"{merges} merges on {distinct:,} bytes of distinct pre-tokens are too many to show "
            f"step by step; use a shorter corpus, or {max(1, _MAX_WORK // distinct)} merges",
        )
    size = recipe.minimum_size + merges
    explained = byteweld.explain_training(table, size, recipe)
    training = byteweld.train(counts, vocab_size=size, recipe=recipe).training
    assert training is not None  # it was just trained
    # Only the bytes that occur are sent, not all 256.
    seen = {merge.new for merge in explained.merges}
    seen |= {i for row in explained.corpus for i in row.parts}
    for step in explained.steps:
        seen |= {i for row in (*step.rows, *step.tied) for i in (row.left, row.right)}
    found = explained.to_dict()
    return found | {
        "tokens": {i: token for i, token in found["tokens"].items() if int(i) in seen},
        "total_bytes": training.total_bytes,
        "tokens_after": tokens_after(training),
        "first_size": recipe.minimum_size,
        "min_frequency": recipe.min_frequency,
    }


def log(session: Session, fields: Fields) -> dict[str, Any]:
    """Return a page of a tokenizer's merges, with counts and a curve if its training is known."""
    opened = session.tokenizer(fields)
    vocab = opened.tok.vocab
    first = fields.number("first", 0, 0, 2**31)
    rows = vocab.merge_ids[first : first + fields.number("rows", 100, 0, _MAX_ROWS)]
    training = opened.tok.training
    shown = {part for merge in rows for part in merge}
    facts = None
    if training is not None:
        facts = {
            "recipe": training.recipe.name,
            "total_bytes": training.total_bytes,
            "total_pretokens": training.total_pretokens,
            "distinct_pretokens": training.distinct_pretokens,
            "summary": str(training),
            "base_size": len(vocab) - training.merges_learned,
            "curve": [list(point) for point in training_curve(training)],
        }
    return {
        "name": opened.name,
        "total": len(vocab.merge_ids),
        "first": first,
        "rows": [
            [first + n, *merge, opened.merge_count(first + n)] for n, merge in enumerate(rows)
        ],
        "tokens": {str(i): vocab.tokens[i].hex() for i in sorted(shown)},
        "training": facts,
    }
