"""Documents by file, for verbs that encode, with progress and a report of what was skipped."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from byteweld.cli import _errors, _input, _output
from byteweld.corpus import Corpus, File, ReadingOptions, open_corpus, whole_file
from byteweld.corpus import Reading as CorpusReading

TEXT = "--text"  # the file name shown for text given as an argument
_SHOWN_EXTENSIONS = 5


class Documents:
    """Each file's name and its documents, in the order of the sources; `-` is standard input.

    All sources are resolved before the first is read, so that a wrong name fails immediately.
    """

    def __init__(
        self, sources: Sequence[str], reading: ReadingOptions, *, text: str | None = None
    ) -> None:
        check_stdin(sources, reading)
        self._reading = reading
        self._text = text
        self._how = CorpusReading.of(reading)
        self._corpora = [None if s == _input.STDIN else open_corpus(s, self._how) for s in sources]
        self._bytes_read = 0  # of finished files, as stored
        self._text_bytes = 0  # of all documents so far
        self._current: object = None
        self._skipped = 0
        self.files = 0

    def __iter__(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        for name, documents in self._by_file():
            self.files += 1
            self._current = documents
            yield name, self._counted(documents)
            self._bytes_read += getattr(documents, "bytes_read", 0)
            self._skipped = self.skipped
            self._current = None

    @property
    def paths(self) -> list[File | None]:
        """All files in order; None is standard input."""
        found: list[File | None] = []
        for corpus in self._corpora:
            found += [None] if corpus is None else map(whole_file, corpus.files)
        return found

    def corpus(self) -> Corpus:
        """All files, to be divided among tasks."""
        corpora = [corpus for corpus in self._corpora if corpus is not None]
        assert self._text is None and len(corpora) == len(self._corpora)  # checked before
        files = itertools.chain.from_iterable(corpus.files for corpus in corpora)
        return Corpus(files=tuple(files), reading=self._how)

    def note(self, *, files: int, skipped: int) -> None:
        """Take what tasks have read, instead of reading it here."""
        self.files, self._skipped = files, skipped

    @property
    def skipped(self) -> int:
        """Number of malformed documents skipped so far."""
        return self._skipped + getattr(self._current, "skipped", 0)

    def stored_bytes(self, text_bytes: int) -> int:
        """About how many bytes of the files hold the text encoded so far; reading is ahead."""
        read = self._bytes_read + getattr(self._current, "bytes_read", 0)
        return round(read * text_bytes / max(1, self._text_bytes))

    def _by_file(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        lines = self._reading.get("lines", False)
        separator = self._reading.get("separator")
        if self._text is not None:
            content = _input.argument_bytes(self._text)
            yield TEXT, _input.split(content, lines=lines, separator=separator)
        for corpus in self._corpora:
            if corpus is None and self._reading.get("json_lines"):
                yield _input.STDIN, open_corpus(_input.STDIN_FILE, self._how).documents()
            elif corpus is None:
                yield _input.STDIN, _input.stdin_documents(lines=lines, separator=separator)
            else:
                yield from corpus.by_file()

    def _counted(self, documents: Iterator[bytes]) -> Iterator[bytes]:
        for document in documents:
            self._text_bytes += len(document)
            yield document

    @contextlib.contextmanager
    def progress(
        self, what: str, *, beside_data: bool = False, in_tasks: bool = False
    ) -> Iterator[Callable[[int], None]]:
        """Show progress in stored bytes; yields a function of the text bytes encoded so far.

        If the work is done `in_tasks`, it is a function of the stored bytes.
        """
        corpora = [corpus for corpus in self._corpora if corpus is not None]
        is_known = self._text is None and len(corpora) == len(self._corpora)
        total = sum(corpus.total_bytes for corpus in corpora) if is_known else None
        is_compressed = total is not None and any(corpus.has_compressed for corpus in corpora)
        with _output.progress(
            what,
            total,
            "bytes",
            is_compressed=is_compressed,
            beside_data=beside_data,
        ) as advance:
            if in_tasks or total is None:
                yield advance
            else:
                yield lambda done: advance(self.stored_bytes(done))

    def say_skipped(self, documents: int | None = None) -> None:
        """Report skipped files, by extension, and skipped documents; by default those so far."""
        by_extension: Counter[str] = Counter()
        for corpus in self._corpora:
            if corpus is not None:
                by_extension.update(corpus.skipped_files)
        say_skipped_files(by_extension)
        documents = self.skipped if documents is None else documents
        if documents:
            _output.say(f"skipped {_output.amount(documents, 'document')}")


def say_resumed(stored_bytes: int) -> None:
    """Say how much earlier runs have done."""
    _output.say(f"resuming after {_output.size(stored_bytes)}")


def say_skipped_files(by_extension: Counter[str]) -> None:
    """Report the files in folders that were skipped because of their extension."""
    if not by_extension:
        return
    common = by_extension.most_common(_SHOWN_EXTENSIONS)
    names = [f"{name or 'no extension'} ({count:,})" for name, count in common]
    more = len(by_extension) - len(common)
    if more:
        names.append(f"{more:,} more")
    files = _output.amount(by_extension.total(), "file")
    _output.say(f"skipped {files} with other extensions: {', '.join(names)}; use --ext to choose")


def check_stdin(sources: Sequence[str], reading: ReadingOptions) -> None:
    """Refuse options that have no effect on standard input."""
    if _input.STDIN not in sources or reading.get("json_lines"):
        return
    on_error = reading.get("on_error", "fail")
    for flag, is_given in (
        ("--field", reading.get("field") is not None),
        (f"--on-error {on_error}", on_error != "fail"),
    ):
        if is_given:
            raise _errors.UsageError(
                f"{flag} has no effect on standard input (-), which is plain text without "
                f"--json-lines; pass that or the name of a file, or leave {flag} out"
            )
