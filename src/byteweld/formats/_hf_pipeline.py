"""The pipeline of a tokenizer.json <-> the steps, normalizer and template of a Vocabulary.

The engine reads a file; here, its patterns are checked and named. They are literal strings, or
regular expressions in Oniguruma's dialect; a pattern that Oniguruma and byteweld may interpret
differently is rejected.

Hugging Face's ByteLevel does three things: it may add a space before the text, it may split with
GPT-2's pattern, and it turns text into byte letters, which all later steps see.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from byteweld.errors import UnsupportedError
from byteweld.formats._limits import NotHeldError, check_pattern
from byteweld.patterns import GPT2, PATTERNS, is_over_bytes
from byteweld.vocab import Behavior, NormalizerStep, Replace, Split, Step, Template, Vocabulary

if TYPE_CHECKING:
    from byteweld._native import TokenizerJson

_BEHAVIOR_NAMES: Final[dict[Behavior, str]] = {
    "isolated": "Isolated",
    "removed": "Removed",
    "merged_with_previous": "MergedWithPrevious",
    "merged_with_next": "MergedWithNext",
    "contiguous": "Contiguous",
}
_FORM_NAMES: Final[dict[NormalizerStep, str]] = {
    "nfc": "NFC",
    "nfd": "NFD",
    "nfkc": "NFKC",
    "nfkd": "NFKD",
    "lowercase": "Lowercase",
}

# Digits uses Rust's char::is_numeric, which in version 0.23.3 of the library includes 13 digits
# that are not in Unicode 16. A test in tests/unit/formats compares every code point.
DIGITS: Final = "[\\p{N}\U00011de0-\U00011de9\U00016ff4-\U00016ff6]"

# Punctuation uses the crate unicode_categories 0.1, which has the tables of Unicode 8, and in ASCII
# all but letters, digits and space. The same test compares every code point.
_PUNCTUATION_RANGES: Final = (
    "A1 A7 AB B6-B7 BB BF 37E 387 55A-55F 589-58A 5BE 5C0 5C3 5C6 5F3-5F4 609-60A 60C-60D 61B "
    "61E-61F 66A-66D 6D4 700-70D 7F7-7F9 830-83E 85E 964-965 970 AF0 DF4 E4F E5A-E5B F04-F12 F14 "
    "F3A-F3D F85 FD0-FD4 FD9-FDA 104A-104F 10FB 1360-1368 1400 166D-166E 169B-169C 16EB-16ED "
    "1735-1736 17D4-17D6 17D8-17DA 1800-180A 1944-1945 1A1E-1A1F 1AA0-1AA6 1AA8-1AAD 1B5A-1B60 "
    "1BFC-1BFF 1C3B-1C3F 1C7E-1C7F 1CC0-1CC7 1CD3 2010-2027 2030-2043 2045-2051 2053-205E "
    "207D-207E 208D-208E 2308-230B 2329-232A 2768-2775 27C5-27C6 27E6-27EF 2983-2998 29D8-29DB "
    "29FC-29FD 2CF9-2CFC 2CFE-2CFF 2D70 2E00-2E2E 2E30-2E42 3001-3003 3008-3011 3014-301F 3030 "
    "303D 30A0 30FB A4FE-A4FF A60D-A60F A673 A67E A6F2-A6F7 A874-A877 A8CE-A8CF A8F8-A8FA A8FC "
    "A92E-A92F A95F A9C1-A9CD A9DE-A9DF AA5C-AA5F AADE-AADF AAF0-AAF1 ABEB FD3E-FD3F FE10-FE19 "
    "FE30-FE52 FE54-FE61 FE63 FE68 FE6A-FE6B FF01-FF03 FF05-FF0A FF0C-FF0F FF1A-FF1B FF1F-FF20 "
    "FF3B-FF3D FF3F FF5B FF5D FF5F-FF65 10100-10102 1039F 103D0 1056F 10857 1091F 1093F "
    "10A50-10A58 10A7F 10AF0-10AF6 10B39-10B3F 10B99-10B9C 11047-1104D 110BB-110BC 110BE-110C1 "
    "11140-11143 11174-11175 111C5-111C9 111CD 111DB 111DD-111DF 11238-1123D 112A9 114C6 "
    "115C1-115D7 11641-11643 1173C-1173E 12470-12474 16A6E-16A6F 16AF5 16B37-16B3B 16B44 1BC9F "
    "1DA87-1DA8B "
)


def _punctuation() -> str:
    """Return the character class at which Punctuation splits."""
    members = []
    for item in _PUNCTUATION_RANGES.split():
        first, _, last = item.partition("-")
        members.append(chr(int(first, 16)) + (f"-{chr(int(last, 16))}" if last else ""))
    return rf"[!-/:-@\[-`{{-~{''.join(members)}]"


PUNCTUATION: Final = _punctuation()

_NAMED: Final = {"ByteLevel": GPT2, "Digits": DIGITS, "Punctuation": PUNCTUATION}

# ---------------------------------------------------------------------- reading


def read_steps(file: TokenizerJson, path: Path) -> tuple[Step, ...]:
    """Return the steps of the pre-tokenizer."""
    steps: list[Step] = []
    for step in file.steps:
        if isinstance(step, str):
            steps.append(step)
            continue
        (kind, source), behavior, invert = step
        pattern = _read_pattern(kind, source, "the pre_tokenizer Split", path)
        if behavior == "removed" and invert:
            from byteweld.formats._oniguruma import matches_everywhere  # slow to import

            if matches_everywhere(pattern):  # there is nothing between the matches
                behavior, invert = "isolated", False
        steps.append(Split(pattern, behavior, invert))
    return tuple(steps)


def read_normalizer(file: TokenizerJson, path: Path) -> tuple[NormalizerStep, ...]:
    """Return the steps of the normalizer."""
    what = "the normalizer Replace"
    return tuple(
        step if isinstance(step, str) else Replace(_read_pattern(*step[0], what, path), step[1])
        for step in file.normalizer
    )


def _read_pattern(kind: str, source: str, what: str, path: Path) -> str:
    if kind in _NAMED:
        return _NAMED[kind]
    problem = _dialect_problem(source)
    if problem is not None:
        raise UnsupportedError(
            f"{path}: the pattern of {what} has {problem}, which Oniguruma and byteweld "
            "read differently"
        )
    return source


def _dialect_problem(pattern: str) -> str | None:
    """Return a construct that Oniguruma reads differently, or None, as for built-in patterns."""
    if pattern in PATTERNS.values() and not is_over_bytes(pattern):
        return None
    from byteweld.formats._oniguruma import find_dialect_problem  # slow to import

    return find_dialect_problem(pattern)


# ---------------------------------------------------------------------- writing


def write_pre_tokenizer(vocab: Vocabulary) -> dict[str, object] | None:
    """Return the pre-tokenizer that splits text as a vocabulary does.

    The ByteLevel replaces the step "byte-letters", or comes last. It includes a prefix space and
    GPT-2's pattern if these are the last steps before it.
    """
    chain = list(vocab.steps)
    if vocab.pattern is not None:
        chain = [Split(vocab.pattern)]
    if vocab.alphabet == "ascii":
        return _write_sequence([_write_split(step) for step in chain], "pretokenizers")
    index = chain.index("byte-letters") if "byte-letters" in chain else len(chain)
    head, tail = chain[:index], chain[index + 1 :]
    uses_regex = head[-1:] == [Split(GPT2)]
    if uses_regex:
        head.pop()
    has_prefix_space = head[-1:] == ["prefix-space"]
    if has_prefix_space:
        head.pop()
    steps = [
        *(_write_split(step) for step in head),
        write_byte_level(add_prefix_space=has_prefix_space, use_regex=uses_regex),
        *(_write_split(step) for step in tail),
    ]
    return _write_sequence(steps, "pretokenizers")


def _write_split(step: Step) -> dict[str, object]:
    if not isinstance(step, Split):
        raise NotHeldError(
            f"its step {step!r} is not where a ByteLevel can express it: once, at the end or "
            "before GPT-2's pattern"
        )
    if step.pattern == DIGITS and not step.invert and step.behavior in ("isolated", "contiguous"):
        return {"type": "Digits", "individual_digits": step.behavior == "isolated"}
    behavior = _BEHAVIOR_NAMES[step.behavior]
    if step.pattern == PUNCTUATION and not step.invert:
        return {"type": "Punctuation", "behavior": behavior}
    return {
        "type": "Split",
        "pattern": _write_pattern(step.pattern),
        "behavior": behavior,
        "invert": step.invert,
    }


def write_byte_level(
    *, add_prefix_space: bool = False, use_regex: bool = False
) -> dict[str, object]:
    """Return a ByteLevel, as a pre-tokenizer or a decoder."""
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def write_normalizer(steps: tuple[NormalizerStep, ...]) -> dict[str, object] | None:
    """Return the normalizer of a file."""
    return _write_sequence(
        [
            {"type": "Replace", "pattern": _write_pattern(step.pattern), "content": step.content}
            if isinstance(step, Replace)
            else {"type": _FORM_NAMES[step]}
            for step in steps
        ],
        "normalizers",
    )


def _write_pattern(pattern: str) -> dict[str, object]:
    """Return the `pattern` of a step, unless Oniguruma would misread it."""
    check_pattern(pattern)
    problem = _dialect_problem(pattern)
    if problem is not None:
        raise NotHeldError(
            f"its pattern has {problem}, which Oniguruma and byteweld read differently"
        )
    return {"Regex": pattern}


def _write_sequence(steps: list[dict[str, object]], key: str) -> dict[str, object] | None:
    """Return no step as None, one as itself, and several as a Sequence."""
    if len(steps) < 2:
        return steps[0] if steps else None
    return {"type": "Sequence", key: steps}


def write_post_processor(
    template: Template, name_of: Callable[[int], str]
) -> dict[str, object] | None:
    """Return the post-processor of a file, or None if it adds nothing."""
    before, after = template
    if not before and not after:
        return None

    def around(sequence: str, type_id: int) -> list[dict[str, object]]:
        text: dict[str, object] = {"Sequence": {"id": sequence, "type_id": type_id}}
        tokens: list[dict[str, object]] = [
            {"SpecialToken": {"id": name_of(i), "type_id": type_id}} for i in (*before, *after)
        ]
        return [*tokens[: len(before)], text, *tokens[len(before) :]]

    return {
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": around("A", 0) + around("B", 1),
        "special_tokens": {
            name_of(i): {"id": name_of(i), "ids": [i], "tokens": [name_of(i)]}
            for i in sorted({*before, *after})
        },
    }
