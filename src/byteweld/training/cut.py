"""Cut a vocabulary to what the same training run would have made at a smaller size."""

from __future__ import annotations

import dataclasses

from byteweld.errors import UnsupportedError
from byteweld.training.plan import TrainingPlan, make_plan
from byteweld.training.report import Start, Training
from byteweld.vocab import Vocabulary


def cut_training(
    vocab: Vocabulary, training: Training, vocab_size: int
) -> tuple[Vocabulary, Training]:
    """Keep only the first merges, those that training at this size would have learned."""
    start = None if training.start is None else _before_training(vocab, training.start)
    plan = make_plan(vocab_size, training.recipe, start)
    if vocab_size > training.vocab_size:
        raise ValueError(
            f"vocab_size is {vocab_size}; it must be at most {training.vocab_size}, the size of "
            "the training"
        )
    if not _starts_from(plan, vocab):
        raise UnsupportedError(
            "this tokenizer cannot be cut: its tokens, special tokens or pattern are not those of "
            "the recipe in its training report"
        )
    learned = vocab._merges[len(vocab._merges) - training.merges_learned :]
    last_id = plan.first_id + plan.max_new_ids - 1
    kept = len(learned) if plan.max_new_ids else 0
    for rank, (_, _, new) in enumerate(learned[:kept]):
        if new == last_id:  # count ids, not merges: a merge may take a reserved id
            kept = rank + 1
            break
    reached = not plan.max_new_ids or (kept > 0 and learned[kept - 1][2] == last_id)
    cut = dataclasses.replace(
        training,
        vocab_size=vocab_size,
        merges_learned=kept,
        merges_planned=plan.max_new_ids,
        stop="size" if reached else training.stop,
        merge_counts=training.merge_counts[:kept],
        removed_tokens=training.removed_tokens[:kept],
    )
    return plan.vocabulary(learned[:kept]), cut


def _starts_from(plan: TrainingPlan, vocab: Vocabulary) -> bool:
    """Whether training with this plan could have made the vocabulary."""
    specials = {*plan.base.special_tokens, *plan.specials_after}
    return (
        plan.base.tokens.items() <= vocab.tokens.items()
        and plan.base.pattern == vocab.pattern
        and specials == vocab.special_tokens.keys()
        and len(plan.base._merges) <= len(vocab._merges)
    )


def _before_training(vocab: Vocabulary, start: Start) -> Vocabulary:
    """Return the vocabulary that the training extended."""
    tokens = {i: token for i, token in vocab.tokens.items() if i < start.first_new_id}
    return Vocabulary(tokens, vocab.merge_ids[: start.merges], **vocab.traits())
