"""Input of verbs: standard input, files whole or by line, and text given as an argument.

All input is read byte for byte; nothing is stripped.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import stat
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from byteweld._files import COMPRESSED_SUFFIXES
from byteweld.cli import _errors, _output
from byteweld.corpus import FOLDER_EXTENSIONS, ReadingOptions

STDIN = "-"
_STDIN_FILE = "/dev/stdin"
BATCH_BYTES = 8 << 20
# An argument that ends in one of these is taken for a file name.
_EXTENSIONS = frozenset(
    ".rst .csv .tsv .log .tex .py .rs .js .ts .c .h .cpp .java .go .sh .toml .yaml .yml "
    ".parquet .tiktoken".split()
).union(FOLDER_EXTENSIONS, COMPRESSED_SUFFIXES)


def sources(
    verb: str, given: Sequence[str] | None, text: str | None, *, is_strict: bool = True
) -> list[str]:
    """The sources to read: those given, or standard input; none if --text is given.

    Raises if one is text rather than a path, and `is_strict`.
    """
    if given and text is not None:
        raise _errors.UsageError(f"{verb} takes SOURCE or --text, not both")
    for source in given or () if is_strict else ():
        # Several words, and not a file: text that was meant for --text.
        if len(source.split()) > 1 and not _looks_like_path(source) and not _exists(source):
            raise _errors.UsageError(f"{source}: no such file; to use it as text, pass --text")
    if given or text is not None:
        return list(given or ())
    if sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty():
        _output.say("reading standard input; press Ctrl-D to finish")
    return [STDIN]


def _exists(source: str) -> bool:
    try:
        return Path(source).exists()
    except (OSError, ValueError):  # too long for a path, or with a NUL
        return False


def stream(source: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """Open a file, or standard input for `-`."""
    if source == STDIN:
        return contextlib.nullcontext(_output.stdin())
    if not source:  # Path("") would be the current folder
        raise FileNotFoundError("'': no such file; the name is empty")
    return Path(source).open("rb")


def read(source: str) -> bytes:
    """Read the bytes of a file, or of standard input for `-`."""
    with stream(source) as file:
        return file.read()


def is_file(source: str, *, is_strict: bool = False) -> bool:
    """Whether a source is standard input or a file, rather than text.

    An argument that looks like a path must exist: a misspelled file name is never taken as text. If
    `is_strict`, neither is a single word that resembles the name of a file.
    """
    if source == STDIN or _exists(source):
        return True
    looks_like_path = _looks_like_path(source)
    if not looks_like_path and not (is_strict and len(source.split()) == 1):
        return False
    path = Path(source)
    try:
        near = _errors.nearest(path.name, [entry.name for entry in path.parent.iterdir()])
    except (OSError, ValueError):
        near = ""
    if not looks_like_path and not near:
        return False
    raise _errors.UsageError(f"{source}: no such file; to use it as text, pass --text{near}")


def _looks_like_path(text: str) -> bool:
    is_named = Path(text).suffix.lower() in _EXTENSIONS
    return is_named or re.fullmatch(r"~.*|[\w.+@-]*/[\w./+@-]*", text) is not None


def files(given: Sequence[str], reading: ReadingOptions) -> list[str]:
    """The sources as the engine reads them: standard input is a file, too."""
    if STDIN not in given:
        return list(given)
    if reading.get("field") is not None and not reading.get("json_lines"):
        raise _errors.UsageError(
            "--field has no effect on standard input (-), which is plain text without "
            "--json-lines; pass that or the name of a file, or leave --field out"
        )
    file = _stdin_file()
    return [file if source == STDIN else source for source in given]


def _stdin_file() -> str:
    """A path that reads standard input.

    Opening /dev/stdin fails for a socket, and reads a file from its start, whatever was read of it
    before. So these come through a pipe.
    """
    stream = _output.stdin()
    with contextlib.suppress(OSError):  # not a file of the system
        mode = os.fstat(stream.fileno()).st_mode
        is_at_start = stat.S_ISREG(mode) and stream.tell() == 0
        if stream.fileno() == 0 and (is_at_start or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
            return _STDIN_FILE
    read, write = os.pipe()

    def copy() -> None:
        with open(write, "wb") as pipe:  # noqa: PTH123 (a descriptor)
            shutil.copyfileobj(stream, pipe)

    threading.Thread(target=copy, daemon=True).start()
    return f"/dev/fd/{read}"


def split(content: bytes, reading: ReadingOptions) -> list[bytes]:
    """Split text given as an argument into documents, as a file is split."""
    if (separator := reading.get("separator")) is not None:
        documents = content.split(argument_bytes(separator))
        return documents if documents[-1] else documents[:-1]
    return list(io.BytesIO(content)) if reading.get("lines") else [content]


def argument_bytes(text: str) -> bytes:
    """The original bytes of an argument, even if they are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")
