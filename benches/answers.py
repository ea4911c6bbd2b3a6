"""Cached correct answers: digests of the truth engine's ids, in .cache/answers.json.

Running tiktoken costs more than all the fast engines together. A key covers everything the ids
depend on: the corpus, how it is divided, the vocabulary, the pattern, and the truth engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Shapes with the same input strings. In older caches, `short` means up to 100 characters.
_SAME_SHAPE = {"batch": "documents", "file": "documents", "short": "short-bytes"}
# Measures whose answers are not ids.
_KINDS = {"decode_array": "text", "decode_list": "text", "count_tokens": "number"}


class Answers:
    """Digests by key, stored in a file."""

    def __init__(self, cache: Path) -> None:
        self._file = cache / "answers.json"

    def find(self, job: Mapping[str, Any], corpus_sha256: str, truth: str) -> str | None:
        """Return the digest of a job's correct answer, if it is known."""
        return self._read().get(_key(job, corpus_sha256, truth))

    def store(self, job: Mapping[str, Any], corpus_sha256: str, truth: str, digest: str) -> None:
        """Store a digest."""
        known = self._read() | {_key(job, corpus_sha256, truth): digest}
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(known, indent=0, sort_keys=True))
        part.replace(self._file)

    def _read(self) -> dict[str, str]:
        if not self._file.exists():
            return {}
        known: dict[str, str] = json.loads(self._file.read_text())
        return known


def _key(job: Mapping[str, Any], corpus_sha256: str, truth: str) -> str:
    shape = _SAME_SHAPE.get(job["shape"], job["shape"])
    kind = _KINDS.get(job["measure"], "ids")
    ranks = Path(job["rank_file"]).name
    pattern = hashlib.sha256((job["pattern"] or "").encode()).hexdigest()[:12]
    return "/".join([kind, str(shape), corpus_sha256[:16], ranks, pattern, truth])
