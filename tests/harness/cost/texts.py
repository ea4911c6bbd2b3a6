"""Families of strings: a function of the size in bytes each, about as long as that."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random

import numpy as np

from tests.fuzz.texts import WHITE, documents

Text = str | bytes
PROSE, CODE, MANY = documents()


def filled(unit: str) -> Callable[[int], str]:
    """A unit again and again."""
    size = len(unit.encode())
    return lambda n: unit * (n // size + 1)


def drawn(letters: str) -> Callable[[int], str]:
    """Random letters, without repetition that a cache could use."""
    codes = np.array([ord(letter) for letter in letters], np.uint32)
    width = max(len(letter.encode()) for letter in letters)

    def draw(n: int) -> str:
        chosen = np.random.default_rng(n).integers(0, len(codes), n // width + 1)
        return codes[chosen].tobytes().decode("utf-32-le")

    return draw


def fibonacci(n: int) -> str:
    one, other = "a", "ab"
    while len(other) < n:
        one, other = other, other + one
    return other[:n]


def thue_morse(n: int) -> str:
    one, other = "a", "b"
    while len(one) < n:
        one, other = one + other, other + one
    return one[:n]


def growing_runs(n: int) -> str:
    """a, aa, aaa, ... separated by spaces."""
    parts, length = [], 0
    while length < n:
        parts.append("a" * (len(parts) + 1))
        length += len(parts)
    return " ".join(parts)


def torn(n: int) -> bytes:
    return Random(n).randbytes(n).translate(b"\x80\xbf\xc3\xe2\x82\xf0\x9f\xff" * 28 + b"a " * 16)


FAMILIES: dict[str, Callable[[int], Text]] = {
    "one-letter": filled("a"),
    "two-letters": filled("ab"),
    "period-3": filled("aab"),
    "long-period": filled("abcdefghijklmnopqrstuvwxyz" * 7 + "q"),
    "random-ab": drawn("ab"),
    "random-letters": drawn("abcdefghijklmnopqrstuvwxyz"),
    "random-bytes": lambda n: Random(n).randbytes(n),
    "fibonacci": fibonacci,
    "thue-morse": thue_morse,
    "words": drawn("etaoinshrdlu   "),
    "growing-runs": growing_runs,
    "prose": filled(PROSE),
    "code": filled(CODE),
    "languages": filled(MANY),
    "spaces": filled(" "),
    "newlines": filled("\n"),
    "crlf": filled("\r\n"),
    "white": drawn(WHITE),
    "spaces-letter": filled(" " * 40 + "a"),
    "digits": filled("1"),
    "random-digits": drawn("0123456789٣½"),
    "marks": filled("\u0301"),
    "marks-mixed": drawn("\u0301\u0308\u0327\u0345\u0903a"),
    "letter-and-marks": lambda n: "a" + "\u0301\u0327" * (n // 4),
    "hangul": drawn("각가나다각"),
    "zwj": filled("👨\u200d👩\u200d👧"),
    "zwj-only": filled("\u200d"),
    "ideographs": drawn("漢字仮名交文日本語中国大学生人口山川"),
    "one-ideograph": filled("漢"),
    "thai": drawn("กขคงจฉชซญฎฏฐเแโใไะาิีุู่้"),
    "apostrophes": filled("'"),
    "contractions": filled("'s't're've'll'd"),
    "upper": filled("A"),
    "camel": filled("aBcDEfGHI"),
    "ligatures": filled("ﷺ"),  # one character, eighteen after NFKC
    "wide-forms": drawn("ＡＢ１①ﬁ㍿½"),
    "torn": torn,
    "continuations": lambda n: b"\x80" * n,
    "nul": filled("\0"),
    "surrogates": lambda n: "\ud800" * (n // 3),
    "special": filled("<|end|>"),
    "special-starts": filled("<|en"),
    "special-nearly": filled("<|end|"),
    "less-signs": filled("<"),
    "bars": filled("<|"),
    "specials-in-text": filled("the <|end|> cat <s> x"),
    "x": filled("x"),
    "the": filled("the "),
    "signs": drawn('!/.,-_<|>\\"#$%&()*+'),
    "slashes": filled("/\n"),
}


@lru_cache(maxsize=64)
def text(family: str, n: int) -> Text:
    return FAMILIES[family](n)
