"""`byteweld tokens`: how many tokens, by file and in all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import byteweld
from byteweld.cli import _corpus, _input, _output
from byteweld.cli import _options as options

EXAMPLES = """
byteweld tokens --tokenizer tokenizer.json README.md
byteweld tokens --tokenizer tokenizer.json src/ --ext .py,.rs --json
git diff | byteweld tokens --tokenizer tokenizer.json -
"""


class _Row(NamedTuple):
    name: str
    tokens: int
    bytes: int
    skipped: int

    @property
    def bytes_per_token(self) -> float | None:
        return self.bytes / self.tokens if self.tokens else None


def run(
    source: options.Sources,
    allowed_special: options.AllowedSpecial = None,
    plain: options.Plain = False,
    threads: options.Threads = None,
    json: options.Json = False,
    tokenizer: options.TokenizerPath = "tokenizer.json",
    format: options.Format = None,
    pattern: options.LoadPattern = None,
    special: options.LoadSpecial = None,
    no_special: options.NoSpecial = False,
    ext: options.Ext = None,
    lines: options.Lines = False,
    field: options.Field = None,
    separator: options.Separator = None,
    on_error: options.OnError = "fail",
) -> None:
    """Count tokens: of each file, and in all, with bytes per token.

    A special token in a text is an error unless --allowed-special or --plain says what it is.
    """
    tok = options.load_tokenizer(
        tokenizer, format=format, pattern=pattern, special=special, no_special=no_special
    )
    specials = options.special_arguments(tok, allowed_special, plain)
    reading = options.Reading(ext, lines, field, separator, on_error)
    rows = []
    with _output.progress("counting", None, "files") as advance:
        for name, documents in _corpus.documents_by_file(source, reading):
            rows.append(_count(tok, name, documents, threads, specials))
            advance(len(rows))
    total = _Row(
        "total",
        sum(row.tokens for row in rows),
        sum(row.bytes for row in rows),
        sum(row.skipped for row in rows),
    )
    if total.skipped:
        _output.say(f"skipped {_output.amount(total.skipped, 'document')}")
    if json:
        _output.report({"files": [_to_dict(row) for row in rows], "total": _to_dict(total)})
    else:
        _output.lines(_table(rows if len(rows) == 1 else [*rows, total]))


def _count(
    tok: byteweld.Tokenizer,
    name: str,
    documents: Iterator[bytes],
    threads: int | None,
    specials: Any,
) -> _Row:
    tokens = num_bytes = 0
    for batch in _input.batches(documents):
        try:
            ids, _ = tok.encode_ragged(batch, num_threads=threads, **specials)
        except byteweld.SpecialTokenError as error:
            raise byteweld.SpecialTokenError(f"{name}: {error}") from None
        tokens += len(ids)
        num_bytes += sum(map(len, batch))
    return _Row(name, tokens, num_bytes, _corpus.skipped(documents))


def _table(rows: list[_Row]) -> list[str]:
    cells = [
        (
            f"{row.tokens}",
            f"{row.bytes}",
            "-" if row.bytes_per_token is None else f"{row.bytes_per_token:.2f}",
            row.name,
        )
        for row in rows
    ]
    heads = ("tokens", "bytes", "bytes/token", "file")
    widths = [max(len(row[n]) for row in [heads, *cells]) for n in range(3)]
    return [
        "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in [heads, *cells]
    ]


def _to_dict(row: _Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "tokens": row.tokens,
        "bytes": row.bytes,
        "bytes_per_token": row.bytes_per_token,
        "skipped_documents": row.skipped,
    }
