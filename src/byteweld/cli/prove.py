"""`byteweld prove`: checks that byteweld gives the same ids as the real tiktoken or tokenizers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import byteweld
from byteweld import peers, proof
from byteweld._files import COMPRESSED_SUFFIXES
from byteweld.cli import DONE, FAILED, NO, _errors, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Argument, Option
from byteweld.cli._documents import Documents
from byteweld.render import around, visible

if TYPE_CHECKING:
    from byteweld.proof import Encoded

EXAMPLES = """
byteweld prove tokenizer.json books/
byteweld prove tokenizer.json chats.jsonl.zst --field content --special-text text
byteweld prove cl100k_base big.txt.gz --separator '<|endoftext|>'
byteweld prove r50k.tiktoken books/ --pattern gpt2 --no-special --peer tokenizers --threads 1
"""

_SHOWN_BEFORE = 3  # tokens around a difference
_SHOWN_AFTER = 5
_MARK = "▸"

TokenizerArgument = Annotated[
    str,
    Argument(metavar="TOKENIZER", help="A file, a folder, or the name of an encoding."),
]
PeerName = Annotated[
    str | None,
    Option(
        "--peer",
        metavar="NAME",
        help=f"The library to compare with: {' or '.join(peers.PEERS)}. Default: the one that "
        "reads the file's format, or tiktoken for the name of an encoding. A library that cannot "
        "read the file gets a copy in its own format, if that format can represent the tokenizer.",
        choices=peers.PEERS,
    ),
]


class _Ours(NamedTuple):
    """byteweld as one side of the proof."""

    tok: byteweld.Tokenizer
    threads: int | None
    specials: Any

    @property
    def name(self) -> str:
        return f"byteweld {byteweld.__version__}"

    def encode(self, texts: Sequence[bytes]) -> tuple[Encoded, float]:
        started = time.perf_counter()
        encoded = self.tok.encode_ragged(texts, num_threads=self.threads, **self.specials)
        return encoded, time.perf_counter() - started


class _Run(NamedTuple):
    """What the report is made from."""

    path: str
    ours: _Ours
    peer: peers.Peer
    proof: proof.Proof
    files: Documents


def run(
    tokenizer: TokenizerArgument,
    source: options.Sources,
    peer: PeerName = None,
    specials: options.Specials = options.Specials(),
    threads: options.Threads = None,
    json: options.Json = False,
    loading: options.Loading = options.Loading(),
    reading: options.Reading = options.Reading(),
) -> int:
    """Encode a corpus with byteweld and with the real tiktoken or tokenizers, and compare the ids.

    Every document is encoded by both. If any ids differ, the first difference is shown and the exit
    code is 1. A document that is not UTF-8, or on which the other library fails, stops the run with
    exit code 2; --on-error can skip or repair such documents.
    """
    tok = loading.load(tokenizer)
    names = [name for name in specials.allowed_special or () if name != "all"]
    if names:
        raise _errors.UsageError(f"--allowed-special is {names[0]!r}; it must be all")
    arguments = specials.arguments(())
    by_name = options.is_name(tokenizer)
    opened = peers.open_peer(
        None if by_name or Path(tokenizer).suffix in COMPRESSED_SUFFIXES else tokenizer,
        None if by_name else loading.format or byteweld.recognize(tokenizer),
        tok.vocab,
        library=peer or ("tiktoken" if by_name else None),  # type: ignore[arg-type]  # checked
        pattern=None if loading.pattern in (*byteweld.PATTERNS, "none") else loading.pattern,
        specials=arguments["allowed_special"] == "all",
        num_threads=threads,
    )
    ours = _Ours(tok, threads, arguments)
    files = Documents(source, reading)
    with files.progress("proving") as advance:
        found = proof.prove(
            ours,
            opened,
            _documents(files),
            skip_failures=reading.on_error == "skip",
            progress=advance,
        )
    return _report(_Run(tokenizer, ours, opened, found, files), json)


def _documents(files: Documents) -> Iterator[proof.Document]:
    for name, documents in files:
        for number, content in enumerate(documents, 1):
            yield proof.Document(name, number, content)


# ---------------------------------------------------------------------------- the report


def _report(seen: _Run, json: bool) -> int:
    found = seen.proof
    for failure in found.skipped:
        _output.say(f"skipped {_failure_words(failure)}")
    seen.files.say_skipped()
    if json:
        with _output.until_closed():
            _output.report(_to_dict(seen))
    if found.failure is not None:
        _output.say(
            f"byteweld: {_failure_words(found.failure)}; "
            "--on-error skip skips such documents, --on-error replace repairs invalid UTF-8"
        )
        return FAILED
    if found.difference is None and found.documents == 0:
        _output.say("byteweld: the corpus contains no documents, so nothing was compared")
        return FAILED
    if not json:
        with _output.until_closed():
            _output.lines(_lines(seen))
    return DONE if found.difference is None else NO


def _failure_words(failure: proof.Failure) -> str:
    document = f"{failure.document.source}: document {failure.document.number:,}"
    reason = " ".join(_errors.with_flags(failure.reason).split())
    return f"{document}: {failure.side} failed: {_output.shortened(reason, 200)}"


def _lines(seen: _Run) -> Iterator[str]:
    found = seen.proof
    same = f"{_output.amount(found.documents, 'document')}, {_output.amount(found.tokens, 'token')}"
    if found.difference is None:
        yield _output.styled(f"identical on {same}", "bold")
    else:
        yield from _difference_lines(seen, found.difference)
        yield f"identical before it: {same}"
    yield f"  {_output.size(found.bytes)} in {_output.amount(seen.files.files, 'file')}"
    names = (seen.ours.name, seen.peer.name)
    width = max(map(len, names))
    for name, seconds in zip(names, found.seconds, strict=True):
        copied = seen.peer.copied and name == seen.peer.name
        yield (
            f"  {name:<{width}}  {_output.seconds(seconds):>8}  "
            f"{_rate(found.bytes, seconds):>6.1f} MB/s"
            + ("  (using a copy in its own format)" if copied else "")
        )


def _rate(num_bytes: int, seconds: float) -> float:
    return num_bytes / seconds / 1e6 if seconds else 0.0


def _difference_lines(seen: _Run, difference: proof.Difference) -> Iterator[str]:
    document, token = difference.document, difference.token
    offset = _offset(seen.ours, difference)
    where = f"document {document.number:,}, byte {offset:,}, token {token:,}"
    yield _output.styled(f"different: {document.source}, {where}", "bold")
    before, after = around(document.content, offset, offset)
    yield f"  text      {visible(before)}{_MARK}{visible(after)}"
    tokens = seen.ours.tok.vocab.tokens
    for name, ids in zip(("byteweld", seen.peer.library), difference.ids, strict=True):
        start = max(0, token - _SHOWN_BEFORE)
        shown = [
            f"{_MARK if index == token else ''}{token_id} {_token_words(tokens.get(token_id))}"
            for index, token_id in enumerate(ids[start : token + _SHOWN_AFTER], start)
        ]
        if token >= len(ids):
            shown.append(f"{_MARK}end")
        yield f"  {name:<10}" + " | ".join(
            [*(["…"] if start else []), *shown, *(["…"] if token + _SHOWN_AFTER < len(ids) else [])]
        )


def _token_words(token: bytes | None) -> str:
    return "(no such token)" if token is None else _output.shortened(visible(token), 24)


def _offset(ours: _Ours, difference: proof.Difference) -> int:
    """The offset of the first token that differs."""
    _, offsets = ours.tok.encode_with_offsets(difference.document.content, **ours.specials)
    if difference.token < len(offsets):
        return offsets[difference.token][0]
    return len(difference.document.content)


def _to_dict(seen: _Run) -> dict[str, Any]:
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
        "identical": found.difference is None and failure is None and found.documents > 0,
        "documents": found.documents,
        "tokens": found.tokens,
        "bytes": found.bytes,
        "files": seen.files.files,
        "skipped_documents": seen.files.skipped + found.skipped_documents,
        "seconds": {"byteweld": found.seconds[0], "peer": found.seconds[1]},
        "difference": _difference_to_dict(seen, found.difference),
        "failure": None if failure is None else _failure_to_dict(failure),
    }


def _difference_to_dict(seen: _Run, difference: proof.Difference | None) -> dict[str, Any] | None:
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
