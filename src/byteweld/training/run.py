"""Run training: count, merge, resume. `byteweld.train` and the command both call `run`."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from byteweld import _native
from byteweld._memory import peak_bytes
from byteweld.counts import Counts, Memory
from byteweld.errors import FormatError
from byteweld.jobs import Runner
from byteweld.jobs.counting import count_sources
from byteweld.sources import Counted, Sources
from byteweld.training.checkpoint import Checkpoint, MergeRecord
from byteweld.training.plan import TrainingPlan, make_plan
from byteweld.training.report import Start, Stop, Training, TrainingEvent
from byteweld.vocab import Vocabulary

# The engine's integer limits; a larger setting has no effect.
_U64_MAX = 2**64 - 1
_U32_MAX = 2**32 - 1
_EVENT_EVERY = 100  # merges, as in bpetite
# Below this many bytes, counting documents in memory reports no progress.
_MIN_EVENT_BYTES = 8 << 20

Progress = Callable[[TrainingEvent], object]


class Learned(NamedTuple):
    """What the engine learned."""

    merges: list[MergeRecord]
    stop: Stop
    first_tokens: int  # before the first merge
    layout_seconds: float
    steps: tuple[list[Any], list[Any]] = ([], [])  # see `steps.py`


def run(
    sources: Sources,
    plan: TrainingPlan,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    prune: int | None = None,
    num_threads: int | None = None,
    memory: Memory | None = None,
    runner: Runner | None = None,
    progress: Progress | None = None,
    on_counted: Callable[[Counted], object] | None = None,
) -> tuple[Vocabulary, Training]:
    """Count the sources and learn merges until the size is reached or no pair can merge.

    With a runner, files are counted in its tasks. Merges are learned in this process.
    `on_counted` is called between counting and merging.
    """
    _native.CountBuilder(  # raises now, not at the first `encode`, if the pattern is wrong
        pattern=plan.recipe.encode_pattern, boundaries=(), alphabet=None, num_threads=1, limit=None
    )
    with contextlib.ExitStack() as stack:
        point = None
        if checkpoint is not None:
            point = Checkpoint(checkpoint, facts_of(sources, plan, prune))
            stack.callback(point.close)
        # Counts that the caller passes are not loaded again, only compared with the checkpoint's.
        saved = None
        if point is not None and not sources.is_counted:
            saved = point.counts(memory=memory)
        if saved is None:
            counted = count_sources(
                sources,
                plan.recipe,
                runner=runner,
                near=checkpoint,
                num_threads=num_threads,
                memory=memory,
                progress=None if progress is None else _count_events(progress, plan.max_new_ids),
            )
            if prune is not None:
                pruned = counted.counts.prune(prune, memory=memory)
                counted = counted._replace(counts=pruned)
            if point is not None:
                point.keep_counts(counted.counts)
        else:
            size = None if sources.corpus is None else sources.corpus.total_bytes
            counted = Counted(saved, sources.num_files, size, len(sources.tables), 0.0, True)
        if memory is not None:
            counted.counts.check_training(plan.max_new_ids, memory)
        if on_counted is not None:
            on_counted(counted)
        return _merge(counted, plan, point, num_threads, progress)


def facts_of(sources: Sources, plan: TrainingPlan, prune: int | None) -> dict[str, object]:
    """Return all that the result depends on, as JSON values."""
    of_sources = sources.facts()
    return {
        "version": _native.__version__,
        "recipe": dataclasses.asdict(plan.recipe),
        "vocab_size": plan.vocab_size,
        "start": None if plan.start is None else plan.start.fingerprint,
        "files": of_sources.pop("files"),
        "prune": prune,
        **of_sources,
    }


def _count_events(progress: Progress, planned: int) -> Callable[[int, int | None], None]:
    def report(done: int, total: int | None) -> None:
        if total is not None or done >= _MIN_EVENT_BYTES:
            progress(TrainingEvent("count", 0, planned, done, total))

    return report


def _merge(
    counted: Counted,
    plan: TrainingPlan,
    checkpoint: Checkpoint | None,
    num_threads: int | None,
    progress: Progress | None,
) -> tuple[Vocabulary, Training]:
    counts = counted.counts
    plan = with_letters_of(counts, plan)
    resumed = 0 if checkpoint is None else len(checkpoint.merges)
    if progress is not None:
        progress(TrainingEvent("start", resumed, plan.max_new_ids))
    started = time.perf_counter()
    found = _learn(counts, plan, checkpoint, num_threads, progress)
    seconds = time.perf_counter() - started
    learned, first_tokens, start = found.merges, found.first_tokens, plan.start
    vocab = plan.vocabulary([merge[:3] for merge in learned])
    training = Training(
        recipe=plan.recipe,
        vocab_size=plan.vocab_size,
        merges_learned=len(learned),
        merges_planned=plan.max_new_ids,
        stop=found.stop,
        merge_counts=tuple([count for _, _, _, count, _ in learned]),
        removed_tokens=tuple([removed for *_, removed in learned]),
        first_tokens=first_tokens,
        # Without a start, the corpus begins as one token per byte.
        total_bytes=first_tokens if start is None else counts.total_bytes,
        distinct_pretokens=len(counts),
        total_pretokens=counts.total,
        skipped_documents=counts.skipped_documents,
        pruned_pretokens=counts.pruning.occurrences if counts.pruning else 0,
        pair_error=counts.pruning.pair_error if counts.pruning else 0,
        count_seconds=counted.seconds,
        layout_seconds=found.layout_seconds,
        merge_seconds=seconds - found.layout_seconds,
        files=counted.files,
        file_bytes=counted.file_bytes,
        peak_memory_bytes=peak_bytes(),
        version=_native.__version__,
        start=None
        if start is None
        else Start(start.fingerprint, len(start), len(start.merge_ids), plan.first_id),
    )
    if progress is not None:
        progress(TrainingEvent("complete", len(learned), plan.max_new_ids))
    return vocab, training


def _learn(
    counts: Counts,
    plan: TrainingPlan,
    checkpoint: Checkpoint | None,
    num_threads: int | None,
    progress: Progress | None,
) -> Learned:
    """Learn the merges, resuming and extending the checkpoint's."""
    resumed: list[MergeRecord] = []
    if checkpoint is not None:
        resumed = checkpoint.merges
        _check_resumed(checkpoint, plan)
        if checkpoint.stop is not None:
            return Learned(resumed, checkpoint.stop, checkpoint.first_tokens, 0.0)
    completed = len(resumed)

    def report(merges: list[MergeRecord]) -> None:
        nonlocal completed
        if not merges:
            return  # the call only gives Python a chance to raise, such as on Ctrl-C
        before, completed = completed, completed + len(merges)
        if checkpoint is not None:
            checkpoint.append(merges)
        if progress is not None:
            first = (before // _EVENT_EVERY + 1) * _EVENT_EVERY
            for number in range(first, completed + 1, _EVENT_EVERY):
                progress(TrainingEvent("merge", number, plan.max_new_ids))

    found = learn(counts, plan, resumed, num_threads=num_threads, progress=report)
    learned = [*resumed, *found.merges]
    first_tokens = found.first_tokens + sum(removed for *_, removed in resumed)
    if checkpoint is not None:
        checkpoint.append(learned[completed:])
        checkpoint.finish(found.stop, first_tokens)
    return found._replace(merges=learned, first_tokens=first_tokens)


def _check_resumed(checkpoint: Checkpoint, plan: TrainingPlan) -> None:
    """Raise unless the merges of a checkpoint follow the plan."""
    known, reserved = set(plan.base.tokens), set(plan.reserved.values())
    new_ids = 0
    for rank, (left, right, new, *_) in enumerate(checkpoint.merges):
        is_next = new == plan.first_id + new_ids
        if not {left, right} <= known or not (is_next or new in reserved):
            raise FormatError(
                f"merge {rank} in the checkpoint is ({left}, {right}, {new}), which this training "
                "cannot have learned; remove the checkpoint",
                path=checkpoint.path,
            )
        known.add(new)
        new_ids += is_next
    if new_ids > plan.max_new_ids:
        raise FormatError(
            f"the checkpoint has {new_ids} new tokens; expected at most {plan.max_new_ids}; remove "
            "the checkpoint",
            path=checkpoint.path,
        )


def learn(
    counts: Counts,
    plan: TrainingPlan,
    resumed: Sequence[MergeRecord] = (),
    *,
    num_threads: int | None,
    steps: tuple[int, int, int] | None = None,
    progress: Callable[[list[MergeRecord]], object],
) -> Learned:
    """Let the engine learn merges as planned, after those that are resumed.

    `steps` is how many pairs, pre-tokens and parts of each to record at every step.
    """
    recipe, limit = plan.recipe, plan.token_limit
    known = [merge[:3] for merge in resumed]
    used_ids = sum(new >= plan.first_id for _, _, new in known)  # others take reserved ids
    return Learned(
        *_native.train(
            counts._table,
            base_ids=[plan.base.ids.get(bytes([byte])) for byte in range(256)],
            first_id=plan.first_id + used_ids,
            max_new_ids=plan.max_new_ids - used_ids,
            reserved=list(plan.reserved.items()),
            forbidden=list(plan.forbidden),
            known=[*plan.base._merges, *known],
            tie_break=recipe.tie_break,
            min_frequency=min(recipe.min_frequency, _U64_MAX),
            max_token_bytes=None if limit is None else min(limit, _U32_MAX),
            num_threads=num_threads,
            steps=steps,
            progress=progress,
        )
    )


def with_letters_of(counts: Counts, plan: TrainingPlan) -> TrainingPlan:
    """Add the bytes of the corpus to Hugging Face's `initial_alphabet`, if the recipe has one."""
    if plan.recipe.initial_alphabet is None or plan.start is not None:
        return plan
    seen: set[int] = set()
    for batch, weights in counts.batches():
        for pretoken, count in zip(batch, weights, strict=True):
            if count:
                seen.update(pretoken)
    return make_plan(plan.vocab_size, plan.recipe.with_letters(seen))
