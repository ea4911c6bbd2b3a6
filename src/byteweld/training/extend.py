"""What it takes to learn further merges for a vocabulary: which can be, and by which recipe.

Every id of the vocabulary stays, and so do its merges, which go before the new ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from byteweld.errors import UnsupportedError
from byteweld.recipes import RECIPES, Recipe
from byteweld.vocab import Vocabulary

# What a vocabulary may have besides tokens and merges, and be extended all the same.
_KEPT = ("added token flags", "shared ids", "template")


def check_extendable(vocab: Vocabulary) -> None:
    """Refuse, by name, a vocabulary whose texts the trainer cannot see as its encoder does."""
    if vocab.ranking == "ranks":
        raise UnsupportedError(
            "this tokenizer cannot be extended: it has ranks, and merges that give the same ids "
            "cannot be recovered from them"
        )
    found = [extra for extra in vocab.extras if extra not in _KEPT]
    if vocab.ignore_merges:
        found.append("ignore_merges")
    if found:
        raise UnsupportedError(
            f"this tokenizer cannot be extended: training knows nothing of its {', '.join(found)}"
        )
    check_order(vocab)


def check_order(vocab: Vocabulary) -> None:
    """Refuse a merge list that no training can have made.

    In one that training made, parts come before the whole, and each token is made once. Then making
    the merges one after another is encoding: no merge makes way for one before it.
    """
    rank_of: dict[int, int] = {}
    for rank, (_, _, new) in enumerate(vocab.merge_ids):
        if new in rank_of:
            raise UnsupportedError(
                f"this tokenizer cannot be extended: merges {rank_of[new]} and {rank} both make "
                f"token {new}, which no training does"
            )
        rank_of[new] = rank
    made = {i for i, token in vocab.ordinary() if len(token) == 1}
    for rank, merge in enumerate(vocab.merge_ids):
        missing = next((part for part in merge[:2] if part not in made), None)
        if missing is not None:
            when = f"merge {rank_of[missing]} makes later" if missing in rank_of else "none makes"
            raise UnsupportedError(
                f"this tokenizer cannot be extended: merge {rank} needs token {missing}, which "
                f"{when}"
            )
        made.add(merge.new)


def orphans(vocab: Vocabulary) -> list[tuple[bytes, int]]:
    """The tokens that no merge makes: one that is learned now keeps its id."""
    made = {merge.new for merge in vocab.merge_ids}
    return [(token, i) for i, token in vocab.ordinary() if len(token) > 1 and i not in made]


def fit_recipe(recipe: Recipe, start: Vocabulary, changes: Collection[str] = ()) -> Recipe:
    """The recipe for further merges of a vocabulary: its pattern, alphabet and special tokens.

    `changes` are the fields that the caller named himself: a pattern or special tokens among them
    must be the vocabulary's own.
    """
    check_extendable(start)
    pattern, encode_pattern = recipe.pattern, recipe.encode_pattern
    if encode_pattern != start.pattern:
        preset = RECIPES.get(recipe.name, Recipe())
        is_own = (pattern, encode_pattern) != (preset.pattern, preset.encode_pattern)
        if is_own or not {"pattern", "encode_pattern"}.isdisjoint(changes):
            raise ValueError(
                f"the tokenizer to start from cuts text with pattern {start.pattern!r}, but the "
                f"recipe has {encode_pattern!r}; leave pattern out to keep its own"
            )
        pattern = encode_pattern = start.pattern
    unknown = [text for text in recipe.special_tokens if text not in start.special_tokens]
    if unknown:
        raise ValueError(
            f"special token {unknown[0]!r} is none of the tokenizer to start from, and extending "
            "adds none; leave special_tokens out to keep its own"
        )
    texts = list(dict.fromkeys(added.text for added in start.added_tokens))
    built_in = tuple(text for text in recipe.built_in if text in texts)
    alphabet = recipe.alphabet if recipe.alphabet == "huggingface" else "bytes"
    return dataclasses.replace(
        recipe,
        alphabet="ascii" if start.alphabet == "ascii" else alphabet,
        pattern=pattern,
        encode_pattern=encode_pattern,
        built_in=built_in,
        special_tokens=tuple(text for text in texts if text not in built_in),
        roles=(),
    )
