"""An evaluation as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byteweld.evaluation.corpora import RENYI_ORDER, Evaluation, FileRate
from byteweld.evaluation.probes import Cut, Language, Probes
from byteweld.evaluation.words import WordRate
from byteweld.render import columns, namer, visible, visible_name

MAX_FILES = 20
MAX_TOKENS = 10
_ENGLISH = "English"


def lines(found: Evaluation, color: bool) -> list[str]:
    """All of it."""

    def title(text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if color else text

    show = namer(found.tokens, color)
    rare = [[f"  {i}", f"{count}", show(i)] for i, count in found.rarest(MAX_TOKENS)]
    return [
        title(headline(found)),
        *(f"  {name:<18}{value}" for name, value in facts(found)),
        "",
        title("by file"),
        *_indented(_file_rows(found)),
        *_more(len(found.files) - MAX_FILES, "file"),
        "",
        title("words by script"),
        *_indented(_script_rows(found)),
        "",
        title(f"the same sentence in {len(found.probes.languages)} languages"),
        *_indented(_language_rows(found.probes.languages)),
        "",
        title("digits"),
        *(f"  {line}" for line in number_words(found.probes)),
        *_cuts(found.probes.numbers),
        "",
        title("indentation, with the line end before it"),
        *_cuts(found.probes.indents),
        "",
        title("rarest tokens"),
        *columns([["  id", "times", "token"], *rare], right=[0, 1]),
        "",
        title("unused tokens"),
        *(f"  {line}" for line in unused_words(found)),
        *columns([[f"  {i}", show(i)] for i in first_unused(found)], right=[0]),
    ]


def headline(found: Evaluation) -> str:
    """What was encoded with what."""
    total = found.total
    files = _amount(len(found.files), "file")
    return f"{found.name} on {files}, {_amount(total.documents, 'document')}, {total.bytes} bytes"


def facts(found: Evaluation) -> list[tuple[str, str]]:
    """The figures that matter most, in words."""
    total = found.total
    vocabulary = len(found.tokens)
    used = f"{found.used} of {vocabulary} tokens, {percent(found.used / vocabulary)}"
    efficiency = (
        f"{decimal(found.efficiency(), 3)} (order {RENYI_ORDER}; "
        f"Shannon's {decimal(found.efficiency(1), 3)})"
    )
    return [
        ("tokens", str(total.tokens)),
        ("bytes per token", decimal(total.bytes_per_token)),
        ("words", str(total.words.words)),
        ("tokens per word", decimal(total.words.fertility)),
        ("whole words", percent(total.words.whole_share)),
        ("vocabulary used", used),
        ("Rényi efficiency", efficiency),
        ("round trip", round_trip_words(found)),
    ]


def round_trip_words(found: Evaluation) -> str:
    """Whether every document comes back."""
    if not found.changed_documents:
        return "every document comes back byte for byte"
    where = ", ".join(f"{changed.source} document {changed.number}" for changed in found.changed)
    more = ", …" if found.changed_documents > len(found.changed) else ""
    return f"{_amount(found.changed_documents, 'document')} changed: {where}{more}"


def number_words(probes: Probes) -> Iterator[str]:
    """How many numbers are one token."""
    for whole in probes.whole_numbers:
        yield (
            f"{whole.whole} of all {whole.total} numbers with "
            f"{_amount(whole.digits, 'digit')} are one token"
        )


def unused_words(found: Evaluation) -> Iterator[str]:
    """How many tokens did not occur, and how many of these cannot."""
    unused = len(found.unused)
    lost = sum(token_id in found.unreachable for token_id in found.unused)
    share = percent(unused / len(found.tokens))
    yield f"{unused} of {len(found.tokens)}, {share}; {lost} of these are unreachable"
    if first_unused(found):
        yield "the first of more than one byte:"


def first_unused(found: Evaluation) -> list[int]:
    """The unused tokens that were learned first."""
    return [i for i in found.unused if len(found.tokens[i]) > 1][:MAX_TOKENS]


def decimal(value: float | None, places: int = 2) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None else f"{value:.{places}f}"


def percent(value: float | None) -> str:
    """A share."""
    return "-" if value is None else f"{100 * value:.1f}%"


def times_english(language: Language, languages: Sequence[Language]) -> str:
    """How many times as many tokens as in English."""
    english = next((other for other in languages if other.name == _ENGLISH), None)
    if english is None or not english.tokens:
        return "-"
    return f"{language.tokens / english.tokens:.2f}"


# ---------------------------------------------------------------------------- rows

FILE_HEADS = ("bytes", "tokens", "bytes/token", "words", "tokens/word", "whole words", "file")
SCRIPT_HEADS = ("words", "bytes", "tokens", "bytes/token", "tokens/word", "whole words", "script")
LANGUAGE_HEADS = ("tokens", "× English", "bytes/token", "tokens/word", "whole words", "language")


def file_row(rate: FileRate) -> list[str]:
    """The cells of a file, but for its name."""
    words = rate.words
    return [
        str(rate.bytes),
        str(rate.tokens),
        decimal(rate.bytes_per_token),
        str(words.words),
        decimal(words.fertility),
        percent(words.whole_share),
    ]


def script_row(rate: WordRate) -> list[str]:
    """The cells of a script, but for its name."""
    return [
        str(rate.words),
        str(rate.bytes),
        str(rate.pieces),
        decimal(rate.bytes_per_piece),
        decimal(rate.fertility),
        percent(rate.whole_share),
    ]


def language_row(language: Language, languages: Sequence[Language]) -> list[str]:
    """The cells of a language, but for its name."""
    return [
        str(language.tokens),
        times_english(language, languages),
        decimal(language.bytes_per_token),
        decimal(language.words.fertility),
        percent(language.words.whole_share),
    ]


def _file_rows(found: Evaluation) -> list[list[str]]:
    rows = [[*file_row(rate), visible_name(rate.name)] for rate in found.files[:MAX_FILES]]
    total = [[*file_row(found.total), "total"]] if len(found.files) > 1 else []
    return [list(FILE_HEADS), *rows, *total]


def _script_rows(found: Evaluation) -> list[list[str]]:
    rows = [[*script_row(rate), name] for name, rate in found.scripts.items()]
    return [list(SCRIPT_HEADS), *rows]


def _language_rows(languages: Sequence[Language]) -> list[list[str]]:
    rows = [[*language_row(language, languages), language.name] for language in languages]
    return [list(LANGUAGE_HEADS), *rows]


def _indented(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    numbers = range(len(rows[0]) - 1)
    return (f"  {line}" for line in columns(rows, right=numbers))


def _cuts(cuts: Sequence[Cut]) -> Iterator[str]:
    rows = [[f"  {cut.name}", " | ".join(map(visible, cut.tokens))] for cut in cuts]
    return columns(rows)


def _more(count: int, what: str) -> Iterator[str]:
    if count > 0:
        yield f"  ... and {_amount(count, what)} more"


def _amount(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
