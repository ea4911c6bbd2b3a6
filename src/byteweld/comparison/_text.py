"""Render a comparison as lines of text."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence

from byteweld._speed import speed
from byteweld.comparison.corpora import Comparison, Difference, FileComparison
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
KEYS = string.ascii_uppercase  # one letter for each tokenizer


def lines(found: Comparison, color: bool) -> list[str]:
    """Return the whole comparison: who needs fewer tokens, by script and by file; then the ids."""
    return [
        heading(answer(found), color),
        *columns(
            [[f"  {key}", *row] for key, row in zip(KEYS, _tokenizer_rows(found), strict=False)]
        ),
        *(f"  {line}" for line in wins(found)),
        "",
        heading("words by script", color),
        *table(script_heads(found), _script_rows(found)),
        "",
        heading("by file", color),
        *table(file_heads(found), _file_rows(found)),
        *more_line(len(found.files) - MAX_FILES, "file", indent=2),
        *([] if found.is_identical else _id_lines(found, color)),
    ]


def _id_lines(found: Comparison, color: bool) -> Iterator[str]:
    yield ""
    yield heading(verdict(found), color)
    yield f"  {span_words(found)}"
    if found.differences:
        yield ""
        yield heading(difference_title(found), color)
    for difference in found.differences:
        yield from (f"  {line}" for line in _difference_lines(found, difference, color))


# ---------------------------------------------------------------------------- the answer


def answer(found: Comparison) -> str:
    """Say in one line which tokenizer needs the fewest tokens, or that all is equal."""
    tokens = found.total.tokens
    rates = [decimal(rate) for rate in found.total.bytes_per_token]
    best, *others = ranking(found)
    if not others:
        what = verdict(found)
        if not found.is_identical:
            all_of = "both" if len(tokens) == 2 else "all"
            what = f"{all_of} need {amount(tokens[0], 'token')}"
        return f"{what}: {rates[0]} bytes per token" if tokens[0] else what
    names = [visible_name(name) for name in found.names]
    if len(set(names)) < len(names):
        names = list(KEYS)
    shares = [
        f"{fewer(tokens[best[0]], tokens[lane])}{'' if n else ' tokens'} than {names[lane]}"
        for n, lane in enumerate(lane for lanes in others for lane in lanes)
    ]
    against = " and ".join(rates[lane] for lanes in others for lane in lanes)
    who = " and ".join(names[lane] for lane in best)
    return (
        f"{who} need{'s' * (len(best) == 1)} {' and '.join(shares)}: "
        f"{rates[best[0]]} against {against} bytes per token"
    )


def ranking(found: Comparison) -> list[list[int]]:
    """Return the tokenizers by number of tokens, fewest first; those of equal ones together."""
    tokens = found.total.tokens
    return [
        [lane for lane, own in enumerate(tokens) if own == count] for count in sorted(set(tokens))
    ]


def fewer(less: int, more: int) -> str:
    """Return by how much one number of tokens is below another.

    >>> fewer(90, 100), fewer(9_999_999, 10_000_000)
    ('10.0% fewer', 'under 0.1% fewer')
    """
    share = 100 * (more - less) / more
    return f"{share:.1f}% fewer" if share >= 0.05 else "under 0.1% fewer"


def wins(found: Comparison) -> Iterator[str]:
    """Say in how many files and scripts each tokenizer wins, if there are several."""
    files = [file.tokens for file in found.files]
    scripts = [tuple(rates[name].pieces for rates in found.scripts) for name in found.scripts[0]]
    if found.winner is None or len(files) + len(scripts) < 3:
        return
    which = "fewer" if len(found.names) == 2 else "the fewest"
    for lane in (lane for lanes in ranking(found) for lane in lanes):
        parts = []
        for noun, rows in (("file", files), ("script", scripts)):
            won = sum(row[lane] == min(row) and row.count(row[lane]) == 1 for row in rows)
            if won and len(rows) > 1:
                parts.append(f"{won:,} of {amount(len(rows), noun)}")
        if parts:
            yield f"{KEYS[lane]} needs {which} tokens in {' and '.join(parts)}"


def verdict(found: Comparison) -> str:
    """Say in one line whether all ids are identical."""
    total = found.total
    documents, size = amount(total.documents, "document"), amount(total.bytes, "byte")
    if found.is_identical:
        return f"identical ids on {documents}, {amount(total.tokens[0], 'token')}, {size}"
    return f"different ids in {total.differing_documents:,} of {documents}, {size}"


def summary(found: Comparison) -> str:
    """Return the answer and the verdict in one line."""
    return answer(found) if found.is_identical else f"{answer(found)}; {verdict(found)}"


def tokenizer_row(found: Comparison, lane: int) -> list[str]:
    """Return the size of a vocabulary, and its tokens, bytes per token and speed on the corpus."""
    total = found.total
    return [
        f"vocabulary {len(found.tokens[lane]):,}",
        amount(total.tokens[lane], "token"),
        f"{decimal(total.bytes_per_token[lane])} bytes/token",
        speed(total.bytes, found.seconds[lane]) or "",
    ]


def _tokenizer_rows(found: Comparison) -> list[list[str]]:
    return [
        [visible_name(name), f"sha {fingerprint[:8]}", *tokenizer_row(found, lane)]
        for lane, (name, fingerprint) in enumerate(
            zip(found.names, found.fingerprints, strict=True)
        )
    ]


# ---------------------------------------------------------------------------- ids


def span_words(found: Comparison) -> str:
    """Say how much is cut differently."""
    spans = found.spans
    size = found.total.bytes
    share = f"{100 * spans.cut_bytes / size:.1f}%" if size else "-"
    ids = f"; {amount(spans.ids, 'equal token')} with different ids" if spans.ids else ""
    return (
        f"{spans.cut:,} of {spans.total:,} spans are cut differently, "
        f"{amount(spans.cut_bytes, 'byte')} ({share}){ids}"
    )


def difference_title(found: Comparison) -> str:
    """Return the heading of the differences."""
    kind = found.differences[0].kind
    total = found.spans.cut if kind == "cut" else found.spans.ids
    what = "spans cut differently" if kind == "cut" else "tokens with different ids"
    return f"the first {len(found.differences):,} of {total:,} {what}"


def location(difference: Difference) -> str:
    """Return the file, document and byte offset of a difference."""
    name = visible_name(difference.source)
    return f"{name}, document {difference.document:,}, byte {difference.start:,}"


def _difference_lines(found: Comparison, difference: Difference, color: bool) -> Iterator[str]:
    first = b"".join(difference.lanes[0].texts)
    rest = "" if difference.is_whole else "…"
    yield location(difference)
    before, after = visible(difference.before), visible(difference.after)
    yield f"  {before}[{visible(first)}{rest}]{after}"
    for key, lane, tokens in zip(KEYS, difference.lanes, found.tokens, strict=False):
        show = namer(tokens, color)
        shown = " | ".join(f"{show(token_id)} {token_id}" for token_id in lane.ids)
        yield f"  {key}  {shown}{' | …' if not difference.is_whole else ''}"


# ---------------------------------------------------------------------------- rows


def file_heads(found: Comparison) -> list[str]:
    """Return the column heads for files; the name comes last."""
    keys = KEYS[: len(found.names)]
    return [
        "bytes",
        *(f"tokens {key}" for key in keys),
        *(f"bytes/token {key}" for key in keys),
        *(f"{key} vs A" for key in keys[1:]),
        "differing",
        "file",
    ]


def file_row(file: FileComparison) -> list[str]:
    """Return the cells of a file except its name."""
    return [
        f"{file.bytes:,}",
        *(f"{tokens:,}" for tokens in file.tokens),
        *map(decimal, file.bytes_per_token),
        *changes(file.tokens),
        f"{file.differing_documents:,} of {file.documents:,}",
    ]


def script_heads(found: Comparison) -> list[str]:
    """Return the column heads for scripts; the script comes last."""
    keys = KEYS[: len(found.names)]
    return [
        "words",
        *(f"bytes/token {key}" for key in keys),
        *(f"tokens/word {key}" for key in keys),
        *(f"{key} vs A" for key in keys[1:]),
        "script",
    ]


def script_row(rates: Sequence[WordRate]) -> list[str]:
    """Return the cells of a script except its name."""
    return [
        f"{rates[0].words:,}",
        *(decimal(rate.bytes_per_piece) for rate in rates),
        *(decimal(rate.fertility) for rate in rates),
        *changes([rate.pieces for rate in rates]),
    ]


def changes(tokens: Sequence[int]) -> list[str]:
    """Return by how much the token counts after the first differ from it."""
    first, *others = tokens
    return [f"{100 * (other - first) / first:+.1f}%" if first else "-" for other in others]


def _file_rows(found: Comparison) -> list[list[str]]:
    rows = [[*file_row(file), visible_name(file.name)] for file in found.files[:MAX_FILES]]
    return [*rows, [*file_row(found.total), "total"]] if len(found.files) > 1 else rows


def _script_rows(found: Comparison) -> list[list[str]]:
    return [
        [*script_row([rates[name] for rates in found.scripts]), name] for name in found.scripts[0]
    ]
