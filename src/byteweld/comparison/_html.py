"""Render a comparison as HTML, for notebooks and reports."""

from __future__ import annotations

from collections.abc import Sequence

from byteweld.comparison import _text as text
from byteweld.comparison.corpora import Comparison, Difference
from byteweld.evaluation._text import WORD_HINT
from byteweld.markup import Child, Html, element, figures, joined, more, section, shortened, table
from byteweld.markup.charts import Bar, bars, highest_of
from byteweld.render import decimal, tile, visible, visible_name

_MAX_FILES = 200
_SHOWN_ROWS = 8  # the others are collapsed
_SHOWN_DIFFERENCES = 3


def report(found: Comparison) -> Html:
    """Return the whole comparison: who needs fewer tokens, by script and by file; then the ids."""
    return joined(
        element("p", text.answer(found), class_="answer yes" if found.is_identical else "answer"),
        _figures(found),
        [element("p", line, class_="hint") for line in text.wins(found)],
        _tokenizers(found),
        _scripts(found),
        _files(found),
        None if found.is_identical else _ids(found),
    )


def _key(lane: int) -> Html:
    return element("span", text.KEYS[lane], class_=f"key lane{lane % 4}")


def _figures(found: Comparison) -> Html:
    """Return the figures of the total, those of the tokenizer with the fewest tokens first."""
    total = found.total
    winner = found.winner
    shown: list[tuple[str, Child]] = []
    if winner is not None:
        less, more, *_ = sorted(total.tokens)
        share = text.fewer(less, more).removesuffix(" fewer")
        shown.append((share, [_key(winner), "fewer tokens"]))
    for lanes in text.ranking(found):
        for lane in lanes:
            shown.append((decimal(total.bytes_per_token[lane]), [_key(lane), "bytes per token"]))
    return figures(shown)


def _tokenizers(found: Comparison) -> Html:
    rows: list[list[Child]] = []
    for lane, name in enumerate(found.names):
        own = [cell for cell in text.tokenizer_row(found, lane) if cell]
        digest = element("code", found.fingerprints[lane][:16])
        rows.append([[_key(lane), element("b", visible_name(name))], ", ".join(own), digest])
    return table(["tokenizer", "on this corpus", "fingerprint"], rows)


def _legend(found: Comparison) -> Html:
    names = [[_key(lane), f"{name}  "] for lane, name in enumerate(found.names)]
    return element("p", names, class_="hint")


def _scripts(found: Comparison) -> Html:
    size = len(found.names)
    _, *heads, _ = text.script_heads(found)
    rows = []
    for name in found.scripts[0]:
        rates = [scripts[name] for scripts in found.scripts]
        words, *figures = text.script_row(rates)
        labels, words_rates, changes = figures[:size], figures[size : 2 * size], figures[2 * size :]
        values = [rate.bytes_per_piece for rate in rates]
        rows.append(Bar(name, values, labels, [*changes, *words_rates, words]))
    heads = ["script", "bytes per token", *heads[2 * size :], *heads[size : 2 * size], "words"]
    return section("Words by script", _legend(found), _chart(heads, rows, "script"), hint=WORD_HINT)


def _files(found: Comparison) -> Html:
    end = len(found.names)
    _, *heads, _, _ = text.file_heads(found)
    rows = []
    for file in found.files[:_MAX_FILES]:
        size, *figures, differing = text.file_row(file)
        tokens, labels, changes = figures[:end], figures[end : 2 * end], figures[2 * end :]
        cells = [*changes, *tokens, size, differing]
        rows.append(Bar(element("code", file.name), file.bytes_per_token, labels, cells))
    heads = ["file", "bytes per token", *heads[2 * end :], *heads[:end], "bytes", "differing"]
    return section(
        "Files",
        _legend(found),
        _chart(heads, rows, "file"),
        more(len(found.files) - len(rows), "file"),
    )


def _chart(heads: Sequence[str], rows: Sequence[Bar], noun: str) -> Html:
    """Return bars, all to one scale; those after the first few are collapsed."""
    most = highest_of(rows)
    return shortened(rows, _SHOWN_ROWS, noun, lambda some: bars(heads, some, most))


# ---------------------------------------------------------------------------- ids


def _ids(found: Comparison) -> Html:
    return section(
        "Ids",
        element("p", text.verdict(found), class_="answer no"),
        element("p", text.span_words(found), class_="hint"),
        _differences(found) if found.differences else None,
    )


def _differences(found: Comparison) -> Html:
    def chart(some: Sequence[Difference]) -> Html:
        return table(["where", "what"], [_difference(found, one) for one in some])

    return joined(
        element("h3", text.difference_title(found).capitalize()),
        shortened(found.differences, _SHOWN_DIFFERENCES, "difference", chart),
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
