"""Render a comparison as HTML, for notebooks and reports."""

from __future__ import annotations

from byteweld.comparison import _text as text
from byteweld.comparison.corpora import Comparison, Difference
from byteweld.evaluation._text import WORD_HINT
from byteweld.markup import Child, Html, element, joined, more, section, table
from byteweld.markup.charts import Bar, bars
from byteweld.render import decimal, tile, visible

_MAX_FILES = 200


def report(found: Comparison) -> Html:
    """Return the whole comparison."""
    answer = "yes" if found.is_identical else "no"
    return joined(
        element("p", text.verdict(found), class_=f"answer {answer}"),
        _tokenizers(found),
        element("p", text.span_words(found), class_="hint"),
        _differences(found) if found.differences else None,
        _files(found),
        _scripts(found),
    )


def _key(lane: int) -> Html:
    return element("span", text.KEYS[lane], class_=f"key lane{lane}")


def _tokenizers(found: Comparison) -> Html:
    rows = [
        [[_key(lane), element("b", name)], rate, element("code", fingerprint[:16])]
        for lane, (name, rate, fingerprint) in enumerate(
            zip(found.names, text.rates(found), found.fingerprints, strict=True)
        )
    ]
    return table(["tokenizer", "on this corpus", "fingerprint"], rows)


def _differences(found: Comparison) -> Html:
    return section(
        text.difference_title(found).capitalize(),
        table(["where", "what"], [_difference(found, some) for some in found.differences]),
    )


def _difference(found: Comparison, difference: Difference) -> list[Child]:
    span = b"".join(difference.lanes[0].texts)
    rest = "" if difference.is_whole else " …"
    lanes = []
    for lane, shown in enumerate(difference.lanes):
        tokens = found.tokens[lane]
        tiles = [
            [tile(token_id, tokens[token_id]), element("span", f" {token_id} ", class_="rank")]
            for token_id in shown.ids
        ]
        lanes.append(element("div", _key(lane), tiles, rest))
    context = element(
        "div",
        visible(difference.before),
        element("span", visible(span), class_="mark"),
        rest,
        visible(difference.after),
        class_="text",
    )
    return [text.location(difference), [context, lanes]]


def _files(found: Comparison) -> Html:
    shown = found.files[:_MAX_FILES]
    chart = [
        Bar(
            element("code", file.name),
            file.bytes_per_token,
            list(map(decimal, file.bytes_per_token)),
        )
        for file in shown
    ]
    heads = ["file", *text.file_heads()[:-1]]
    rows = [[element("code", file.name), *text.file_row(file)] for file in shown]
    rows.append(["total", *text.file_row(found.total)])
    return section(
        "Files",
        element("p", _key(0), found.names[0], "  ", _key(1), found.names[1], class_="hint"),
        bars(("file", "bytes per token"), chart),
        table(heads, rows, numbers=range(1, len(heads))),
        more(len(found.files) - len(shown), "file"),
    )


def _scripts(found: Comparison) -> Html:
    ones, others = found.scripts
    chart = []
    for name in ones:
        values = [rates[name].bytes_per_piece for rates in found.scripts]
        chart.append(Bar(name, values, list(map(decimal, values))))
    heads = ["script", *text.script_heads()[:-1]]
    rows = [[name, *text.script_row(ones[name], others[name])] for name in ones]
    return section(
        "Words by script",
        bars(("script", "bytes per token"), chart),
        table(heads, rows, numbers=range(1, len(heads))),
        hint=WORD_HINT,
    )
