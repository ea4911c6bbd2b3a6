"""Drops, on request and by name, features that a format cannot represent.

`drop` makes a vocabulary without the named features; `find_drops` finds those a format cannot
represent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import combinations
from typing import Final

from byteweld import formats
from byteweld.errors import UnsupportedError, VocabularyError
from byteweld.vocab import AddedToken, Vocabulary

# The features that can be dropped, named as in `Vocabulary.extras`, and the effect of each.
DROPPABLE: Final[dict[str, str]] = {
    "added token flags": "added tokens become special tokens without flags",
    "shared ids": "each id keeps one special token",
    "twin tokens": "tokens that no text encodes to are removed",
    "empty token": "the token with no bytes is removed",
    "normalizer": "text is not normalized",
    "prefix space": "no space is added before text",
    "steps": "pre-tokenizer steps are removed",
    "template": "no special tokens are added around text",
    "pattern": "text is not split",
    "roles": "bos, eos, pad and unk are not declared",
    "special tokens": "all are removed, with their ids and roles",
    "ignore merges": "pre-tokens are not looked up whole",
}


def key_of(name: str) -> str:
    """Return a name with hyphens for spaces, as the command line takes it."""
    return name.replace(" ", "-")


def drop(vocab: Vocabulary, names: Iterable[str]) -> Vocabulary:
    """Return a vocabulary without the named features; names may have hyphens for spaces.

    >>> plain = drop(Vocabulary({b: bytes([b]) for b in range(256)}, pattern="gpt2"), ["pattern"])
    >>> plain.pattern is None
    True
    """
    for given in names:
        name = given.replace("-", " ").replace("_", " ")
        had = droppable(vocab)
        if name not in DROPPABLE:
            keys = [key_of(known) for known in DROPPABLE]
            raise ValueError(f"cannot drop {given!r}; {formats.known_names(given, keys)}")
        if name not in had:
            raise ValueError(
                f"cannot drop {given!r}, which this vocabulary does not have; "
                f"it has {', '.join(map(key_of, had)) or 'nothing that can be dropped'}"
            )
        try:
            vocab = _without(vocab, name)
        except VocabularyError as error:
            raise UnsupportedError(f"cannot drop {given!r}: {error}") from error
    return vocab


def droppable(vocab: Vocabulary) -> list[str]:
    """Return the names of the features of a vocabulary that can be dropped."""
    has = {
        "pattern": vocab.pattern is not None,
        "roles": bool(vocab.roles),
        "special tokens": bool(vocab.special_tokens),
        "ignore merges": vocab.ignore_merges,
    }
    extras = vocab.extras
    return [name for name in DROPPABLE if has.get(name, name in extras)]


def find_drops(
    vocab: Vocabulary, path: str | os.PathLike[str], format: str | None = None
) -> tuple[str, ...] | None:
    """Return the fewest names to drop for `check` to pass; None if that takes more than two.

    (Two besides the `Vocabulary.extras` that the format cannot represent, which must be dropped.)
    """
    always = formats.not_held(vocab, path, format)
    if any(name not in DROPPABLE for name in always):
        return None
    others = [name for name in droppable(vocab) if name not in vocab.extras]
    try:
        vocab = drop(vocab, always)
    except ValueError:
        return None
    for count in range(3):
        for more in combinations(others, count):
            try:
                formats.check(drop(vocab, more), path, format)
            except ValueError:  # UnsupportedError, or one needed the other
                continue
            return (*always, *more)
    return None


def _without(vocab: Vocabulary, name: str) -> Vocabulary:
    traits = vocab.traits()
    gone: set[int] = set()
    if name == "added token flags":
        traits["added_tokens"] = [AddedToken(token.text, token.id) for token in vocab.added_tokens]
    elif name == "shared ids":
        # The text that the id decodes to, or else the first.
        owners = {token.id: token for token in reversed(vocab.added_tokens)}
        owners |= {t.id: t for t in vocab.added_tokens if t.text.encode() == vocab.tokens[t.id]}
        traits["added_tokens"] = owners.values()
    elif name == "twin tokens":
        gone = set(vocab.twins)
    elif name == "empty token":
        gone = {token_id for token_id, token in vocab.tokens.items() if not token}
    elif name == "prefix space":
        traits["steps"] = [step for step in vocab.steps if step != "prefix-space"]
    elif name == "steps":
        traits["steps"] = [step for step in vocab.steps if step == "prefix-space"]
    elif name == "special tokens":
        traits["added_tokens"] = [token for token in vocab.added_tokens if not token.special]
        gone = set(vocab.special_tokens.values()) - set(vocab.ids.values())
    else:
        del traits[name.replace(" ", "_")]
    if gone:
        traits["roles"] = {role: i for role, i in vocab.roles.items() if i not in gone}
        traits["template"] = [[i for i in ids if i not in gone] for ids in vocab.template]
    tokens = {token_id: token for token_id, token in vocab.tokens.items() if token_id not in gone}
    return Vocabulary(tokens, vocab.merge_ids, **traits)
