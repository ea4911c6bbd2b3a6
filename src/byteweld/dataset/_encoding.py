"""Encodes the documents of sources, block by block."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from byteweld.corpus import Corpus
from byteweld.dataset._manifest import MAX_LISTED_SKIPS
from byteweld.errors import ByteweldError
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

DOCUMENTS: Final = "documents"  # the name of documents in memory among the sources


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
    """Encode all documents from `start` on.

    `receive` is called with blocks in order: ids, ends of documents, whether the block ends inside
    a document, bytes of text, stored bytes read so far, special tokens in the text and how often
    each occurs, the position after the block, events. `progress` is called now and then. Returns
    the events after the last block.

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
        # Say which document it was, where the engine knows only its number.
        number = getattr(error, "document", None)
        if number is not None:
            error.args = (f"document {number} of this {unit}: {error}", *error.args[1:])
        raise


@dataclass
class Encoded:
    """What was encoded: totals, and the events of reading, with the numbers of files."""

    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    skipped: int = 0
    special_text: Counter[str] = field(default_factory=Counter)
    finished: list[Any] = field(default_factory=list)
    skips: list[Any] = field(default_factory=list)  # the first ones

    def add(self, tokens: int, documents: int, text_bytes: int, specials: dict[str, int]) -> None:
        """Add a block."""
        self.documents += documents
        self.tokens += tokens
        self.text_bytes += text_bytes
        self.special_text.update(specials)

    def note(self, events: Any, first_file: int = 0) -> None:
        """Add events; the files they name are counted from `first_file`."""
        finished, skips, skipped = events
        for file, size, digest, *rest in finished:
            name = None if digest is None else f"{digest:032x}"
            self.finished.append((first_file + file, size, name, *rest))
        room = MAX_LISTED_SKIPS - len(self.skips)
        self.skips.extend((first_file + file, *rest) for file, *rest in skips[: max(0, room)])
        self.skipped += skipped

    def __bool__(self) -> bool:
        return bool(self.documents or self.skipped or self.finished)

    def to_json(self) -> dict[str, Any]:
        """Return the fields, as JSON has them."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


def source_names(sources: Sources) -> list[str]:
    """Return the name of each source, in the order of their numbers."""
    corpus = sources.corpus
    if corpus is None:
        return []
    if corpus.table is not None:
        return [type(corpus.table).__name__]
    return corpus.names()
