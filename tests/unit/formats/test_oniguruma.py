"""Patterns that pass the check of dialects mean the same in Oniguruma and in byteweld."""

from __future__ import annotations

import unicodedata
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld import patterns, reference
from byteweld.formats import _oniguruma
from byteweld.formats._oniguruma import find_dialect_problem, matches_everywhere
from byteweld.patterns import as_expression
from tests.helpers.growth import least_growth
from tests.helpers.strategies import examples

tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")
regex = pytest.importorskip("regex", reason="regex is not installed")

# Every character but surrogates, and planes that are empty or private use.
_PLANES = [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000)]
EVERY_CHARACTER = "".join(map(chr, _PLANES))
COMMON = [r"\s", r"\d", *(rf"\p{{{name}}}" for name in "L Lu Ll Lt Lm Lo M N P S Han".split())]
RARE = [rf"\p{{{name}}}" for name in sorted(_oniguruma._PROPERTIES)]

# The first and the last of each run of characters of one category.
_RUNS = [list(run) for _, run in groupby(EVERY_CHARACTER, unicodedata.category)]
EDGES = "".join(run[0] + run[-1] for run in _RUNS)

# Patterns of well-known vocabularies with unusual constructs; see also patterns.py.
FIELD = [
    r"\p{N}{1,3}",
    r"\s?\p{P}+",
    r"[0-9][0-9][0-9]",
    "[\r\n]",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    *(pattern for pattern in patterns.PATTERNS.values() if not patterns.is_over_bytes(pattern)),
]


def cut(pattern: str, text: str, behavior: str = "isolated") -> list[tuple[str, Any]]:
    step = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), behavior)
    pieces: list[tuple[str, Any]] = step.pre_tokenize_str(text)
    return pieces


@pytest.mark.parametrize(
    "item",
    [*COMMON, *(pytest.param(i, marks=pytest.mark.slow) for i in RARE if i not in COMMON)],
)
def test_every_class_has_the_same_characters(item: str) -> None:
    others = "".join(piece for piece, _ in cut(item, EVERY_CHARACTER, "removed"))
    assert others == regex.sub(item, "", EVERY_CHARACTER)


@pytest.mark.parametrize("pattern", FIELD)
def test_well_known_patterns_split_all_kinds_of_characters_the_same(pattern: str) -> None:
    assert find_dialect_problem(pattern) is None
    for text in (
        EDGES,
        "".join(f"{character} a" for character in EDGES),
        "'S 'ſ 'Re x\r\n\r\n  12345\t\n a<|endoftext|> #tag !a ~~ &&b [x] \\\\ ^y",
    ):
        ours = [piece.decode() for piece in reference.pretokenize(text.encode(), pattern)]
        assert [piece for piece, _ in cut(pattern, text)] == ours


def test_the_check_takes_linear_time() -> None:
    def check(size: int) -> None:
        for pattern in ("[" + "a-" * size, "(?i:" + "a|" * size, r"\s?" * size + "("):
            assert find_dialect_problem(pattern) is not None
            matches_everywhere(pattern)

    assert least_growth(check, 2000, 16_000, limit=24) < 24


@examples(300)
@given(
    pattern=st.text("ab|()?*+[]^\\sp{L}1,:!=<>&-. ", max_size=14),
    text=st.text("ab 1L\n<&-", max_size=20),
)
def test_patterns_that_pass_the_check_split_the_same_in_oniguruma(pattern: str, text: str) -> None:
    if find_dialect_problem(pattern) is not None or "&&" in pattern:
        return  # `regex` reads && differently from both engines
    try:
        cut = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    except Exception:  # a reversed range, say: both refuse
        return
    raw = text.encode()
    ours = [piece.decode() for piece in reference.pretokenize(raw, as_expression(pattern))]
    assert [piece for piece, _ in cut.pre_tokenize_str(text)] == ours


PARTS = [r"\s", r"\p{L}", r"\p{N}", r"[^\s\p{L}\p{N}]", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]"]
PARTS += [
    r"[\p{Ll}\p{Lm}a-z]",
    r"[^\r\n\p{L}\p{N}]",
    "(?i:'s|re)",
    " ",
    r"[\s\p{N}]",
    r"(?!\S)",
    "a",
]
REPEATS = ["", "", "?", "*", "+", "+", "{1,3}", "{2,3}", "?+", "++", "*?"]


@examples(300)
@given(
    branches=st.lists(
        st.lists(
            st.tuples(st.sampled_from(PARTS), st.sampled_from(REPEATS)), min_size=1, max_size=3
        ),
        min_size=3,
        max_size=9,
    ),
    text=st.text("aZ\u01c5\u02b0日1½ \n\r!\u0301's\x00", max_size=12),
)
def test_a_pattern_that_matches_everywhere_has_no_gaps_between_matches(
    branches: list[list[tuple[str, str]]], text: str
) -> None:
    pattern = "|".join("".join(part + repeat for part, repeat in branch) for branch in branches)
    if find_dialect_problem(pattern) is None and matches_everywhere(pattern):
        assert "".join(match[0] for match in regex.finditer(pattern, text)) == text
