"""Proves in tasks that two encoders agree: each compares one slice of the corpus.

The result is that of `proof.prove` on the whole corpus: the first difference is the first one in
the order of the corpus, whichever is found first, and everything before it was compared.
"""

from __future__ import annotations

import functools
import os
import socket
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from byteweld import peers
from byteweld.corpus import Corpus
from byteweld.formats.vocab_merges import find_files
from byteweld.jobs import Runner
from byteweld.jobs._ordered import End, Files, Progress, continues, results_in_order
from byteweld.proof import Document, Proof, Side, Unencodable, add, prove
from byteweld.vocab import Vocabulary


class Proved(NamedTuple):
    """A proof, and what was read for it: files, and malformed documents that were skipped."""

    proof: Proof
    files: int
    skipped: int


def prove_corpus(
    runner: Runner,
    corpus: Corpus,
    ours: Side,
    theirs: Callable[[], Side],
    *,
    skip_failures: bool = False,
    facts: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    resumed: Progress | None = None,
) -> Proved:
    """Compare two encoders on a corpus, up to the first difference, in tasks of a runner.

    Both sides are picklable; `theirs`, such as a `WorkerPeer`, returns the other side in each task.
    `facts` are what the result depends on besides the corpus, for a work folder; `progress` and
    `resumed` are as in `results_in_order`.
    """
    names = (ours.name, theirs().name)
    threads = runner.threads_per_task
    task = functools.partial(_prove_slice, ours, theirs, names, skip_failures, threads)
    described = {"job": "prove", "names": names, "skip_failures": skip_failures, **(facts or {})}
    total = Proof()
    documents = skipped = 0  # documents: of the file so far
    for part, found in results_in_order(
        runner, corpus, task, tuple[Proof, int], described, progress=progress, resumed=resumed
    ):
        compared, malformed = found
        documents = documents if continues(part) else 0
        total = add(total, compared, functools.partial(_moved, documents, part.first_file, skipped))
        documents += compared.seen
        skipped += malformed
    end = total.end
    if end is not None:
        return Proved(total, end.file, end.skipped)
    return Proved(total, len(corpus.files), skipped)


def _moved(documents: int, files: int, skipped: int, found: Document) -> Document:
    """Return a document of a slice as one of the corpus, given what is before the slice."""
    return found._replace(
        number=found.number + documents, file=found.file + files, skipped=found.skipped + skipped
    )


def _prove_slice(
    ours: Side,
    open_theirs: Callable[[], Side],
    names: tuple[str, str],
    skip_failures: bool,
    num_threads: int | None,
    corpus: Corpus,
) -> Any:
    theirs = open_theirs()
    for side, name in zip((ours, theirs), names, strict=True):
        if side.name != name:
            raise RuntimeError(
                f"{socket.gethostname()} has {side.name}, but the proof was started with "
                f"{name}; every node needs the same version"
            )
    files = Files(corpus)
    documents = (
        Document(name, number, content, file, files.skipped + read.skipped)
        for file, (name, read) in enumerate(files, 1)
        for number, content in enumerate(read, 1)
    )
    num_threads = num_threads or os.cpu_count() or 1
    found = prove(ours, theirs, documents, skip_failures=skip_failures, num_threads=num_threads)
    found = replace(found, skipped=tuple(map(_without_content, found.skipped)))
    if found.failure is not None:
        found = replace(found, failure=_without_content(found.failure))
    return End((found, 0)) if found.is_over else (found, files.skipped)


def _without_content(failure: Unencodable) -> Unencodable:
    """Return a failure that is small, whatever the size of the document."""
    return failure._replace(document=failure.document._replace(content=b""))


# ---------------------------------------------------------------------- peers


class WorkerPeer:
    """A peer that each process opens for itself, once; the files that it reads go along.

    Args:
        opened: the peer, as opened by this process.
        path, format, vocab, pattern: as given to `open_peer` for it.
        num_threads: of each task.
    """

    def __init__(
        self,
        opened: peers.Peer,
        path: str | os.PathLike[str] | None,
        format: str | None,
        vocab: Vocabulary,
        *,
        pattern: str | None = None,
        num_threads: int | None = None,
    ) -> None:
        self._opened: peers.Peer | None = opened
        self._path: str | None = None  # in a folder with the files
        self._files: dict[str, bytes] = {}
        self._vocab = vocab
        self._options: dict[str, Any] = {
            "library": opened.library,
            "pattern": pattern,
            "specials": opened.specials,
            "num_threads": num_threads,
        }
        self._format = None
        if not opened.copied and path is not None:
            file = Path(path)
            self._format = format
            pair = find_files(file) if format == "gpt2" else None
            self._files = {one.name: one.read_bytes() for one in pair or (file,)}
            self._path = "" if file.is_dir() else file.name

    def __call__(self) -> peers.Peer:
        """Return the peer of this process."""
        if self._opened is None:
            with tempfile.TemporaryDirectory(prefix="byteweld-") as folder:
                for name, content in self._files.items():
                    (Path(folder) / name).write_bytes(content)
                path = None if self._path is None else Path(folder) / self._path
                self._opened = peers.open_peer(path, self._format, self._vocab, **self._options)
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}
