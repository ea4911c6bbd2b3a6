"""Prove that two encoders agree: both encode all documents in batches, and the ids are compared.

The result says how much was equal, or where the first difference is. Batches are encoded on several
threads, but their results are taken in the order of the documents. A few batches are in memory.
Nothing is printed, and the encoders can be any (see `peers`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from byteweld._text import batches

if TYPE_CHECKING:
    from concurrent.futures import Future

    import numpy as np  # slow to import
    from numpy.typing import NDArray

    # The ids of several documents in one array, and an array of offsets, as in `encode_ragged`.
    Encoded = tuple[NDArray[np.uint32], NDArray[np.int64]]

# A peer may use a hundred bytes of memory for every token of a batch, and there are a few batches
# more than threads. So with many threads, batches are smaller.
_BATCH_BYTES = 2 << 20
_ALL_BATCHES_BYTES = 32 << 20
_MAX_SKIPPED = 10


class Position(NamedTuple):
    """The first difference: the index of the document in its batch, and of the token in that."""

    text: int
    token: int


class Document(NamedTuple):
    """A document with the name of its file and its number in it, from 1."""

    source: str
    number: int
    content: bytes
    file: int = 1  # the number of its file in the corpus, from 1
    skipped: int = 0  # malformed documents before it, in all files


class Side(Protocol):
    """One of the two encoders, with a human-readable name. Several threads may call `encode`."""

    @property
    def name(self) -> str: ...

    def encode(self, texts: Sequence[bytes]) -> tuple[Encoded, float]:
        """Return the ids of the documents, and the seconds that encoding alone took."""


class Mismatch(NamedTuple):
    """The first document whose ids differ, both lists of ids, and the first token that differs."""

    document: Document
    token: int
    ids: tuple[list[int], list[int]]


class Unencodable(NamedTuple):
    """A document that one side could not encode, and its error."""

    side: str
    document: Document
    reason: str


@dataclass(slots=True)
class Proof:
    """How much was compared and found equal, and what stopped the comparison, if anything did."""

    documents: int = 0
    tokens: int = 0
    bytes: int = 0
    seconds: tuple[float, float] = (0.0, 0.0)  # that each side spent encoding, on all threads
    skipped: tuple[Unencodable, ...] = ()  # the first few
    skipped_documents: int = 0
    difference: Mismatch | None = None
    failure: Unencodable | None = None

    @property
    def seen(self) -> int:
        """Number of documents compared or skipped."""
        return self.documents + self.skipped_documents

    @property
    def is_over(self) -> bool:
        """Whether a difference or a failure stopped it."""
        return self.end is not None

    @property
    def end(self) -> Document | None:
        """The document whose difference or failure stopped it."""
        stopped = self.difference or self.failure
        return None if stopped is None else stopped.document


# ---------------------------------------------------------------------- comparing ids


def first_difference(one: Encoded, other: Encoded) -> Position | None:
    """Return the first difference between two encodings of the same documents, or None.

    >>> import numpy as np
    >>> first_difference(
    ...     (np.array([1, 2, 3, 4]), np.array([0, 2, 4])),
    ...     (np.array([1, 2, 3]), np.array([0, 2, 3])),
    ... )
    Position(text=1, token=1)
    """
    import numpy as np

    ids, offsets = one
    other_ids, other_offsets = other
    if len(offsets) != len(other_offsets):
        raise ValueError(
            f"one side has {len(offsets) - 1} documents, the other {len(other_offsets) - 1}"
        )
    if np.array_equal(offsets, other_offsets) and np.array_equal(ids, other_ids):
        return None
    # Both have the same offsets up to the first document whose number of ids differs. If an id
    # before that differs, its document is the first difference; otherwise, this document is.
    document = int(np.argmax(np.append(offsets[1:] != other_offsets[1:], True)))
    same_length = int(offsets[document])
    unequal = ids[:same_length] != other_ids[:same_length]
    if unequal.any():
        document = int(np.searchsorted(offsets, int(np.argmax(unequal)), side="right")) - 1
    found, expected = ids_of(one, document), ids_of(other, document)
    shared = min(len(found), len(expected))
    token = int(np.argmax(np.append(found[:shared] != expected[:shared], True)))
    return Position(document, token)


def ids_of(encoded: Encoded, text: int) -> NDArray[np.uint32]:
    """Return the ids of one document."""
    ids, offsets = encoded
    return ids[offsets[text] : offsets[text + 1]]


# ---------------------------------------------------------------------- a whole corpus


def prove(
    ours: Side,
    theirs: Side,
    documents: Iterable[Document],
    *,
    skip_failures: bool = False,
    num_threads: int = 1,
    progress: Callable[[int], object] | None = None,
) -> Proof:
    """Encode documents with both sides up to the first difference.

    A document that `theirs` cannot encode stops the proof too, unless `skip_failures`; one that
    only `ours` cannot encode always does. An error in reading is raised after all documents before
    it are compared. `progress` is called with the bytes compared so far.
    """
    proof = Proof()
    for batch, outcome in _outcomes(ours, theirs, documents, num_threads):
        if isinstance(outcome, Unencodable):
            _compare_singly(proof, ours, theirs, batch, skip_failures)
        else:
            _count(proof, outcome, batch)
        if progress is not None:
            progress(proof.bytes)
        if proof.is_over:
            break
    return proof


def add(one: Proof, other: Proof, moved: Callable[[Document], Document]) -> Proof:
    """Return the proof of some documents, which is not over, and of those after them.

    `moved` returns a document of `other` as one of all documents.
    """
    difference, failure = other.difference, other.failure
    skipped = (item._replace(document=moved(item.document)) for item in other.skipped)
    if difference is not None:
        difference = difference._replace(document=moved(difference.document))
    if failure is not None:
        failure = failure._replace(document=moved(failure.document))
    return Proof(
        one.documents + other.documents,
        one.tokens + other.tokens,
        one.bytes + other.bytes,
        (one.seconds[0] + other.seconds[0], one.seconds[1] + other.seconds[1]),
        (*one.skipped, *skipped)[:_MAX_SKIPPED],
        one.skipped_documents + other.skipped_documents,
        difference,
        failure,
    )


class _Compared(NamedTuple):
    """A batch that both sides encoded, and the first difference."""

    ours: Encoded
    theirs: Encoded
    found: Position | None
    seconds: tuple[float, float]


def _outcomes(
    ours: Side, theirs: Side, documents: Iterable[Document], num_threads: int
) -> Iterator[tuple[list[Document], _Compared | Unencodable]]:
    """Yield each batch and its outcome in order; a few batches after it are already at work."""
    limit = max(1, min(_BATCH_BYTES, _ALL_BATCHES_BYTES // num_threads))
    errors: list[Exception] = []
    readable = _until_error(documents, errors)
    all_batches = batches(readable, limit, lambda document: len(document.content))
    if num_threads == 1:
        for batch in all_batches:
            yield batch, _compare(ours, theirs, batch)
    else:
        yield from _on_threads(ours, theirs, all_batches, num_threads)
    if errors:
        raise errors[0]


def _until_error(documents: Iterable[Document], errors: list[Exception]) -> Iterator[Document]:
    """Yield documents; an error ends them and is put into `errors`."""
    try:
        yield from documents
    except Exception as error:
        errors.append(error)


def _on_threads(
    ours: Side, theirs: Side, all_batches: Iterable[list[Document]], num_threads: int
) -> Iterator[tuple[list[Document], _Compared | Unencodable]]:
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    waiting: deque[tuple[list[Document], Future[_Compared | Unencodable]]] = deque()

    def results(most: int) -> Iterator[tuple[list[Document], _Compared | Unencodable]]:
        while len(waiting) > most:
            batch, outcome = waiting.popleft()
            yield batch, outcome.result()

    with ThreadPoolExecutor(num_threads) as pool:
        try:
            for batch in all_batches:
                waiting.append((batch, pool.submit(_compare, ours, theirs, batch)))
                yield from results(num_threads + 1)
            yield from results(0)
        finally:
            pool.shutdown(cancel_futures=True)


def is_failure(error: BaseException) -> bool:
    """Whether an error is a side's failure: an Exception, or a panic of a peer's engine."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _compare(ours: Side, theirs: Side, batch: list[Document]) -> _Compared | Unencodable:
    """Encode a batch with both sides; if a side fails on it, nothing is known about the batch."""
    texts = [document.content for document in batch]
    results = []
    for side in (theirs, ours):
        try:
            results.append(side.encode(texts))
        except BaseException as error:
            if not is_failure(error):
                raise
            return Unencodable(side.name, batch[0], str(error) or type(error).__name__)
    (their_ids, their_seconds), (our_ids, our_seconds) = results
    found = first_difference(our_ids, their_ids)
    return _Compared(our_ids, their_ids, found, (our_seconds, their_seconds))


def _compare_singly(
    proof: Proof, ours: Side, theirs: Side, batch: list[Document], skip_failures: bool
) -> None:
    """Compare the documents of a batch one by one, to find those on which a side fails."""
    for document in batch:
        outcome = _compare(ours, theirs, [document])
        if isinstance(outcome, _Compared):
            _count(proof, outcome, [document])
        elif skip_failures and outcome.side == theirs.name:
            proof.skipped_documents += 1
            proof.skipped = (*proof.skipped, outcome)[:_MAX_SKIPPED]
        else:
            proof.failure = outcome
        if proof.is_over:
            return


def _count(proof: Proof, compared: _Compared, batch: list[Document]) -> None:
    ours, theirs, found, (our_seconds, their_seconds) = compared
    proof.seconds = (proof.seconds[0] + our_seconds, proof.seconds[1] + their_seconds)
    same = len(batch) if found is None else found.text
    proof.documents += same
    proof.tokens += int(ours[1][same])
    proof.bytes += sum(len(document.content) for document in batch[:same])
    if found is not None:
        ids = (ids_of(ours, found.text).tolist(), ids_of(theirs, found.text).tolist())
        proof.difference = Mismatch(batch[found.text], found.token, ids)
