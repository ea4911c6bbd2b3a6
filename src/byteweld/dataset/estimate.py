"""Estimates the size of a dataset, and the time to make it, from a sample of the corpus."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from byteweld.dataset._encoding import encode_blocks
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
    samples = []
    started = time.perf_counter()
    for file in chosen:
        part = Sources(corpus=dataclasses.replace(corpus, files=(file,)))
        samples.append(_sample(part, tok, plan, _MAX_TEXT_BYTES // count, num_threads))
    is_exact = count == len(corpus.files) and all(sample.is_whole for sample in samples)
    stored = sum(sample.stored_bytes for sample in samples)
    text = sum(sample.text_bytes for sample in samples)
    documents = sum(sample.documents for sample in samples)
    tokens = sum(sample.tokens for sample in samples)
    seconds = time.perf_counter() - started
    scale = 1.0 if is_exact else max(1.0, corpus.total_bytes / max(1, stored))
    size = tokens * np.dtype(plan.options.dtype).itemsize + documents * LENGTH_BYTES
    return Estimate(
        files=len(corpus.files),
        source_bytes=corpus.total_bytes,
        sampled_bytes=text,
        text_bytes=round(text * scale),
        documents=round(documents * scale),
        tokens=round(tokens * scale),
        dataset_bytes=round(size * scale),
        seconds=seconds * scale,
        is_exact=is_exact,
    )


@dataclass
class _Sample:
    """The start of a file."""

    text_bytes: int = 0
    documents: int = 0
    tokens: int = 0
    stored_bytes: int = 0
    is_whole: bool = True


def _sample(
    file: Sources, tok: Tokenizer, plan: Plan, limit: int, num_threads: int | None
) -> _Sample:
    found = _Sample()

    def receive(
        ids: Any, ends: Any, is_open: bool, text_bytes: int, stored_bytes: int, *rest: Any
    ) -> None:
        found.text_bytes += text_bytes
        found.documents += len(ends)
        found.tokens += len(ids)
        found.stored_bytes = stored_bytes
        if found.text_bytes >= limit:
            raise _Enough

    try:
        encode_blocks(
            file,
            tok,
            special_text="text",
            prefix=plan.before,
            suffix=plan.after,
            marks_empty=plan.format.marks_empty,
            num_threads=num_threads,
            receive=receive,
            progress=lambda: None,
        )
        found.stored_bytes = file.corpus.total_bytes if file.corpus is not None else 0
    except _Enough:
        found.is_whole = False
    return found
