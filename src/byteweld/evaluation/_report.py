"""What is shown of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from byteweld._amounts import amount
from byteweld.evaluation.corpora import RENYI_ORDER, Evaluation
from byteweld.evaluation.probes import Language, Pieces, Probes
from byteweld.render import decimal, visible, visible_name
from byteweld.report import (
    Code,
    Facts,
    Figures,
    Folded,
    InText,
    OnPage,
    Report,
    Section,
    Share,
    Table,
    Text,
    Token,
    Words,
    text_of,
)

_MAX_FILES = 20
_MAX_TOKENS = 10
_MAX_PAGE_TOKENS = 60
WORD_HINT = (
    "A word is a run of letters, marks and numbers; its tokens are all those that overlap it."
)
_ENGLISH = "English"
# How many times as many tokens as English a language takes, at most, in each group.
_TIMES_ENGLISH = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, math.inf)


def report(found: Evaluation) -> Report:
    """Return the whole evaluation."""
    total, match, words = found.total, found.longest_match, found.total.words
    used, efficiency = Share(found.used / len(found.tokens)), decimal(found.efficiency(), 3)
    whole, agreeing = Share(words.whole_share), Share(None if match is None else match.share)
    specials = int(found.counts.sum()) - int(found.counts[list(found.tokens)].sum())
    orders = f"(order {RENYI_ORDER}; Shannon {decimal(found.efficiency(1), 3)})"
    files, documents = amount(len(found.files), "file"), amount(total.documents, "document")
    return Report(
        f"{found.name} on {files}, {documents}, {amount(total.bytes, 'byte')}",
        OnPage(
            Figures(
                [
                    (total.bytes_per_token, "bytes per token"),
                    (words.fertility, "tokens per word"),
                    (whole, "of words are a single token"),
                    (used, "of the vocabulary is used"),
                    (efficiency, "Rényi efficiency"),
                    (agreeing, "of pre-tokens: longest match agrees"),
                ]
            ),
            Text([_round_trip(found)], f"answer {'no' if found.changed_documents else 'yes'}"),
        ),
        InText(
            Facts(
                [
                    ("tokens", total.tokens),
                    ("bytes per token", total.bytes_per_token),
                    *([("special or added", f"{specials:,}, each one id")] if specials else []),
                    ("words", words.words),
                    ("tokens per word", words.fertility),
                    ("whole words", whole),
                    ("vocabulary used", [found.used, " of ", len(found.tokens), " tokens, ", used]),
                    ("Rényi efficiency", f"{efficiency} {orders}"),
                    ("longest match", _longest_match(found)),
                    ("round trip", _round_trip(found)),
                ]
            )
        ),
        _files(found),
        _scripts(found),
        languages(found.probes),
        *digits(found.probes),
        *_tokens(found),
        kind="hint",
    )


def _longest_match(found: Evaluation) -> Words:
    match = found.longest_match
    if match is None:
        return "not compared: the tokens are too long and too similar"
    if match.share is None:
        return "-"
    return ["agrees on ", Share(match.share), " of ", amount(match.pretokens, "pre-token")]


def _round_trip(found: Evaluation) -> str:
    if not found.changed_documents:
        return "every document decodes to its own bytes"
    where = ", ".join(f"{changed.source} document {changed.number}" for changed in found.changed)
    more = ", …" if found.changed_documents > len(found.changed) else ""
    return f"{amount(found.changed_documents, 'document')} changed: {where}{more}"


def _files(found: Evaluation) -> Section:
    *rows, total = (
        [
            file.bytes,
            file.tokens,
            file.bytes_per_token,
            file.words.words,
            file.words.fertility,
            Share(file.words.whole_share),
            Code(visible_name(file.name)),
        ]
        for file in (*found.files, found.total)
    )
    heads = ("bytes", "tokens", "bytes/token", "words", "tokens/word", "whole words", "file")
    last = total if len(rows) > 1 else None
    table = Table(heads, rows, "file", charted=[2], in_text=_MAX_FILES, total=last)
    return Section("by file", table)


def _scripts(found: Evaluation) -> Section:
    rows = [
        (
            *(rate.words, rate.bytes, rate.pieces, rate.bytes_per_piece, rate.fertility),
            *(Share(rate.whole_share), name),
        )
        for name, rate in found.scripts.items()
    ]
    heads = ("words", "bytes", "tokens", "bytes/token", "tokens/word", "whole words", "script")
    hint = f"{WORD_HINT} In scripts without spaces, such a run is a whole clause."
    return Section("words by script", Table(heads, rows, "script", charted=[3]), hint=hint)


def languages(probes: Probes) -> Section:
    """Return the cost of one sentence in every language; on a page, in groups, too."""
    every = probes.languages
    rows = [
        (
            *(language.tokens, _times_english(language, every), language.bytes_per_token),
            *(language.words.fertility, Share(language.words.whole_share), language.name),
        )
        for language in every
    ]
    heads = ("tokens", "× English", "bytes/token", "tokens/word", "whole words", "language")
    groups = [(name, len(names), ", ".join(names)) for name, names in language_groups(every)]
    return Section(
        f"the same sentence in {len(every)} languages",
        OnPage(Table(("tokens", "languages", ""), groups, left=[0, 2], name=0, charted=[1])),
        Folded("all languages", Table(heads, rows, charted=[0], shown=len(rows))),
        hint="How many tokens a sentence takes, compared with the same sentence in English.",
    )


def language_groups(every: Sequence[Language]) -> list[tuple[str, list[str]]]:
    """Group languages by their number of tokens, compared with English; cheapest group first.

    Empty if there is no English to compare with.
    """
    ratios = {language.name: _times_english(language, every) for language in every}
    groups: list[tuple[str, list[str]]] = []
    low = 0.0
    for high in _TIMES_ENGLISH:
        members = [name for name, ratio in ratios.items() if ratio and low < ratio <= high]
        if members:
            name = f"over {low:g} ×" if high == math.inf else f"up to {high:g} ×"
            groups.append((name, members))
        low = high
    return groups


def _times_english(language: Language, every: Sequence[Language]) -> float | None:
    english = next((other for other in every if other.name == _ENGLISH), None)
    return language.tokens / english.tokens if english is not None and english.tokens else None


def digits(probes: Probes) -> tuple[Section, Section]:
    """Return the tokens of numbers and of indentation."""
    whole = [
        f"{found.whole:,} of {found.total:,} numbers with {amount(found.digits, 'digit')} "
        "are a single token"
        for found in probes.whole_numbers
    ]
    before = "indentation, with the newline before it"
    return (
        Section("digits", Text(whole), _pieces(probes.numbers), is_folded=True),
        Section(before, _pieces(probes.indents), is_folded=True),
    )


def _pieces(probed: Sequence[Pieces]) -> Facts:
    def words(tokens: Sequence[bytes]) -> Words:
        found = [Code(visible(token), f"t c{at % 10}") for at, token in enumerate(tokens)]
        return [[" | " * bool(at), token] for at, token in enumerate(found)]

    return Facts([(one.name, words(one.tokens)) for one in probed])


def _tokens(found: Evaluation) -> Iterator[Section | OnPage]:
    def table(counted: Sequence[tuple[int, int]]) -> Table:
        rows: list[list[Words]] = [[str(i), n, Token(i, found.tokens[i])] for i, n in counted]
        return Table(("id", "count", "token"), rows, shown=len(rows))

    yield OnPage(Section("most common tokens", table(found.commonest(20)), is_folded=True))
    yield Section("rarest tokens", table(found.rarest(_MAX_TOKENS)), is_folded=True)
    unused = [i for i in found.unused if len(found.tokens[i]) > 1]
    unreachable = sum(token_id in found.unreachable for token_id in found.unused)
    share = text_of(Share(len(found.unused) / len(found.tokens)))
    summary = [
        f"{len(found.unused):,} of {len(found.tokens):,}, {share}; "
        f"{unreachable:,} of them are unreachable",
        *(["the first ones longer than a byte:"] if unused else []),
    ]
    first = unused[:_MAX_TOKENS]
    rows: list[list[Words]] = [[str(i), Token(i, found.tokens[i])] for i in first]
    tiles: Words = [[Token(i, found.tokens[i], 80), " "] for i in unused[:_MAX_PAGE_TOKENS]]
    yield Section(
        "unused tokens",
        Text(summary),
        InText(Table(("id", "token"), rows, has_heads=False)),
        OnPage(Text([tiles])),
        is_folded=True,
    )
