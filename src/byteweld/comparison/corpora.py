"""Compare two tokenizers on a corpus: whether and where ids differ, cost and speed.

Documents are encoded in batches, and only one batch is in memory. Pure: nothing is read or printed.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np

from byteweld._cached import cached_property
from byteweld._text import batches
from byteweld.comparison import align
from byteweld.evaluation.corpora import (
    BATCH_BYTES,
    CorpusEncoder,
    EncodingOptions,
    Files,
    running_total,
)
from byteweld.evaluation.words import WordRate, add_rates, words
from byteweld.render import Displayable, around
from byteweld.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from byteweld.markup import Html

MAX_DIFFERENCES = 10
_MAX_SHOWN_BYTES = 400  # per span

Kind = Literal["cut", "ids"]
Pair = tuple[int, int]


class Lane(NamedTuple):
    """One tokenizer's tokens in a differing span: their ids, and the bytes each covers."""

    ids: tuple[int, ...]
    texts: tuple[bytes, ...]


class Difference(NamedTuple):
    """A span that the two encode differently, between token boundaries that both share.

    `kind` is "cut" if the boundaries inside differ, "ids" if only the ids do. Long spans are
    truncated; `is_whole` is then False.
    """

    source: str
    document: int  # number in the file, from 1
    start: int
    end: int
    kind: Kind
    before: bytes
    after: bytes
    lanes: tuple[Lane, Lane]
    is_whole: bool


class FileComparison(NamedTuple):
    """The cost of one file for each tokenizer, and how many of its documents differ."""

    name: str
    documents: int
    bytes: int
    tokens: Pair
    differing_documents: int

    @property
    def bytes_per_token(self) -> tuple[float | None, float | None]:
        """Bytes per token of each tokenizer; None if there are no tokens."""
        first, second = self.tokens
        return (self.bytes / first if first else None, self.bytes / second if second else None)


class Spans(NamedTuple):
    """The number of spans and of differing ones, with their bytes. Spans cover the text."""

    total: int = 0
    cut: int = 0  # token boundaries differ
    cut_bytes: int = 0
    ids: int = 0  # the same token with different ids
    ids_bytes: int = 0

    def __add__(self, other: object) -> Spans:
        if not isinstance(other, Spans):
            return NotImplemented
        return Spans(*map(operator.add, self, other))


@dataclass(frozen=True, repr=False)
class Comparison(Displayable):
    """How two tokenizers differ on a corpus; made by `byteweld.compare`.

    `str()` is for people, `to_dict()` for programs, and a notebook shows it as HTML. Pairs have the
    first tokenizer first.

    Attributes:
        names: of the two.
        fingerprints: of their vocabularies.
        tokens: the bytes of their tokens by id.
        files: documents, bytes and tokens of each file; `total` has their sums.
        scripts: the cost of words, by the script in which they are written.
        spans: number of spans between token boundaries that both share, and of those that differ.
        differences: the first spans that are cut differently; if there are none, the first with
            other ids.
        seconds: that each spent encoding.

    Examples:
        >>> import byteweld
        >>> large = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> found = byteweld.compare(large, large.cut(263), documents=["hello world"])
        >>> found.total.tokens
        (2, 4)
        >>> first = found.differences[0]
        >>> first.start, first.end, first.lanes[0].texts, first.lanes[1].texts
        (0, 5, (b'hello',), (b'hel', b'lo'))
    """

    names: tuple[str, str]
    fingerprints: tuple[str, str]
    tokens: tuple[Mapping[int, bytes], Mapping[int, bytes]]
    files: tuple[FileComparison, ...]
    scripts: tuple[Mapping[str, WordRate], Mapping[str, WordRate]]
    spans: Spans
    differences: tuple[Difference, ...]  # the first "cut" ones; if none, "ids"
    seconds: tuple[float, float]  # that each spent encoding

    @property
    def is_identical(self) -> bool:
        """Whether all ids are equal.

        Examples:
            >>> import byteweld
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> byteweld.compare(tok, tok, documents=["hello world"]).is_identical
            True
        """
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

    @property
    def winner(self) -> Literal[0, 1] | None:
        """Which tokenizer needs fewer tokens: 0 is the first, 1 the second; None if neither."""
        first, second = self.total.tokens
        return None if first == second else 0 if first < second else 1

    def lines(self, *, color: bool = False) -> list[str]:
        """Return the comparison as lines of text; `color` is for a terminal.

        Examples:
            >>> import byteweld
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> found = byteweld.compare(tok, tok, documents=["hello world"])
            >>> print(found.lines()[0])
            identical ids on 1 document, 2 tokens, 11 bytes: 5.50 bytes per token
        """
        from byteweld.comparison._text import lines

        return lines(self, color)

    def to_html(self) -> Html:
        """Return the comparison as part of a page.

        Examples:
            >>> import byteweld
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> found = byteweld.compare(tok, tok, documents=["hello world"])
            >>> from byteweld.markup import document
            >>> document("a comparison", found.to_html())[:15]  # a page to save
            '<!doctype html>'
        """
        from byteweld.comparison._html import report

        return report(self)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-serializable values; in lists of two, the first tokenizer comes first.

        Examples:
            >>> import byteweld
            >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
            >>> found = byteweld.compare(tok, tok, documents=["hello world"]).to_dict()
            >>> found["identical"], found["total"]["tokens"]
            (True, [2, 2])
        """
        return {
            "identical": self.is_identical,
            "fewer_tokens": self._winner_to_dict(),
            "tokenizers": [
                {
                    "name": name,
                    "fingerprint": fingerprint,
                    "seconds": seconds,
                    "vocab_size": len(tokens),
                }
                for name, fingerprint, seconds, tokens in zip(
                    self.names, self.fingerprints, self.seconds, self.tokens, strict=True
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

    def _winner_to_dict(self) -> dict[str, Any] | None:
        if self.winner is None:
            return None
        less, more = sorted(self.total.tokens)
        return {"name": self.names[self.winner], "index": self.winner, "share": 1 - less / more}


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


# ---------------------------------------------------------------------------- comparing


def compare_files(
    first: Tokenizer,
    second: Tokenizer,
    files: Files,
    *,
    names: tuple[str, str] | None = None,
    max_differences: int = MAX_DIFFERENCES,
    progress: Callable[[int], object] | None = None,
    **options: Unpack[EncodingOptions],
) -> Comparison:
    """Compare two tokenizers on files, given as pairs of a name and its documents.

    Special tokens in a document count as special tokens unless the options say otherwise.
    `progress` is called with the number of bytes encoded so far.
    """
    sums = sum_files(
        first, second, files, max_differences=max_differences, progress=progress, **options
    )
    return to_comparison(first, second, sums, names=names)


class Sums(NamedTuple):
    """What was found in some files; those of consecutive files can be added."""

    files: tuple[FileComparison, ...] = ()
    scripts: tuple[Mapping[str, WordRate], Mapping[str, WordRate]] = ({}, {})
    spans: Spans = Spans()
    cut: tuple[Difference, ...] = ()  # the first differences of each kind
    ids: tuple[Difference, ...] = ()
    seconds: tuple[float, float] = (0.0, 0.0)

    def plus(self, other: Sums, max_differences: int, *, continues: bool = False) -> Sums:
        """Return the sums of these files and those after them.

        Args:
            other: the sums of the files after them.
            max_differences: as given to `sum_files`.
            continues: whether the first file of `other` is the rest of the last one here.
        """
        files = self.files
        if continues and other.files:
            before = files[-1].documents
            files = (*files[:-1], _joined(files[-1], other.files[0]), *other.files[1:])
            cut, ids = (_renumbered(found, before) for found in (other.cut, other.ids))
        else:
            files, cut, ids = files + other.files, other.cut, other.ids
        ones, others = map(_added, self.scripts, other.scripts)
        return Sums(
            files,
            (ones, others),
            self.spans + other.spans,
            (self.cut + cut)[:max_differences],
            (self.ids + ids)[:max_differences],
            (self.seconds[0] + other.seconds[0], self.seconds[1] + other.seconds[1]),
        )


def _joined(one: FileComparison, rest: FileComparison) -> FileComparison:
    """Return the row of a file whose documents are in two."""
    tokens = (one.tokens[0] + rest.tokens[0], one.tokens[1] + rest.tokens[1])
    return FileComparison(
        one.name,
        one.documents + rest.documents,
        one.bytes + rest.bytes,
        tokens,
        one.differing_documents + rest.differing_documents,
    )


def _renumbered(found: tuple[Difference, ...], before: int) -> tuple[Difference, ...]:
    return tuple(item._replace(document=item.document + before) for item in found)


def _added(one: Mapping[str, WordRate], other: Mapping[str, WordRate]) -> dict[str, WordRate]:
    names = dict.fromkeys([*one, *other])
    return {name: one.get(name, WordRate()) + other.get(name, WordRate()) for name in names}


def sum_files(
    first: Tokenizer,
    second: Tokenizer,
    files: Files,
    *,
    max_differences: int = MAX_DIFFERENCES,
    progress: Callable[[int], object] | None = None,
    **options: Unpack[EncodingOptions],
) -> Sums:
    """Compare two tokenizers on some of the files of a corpus; see `compare_files`."""
    encoders = (CorpusEncoder(first, **options), CorpusEncoder(second, **options))
    sums = _Sums(encoders, max_differences, running_total(progress))
    done = tuple(sums.add_file(name, documents) for name, documents in files)
    return Sums(
        done,
        sums.scripts,
        sums.spans,
        tuple(sums.differences["cut"]),
        tuple(sums.differences["ids"]),
        (sums.seconds[0], sums.seconds[1]),
    )


def to_comparison(
    first: Tokenizer, second: Tokenizer, sums: Sums, *, names: tuple[str, str] | None = None
) -> Comparison:
    """Return the comparison of two tokenizers, given the sums over all files."""
    order = sorted(sums.scripts[0], key=lambda name: (-sums.scripts[0][name].bytes, name))
    ones, others = ({name: rates[name] for name in order} for rates in sums.scripts)
    return Comparison(
        names=names or (first.name, second.name),
        fingerprints=(first.vocab.fingerprint, second.vocab.fingerprint),
        tokens=(first.vocab.tokens, second.vocab.tokens),
        files=sums.files,
        scripts=(ones, others),
        spans=sums.spans,
        differences=sums.cut or sums.ids,
        seconds=sums.seconds,
    )


class _Document(NamedTuple):
    """A document and its encodings by both tokenizers."""

    source: str
    number: int
    content: bytes
    ids: tuple[NDArray[np.uint32], NDArray[np.uint32]]
    ends: tuple[NDArray[np.int64], NDArray[np.int64]]


class _Sums:
    """Sums over all documents."""

    def __init__(
        self,
        encoders: tuple[CorpusEncoder, CorpusEncoder],
        max_differences: int,
        advance: Callable[[int], None],
    ) -> None:
        self._encoders = encoders
        self._max_differences = max_differences
        self._advance = advance
        self.seconds = [0.0, 0.0]
        self.scripts: tuple[dict[str, WordRate], dict[str, WordRate]] = ({}, {})
        self.spans = Spans()
        self.differences: dict[Kind, list[Difference]] = {"cut": [], "ids": []}

    def add_file(self, name: str, documents: Iterable[bytes]) -> FileComparison:
        """Add one file."""
        number = size = differing = 0
        tokens = [0, 0]
        for batch in batches(documents, BATCH_BYTES):
            encoded = [self._encode(lane, name, batch) for lane in (0, 1)]
            for index, content in enumerate(batch):
                number += 1
                one, other = (ids[starts[index] : starts[index + 1]] for ids, starts in encoded)
                ends = (
                    self._encoders[0].ends(content, one),
                    self._encoders[1].ends(content, other),
                )
                document = _Document(name, number, content, (one, other), ends)
                differing += not np.array_equal(one, other)
                self._add_words(document)
                self._add_spans(document)
            for lane, (ids, _) in enumerate(encoded):
                tokens[lane] += len(ids)
            size += sum(map(len, batch))
        return FileComparison(name, number, size, (tokens[0], tokens[1]), differing)

    def _encode(
        self, lane: int, name: str, batch: list[bytes]
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        started = time.perf_counter()
        encoded = self._encoders[lane].encode(name, batch)
        self.seconds[lane] += time.perf_counter() - started
        return encoded

    def _add_words(self, document: _Document) -> None:
        for found in words(document.content):
            for lane in (0, 1):
                add_rates(self.scripts[lane], found, document.ends[lane])
            self._advance(found.num_bytes)

    def _add_spans(self, document: _Document) -> None:
        one, other = document.ids
        if np.array_equal(*document.ends):
            differs = one != other
            lengths = np.diff(document.ends[0], prepend=0)
            self.spans += Spans(
                len(one), ids=int(differs.sum()), ids_bytes=int(lengths[differs].sum())
            )
            if len(self.differences["ids"]) < self._max_differences:
                for index in np.flatnonzero(differs)[: self._max_differences].tolist():
                    self._add_difference(document, "ids", (index, index + 1), (index, index + 1))
            return
        segments = align(document.ends)
        same = segments.single_tokens()
        differs = one[same[0]] != other[same[1]]
        self.spans += Spans(
            len(segments),
            segments.differing,
            segments.differing_bytes,
            int(differs.sum()),
            int(np.diff(document.ends[0], prepend=0)[same[0]][differs].sum()),
        )
        for index in segments.first_differing(self._max_differences):
            self._add_difference(document, "cut", *segments[index].tokens)

    def _add_difference(self, document: _Document, kind: Kind, *spans: Pair) -> None:
        """Add a difference, up to the limit; `spans` are index ranges of tokens."""
        if len(self.differences[kind]) >= self._max_differences:
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


def _lane(document: _Document, lane: int, span: Pair, start: int) -> Lane:
    """Return the tokens of a span, up to the limit."""
    first, last = span
    ends = document.ends[lane]
    fits = int(np.searchsorted(ends, start + _MAX_SHOWN_BYTES, side="right"))
    last = min(last, max(first + 1, fits))
    edges = [start, *ends[first:last].tolist()]
    texts = [document.content[a:b] for a, b in pairwise(edges)]
    return Lane(tuple(document.ids[lane][first:last].tolist()), tuple(texts))
