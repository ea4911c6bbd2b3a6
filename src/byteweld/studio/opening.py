"""The first request of the page, and opening tokenizers by name, from a file or to compare.

Nothing here connects to a network: vocabularies that are not on this machine are listed with the
command that downloads them, for the user to run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import byteweld
from byteweld.encodings import find_encodings
from byteweld.known_encodings import FETCHABLE
from byteweld.samples import SENTENCES
from byteweld.studio.examples import CORPORA, FILES, TEXTS, recipes
from byteweld.studio.request import Refused, Request
from byteweld.studio.session import Session

MAX_FILE_BYTES = 64 << 20
_MAX_NAME = 80


def start(session: Session, fields: Request) -> dict[str, Any]:
    """Return the view to open, the open tokenizers, the names of others, and the examples."""
    names = [found.name for found in find_encodings()]
    return {
        "tokenizers": session.summaries(),
        "names": names,
        "missing": [
            {"name": name, "command": f"byteweld fetch {name}"}
            for name in FETCHABLE
            if name not in names
        ],
        "examples": [example._asdict() for example in TEXTS],
        "corpora": [corpus._asdict() for corpus in CORPORA],
        "given_corpus": session.corpus.name if session.corpus else None,
        "files": [corpus._asdict() for corpus in FILES],
        "first_view": session.first_view,
        "recipes": recipes(),
        "sentences": dict(SENTENCES),
    }


def open_named(session: Session, fields: Request) -> dict[str, Any]:
    """Open an encoding by name, from local files only: never a path, never the network."""
    known = dict.fromkeys(
        [*(found.name for found in find_encodings()), *byteweld.list_encoding_names(), *FETCHABLE]
    )
    name = fields.choice("name", None, list(known))
    try:
        tok = byteweld.get_encoding(name)
    except (ValueError, OSError) as error:
        raise Refused(404, str(error)) from None
    return {"index": session.add(tok, name), "tokenizers": session.summaries()}


def open_file(session: Session, content: bytes, given_name: str) -> dict[str, Any]:
    """Open a tokenizer from a file's content.

    The name is only displayed. It never becomes a path, except for the suffix that identifies some
    formats.
    """
    name = unquote(given_name)[:_MAX_NAME].strip() or "tokenizer"
    suffix = ".tiktoken" if name.endswith(".tiktoken") else ".json"
    with tempfile.TemporaryDirectory(prefix="byteweld-studio-") as folder:
        path = Path(folder) / f"tokenizer{suffix}"
        path.write_bytes(content)
        try:
            tok = byteweld.load(path)
        except (ValueError, TypeError, OSError) as error:
            message = str(error).replace(str(path), name).replace(folder, "")
            raise Refused(400, message) from None
    index = session.add(tok, name.removesuffix(".json"))
    return {"index": index, "tokenizers": session.summaries()}


def companion(session: Session, fields: Request) -> dict[str, Any]:
    """Open a second tokenizer to compare with, if only one is open.

    It is smaller: an eighth of the size or, if that is too small, a quarter of the merges; without
    a training report, only the 256 bytes.
    """
    if len(session.opened) == 1:
        first = session.opened[0]
        tok, training = first.tok, first.tok.training
        if training is not None and training.merges_learned:
            base, eighth = len(tok) - training.merges_learned, len(tok) // 8
            smaller = tok.cut(eighth if eighth > base else base + training.merges_learned // 4)
            session.add(smaller, f"{first.name} at {len(smaller):,}")
        else:
            bytes_only = byteweld.Vocabulary({byte: bytes([byte]) for byte in range(256)})
            session.add(byteweld.Tokenizer(bytes_only), "bytes")
    return {"tokenizers": session.summaries()}
