"""`byteweld tokens`: counts tokens by file and in total; with --show, also shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import byteweld
from byteweld._text import batches
from byteweld.cli import _errors, _input, _output
from byteweld.cli import _options as options
from byteweld.cli._documents import Documents
from byteweld.cli._options import SpecialText
from byteweld.cli._page import Shown
from byteweld.markup import Child, more, section
from byteweld.render import visible_name
from byteweld.report import (
    Code,
    Custom,
    Displayable,
    EncodedText,
    Facts,
    Figures,
    InText,
    OnPage,
    Report,
    Table,
    Tokens,
    Words,
)

EXAMPLES = """
byteweld tokens --tokenizer tokenizer.json README.md
byteweld tokens --tokenizer tokenizer.json src/ --ext .py,.rs --json
byteweld tokens --tokenizer tokenizer.json --text 'How many are these?'
byteweld tokens --tokenizer tokenizer.json --show poem.txt
byteweld tokens --tokenizer tokenizer.json --show poem.txt --html poem.html
git diff | byteweld tokens --tokenizer tokenizer.json -
"""

# Limits of --show: longer documents are rejected, and a page shows at most this many tokens.
_MAX_SHOWN_BYTES = 1_000_000
_MAX_PAGE_TOKENS = 20_000
_SHOWN_FILES = 20  # on a page; the others are collapsed
_FEW_BYTES = 1 << 20  # below this, count one by one: importing numpy would take longer


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
    source: list[str] | None = None,
    *,
    text: str | None = None,
    special_text: SpecialText = "special",
    show: bool = False,
    threads: options.Positive | None = None,
    json: bool = False,
    html: str | None = None,
    force: bool = False,
    tokenizer: str = options.DEFAULT_TOKENIZER,
    loading: options.Loading,
    reading: options.Reading,
) -> None:
    """Count tokens by file and in total, with bytes per token.

    The text comes from files, from standard input (- or no SOURCE), or from --text.

    Args:
        source (SOURCE...): Files, folders or globs, or - for standard input (the default).
        show: Show the tokens of each document, in color, before the counts.
    """
    sources = _input.sources("tokens", source, text)
    _input.check_files(sources)
    tok = loading.load(tokenizer)
    shown = Shown(html, json=json, force=force)
    keep = None if json else _MAX_PAGE_TOKENS if html is not None else 0
    work = _Work(tok, threads, options.special_arguments(special_text), show, keep=keep)
    files = Documents(sources, reading, text=text)
    with files.progress("encoding", beside_data=show) as advance:
        for name, documents in files:
            before = files.skipped
            tokens, num_bytes = work.file(name, documents, advance)
            work.rows.append(_Row(name, tokens, num_bytes, files.skipped - before))
    total = _Row(
        "total",
        sum(row.tokens for row in work.rows),
        sum(row.bytes for row in work.rows),
        sum(row.skipped for row in work.rows),
    )
    files.say_skipped()
    if work.special_tokens:
        _output.say(
            f"{_output.amount(work.special_tokens, 'special token')} in the text, each one id; "
            "--special-text text counts them as text"
        )
    of = "the text" if text is not None else sources[0]
    shown.show(
        f"Tokens of {of}" + (" and others" if len(sources) > 1 else ""),
        _Tokens(work, total, tok, tokenizer, show=show),
    )


class _Work:
    """Encodes documents, and collects the counts and tokens to report."""

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
        self._keep = (
            keep  # stop keeping documents after this many tokens; None: keep all, 0: keep none
        )
        self._kept = 0
        self._done = 0  # bytes of the files before this one
        self.rows: list[_Row] = []
        self.shown: list[_Shown] = []
        self.left_out = 0  # documents not in `shown`
        self.special_tokens = 0

    def file(
        self, name: str, documents: Iterator[bytes], advance: Callable[[int], None]
    ) -> tuple[int, int]:
        """Count the tokens and bytes of one file."""
        number = tokens = num_bytes = 0
        for batch in batches(documents, _input.BATCH_BYTES):
            try:
                tokens += self._count(batch)
            except byteweld.SpecialTokenError as error:
                raise byteweld.SpecialTokenError(f"{name}: {error}") from None
            num_bytes += sum(map(len, batch))
            for document in batch if self._show else ():
                number += 1
                self._look(name, number, document)
            advance(self._done + num_bytes)
        self._done += num_bytes
        return tokens, num_bytes

    def _count(self, batch: list[bytes]) -> int:
        if sum(map(len, batch)) < _FEW_BYTES:
            found = [i for one in batch for i in self._tok.encode(one, **self._specials)]
            self.special_tokens += sum(map(self._tok.is_special_token, found))
            return len(found)
        import numpy as np

        ids, _ = self._tok.encode_ragged(batch, num_threads=self._threads, **self._specials)
        specials = list(self._tok.vocab.special_tokens.values())
        self.special_tokens += int(np.isin(ids, specials).sum())
        return len(ids)

    def _look(self, name: str, number: int, document: bytes) -> None:
        if len(document) > _MAX_SHOWN_BYTES:
            raise _errors.UsageError(
                f"{name}: document {number} has {len(document):,} bytes, too many to --show "
                f"(at most {_MAX_SHOWN_BYTES:,}); use a part of it, or leave --show out"
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
        _output.lines([*found.lines(color=_output.has_color()), ""])


def _title(name: str, number: int) -> str:
    return f"{name}, document {number}"


class _Tokens(Displayable):
    """The tokens of every file, and of every document with --show."""

    def __init__(
        self, work: _Work, total: _Row, tok: byteweld.Tokenizer, path: str, *, show: bool
    ) -> None:
        self._work = work
        self._total = total
        self._tok = tok
        self._path = path
        self._show = show

    def report(self) -> Report:
        """Return the table of files; on a page, also the tokens."""
        work, total, tok = self._work, self._total, self._tok
        *rows, last = (
            [
                row.tokens,
                row.bytes,
                row.bytes_per_token,
                Code(row.name),
            ]
            for row in (*work.rows, total)
        )
        heads = ("tokens", "bytes", "bytes/token", "file")
        table = Table(heads, rows, "file", charted=[2], total=last if len(rows) > 1 else None)
        figures: list[tuple[Words, Words]] = [
            (total.tokens, "token" if total.tokens == 1 else "tokens"),
            (total.bytes, "byte" if total.bytes == 1 else "bytes"),
            (total.bytes_per_token, "bytes per token"),
        ]
        facts: list[tuple[str, Words]] = [
            ("tokenizer", tok.name),
            ("file", Code(visible_name(self._path))),
            ("vocabulary", _output.amount(len(tok), "token")),
            ("pattern", Code(options.pattern_words(tok.vocab.pattern))),
        ]
        about = OnPage(Figures(figures), Facts(facts))
        files = table if len(rows) > 1 else InText(table)
        return Report("", about, files, Custom(self._documents))

    def _documents(self) -> Iterator[Child]:
        left = _MAX_PAGE_TOKENS
        for shown in self._work.shown:
            yield section(_title(shown.name, shown.number), Tokens(shown.text.spans, left).html())
            left -= len(shown.text)
        yield more(self._work.left_out, "document")

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON-serializable values; with --show, also the tokens."""
        rows = [_to_dict(row) for row in self._work.rows]
        report: dict[str, Any] = {"files": rows, "total": _to_dict(self._total)}
        if self._show:
            report["documents"] = [
                {"name": shown.name, "document": shown.number, **shown.text.to_dict()}
                for shown in self._work.shown
            ]
        return report


def _to_dict(row: _Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "tokens": row.tokens,
        "bytes": row.bytes,
        "bytes_per_token": row.bytes_per_token,
        "skipped_documents": row.skipped,
    }
