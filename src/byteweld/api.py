"""The verbs that join the rooms: train(), count(), load(). They compute nothing themselves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from byteweld import formats
from byteweld.corpus import Corpus, OnError, open_corpus
from byteweld.counts import Counts, Memory, count_corpus, same_pattern
from byteweld.recipes import Recipe, find_recipe
from byteweld.tokenizer import Tokenizer
from byteweld.trainer import TrainingEvent, check_size, train_from_counts

Path_ = str | os.PathLike[str]
Source = Path_ | Sequence[Path_] | Iterable[str | bytes] | Counts | Corpus


def train(
    source: Source,
    *,
    vocab_size: int,
    recipe: str | Recipe = "modern",
    ext: str | Sequence[str] | None = None,
    lines: bool = False,
    separator: str | None = None,
    field: str = "text",
    on_error: OnError = "fail",
    prune: int | None = None,
    num_threads: int | None = None,
    memory: Memory | None = None,
    progress: Callable[[TrainingEvent], object] | None = None,
    **changes: Any,
) -> Tokenizer:
    """Train a tokenizer.

    Args:
        source: a path, folder or glob, or a list of them; an iterable of documents (str or bytes;
            a list of str is a list of paths, so pass `iter(texts)`); Counts, or a folder of them.
        vocab_size: how many tokens, special ones included (except in `bpetite` and `rustbpe`).
        recipe: a preset's name or a Recipe; `changes` are fields of it, such as `special_tokens`,
            `pattern`, `min_frequency`, `tie_break`, `max_token_bytes`.
        ext, lines, separator, field, on_error: how files are read (see `byteweld.corpus`).
        prune: leave out pre-tokens that occur less often than this; `Counts.prune` says what it
            costs.
        num_threads: by default as many as there are processors; the result does not depend on it.
        memory: a budget for the whole process, such as "2GB" (a number is bytes); the result does
            not depend on it. Counts that have no room rest on disk; a training that has none is
            refused.
        progress: hears of TrainingEvents: start, merge (every 100 merges), complete.

    >>> texts = ["low low low low low lower lower"]
    >>> tok = train(iter(texts), vocab_size=260, recipe="from-scratch")
    >>> tok.vocab.merges[:2]
    [(b'o', b'w'), (b'l', b'ow')]
    """
    chosen = find_recipe(recipe).replace(**changes)
    check_size(vocab_size, chosen)
    started = time.perf_counter()
    counts = count(
        source,
        recipe=chosen,
        ext=ext,
        lines=lines,
        separator=separator,
        field=field,
        on_error=on_error,
        prune=prune,
        num_threads=num_threads,
        memory=memory,
    )
    if memory is not None:
        counts.check_training(vocab_size - chosen.minimum_size, memory)
    vocab, training = train_from_counts(
        counts,
        vocab_size,
        chosen,
        progress=progress,
        count_seconds=time.perf_counter() - started,
    )
    return Tokenizer(vocab, training=training)


def count(
    source: Source,
    *,
    recipe: str | Recipe = "modern",
    ext: str | Sequence[str] | None = None,
    lines: bool = False,
    separator: str | None = None,
    field: str = "text",
    on_error: OnError = "fail",
    prune: int | None = None,
    num_threads: int | None = None,
    memory: Memory | None = None,
    progress: Callable[[int], object] | None = None,
    **changes: Any,
) -> Counts:
    """Count the pre-tokens of a corpus; arguments as in `train`. `progress` hears of bytes read.

    >>> count(iter(["ab ab ab"]), recipe="bpetite").items()
    [(b' ab', 2), (b'ab', 1)]
    """
    chosen = find_recipe(recipe).replace(**changes)
    if isinstance(source, str | os.PathLike) and Counts.is_saved_at(source):
        source = Counts.load(source, memory=memory)
    corpus: Any = source  # documents, or a Corpus
    if _is_paths(source):
        corpus = open_corpus(
            source,
            ext=chosen.extensions if ext is None else ext,
            unit="line" if lines else chosen.document_unit,
            separator=separator,
            field=field,
            on_error=on_error,
        )
    elif ext or lines or separator is not None or field != "text" or on_error != "fail":
        raise TypeError(
            "ext, lines, separator, field and on_error say how files are read; "
            f"{type(source).__name__} is no path"
        )
    if isinstance(source, Counts):
        _check_origin(source, chosen)
        counts = source
    else:
        counts = count_corpus(
            corpus, chosen, num_threads=num_threads, memory=memory, progress=progress
        )
    return counts if prune is None else counts.prune(prune, memory=memory)


def _check_origin(counts: Counts, recipe: Recipe) -> None:
    """Refuse counts that were cut otherwise than the recipe says, where that is known."""
    is_known = counts.boundaries is not None
    if (is_known or counts.pattern is not None) and not same_pattern(
        counts.pattern, recipe.pattern
    ):
        raise ValueError(
            f"the counts were made with pattern {counts.pattern!r}, but the recipe has "
            f"{recipe.pattern!r}; pass pattern= to say which you mean"
        )
    if is_known and counts.boundaries != tuple(sorted(set(recipe.boundaries))):
        raise ValueError(
            f"the counts were cut at the special tokens {counts.boundaries}, but the recipe has "
            f"{recipe.boundaries}; count again with the same special_tokens"
        )


def _is_paths(source: Source) -> TypeGuard[Path_ | Sequence[Path_]]:
    if isinstance(source, str | os.PathLike):
        return True
    if isinstance(source, set | frozenset):
        raise TypeError("a set has no order; pass a list of paths, or an iterator of documents")
    if not isinstance(source, list | tuple) or not source:
        return False
    kinds = {isinstance(item, bytes) for item in source}
    if len(kinds) > 1:
        raise TypeError("a list holds either paths (str) or documents (bytes), found both")
    return False in kinds


def load(path: Path_, *, format: str | None = None, **options: Any) -> Tokenizer:
    """Load a tokenizer from a file or folder of any format; the format is recognised by content.

    `options` are the format's own: `pattern` and `special_tokens` for a rank file, say.
    """
    return Tokenizer(formats.load(path, format=format, **options), name=Path(path).stem)
