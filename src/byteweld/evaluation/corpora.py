"""Evaluate a tokenizer on a corpus: cost by file and script, tokens used, round trips.

Documents are encoded in batches, and only one batch is in memory. Pure: nothing is read or printed.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import numpy as np

from byteweld._cached import cached_property
from byteweld._text import batches
from byteweld.errors import SpecialTokenError
from byteweld.evaluation import token_lengths, unreachable
from byteweld.evaluation.probes import Language, Probes, probe
from byteweld.evaluation.words import WordRate, add, add_rates, by_bytes, total_rate, words
from byteweld.report import Displayable, Report
from byteweld.tokenizer import Specials, Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The order whose entropy correlates best with translation quality (Zouhar et al., 2023,
# "Tokenization and the Noiseless Channel"); it penalizes very frequent tokens.
RENYI_ORDER = 2.5
BATCH_BYTES = 1 << 20
_MAX_CHANGED = 5

Files = Iterable[tuple[str, Iterable[bytes]]]


# ---------------------------------------------------------------------------- encoding


class EncodingOptions(TypedDict, total=False):
    """How documents are encoded, as in `Tokenizer.encode`.

    Without `allowed_special`, special tokens in a document are encoded as such; if only
    `disallowed_special` is given, they are plain text or an error, as in `encode`.
    """

    allowed_special: Specials | None
    disallowed_special: Specials
    num_threads: int | None


class CorpusEncoder:
    """Encodes documents and finds where their tokens end.

    Attributes:
        tok: the tokenizer.
        counts: how often each id occurred so far.
        seconds: spent encoding so far.
    """

    def __init__(
        self,
        tok: Tokenizer,
        *,
        allowed_special: Specials | None = None,
        disallowed_special: Specials = "all",
        num_threads: int | None = None,
    ) -> None:
        if allowed_special is None:
            allowed_special = "all" if disallowed_special == "all" else ()
        self.tok = tok
        self._lengths = token_lengths(tok)
        self._specials: Any = {
            "allowed_special": allowed_special,
            "disallowed_special": disallowed_special,
        }
        self._num_threads = num_threads
        self.counts = np.zeros(tok.n_vocab, np.int64)
        self.seconds = 0.0
        tok.encode_ragged([b""], **self._specials)  # builds the engine now, before any timing

    def encode(
        self, source: str, documents: Sequence[bytes]
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the ids of all documents, and the offset of each; errors name `source`."""
        started = time.perf_counter()
        try:
            ids, offsets = self.tok.encode_ragged(
                documents, num_threads=self._num_threads, **self._specials
            )
        except SpecialTokenError as error:
            raise SpecialTokenError(f"{source}: {error}") from None
        self.seconds += time.perf_counter() - started
        self.counts += np.bincount(ids, minlength=len(self.counts))
        return ids, offsets

    @property
    def special_tokens(self) -> int:
        """Number of special tokens so far."""
        return int(self.counts[list(set(self.tok.vocab.special_tokens.values()))].sum())

    def agreement(self, documents: Sequence[bytes]) -> LongestMatch | None:
        """Compare the encoding with longest match, pre-token by pre-token.

        Special tokens are not pre-tokens. None if the vocabulary has tokens so long and so similar
        that the search would take too many steps.
        """
        found = self.tok._encoder.longest_match_agreement(documents, *self._specials.values())
        return None if found is None else LongestMatch(*found)

    def ends(self, document: bytes, ids: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the byte offset at which each token of a document ends."""
        if self._lengths is not None:
            ends: NDArray[np.int64] = np.cumsum(self._lengths[ids])
            if len(ends) and ends[-1] == len(document):
                return ends
        _, offsets = self.tok.encode_with_offsets(document, **self._specials)
        return np.fromiter((end for _, end in offsets), np.int64, len(offsets))


class EncodedDocument(NamedTuple):
    """A document, and its tokens by each tokenizer: their ids, and the offsets of their ends."""

    source: str
    number: int  # in its file, from 1
    content: bytes
    ids: list[NDArray[np.uint32]]
    ends: list[NDArray[np.int64]]


def encode_file(
    encoders: Sequence[CorpusEncoder],
    source: str,
    documents: Iterable[bytes],
    scripts: Sequence[dict[str, WordRate]],
    advance: Callable[[int], object],
) -> Iterator[list[EncodedDocument]]:
    """Encode the documents of a file with each tokenizer, in batches.

    The cost of the words, by script, is added to the item of `scripts` for each tokenizer.
    `advance` is called with the number of bytes after every block of words.
    """
    number = 0
    for batch in batches(documents, BATCH_BYTES):
        encoded = [encoder.encode(source, batch) for encoder in encoders]
        found = []
        for index, content in enumerate(batch):
            number += 1
            ids = [every[starts[index] : starts[index + 1]] for every, starts in encoded]
            ends = [encoder.ends(content, own) for encoder, own in zip(encoders, ids, strict=True)]
            for block in words(content):
                for rates, own_ends in zip(scripts, ends, strict=True):
                    add_rates(rates, block, own_ends)
                advance(block.num_bytes)
            found.append(EncodedDocument(source, number, content, ids, ends))
        yield found


def running_total(progress: Callable[[int], object] | None) -> Callable[[int], None]:
    """Return a function that adds up its arguments and passes each sum to `progress`."""
    total = 0

    def add(size: int) -> None:
        nonlocal total
        total += size
        if progress is not None:
            progress(total)

    return add


# ---------------------------------------------------------------------------- values


class FileRate(NamedTuple):
    """The cost of one file."""

    name: str
    documents: int
    bytes: int
    tokens: int
    words: WordRate

    @property
    def bytes_per_token(self) -> float | None:
        """Bytes per token; None if the file is empty."""
        return self.bytes / self.tokens if self.tokens else None


class LongestMatch(NamedTuple):
    """On how many pre-tokens greedy longest match gives the same tokens, and of how many."""

    agreeing: int = 0
    pretokens: int = 0

    @property
    def share(self) -> float | None:
        """The share of pre-tokens on which it agrees; None if there are none."""
        return self.agreeing / self.pretokens if self.pretokens else None


class Changed(NamedTuple):
    """A document that decoding does not restore: its file, and its number in the file, from 1."""

    source: str
    number: int


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Displayable):
    """How a tokenizer performs on a corpus; made by `byteweld.evaluate`.

    `str()` is for people, `to_dict()` for programs, and a notebook shows it as HTML.

    Attributes:
        name: of the tokenizer.
        tokens: the bytes of ordinary tokens by id.
        unreachable: the ids of tokens that do not encode to themselves.
        files: documents, bytes, tokens and words of each file; `total` has their sums.
        scripts: the cost of words by script; the one with the most bytes is first.
        counts: how often each id occurred.
        changed_documents: number of documents that decoding does not restore.
        changed: the first few of them.
        longest_match: on how many pre-tokens longest match gives the same tokens; None if it takes
            too many steps to tell.
        probes: how digits, indentation and a sentence in many languages are encoded.

    Examples:
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> found = byteweld.evaluate(tok, documents=["hello world, hello"])
        >>> found.total.bytes_per_token, found.total.words.fertility
        (3.6, 1.0)
        >>> found.commonest(1), found.rarest(1), found.used, len(found.unused)
        ([(263, 2)], [(264, 1)], 4, 261)
        >>> round(found.efficiency(1), 3), found.to_dict()["round_trip"]["changed"]
        (0.239, 0)
    """

    name: str
    tokens: Mapping[int, bytes]  # ordinary tokens by id
    unreachable: frozenset[int]
    files: tuple[FileRate, ...]
    scripts: Mapping[str, WordRate]  # of words; the script with the most bytes first
    counts: NDArray[np.int64]  # by id
    changed_documents: int
    changed: tuple[Changed, ...]  # the first few of them
    longest_match: LongestMatch | None  # None if it takes too many steps to tell
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
        """The number of ordinary tokens that occurred."""
        return len(self._counted)

    @cached_property
    def unused(self) -> list[int]:
        """The ids of ordinary tokens that did not occur."""
        return [token_id for token_id in self.tokens if not self.counts[token_id]]

    def rarest(self, limit: int) -> list[tuple[int, int]]:
        """Return (id, count) of the ordinary tokens that occurred least often, longest first."""
        by_count = sorted(self._counted, key=lambda n: (n[1], -len(self.tokens[n[0]]), n[0]))
        return by_count[:limit]

    def commonest(self, limit: int) -> list[tuple[int, int]]:
        """Return (id, count) of the ordinary tokens that occurred most often."""
        return sorted(self._counted, key=lambda item: (-item[1], item[0]))[:limit]

    @cached_property
    def _counted(self) -> list[tuple[int, int]]:
        return [(i, int(self.counts[i])) for i in self.tokens if self.counts[i]]

    def efficiency(self, order: float = RENYI_ORDER) -> float | None:
        """Return the Rényi entropy of the tokens, divided by its maximum for this vocabulary size.

        Order 1 is Shannon entropy. None if nothing was encoded.
        """
        if not isinstance(order, int | float) or not order >= 0:
            raise ValueError(f"order is {order!r}; it must be a number of at least 0")
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

    def report(self) -> Report:
        from byteweld.evaluation._report import report

        return report(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as JSON-serializable values."""
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
            "longest_match": None
            if self.longest_match is None
            else {**self.longest_match._asdict(), "share": self.longest_match.share},
            "digits": {
                "whole_numbers": [found._asdict() for found in probes.whole_numbers],
                "numbers": {cut.name: [t.hex() for t in cut.tokens] for cut in probes.numbers},
            },
            "indentation": {cut.name: [t.hex() for t in cut.tokens] for cut in probes.indents},
            "languages": [_rate_to_dict(language) for language in probes.languages],
        }


def _rate_to_dict(rate: FileRate | Language) -> dict[str, Any]:
    fields = rate._asdict()
    words = fields.pop("words")
    return {**fields, "bytes_per_token": rate.bytes_per_token, **_words_to_dict(words)}


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


# ---------------------------------------------------------------------------- evaluating


def evaluate_files(
    tok: Tokenizer,
    files: Files,
    *,
    progress: Callable[[int], object] | None = None,
    **options: Unpack[EncodingOptions],
) -> Evaluation:
    """Evaluate a tokenizer on files, given as pairs of a name and its documents.

    Special tokens in a document count as special tokens unless the options say otherwise.
    `progress` is called with the number of bytes encoded so far.

    >>> tok = Tokenizer.from_merges({b: bytes([b]) for b in range(256)}, [])
    >>> found = evaluate_files(tok, [("a.txt", [b"ab c"])])
    >>> found.total.bytes_per_token, found.total.words.fertility, found.used
    (1.0, 1.5, 4)
    """
    encoder = CorpusEncoder(tok, **options)
    advance = running_total(progress)
    rates: list[FileRate] = []
    scripts: dict[str, WordRate] = {}
    changed: list[Changed] = []
    changed_documents = 0
    match: LongestMatch | None = LongestMatch()
    for name, documents in files:
        number = size = tokens = 0
        by_script: dict[str, WordRate] = {}
        for batch in encode_file([encoder], name, documents, [by_script], advance):
            if match is not None:
                found = encoder.agreement([document.content for document in batch])
                match = found and LongestMatch(*map(operator.add, match, found))
            for _, number, content, (ids,), _ in batch:
                size += len(content)
                tokens += len(ids)
                if tok.decode_bytes(ids) != content:
                    changed_documents += 1
                    if changed_documents <= _MAX_CHANGED:
                        changed.append(Changed(name, number))
        rates.append(FileRate(name, number, size, tokens, total_rate(by_script)))
        add(scripts, by_script)
    return Evaluation(
        name=tok.name,
        tokens=dict(tok.vocab.ordinary()),
        unreachable=frozenset(unreachable(tok)),
        files=tuple(rates),
        scripts={name: scripts[name] for name in by_bytes(scripts)},
        counts=encoder.counts,
        changed_documents=changed_documents,
        changed=tuple(changed),
        longest_match=match,
        probes=probe(tok),
    )
