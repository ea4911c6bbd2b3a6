"""Render an evaluation as HTML, for notebooks and reports."""

from __future__ import annotations

from byteweld.evaluation import _text as text
from byteweld.evaluation.corpora import Evaluation, FileRate
from byteweld.evaluation.probes import Cut, Probes
from byteweld.markup import Child, Html, element, folded, joined, more, section, table
from byteweld.markup.charts import Bar, bars
from byteweld.render import decimal, tile, visible

_MAX_FILES = 200
_MAX_TOKENS = 60


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
    figures: list[tuple[str, str]] = [
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
        element("ul", [element("li", element("b", n), w) for n, w in figures], class_="figures"),
        element("p", text.round_trip_words(found), class_=f"answer {'yes' if is_same else 'no'}"),
    )


def _files(found: Evaluation) -> Html:
    def row(rate: FileRate) -> list[Child]:
        name = element("code", rate.name)
        return [name, *text.file_row(rate)]

    shown = found.files[:_MAX_FILES]
    rates = [
        Bar(
            element("code", rate.name),
            [rate.bytes_per_token],
            [decimal(rate.bytes_per_token)],
        )
        for rate in shown
    ]
    heads = ["file", *text.FILE_HEADS[:-1]]
    return section(
        "Files",
        bars(("file", "bytes per token"), rates),
        table(heads, [*map(row, shown), row(found.total)], numbers=range(1, len(heads))),
        more(len(found.files) - len(shown), "file"),
    )


def _scripts(found: Evaluation) -> Html:
    heads = ["script", *text.SCRIPT_HEADS[:-1]]
    rows = [[name, *text.script_row(rate)] for name, rate in found.scripts.items()]
    return section(
        "Words by script",
        table(heads, rows, numbers=range(1, len(heads))),
        hint=f"{text.WORD_HINT} In scripts without spaces, such a run is a whole clause.",
    )


def languages(probes: Probes) -> Html:
    """Return the cost of one sentence in every language."""
    every = probes.languages
    chart = [Bar(language.name, [language.tokens], [str(language.tokens)]) for language in every]
    heads = ["language", *text.LANGUAGE_HEADS[:-1]]
    rows = [[language.name, *text.language_row(language, every)] for language in every]
    return section(
        f"The same sentence in {len(every)} languages",
        bars(("language", "tokens"), chart),
        folded("all figures", table(heads, rows, numbers=range(1, len(heads)))),
    )


def digits(probes: Probes) -> Html:
    """Return the tokens of numbers and indentation."""
    return section(
        "Digits and indentation",
        element("ul", [element("li", line) for line in text.number_words(probes)]),
        table(["text", "tokens", "cut into"], map(_cut_row, probes.numbers), numbers=[1]),
        table(
            ["newline and indentation", "tokens", "cut into"],
            map(_cut_row, probes.indents),
            numbers=[1],
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
        element("p", ["unused: ", next(text.unused_words(found))]),
        element("p", [[tile(i, found.tokens[i][:80]), " "] for i in unused]),
    )
