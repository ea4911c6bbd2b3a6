"""What `byteweld prove` found, as lines, as JSON, and as a report to keep."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import byteweld
from byteweld import peers, proof
from byteweld.cli import _command, _errors, _input, _output
from byteweld.cli._documents import Documents
from byteweld.corpus import File, describe, open_remote
from byteweld.markup import Html, element, facts, joined, more, section, table
from byteweld.render import around, visible

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


class Found(NamedTuple):
    """What was compared, and the result."""

    path: str
    ours: Ours
    peer: peers.Peer
    proof: proof.Proof
    files: Documents
    threads: int
    seconds: float

    @property
    def is_identical(self) -> bool:
        """Whether something was compared, and all of it was equal."""
        return not self.proof.is_over and self.proof.documents > 0


# ---------------------------------------------------------------------------- text


def lines(seen: Found) -> Iterator[str]:
    """The result as text."""
    found = seen.proof
    if found.difference is None:
        yield _output.styled(_verdict(seen), "bold")
    else:
        yield from _difference_lines(seen, found.difference)
        yield f"identical before it: {_amounts(found)}"
    yield f"  {_output.size(found.bytes)} in {_output.amount(seen.files.files, 'file')}"
    names = (seen.ours.name, seen.peer.name)
    width = max(map(len, names))
    per_thread = " per thread" if seen.threads > 1 else ""
    for name, seconds in zip(names, found.seconds, strict=True):
        copied = seen.peer.copied and name == seen.peer.name
        yield (
            f"  {name:<{width}}  {_output.seconds(seconds):>8}  "
            f"{_rate(found.bytes, seconds):>6.1f} MB/s{per_thread}"
            + ("  (using a copy in its own format)" if copied else "")
        )


def failure_words(failure: proof.Failure) -> str:
    """A document that one side could not encode, in one line."""
    document = f"{failure.document.source}: document {failure.document.number:,}"
    reason = " ".join(_errors.with_flags(failure.reason).split())
    return f"{document}: {failure.side} failed: {_output.shortened(reason, 200)}"


def _amounts(found: proof.Proof) -> str:
    return f"{_output.amount(found.documents, 'document')}, {_output.amount(found.tokens, 'token')}"


def _verdict(seen: Found) -> str:
    found = seen.proof
    if found.difference is not None:
        return f"different: {_place(seen, found.difference)}"
    if found.failure is not None:
        return f"not finished: {failure_words(found.failure)}"
    return f"identical on {_amounts(found)}" if found.documents else "nothing was compared"


def _place(seen: Found, difference: proof.Difference) -> str:
    document, offset = difference.document, _offset(seen.ours, difference)
    where = f"document {document.number:,}, byte {offset:,}, token {difference.token:,}"
    return f"{document.source}, {where}"


def _rate(num_bytes: int, seconds: float) -> float:
    return num_bytes / seconds / 1e6 if seconds else 0.0


def _difference_lines(seen: Found, difference: proof.Difference) -> Iterator[str]:
    yield _output.styled(_verdict(seen), "bold")
    yield from (f"  {name:<10}{words}" for name, words in _sides(seen, difference))


def _sides(seen: Found, difference: proof.Difference) -> Iterator[tuple[str, str]]:
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


# ---------------------------------------------------------------------------- JSON


def to_dict(seen: Found) -> dict[str, Any]:
    """The result as JSON."""
    found = seen.proof
    failure = found.failure
    return {
        "tokenizer": seen.path,
        "fingerprint": seen.ours.tok.vocab.fingerprint,
        "byteweld": byteweld.__version__,
        "peer": {
            "name": seen.peer.library,
            "version": seen.peer.version,
            "with_copy": seen.peer.copied,
        },
        "identical": seen.is_identical,
        "documents": found.documents,
        "tokens": found.tokens,
        "bytes": found.bytes,
        "files": seen.files.files,
        "skipped_documents": seen.files.skipped + found.skipped_documents,
        "threads": seen.threads,
        "elapsed_seconds": seen.seconds,
        "seconds": {"byteweld": found.seconds[0], "peer": found.seconds[1]},
        "difference": _difference_to_dict(seen, found.difference),
        "failure": None if failure is None else _failure_to_dict(failure),
    }


def _difference_to_dict(seen: Found, difference: proof.Difference | None) -> dict[str, Any] | None:
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

    def files(self) -> list[dict[str, Any]]:
        """Each file's path, size and SHA-256; for standard input, those of its documents."""
        return [
            {
                "path": _input.STDIN,
                "bytes": self._stdin_bytes,
                "sha256": self._stdin.hexdigest(),
            }
            if path is None
            else {"path": str(path), **_content(path, state)}
            for path, state in self._before
        ]


def _state(path: File) -> tuple[object, ...]:
    if isinstance(path, str):
        found = describe(str(path))
        return found.size, found.version
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _content(path: File, before: tuple[object, ...] | None) -> dict[str, Any]:
    """The size and SHA-256 of a file."""
    digest = hashlib.sha256()
    size = 0
    with open_remote(path) if isinstance(path, str) else path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    if _state(path) != before:
        raise byteweld.CorpusError(
            "the file changed during the proof, so its digest is not known; run the proof again",
            path=os.fspath(path),
        )
    return {"bytes": size, "sha256": digest.hexdigest()}


def to_keep(seen: Found, corpus: Corpus) -> dict[str, Any]:
    """The report: the result, what was compared, when and how."""
    return {
        "report": "byteweld prove",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": _command.command_line(),
        **to_dict(seen),
        "corpus": corpus.files(),
    }


def page(seen: Found, report: dict[str, Any]) -> Html:
    """The report as a page."""
    found = seen.proof
    answer = "yes" if seen.is_identical else "no"
    files = report["corpus"]
    rows = [
        [element("code", file["path"]), f"{file['bytes']:,}", element("code", file["sha256"])]
        for file in files[:_MAX_FILES]
    ]
    copy = " (using a copy in its own format)" if seen.peer.copied else ""
    sides = [] if found.difference is None else list(_sides(seen, found.difference))
    return joined(
        element("p", _verdict(seen), class_=f"answer {answer}"),
        section("First difference", facts((n, element("code", w)) for n, w in sides))
        if sides
        else None,
        facts(
            [
                ("tokenizer", seen.path),
                ("fingerprint", element("code", report["fingerprint"])),
                ("compared", f"{seen.ours.name} and {seen.peer.name}{copy}"),
                ("documents", f"{found.documents:,}, {report['skipped_documents']:,} skipped"),
                ("tokens", f"{found.tokens:,}"),
                ("text", _output.size(found.bytes)),
                ("time", f"{_output.seconds(seen.seconds)} on {seen.threads} threads"),
                ("date", report["date"]),
                ("command", element("code", report["command"])),
            ]
        ),
        section(
            "Corpus",
            table(["file", "bytes", "SHA-256"], rows, numbers=[1]),
            more(len(files) - _MAX_FILES, "file"),
        ),
    )
