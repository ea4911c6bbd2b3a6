"""Vocabularies: fixed ones of every kind, and families that grow with n.

A family is a list of merges over abstract ids (0-255 are bytes, 256 + k is what merge k makes);
each format has its own layout for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

import byteweld
from byteweld import PATTERNS, Tokenizer, Vocabulary
from byteweld.vocab import ROLES, AddedToken, Replace, Split
from tests.fuzz.texts import documents
from tests.harness import draw
from tests.harness.cost.texts import fibonacci as fibonacci_text
from tests.helpers.strategies import CUSTOM_PATTERNS
from tests.helpers.vocabularies import (
    BYTES,
    any_tokens,
    ranked_by_id,
    shuffled_ids,
    with_added,
    with_traits,
)

Pairs = list[tuple[int, int]]

# ---------------------------------------------------------------------- families of merges


def wide(n: int) -> Pairs:
    """Tokens of two and three bytes, all different."""
    every = [(a, b) for a in range(256) for b in range(256)]
    count = n // 24 + 1
    pairs = Random(1).sample(every, min(count, 30_000))
    return pairs + [(256 + at, at % 256) for at in range(max(0, count - 30_000))]


def chain(n: int) -> Pairs:
    """a, aa, aaa, aaaa, ...: their lengths add up to n."""
    return [(97, 97)] + [(256 + at, 97) for at in range(int((2 * n) ** 0.5))]


def doubling(n: int) -> Pairs:
    """a, aa, aaaa, ..., up to n bytes."""
    return [(97, 97)] + [(256 + at, 256 + at) for at in range(max(1, n.bit_length() - 2))]


def fibonacci(n: int) -> Pairs:
    pairs, sizes = [(97, 98), (256, 97)], [2, 3]
    while sum(sizes) < n:
        pairs.append((255 + len(pairs), 254 + len(pairs)))
        sizes.append(sizes[-1] + sizes[-2])
    return pairs


def combs(n: int) -> Pairs:
    """A chain to the left and one to the right of each letter."""
    pairs: Pairs = []
    for letter in b"abcdefgh":
        first = 256 + len(pairs)
        count = int((n / 8) ** 0.5)
        pairs += [(letter, 32)] + [(first + at, letter) for at in range(count)]
    return pairs


FAMILIES: dict[str, Callable[[int], Pairs]] = {
    "wide": wide,
    "chain": chain,
    "doubling": doubling,
    "fibonacci": fibonacci,
    "combs": combs,
}


def made(pairs: Pairs, format: str, pattern: str | None = "gpt2") -> Vocabulary:
    """The vocabulary of a family, with the ids and special tokens that a format needs."""
    specials: dict[str, int] = {}
    roles: dict[str, int] = {}
    first_byte, first_merge = 0, 256
    if format == "bpe1":
        pattern, first_merge = None, 260
        roles = {role: 256 + at for at, role in enumerate(ROLES)}
        specials = {f"<|{role}|>": i for role, i in roles.items()}
    elif format == "ck":
        first_byte, first_merge = 4, 260
        roles = {role: at for at, role in enumerate(("unk", "bos", "eos", "pad"))}
        specials = {f"<|{role}|>": i for role, i in roles.items()}
    elif format == "bpetite":
        specials = {"<|endoftext|>": 256 + len(pairs)}
    shift = [first_byte, first_merge - 256]
    ids = [[part + shift[part > 255] for part in pair] for pair in pairs]
    tokens = {first_byte + byte: token for byte, token in BYTES.items()}
    merges = []
    for at, (left, right) in enumerate(ids):
        tokens[first_merge + at] = tokens[left] + tokens[right]
        merges.append((left, right, first_merge + at))
    tokens |= {i: text.encode() for text, i in specials.items()}
    return Vocabulary(tokens, merges, special_tokens=specials, roles=roles, pattern=pattern)


# ---------------------------------------------------------------------- families of added tokens


def _with_specials(texts: list[str], **flags: bool) -> Vocabulary:
    added = [AddedToken(text, 256 + at, **flags) for at, text in enumerate(dict.fromkeys(texts))]
    return Vocabulary(
        BYTES | {token.id: token.text.encode() for token in added},
        added_tokens=added,
        pattern=r"\s+|\S+",
    )


def _flagged(flag: str) -> Callable[[int], Vocabulary]:
    return lambda n: _with_specials([f"<{at}>" for at in range(n // 16)], **{flag: True})


ADDED: dict[str, Callable[[int], Vocabulary]] = {
    "many-specials": lambda n: _with_specials([f"<|{at}|>" for at in range(n // 16)]),
    "long-special": lambda n: _with_specials(["".join(Random(1).choices("abcdef", k=n))]),
    "periodic-special": lambda n: _with_specials(["ab" * (n // 2)]),
    "one-letter-special": lambda n: _with_specials(["a" * n]),
    "fibonacci-special": lambda n: _with_specials([fibonacci_text(n)]),
    "nested-specials": lambda n: _with_specials(["x" * at for at in range(1, int((2 * n) ** 0.5))]),
    "periodic-specials": lambda n: _with_specials(["ab" * at for at in range(1, int(n**0.5))]),
    "specials-with-one-end": lambda n: _with_specials(
        [f"{at}" * 3 + "a" * 40 for at in range(n // 50)]
    ),
    **{
        f"added-{flag}": _flagged(flag)
        for flag in ("lstrip", "rstrip", "single_word", "normalized")
    },
    "added-not-special": lambda n: _with_specials(
        [f"w{at}" for at in range(n // 16)], special=False
    ),
}


# ---------------------------------------------------------------------- fixed vocabularies


@cache
def trained(pattern: str | None, size: int = 900) -> Vocabulary:
    return byteweld.train(
        documents=documents(),
        vocab_size=size,
        pattern=pattern,
        special_tokens=["<|end|>", "<s>"],
        min_frequency=1,
    ).vocab


def _ranks(number: int) -> Vocabulary:
    rng = Random(f"ranks {number}")
    letters = rng.choice([b"ab", b"ab ", "aé".encode(), b"a'\n 1"])
    ids = shuffled_ids(rng, any_tokens(rng, letters, 200, 24))
    return ranked_by_id(ids, rng.choice([None, *PATTERNS.values()]))


def _added(**flags: bool) -> Vocabulary:
    base = trained(r"\s+|\S+")
    first = max(base.tokens) + 1
    texts = ["ab", "the", " x", "漢", "aa", "<|", "é", "\u0301"]
    return with_added(
        base, *(AddedToken(text, first + at, **flags) for at, text in enumerate(texts))
    )


def _fixed() -> Iterator[tuple[str, Callable[[], Vocabulary]]]:
    plain = r"\s+|\S+"
    for name in ("gpt2", "cl100k", "o200k", "llama3"):
        yield name, lambda name=name: trained(name)
    yield "whole", lambda: trained(None)
    yield "words", lambda: trained(plain)
    yield "lookup", lambda: with_traits(trained("gpt2"), ignore_merges=True)
    for number in range(6):
        yield f"ranks-{number}", lambda number=number: _ranks(number)
    for family in FAMILIES:
        for pattern in ("gpt2", None):
            name = f"{family}-{pattern or 'whole'}"
            yield name, lambda f=family, p=pattern: made(FAMILIES[f](20_000), "huggingface", p)
    for name in ADDED:
        yield name, lambda name=name: ADDED[name](2_000)
    for form in ("nfc", "nfd", "nfkc", "nfkd", "lowercase"):
        yield form, lambda form=form: with_traits(trained(plain), normalizer=(form,))
    normalizers: dict[str, list[Any]] = {
        "replace-spaces": [Replace(" +", " ")],
        "replace-letter": [Replace("a", "aa")],
        "replace-removes": [Replace("a|b", "")],
        "replace-around": [Replace("(?<=a)b|a(?!b)", "c")],
        "chain": ["nfd", Replace("\u0301", ""), "nfc", "lowercase", Replace("  ", " "), "nfkc"],
        "growing": [Replace("a", "ab"), Replace("b", "ba"), Replace("ab", "aab")],
    }
    for name, steps in normalizers.items():
        yield name, lambda steps=steps: with_traits(trained(plain), normalizer=steps)
    behaviors = ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")
    for behavior in behaviors:
        for invert in (False, True):
            chain_of = [Split("[0-9a]", behavior, invert), Split(r"\s|b", behavior), "byte-letters"]
            name = f"steps-{behavior}{'-inverted' if invert else ''}"
            yield name, lambda c=chain_of: with_traits(trained(plain), pattern=None, steps=c)
    yield (
        "prefix-space",
        lambda: with_traits(trained(plain), pattern=None, steps=["prefix-space", Split(plain)]),
    )
    for flag in ("lstrip", "rstrip", "single_word", "normalized"):
        yield f"flag-{flag}", lambda flag=flag: _added(**{flag: True})
    yield "flag-all", lambda: _added(lstrip=True, rstrip=True, single_word=True, normalized=True)
    yield (
        "partial",
        lambda: Vocabulary({97: b"a", 98: b"b", 300: b"?"}, alphabet="partial", roles={"unk": 300}),
    )
    yield (
        "ascii",
        lambda: byteweld.train(documents=["the cat"], vocab_size=110, recipe="ck-ascii").vocab,
    )
    for number, pattern in enumerate((*CUSTOM_PATTERNS, *draw.HOSTILE_PATTERNS)):
        yield f"pattern-{number}", lambda p=pattern: with_traits(trained("gpt2"), pattern=p)
    for number in range(200):
        drawn = draw.pattern(Random(f"pattern {number}"), around=number % 2 == 1)
        yield f"drawn-{number}", lambda p=drawn: with_traits(trained("gpt2"), pattern=p)


FIXED: dict[str, Callable[[], Vocabulary]] = {name: cache(make) for name, make in _fixed()}


@cache
def tokenizer(name: str) -> Tokenizer:
    return Tokenizer(FIXED[name]())
