"""Compare tokenizers on a corpus: whether and where ids differ, cost and speed.

Documents are encoded in batches, and only one batch is in memory. Pure: nothing is read or printed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np

from byteweld._cached import cached_property
from byteweld.comparison import align
from byteweld.evaluation.corpora import (
    CorpusEncoder,
    EncodedDocument,
    EncodingOptions,
    Files,
    encode_file,
    running_total,
)
from byteweld.evaluation.words import WordRate, add, by_bytes
from byteweld.render import around
from byteweld.report import Displayable, Report
from byteweld.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_DIFFERENCES = 10
MAX_TOKENIZERS = 26  # each has a letter
_MAX_SHOWN_BYTES = 400  # per span

Kind = Literal["cut", "ids"]


class Lane(NamedTuple):
    """One tokenizer's tokens in a differing span: their ids, and the bytes each covers."""

    ids: tuple[int, ...]
    texts: tuple[bytes, ...]


class DifferingSpan(NamedTuple):
    """A span that not all encode in the same way, between token boundaries that all share.

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
    lanes: tuple[Lane, ...]  # one of each tokenizer
    is_whole: bool


class FileComparison(NamedTuple):
    """The cost of one file for each tokenizer, and how many of its documents differ."""

    name: str
    documents: int
    differing_documents: int
    bytes: int
    tokens: tuple[int, ...]

    @property
    def bytes_per_token(self) -> tuple[float | None, ...]:
        """Bytes per token of each tokenizer; None if there are no tokens."""
        return tuple(self.bytes / tokens if tokens else None for tokens in self.tokens)

    @classmethod
    def joined(cls, name: str, rows: Sequence[FileComparison]) -> FileComparison:
        """Return the sums of some rows, which are not empty."""
        _, documents, differing, sizes, tokens = zip(*rows, strict=True)
        sums = tuple(map(sum, zip(*tokens, strict=True)))
        return cls(name, sum(documents), sum(differing), sum(sizes), sums)


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
    """How tokenizers differ on a corpus; made by `byteweld.compare`.

    `str()` is for people, `to_dict()` for programs, and a notebook shows it as HTML. Tuples are in
    the order of the tokenizers.

    Attributes:
        names: of the tokenizers.
        fingerprints: of their vocabularies.
        tokens: the bytes of their tokens by id.
        files: documents, bytes and tokens of each file; `total` has their sums.
        scripts: the cost of words, by the script in which they are written.
        spans: number of spans between token boundaries that all share, and of those that differ.
        differences: the first spans that are cut differently; if there are none, the first with
            other ids.
        seconds: that each spent encoding.
        special_tokens: how many of its special tokens each found in the text, as one id.

    Examples:
        >>> large = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> found = byteweld.compare(large, large.cut(263), documents=["hello world"])
        >>> found.total.tokens, found.is_identical, found.to_dict()["total"]["tokens"]
        ((2, 4), False, [2, 4])
        >>> first = found.differences[0]
        >>> first.start, first.end, first.lanes[0].texts, first.lanes[1].texts
        (0, 5, (b'hello',), (b'hel', b'lo'))
    """

    names: tuple[str, ...]
    fingerprints: tuple[str, ...]
    tokens: tuple[Mapping[int, bytes], ...]
    files: tuple[FileComparison, ...]
    scripts: tuple[Mapping[str, WordRate], ...]
    spans: Spans
    differences: tuple[DifferingSpan, ...]  # the first "cut" ones; if none, "ids"
    seconds: tuple[float, ...]  # that each spent encoding
    special_tokens: tuple[int, ...]  # in the text, each encoded as one id

    @property
    def is_identical(self) -> bool:
        """Whether all ids are equal."""
        return not self.total.differing_documents

    @cached_property
    def total(self) -> FileComparison:
        """All files together."""
        nothing = FileComparison("total", 0, 0, 0, (0,) * len(self.names))
        return FileComparison.joined("total", [nothing, *self.files])

    @property
    def winner(self) -> int | None:
        """The index of the tokenizer that needs the fewest tokens; None if several do."""
        tokens = self.total.tokens
        fewest = min(tokens)
        return tokens.index(fewest) if tokens.count(fewest) == 1 else None

    def report(self) -> Report:
        from byteweld.comparison._report import report

        return report(self)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-serializable values; lists of figures are in the order of the tokenizers."""
        rows = zip(
            self.names,
            self.fingerprints,
            self.seconds,
            map(len, self.tokens),
            self.special_tokens,
            strict=True,
        )
        return {
            "identical": self.is_identical,
            "fewer_tokens": self._winner_to_dict(),
            "tokenizers": [dict(zip(_TOKENIZER, row, strict=True)) for row in rows],
            "files": [_file_to_dict(file) for file in self.files],
            "total": _file_to_dict(self.total),
            "scripts": {
                script: [_words_to_dict(rates[script]) for rates in self.scripts]
                for script in self.scripts[0]
            },
            "spans": dict(zip(_SPANS, self.spans, strict=True)),
            "differences": [_difference_to_dict(difference) for difference in self.differences],
        }

    def _winner_to_dict(self) -> dict[str, Any] | None:
        if self.winner is None:
            return None
        less, more, *_ = sorted(self.total.tokens)
        return {"name": self.names[self.winner], "index": self.winner, "share": 1 - less / more}


# Names in JSON.
_TOKENIZER = ("name", "fingerprint", "seconds", "vocab_size", "special_tokens")
_SPANS = ("total", "cut_differently", "cut_differently_bytes", "other_ids", "other_ids_bytes")
_WORDS = ("words", "bytes", "tokens", "bytes_per_token", "tokens_per_word")


def _file_to_dict(file: FileComparison) -> dict[str, Any]:
    rates = list(file.bytes_per_token)
    return {**file._asdict(), "tokens": list(file.tokens), "bytes_per_token": rates}


def _words_to_dict(rate: WordRate) -> dict[str, Any]:
    values = (rate.words, rate.bytes, rate.pieces, rate.bytes_per_piece, rate.fertility)
    return dict(zip(_WORDS, values, strict=True))


def _difference_to_dict(difference: DifferingSpan) -> dict[str, Any]:
    source, document, start, end, kind, before, after, lanes, is_whole = difference
    return {
        "source": source,
        "document": document,
        "start": start,
        "end": end,
        "kind": kind,
        "text_before": before.decode(errors="replace"),
        "text_after": after.decode(errors="replace"),
        "tokens": [
            [{"id": i, "bytes": text.hex()} for i, text in zip(lane.ids, lane.texts, strict=True)]
            for lane in lanes
        ],
        "is_whole": is_whole,
    }


# ---------------------------------------------------------------------------- comparing


def compare_files(
    tokenizers: Sequence[Tokenizer],
    files: Files,
    *,
    names: Sequence[str] | None = None,
    max_differences: int = MAX_DIFFERENCES,
    progress: Callable[[int], object] | None = None,
    **options: Unpack[EncodingOptions],
) -> Comparison:
    """Compare tokenizers on files, given as pairs of a name and its documents.

    Special tokens in a document count as special tokens unless the options say otherwise.
    `progress` is called with the number of bytes encoded so far.
    """
    sums = sum_files(
        tokenizers, files, max_differences=max_differences, progress=progress, **options
    )
    return to_comparison(tokenizers, sums, names=names)


@dataclass
class Sums:
    """What was found in some files; those of the files after them can be added."""

    scripts: list[dict[str, WordRate]]  # of each tokenizer
    seconds: list[float]
    special_tokens: list[int]
    files: list[FileComparison] = field(default_factory=list)
    spans: Spans = Spans()  # noqa: RUF009 (immutable)
    cut: list[DifferingSpan] = field(default_factory=list)  # the first differences of each kind
    ids: list[DifferingSpan] = field(default_factory=list)

    @classmethod
    def of(cls, tokenizers: int) -> Sums:
        """Return the sums of no files."""
        return cls([{} for _ in range(tokenizers)], [0.0] * tokenizers, [0] * tokenizers)

    def add(self, other: Sums, max_differences: int, *, continues: bool = False) -> None:
        """Add the sums of the files after these.

        If `continues`, the first file of `other` is the rest of the last one here.
        """
        before = 0
        files = other.files
        if continues and files:
            before = self.files[-1].documents
            self.files[-1] = FileComparison.joined(files[0].name, [self.files[-1], files[0]])
            files = files[1:]
        self.files += files
        for kept, found in ((self.cut, other.cut), (self.ids, other.ids)):
            some = found[: max(0, max_differences - len(kept))]
            kept += [item._replace(document=item.document + before) for item in some]
        for own, scripts in zip(self.scripts, other.scripts, strict=True):
            add(own, scripts)
        self.spans += other.spans
        self.seconds = list(map(operator.add, self.seconds, other.seconds))
        self.special_tokens = list(map(operator.add, self.special_tokens, other.special_tokens))


def sum_files(
    tokenizers: Sequence[Tokenizer],
    files: Files,
    *,
    max_differences: int = MAX_DIFFERENCES,
    progress: Callable[[int], object] | None = None,
    **options: Unpack[EncodingOptions],
) -> Sums:
    """Compare tokenizers on some of the files of a corpus; see `compare_files`."""
    if not 2 <= len(tokenizers) <= MAX_TOKENIZERS:
        found = "1 tokenizer" if len(tokenizers) == 1 else f"{len(tokenizers)} tokenizers"
        raise ValueError(f"found {found}; expected 2 to {MAX_TOKENIZERS} to compare")
    encoders = [CorpusEncoder(tok, **options) for tok in tokenizers]
    sums = Sums.of(len(encoders))
    advance = running_total(progress)
    for name, documents in files:
        number = size = differing = 0
        tokens = [0] * len(encoders)
        for batch in encode_file(encoders, name, documents, sums.scripts, advance):
            for document in batch:
                number = document.number
                size += len(document.content)
                tokens = [n + len(ids) for n, ids in zip(tokens, document.ids, strict=True)]
                differing += not all(np.array_equal(document.ids[0], i) for i in document.ids[1:])
                _add_spans(sums, document, max_differences)
        sums.files.append(FileComparison(name, number, differing, size, tuple(tokens)))
    sums.seconds = [encoder.seconds for encoder in encoders]
    sums.special_tokens = [encoder.special_tokens for encoder in encoders]
    return sums


def to_comparison(
    tokenizers: Sequence[Tokenizer], sums: Sums, *, names: Sequence[str] | None = None
) -> Comparison:
    """Return the comparison of tokenizers, given the sums over all files."""
    order = by_bytes(sums.scripts[0])
    return Comparison(
        names=tuple(names or (tok.name for tok in tokenizers)),
        fingerprints=tuple(tok.vocab.fingerprint for tok in tokenizers),
        tokens=tuple(tok.vocab.tokens for tok in tokenizers),
        files=tuple(sums.files),
        scripts=tuple({name: rates[name] for name in order} for rates in sums.scripts),
        spans=sums.spans,
        differences=tuple(sums.cut or sums.ids),
        seconds=tuple(sums.seconds),
        special_tokens=tuple(sums.special_tokens),
    )


def _add_spans(sums: Sums, document: EncodedDocument, max_differences: int) -> None:
    lanes = document.ids
    if all(np.array_equal(document.ends[0], own) for own in document.ends[1:]):
        differs = _differs(lanes)
        lengths = np.diff(document.ends[0], prepend=0)
        sums.spans += Spans(
            len(lanes[0]), ids=int(differs.sum()), ids_bytes=int(lengths[differs].sum())
        )
        for index in np.flatnonzero(differs)[: max_differences - len(sums.ids)].tolist():
            spans = [(index, index + 1)] * len(lanes)
            sums.ids.append(_difference(document, "ids", spans))
        return
    segments = align(document.ends)
    same = segments.single_tokens()
    differs = _differs([ids[own] for ids, own in zip(lanes, same, strict=True)])
    sums.spans += Spans(
        len(segments),
        segments.differing,
        segments.differing_bytes,
        int(differs.sum()),
        int(np.diff(document.ends[0], prepend=0)[same[0]][differs].sum()),
    )
    for index in segments.first_differing(max_differences - len(sums.cut)):
        sums.cut.append(_difference(document, "cut", segments[index].tokens))


def _differs(lanes: Sequence[NDArray[np.uint32]]) -> NDArray[np.bool_]:
    """Return where not all ids are equal."""
    found: NDArray[np.bool_] = np.any([lanes[0] != ids for ids in lanes[1:]], axis=0)
    return found


def _difference(
    document: EncodedDocument, kind: Kind, spans: Sequence[tuple[int, int]]
) -> DifferingSpan:
    """Return a difference; `spans` are the index ranges of its tokens."""
    first, last = spans[0]
    start = int(document.ends[0][first - 1]) if first else 0
    end = int(document.ends[0][last - 1])
    lanes = tuple(_lane(document, lane, span, start) for lane, span in enumerate(spans))
    return DifferingSpan(
        document.source,
        document.number,
        start,
        end,
        kind,
        *around(document.content, start, end),
        lanes,
        all(sum(map(len, lane.texts)) == end - start for lane in lanes),
    )


def _lane(document: EncodedDocument, lane: int, span: tuple[int, int], start: int) -> Lane:
    """Return the tokens of a span, up to the limit."""
    first, last = span
    ends = document.ends[lane]
    fits = int(np.searchsorted(ends, start + _MAX_SHOWN_BYTES, side="right"))
    last = min(last, max(first + 1, fits))
    edges = [start, *ends[first:last].tolist()]
    texts = [document.content[a:b] for a, b in pairwise(edges)]
    return Lane(tuple(document.ids[lane][first:last].tolist()), tuple(texts))
