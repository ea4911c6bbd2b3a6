"""Counts -> Vocabulary, by a recipe. The engine merges; here ids get their places."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from byteweld import _native
from byteweld.counts import Counts
from byteweld.errors import UnsupportedError
from byteweld.recipes import Recipe
from byteweld.vocab import Vocabulary

Stop = Literal["size", "no pairs", "min frequency"]
# What the engine counts with; a larger limit is no limit.
_U64_MAX = 2**64 - 1
_U32_MAX = 2**32 - 1
_Learned = tuple[int, int, int, int, int]  # left, right, new, count, removed


class TrainingEvent(NamedTuple):
    """What `progress` hears: kind start, merge (every 100 merges) or complete."""

    kind: Literal["start", "merge", "complete"]
    merges_completed: int
    merges_planned: int


@dataclass(frozen=True, kw_only=True)
class Training:
    """What a training did."""

    recipe: Recipe
    vocab_size: int
    merges_learned: int
    merges_planned: int
    stop: Stop
    merge_counts: tuple[int, ...]
    distinct_pretokens: int
    total_pretokens: int
    skipped_documents: int
    count_seconds: float
    merge_seconds: float

    def __str__(self) -> str:
        reasons = {
            "size": "the vocabulary has the asked size",
            "no pairs": "no pair was left to merge",
            "min frequency": f"the best pair occurred less than {self.recipe.min_frequency} times",
        }
        return (
            f"learned {self.merges_learned} of {self.merges_planned} merges; "
            f"stopped because {reasons[self.stop]}"
        )


class _Layout(NamedTuple):
    """Which ids the recipe gives out before and after the merges."""

    base_ids: dict[int, int]  # byte -> id
    special_ids: dict[str, int]  # those that are placed before the merges
    first_merge_id: int
    max_merges: int


def train_from_counts(
    counts: Counts,
    vocab_size: int,
    recipe: Recipe,
    *,
    progress: Callable[[TrainingEvent], object] | None = None,
    count_seconds: float = 0.0,
) -> tuple[Vocabulary, Training]:
    """Learn merges until the vocabulary has the asked size, or none is left."""
    recipe = _with_letters_of(counts, recipe)
    layout = _lay_out(vocab_size, recipe)
    planned = layout.max_merges
    if progress is not None:
        progress(TrainingEvent("start", 0, planned))
    started = time.perf_counter()
    base_ids: list[int | None] = [layout.base_ids.get(byte) for byte in range(256)]
    done = 0

    def tell(merges: list[_Learned]) -> None:
        nonlocal done
        before, done = done, done + len(merges)
        if progress is not None and done // 100 > before // 100:
            progress(TrainingEvent("merge", done // 100 * 100, planned))

    learned, stop, _ = _native.train(
        counts._table,
        base_ids=base_ids,
        first_id=layout.first_merge_id,
        max_new_ids=planned,
        reserved=_reserved(recipe, layout),
        known=[],
        tie_break=recipe.tie_break,
        min_frequency=min(recipe.min_frequency, _U64_MAX),
        max_token_bytes=_token_limit(recipe),
        num_threads=None,
        progress=tell,
    )
    seconds = time.perf_counter() - started
    vocab = _vocabulary((merge[:3] for merge in learned), recipe, layout)
    if progress is not None:
        progress(TrainingEvent("complete", len(learned), planned))
    training = Training(
        recipe=recipe,
        vocab_size=vocab_size,
        merges_learned=len(learned),
        merges_planned=planned,
        stop=stop,
        merge_counts=tuple(count for *_, count, _ in learned),
        distinct_pretokens=len(counts),
        total_pretokens=counts.total,
        skipped_documents=counts.skipped_documents,
        count_seconds=count_seconds,
        merge_seconds=seconds,
    )
    return vocab, training


def cut_training(
    vocab: Vocabulary, training: Training, vocab_size: int
) -> tuple[Vocabulary, Training]:
    """Give what the same training would have given at a smaller size: its first merges."""
    recipe = training.recipe
    check_size(vocab_size, recipe)
    if vocab_size > training.vocab_size:
        raise ValueError(
            f"vocab_size is {vocab_size}; a cut is at most {training.vocab_size}, as trained"
        )
    layout = _lay_out(vocab_size, recipe)
    kept: list[tuple[int, int, int]] = []
    new_ids = 0
    shared = set(layout.special_ids.values())
    for merge in vocab.merge_ids:
        if new_ids == layout.max_merges:
            break
        kept.append((merge.left, merge.right, merge.new))
        new_ids += merge.new not in shared
    cut = dataclasses.replace(
        training,
        vocab_size=vocab_size,
        merges_learned=len(kept),
        merges_planned=layout.max_merges,
        stop="size" if new_ids == layout.max_merges else training.stop,
        merge_counts=training.merge_counts[: len(kept)],
    )
    return _vocabulary(kept, recipe, layout), cut


def check_size(vocab_size: int, recipe: Recipe) -> None:
    """Refuse a size below what the recipe starts from. (bpetite has its own wording, FR-9.)"""
    if isinstance(vocab_size, bool) or not isinstance(vocab_size, int):
        raise TypeError(f"vocab_size is {vocab_size!r}; it must be an integer")
    minimum = recipe.minimum_size
    if vocab_size >= minimum:
        return
    if recipe.name == "bpetite":
        raise ValueError(f"vocab_size must be >= 256, got {vocab_size}")
    specials = len(recipe.all_specials)
    raise ValueError(
        f"vocab_size is {vocab_size}; it must be at least {minimum}: "
        f"{minimum - specials if recipe.size_counts_specials else minimum} bytes"
        + (f" and {specials} special tokens" if recipe.size_counts_specials else "")
    )


def _with_letters_of(counts: Counts, recipe: Recipe) -> Recipe:
    """Hugging Face's alphabet may be open: what occurs in the corpus is then added to it."""
    if recipe.initial_alphabet is None:
        return recipe
    seen: set[int] = set()
    for pretoken, count in counts.items():
        if count:
            seen.update(pretoken)
    return recipe.with_letters(seen)


def _lay_out(vocab_size: int, recipe: Recipe) -> _Layout:
    check_size(vocab_size, recipe)
    alphabet = recipe.letters
    specials = recipe.all_specials
    base_start = len(specials) if recipe.special_ids == "first" else 0
    base_ids = {byte: base_start + n for n, byte in enumerate(alphabet)}
    special_start = {"first": 0, "after_alphabet": len(alphabet)}.get(recipe.special_ids)
    special_ids: dict[str, int] = {}
    first_merge_id = len(alphabet)
    if special_start is not None:
        special_ids = {text: special_start + n for n, text in enumerate(specials)}
        first_merge_id += len(specials)
    return _Layout(base_ids, special_ids, first_merge_id, vocab_size - recipe.minimum_size)


def _reserved(recipe: Recipe, layout: _Layout) -> list[tuple[bytes, int]]:
    """Hugging Face keeps tokens and specials in one table of texts, with bytes as letters."""
    if recipe.alphabet != "huggingface":
        return []
    from byteweld._byte_letters import chars_to_bytes

    texts = ((chars_to_bytes(text), token_id) for text, token_id in layout.special_ids.items())
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


def _vocabulary(
    learned: Iterable[tuple[int, int, int]], recipe: Recipe, layout: _Layout
) -> Vocabulary:
    tokens = {token_id: bytes([byte]) for byte, token_id in layout.base_ids.items()}
    special_ids = dict(layout.special_ids)
    tokens |= {token_id: text.encode() for text, token_id in special_ids.items()}
    merges = []
    for left, right, new in learned:
        token = tokens[left] + tokens[right]
        if tokens.setdefault(new, token) != token:
            raise _shared(token)
        merges.append((left, right, new))
    if recipe.special_ids == "last":
        for text in recipe.all_specials:
            special_ids[text] = len(tokens)
            tokens[len(tokens)] = text.encode()
    return Vocabulary(
        tokens,
        merges,
        special_tokens=special_ids,
        pattern=recipe.encode_pattern,
        roles={role: special_ids[text] for role, text in recipe.roles},
        alphabet=recipe.vocab_alphabet,
    )
