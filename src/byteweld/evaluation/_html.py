"""Render an evaluation as HTML, for notebooks and reports."""

from __future__ import annotations

import math
from collections.abc import Sequence

from byteweld.evaluation import _text as text
from byteweld.evaluation.corpora import Evaluation
from byteweld.evaluation.probes import Cut, Language, Probes
from byteweld.markup import (
    Child,
    Html,
    element,
    figures,
    folded,
    joined,
    more,
    section,
    shortened,
    table,
)
from byteweld.markup.charts import Bar, bars, highest_of
from byteweld.render import decimal, tile, visible

_MAX_FILES = 200
_MAX_TOKENS = 60
_SHOWN_ROWS = 8  # the others are collapsed
# How many times as many tokens as English a language takes, at most, in each group.
_TIMES_ENGLISH = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, math.inf)


def report(found: Evaluation) -> Html:
    """Return the whole evaluation."""
    return joined(
        section("On this corpus", _figures(found), hint=text.headline(found)),
        _files(found),
        _scripts(found),
        languages(found.probes),
        digits(found.probes),
        _tokens(found),
    )


def _figures(found: Evaluation) -> Html:
    total = found.total
    shown: list[tuple[str, Child]] = [
        (decimal(total.bytes_per_token), "bytes per token"),
        (decimal(total.words.fertility), "tokens per word"),
        (text.percent(total.words.whole_share), "of words are a single token"),
        (text.percent(found.used / len(found.tokens)), "of the vocabulary is used"),
        (decimal(found.efficiency(), 3), "Rényi efficiency"),
        (
            text.percent(None if found.longest_match is None else found.longest_match.share),
            "of pre-tokens: longest match agrees",
        ),
    ]
    is_same = found.changed_documents == 0
    return joined(
        figures(shown),
        element("p", text.round_trip_words(found), class_=f"answer {'yes' if is_same else 'no'}"),
    )


def _files(found: Evaluation) -> Html:
    rows = []
    for rate in found.files[:_MAX_FILES]:
        size, tokens, shown, words, *others = text.file_row(rate)
        figures = [*others, tokens, size, words]
        rows.append(Bar(element("code", rate.name), [rate.bytes_per_token], [shown], figures))
    heads = ["file", "bytes per token", "tokens/word", "whole words", "tokens", "bytes", "words"]
    return section("Files", _chart(heads, rows, "file"), more(len(found.files) - len(rows), "file"))


def _scripts(found: Evaluation) -> Html:
    rows = []
    for name, rate in found.scripts.items():
        words, size, tokens, shown, *others = text.script_row(rate)
        rows.append(Bar(name, [rate.bytes_per_piece], [shown], [*others, tokens, size, words]))
    heads = ["script", "bytes per token", "tokens/word", "whole words", "tokens", "bytes", "words"]
    return section(
        "Words by script",
        _chart(heads, rows, "script"),
        hint=f"{text.WORD_HINT} In scripts without spaces, such a run is a whole clause.",
    )


def _chart(heads: Sequence[str], rows: Sequence[Bar], noun: str) -> Html:
    """Return bars, all to one scale; those after the first few are collapsed."""
    most = highest_of(rows)
    return shortened(rows, _SHOWN_ROWS, noun, lambda some: bars(heads, some, most))


def languages(probes: Probes) -> Html:
    """Return the cost of one sentence in every language, in groups."""
    every = probes.languages
    heads = ["language", "tokens", *text.LANGUAGE_HEADS[1:-1]]
    rows = []
    for language in every:
        tokens, *others = text.language_row(language, every)
        rows.append(Bar(language.name, [language.tokens], [tokens], others))
    groups = [
        Bar(name, [len(members)], [str(len(members))], [", ".join(members)])
        for name, members in language_groups(every)
    ]
    return section(
        f"The same sentence in {len(every)} languages",
        bars(("tokens", "languages", ""), groups, numbers=()) if groups else None,
        folded("all languages", bars(heads, rows)),
        hint="How many tokens a sentence takes, compared with the same sentence in English.",
    )


def language_groups(every: Sequence[Language]) -> list[tuple[str, list[str]]]:
    """Group languages by their number of tokens, compared with English; cheapest group first.

    Empty if there is no English to compare with.
    """
    ratios = {language.name: text.ratio_to_english(language, every) for language in every}
    groups: list[tuple[str, list[str]]] = []
    low = 0.0
    for high in _TIMES_ENGLISH:
        members = [name for name, ratio in ratios.items() if ratio and low < ratio <= high]
        if members:
            groups.append((_range_words(low, high), members))
        low = high
    return groups


def _range_words(low: float, high: float) -> str:
    return f"over {low:g} ×" if high == math.inf else f"up to {high:g} ×"


def digits(probes: Probes) -> Html:
    """Return the tokens of numbers and indentation."""
    return section(
        "Digits and indentation",
        element("p", text.whole_number_words(probes)),
        folded(
            "how numbers are cut",
            table(["text", "tokens", "cut into"], map(_cut_row, probes.numbers), numbers=[1]),
        ),
        folded(
            "how indentation is cut",
            table(
                ["newline and indentation", "tokens", "cut into"],
                map(_cut_row, probes.indents),
                numbers=[1],
            ),
        ),
    )


def _cut_row(cut: Cut) -> list[Child]:
    parts = [
        [element("span", visible(token), class_=f"t c{index % 10}")]
        for index, token in enumerate(cut.tokens)
    ]
    return [element("code", cut.name), len(cut.tokens), parts]


def _tokens(found: Evaluation) -> Html:
    def rows(counted: list[tuple[int, int]]) -> list[list[Child]]:
        return [[tile(i, found.tokens[i][:200]), i, f"{count:,}"] for i, count in counted]

    heads = ["token", "id", "count"]
    unused = [i for i in found.unused if len(found.tokens[i]) > 1][:_MAX_TOKENS]
    return section(
        "Tokens",
        folded("most common", table(heads, rows(found.commonest(20)), numbers=[1, 2])),
        folded("rarest", table(heads, rows(found.rarest(20)), numbers=[1, 2])),
        folded(
            f"unused: {next(text.unused_words(found))}",
            element("p", [[tile(i, found.tokens[i][:80]), " "] for i in unused]),
        ),
    )
