"""Hostile vocabularies and texts: patterns, normalizers and splits take linear time and memory."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from byteweld import PatternError, Tokenizer, Vocabulary, VocabularyError, load
from byteweld.evaluation import pattern_engine
from byteweld.patterns import PATTERNS, is_over_bytes
from byteweld.vocab import AddedToken, NormalizerStep, Replace, Split, Step
from tests.helpers.growth import least_growth

BYTES = {byte: bytes([byte]) for byte in range(256)}


def with_pattern(pattern: str) -> Tokenizer:
    return Tokenizer.from_ranks({bytes([byte]): byte for byte in range(256)}, pattern=pattern)


def with_normalizer(steps: Iterable[NormalizerStep], **traits: object) -> Tokenizer:
    return Tokenizer(Vocabulary(BYTES, (), normalizer=tuple(steps), **traits))  # type: ignore[arg-type]


# ---------------------------------------------------------------------- backtracking patterns

QUADRATIC = [
    r"(?:.(?!x))+y|.",
    r".*(?!x)y|.",
    r"(?:(?=.*)a)+y|.",
    r"(?>.*)y|.",
    r"(?:a+(?!x))+y|.",
    r"(?<!b.*)a|.",
    r"(a+)\1y|.",
]


@pytest.mark.parametrize("pattern", QUADRATIC)
def test_a_pattern_that_takes_quadratic_time_is_refused_on_such_text(pattern: str) -> None:
    tok = with_pattern(pattern)
    assert tok.decode(tok.encode("aab")) == "aab"

    def encode(length: int) -> None:
        with pytest.raises(PatternError, match="too many"):
            tok.encode("a" * length)

    assert least_growth(encode, 10_000, 80_000, limit=24) < 24


@pytest.mark.parametrize("call", ["encode_batch", "count", "encode_with_offsets", "pretokenize"])
def test_every_method_has_the_limit(call: str) -> None:
    tok = with_pattern(QUADRATIC[0])
    text: object = "a" * 40_000
    with pytest.raises(PatternError, match="too many"):
        getattr(tok, call)([text] if call == "encode_batch" else text)


def test_the_limit_is_for_the_whole_text_however_it_is_divided() -> None:
    # Between special tokens, and in the pieces of another split, nobody starts anew.
    hard = r"(?:a+(?!x))+y|."
    part = "a" * 13
    whole = Tokenizer.from_ranks(
        {bytes([byte]): byte for byte in range(256)},
        pattern=hard,
        special_tokens={"<|end|>": 256},
    )
    assert whole.encode(part + "<|end|>", allowed_special="all")
    with pytest.raises(PatternError, match="too many"):
        whole.encode((part + "<|end|>") * 10_000, allowed_special="all")
    steps: tuple[Step, ...] = (Split("-", "removed"), Split(hard))
    chain = Tokenizer(Vocabulary(BYTES, (), steps=steps))
    assert chain.encode(part)
    with pytest.raises(PatternError, match="too many"):
        chain.encode((part + "-") * 10_000)


@pytest.mark.parametrize("name", sorted(name for name in PATTERNS if not is_over_bytes(name)))
def test_well_known_patterns_run_on_the_backtracking_engine_without_reaching_the_limit(
    name: str,
) -> None:
    plain = with_pattern(PATTERNS[name])
    # Spelled so that only the backtracking engine runs it: U+FFFF is no character of a text.
    tok = with_pattern(rf"(?!\uffff\uffff)(?:{PATTERNS[name]})")
    assert pattern_engine(tok) == "backtracking"
    prose = "The quick brown fox, 1234 times: don't ask why!\n\n  Über 漢字かな交じり文。 "
    for text in (prose, "a", "A", " ", "\n", "7", "!", "漢", "é"):
        long = text * (100_000 // len(text.encode()))
        assert tok.pretokenize(long) == plain.pretokenize(long)


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{1000}){1000}){1000}",
        "(?!((a{1000}){1000}){1000})b",
        "|".join(map(str, range(150_000))),
        "(" * 100_000 + "a" + ")" * 100_000,
        "(?:" * 200 + "a" + ")*" * 200,
        "(?=" * 5_000 + "a" + ")" * 5_000,
        "[" * 100_000,
        "a" + "*" * 10_000,
        "(?i)" * 4_000 + "(",
    ],
    ids=lambda pattern: pattern[:12],
)
def test_a_pattern_that_is_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError) as raised:
        with_pattern(pattern)
    assert len(str(raised.value)) < 10_000


# ---------------------------------------------------------------------- normalizers and splits


@pytest.mark.parametrize("call", ["encode", "encode_with_offsets", "count", "pretokenize"])
def test_a_normalizer_bomb_is_refused(call: str) -> None:
    tok = with_normalizer([Replace("a", "a" * 100)] * 5)
    assert tok.encode("b") == [98]
    with pytest.raises(VocabularyError, match="64 times as long"):
        getattr(tok, call)("a")


def test_a_bomb_in_many_small_parts_is_refused() -> None:
    tok = with_normalizer(
        [Replace("a", "b" * 60_000)], added_tokens=[AddedToken("-", 45, special=False)]
    )
    assert len(tok.encode("a-")) == 60_001
    with pytest.raises(VocabularyError, match="64 times as long"):
        tok.encode("a-" * 1_000)


def test_an_added_token_that_grows_is_refused() -> None:
    token = AddedToken("a", 97, normalized=True)
    with pytest.raises(VocabularyError, match="64 times as long"):
        with_normalizer([Replace("a", "a" * 1_000)], added_tokens=[token]).encode("")


def test_too_many_steps_are_refused_before_they_are_compiled() -> None:
    with pytest.raises(VocabularyError, match="10000 steps"):
        with_normalizer([Replace(f"a{n}", "b") for n in range(10_000)]).encode("a")
    with pytest.raises(VocabularyError, match="10000 steps"):
        Tokenizer(Vocabulary(BYTES, (), steps=tuple(Split(f"a{n}") for n in range(10_000)))).encode(
            "a"
        )


def test_what_unicode_makes_longer_is_fine() -> None:
    tok = with_normalizer(["nfkd", Replace(" ", "▁")])
    text = "\ufdfa" * 10_000  # 18 characters, three of them spaces
    assert len(tok.encode(text)) == 39 * 10_000


def test_a_real_vocabulary_takes_what_grows_most(shared) -> None:  # type: ignore[no-untyped-def]
    for path in sorted((shared / "vocabs" / "hf").glob("*/tokenizer.json")):
        tok = load(path)
        for text in ("\ufdfa", "İ", "ﷺ a", " "):
            tok.encode(text * 5_000, disallowed_special=())
