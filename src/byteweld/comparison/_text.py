"""A comparison as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byteweld.comparison.corpora import Comparison, Difference, FileComparison
from byteweld.evaluation.words import WordRate
from byteweld.render import columns, namer, visible, visible_name

MAX_FILES = 20
KEYS = ("A", "B")
_ENOUGH_BYTES = 1_000_000


def lines(found: Comparison, color: bool) -> list[str]:
    """All of it."""

    def title(text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if color else text

    result = [
        title(verdict(found)),
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
        result.append(title(difference_title(found)))
        for difference in found.differences:
            result += [f"  {line}" for line in _difference_lines(found, difference, color)]
        result.append("")
    result += [title("by file"), *_table(file_heads(), _file_rows(found))]
    if len(found.files) > MAX_FILES:
        result.append(f"  ... and {len(found.files) - MAX_FILES} files more")
    return [*result, "", title("words by script"), *_table(script_heads(), _script_rows(found))]


def verdict(found: Comparison) -> str:
    """The answer in one line."""
    total = found.total
    documents = f"{total.documents} document{'' if total.documents == 1 else 's'}"
    if found.is_identical:
        return f"identical ids on {documents}, {total.tokens[0]} tokens, {total.bytes} bytes"
    return f"different ids in {total.differing_documents} of {documents}, {total.bytes} bytes"


def rates(found: Comparison) -> list[str]:
    """What each costs, and how fast it is."""
    total = found.total
    return [
        f"{tokens} tokens, {_decimal(rate)} bytes/token{_speed(total.bytes, seconds)}"
        for tokens, rate, seconds in zip(
            total.tokens, total.bytes_per_token, found.seconds, strict=True
        )
    ]


def _speed(size: int, seconds: float) -> str:
    """How fast it was; of little text that says nothing."""
    return f", {size / seconds / 1e6:.1f} MB/s" if size >= _ENOUGH_BYTES and seconds else ""


def span_words(found: Comparison) -> str:
    """How much is cut differently."""
    spans = found.spans
    size = found.total.bytes
    share = f"{100 * spans.cut_bytes / size:.1f}%" if size else "-"
    ids = "" if not spans.ids else f"; {spans.ids} tokens are the same with other ids"
    return (
        f"{spans.cut} of {spans.total} spans are cut differently, {spans.cut_bytes} bytes ({share})"
        + ids
    )


def difference_title(found: Comparison) -> str:
    """What the differences shown are."""
    kind = found.differences[0].kind
    total = found.spans.cut if kind == "cut" else found.spans.ids
    what = "spans cut differently" if kind == "cut" else "tokens with other ids"
    return f"the first {len(found.differences)} of {total} {what}"


def place(difference: Difference) -> str:
    """Where a difference is."""
    name = visible_name(difference.source)
    return f"{name}, document {difference.document}, byte {difference.start}"


def _difference_lines(found: Comparison, difference: Difference, color: bool) -> Iterator[str]:
    first = b"".join(difference.lanes[0].texts)
    rest = "" if difference.is_whole else "…"
    yield place(difference)
    before, after = visible(difference.before), visible(difference.after)
    yield f"  {before}[{visible(first)}{rest}]{after}"
    for key, lane, tokens in zip(KEYS, difference.lanes, found.tokens, strict=True):
        show = namer(tokens, color)
        shown = " | ".join(f"{show(token_id)} {token_id}" for token_id in lane.ids)
        yield f"  {key}  {shown}{' | …' if not difference.is_whole else ''}"


# ---------------------------------------------------------------------------- rows


def file_heads() -> list[str]:
    """Of the table of files; the file itself comes last."""
    return [
        "bytes",
        *(f"tokens {key}" for key in KEYS),
        *(f"bytes/token {key}" for key in KEYS),
        "B vs A",
        "differing",
        "file",
    ]


def file_row(file: FileComparison) -> list[str]:
    """The cells of a file, but for its name."""
    return [
        str(file.bytes),
        *map(str, file.tokens),
        *map(_decimal, file.bytes_per_token),
        change(*file.tokens),
        f"{file.differing_documents} of {file.documents}",
    ]


def script_heads() -> list[str]:
    """Of the table of scripts; the script itself comes last."""
    return [
        "words",
        *(f"bytes/token {key}" for key in KEYS),
        *(f"tokens/word {key}" for key in KEYS),
        "B vs A",
        "script",
    ]


def script_row(one: WordRate, other: WordRate) -> list[str]:
    """The cells of a script, but for its name."""
    return [
        str(one.words),
        *(_decimal(rate.bytes_per_piece) for rate in (one, other)),
        *(_decimal(rate.fertility) for rate in (one, other)),
        change(one.pieces, other.pieces),
    ]


def change(one: int, other: int) -> str:
    """By how much the second number of tokens differs from the first."""
    return "-" if not one else f"{100 * (other - one) / one:+.1f}%"


def _file_rows(found: Comparison) -> list[list[str]]:
    rows = [[*file_row(file), visible_name(file.name)] for file in found.files[:MAX_FILES]]
    return [*rows, [*file_row(found.total), "total"]] if len(found.files) > 1 else rows


def _script_rows(found: Comparison) -> list[list[str]]:
    ones, others = found.scripts
    return [[*script_row(ones[name], others[name]), name] for name in ones]


def _table(heads: list[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    return (f"  {line}" for line in columns([heads, *rows], right=range(len(heads) - 1)))


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
