"""`byteweld tokens`: counts tokens by file and in total; with --show, also shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import byteweld
from byteweld._text import batches
from byteweld.cli import _errors, _input, _output
from byteweld.cli import _options as options
from byteweld.cli._documents import CorpusDocuments
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
_FEW_BYTES = 1 << 20  # below this, count one by one: importing numpy would take longer


class _Row(NamedTuple):
    name: str
    tokens: int
    bytes: int
    skipped: int

    @property
    def bytes_per_token(self) -> float | None:
        return self.bytes / self.tokens if self.tokens else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tokens": self.tokens,
            "bytes": self.bytes,
            "bytes_per_token": self.bytes_per_token,
            "skipped_documents": self.skipped,
        }


class _Document(NamedTuple):
    """A document whose tokens are shown."""

    name: str
    number: int
    text: EncodedText

    @property
    def title(self) -> str:
        return f"{self.name}, document {self.number}"


def run(
    source: list[str] | None = None,
    *,
    text: str | None = None,
    special_text: SpecialText = "special",
    show: bool = False,
    threads: options.Positive | None = None,
    shown: Shown,
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
    tok = options.load_tokenizer(tokenizer, **loading)
    shown.check()
    keep = None if shown.json else 0 if shown.html is None else _MAX_PAGE_TOKENS
    specials = options.special_arguments(special_text)
    found = _Tokens(tok, tokenizer, specials, threads, show, keep)
    files = CorpusDocuments(sources, reading, text=text)
    with files.progress("encoding", beside_data=show) as advance:
        for name, documents in files:
            found.read(name, documents, files, advance)
    files.say_skipped()
    if found.special_tokens:
        _output.say(
            f"{_output.amount(found.special_tokens, 'special token')} in the text, each one id; "
            "--special-text text counts them as text"
        )
    of = "the text" if text is not None else sources[0]
    shown.show(f"Tokens of {of}" + (" and others" if len(sources) > 1 else ""), found)


@dataclass(repr=False)
class _Tokens(Displayable):
    """The number of tokens of every file; with --show, the tokens of every document."""

    tok: byteweld.Tokenizer
    path: str
    specials: dict[str, Any]
    threads: int | None
    is_shown: bool
    keep: int | None  # documents up to this many tokens; None: all of them; 0: print them instead
    kept: int = 0  # tokens
    done: int = 0  # bytes of all files
    rows: list[_Row] = field(default_factory=list)
    documents: list[_Document] = field(default_factory=list)
    left_out: int = 0  # documents that are not kept
    special_tokens: int = 0

    def read(
        self,
        name: str,
        documents: Iterable[bytes],
        files: CorpusDocuments,
        advance: Callable[[int], None],
    ) -> None:
        """Count the tokens of one of the files."""
        number = tokens = num_bytes = 0
        skipped = files.skipped
        for batch in batches(documents, _input.BATCH_BYTES):
            try:
                tokens += self._count(batch)
            except byteweld.SpecialTokenError as error:
                raise byteweld.SpecialTokenError(f"{name}: {error}") from None
            size = sum(map(len, batch))
            num_bytes += size
            self.done += size
            for document in batch if self.is_shown else ():
                number += 1
                self._look(name, number, document)
            advance(self.done)
        self.rows.append(_Row(name, tokens, num_bytes, files.skipped - skipped))

    def _count(self, batch: list[bytes]) -> int:
        if sum(map(len, batch)) < _FEW_BYTES:
            found = [i for one in batch for i in self.tok.encode(one, **self.specials)]
            self.special_tokens += sum(map(self.tok.is_special_token, found))
            return len(found)
        import numpy as np

        ids, _ = self.tok.encode_ragged(batch, num_threads=self.threads, **self.specials)
        specials = list(self.tok.vocab.special_tokens.values())
        self.special_tokens += int(np.isin(ids, specials).sum())
        return len(ids)

    def _look(self, name: str, number: int, document: bytes) -> None:
        if len(document) > _MAX_SHOWN_BYTES:
            raise _errors.UsageError(
                f"{name}: document {number} has {len(document):,} bytes, too many to --show "
                f"(at most {_MAX_SHOWN_BYTES:,}); use a part of it, or leave --show out"
            )
        if self.keep and self.kept >= self.keep:
            self.left_out += 1
            return
        found = _Document(name, number, self.tok.show(document, **self.specials))
        if self.keep == 0:
            _output.lines([_output.bold(found.title)])
            _output.lines([*found.text.lines(color=_output.has_color()), ""])
        else:
            self.kept += len(found.text)
            self.documents.append(found)

    @property
    def _total(self) -> _Row:
        _, *numbers = zip(*self.rows, strict=True) if self.rows else ((), (), (), ())
        return _Row("total", *map(sum, numbers))

    def report(self) -> Report:
        """Return the table of files; on a page, also the tokens."""
        total, tok = self._total, self.tok
        rows = [[r.tokens, r.bytes, r.bytes_per_token, Code(r.name)] for r in (*self.rows, total)]
        heads = ("tokens", "bytes", "bytes/token", "file")
        is_one = len(self.rows) < 2
        last = None if is_one else rows[-1]
        table = Table(heads, rows[:-1], "file", charted=[2], total=last)
        figures: list[tuple[Words, Words]] = [
            (total.tokens, "token" if total.tokens == 1 else "tokens"),
            (total.bytes, "byte" if total.bytes == 1 else "bytes"),
            (total.bytes_per_token, "bytes per token"),
        ]
        facts: list[tuple[str, Words]] = [
            ("tokenizer", tok.name),
            ("file", Code(visible_name(self.path))),
            ("vocabulary", _output.amount(len(tok), "token")),
            ("pattern", Code(options.pattern_words(tok.vocab.pattern))),
        ]
        about = OnPage(Figures(figures), Facts(facts))
        return Report("", about, InText(table) if is_one else table, Custom(self._page))

    def _page(self) -> Iterator[Child]:
        left = _MAX_PAGE_TOKENS
        for document in self.documents:
            yield section(document.title, Tokens(document.text.spans, left).html())
            left -= len(document.text)
        yield more(self.left_out, "document")

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON-serializable values; with --show, also the tokens."""
        report: dict[str, Any] = {
            "files": [row.to_dict() for row in self.rows],
            "total": self._total.to_dict(),
        }
        if self.is_shown:
            report["documents"] = [
                {"name": shown.name, "document": shown.number, **shown.text.to_dict()}
                for shown in self.documents
            ]
        return report
