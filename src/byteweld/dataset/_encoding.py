"""How documents are encoded, and what is noted of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from byteweld.corpus import Corpus
from byteweld.dataset._manifest import MAX_LISTED_SKIPS
from byteweld.dataset.options import Plan
from byteweld.errors import ByteweldError
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

DOCUMENTS: Final = "documents"  # the name of documents in memory among the sources


class Finished(NamedTuple):
    """A file that was read to its end, or by a task to the end of its part."""

    file: int  # its number
    size: int | None
    digest: str | None
    documents: int
    lines: int


class Skip(NamedTuple):
    """A record that was skipped, and where it is."""

    file: int
    line: int | None
    row: int | None
    offset: int | None
    reason: str


@dataclass(frozen=True)
class DocumentEncoding:
    """How documents are encoded."""

    tok: Tokenizer
    special_text: str
    before: list[int]
    after: list[int]
    marks_empty: bool

    @classmethod
    def of(cls, tok: Tokenizer, plan: Plan) -> DocumentEncoding:
        """Return how a dataset has its documents."""
        return cls(tok, plan.options.special_text, plan.before, plan.after, plan.format.marks_empty)

    def encode(
        self,
        sources: Sources,
        receive: Callable[..., object],
        *,
        start: tuple[int, ...] | None = None,
        num_threads: int | None = None,
        progress: Callable[[], object] = lambda: None,
        unit: str = "run",
    ) -> Any:
        """Encode all documents from `start` on, block by block.

        `receive` is called with blocks in order: ids, ends of documents, whether the block ends
        inside a document, bytes of text, stored bytes read so far, special tokens in the text and
        how often each occurs, the position after the block, events. `progress` is called now and
        then. Returns the events after the last block.

        Events are a list of finished files, one of skipped records, and the number of all skipped
        ones; see `Finished` and `Skip`.
        """
        corpus = Corpus(files=()) if sources.corpus is None else sources.corpus
        try:
            return self.tok._encoder.encode_corpus(
                {**corpus.engine_arguments(), "digest": True, "require_utf8": True},
                {
                    "start": start,
                    "documents": sources.documents,
                    "special_text": self.special_text,
                    "prefix": self.before,
                    "suffix": self.after,
                    "marks_empty": self.marks_empty,
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
    finished: list[Finished] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)  # the first ones
    is_divided: bool = False  # whether the first file is a part of one

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
            self.finished.append(Finished(first_file + file, size, name, *rest))
        room = MAX_LISTED_SKIPS - len(self.skips)
        self.skips.extend(Skip(first_file + file, *rest) for file, *rest in skips[: max(0, room)])
        self.skipped += skipped

    def __bool__(self) -> bool:
        return bool(self.documents or self.skipped or self.finished)


def source_names(sources: Sources) -> list[str]:
    """Return the name of each source, in the order of their numbers."""
    corpus = sources.corpus
    if corpus is None:
        return []
    if corpus.table is not None:
        return [type(corpus.table).__name__]
    return corpus.names()
