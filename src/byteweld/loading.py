"""load(): a tokenizer from a file, and the compiled form of it that a folder may keep.

A compiled form is a vocabulary as the engine has it. It is found by what it was made of (the bytes
of the file and its sidecar, the options, this version), bears its own SHA-256, and is checked as
any vocabulary is. One that is damaged or foreign is passed over and made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from byteweld import _native, formats
from byteweld._files import write_atomic
from byteweld.errors import ByteweldError
from byteweld.formats._json import MAX_FILE_BYTES
from byteweld.tokenizer import Tokenizer
from byteweld.vocab import Traits, Vocabulary

SUFFIX: Final = ".byteweld"
MAX_KEPT: Final = 32  # files; the oldest go
_MAGIC: Final = b"byteweld compiled 1\n"
_DIGEST_BYTES: Final = 32


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Tokenizer:
    """Load a tokenizer from a file or folder of any format; the format is recognised by content.

    `options` are the format's own: `pattern` and `special_tokens` for a rank file, say. If the
    report of its training lies beside it, `tok.training` shows it; the report of another
    vocabulary is passed over.

    `cache` is a folder that keeps the vocabulary compiled, so that the next load of the same bytes
    with the same options is faster. It is made if it is not there, and holds at most 32 files, of
    some megabytes each. Only formats of one file are kept: rank files and tokenizer.json.
    """
    place = Path(path)
    if cache is None:
        return Tokenizer._loaded(formats.load(path, format=format, **options), place)
    kept = _place(place, Path(cache), format, options)
    vocab = None if kept is None else _read(kept)
    if vocab is not None:
        return Tokenizer._loaded(vocab, place, is_tried=True)
    tok = Tokenizer._loaded(formats.load(path, format=format, **options), place)
    # Not if the file was changed while it was read.
    if kept is not None and kept == _place(place, kept.parent, format, options):
        with contextlib.suppress(OSError):  # a folder that cannot be written keeps nothing
            _write(tok.vocab, kept)
    return tok


def _place(path: Path, folder: Path, format: str | None, options: dict[str, Any]) -> Path | None:
    """Return where the compiled form of a file is kept, or None if it cannot be."""
    try:
        # The order of special tokens counts: of several with one id, the first is decoded to.
        asked = json.dumps([_native.__version__, format, options])
        size = path.stat().st_size
        if size > MAX_FILE_BYTES or not path.is_file():
            return None
        data = path.read_bytes()
        beside = [
            file.read_bytes() if file.exists() else None for file in formats.files_beside(path)
        ]
    except (OSError, TypeError, ValueError):
        return None  # loading says what is wrong
    digest = hashlib.sha256(_MAGIC)
    for part in (asked.encode(), *beside, data):
        digest.update(b"none\n" if part is None else b"%d\n" % len(part))
        digest.update(part or b"")
    return folder / f"{digest.hexdigest()}{SUFFIX}"


def _write(vocab: Vocabulary, kept: Path) -> None:
    table = vocab._table
    if table is None:
        return
    head = vocab.traits() | {"makes_every_token": vocab._makes_every_token}
    payload = json.dumps(head).encode() + b"\n" + table.store()
    kept.parent.mkdir(parents=True, exist_ok=True)
    data = _MAGIC + hashlib.sha256(payload).digest() + payload
    write_atomic(kept, data, overwrite=True)
    _drop_oldest(kept.parent)


def _drop_oldest(folder: Path) -> None:
    files = [(file.stat().st_mtime_ns, file) for file in folder.glob(f"*{SUFFIX}")]
    for _, file in sorted(files, reverse=True)[MAX_KEPT:]:
        file.unlink(missing_ok=True)


def _read(kept: Path) -> Vocabulary | None:
    """Return the vocabulary of a compiled form; None if there is none, or it is not whole."""
    try:
        if kept.stat().st_size > MAX_FILE_BYTES:
            return None
        data = kept.read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST_BYTES
    digest = hashlib.sha256(memoryview(data)[start:]).digest()
    if data[:start] != _MAGIC + digest:
        return None
    try:
        end = data.index(b"\n", start)
        return _rebuild(json.loads(data[start:end]), data[end + 1 :])
    except (ByteweldError, ValueError, TypeError, LookupError):
        return None


def _rebuild(head: Any, stored: bytes) -> Vocabulary | None:
    table = _native.Table.restore(stored)
    names = {*(trait.name for trait in fields(Traits)), "makes_every_token"}
    if table is None or not isinstance(head, dict) or head.keys() != names:
        return None
    return Vocabulary._of_table(table, **head)
