"""Encodes the documents of sources, block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from byteweld.dataset._manifest import SkipEntry, SourceEntry
from byteweld.sources import Sources
from byteweld.tokenizer import Tokenizer

# Finished sources, skipped records, and the number of all skipped records.
Events = tuple[Iterable[SourceEntry], Iterable[SkipEntry], int]


def encode_sources(
    sources: Sources,
    tok: Tokenizer,
    *,
    start: tuple[int, ...] | None,
    special_text: str,
    prefix: list[int],
    suffix: list[int],
    marks_empty: bool,
    num_threads: int | None,
    receive: Callable[..., object],
    progress: Callable[[int], object],
) -> Events:
    """Encode all documents from `start` on; `receive` gets blocks, events included, in order.

    Returns the events after the last block.
    """
    assert sources.corpus is not None
    corpus = sources.corpus
    names = [os.fspath(file) for file in corpus.files]

    def pass_on(*block: Any) -> None:
        receive(*block, (), (), 0)

    tok._encoder.encode_corpus(
        {
            "files": corpus.files,
            **corpus.engine_arguments(),
            "special_text": special_text,
            "prefix": prefix,
            "suffix": suffix,
            "marks_empty": marks_empty,
            "num_threads": num_threads,
        },
        pass_on,
        progress,
    )
    return [SourceEntry(name=n, size=None, xxh3_128=None, documents=0) for n in names], (), 0
