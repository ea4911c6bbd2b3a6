"""Estimates the size of a dataset, and the time to make it, from a sample of the corpus."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Final, NamedTuple

import byteweld.dataset._encoding as encoding
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
    stored = text = documents = tokens = 0
    started = time.perf_counter()
    is_exact = count == len(corpus.files)
    for file in chosen:
        part = dataclasses.replace(corpus, files=(file,))
        totals = [0, 0, 0]
        read = 0

        def receive(ids: Any, ends: Any, is_open: Any, num_bytes: int, *rest: Any) -> None:
            for at, more in enumerate((num_bytes, len(ends), len(ids))):
                totals[at] += more  # noqa: B023 (used within the loop)
            if totals[0] >= _MAX_TEXT_BYTES // count:  # noqa: B023
                raise _Enough

        def progress(done: int) -> None:
            nonlocal read
            read = done

        try:
            encoding.encode_sources(
                Sources(corpus=part),
                tok,
                start=None,
                special_text="text",
                prefix=plan.before,
                suffix=plan.after,
                marks_empty=plan.format.marks_empty,
                num_threads=num_threads,
                receive=receive,
                progress=progress,
            )
            read = part.total_bytes
        except _Enough:
            is_exact = False
        stored += max(read, 1)
        text += totals[0]
        documents += totals[1]
        tokens += totals[2]
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
