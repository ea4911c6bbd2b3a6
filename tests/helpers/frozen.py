"""Answers of peers, frozen in data/peer_answers.json: a peer that agreed once is not asked again.

A question is a vocabulary's file, the options and the texts. A new question, an answer that differs
from the frozen one, and `make test-long` ask the peer itself. To freeze answers to new questions:
`BYTEWELD_FREEZE=1 pytest -n 0 tests/differential`.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Iterable
from pathlib import Path

from tests.helpers.strategies import SHARE_OF_EXAMPLES

FILE = Path(__file__).parents[1] / "data" / "peer_answers.json"
ANSWERS: dict[str, str] = json.loads(FILE.read_text()) if FILE.exists() else {}


def digest(*parts: bytes | str | bool | list[int] | None) -> str:
    """Identifies a question or an answer by its parts."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, list):
            part = array("I", part).tobytes()
        elif not isinstance(part, bytes):
            part = json.dumps(part).encode()
        found.update(b"%d:" % len(part))
        found.update(part)
    return found.hexdigest()[:32]


def digest_texts(file: Path, texts: Iterable[bytes], *options: bool) -> str:
    return digest(hashlib.sha256(file.read_bytes()).digest(), *options, *texts)


def is_known(question: str, answer: str) -> bool:
    """Whether the peer gave this answer to this question before."""
    return SHARE_OF_EXAMPLES < 1 and ANSWERS.get(question) == answer


def freeze(question: str, answer: str) -> None:
    """Keep an answer that the peer has just given."""
    if os.environ.get("BYTEWELD_FREEZE"):
        ANSWERS[question] = answer
        FILE.write_text(json.dumps(dict(sorted(ANSWERS.items())), indent=0) + "\n")
