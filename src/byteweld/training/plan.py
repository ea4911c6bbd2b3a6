"""The plan of a training run: its size, its id layout, and the vocabulary before the first merge.

Pure Python. The engine's trainer and the reference follow the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from byteweld._byte_letters import bytes_to_chars, chars_to_bytes
from byteweld.errors import UnsupportedError
from byteweld.recipes import Recipe
from byteweld.training.extend import orphans
from byteweld.vocab import Vocabulary


class LearnedMerge(NamedTuple):
    """A merge, with the count of its pair at the time it was picked."""

    left: int
    right: int
    new: int
    pair_count: int


class TrainingPlan(NamedTuple):
    """What exists before the first merge, and which ids the merges get."""

    vocab_size: int
    recipe: Recipe
    start: Vocabulary | None  # to extend
    base: Vocabulary
    # Bytes that already have an id: a merge that makes them takes that id instead of a new one.
    reserved: Mapping[bytes, int]
    # Special tokens, which are never learned: a pair that spells one is not merged.
    forbidden: frozenset[bytes]
    first_id: int
    max_new_ids: int
    specials_after: tuple[str, ...]  # special tokens whose ids follow those of the merges

    @property
    def token_limit(self) -> int | None:
        """The maximum length of a new token in bytes.

        Hugging Face's limit is exclusive, and never applies to a pair of single bytes.
        """
        limit = self.recipe.max_token_bytes
        if limit is None or self.recipe.alphabet != "huggingface":
            return limit
        return max(2, limit - 1)

    def vocabulary(self, learned: Sequence[tuple[int, int, int]]) -> Vocabulary:
        """Return the vocabulary after these merges."""
        for _, _, new in learned:
            if new < self.first_id:
                self._refuse_shared_id(new)
        roles = None
        if self.recipe.roles:
            first = self.first_id + sum(new >= self.first_id for _, _, new in learned)
            after = {text: first + n for n, text in enumerate(self.specials_after)}
            ids = {**self.base.special_tokens, **after}
            roles = dict(self.base.roles)
            roles |= {role: ids[text] for role, text in self.recipe.roles}
        return self.base._grown(learned, specials_after=self.specials_after, roles=roles)

    def smallest(self) -> Vocabulary:
        """Return a possible result with at most one merge, to check what a format can hold."""
        single = [token for token in self.base.ids if len(token) == 1]
        pairs = ((left, right) for left in single for right in single)
        taken = self.base.ids.keys() | self.reserved.keys() | self.forbidden
        new_pair = next((pair for pair in pairs if b"".join(pair) not in taken), None)
        if new_pair is None or not self.max_new_ids:
            return self.vocabulary([])
        left, right = (self.base.ids[part] for part in new_pair)
        return self.vocabulary([(left, right, self.first_id)])

    def _refuse_shared_id(self, new: int) -> None:
        token = next((token for token, i in self.reserved.items() if i == new), None)
        if token is not None and self.base.tokens[new] != token:
            raise _shared_id_error(token)


def make_plan(vocab_size: int, recipe: Recipe, start: Vocabulary | None = None) -> TrainingPlan:
    """Lay out the ids: those of `start`, or the recipe's alphabet and special tokens."""
    base = _first_tokens(recipe) if start is None else start
    # Checked before the size, whose minimum may grow with the bytes of the corpus.
    reserved = _spelled_as_special(recipe, base)
    # Hugging Face learns them with the special token's id; every other recipe never does.
    texts = () if _shares_ids(recipe) else (*recipe.all_specials, *base.special_tokens)
    forbidden = frozenset(text.encode() for text in texts)
    check_size(vocab_size, recipe, start)
    is_last = start is None and recipe.special_ids == "last"
    return TrainingPlan(
        vocab_size=vocab_size,
        recipe=recipe,
        start=start,
        base=base,
        reserved=reserved if start is None else dict(orphans(start)) | reserved,
        forbidden=forbidden,
        first_id=max(base.tokens, default=-1) + 1,
        max_new_ids=vocab_size - minimum_size(recipe, start),
        specials_after=recipe.all_specials if is_last else (),
    )


def _first_tokens(recipe: Recipe) -> Vocabulary:
    """Return the vocabulary before the first merge."""
    specials = () if recipe.special_ids == "last" else recipe.all_specials
    first_byte = len(specials) if recipe.special_ids == "first" else 0
    first_special = 0 if recipe.special_ids == "first" else len(recipe.letters)
    special_ids = {text: first_special + n for n, text in enumerate(specials)}
    tokens = {first_byte + n: bytes([byte]) for n, byte in enumerate(recipe.letters)}
    tokens |= {token_id: text.encode() for text, token_id in special_ids.items()}
    return Vocabulary(
        tokens,
        special_tokens=special_ids,
        pattern=recipe.encode_pattern,
        alphabet=recipe.vocab_alphabet,
    )


def check_size(vocab_size: int, recipe: Recipe, start: Vocabulary | None = None) -> None:
    """Raise if the size is too small. bpetite's requirement FR-9 fixes its error message."""
    if isinstance(vocab_size, bool) or not isinstance(vocab_size, int):
        raise TypeError(f"vocab_size is {vocab_size!r}; it must be an integer")
    minimum = minimum_size(recipe, start)
    if vocab_size >= minimum:
        return
    if start is not None:
        raise ValueError(
            f"vocab_size is {vocab_size}; it must be at least {minimum}, "
            "the size of the tokenizer to start from"
        )
    if recipe.name == "bpetite":
        raise ValueError(f"vocab_size must be >= 256, got {vocab_size}")
    alphabet = len(recipe.letters)
    parts = f"{alphabet} bytes"
    if minimum > alphabet:
        parts += f" and {minimum - alphabet} special tokens"
    raise ValueError(f"vocab_size is {vocab_size}; it must be at least {minimum}: {parts}")


def minimum_size(recipe: Recipe, start: Vocabulary | None) -> int:
    """Return the size of the vocabulary before the first merge, as `vocab_size` counts it."""
    if start is None:
        return recipe.minimum_size
    return len(start) - (0 if recipe.size_counts_specials else len(start.special_tokens))


def _spelled_as_special(recipe: Recipe, base: Vocabulary) -> dict[bytes, int]:
    """Return the tokens whose spelling in byte letters is the text of a special token.

    Hugging Face keeps tokens and special tokens in one table, so the two share an id.
    """
    if not _shares_ids(recipe):
        return {}
    spelled = {chars_to_bytes(text): token_id for text, token_id in base.special_tokens.items()}
    for token in spelled:
        if token is not None and len(token) == 1:
            raise _shared_id_error(token)
    return {token: token_id for token, token_id in spelled.items() if token is not None}


def _shares_ids(recipe: Recipe) -> bool:
    """Whether learned tokens may share an id with a special token, as in Hugging Face.

    Its special tokens never come after the merges.
    """
    return recipe.alphabet == "huggingface" and recipe.special_ids != "last"


def _shared_id_error(token: bytes) -> UnsupportedError:
    return UnsupportedError(
        f"special token {bytes_to_chars(token)!r} is also how Hugging Face spells the token "
        f"{token!r}, so both would get the same id, which a vocabulary cannot hold; choose another "
        "special token"
    )
