"""Documents by file, for verbs that encode, with progress and a report of what was skipped."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from byteweld.cli import _input, _output
from byteweld.corpus import Corpus, File, ReadingOptions, open_corpus, whole_file
from byteweld.corpus import Reading as CorpusReading

TEXT = "--text"  # the file name shown for text given as an argument
_SHOWN_EXTENSIONS = 5


class CorpusDocuments:
    """Each file's name and its documents, in the order of the sources; `-` is standard input.

    All sources are resolved before the first is read, so that a wrong name fails immediately.
    """

    def __init__(
        self, sources: Sequence[str], reading: ReadingOptions, *, text: str | None = None
    ) -> None:
        how = CorpusReading.of(reading)
        files = _input.files(sources, reading)
        self.corpus = open_corpus(files, how) if files else Corpus(reading=how)
        self._stdin = [
            file for file, source in zip(files, sources, strict=True) if source == _input.STDIN
        ]
        self._texts = None if text is None else _input.split(_input.argument_bytes(text), reading)
        self._bytes_read = 0  # of finished files, as stored
        self._text_bytes = 0  # of all documents so far
        self._current: object = None
        self._skipped = 0
        self.files = 0

    def __iter__(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        texts = [] if self._texts is None else [(TEXT, iter(self._texts))]
        for name, documents in itertools.chain(texts, self.corpus.by_file()):
            self.files += 1
            self._current = documents
            yield self.name(name), self._counted(documents)
            self._bytes_read += getattr(documents, "bytes_read", 0)
            self._skipped = self.skipped
            self._current = None

    def name(self, file: str) -> str:
        """The name of a file as the user knows it."""
        return _input.STDIN if file in self._stdin else file

    @property
    def paths(self) -> list[File | None]:
        """All files in order; None is standard input."""
        files = map(whole_file, self.corpus.files)
        return [None if str(file) in self._stdin else file for file in files]

    @property
    def skipped(self) -> int:
        """Number of malformed documents skipped so far."""
        return self._skipped + getattr(self._current, "skipped", 0)

    def _counted(self, documents: Iterator[bytes]) -> Iterator[bytes]:
        for document in documents:
            self._text_bytes += len(document)
            yield document

    @contextlib.contextmanager
    def progress(
        self, what: str, *, beside_data: bool = False, is_stored: bool = False
    ) -> Iterator[Callable[[int], None]]:
        """Show progress in stored bytes; yields a function of the text bytes encoded so far.

        If `is_stored`, it is a function of the stored bytes.
        """
        is_known = self._texts is None and not self._stdin
        total = self.corpus.total_bytes if is_known else None
        is_compressed = is_known and self.corpus.has_compressed
        with _output.progress(
            what, total, "bytes", is_compressed=is_compressed, beside_data=beside_data
        ) as advance:

            def advance_stored(text_bytes: int) -> None:
                # About how much of the files holds this text; reading is ahead.
                read = self._bytes_read + getattr(self._current, "bytes_read", 0)
                advance(round(read * text_bytes / max(1, self._text_bytes)))

            yield advance if is_stored or total is None else advance_stored

    def say_skipped(self, documents: int | None = None) -> None:
        """Report skipped files, by extension, and skipped documents; by default those so far."""
        say_skipped_files(self.corpus.skipped_files)
        documents = self.skipped if documents is None else documents
        if documents:
            _output.say(f"skipped {_output.amount(documents, 'document')}")


def say_resumed(stored_bytes: int) -> None:
    """Say how much earlier runs have done."""
    _output.say(f"resuming after {_output.size(stored_bytes)}")


def say_skipped_files(by_extension: Mapping[str, int]) -> None:
    """Report the files in folders that were skipped because of their extension."""
    if not by_extension:
        return
    common = Counter(by_extension).most_common(_SHOWN_EXTENSIONS)
    names = [f"{name or 'no extension'} ({count:,})" for name, count in common]
    if len(by_extension) > len(common):
        names.append(f"{len(by_extension) - len(common):,} more")
    files = _output.amount(sum(by_extension.values()), "file")
    _output.say(f"skipped {files} with other extensions: {', '.join(names)}; use --ext to choose")
