"""Extending: which vocabularies can learn further merges, and with which recipe.

The vocabulary keeps all its ids and merges; new merges rank after them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from byteweld.errors import UnsupportedError
from byteweld.recipes import RECIPES, Recipe
from byteweld.vocab import Vocabulary

# Extras that do not affect training.
_HARMLESS = ("added token flags", "shared ids", "template")


def check_extendable(vocab: Vocabulary) -> None:
    """Raise if the vocabulary encodes in a way that training does not support."""
    if vocab.ranking == "ranks":
        raise UnsupportedError(
            "this tokenizer cannot be extended: it has ranks instead of merges, and they cannot be "
            "converted to merges that give the same ids"
        )
    found = [extra for extra in vocab.extras if extra not in _HARMLESS]
    if vocab.ignore_merges:
        found.append("ignore_merges")
    if found:
        raise UnsupportedError(
            f"this tokenizer cannot be extended: training does not support its {', '.join(found)}"
        )
    check_order(vocab)


def check_order(vocab: Vocabulary) -> None:
    """Raise if no training run could have made this list of merges.

    Training makes each token once, after its parts. Only then is encoding the same as applying the
    merges one after another, which is how training continues.
    """
    rank_of: dict[int, int] = {}
    for rank, (_, _, new) in enumerate(vocab.merge_ids):
        if new in rank_of:
            raise UnsupportedError(
                f"this tokenizer cannot be extended: merges {rank_of[new]} and {rank} both make "
                f"token {new}, which training never does"
            )
        rank_of[new] = rank
    made = {i for i, token in vocab.ordinary() if len(token) == 1}
    for rank, merge in enumerate(vocab.merge_ids):
        missing = next((part for part in merge[:2] if part not in made), None)
        if missing is not None:
            later = rank_of.get(missing)
            when = "no merge makes" if later is None else f"merge {later} makes later"
            raise UnsupportedError(
                f"this tokenizer cannot be extended: merge {rank} needs token {missing}, which "
                f"{when}"
            )
        made.add(merge.new)


def orphans(vocab: Vocabulary) -> list[tuple[bytes, int]]:
    """Return the tokens that no merge makes. If one is learned later, it keeps its id."""
    made = {merge.new for merge in vocab.merge_ids}
    return [(token, i) for i, token in vocab.ordinary() if len(token) > 1 and i not in made]


def fit_recipe(recipe: Recipe, start: Vocabulary, changes: Collection[str] = ()) -> Recipe:
    """Return the recipe with the pattern, alphabet and special tokens of `start`.

    `changes` are the fields that the caller set; a pattern or special tokens among them must agree
    with the vocabulary.
    """
    check_extendable(start)
    pattern, encode_pattern = recipe.pattern, recipe.encode_pattern
    if encode_pattern != start.pattern:
        preset = RECIPES.get(recipe.name, Recipe())
        is_own = (pattern, encode_pattern) != (preset.pattern, preset.encode_pattern)
        if is_own or not {"pattern", "encode_pattern"}.isdisjoint(changes):
            raise ValueError(
                f"the tokenizer to start from has pattern {start.pattern!r}, but the recipe has "
                f"{encode_pattern!r}; leave pattern out to keep the tokenizer's"
            )
        # A recipe that trains with another pattern than it encodes with keeps that one.
        pattern = start.pattern if pattern == encode_pattern else pattern
        encode_pattern = start.pattern
    unknown = [text for text in recipe.special_tokens if text not in start.special_tokens]
    if unknown:
        raise ValueError(
            f"special token {unknown[0]!r} is not in the tokenizer to start from, and extending a "
            "tokenizer cannot add any; leave special_tokens out to keep the tokenizer's"
        )
    specials = dict.fromkeys(added.text for added in start.added_tokens)
    built_in = tuple(text for text in recipe.built_in if text in specials)
    alphabet = recipe.alphabet if recipe.alphabet == "huggingface" else "bytes"
    return dataclasses.replace(
        recipe,
        alphabet="ascii" if start.alphabet == "ascii" else alphabet,
        pattern=pattern,
        encode_pattern=encode_pattern,
        built_in=built_in,
        special_tokens=tuple(text for text in specials if text not in built_in),
        roles=(),  # the vocabulary keeps its own
    )
