"""What several programs draw: patterns from a grammar, normalizers, steps, added tokens.

Everything is in the spelling of tokenizer.json, and is a function of the generator's state.
"""

from __future__ import annotations

from random import Random
from typing import Any

from byteweld import PATTERNS

ATOMS = (
    *("a", "b", "x", ".", r"\s", r"\S", r"\p{L}", r"\p{N}", r"\p{Lu}", r"\p{M}", r"\w", r"\d"),
    *("[ab]", "[^a]", r"[^\s\p{L}]", r"[\r\n]", "[a-z]", "é", "漢", "'", " ", "(?i:s)", r"\p{Han}"),
)
REPEATS = ("", "", "", "", "+", "*", "?", "+?", "*?", "{1,3}", "{2}", "++", "{0,40}")
AROUND = ("(?={})", "(?!{})", "(?<={})", "(?<!{})")
# Patterns that were expensive or wrong somewhere.
HOSTILE_PATTERNS = (
    *(r"(?:.(?!x))+y|.", r"(a+)+$|.", r"(?:a|a)*b|.", r"(?:a*)*b", r"(.*)(.*)(.*)x", "a{1000}"),
    *(r"(?:a{100}){100}", r"(?:(?:a{30}){30}){30}", "", "(", "[", r"\p{Nope}", "(?<=a+)b", r"\1"),
    *(r"(?:)", "$", "^", r"\b", "|", "a||b", r"(?s:.)", r"(?s).+", r"\x{110000}", r"(?P<n>a)\k<n>"),
    *("(?=(a+))a*b", r"(a)(?(1)b|c)", "(?:" * 60 + "a" + ")" * 60, "(" * 400 + ")" * 400),
    *("\0", "\\"),
    *("a" * 3000, "|".join("abcdefgh") * 40, r"[\p{L}&&[^a]]+", r"(?x) a b # c", r"\p{L}+(?<=é)"),
)


def pattern(rng: Random, depth: int = 2, *, around: bool = True) -> str:
    """A regular expression of a few alternatives, most of them valid."""
    return "|".join(_sequence(rng, depth, around) for _ in range(rng.choice((1, 1, 2, 3, 4))))


def _sequence(rng: Random, depth: int, around: bool) -> str:
    parts = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        draw = rng.random()
        if around and draw < 0.12:
            parts.append(rng.choice(AROUND).format(rng.choice(ATOMS)))
        elif depth and draw < 0.3:
            group = rng.choice(("(?:{})", "(?:{})", "({})", "(?>{})", "(?i:{})"))
            inner = pattern(rng, depth - 1, around=around)
            parts.append(group.format(inner) + rng.choice(REPEATS))
        else:
            parts.append(rng.choice(ATOMS) + rng.choice(REPEATS))
    return "".join(parts)


def any_pattern(rng: Random) -> str:
    """Valid and invalid, cheap and expensive."""
    draw = rng.random()
    if draw < 0.2:
        return rng.choice(list(PATTERNS.values()))
    return rng.choice(HOSTILE_PATTERNS) if draw < 0.4 else pattern(rng)


def _written(rng: Random) -> dict[str, str]:
    if rng.random() < 0.4:
        return {"String": rng.choice(("a", " ", "ab", "é", "", "the", "\n", "aa"))}
    return {"Regex": any_pattern(rng)}


def _several(rng: Random, draw: Any, key: str) -> dict[str, Any] | None:
    number = rng.choice((0, 1, 1, 2, 3, 6))
    if number == 0:
        return None
    if number == 1:
        return draw(rng)  # type: ignore[no-any-return]
    return {"type": "Sequence", key: [draw(rng) for _ in range(number)]}


def normalizer(rng: Random) -> dict[str, Any] | None:
    if rng.random() < 0.1:  # each step multiplies the text
        content = "a" * rng.choice((2, 10, 100, 1000))
        step = {"type": "Replace", "pattern": {"String": "a"}, "content": content}
        return {"type": "Sequence", "normalizers": [step] * rng.randint(1, 8)}
    return _several(rng, _normal_step, "normalizers")


def _normal_step(rng: Random) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"type": rng.choice(("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "NFC", "Strip"))}
    content = rng.choice(("", "b", " ", "aa", "é", "\u0301", "a" * 100, "ab" * 500))
    return {"type": "Replace", "pattern": _written(rng), "content": content}


def pre_tokenizer(rng: Random) -> dict[str, Any] | None:
    made = _several(rng, _split_step, "pretokenizers")
    if made is not None and rng.random() < 0.8:
        level = {"type": "ByteLevel", "add_prefix_space": rng.random() < 0.3}
        level |= {"trim_offsets": True, "use_regex": rng.random() < 0.3}
        steps = made.get("pretokenizers", [made])
        steps.insert(rng.randint(0, len(steps)) if rng.random() < 0.3 else len(steps), level)
        return {"type": "Sequence", "pretokenizers": steps}
    return made


def _split_step(rng: Random) -> dict[str, Any]:
    draw = rng.random()
    if draw < 0.15:
        return {"type": "Digits", "individual_digits": rng.random() < 0.5}
    if draw < 0.3:
        return {"type": "Punctuation", "behavior": _behavior(rng)}
    step = {"type": "Split", "pattern": _written(rng), "behavior": _behavior(rng)}
    return step | {"invert": rng.random() < 0.3}


def _behavior(rng: Random) -> str:
    return rng.choice(
        ("Isolated", "Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
    )


def added_token(rng: Random, token_id: int) -> dict[str, Any]:
    texts = ("<s>", "ab", " ", "the", "é", "<|end|>", "a", "漢字", "\u0301", "\n")
    texts += ("x" * 300, "ab" * 40)
    text = rng.choice(texts) + rng.choice(("", "", str(token_id)))
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    made: dict[str, Any] = {"id": token_id, "content": text}
    return made | {flag: rng.random() < 0.3 for flag in flags} | {"special": rng.random() < 0.7}


def post_processor(rng: Random, ids: list[tuple[str, int]]) -> dict[str, Any] | None:
    if rng.random() < 0.2 or not ids:
        return None
    chosen = [rng.choice(ids) for _ in range(rng.choice((1, 1, 2, 4)))]
    if rng.random() < 0.3:
        one, other = chosen[0], chosen[-1]
        return {"type": "RobertaProcessing", "sep": list(one), "cls": list(other)} | {
            "trim_offsets": True,
            "add_prefix_space": False,
        }
    single: list[Any] = [{"SpecialToken": {"id": text, "type_id": 0}} for text, _ in chosen]
    single.insert(rng.randint(0, len(single)), {"Sequence": {"id": "A", "type_id": 0}})
    named = {text: {"id": text, "ids": [i], "tokens": [text]} for text, i in chosen}
    return {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": named}
