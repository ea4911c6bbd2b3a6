"""The Training view: training on a corpus step by step, and a tokenizer's merge log."""

from __future__ import annotations

from typing import Any

import byteweld
from byteweld.evaluation import tokens_after, training_curve
from byteweld.studio.corpus import check_alphabet, lines
from byteweld.studio.examples import CORPORA
from byteweld.studio.request import Refused, Request
from byteweld.studio.session import Session

_MAX_MERGES = 500
_MAX_ROWS = 500


def answer(session: Session, fields: Request) -> dict[str, Any]:
    """Return every step of training, and the size of the corpus after each."""
    recipe = byteweld.RECIPES[fields.choice("recipe", CORPORA[0].recipe, tuple(byteweld.RECIPES))]
    merges = fields.number("merges", CORPORA[0].merges, 1, _MAX_MERGES)
    counts = _counts(session, fields, recipe)
    size = recipe.minimum_size + merges
    explained = byteweld.explain_training(counts, size, recipe)
    training = byteweld.train(counts, vocab_size=size, recipe=recipe).training
    assert training is not None  # it was just trained
    # Only the bytes that occur are sent, not all 256.
    seen = {merge.new for merge in explained.merges}
    seen |= {i for row in explained.corpus for i in row.parts}
    for step in explained.steps:
        seen |= {i for row in (*step.rows, *step.tied) for i in (row.left, row.right)}
        seen |= {*step.example.before, *step.example.after}
    found = explained.to_dict()
    return found | {
        "tokens": {i: token for i, token in found["tokens"].items() if int(i) in seen},
        "total_bytes": training.total_bytes,
        "tokens_after": tokens_after(training),
        "first_size": recipe.minimum_size,
        "min_frequency": recipe.min_frequency,
    }


def _counts(session: Session, fields: Request, recipe: byteweld.Recipe) -> byteweld.Counts:
    """Count the text of a request, or the user's own corpus."""
    if fields.choice("source", "text", ("text", "given")) == "given":
        if session.corpus is None:
            raise Refused(404, "the studio was started without --corpus")
        return session.corpus.counts(recipe)
    # Each line is a document, so that nothing merges across lines even without a pattern.
    documents = lines(fields.text("corpus", "") or CORPORA[0].text)
    check_alphabet(documents, recipe)
    return byteweld.count((line for _, line in documents), recipe=recipe)


def log(session: Session, fields: Request) -> dict[str, Any]:
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
