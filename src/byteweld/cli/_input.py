"""Input of verbs: standard input, files whole or by line, and text given as an argument.

All input is read byte for byte; nothing is stripped.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from byteweld._files import COMPRESSED_SUFFIXES
from byteweld.cli import _errors, _output
from byteweld.corpus import FOLDER_EXTENSIONS

STDIN = "-"
STDIN_FILE = "/dev/stdin"  # as a file, which the engine reads
_BLOCK_BYTES = 1 << 20
BATCH_BYTES = 8 << 20
# An argument that ends in one of these is taken for a file name.
_EXTENSIONS = frozenset(
    ".rst .csv .tsv .log .tex .py .rs .js .ts .c .h .cpp .java .go .sh .toml .yaml .yml "
    ".parquet .tiktoken".split()
).union(FOLDER_EXTENSIONS, COMPRESSED_SUFFIXES)


def sources(verb: str, given: Sequence[str] | None, text: str | None) -> list[str]:
    """The sources to read: those given, or standard input; none if --text is given."""
    if given and text is not None:
        raise _errors.UsageError(f"{verb} takes SOURCE or --text, not both")
    if given or text is not None:
        return list(given or ())
    if sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty():
        _output.say("reading standard input; press Ctrl-D to finish")
    return [STDIN]


def check_files(given: Sequence[str]) -> None:
    """Raise if a source is text that was meant for --text: several words, and not a file."""
    for source in given:
        if len(source.split()) > 1 and not _looks_like_path(source) and not _exists(source):
            raise _errors.UsageError(f"{source}: no such file; to use it as text, pass --text")


def _exists(source: str) -> bool:
    try:
        return Path(source).exists()
    except (OSError, ValueError):  # too long for a path, or with a NUL
        return False


def read(source: str) -> bytes:
    """Read the bytes of a file, or of standard input for `-`."""
    return _output.stdin().read() if source == STDIN else _path(source).read_bytes()


def read_lines(source: str) -> Iterator[bytes]:
    """Read lines lazily; each keeps its line ending."""
    if source == STDIN:
        yield from _output.stdin()
        return
    with _path(source).open("rb") as file:
        yield from file


def size(source: str) -> int | None:
    """The size of a file; None for standard input."""
    return None if source == STDIN else _path(source).stat().st_size


def _path(source: str) -> Path:
    if not source:  # Path("") would be the current folder
        raise FileNotFoundError("'': no such file; the name is empty")
    return Path(source)


def is_file(source: str, *, is_strict: bool = False) -> bool:
    """Whether a source is standard input or a file, rather than text.

    An argument that looks like a path must exist: a misspelled file name is never taken as text. If
    `is_strict`, neither is a single word that resembles the name of a file.
    """
    if source == STDIN:
        return True
    try:
        if Path(source).exists():
            return True
    except (OSError, ValueError):  # too long for a path, or with a NUL
        return False
    looks_like_path = _looks_like_path(source)
    if not looks_like_path and not (is_strict and len(source.split()) == 1):
        return False
    path = Path(source)
    try:
        near = _errors.nearest(path.name, [entry.name for entry in path.parent.iterdir()])
    except OSError:
        near = ""
    if not looks_like_path and not near:
        return False
    raise _errors.UsageError(f"{source}: no such file; to use it as text, pass --text{near}")


def _looks_like_path(text: str) -> bool:
    if Path(text).suffix.lower() in _EXTENSIONS:
        return True
    return re.fullmatch(r"~.*|[\w.+@-]*/[\w./+@-]*", text) is not None


def stdin_documents(*, lines: bool, separator: str | None) -> Iterator[bytes]:
    """Read standard input as one document, one per line, or those between separators."""
    yield from _documents(_output.stdin(), lines=lines, separator=separator)


def blocks(*, separator: str | None) -> Iterator[bytes]:
    """Read standard input block by block or, if there is a separator, document by document."""
    stream = _output.stdin()
    if separator is not None:
        yield from _documents(stream, lines=False, separator=separator)
        return
    while block := stream.read(_BLOCK_BYTES):
        yield block


def split(content: bytes, *, lines: bool, separator: str | None) -> Iterator[bytes]:
    """Split text given as an argument, in the same way as standard input."""
    yield from _documents(io.BytesIO(content), lines=lines, separator=separator)


def _documents(stream: BinaryIO, *, lines: bool, separator: str | None) -> Iterator[bytes]:
    if separator is not None:
        yield from _between(stream, argument_bytes(separator))
    elif lines:
        yield from stream
    else:
        yield stream.read()


def _between(stream: BinaryIO, separator: bytes) -> Iterator[bytes]:
    if not separator:
        raise ValueError("separator is empty; it must be at least one byte")
    rest = bytearray()
    searched = 0  # no separator starts before this offset
    while block := stream.read(_BLOCK_BYTES):
        rest += block
        start = 0
        while (end := rest.find(separator, searched)) >= 0:
            yield bytes(rest[start:end])
            start = searched = end + len(separator)
        del rest[:start]
        searched = max(0, len(rest) - len(separator) + 1)
    if rest:
        yield bytes(rest)


def argument_bytes(text: str) -> bytes:
    """The original bytes of an argument, even if they are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")
