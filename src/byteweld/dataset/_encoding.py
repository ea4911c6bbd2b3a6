"""Encodes the documents of sources, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from byteweld.corpus import Corpus
from byteweld.dataset._manifest import SkipEntry, SourceEntry
from byteweld.errors import ByteweldError
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

DOCUMENTS: Final = "documents"  # the name of documents in memory among the sources


class Events(NamedTuple):
    """What happened while reading: sources that were read to their end, and records skipped."""

    finished: list[SourceEntry]
    skips: list[SkipEntry]  # the first ones
    skipped: int


def encode_sources(
    sources: Sources,
    tok: Tokenizer,
    *,
    start: tuple[int, ...] | None,
    special_text: str,
    prefix: list[int],
    suffix: list[int],
    marks_empty: bool,
    num_threads: int | None,
    receive: Callable[..., object],
    progress: Callable[[], object],
) -> Events:
    """Encode all documents from `start` on.

    `receive` is called with blocks in order: ids, ends of documents, whether the block ends inside
    a document, bytes of text, stored bytes read so far, special tokens in the text and how often
    each occurs, the position after the block, events. `progress` is called now and then. Returns
    the events after the last block.
    """
    names = source_names(sources)

    def pass_on(*block: Any) -> None:
        receive(*block[:-1], _events(block[-1], names))

    last = encode_blocks(
        sources,
        tok,
        start=start,
        special_text=special_text,
        prefix=prefix,
        suffix=suffix,
        marks_empty=marks_empty,
        num_threads=num_threads,
        receive=pass_on,
        progress=progress,
    )
    return _events(last, names)


def encode_blocks(
    sources: Sources,
    tok: Tokenizer,
    *,
    start: tuple[int, ...] | None = None,
    special_text: str,
    prefix: list[int],
    suffix: list[int],
    marks_empty: bool,
    num_threads: int | None,
    receive: Callable[..., object],
    progress: Callable[[], object],
    unit: str = "run",
) -> Any:
    """Encode all documents as `encode_sources` does, with the events as the engine has them.

    Events are a list of finished files (number, size, digest, documents, lines), one of skipped
    records (number of the file, line, row, offset, reason), and the number of all skipped ones.
    """
    corpus = Corpus(files=()) if sources.corpus is None else sources.corpus
    try:
        return tok._encoder.encode_corpus(
            {**corpus.engine_arguments(), "digest": True, "require_utf8": True},
            {
                "start": start,
                "documents": sources.documents,
                "special_text": special_text,
                "prefix": prefix,
                "suffix": suffix,
                "marks_empty": marks_empty,
                "num_threads": num_threads,
            },
            receive,
            progress,
        )
    except (ByteweldError, ValueError) as error:
        _name_document(error, unit)
        raise


def source_names(sources: Sources) -> list[str]:
    """Return the name of each source, in the order of their numbers."""
    corpus = sources.corpus
    if corpus is None:
        return []
    if corpus.table is not None:
        return [type(corpus.table).__name__]
    return corpus.names()


def _events(events: Any, names: list[str]) -> Events:
    finished, skips, skipped = events
    return Events(
        [
            SourceEntry(
                name=names[file],
                size=None if digest is None else size,
                xxh3_128=None if digest is None else f"{digest:032x}",
                documents=documents,
            )
            for file, size, digest, documents, _ in finished
        ],
        [
            SkipEntry(source=names[file], reason=reason, line=line, row=row, offset=offset)
            for file, line, row, offset, reason in skips
        ],
        skipped,
    )


def _name_document(error: Exception, unit: str) -> None:
    """Say which document it was, where the engine knows only its number."""
    number = getattr(error, "document", None)
    if number is not None:
        error.args = (f"document {number} of this {unit}: {error}", *error.args[1:])
