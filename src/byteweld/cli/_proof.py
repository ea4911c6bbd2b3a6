"""What `byteweld prove` found, as lines, as JSON, and as a report to keep."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import byteweld
from byteweld import peers, proof
from byteweld._amounts import speed
from byteweld.cli import _command, _errors, _input, _output
from byteweld.corpus import File, describe, open_remote
from byteweld.jobs import Runner
from byteweld.render import around, visible
from byteweld.report import (
    Code,
    Displayable,
    Facts,
    InText,
    OnPage,
    Part,
    Report,
    Section,
    Table,
    Text,
    Words,
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
class Result(Displayable):
    """What was compared, and the result; `kept` is what is written of it to keep, for a page."""

    path: str
    ours: Ours
    peer: peers.Peer
    proof: proof.Proof
    files: int  # up to the document that stopped it
    skipped: int  # malformed documents, up to that one
    threads: int  # of each task, if there are tasks
    seconds: float
    runner: str = "local"
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def is_identical(self) -> bool:
        """Whether something was compared, and all of it was equal."""
        return not self.proof.is_over and self.proof.documents > 0

    def report(self) -> Report:
        """Return the verdict, the difference if there is one, and the speeds."""
        found, difference = self.proof, self.proof.difference
        sides = [] if difference is None else list(_sides(self, difference))
        coded: list[tuple[str, Words]] = [(name, Code(words)) for name, words in sides]
        text = f"{_output.size(found.bytes)} in {_output.amount(self.files, 'file')}"
        before = f"identical before it: {_amounts(found)}"
        return Report(
            _verdict(self),
            InText(Facts(sides), Text([before])) if sides else None,
            InText(Text([text]), self._speeds()),
            OnPage(Section("first difference", Facts(coded))) if sides else None,
            *self._kept(),
            kind="answer yes" if self.is_identical else "answer no",
        )

    def _speeds(self) -> Table:
        per_thread = " per thread" if self.threads > 1 or self.runner != "local" else ""
        rows: list[list[Words]] = []
        names = ((self.ours.name, ""), (self.peer.name, self._copy))
        for (name, copy), seconds in zip(names, self.proof.seconds, strict=True):
            rate = speed(self.proof.bytes, seconds)
            pace = "" if rate is None else f"{rate}{per_thread}"
            rows.append([name, _output.seconds(seconds), pace, copy])
        return Table(("", "time", "speed", ""), rows, left=(0, 3), name=0, has_heads=False)

    def _kept(self) -> Iterator[Part]:
        """Yield what only a page to keep has."""
        if not self.kept:
            return
        found, kept = self.proof, self.kept
        tasks = "" if self.runner == "local" else f" of each task on {self.runner}"
        threads = f"{self.threads} threads{tasks}"
        facts: list[tuple[str, Words]] = [
            ("tokenizer", self.path),
            ("fingerprint", Code(kept["fingerprint"])),
            ("compared", f"{self.ours.name} and {self.peer.name} {self._copy}".rstrip()),
            ("documents", f"{found.documents:,}, {kept['skipped_documents']:,} skipped"),
            ("tokens", found.tokens),
            ("text", _output.size(found.bytes)),
            ("time", f"{_output.seconds(self.seconds)} on {threads}"),
            ("date", kept["date"]),
            ("command", Code(kept["command"])),
        ]
        rows: list[list[Words]] = [
            [Code(file["path"]), file["bytes"], Code(file["sha256"])] for file in kept["corpus"]
        ]
        heads = ("file", "bytes", "SHA-256")
        table = Table(heads, rows, "file", left=(0, 2), name=0, shown=_MAX_FILES)
        yield OnPage(Facts(facts), Section("corpus", table))

    @property
    def _copy(self) -> str:
        return "(using a copy in its own format)" if self.peer.copied else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-serializable values."""
        found, failure = self.proof, self.proof.failure
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
            "files": self.files,
            "skipped_documents": self.skipped + found.skipped_documents,
            "runner": self.runner,
            "threads": self.threads,
            "elapsed_seconds": self.seconds,
            "seconds": dict(zip(("byteweld", "peer"), found.seconds, strict=True)),
            "difference": _difference_to_dict(self, found.difference),
            "failure": None
            if failure is None
            else {
                "side": failure.side,
                "source": failure.document.source,
                "document": failure.document.number,
                "reason": failure.reason,
            },
        }

    def to_keep(self, files: list[dict[str, Any]]) -> Result:
        """Return the result with the report to keep: what was compared, when and how."""
        kept = {
            "report": "byteweld prove",
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": _command.command_line(),
            **self.to_dict(),
            "corpus": files,
        }
        return replace(self, kept=kept)


def failure_words(failure: proof.Unencodable) -> str:
    """A document that one side could not encode, in one line."""
    document = f"{failure.document.source}: document {failure.document.number:,}"
    reason = " ".join(_errors.with_flags(failure.reason).split())
    return f"{document}: {failure.side} failed: {_output.shortened(reason, 200)}"


def _amounts(found: proof.Proof) -> str:
    return f"{_output.amount(found.documents, 'document')}, {_output.amount(found.tokens, 'token')}"


def _verdict(seen: Result) -> str:
    found = seen.proof
    if (difference := found.difference) is not None:
        document, offset = difference.document, _offset(seen.ours, difference)
        where = f"document {document.number:,}, byte {offset:,}, token {difference.token:,}"
        return f"different: {document.source}, {where}"
    if found.failure is not None:
        return f"not finished: {failure_words(found.failure)}"
    return f"identical on {_amounts(found)}" if found.documents else "nothing was compared"


def _sides(seen: Result, difference: proof.Mismatch) -> Iterator[tuple[str, str]]:
    """The text around a difference, and the tokens of both sides, each with its name."""
    offset, token = _offset(seen.ours, difference), difference.token
    before, after = around(difference.document.content, offset, offset)
    yield "text", f"{visible(before)}{_MARK}{visible(after)}"
    tokens, some = seen.ours.tok.vocab.tokens, _window(difference)

    def words(token_id: int) -> str:
        found = tokens.get(token_id)
        return "(no such token)" if found is None else _output.shortened(visible(found), 24)

    for name, ids in zip(("byteweld", seen.peer.library), difference.ids, strict=True):
        shown = [f"{token_id} {words(token_id)}" for token_id in ids[some]]
        shown += ["end"] if token >= len(ids) else []
        shown[token - some.start] = _MARK + shown[token - some.start]
        rest = ["…"] if some.stop < len(ids) else []
        yield name, " | ".join([*(["…"] if some.start else []), *shown, *rest])


def _window(difference: proof.Mismatch) -> slice:
    """The tokens to show: the first one that differs, and some around it."""
    return slice(max(0, difference.token - _SHOWN_BEFORE), difference.token + _SHOWN_AFTER)


def _offset(ours: Ours, difference: proof.Mismatch) -> int:
    """The offset of the first token that differs."""
    _, offsets = ours.tok.encode_with_offsets(difference.document.content, **ours.specials)
    if difference.token < len(offsets):
        return offsets[difference.token][0]
    return len(difference.document.content)


def _difference_to_dict(seen: Result, difference: proof.Mismatch | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    offset, some = _offset(seen.ours, difference), _window(difference)
    before, after = around(difference.document.content, offset, offset)
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


class Digests:
    """Sizes and digests of the files of a proof; made before it, to notice later changes.

    A path that is None is standard input.
    """

    def __init__(self, paths: Sequence[File | None]) -> None:
        self._paths = paths
        self._before = {path: _state(path) for path in paths if path is not None}
        self._stdin = hashlib.sha256()
        self._stdin_bytes = 0

    def read(self, document: proof.Document) -> None:
        """Take a document that was read; standard input cannot be read again."""
        if document.source == _input.STDIN:
            self._stdin.update(document.content)
            self._stdin_bytes += len(document.content)

    def files(self, tasks: Runner | None) -> list[dict[str, Any]]:
        """Each file's path, size and SHA-256; for standard input, those of its documents."""
        digest = self._stdin.hexdigest()
        stdin = {"path": _input.STDIN, "bytes": self._stdin_bytes, "sha256": digest}
        found: dict[File | None, dict[str, Any]] = {None: stdin}
        each = map if tasks is None else tasks.map_unordered
        contents: Iterator[tuple[File, int, str]] = each(_content, self._before)
        for path, size, sha256 in contents:
            if _state(path) != self._before[path]:
                raise byteweld.CorpusError(
                    "the file changed during the proof, so its digest is not known; run the proof "
                    "again",
                    path=os.fspath(path),
                )
            found[path] = {"path": str(path), "bytes": size, "sha256": sha256}
        return [found[path] for path in self._paths]


def _state(path: File) -> tuple[object, ...]:
    if isinstance(path, str):
        found = describe(str(path))
        return found.size, found.version
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _content(path: File) -> tuple[File, int, str]:
    """The size and SHA-256 of a file, after its path."""
    digest = hashlib.sha256()
    size = 0
    with open_remote(path) if isinstance(path, str) else path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return path, size, digest.hexdigest()
