"""The state of a running studio: the open tokenizers, and what has been computed about each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import byteweld
from byteweld._cached import cached_property
from byteweld.evaluation import Reason, script_of, token_lengths, unreachable
from byteweld.patterns import pattern_name
from byteweld.studio.request import Refused, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_OPEN = 16
_PATTERN_CHARACTERS = 300


class TokenEntry(NamedTuple):
    """A token as the Vocabulary view searches it."""

    id: int
    token: bytes
    rank: int | None  # of the first merge that builds it
    script: str
    is_special: bool


class Opened:
    """An open tokenizer, and what has been computed about it."""

    def __init__(self, tok: byteweld.Tokenizer, name: str) -> None:
        self.tok = tok
        self.name = name

    def summary(self) -> dict[str, Any]:
        """Return what the header displays."""
        vocab = self.tok.vocab
        return {
            "name": self.name,
            "tokens": len(vocab),
            "pattern": _pattern_words(vocab),
            "has_training": self.tok.training is not None,
            "fingerprint": vocab.fingerprint,
        }

    def merge_count(self, rank: int) -> int | None:
        """Return how often the pair of a merge occurred when it was learned, if known."""
        training = self.tok.training
        if training is None:
            return None
        index = rank - (training.start.merges if training.start else 0)
        return training.merge_counts[index] if 0 <= index < len(training.merge_counts) else None

    @cached_property
    def token_lengths(self) -> NDArray[np.int64] | None:
        """The number of bytes of text that each id covers; None if it depends on the text."""
        return token_lengths(self.tok)

    @cached_property
    def entries(self) -> list[TokenEntry]:
        """Every token, in order of id."""
        vocab = self.tok.vocab
        specials = set(vocab.special_tokens.values())
        return [
            TokenEntry(i, token, self.ranks.get(i), script_of(token), i in specials)
            for i, token in vocab.tokens.items()
        ]

    @cached_property
    def unreachable(self) -> Mapping[int, Reason]:
        """The tokens that encoding their own bytes does not give, with the reason."""
        return unreachable(self.tok)

    @cached_property
    def ranks(self) -> Mapping[int, int]:
        """The rank of each token: that of the first merge that builds it."""
        vocab = self.tok.vocab
        if vocab.ranking == "ranks":
            return {i: i for i, token in vocab.ordinary() if len(token) > 1}
        # In reverse, so that the first merge of a token wins.
        merges = vocab.merge_ids
        return {merges[rank].new: rank for rank in reversed(range(len(merges)))}


class GivenCorpus:
    """The user's own corpus, of any size, which is counted when a recipe is first used."""

    def __init__(self, name: str, count: Callable[[byteweld.Recipe], byteweld.Counts]) -> None:
        self.name = name
        self._count = count
        self._lock = threading.Lock()
        self._counted: dict[str, byteweld.Counts] = {}

    def counts(self, recipe: byteweld.Recipe) -> byteweld.Counts:
        """Return the counts for a preset, from the files or from memory."""
        with self._lock:
            if recipe.name not in self._counted:
                try:
                    self._counted[recipe.name] = self._count(recipe)
                except (ValueError, OSError, MemoryError) as error:
                    raise Refused(400, str(error) or "out of memory") from None
            return self._counted[recipe.name]


class Session:
    """The open tokenizers, in the order in which they were opened; none is ever closed.

    `first_view` is the view that opens if the address names none, `corpus` what the Training view
    may train on beside text.
    """

    def __init__(
        self,
        tokenizers: Iterable[tuple[str, byteweld.Tokenizer]],
        first_view: str = "tokens",
        corpus: GivenCorpus | None = None,
    ) -> None:
        self.opened = [Opened(tok, name) for name, tok in tokenizers]
        self.first_view = first_view
        self.corpus = corpus
        self._lock = threading.Lock()

    def tokenizer(self, fields: Request) -> Opened:
        """Return the tokenizer that a request refers to."""
        return self.opened[fields.number("tokenizer", 0, 0, len(self.opened) - 1)]

    def add(self, tok: byteweld.Tokenizer, name: str) -> int:
        """Open a tokenizer, unless it is open already, and return its index."""
        with self._lock:
            for index, opened in enumerate(self.opened):
                if opened.tok == tok:
                    return index
            if len(self.opened) >= MAX_OPEN:
                raise Refused(
                    409, f"{MAX_OPEN} tokenizers are open, the maximum; restart the studio"
                )
            self.opened.append(Opened(tok, name))
            return len(self.opened) - 1

    def summaries(self) -> list[dict[str, Any]]:
        """Return the summary of every open tokenizer."""
        return [opened.summary() for opened in self.opened]


def _pattern_words(vocab: byteweld.Vocabulary) -> str:
    """Return the name of the pattern, or its start if it has no name."""
    if vocab.steps:
        return f"{len(vocab.steps)} steps"
    if vocab.pattern is None:
        return "none"
    return pattern_name(vocab.pattern) or vocab.pattern[:_PATTERN_CHARACTERS]
