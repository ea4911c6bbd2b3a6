"""Oracles: the reference, the real tiktoken and the real tokenizers, each with one vocabulary.

In: a text and the special tokens recognized in it. Out: its ids, or None for a text that an oracle
cannot encode; another oracle then decides.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from byteweld import Vocabulary, reference
from byteweld._text import utf8
from byteweld.proof import is_failure

from .texts import Text, as_str

Ids = list[int]
Allowed = frozenset[str]

# The reference looks at all pairs again after each merge.
MAX_REFERENCE_PRETOKEN = 300


class Oracle(Protocol):
    """Knows the right ids for a vocabulary."""

    name: str

    def ids(self, text: Text, allowed: Allowed) -> Ids | None: ...


class ReferenceOracle:
    """The readable implementation, with a cache of pre-tokens."""

    name = "reference"

    def __init__(self, vocab: Vocabulary) -> None:
        self._vocab = vocab
        self._merged = lru_cache(maxsize=1 << 16)(self._merge)

    def ids(self, text: Text, allowed: Allowed) -> Ids | None:
        ids: Ids = []
        for piece in reference.split_specials(utf8(text), allowed):
            if isinstance(piece, str):
                ids.append(self._vocab.special_tokens[piece])
                continue
            for pretoken in reference.pretokenize(piece, self._vocab.pattern):
                if len(pretoken) > MAX_REFERENCE_PRETOKEN:
                    return None
                ids += self._merged(pretoken)
        return ids

    def _merge(self, pretoken: bytes) -> tuple[int, ...]:
        *_, last = reference.encode_steps(self._vocab, pretoken)
        return last.parts


class TiktokenOracle:
    """The real tiktoken; it encodes bytes only if they are UTF-8."""

    name = "tiktoken"

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    def ids(self, text: Text, allowed: Allowed) -> Ids | None:
        decoded = as_str(text)
        if decoded is None:
            return None
        return answer(
            lambda: self._encoding.encode(decoded, allowed_special=allowed, disallowed_special=())
        )


class TokenizersOracle:
    """The real tokenizers; it recognizes either all special tokens or none."""

    name = "tokenizers"

    def __init__(self, tokenizer: Any, specials: Allowed) -> None:
        self._tokenizer = tokenizer
        self._specials = specials

    def ids(self, text: Text, allowed: Allowed) -> Ids | None:
        decoded = as_str(text)
        if decoded is None or allowed not in (frozenset(), self._specials):
            return None
        self._tokenizer.encode_special_tokens = not allowed
        repaired = utf8(decoded).decode()
        return answer(lambda: self._tokenizer.encode(repaired, add_special_tokens=False).ids)


def answer(call: Callable[[], Ids]) -> Ids | None:
    """A peer's answer, or None if it gives up because its regex engine runs out of stack."""
    try:
        return call()
    except BaseException as error:
        if not is_failure(error) or isinstance(error, TypeError):
            raise
        return None


def imported(name: str) -> Any | None:
    """A module, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def missing_peers() -> list[str]:
    """Oracles that are not installed."""
    return [name for name in ("tiktoken", "tokenizers") if imported(name) is None]
