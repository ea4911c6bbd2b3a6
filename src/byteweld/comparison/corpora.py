"""Two tokenizers on one corpus: the same ids or not, where they part, what each costs, how fast.

Documents go through both in batches; memory is that of one batch. Pure: nothing is printed or read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from byteweld.comparison import align
from byteweld.evaluation.corpora import Files, Measure, batches
from byteweld.evaluation.words import WordRate, add_rates, words
from byteweld.render import around
from byteweld.tokenizer import Specials, Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from byteweld.markup import Html

MAX_DIFFERENCES = 10
_MAX_SHOWN_BYTES = 400  # of a span, and so of its tokens

Kind = Literal["cut", "ids"]
Pair = tuple[int, int]


class Lane(NamedTuple):
    """The tokens of one tokenizer in a differing span: ids, and the text of each."""

    ids: tuple[int, ...]
    texts: tuple[bytes, ...]


class Difference(NamedTuple):
    """A span that the two encode differently, at whose ends both have a boundary.

    `kind` is "cut" where the tokens' edges differ, "ids" where only the ids do. A long span is
    shown up to a limit: then `is_whole` is False.
    """

    source: str
    document: int  # its number in the file, from 1
    start: int
    end: int
    kind: Kind
    before: bytes
    after: bytes
    lanes: tuple[Lane, Lane]
    is_whole: bool


class FileComparison(NamedTuple):
    """One file: what it costs each tokenizer, and how much differs."""

    name: str
    documents: int
    bytes: int
    tokens: Pair
    differing_documents: int

    @property
    def bytes_per_token(self) -> tuple[float | None, float | None]:
        """Of each tokenizer."""
        first, second = self.tokens
        return (self.bytes / first if first else None, self.bytes / second if second else None)


@dataclass(frozen=True)
class Spans:
    """How many differing spans there are, and their bytes. Spans tile the text."""

    total: int = 0
    cut: int = 0  # the tokens' edges differ
    cut_bytes: int = 0
    ids: int = 0  # the same token, with other ids
    ids_bytes: int = 0

    def __add__(self, other: Spans) -> Spans:
        return Spans(
            self.total + other.total,
            self.cut + other.cut,
            self.cut_bytes + other.cut_bytes,
            self.ids + other.ids,
            self.ids_bytes + other.ids_bytes,
        )


@dataclass(frozen=True)
class Comparison:
    """Two tokenizers on a corpus. `str()` is for people, `to_dict()` for programs."""

    names: tuple[str, str]
    fingerprints: tuple[str, str]
    tokens: tuple[Mapping[int, bytes], Mapping[int, bytes]]
    files: tuple[FileComparison, ...]
    scripts: tuple[Mapping[str, WordRate], Mapping[str, WordRate]]
    spans: Spans
    differences: tuple[Difference, ...]  # the first ones: of edges, or of ids where no edge differs
    seconds: tuple[float, float]  # that each needed for encoding

    @property
    def is_identical(self) -> bool:
        """Whether all ids are the same."""
        return not self.total.differing_documents

    @cached_property
    def total(self) -> FileComparison:
        """All files together."""
        files = self.files
        return FileComparison(
            "total",
            sum(file.documents for file in files),
            sum(file.bytes for file in files),
            (sum(file.tokens[0] for file in files), sum(file.tokens[1] for file in files)),
            sum(file.differing_documents for file in files),
        )

    def lines(self, *, color: bool = False) -> list[str]:
        """Return all of it as lines of text; `color` is for a terminal."""
        from byteweld.comparison._text import lines

        return lines(self, color)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_html(self) -> Html:
        """Return all of it as a part of a page."""
        from byteweld.comparison._html import report

        return report(self)

    def _repr_html_(self) -> str:
        from byteweld.markup import fragment

        return fragment(self.to_html())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values; lists of two have the first tokenizer first."""
        return {
            "identical": self.is_identical,
            "tokenizers": [
                {"name": name, "fingerprint": fingerprint, "seconds": seconds}
                for name, fingerprint, seconds in zip(
                    self.names, self.fingerprints, self.seconds, strict=True
                )
            ],
            "files": [_file_to_dict(file) for file in self.files],
            "total": _file_to_dict(self.total),
            "scripts": {
                script: [_words_to_dict(rates[script]) for rates in self.scripts]
                for script in self.scripts[0]
            },
            "spans": {
                "total": self.spans.total,
                "cut_differently": self.spans.cut,
                "cut_differently_bytes": self.spans.cut_bytes,
                "other_ids": self.spans.ids,
                "other_ids_bytes": self.spans.ids_bytes,
            },
            "differences": [_difference_to_dict(difference) for difference in self.differences],
        }


def _file_to_dict(file: FileComparison) -> dict[str, Any]:
    return {
        "name": file.name,
        "documents": file.documents,
        "differing_documents": file.differing_documents,
        "bytes": file.bytes,
        "tokens": list(file.tokens),
        "bytes_per_token": list(file.bytes_per_token),
    }


def _words_to_dict(rate: WordRate) -> dict[str, Any]:
    return {
        "words": rate.words,
        "bytes": rate.bytes,
        "tokens": rate.pieces,
        "bytes_per_token": rate.bytes_per_piece,
        "tokens_per_word": rate.fertility,
    }


def _difference_to_dict(difference: Difference) -> dict[str, Any]:
    return {
        "source": difference.source,
        "document": difference.document,
        "start": difference.start,
        "end": difference.end,
        "kind": difference.kind,
        "text_before": difference.before.decode(errors="replace"),
        "text_after": difference.after.decode(errors="replace"),
        "tokens": [
            [
                {"id": token_id, "bytes": text.hex()}
                for token_id, text in zip(lane.ids, lane.texts, strict=True)
            ]
            for lane in difference.lanes
        ],
        "is_whole": difference.is_whole,
    }


# ---------------------------------------------------------------------------- the work


def compare_files(
    first: Tokenizer,
    second: Tokenizer,
    files: Files,
    *,
    names: tuple[str, str] | None = None,
    allowed_special: Specials = frozenset(),
    disallowed_special: Specials = "all",
    num_threads: int | None = None,
    max_differences: int = MAX_DIFFERENCES,
    progress: Callable[[int], object] | None = None,
) -> Comparison:
    """Encode a corpus, given as names and documents, with both.

    Special tokens in it are refused or allowed as in `encode`. `progress` hears of bytes.
    """
    specials: Any = {"allowed_special": allowed_special, "disallowed_special": disallowed_special}
    measures = (Measure(first, **specials), Measure(second, **specials))
    work = _Work(measures, num_threads, max_differences, progress)
    done = tuple(work.file(name, documents) for name, documents in files)
    order = sorted(work.scripts[0], key=lambda name: (-work.scripts[0][name].bytes, name))
    ones, others = ({name: rates[name] for name in order} for rates in work.scripts)
    return Comparison(
        names=names or (first.name, second.name),
        fingerprints=(first.vocab.fingerprint, second.vocab.fingerprint),
        tokens=(first.vocab.tokens, second.vocab.tokens),
        files=done,
        scripts=(ones, others),
        spans=work.spans,
        differences=tuple(work.differences["cut"] or work.differences["ids"]),
        seconds=(work.seconds[0], work.seconds[1]),
    )


class _Document(NamedTuple):
    """A document with what both made of it."""

    source: str
    number: int
    content: bytes
    ids: tuple[NDArray[np.uint32], NDArray[np.uint32]]
    ends: tuple[NDArray[np.int64], NDArray[np.int64]]


class _Work:
    """What is added up while documents go through."""

    def __init__(
        self,
        measures: tuple[Measure, Measure],
        num_threads: int | None,
        max_differences: int,
        progress: Callable[[int], object] | None,
    ) -> None:
        self._measures = measures
        self._num_threads = num_threads
        self._max_differences = max_differences
        self._progress = progress
        self._done = 0
        self.seconds = [0.0, 0.0]
        self.scripts: tuple[dict[str, WordRate], dict[str, WordRate]] = ({}, {})
        self.spans = Spans()
        self.differences: dict[Kind, list[Difference]] = {"cut": [], "ids": []}

    def file(self, name: str, documents: Iterable[bytes]) -> FileComparison:
        """Take one file."""
        number = size = differing = 0
        tokens = [0, 0]
        for batch in batches(documents):
            encoded = [self._encode(lane, name, batch) for lane in (0, 1)]
            for place, content in enumerate(batch):
                number += 1
                one, other = (ids[at[place] : at[place + 1]] for ids, at in encoded)
                ends = (
                    self._measures[0].ends(content, one),
                    self._measures[1].ends(content, other),
                )
                document = _Document(name, number, content, (one, other), ends)
                differing += not np.array_equal(one, other)
                self._add_words(document)
                self._add_spans(document)
            for lane, (ids, _) in enumerate(encoded):
                tokens[lane] += len(ids)
            size += sum(map(len, batch))
            self._tell(sum(map(len, batch)))
        return FileComparison(name, number, size, (tokens[0], tokens[1]), differing)

    def _encode(
        self, lane: int, name: str, batch: list[bytes]
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        started = time.perf_counter()
        encoded = self._measures[lane].encode(name, batch, self._num_threads)
        self.seconds[lane] += time.perf_counter() - started
        return encoded

    def _add_words(self, document: _Document) -> None:
        for found in words(document.content):
            for lane in (0, 1):
                add_rates(self.scripts[lane], found, document.ends[lane])

    def _add_spans(self, document: _Document) -> None:
        one, other = document.ids
        if np.array_equal(*document.ends):
            differs = one != other
            lengths = np.diff(document.ends[0], prepend=0)
            self.spans += Spans(
                len(one), ids=int(differs.sum()), ids_bytes=int(lengths[differs].sum())
            )
            if self._has_room("ids"):
                for place in np.flatnonzero(differs)[: self._max_differences].tolist():
                    self._keep(document, "ids", (place, place + 1), (place, place + 1))
            return
        segments = align(document.ends)
        alike = segments.single_tokens()
        differs = one[alike[0]] != other[alike[1]]
        self.spans += Spans(
            len(segments),
            segments.differing,
            segments.differing_bytes,
            int(differs.sum()),
            int(np.diff(document.ends[0], prepend=0)[alike[0]][differs].sum()),
        )
        for place in segments.first_differing(self._max_differences):
            self._keep(document, "cut", *segments[place].tokens)

    def _has_room(self, kind: Kind) -> bool:
        return len(self.differences[kind]) < self._max_differences

    def _keep(self, document: _Document, kind: Kind, *spans: Pair) -> None:
        """Keep a difference to show, if there is room for it; `spans` are places of tokens."""
        if not self._has_room(kind):
            return
        first, last = spans[0]
        start = int(document.ends[0][first - 1]) if first else 0
        end = int(document.ends[0][last - 1])
        lanes = [_lane(document, lane, span, start) for lane, span in enumerate(spans)]
        shown = sum(map(len, lanes[0].texts)), sum(map(len, lanes[1].texts))
        self.differences[kind].append(
            Difference(
                document.source,
                document.number,
                start,
                end,
                kind,
                *around(document.content, start, end),
                (lanes[0], lanes[1]),
                shown == (end - start, end - start),
            )
        )

    def _tell(self, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done)


def _lane(document: _Document, lane: int, span: Pair, start: int) -> Lane:
    """The tokens of a span, up to the limit of what is shown."""
    first, last = span
    ends = document.ends[lane]
    fits = int(np.searchsorted(ends, start + _MAX_SHOWN_BYTES, side="right"))
    last = min(last, max(first + 1, fits))
    places = [start, *ends[first:last].tolist()]
    texts = [document.content[a:b] for a, b in pairwise(places)]
    return Lane(tuple(document.ids[lane][first:last].tolist()), tuple(texts))
