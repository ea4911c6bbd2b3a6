"""A tokenizer on a corpus: what it costs by file and script, which tokens it uses, what comes back.

Documents go through in batches; memory is that of one batch. Pure: nothing is printed or read here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from byteweld.errors import SpecialTokenError
from byteweld.evaluation import token_lengths
from byteweld.evaluation.probes import Probes, probe
from byteweld.evaluation.words import WordRate, add_rates, total_rate, words
from byteweld.tokenizer import Specials, Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from byteweld.markup import Html

# Of Rényi entropies this one agrees best with how well translation does (Zouhar et al., 2023,
# "Tokenization and the Noiseless Channel"); it punishes tokens that are very frequent.
RENYI_ORDER = 2.5
_BATCH_BYTES = 1 << 20
_DOCUMENT_BYTES = 64  # what a document costs besides its bytes
_KEPT_FAILURES = 5

Files = Iterable[tuple[str, Iterable[bytes]]]


# ---------------------------------------------------------------------------- encoding


class Measure:
    """A tokenizer that tells where its tokens end."""

    def __init__(
        self, tok: Tokenizer, *, allowed_special: Specials, disallowed_special: Specials
    ) -> None:
        self.tok = tok
        self._lengths = token_lengths(tok)
        self._specials: Any = {
            "allowed_special": allowed_special,
            "disallowed_special": disallowed_special,
        }
        self.encode("", [b""])  # the engine is made now, and is no part of any time taken later

    def encode(
        self, source: str, texts: Sequence[bytes], num_threads: int | None = None
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Ids on end, and where those of each text start; errors name the source."""
        try:
            return self.tok.encode_ragged(texts, num_threads=num_threads, **self._specials)
        except SpecialTokenError as error:
            raise SpecialTokenError(f"{source}: {error}") from None

    def ends(self, text: bytes, ids: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Where each token of a text ends, in bytes."""
        if self._lengths is not None:
            ends: NDArray[np.int64] = np.cumsum(self._lengths[ids])
            if len(ends) and ends[-1] == len(text):
                return ends
        _, offsets = self.tok.encode_with_offsets(text, **self._specials)
        return np.fromiter((end for _, end in offsets), np.int64, len(offsets))


def batches(documents: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Documents in lists of about a megabyte."""
    batch: list[bytes] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document) + _DOCUMENT_BYTES
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# ---------------------------------------------------------------------------- the values


class FileRate(NamedTuple):
    """What one file costs."""

    name: str
    documents: int
    bytes: int
    tokens: int
    words: WordRate

    @property
    def bytes_per_token(self) -> float | None:
        """None for an empty file."""
        return self.bytes / self.tokens if self.tokens else None


class Changed(NamedTuple):
    """A document that does not come back as it was: its file, and its number there, from 1."""

    source: str
    number: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a tokenizer does with a corpus. `str()` is for people, `to_dict()` for programs."""

    name: str
    tokens: Mapping[int, bytes]  # ordinary ones, by id
    unreachable: frozenset[int]
    files: tuple[FileRate, ...]
    scripts: Mapping[str, WordRate]  # of words, the script with the most bytes first
    counts: NDArray[np.int64]  # how often each id occurred
    changed_documents: int
    changed: tuple[Changed, ...]  # the first few of these
    probes: Probes

    @cached_property
    def total(self) -> FileRate:
        """All files together."""
        return FileRate(
            "total",
            sum(file.documents for file in self.files),
            sum(file.bytes for file in self.files),
            sum(file.tokens for file in self.files),
            total_rate(self.scripts),
        )

    @cached_property
    def used(self) -> int:
        """How many ordinary tokens occurred."""
        return sum(bool(self.counts[token_id]) for token_id in self.tokens)

    @cached_property
    def unused(self) -> list[int]:
        """Ids of ordinary tokens that did not occur."""
        return [token_id for token_id in self.tokens if not self.counts[token_id]]

    def rarest(self, limit: int) -> list[tuple[int, int]]:
        """(id, count) of the ordinary tokens that occurred least often, longer ones first."""
        found = [(i, int(self.counts[i])) for i in self.tokens if self.counts[i]]
        found.sort(key=lambda item: (item[1], -len(self.tokens[item[0]]), item[0]))
        return found[:limit]

    def commonest(self, limit: int) -> list[tuple[int, int]]:
        """(id, count) of the ordinary tokens that occurred most often."""
        found = [(i, int(self.counts[i])) for i in self.tokens if self.counts[i]]
        return sorted(found, key=lambda item: (-item[1], item[0]))[:limit]

    def efficiency(self, order: float = RENYI_ORDER) -> float | None:
        """Rényi entropy of the tokens' shares, of the most that so large a vocabulary could have.

        Order 1 is Shannon's. None where nothing was encoded.
        """
        counts = self.counts[list(self.tokens)]
        counts = counts[counts > 0]
        if not len(counts) or len(self.tokens) < 2:
            return None
        shares = counts / counts.sum()
        if order == 1:
            entropy = float(-(shares * np.log(shares)).sum())
        else:
            entropy = math.log(float((shares**order).sum())) / (1 - order)
        return entropy / math.log(len(self.tokens))

    def lines(self, *, color: bool = False) -> list[str]:
        """Return all of it as lines of text; `color` is for a terminal."""
        from byteweld.evaluation._text import lines

        return lines(self, color)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_html(self) -> Html:
        """Return all of it as a part of a page."""
        from byteweld.evaluation._html import report

        return report(self)

    def _repr_html_(self) -> str:
        from byteweld.markup import fragment

        return fragment(self.to_html())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        probes = self.probes
        return {
            "files": [_rate_to_dict(file) for file in self.files],
            "total": _rate_to_dict(self.total),
            "scripts": {name: _words_to_dict(rate) for name, rate in self.scripts.items()},
            "vocabulary": {
                "tokens": len(self.tokens),
                "used": self.used,
                "unused": self.unused,
                "unused_and_unreachable": [i for i in self.unused if i in self.unreachable],
                "rarest": [{"id": i, "count": count} for i, count in self.rarest(20)],
                "commonest": [{"id": i, "count": count} for i, count in self.commonest(20)],
                "renyi_order": RENYI_ORDER,
                "renyi_efficiency": self.efficiency(),
                "shannon_efficiency": self.efficiency(1),
            },
            "round_trip": {
                "documents": self.total.documents,
                "changed": self.changed_documents,
                "first_changed": [changed._asdict() for changed in self.changed],
            },
            "digits": {
                "whole_numbers": [found._asdict() for found in probes.whole_numbers],
                "numbers": {cut.name: [t.hex() for t in cut.tokens] for cut in probes.numbers},
            },
            "indentation": {cut.name: [t.hex() for t in cut.tokens] for cut in probes.indents},
            "languages": [
                {
                    "name": language.name,
                    "characters": language.characters,
                    "bytes": language.bytes,
                    "tokens": language.tokens,
                    "bytes_per_token": language.bytes_per_token,
                    **_words_to_dict(language.words),
                }
                for language in probes.languages
            ],
        }


def _rate_to_dict(rate: FileRate) -> dict[str, Any]:
    return {
        "name": rate.name,
        "documents": rate.documents,
        "bytes": rate.bytes,
        "tokens": rate.tokens,
        "bytes_per_token": rate.bytes_per_token,
        **_words_to_dict(rate.words),
    }


def _words_to_dict(rate: WordRate) -> dict[str, Any]:
    return {
        "words": rate.words,
        "word_bytes": rate.bytes,
        "word_tokens": rate.pieces,
        "whole_words": rate.whole,
        "tokens_per_word": rate.fertility,
        "whole_word_share": rate.whole_share,
        "word_bytes_per_token": rate.bytes_per_piece,
    }


# ---------------------------------------------------------------------------- the work


def evaluate(
    tok: Tokenizer,
    files: Files,
    *,
    allowed_special: Specials = frozenset(),
    disallowed_special: Specials = "all",
    num_threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Evaluation:
    """Encode a corpus, given as names and documents, and look at what came of it.

    Special tokens in it are refused or allowed as in `encode`. `progress` hears of bytes.

    >>> tok = Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, [])
    >>> found = evaluate(tok, [("a.txt", [b"ab c"])])
    >>> found.total.bytes_per_token, found.total.words.fertility, found.used
    (1.0, 1.5, 4)
    """
    measure = Measure(tok, allowed_special=allowed_special, disallowed_special=disallowed_special)
    work = _Work(measure, num_threads, progress)
    rates = tuple(work.file(name, documents) for name, documents in files)
    by_bytes = sorted(work.scripts.items(), key=lambda item: (-item[1].bytes, item[0]))
    return Evaluation(
        name=tok.name,
        tokens=dict(tok.vocab.ordinary()),
        unreachable=frozenset(tok.unreachable_tokens()),
        files=rates,
        scripts=dict(by_bytes),
        counts=work.counts,
        changed_documents=work.changed_documents,
        changed=tuple(work.changed),
        probes=probe(tok),
    )


class _Work:
    """What is added up while documents go through."""

    def __init__(
        self,
        measure: Measure,
        num_threads: int | None,
        progress: Callable[[int], object] | None,
    ) -> None:
        self._measure = measure
        self._num_threads = num_threads
        self._progress = progress
        self._done = 0
        self.counts = np.zeros(measure.tok.n_vocab, np.int64)
        self.scripts: dict[str, WordRate] = {}
        self.changed_documents = 0
        self.changed: list[Changed] = []

    def file(self, name: str, documents: Iterable[bytes]) -> FileRate:
        """Take one file."""
        number = size = tokens = 0
        by_script: dict[str, WordRate] = {}
        for batch in batches(documents):
            ids, offsets = self._measure.encode(name, batch, self._num_threads)
            self.counts += np.bincount(ids, minlength=len(self.counts))
            tokens += len(ids)
            for place, document in enumerate(batch):
                number += 1
                own = ids[offsets[place] : offsets[place + 1]]
                self._check(name, number, document, own)
                ends = self._measure.ends(document, own)
                for found in words(document):
                    add_rates(by_script, found, ends)
            size += sum(map(len, batch))
            self._tell(sum(map(len, batch)))
        for script, rate in by_script.items():
            self.scripts[script] = self.scripts.get(script, WordRate()) + rate
        return FileRate(name, number, size, tokens, total_rate(by_script))

    def _check(self, name: str, number: int, document: bytes, ids: NDArray[np.uint32]) -> None:
        if self._measure.tok.decode_bytes(ids) == document:
            return
        self.changed_documents += 1
        if len(self.changed) < _KEPT_FAILURES:
            self.changed.append(Changed(name, number))

    def _tell(self, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done)
