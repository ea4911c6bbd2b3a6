"""`byteweld tokens`: how many tokens, by file and in all; and, if asked, which they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import byteweld
from byteweld.cli import _corpus, _errors, _input, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Option
from byteweld.cli._page import Shown
from byteweld.markup import Child, Html, element, joined, section, table
from byteweld.markup.charts import Bar, bars
from byteweld.render import EncodedText, columns, to_ansi, to_html

EXAMPLES = """
byteweld tokens --tokenizer tokenizer.json README.md
byteweld tokens --tokenizer tokenizer.json src/ --ext .py,.rs --json
byteweld tokens --tokenizer tokenizer.json --show poem.txt
byteweld tokens --tokenizer tokenizer.json --show poem.txt --html poem.html
git diff | byteweld tokens --tokenizer tokenizer.json -
"""

# --show is for eyes: of a document this many bytes are shown, and on a page so many documents.
_MAX_SHOWN_BYTES = 1_000_000
_MAX_PAGE_TOKENS = 20_000

Show = Annotated[
    bool,
    Option("--show", help="Show the tokens of each document, in colour, before the numbers."),
]


class _Row(NamedTuple):
    name: str
    tokens: int
    bytes: int
    skipped: int

    @property
    def bytes_per_token(self) -> float | None:
        return self.bytes / self.tokens if self.tokens else None


class _Shown(NamedTuple):
    """The tokens of a document."""

    name: str
    number: int
    text: EncodedText


def run(
    source: options.Sources,
    allowed_special: options.AllowedSpecial = None,
    plain: options.Plain = False,
    show: Show = False,
    threads: options.Threads = None,
    json: options.Json = False,
    html: options.Html = None,
    force: options.Force = False,
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
    shown = Shown(html, json=json, force=force)
    keep = None if json else _MAX_PAGE_TOKENS if html is not None else 0
    work = _Work(tok, threads, specials, show, keep=keep)
    with _output.progress("counting", None, "files") as advance:
        for name, documents in _corpus.documents_by_file(source, reading):
            work.file(name, documents)
            advance(len(work.rows))
    total = _Row(
        "total",
        sum(row.tokens for row in work.rows),
        sum(row.bytes for row in work.rows),
        sum(row.skipped for row in work.rows),
    )
    if total.skipped:
        _output.say(f"skipped {_output.amount(total.skipped, 'document')}")
    shown.show(
        f"Tokens of {source[0]}" + (" and others" if len(source) > 1 else ""),
        lines=lambda: _table(work.rows if len(work.rows) == 1 else [*work.rows, total]),
        value=lambda: _report(work, total, show),
        page=lambda: _page(work, total),
    )


class _Work:
    """What is gathered while documents go through."""

    def __init__(
        self,
        tok: byteweld.Tokenizer,
        threads: int | None,
        specials: Any,
        show: bool,
        *,
        keep: int | None,
    ) -> None:
        self._tok = tok
        self._threads = threads
        self._specials = specials
        self._show = show
        self._keep = keep  # tokens to keep, at least; None for all, 0 for none
        self._kept = 0
        self.rows: list[_Row] = []
        self.shown: list[_Shown] = []
        self.left_out = 0  # documents that are not among these

    def file(self, name: str, documents: Iterator[bytes]) -> None:
        """Take one file."""
        number = tokens = num_bytes = 0
        for batch in _input.batches(documents):
            try:
                ids, _ = self._tok.encode_ragged(batch, num_threads=self._threads, **self._specials)
            except byteweld.SpecialTokenError as error:
                raise byteweld.SpecialTokenError(f"{name}: {error}") from None
            tokens += len(ids)
            num_bytes += sum(map(len, batch))
            for document in batch if self._show else ():
                number += 1
                self._look(name, number, document)
        self.rows.append(_Row(name, tokens, num_bytes, _corpus.skipped(documents)))

    def _look(self, name: str, number: int, document: bytes) -> None:
        if len(document) > _MAX_SHOWN_BYTES:
            raise _errors.UsageError(
                f"{name}: document {number} has {len(document)} bytes, too many to --show "
                f"(at most {_MAX_SHOWN_BYTES}); take a part of it, or leave --show out"
            )
        if self._keep and self._kept >= self._keep:
            self.left_out += 1
            return
        found = self._tok.show(document, **self._specials)
        if self._keep != 0:
            self._kept += len(found)
            self.shown.append(_Shown(name, number, found))
            return
        _output.lines([_output.styled(_title(name, number), "bold")])
        _output.lines([to_ansi(found.spans, _output.has_color()), ""])


def _title(name: str, number: int) -> str:
    return f"{name}, document {number}"


def _report(work: _Work, total: _Row, show: bool) -> dict[str, Any]:
    report = {"files": [_to_dict(row) for row in work.rows], "total": _to_dict(total)}
    if not show:
        return report
    documents = [
        {"name": shown.name, "document": shown.number, **shown.text.to_dict()}
        for shown in work.shown
    ]
    return report | {"documents": documents}


def _page(work: _Work, total: _Row) -> Html:
    def row(of: _Row) -> list[Child]:
        return [element("code", of.name), of.tokens, of.bytes, _rate(of)]

    rows = [*map(row, work.rows), *([row(total)] if len(work.rows) > 1 else [])]
    parts: list[Child] = []
    room = _MAX_PAGE_TOKENS
    for shown in work.shown:
        parts.append(section(_title(shown.name, shown.number), to_html(shown.text.spans, room)))
        room -= len(shown.text)
    chart = [Bar(element("code", r.name), [r.bytes_per_token], [_rate(r)]) for r in work.rows]
    return joined(
        table(["file", "tokens", "bytes", "bytes per token"], rows, numbers=[1, 2, 3]),
        bars(("file", "bytes per token"), chart) if len(chart) > 1 else None,
        parts,
        element("p", f"… and {work.left_out:,} documents more", class_="hint")
        if work.left_out
        else None,
    )


def _rate(row: _Row) -> str:
    return "-" if row.bytes_per_token is None else f"{row.bytes_per_token:.2f}"


def _table(rows: list[_Row]) -> Iterator[str]:
    heads = ("tokens", "bytes", "bytes/token", "file")
    cells = [(f"{row.tokens}", f"{row.bytes}", _rate(row), row.name) for row in rows]
    return columns([heads, *cells], right=[0, 1, 2])


def _to_dict(row: _Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "tokens": row.tokens,
        "bytes": row.bytes,
        "bytes_per_token": row.bytes_per_token,
        "skipped_documents": row.skipped,
    }
