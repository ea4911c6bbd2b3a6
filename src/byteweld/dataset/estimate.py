"""Estimates the size of a dataset, and the time to make it, from a sample of the corpus."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from byteweld.dataset._encoding import DocumentEncoding, Encoded
from byteweld.dataset._shard import LENGTH_BYTES
from byteweld.dataset.options import Plan
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

_MAX_FILES: Final = 16
_MAX_TEXT_BYTES: Final = 16 << 20


class Estimate(NamedTuple):
    """What a dataset will be, roughly; all but `files` and `source_bytes` extrapolate a sample."""

    files: int
    source_bytes: int
    sampled_bytes: int  # of text
    text_bytes: int
    documents: int
    tokens: int
    dataset_bytes: int
    seconds: float
    is_exact: bool  # the sample was the whole corpus


class _Enough(Exception):
    """The sample is large enough."""


def estimate(
    sources: Sources, tok: Tokenizer, plan: Plan, *, num_threads: int | None = None
) -> Estimate:
    """Encode the start of some files, evenly spaced, and extrapolate."""
    import numpy as np

    corpus = sources.corpus
    if corpus is None or sources.documents is not None:
        raise TypeError("an estimate needs files, which can be read again; documents cannot")
    count = min(len(corpus.files), _MAX_FILES)
    chosen = [corpus.files[len(corpus.files) * at // count] for at in range(count)]
    sample = _Sample()
    encoding = dataclasses.replace(DocumentEncoding.of(tok, plan), special_text="text")
    started = time.perf_counter()
    for file in chosen:
        part = Sources(corpus=dataclasses.replace(corpus, files=(file,)))
        _add(sample, part, encoding, _MAX_TEXT_BYTES // count, num_threads)
    seconds = time.perf_counter() - started
    is_exact = sample.is_whole and count == len(corpus.files)
    scale = 1.0 if is_exact else max(1.0, corpus.total_bytes / max(1, sample.stored_bytes))
    size = sample.tokens * np.dtype(plan.options.dtype).itemsize + sample.documents * LENGTH_BYTES
    return Estimate(
        files=len(corpus.files),
        source_bytes=corpus.total_bytes,
        sampled_bytes=sample.text_bytes,
        text_bytes=round(sample.text_bytes * scale),
        documents=round(sample.documents * scale),
        tokens=round(sample.tokens * scale),
        dataset_bytes=round(size * scale),
        seconds=seconds * scale,
        is_exact=is_exact,
    )


@dataclass
class _Sample(Encoded):
    """The start of some files."""

    stored_bytes: int = 0
    is_whole: bool = True


def _add(
    sample: _Sample, file: Sources, encoding: DocumentEncoding, limit: int, num_threads: int | None
) -> None:
    """Add the start of a file, about `limit` bytes of text."""
    most = sample.text_bytes + limit
    before = sample.stored_bytes

    def receive(
        ids: Any, ends: Any, is_open: bool, text_bytes: int, stored_bytes: int, *rest: Any
    ) -> None:
        sample.add(len(ids), len(ends), text_bytes, {})
        sample.stored_bytes = before + stored_bytes
        if sample.text_bytes >= most:
            raise _Enough

    try:
        encoding.encode(file, receive, num_threads=num_threads)
        sample.stored_bytes = before + (file.corpus.total_bytes if file.corpus is not None else 0)
    except _Enough:
        sample.is_whole = False
