"""Counts -> Vocabulary, by a recipe. The engine merges; here ids get their places.

A training starts from the recipe's alphabet, or from a vocabulary whose ids it keeps (`extend.py`);
it may go on from a checkpoint. A cut is the same training at a smaller size.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from byteweld import _native
from byteweld.counts import Counts
from byteweld.errors import UnsupportedError
from byteweld.recipes import Recipe
from byteweld.training.checkpoint import Checkpoint, LearnedMerge
from byteweld.training.extend import orphans
from byteweld.training.report import Start, Training, TrainingEvent
from byteweld.vocab import Vocabulary

# What the engine counts with; a larger limit is no limit.
_U64_MAX = 2**64 - 1
_U32_MAX = 2**32 - 1
_EVENT_EVERY = 100  # merges, as in bpetite
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024

Progress = Callable[[TrainingEvent], object]


class _Plan(NamedTuple):
    """What is there before the first merge, and which ids the merges get."""

    base: Vocabulary
    known: Sequence[tuple[int, int, int]]  # merges of the base that the engine makes first
    reserved: list[tuple[bytes, int]]  # bytes that have an id, which a merge of them takes
    first_id: int
    max_new_ids: int
    specials_after: tuple[str, ...]  # get their ids after the merges


def train_from_counts(
    counts: Counts,
    vocab_size: int,
    recipe: Recipe,
    *,
    start: Vocabulary | None = None,
    checkpoint: Checkpoint | None = None,
    num_threads: int | None = None,
    progress: Progress | None = None,
    count_seconds: float = 0.0,
) -> tuple[Vocabulary, Training]:
    """Learn merges until the vocabulary has the asked size, or none is left."""
    if start is None:
        recipe = _with_letters_of(counts, recipe)
    plan = _plan(vocab_size, recipe, start)
    planned = plan.max_new_ids
    resumed = [] if checkpoint is None else checkpoint.merges
    if progress is not None:
        progress(TrainingEvent("start", len(resumed), planned))
    started = time.perf_counter()
    if checkpoint is not None and checkpoint.stop is not None:
        learned, stop, first_tokens = resumed, checkpoint.stop, checkpoint.first_tokens
    else:
        listener = _Listener(len(resumed), planned, checkpoint, progress)
        given = sum(new >= plan.first_id for _, _, new, *_ in resumed)
        found, stop, first_tokens = _native.train(
            counts._table,
            base_ids=[plan.base.ids.get(bytes([byte])) for byte in range(256)],
            first_id=plan.first_id + given,
            max_new_ids=planned - given,
            reserved=plan.reserved,
            known=[*plan.known, *(merge[:3] for merge in resumed)],
            tie_break=recipe.tie_break,
            min_frequency=min(recipe.min_frequency, _U64_MAX),
            max_token_bytes=_token_limit(recipe),
            num_threads=num_threads,
            progress=listener.hear,
        )
        learned = [*resumed, *found]
        first_tokens += sum(removed for *_, removed in resumed)
        if checkpoint is not None:
            checkpoint.append(learned[listener.completed :])
            checkpoint.finish(stop, first_tokens)
    seconds = time.perf_counter() - started
    vocab = _vocabulary(learned, recipe, plan)
    training = Training(
        recipe=recipe,
        vocab_size=vocab_size,
        merges_learned=len(learned),
        merges_planned=planned,
        stop=stop,
        merge_counts=tuple([count for _, _, _, count, _ in learned]),
        removed_tokens=tuple([removed for *_, removed in learned]),
        first_tokens=first_tokens,
        # Where it starts from bytes, every byte is a token.
        total_bytes=first_tokens if start is None else counts.total_bytes,
        distinct_pretokens=len(counts),
        total_pretokens=counts.total,
        skipped_documents=counts.skipped_documents,
        pruned_pretokens=counts.pruning.occurrences if counts.pruning else 0,
        pair_error=counts.pruning.pair_error if counts.pruning else 0,
        count_seconds=count_seconds,
        merge_seconds=seconds,
        peak_memory_bytes=_peak_memory(),
        version=_native.__version__,
        start=None if start is None else _start(start, plan),
    )
    if progress is not None:
        progress(TrainingEvent("complete", len(learned), planned))
    return vocab, training


class _Listener:
    """Hears of merges from the engine: writes them down, and tells of every hundredth."""

    def __init__(
        self,
        completed: int,
        planned: int,
        checkpoint: Checkpoint | None,
        progress: Progress | None,
    ) -> None:
        self.completed = completed
        self._planned = planned
        self._checkpoint = checkpoint
        self._progress = progress

    def hear(self, merges: list[LearnedMerge]) -> None:
        if not merges:
            return  # only a moment to raise what has happened meanwhile, such as Ctrl-C
        before = self.completed
        self.completed += len(merges)
        if self._checkpoint is not None:
            self._checkpoint.append(merges)
        if self._progress is not None:
            first = (before // _EVENT_EVERY + 1) * _EVENT_EVERY
            for number in range(first, self.completed + 1, _EVENT_EVERY):
                self._progress(TrainingEvent("merge", number, self._planned))


def cut_training(
    vocab: Vocabulary, training: Training, vocab_size: int
) -> tuple[Vocabulary, Training]:
    """Give what the same training would have given at a smaller size: its first merges."""
    recipe = training.recipe
    start = None if training.start is None else _without_learned(vocab, training.start)
    check_size(vocab_size, recipe, start)
    if vocab_size > training.vocab_size:
        raise ValueError(
            f"vocab_size is {vocab_size}; a cut is at most {training.vocab_size}, as trained"
        )
    plan = _plan(vocab_size, recipe, start)
    if not _is_base(plan, vocab):
        raise UnsupportedError(
            "this tokenizer cannot be cut: the recipe in the report of its training does not start "
            "from the tokens, special tokens and pattern that it has"
        )
    learned = vocab._merges[len(vocab._merges) - training.merges_learned :]
    last_id = plan.first_id + plan.max_new_ids - 1
    kept = len(learned) if plan.max_new_ids else 0
    for place, (_, _, new) in enumerate(learned[:kept]):
        if new == last_id:  # a merge that takes an id which was there uses none up
            kept = place + 1
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
    return _vocabulary(learned[:kept], recipe, plan), cut


def _is_base(plan: _Plan, vocab: Vocabulary) -> bool:
    """Whether a vocabulary can be what a training of this plan made."""
    specials = {*plan.base.special_tokens, *plan.specials_after}
    return (
        plan.base.tokens.items() <= vocab.tokens.items()
        and plan.base.pattern == vocab.pattern
        and specials == vocab.special_tokens.keys()
        and len(plan.base._merges) <= len(vocab._merges)
    )


def check_size(vocab_size: int, recipe: Recipe, start: Vocabulary | None = None) -> None:
    """Refuse a size below what the training starts from. (bpetite has its own wording, FR-9.)"""
    if isinstance(vocab_size, bool) or not isinstance(vocab_size, int):
        raise TypeError(f"vocab_size is {vocab_size!r}; it must be an integer")
    minimum = _minimum_size(recipe, start)
    if vocab_size >= minimum:
        return
    if start is not None:
        raise ValueError(
            f"vocab_size is {vocab_size}; it must be at least {minimum}, "
            "the size of the tokenizer to start from"
        )
    if recipe.name == "bpetite":
        raise ValueError(f"vocab_size must be >= 256, got {vocab_size}")
    specials = len(recipe.all_specials)
    raise ValueError(
        f"vocab_size is {vocab_size}; it must be at least {minimum}: "
        f"{minimum - specials if recipe.size_counts_specials else minimum} bytes"
        + (f" and {specials} special tokens" if recipe.size_counts_specials else "")
    )


def check_pattern(recipe: Recipe) -> None:
    """Refuse a pattern that cannot be compiled now, and not when the first text is encoded."""
    _native.Encoder(
        tokens=(),
        merges=(),
        ranking="merges",
        added=(),
        added_bytes=(),
        pattern=recipe.encode_pattern,
        steps=(),
        normalizer=(),
        gaps="bytes",
        unk=None,
    )


def planned_merges(vocab_size: int, recipe: Recipe, start: Vocabulary | None = None) -> int:
    """How many merges a training of this size may learn."""
    return vocab_size - _minimum_size(recipe, start)


def _minimum_size(recipe: Recipe, start: Vocabulary | None) -> int:
    if start is None:
        return recipe.minimum_size
    return len(start) - (0 if recipe.size_counts_specials else len(start.special_tokens))


# ---------------------------------------------------------------------------- where ids go


def _with_letters_of(counts: Counts, recipe: Recipe) -> Recipe:
    """Hugging Face's alphabet may be open: what occurs in the corpus is then added to it."""
    if recipe.initial_alphabet is None:
        return recipe
    seen: set[int] = set()
    for batch, weights in counts.batches():
        for pretoken, count in zip(batch, weights, strict=True):
            if count:
                seen.update(pretoken)
    return recipe.with_letters(seen)


def _plan(vocab_size: int, recipe: Recipe, start: Vocabulary | None) -> _Plan:
    check_size(vocab_size, recipe, start)
    max_new_ids = planned_merges(vocab_size, recipe, start)
    if start is not None:
        reserved = [*orphans(start), *_shared_texts(recipe, start)]
        return _Plan(start, start._merges, reserved, max(start.tokens) + 1, max_new_ids, ())
    alphabet = recipe.letters
    last = recipe.special_ids == "last"
    specials = () if last else recipe.all_specials
    first_byte = len(specials) if recipe.special_ids == "first" else 0
    first_special = 0 if recipe.special_ids == "first" else len(alphabet)
    special_ids = {text: first_special + place for place, text in enumerate(specials)}
    tokens = {first_byte + place: bytes([byte]) for place, byte in enumerate(alphabet)}
    tokens |= {token_id: text.encode() for text, token_id in special_ids.items()}
    base = Vocabulary(
        tokens,
        special_tokens=special_ids,
        pattern=recipe.encode_pattern,
        roles={} if last else {role: special_ids[text] for role, text in recipe.roles},
        alphabet=recipe.vocab_alphabet,
    )
    reserved = _shared_texts(recipe, base)
    after = recipe.all_specials if last else ()
    return _Plan(base, (), reserved, len(tokens), max_new_ids, after)


def _shared_texts(recipe: Recipe, base: Vocabulary) -> list[tuple[bytes, int]]:
    """Hugging Face keeps tokens and specials in one table of texts, with bytes as letters.

    (It knows no specials that come after the merges.)
    """
    if recipe.alphabet != "huggingface" or recipe.special_ids == "last":
        return []
    from byteweld._byte_letters import chars_to_bytes

    texts = ((chars_to_bytes(text), token_id) for text, token_id in base.special_tokens.items())
    reserved = [(token, token_id) for token, token_id in texts if token is not None]
    single = next((token for token, _ in reserved if len(token) == 1), None)
    if single is not None:
        raise _shared(single)
    return reserved


def _shared(token: bytes) -> UnsupportedError:
    from byteweld._byte_letters import bytes_to_chars

    return UnsupportedError(
        f"special token {bytes_to_chars(token)!r} is how Hugging Face spells the token {token!r}: "
        "it gives both one id, which a vocabulary cannot hold; choose another special token"
    )


def _token_limit(recipe: Recipe) -> int | None:
    """Hugging Face's limit is strict, and pairs of single bytes are never checked against it."""
    limit = recipe.max_token_bytes
    if limit is None:
        return None
    return min(max(2, limit - 1) if recipe.alphabet == "huggingface" else limit, _U32_MAX)


def _vocabulary(learned: Sequence[Sequence[int]], recipe: Recipe, plan: _Plan) -> Vocabulary:
    base = plan.base
    spelt_otherwise = {i: token for token, i in plan.reserved if base.tokens[i] != token}
    if spelt_otherwise:
        for _, _, new, *_ in learned:
            if new in spelt_otherwise:
                raise _shared(spelt_otherwise[new])
    merges = [(merge[0], merge[1], merge[2]) for merge in learned]
    roles = None
    if plan.specials_after and recipe.roles:
        first = plan.first_id + sum(new >= plan.first_id for _, _, new in merges)
        places = {text: first + place for place, text in enumerate(plan.specials_after)}
        roles = {role: places[text] for role, text in recipe.roles}
    return base._grown(merges, specials_after=plan.specials_after, roles=roles)


# ---------------------------------------------------------------------------- where it started


def _start(start: Vocabulary, plan: _Plan) -> Start:
    return Start(start.fingerprint, len(start), len(start._merges), plan.first_id)


def _without_learned(vocab: Vocabulary, start: Start) -> Vocabulary:
    """The vocabulary that an extended one was made of."""
    return Vocabulary(
        {i: token for i, token in vocab.tokens.items() if i < start.first_new_id},
        vocab.merge_ids[: start.merges],
        added_tokens=vocab.added_tokens,
        pattern=vocab.pattern,
        template=vocab.template,
        roles=vocab.roles,
        alphabet=vocab.alphabet,
    )


def _peak_memory() -> int | None:
    """The most memory this process ever had, in bytes; None where nobody tells."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT
