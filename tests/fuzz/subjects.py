"""Subjects: vocabularies of every kind, each with the oracles that compute its expected ids.

Small ones are made here, so that the reference is fast enough; real ones are in ../shared/data.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import byteweld
from byteweld import PATTERNS, RECIPES, Tokenizer, Vocabulary
from byteweld.evaluation import pattern_engine
from byteweld.patterns import is_over_bytes
from tests.helpers.vocabularies import (
    BYTES,
    ENDOFTEXT,
    any_tokens,
    joined_tokens,
    published,
    ranked_by_id,
    ranked_by_merges,
    shuffled_ids,
    unpack,
    with_traits,
)

from .oracles import Oracle, ReferenceOracle, TiktokenOracle, TokenizersOracle, imported
from .texts import documents

SPECIALS = [ENDOFTEXT, "<|a|>"]
# Alternatives that no text reaches, since those before them match every character: they change no
# pre-token, only which engine runs the pattern.
OTHER_ENGINES = {"automaton": "|xy+z|ab", "backtracking": "|(?<=a)b"}


# One or two of every class that a known pattern distinguishes.
PAIRED = "abAZsS'ſ\u212a 1½\t\n\r\xa0\u3000!/._éÉ漢ǅʰ\u0301\u0903👍\0\u200b"


@dataclass
class Subject:
    """A vocabulary and its oracles; the first that answers gives the expected ids."""

    name: str
    vocab: Vocabulary
    oracles: list[Oracle]
    tiktoken: Any = None  # the real Encoding, for methods that only it has
    is_small: bool = True
    others: dict[str, Vocabulary] = field(default_factory=dict)  # by the engine of their pattern
    is_plain: bool = field(init=False)
    is_lossless: bool = field(init=False)  # the bytes of the tokens are those of the text

    def __post_init__(self) -> None:
        self.is_plain = is_plain(self.vocab)
        own_ids = "shared ids" not in self.vocab.extras
        self.is_lossless = self.is_plain and own_ids and self.vocab.alphabet == "bytes"
        # Which engine runs the pattern does not depend on size, and large vocabularies copy slowly.
        pattern = self.vocab.pattern
        if self.is_small and self.is_plain and pattern is not None and not is_over_bytes(pattern):
            for engine, tail in OTHER_ENGINES.items():
                vocab = with_traits(self.vocab, pattern=pattern + tail)
                if pattern_engine(Tokenizer(vocab)) == engine:
                    self.others[engine] = vocab


def is_plain(vocab: Vocabulary) -> bool:
    """Whether there are only tokens, merges and one pattern, which is all the reference knows."""
    return set(vocab.extras) <= {"template", "shared ids"}


# ---------------------------------------------------------------------- oracles


def _tiktoken(vocab: Vocabulary, ranks: dict[bytes, int], pattern: str) -> Any | None:
    module = None if is_over_bytes(vocab.pattern) else imported("tiktoken")
    return module and module.Encoding(
        "fuzz", pat_str=pattern, mergeable_ranks=ranks, special_tokens=dict(vocab.special_tokens)
    )


def _with_oracles(
    name: str,
    vocab: Vocabulary,
    *,
    tiktoken: Any = None,
    tokenizers: Any = None,
    is_small: bool = True,
) -> Subject:
    oracles: list[Oracle] = []
    if is_plain(vocab):
        oracles.append(ReferenceOracle(vocab))
    if tiktoken is not None:
        oracles.append(TiktokenOracle(tiktoken))
    if tokenizers is not None:
        oracles.append(TokenizersOracle(tokenizers, frozenset(vocab.special_tokens)))
    return Subject(name, vocab, oracles, tiktoken, is_small)


# ---------------------------------------------------------------------- small vocabularies


def trained(pattern: str | None) -> Subject:
    """Trained on the small corpora, so that all four encoders can have the same ids."""
    tok = byteweld.train(
        iter(documents()),
        vocab_size=1000,
        pattern=pattern,
        special_tokens=SPECIALS,
        min_frequency=1,
    )
    vocab = tok.vocab
    theirs = _saved_for_tokenizers(tok)
    encoding = _tiktoken(vocab, dict(vocab.ids), vocab.pattern or r"(?s:.+)")
    return _with_oracles(f"small/{pattern or 'whole'}", vocab, tiktoken=encoding, tokenizers=theirs)


def shared_ids() -> Subject:
    """Trained as Hugging Face does on words that are special tokens, which share their ids."""
    specials = [*SPECIALS, "in", "er", "on"]
    tok = byteweld.train(
        iter(documents()), vocab_size=1000, recipe="huggingface", special_tokens=specials
    )
    return _with_oracles("small/shared", tok.vocab, tokenizers=_saved_for_tokenizers(tok))


def _saved_for_tokenizers(tok: Tokenizer) -> Any | None:
    """The same tokenizer in the real tokenizers; None if it is not installed or cannot run it."""
    tokenizers = None if is_over_bytes(tok.vocab.pattern) else imported("tokenizers")
    if tokenizers is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        tok.save(Path(folder) / "tokenizer.json")
        return tokenizers.Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))


def pairs(pattern: str) -> Subject:
    """A token for every two characters of the classes, so the ids show where a pattern cuts."""
    rng = Random(f"pairs {pattern}")
    characters = [character.encode() for character in PAIRED]
    starts = {character[:n] for character in characters for n in range(2, len(character) + 1)}
    both = [one + other for one in characters for other in characters]
    rng.shuffle(both)
    every = list(dict.fromkeys([*BYTES.values(), *sorted(starts, key=len), *both]))
    ranks = {token: rank for rank, token in enumerate(every)}
    vocab = ranked_by_id(ranks, pattern)
    theirs = _tiktoken(vocab, ranks, vocab.pattern or "")
    return _with_oracles(f"small/pairs-{pattern}", vocab, tiktoken=theirs)


def random_ranks(number: int) -> Subject:
    """Random tokens over a tiny alphabet with random ranks; not all of them are reachable."""
    rng = Random(f"ranks {number}")
    pattern = rng.choice(list(PATTERNS.values()))
    letters = rng.choice([b"ab", b"ab ", "aé".encode(), "👍 ".encode(), b"a'\n 1"])
    ranks = shuffled_ids(rng, any_tokens(rng, letters, 60, 20))
    vocab = ranked_by_id(ranks, pattern)
    return _with_oracles(f"small/ranks-{number}", vocab, tiktoken=_tiktoken(vocab, ranks, pattern))


def random_merges(number: int, *, ignore_merges: bool) -> Subject:
    """Merges in random order, several for one token, and tokens without a merge."""
    rng = Random(f"merges {number}")
    letters = rng.choice([[b"a", b"b"], [b"a", b"b", b" "], [b"a", b"\xc3", b"\xa9"]])
    vocab = ranked_by_merges(
        rng,
        shuffled_ids(rng, joined_tokens(rng, letters, 40, 20)),
        pattern=rng.choice([*PATTERNS.values(), r"\s+|\S+", None]),
        ignore_merges=ignore_merges,
    )
    return _with_oracles(f"small/{'lookup' if ignore_merges else 'merges'}-{number}", vocab)


def ascii_only() -> Subject:
    """ck's alphabet of 98 bytes: any other character is unknown."""
    given = [text.encode("ascii", "ignore").decode() for text in documents()]
    size = RECIPES["ck-ascii"].minimum_size + 300
    vocab = byteweld.train(iter(given), vocab_size=size, recipe="ck-ascii").vocab
    return _with_oracles("small/ascii", vocab)


SMALL: dict[str, Callable[[], Subject]] = {
    **{f"small/{name}": partial(trained, name) for name in PATTERNS},
    "small/whole": partial(trained, None),
    **{f"small/pairs-{name}": partial(pairs, name) for name in PATTERNS},
    **{f"small/ranks-{n}": partial(random_ranks, n) for n in range(6)},
    **{f"small/merges-{n}": partial(random_merges, n, ignore_merges=False) for n in range(4)},
    **{f"small/lookup-{n}": partial(random_merges, n, ignore_merges=True) for n in range(4)},
    "small/ascii": ascii_only,
    "small/shared": shared_ids,
}


# ---------------------------------------------------------------------- real vocabularies


def real(shared: Path) -> dict[str, Callable[[], Subject]]:
    """The vocabularies in ../shared/data that have an oracle, by name; each is opened on use."""
    found: dict[str, Callable[[], Subject]] = {}
    for entry in published(shared, "tiktoken", "hf"):
        is_ranks = entry["kind"] == "tiktoken"
        name = entry["name"] if is_ranks else f"hf/{entry['name']}"
        found[name] = partial(_open_ranks if is_ranks else _open_json, name, entry, shared)
    return found


def _open_ranks(name: str, entry: dict[str, Any], shared: Path) -> Subject:
    with tempfile.TemporaryDirectory() as folder:
        file = unpack(shared, entry, Path(folder))
        tok = byteweld.load(file, pattern=entry["pat_str"], special_tokens=entry["special_tokens"])
        loader = imported("tiktoken.load")
        encoding = None
        if loader is not None:
            os.environ["TIKTOKEN_CACHE_DIR"] = ""  # read this file, and keep no copy of it
            encoding = _tiktoken(tok.vocab, loader.load_tiktoken_bpe(str(file)), entry["pat_str"])
    return _with_oracles(name, tok.vocab, tiktoken=encoding, is_small=False)


def _open_json(name: str, entry: dict[str, Any], shared: Path) -> Subject:
    with tempfile.TemporaryDirectory() as folder:
        file = unpack(shared, entry, Path(folder))
        tok = byteweld.load(file)
        tokenizers = imported("tokenizers")
        theirs = tokenizers and tokenizers.Tokenizer.from_file(str(file))
    if theirs is not None:
        theirs.no_truncation()
        theirs.no_padding()
    return _with_oracles(name, tok.vocab, tokenizers=theirs, is_small=False)
