"""What a tokenizer is good at: rates by text, lengths, scripts, unreachable tokens, curves.

Pure: tokenizers, texts and values in, plain values out. Nothing is printed or read here. What it
does with a whole corpus is in `evaluation`, with words in `words`, with digits and indentation in
`probes`.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from byteweld.tokenizer import Tokenizer
from byteweld.training import Training

if TYPE_CHECKING:
    from numpy.typing import NDArray

Reason = Literal["cut", "part", "never merged", "changed"]


class Rate(NamedTuple):
    """What one text costs."""

    name: str
    characters: int
    bytes: int
    tokens: int

    @property
    def bytes_per_token(self) -> float | None:
        """None for an empty text."""
        return self.bytes / self.tokens if self.tokens else None


def rates(tok: Tokenizer, texts: Mapping[str, str]) -> list[Rate]:
    """What each text costs, as plain text."""
    return [
        Rate(name, len(text), len(text.encode("utf-8", "replace")), _count(tok, text))
        for name, text in texts.items()
    ]


def _count(tok: Tokenizer, text: str) -> int:
    return tok.count(text, disallowed_special=())


# ---------------------------------------------------------------------------- tokens


def token_lengths(tok: Tokenizer) -> NDArray[np.int64] | None:
    """How many bytes of text each id stands for; None where that depends on the text."""
    vocab = tok.vocab
    changes = {"normalizer", "prefix space", "added token flags", "shared ids"}
    if vocab.alphabet != "bytes" or changes.intersection(vocab.extras):
        return None
    lengths = np.zeros(tok.n_vocab, np.int64)  # ids are nearly dense
    lengths[list(vocab.tokens)] = [len(token) for token in vocab.tokens.values()]
    return lengths


def script_of(token: bytes) -> str:
    """The script of a token's first letter, or what it is made of instead.

    >>> script_of(b" the"), script_of("д".encode()), script_of(b"123"), script_of(b"\\xe2\\x82")
    ('latin', 'cyrillic', 'digits', 'part of a character')
    """
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "part of a character"
    kinds = [_kind(character) for character in text]
    for kind in kinds:
        if kind not in ("space", "digits", "signs", "controls"):
            return kind
    for kind in ("digits", "signs", "controls"):
        if kind in kinds:
            return kind
    return "space"


@lru_cache(maxsize=1 << 16)
def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] == "L" or category in ("Mn", "Mc"):
        # The standard library has no scripts, but a letter's name begins with its own.
        word = unicodedata.name(character, "other").split()[0].lower()
        return _SCRIPTS.get(word, word)
    if character.isspace():
        return "space"
    if category[0] == "N":
        return "digits"
    return "controls" if category[0] == "C" else "signs"


_SCRIPTS = {
    "black-letter": "latin",
    "cjk": "han",
    "combining": "combining marks",
    "double-struck": "latin",
    "fullwidth": "latin",
    "halfwidth": "katakana",
    "feminine": "latin",
    "ideographic": "han",
    "information": "latin",
    "katakana-hiragana": "katakana",
    "masculine": "latin",
    "micro": "greek",
    "modifier": "modifiers",
    "script": "latin",
    "superscript": "latin",
    "variation": "combining marks",
}


def lengths(tokens: Iterable[bytes]) -> list[tuple[int, int]]:
    """How many tokens have each length in bytes, shortest first."""
    return sorted(Counter(map(len, tokens)).items())


def scripts(tokens: Iterable[bytes]) -> list[tuple[str, int]]:
    """How many tokens each script has, the most first."""
    found = Counter(map(script_of, tokens))
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def unreachable(tok: Tokenizer) -> dict[int, Reason]:
    """Tokens that encoding their own bytes does not give, and why (see `why_unreachable`)."""
    tokens = tok.vocab.tokens
    return {i: why_unreachable(tok, tokens[i]) for i in tok.unreachable_tokens()}


def why_unreachable(tok: Tokenizer, token: bytes) -> Reason:
    """Why a token is not what its own bytes become.

    "cut": the pattern cuts them. "part": they end inside a character, so only a longer text can
    hold them. "never merged": other merges go first. "changed": the normaliser changes them.
    """
    pieces = tok.pretokenize(token)
    if b"".join(pieces) != token:
        return "changed"
    if len(pieces) == 1:
        return "never merged"
    return "cut" if _is_utf8(token) else "part"


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


# ---------------------------------------------------------------------------- curves


class CurvePoint(NamedTuple):
    """A training at one size: merges learned so far, tokens of the corpus, bytes per token."""

    merges: int
    tokens: int
    bytes_per_token: float


def training_curve(training: Training, points: int = 200) -> list[CurvePoint]:
    """Bytes per token of the training's corpus against its merges, at about so many points.

    They lie closer together at the start, where the curve is steep.
    """
    merges = len(training.removed_tokens)
    tokens_after = [training.first_tokens]
    for removed in training.removed_tokens:
        tokens_after.append(tokens_after[-1] - removed)
    wanted = {round(merges * (n / points) ** 2) for n in range(points + 1)}
    return [
        CurvePoint(n, tokens_after[n], training.total_bytes / tokens_after[n])
        for n in sorted(wanted)
        if tokens_after[n]
    ]


# ---------------------------------------------------------------------------- bytes


def byte_counts(data: bytes) -> Sequence[int]:
    """How often each of the 256 byte values occurs.

    >>> byte_counts(b"abba")[ord("b")]
    2
    """
    counts: list[int] = np.bincount(np.frombuffer(data, np.uint8), minlength=256).tolist()
    return counts
