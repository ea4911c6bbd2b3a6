"""Completes the manifest of a dataset with what its runs and tasks have noted."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from byteweld.dataset._encoding import DOCUMENTS, Encoded
from byteweld.dataset._manifest import MAX_LISTED_SKIPS, Manifest, SkipEntry, SourceEntry
from byteweld.dataset._shard import Split

Noted = Sequence[Encoded]  # what was encoded, in the order of the corpus
Digests = Mapping[
    int, tuple[int, str] | None
]  # sizes and digests of files of which tasks read parts


def complete(
    manifest: Manifest,
    sources: Sequence[Sequence[Any]],
    splits: Sequence[Split],
    noted: Noted,
    digests: Digests,
) -> Manifest:
    """Return a manifest that has all shards with its totals, skipped documents and sources."""
    totals: dict[str, dict[str, int]] = {}
    for split in splits:
        shards = manifest.shards_of(split)
        totals[split] = {
            "documents": sum(shard.ended for shard in shards),
            "tokens": sum(shard.tokens for shard in shards),
        }
    found: Counter[str] = Counter()
    specials: Counter[str] = Counter()
    for result in noted:
        found.update({name: getattr(result, name) for name in _SUMMED})
        specials.update(result.special_text)
    tokens = sum(total["tokens"] for total in totals.values())
    return dataclasses.replace(
        manifest,
        is_complete=True,
        documents=found["documents"],
        tokens=tokens,
        text_bytes=found["text_bytes"],
        splits=totals,
        special_text=dict(sorted(specials.items())),
        skipped_documents=found["skipped"],
        skipped=tuple(itertools.islice(_skips(sources, noted), MAX_LISTED_SKIPS)),
        dropped_tokens=found["tokens"] - tokens,
        sources=tuple(_sources(sources, noted, digests, found["documents"])),
    )


_SUMMED = ("documents", "tokens", "text_bytes", "skipped")


def _skips(sources: Sequence[Sequence[Any]], noted: Noted) -> Iterator[SkipEntry]:
    """Yield what was skipped, in order, with the lines of the files."""
    lines: Counter[int] = Counter()  # of the parts of each file before
    for result in noted:
        for file, line, row, offset, reason in result.skips:
            whole = None if line is None else line + lines[file]
            name = sources[file][0]
            yield SkipEntry(source=name, reason=reason, line=whole, row=row, offset=offset)
        if result.is_divided:
            for file, _, _, _, count in result.finished:
                lines[file] += count


def _sources(
    sources: Sequence[Sequence[Any]], noted: Noted, digests: Digests, num_documents: int
) -> Iterator[SourceEntry]:
    """Yield all sources; those that could not be read have no size and digest."""
    found: dict[int, tuple[int | None, str | None]] = {}
    documents: Counter[int] = Counter()
    for result in noted:
        for file, size, digest, count, _ in result.finished:
            documents[file] += count
            if digest is not None:
                found[file] = size, digest
            elif result.is_divided:
                found[file] = digests[file] or (None, None)
    if sources and list(sources[-1]) == [DOCUMENTS, None, None]:
        documents[len(sources) - 1] = num_documents - documents.total()
    for number, (name, *_) in enumerate(sources):
        size, digest = found.get(number, (None, None))
        yield SourceEntry(name=name, size=size, xxh3_128=digest, documents=documents[number])
