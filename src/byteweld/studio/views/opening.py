"""What the page asks first; and opening one more tokenizer by its name."""

from __future__ import annotations

from typing import Any

import byteweld
from byteweld.samples import SENTENCES
from byteweld.studio.examples import CORPORA, TEXTS
from byteweld.studio.request import Asked, Refused
from byteweld.studio.session import Session
from byteweld.studio.views.training import recipes


def start(session: Session, asked: Asked) -> dict[str, Any]:
    """The open tokenizers, those that can be opened by name, and the examples."""
    return {
        "version": byteweld.__version__,
        "tokenizers": [opened.summary() for opened in session.opened],
        "names": byteweld.list_encoding_names(),
        "examples": [example._asdict() for example in TEXTS],
        "corpora": [corpus._asdict() for corpus in CORPORA],
        "recipes": recipes(),
        "sentences": dict(SENTENCES),
    }


def open_named(session: Session, asked: Asked) -> dict[str, Any]:
    """Open an encoding by name, from local files only: never a path, never the network."""
    name = asked.choice("name", None, byteweld.list_encoding_names())
    try:
        tok = byteweld.get_encoding(name)
    except (ValueError, OSError) as error:
        raise Refused(404, str(error)) from None
    place = session.add(tok, name)
    return {"place": place, "tokenizers": [opened.summary() for opened in session.opened]}


def companion(session: Session, asked: Asked) -> dict[str, Any]:
    """Where only one tokenizer is open, make another to compare it with."""
    if len(session.opened) == 1:
        first = session.opened[0]
        session.add(*_companion(first.tok, first.name))
    return {"tokenizers": [opened.summary() for opened in session.opened]}


def _companion(tok: byteweld.Tokenizer, name: str) -> tuple[byteweld.Tokenizer, str]:
    """The same training at an eighth of its size, or with a quarter of its merges where that would
    be none; without a training, the bytes alone."""
    training = tok.training
    if training is not None and training.merges_learned:
        base = len(tok) - training.merges_learned
        eighth = len(tok) // 8
        smaller = tok.cut(eighth if eighth > base else base + training.merges_learned // 4)
        return smaller, f"{name} at {len(smaller):,}"
    bytes_only = {byte: bytes([byte]) for byte in range(256)}
    return byteweld.Tokenizer(byteweld.Vocabulary(bytes_only)), "bytes"
