"""Measure tokenizers: token lengths, scripts, unreachable tokens, training curves.

Pure: tokenizers and text in, plain values out; nothing is read or printed. `corpora` evaluates on
whole corpora, `words` counts tokens per word, and `probes` tests digits and indentation.
"""

from __future__ import annotations

import operator
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

from byteweld.tokenizer import Tokenizer
from byteweld.training import Training

if TYPE_CHECKING:
    import numpy as np  # slow to import
    from numpy.typing import NDArray

_MIN_NUMPY_BYTES = 1 << 16  # for less, importing numpy takes longer than counting

Reason = Literal["cut", "part", "never merged", "changed"]


def token_lengths(tok: Tokenizer) -> NDArray[np.int64] | None:
    """Return how many bytes of text each id covers; None if that depends on the text."""
    vocab = tok.vocab
    changes = {"normalizer", "prefix space", "added token flags", "shared ids"}
    if vocab.alphabet != "bytes" or changes.intersection(vocab.extras):
        return None
    import numpy as np

    lengths = np.zeros(tok.n_vocab, np.int64)  # ids are nearly dense
    lengths[list(vocab.tokens)] = [len(token) for token in vocab.tokens.values()]
    return lengths


def script_of(token: bytes) -> str:
    """Return the script of a token's first letter; without a letter, the kind of its characters.

    >>> script_of(b" the"), script_of("д".encode()), script_of(b"123"), script_of(b"\\xe2\\x82")
    ('latin', 'cyrillic', 'digits', 'part of a character')
    """
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "part of a character"
    kinds = [_kind(character) for character in text]
    letters = (kind for kind in kinds if kind not in ("space", "digits", "symbols", "controls"))
    others = (kind for kind in ("digits", "symbols", "controls") if kind in kinds)
    return next(letters, next(others, "space"))


@lru_cache(maxsize=1 << 16)
def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] == "L" or category in ("Mn", "Mc"):
        # The standard library has no script property, but a letter's name starts with its script.
        word = unicodedata.name(character, "other").split()[0].lower()
        return _SCRIPTS.get(word, word)
    if character.isspace():
        return "space"
    if category[0] == "N":
        return "digits"
    return "controls" if category[0] == "C" else "symbols"


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
    """Count tokens by length in bytes, shortest first."""
    return sorted(Counter(map(len, tokens)).items())


def scripts(tokens: Iterable[bytes]) -> list[tuple[str, int]]:
    """Count tokens by script, most common first."""
    found = Counter(map(script_of, tokens))
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def unreachable(tok: Tokenizer) -> dict[int, Reason]:
    """Return the tokens that their own bytes do not encode to, with the reason for each.

    A token that ends inside a character is among them if its own bytes are split, though a longer
    text may contain it.

    >>> tokens = {b: bytes([b]) for b in range(256)} | {256: b"bc", 257: b"ab", 258: b"abc"}
    >>> merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    >>> unreachable(Tokenizer.from_merges(tokens, merges))  # the merge of b and c goes first
    {258: 'never merged'}
    """
    return {
        i: why_unreachable(tok, token)
        for i, token in tok.vocab.ordinary()
        if tok.encode_ordinary(token) != [i]
    }


def why_unreachable(tok: Tokenizer, token: bytes) -> Reason:
    """Return why a token's own bytes do not encode to it.

    "cut": the pattern splits them. "part": they start or end inside a character, so the token only
    occurs in longer text. "never merged": other merges apply first. "changed": the normalizer
    rewrites them.
    """
    pretokens = tok.pretokenize(token)
    if b"".join(pretokens) != token:
        return "changed"
    if len(pretokens) == 1:
        return "never merged"
    return "cut" if token.decode(errors="ignore").encode() == token else "part"


def pattern_engine(tok: Tokenizer) -> str:
    """Return what runs the pattern: "whole" (no pattern), "scanner", "automaton", "backtracking".

    The ids are the same with all of them; the speed is not. Of several steps, the slowest counts.

    >>> pattern_engine(Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, []))
    'scanner'
    """
    slowness = ["whole", "scanner", "automaton", "backtracking"]
    return max(tok._encoder.engines, key=slowness.index, default="whole")


class CurvePoint(NamedTuple):
    """The state of a training run after some of its merges."""

    merges: int
    tokens: int  # in the corpus
    bytes_per_token: float


def tokens_after(training: Training) -> list[int]:
    """Return the number of tokens in the training corpus before the first merge and after each."""
    return list(accumulate(training.removed_tokens, operator.sub, initial=training.first_tokens))


def training_curve(training: Training, points: int = 200) -> list[CurvePoint]:
    """Return bytes per token of the training corpus against merges, at roughly `points` points.

    Points are denser at the start, where the curve is steep.
    """
    tokens = tokens_after(training)
    sampled = {round((len(tokens) - 1) * (n / points) ** 2) for n in range(points + 1)}
    return [
        CurvePoint(n, tokens[n], training.total_bytes / tokens[n])
        for n in sorted(sampled)
        if tokens[n]
    ]


def byte_counts(data: bytes) -> Sequence[int]:
    """Count each of the 256 byte values.

    >>> byte_counts(b"abba")[ord("b")]
    2
    """
    if len(data) < _MIN_NUMPY_BYTES:
        found = Counter(data)
        return [found[byte] for byte in range(256)]
    import numpy as np

    counted: list[int] = np.bincount(np.frombuffer(data, np.uint8), minlength=256).tolist()
    return counted
