"""Render a comparison as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

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
KEYS = ("A", "B")
_MIN_TIMED_BYTES = 1_000_000  # with less, the measured speed is meaningless


def lines(found: Comparison, color: bool) -> list[str]:
    """Return the whole comparison."""
    result = [
        heading(verdict(found), color),
        *columns(
            [
                [f"  {key}", visible_name(name), f"sha {fingerprint[:8]}", rate]
                for key, name, fingerprint, rate in zip(
                    KEYS, found.names, found.fingerprints, rates(found), strict=True
                )
            ]
        ),
        f"  {span_words(found)}",
        "",
    ]
    if found.differences:
        result.append(heading(difference_title(found), color))
        for difference in found.differences:
            result += [f"  {line}" for line in _difference_lines(found, difference, color)]
        result.append("")
    return [
        *result,
        heading("by file", color),
        *table(file_heads(), _file_rows(found)),
        *more_line(len(found.files) - MAX_FILES, "file", indent=2),
        "",
        heading("words by script", color),
        *table(script_heads(), _script_rows(found)),
    ]


def verdict(found: Comparison) -> str:
    """Return the result in one line."""
    total = found.total
    documents, size = amount(total.documents, "document"), amount(total.bytes, "byte")
    if found.is_identical:
        return f"identical ids on {documents}, {amount(total.tokens[0], 'token')}, {size}"
    return f"different ids in {total.differing_documents:,} of {documents}, {size}"


def rates(found: Comparison) -> list[str]:
    """Return the cost and speed of each tokenizer."""
    total = found.total
    return [
        f"{amount(tokens, 'token')}, {decimal(rate)} bytes/token{_speed(total.bytes, seconds)}"
        for tokens, rate, seconds in zip(
            total.tokens, total.bytes_per_token, found.seconds, strict=True
        )
    ]


def _speed(size: int, seconds: float) -> str:
    return f", {size / seconds / 1e6:.1f} MB/s" if size >= _MIN_TIMED_BYTES and seconds else ""


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
    for key, lane, tokens in zip(KEYS, difference.lanes, found.tokens, strict=True):
        show = namer(tokens, color)
        shown = " | ".join(f"{show(token_id)} {token_id}" for token_id in lane.ids)
        yield f"  {key}  {shown}{' | …' if not difference.is_whole else ''}"


# ---------------------------------------------------------------------------- rows


def file_heads() -> list[str]:
    """Return the column heads for files; the name comes last."""
    return [
        "bytes",
        *(f"tokens {key}" for key in KEYS),
        *(f"bytes/token {key}" for key in KEYS),
        "B vs A",
        "differing",
        "file",
    ]


def file_row(file: FileComparison) -> list[str]:
    """Return the cells of a file except its name."""
    return [
        f"{file.bytes:,}",
        *(f"{tokens:,}" for tokens in file.tokens),
        *map(decimal, file.bytes_per_token),
        change(*file.tokens),
        f"{file.differing_documents:,} of {file.documents:,}",
    ]


def script_heads() -> list[str]:
    """Return the column heads for scripts; the script comes last."""
    return [
        "words",
        *(f"bytes/token {key}" for key in KEYS),
        *(f"tokens/word {key}" for key in KEYS),
        "B vs A",
        "script",
    ]


def script_row(one: WordRate, other: WordRate) -> list[str]:
    """Return the cells of a script except its name."""
    return [
        f"{one.words:,}",
        *(decimal(rate.bytes_per_piece) for rate in (one, other)),
        *(decimal(rate.fertility) for rate in (one, other)),
        change(one.pieces, other.pieces),
    ]


def change(one: int, other: int) -> str:
    """Return by how much the second token count differs from the first."""
    return "-" if not one else f"{100 * (other - one) / one:+.1f}%"


def _file_rows(found: Comparison) -> list[list[str]]:
    rows = [[*file_row(file), visible_name(file.name)] for file in found.files[:MAX_FILES]]
    return [*rows, [*file_row(found.total), "total"]] if len(found.files) > 1 else rows


def _script_rows(found: Comparison) -> list[list[str]]:
    ones, others = found.scripts
    return [[*script_row(ones[name], others[name]), name] for name in ones]
