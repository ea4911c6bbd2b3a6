"""Render a comparison as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

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
KEYS = ("A", "B")


def lines(found: Comparison, color: bool) -> list[str]:
    """Return the whole comparison: who needs fewer tokens, by script and by file; then the ids."""
    return [
        heading(answer(found), color),
        *columns(
            [[f"  {key}", *row] for key, row in zip(KEYS, _tokenizer_rows(found), strict=True)]
        ),
        *(f"  {line}" for line in wins(found)),
        "",
        heading("words by script", color),
        *table(script_heads(), _script_rows(found)),
        "",
        heading("by file", color),
        *table(file_heads(), _file_rows(found)),
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
    """Say in one line which tokenizer needs fewer tokens and by how much, or that all is equal."""
    total = found.total
    rates = [decimal(rate) for rate in total.bytes_per_token]
    winner = found.winner
    if winner is None:
        what = verdict(found)
        if not found.is_identical:
            what = f"both need {amount(total.tokens[0], 'token')}"
        return f"{what}: {rates[0]} bytes per token" if total.tokens[0] else what
    loser = 1 - winner
    names = [visible_name(name) for name in found.names]
    if names[0] == names[1]:
        names = list(KEYS)
    share = fewer(total.tokens[winner], total.tokens[loser])
    return (
        f"{names[winner]} needs {share} tokens than {names[loser]}: "
        f"{rates[winner]} against {rates[loser]} bytes per token"
    )


def fewer(less: int, more: int) -> str:
    """Return by how much one number of tokens is below another.

    >>> fewer(90, 100), fewer(9_999_999, 10_000_000)
    ('10.0% fewer', 'under 0.1% fewer')
    """
    share = 100 * (more - less) / more
    return f"{share:.1f}% fewer" if share >= 0.05 else "under 0.1% fewer"


def wins(found: Comparison) -> Iterator[str]:
    """Say in how many files and scripts each tokenizer needs fewer tokens, if there are several."""
    ones, others = found.scripts
    files = [file.tokens for file in found.files]
    scripts = [(ones[name].pieces, others[name].pieces) for name in ones]
    if found.winner is None or len(files) + len(scripts) < 3:
        return
    for lane in (found.winner, 1 - found.winner):
        parts = []
        for noun, pairs in (("file", files), ("script", scripts)):
            won = sum(pair[lane] < pair[1 - lane] for pair in pairs)
            if won and len(pairs) > 1:
                parts.append(f"{won:,} of {amount(len(pairs), noun)}")
        if parts:
            yield f"{KEYS[lane]} needs fewer tokens in {' and '.join(parts)}"


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
