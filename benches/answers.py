"""Right answers that were asked for once: digests of the truth's ids, kept in .cache/answers.json.

Asking tiktoken costs more than all the fast engines together. A key has all that the ids depend on:
the corpus, how it is cut into texts, the vocabulary, the pattern, and who was asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Texts that are the same however they are handed over.
_SAME_TEXTS = {"batch": "documents", "file": "documents"}
# Measures whose answers are other than ids.
_KINDS = {"decode_array": "text", "decode_list": "text", "count_tokens": "number"}


class Answers:
    """Digests by key, in a file."""

    def __init__(self, cache: Path) -> None:
        self._file = cache / "answers.json"

    def find(self, job: Mapping[str, Any], corpus_sha256: str, truth: str) -> str | None:
        """The digest of a job's right answer, if it was ever asked for."""
        return self._read().get(_key(job, corpus_sha256, truth))

    def keep(self, job: Mapping[str, Any], corpus_sha256: str, truth: str, digest: str) -> None:
        """Remember it."""
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
    shape = _SAME_TEXTS.get(job["shape"], job["shape"])
    kind = _KINDS.get(job["measure"], "ids")
    ranks = Path(job["rank_file"]).name
    pattern = hashlib.sha256((job["pattern"] or "").encode()).hexdigest()[:12]
    return "/".join([kind, str(shape), corpus_sha256[:16], ranks, pattern, truth])
