"""What `byteweld prove` found, as lines, as JSON, and as a report to keep."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import byteweld
from byteweld import peers, proof
from byteweld._speed import speed
from byteweld.cli import _command, _errors, _input, _output
from byteweld.cli._documents import Documents
from byteweld.corpus import File, describe, open_remote
from byteweld.jobs import Runner
from byteweld.markup import Html
from byteweld.render import around, visible
from byteweld.report import (
    Code,
    Displayable,
    Facts,
    Part,
    Report,
    Section,
    Table,
    Text,
    Words,
    text_of,
)

if TYPE_CHECKING:
    from byteweld.proof import Encoded

_SHOWN_BEFORE = 3  # tokens around a difference
_SHOWN_AFTER = 5
_MARK = "▸"
_BLOCK_BYTES = 1 << 20
_MAX_FILES = 200  # on the page; the JSON report has all


class Ours(NamedTuple):
    """byteweld as one side of the proof; each call runs on the caller's thread."""

    tok: byteweld.Tokenizer
    specials: Any

    @property
    def name(self) -> str:
        return f"byteweld {byteweld.__version__}"

    def encode(self, texts: Sequence[bytes]) -> tuple[Encoded, float]:
        started = time.perf_counter()
        encoded = self.tok.encode_ragged(texts, num_threads=1, **self.specials)
        return encoded, time.perf_counter() - started


@dataclass(frozen=True, repr=False)
class Proved(Displayable):
    """What was compared, and the result."""

    path: str
    ours: Ours
    peer: peers.Peer
    proof: proof.Proof
    files: Documents
    threads: int  # of each task, if there are tasks
    seconds: float
    runner: str = "local"

    @property
    def is_identical(self) -> bool:
        """Whether something was compared, and all of it was equal."""
        return not self.proof.is_over and self.proof.documents > 0

    @property
    def num_files(self) -> int:
        """Number of files up to the document that stopped it."""
        end = self.proof.end
        return self.files.files if end is None else end.file

    @property
    def num_malformed(self) -> int:
        """Number of malformed documents that were skipped, up to the one that stopped it."""
        end = self.proof.end
        return self.files.skipped if end is None else end.skipped

    def report(self) -> Report:
        """Return the verdict, the difference if there is one, and the speeds."""
        found = self.proof
        names = (self.ours.name, self.peer.name)
        per_thread = " per thread" if self.threads > 1 or self.runner != "local" else ""
        rows: list[list[Words]] = []
        for name, seconds in zip(names, found.seconds, strict=True):
            copied = self.peer.copied and name == self.peer.name
            rate = speed(found.bytes, seconds)
            rows.append(
                [
                    name,
                    _output.seconds(seconds),
                    "" if rate is None else f"{rate}{per_thread}",
                    "(using a copy in its own format)" if copied else "",
                ]
            )
        table = Table(("", "time", "speed", ""), rows, left=(0, 3), name=0, has_heads=False)
        amounts = f"{_output.size(found.bytes)} in {_output.amount(self.num_files, 'file')}"
        difference: list[Part] = []
        if found.difference is not None:
            sides: list[tuple[str, Words]] = list(_sides(self, found.difference))
            difference = [Facts(sides), Text([f"identical before it: {_amounts(found)}"])]
        return Report(_verdict(self), *difference, Text([amounts]), table)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-serializable values."""
        found = self.proof
        failure = found.failure
        return {
            "tokenizer": self.path,
            "fingerprint": self.ours.tok.vocab.fingerprint,
            "byteweld": byteweld.__version__,
            "peer": {
                "name": self.peer.library,
                "version": self.peer.version,
                "with_copy": self.peer.copied,
            },
            "identical": self.is_identical,
            "documents": found.documents,
            "tokens": found.tokens,
            "bytes": found.bytes,
            "files": self.num_files,
            "skipped_documents": self.num_malformed + found.skipped_documents,
            "runner": self.runner,
            "threads": self.threads,
            "elapsed_seconds": self.seconds,
            "seconds": {"byteweld": found.seconds[0], "peer": found.seconds[1]},
            "difference": _difference_to_dict(self, found.difference),
            "failure": None if failure is None else _failure_to_dict(failure),
        }


def failure_words(failure: proof.Failure) -> str:
    """A document that one side could not encode, in one line."""
    document = f"{failure.document.source}: document {failure.document.number:,}"
    reason = " ".join(_errors.with_flags(failure.reason).split())
    return f"{document}: {failure.side} failed: {_output.shortened(reason, 200)}"


def _amounts(found: proof.Proof) -> str:
    return f"{_output.amount(found.documents, 'document')}, {_output.amount(found.tokens, 'token')}"


def _verdict(seen: Proved) -> str:
    found = seen.proof
    if found.difference is not None:
        return f"different: {_place(seen, found.difference)}"
    if found.failure is not None:
        return f"not finished: {failure_words(found.failure)}"
    return f"identical on {_amounts(found)}" if found.documents else "nothing was compared"


def _place(seen: Proved, difference: proof.Difference) -> str:
    document, offset = difference.document, _offset(seen.ours, difference)
    where = f"document {document.number:,}, byte {offset:,}, token {difference.token:,}"
    return f"{document.source}, {where}"


def _sides(seen: Proved, difference: proof.Difference) -> Iterator[tuple[str, Words]]:
    """The text around a difference, and the tokens of both sides, each with its name."""
    offset, token = _offset(seen.ours, difference), difference.token
    before, after = around(difference.document.content, offset, offset)
    yield "text", f"{visible(before)}{_MARK}{visible(after)}"
    tokens = seen.ours.tok.vocab.tokens
    for name, ids in zip(("byteweld", seen.peer.library), difference.ids, strict=True):
        start = max(0, token - _SHOWN_BEFORE)
        shown = [
            f"{_MARK if index == token else ''}{token_id} {_token_words(tokens.get(token_id))}"
            for index, token_id in enumerate(ids[start : token + _SHOWN_AFTER], start)
        ]
        if token >= len(ids):
            shown.append(f"{_MARK}end")
        rest = ["…"] if token + _SHOWN_AFTER < len(ids) else []
        yield name, " | ".join([*(["…"] if start else []), *shown, *rest])


def _token_words(token: bytes | None) -> str:
    return "(no such token)" if token is None else _output.shortened(visible(token), 24)


def _offset(ours: Ours, difference: proof.Difference) -> int:
    """The offset of the first token that differs."""
    _, offsets = ours.tok.encode_with_offsets(difference.document.content, **ours.specials)
    if difference.token < len(offsets):
        return offsets[difference.token][0]
    return len(difference.document.content)


def _difference_to_dict(seen: Proved, difference: proof.Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    offset = _offset(seen.ours, difference)
    before, after = around(difference.document.content, offset, offset)
    some = slice(max(0, difference.token - _SHOWN_BEFORE), difference.token + _SHOWN_AFTER)
    ours, theirs = difference.ids
    return {
        "source": difference.document.source,
        "document": difference.document.number,
        "byte": offset,
        "token": difference.token,
        "text_before": before.decode(errors="replace"),
        "text_after": after.decode(errors="replace"),
        "first_token_shown": some.start,
        "byteweld": ours[some],
        "peer": theirs[some],
    }


def _failure_to_dict(failure: proof.Failure) -> dict[str, Any]:
    return {
        "side": failure.side,
        "source": failure.document.source,
        "document": failure.document.number,
        "reason": failure.reason,
    }


# ---------------------------------------------------------------------------- to keep


class Corpus:
    """The files of a proof, with sizes and digests; made before it, to notice later changes."""

    def __init__(self, files: Documents) -> None:
        self._before = [(path, None if path is None else _state(path)) for path in files.paths]
        self._stdin = hashlib.sha256()
        self._stdin_bytes = 0

    def read(self, document: proof.Document) -> None:
        """Take a document that was read; standard input cannot be read again."""
        if document.source == _input.STDIN:
            self._stdin.update(document.content)
            self._stdin_bytes += len(document.content)

    def files(self, tasks: Runner | None) -> list[dict[str, Any]]:
        """Each file's path, size and SHA-256; for standard input, those of its documents."""
        found: list[dict[str, Any]] = [
            {
                "path": _input.STDIN,
                "bytes": self._stdin_bytes,
                "sha256": self._stdin.hexdigest(),
            }
        ] * len(self._before)
        paths = [_Numbered(n, path) for n, (path, _) in enumerate(self._before) if path is not None]
        contents = map(_content, paths) if tasks is None else tasks.map_unordered(_content, paths)
        for (number, path), size, sha256 in contents:
            if _state(path) != self._before[number][1]:
                raise byteweld.CorpusError(
                    "the file changed during the proof, so its digest is not known; run the proof "
                    "again",
                    path=os.fspath(path),
                )
            found[number] = {"path": str(path), "bytes": size, "sha256": sha256}
        return found


class _Numbered(NamedTuple):
    """A file with its index in the corpus."""

    number: int
    path: File

    def __str__(self) -> str:
        return str(self.path)


def _state(path: File) -> tuple[object, ...]:
    if isinstance(path, str):
        found = describe(str(path))
        return found.size, found.version
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _content(item: _Numbered) -> tuple[_Numbered, int, str]:
    """The size and SHA-256 of a file."""
    path = item.path
    digest = hashlib.sha256()
    size = 0
    with open_remote(path) if isinstance(path, str) else path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return item, size, digest.hexdigest()


def to_keep(seen: Proved, files: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: the result, what was compared, when and how."""
    return {
        "report": "byteweld prove",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": _command.command_line(),
        **seen.to_dict(),
        "corpus": files,
    }


def _threads(seen: Proved) -> str:
    tasks = "" if seen.runner == "local" else f" of each task on {seen.runner}"
    return f"{seen.threads} threads{tasks}"


def page(seen: Proved, report: dict[str, Any]) -> Html:
    """The report as a page."""
    found = seen.proof
    rows: list[list[Words]] = [
        [Code(file["path"]), file["bytes"], Code(file["sha256"])] for file in report["corpus"]
    ]
    copy = " (using a copy in its own format)" if seen.peer.copied else ""
    sides = [] if found.difference is None else list(_sides(seen, found.difference))
    return Report(
        _verdict(seen),
        Section("first difference", Facts([(name, [Code(text_of(w))]) for name, w in sides]))
        if sides
        else None,
        Facts(
            [
                ("tokenizer", seen.path),
                ("fingerprint", Code(report["fingerprint"])),
                ("compared", f"{seen.ours.name} and {seen.peer.name}{copy}"),
                ("documents", f"{found.documents:,}, {report['skipped_documents']:,} skipped"),
                ("tokens", found.tokens),
                ("text", _output.size(found.bytes)),
                ("time", f"{_output.seconds(seen.seconds)} on {_threads(seen)}"),
                ("date", report["date"]),
                ("command", Code(report["command"])),
            ]
        ),
        Section(
            "corpus",
            Table(
                ("file", "bytes", "SHA-256"), rows, "file", left=(0, 2), name=0, shown=_MAX_FILES
            ),
        ),
        kind="answer yes" if seen.is_identical else "answer no",
    ).html()
