"""Render an evaluation as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byteweld.evaluation.corpora import RENYI_ORDER, Evaluation, FileRate
from byteweld.evaluation.probes import Cut, Language, Probes
from byteweld.evaluation.words import WordRate
from byteweld.render import (
    amount,
    columns,
    decimal,
    heading,
    more_line,
    namer,
    table,
    visible,
    visible_name,
)

MAX_FILES = 20
MAX_TOKENS = 10
WORD_HINT = (
    "A word is a run of letters, marks and numbers; its tokens are all those that overlap it."
)
_ENGLISH = "English"


def lines(found: Evaluation, color: bool) -> list[str]:
    """Return the whole evaluation."""

    def title(text: str) -> str:
        return heading(text, color)

    show = namer(found.tokens, color)
    rare = [[f"  {i}", f"{count:,}", show(i)] for i, count in found.rarest(MAX_TOKENS)]
    return [
        title(headline(found)),
        *(f"  {name:<18}{value}" for name, value in facts(found)),
        "",
        title("by file"),
        *table(FILE_HEADS, _file_rows(found)),
        *more_line(len(found.files) - MAX_FILES, "file", indent=2),
        "",
        title("words by script"),
        *table(SCRIPT_HEADS, _script_rows(found)),
        "",
        title(f"the same sentence in {len(found.probes.languages)} languages"),
        *table(LANGUAGE_HEADS, _language_rows(found.probes.languages)),
        "",
        title("digits"),
        *(f"  {line}" for line in number_words(found.probes)),
        *_cuts(found.probes.numbers),
        "",
        title("indentation, with the newline before it"),
        *_cuts(found.probes.indents),
        "",
        title("rarest tokens"),
        *columns([["  id", "count", "token"], *rare], right=[0, 1]),
        "",
        title("unused tokens"),
        *(f"  {line}" for line in unused_words(found)),
        *columns([[f"  {i}", show(i)] for i in first_unused(found)], right=[0]),
    ]


def headline(found: Evaluation) -> str:
    """Name the tokenizer and the corpus."""
    total = found.total
    files = amount(len(found.files), "file")
    documents = amount(total.documents, "document")
    return f"{found.name} on {files}, {documents}, {amount(total.bytes, 'byte')}"


def facts(found: Evaluation) -> list[tuple[str, str]]:
    """Return the most important figures, by name."""
    total = found.total
    size = len(found.tokens)
    used = f"{found.used:,} of {size:,} tokens, {percent(found.used / size)}"
    efficiency = (
        f"{decimal(found.efficiency(), 3)} (order {RENYI_ORDER}; "
        f"Shannon {decimal(found.efficiency(1), 3)})"
    )
    return [
        ("tokens", f"{total.tokens:,}"),
        ("bytes per token", decimal(total.bytes_per_token)),
        ("words", f"{total.words.words:,}"),
        ("tokens per word", decimal(total.words.fertility)),
        ("whole words", percent(total.words.whole_share)),
        ("vocabulary used", used),
        ("Rényi efficiency", efficiency),
        ("longest match", longest_match_words(found)),
        ("round trip", round_trip_words(found)),
    ]


def longest_match_words(found: Evaluation) -> str:
    """Say how often greedy longest match gives the same tokens."""
    match = found.longest_match
    if match is None:
        return "not compared: the tokens are too long and too similar"
    if match.share is None:
        return "-"
    return f"agrees on {percent(match.share)} of {amount(match.pretokens, 'pre-token')}"


def round_trip_words(found: Evaluation) -> str:
    """Say whether decoding restores every document."""
    if not found.changed_documents:
        return "every document decodes to its own bytes"
    where = ", ".join(f"{changed.source} document {changed.number}" for changed in found.changed)
    more = ", …" if found.changed_documents > len(found.changed) else ""
    return f"{amount(found.changed_documents, 'document')} changed: {where}{more}"


def number_words(probes: Probes) -> Iterator[str]:
    """Say how many numbers are a single token."""
    for whole in probes.whole_numbers:
        yield (
            f"{whole.whole:,} of {whole.total:,} numbers with "
            f"{amount(whole.digits, 'digit')} are a single token"
        )


def unused_words(found: Evaluation) -> Iterator[str]:
    """Say how many tokens did not occur, and how many of those cannot."""
    unused = len(found.unused)
    unreachable = sum(token_id in found.unreachable for token_id in found.unused)
    share = percent(unused / len(found.tokens))
    yield f"{unused:,} of {len(found.tokens):,}, {share}; {unreachable:,} of them are unreachable"
    if first_unused(found):
        yield "the first ones longer than a byte:"


def first_unused(found: Evaluation) -> list[int]:
    """Return the unused tokens that were learned first."""
    return [i for i in found.unused if len(found.tokens[i]) > 1][:MAX_TOKENS]


def percent(value: float | None) -> str:
    """Format a share, or a dash for None."""
    return "-" if value is None else f"{100 * value:.1f}%"


def ratio_to_english(language: Language, languages: Sequence[Language]) -> float | None:
    """Return the ratio to the number of tokens in English; None without English."""
    english = next((other for other in languages if other.name == _ENGLISH), None)
    return language.tokens / english.tokens if english is not None and english.tokens else None


def whole_number_words(probes: Probes) -> str:
    """Say in one line which share of numbers is a single token, by their length."""
    parts = [
        f"{percent(whole.whole / whole.total).replace('.0%', '%')} with "
        f"{amount(whole.digits, 'digit')}"
        for whole in probes.whole_numbers
    ]
    return f"Numbers that are a single token: {', '.join(parts)}."


# ---------------------------------------------------------------------------- rows

FILE_HEADS = ("bytes", "tokens", "bytes/token", "words", "tokens/word", "whole words", "file")
SCRIPT_HEADS = ("words", "bytes", "tokens", "bytes/token", "tokens/word", "whole words", "script")
LANGUAGE_HEADS = ("tokens", "× English", "bytes/token", "tokens/word", "whole words", "language")


def file_row(rate: FileRate) -> list[str]:
    """Return the cells of a file except its name."""
    words = rate.words
    return [
        f"{rate.bytes:,}",
        f"{rate.tokens:,}",
        decimal(rate.bytes_per_token),
        f"{words.words:,}",
        decimal(words.fertility),
        percent(words.whole_share),
    ]


def script_row(rate: WordRate) -> list[str]:
    """Return the cells of a script except its name."""
    return [
        f"{rate.words:,}",
        f"{rate.bytes:,}",
        f"{rate.pieces:,}",
        decimal(rate.bytes_per_piece),
        decimal(rate.fertility),
        percent(rate.whole_share),
    ]


def language_row(language: Language, languages: Sequence[Language]) -> list[str]:
    """Return the cells of a language except its name."""
    return [
        str(language.tokens),
        decimal(ratio_to_english(language, languages)),
        decimal(language.bytes_per_token),
        decimal(language.words.fertility),
        percent(language.words.whole_share),
    ]


def _file_rows(found: Evaluation) -> list[list[str]]:
    rows = [[*file_row(rate), visible_name(rate.name)] for rate in found.files[:MAX_FILES]]
    return [*rows, [*file_row(found.total), "total"]] if len(found.files) > 1 else rows


def _script_rows(found: Evaluation) -> list[list[str]]:
    return [[*script_row(rate), name] for name, rate in found.scripts.items()]


def _language_rows(languages: Sequence[Language]) -> list[list[str]]:
    return [[*language_row(language, languages), language.name] for language in languages]


def _cuts(cuts: Sequence[Cut]) -> Iterator[str]:
    rows = [[f"  {cut.name}", " | ".join(map(visible, cut.tokens))] for cut in cuts]
    return columns(rows)
