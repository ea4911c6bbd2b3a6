"""Prove that two encoders agree: both encode all documents in batches, and the ids are compared.

The result says how much was equal, or where the first difference is. Only one batch is in memory.
Nothing is printed, and the encoders can be any (see `peers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from byteweld._text import batches

if TYPE_CHECKING:
    import numpy as np  # slow to import
    from numpy.typing import NDArray

    # The ids of several documents in one array, and an array of offsets, as in `encode_ragged`.
    Encoded = tuple[NDArray[np.uint32], NDArray[np.int64]]

# A peer may use a hundred bytes of memory for every token of a batch.
_BATCH_BYTES = 2 << 20
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


class Side(Protocol):
    """One of the two encoders, with a human-readable name."""

    @property
    def name(self) -> str: ...

    def encode(self, texts: Sequence[bytes]) -> tuple[Encoded, float]:
        """Return the ids of the documents, and the seconds that encoding alone took."""


class Difference(NamedTuple):
    """The first document whose ids differ, both lists of ids, and the first token that differs."""

    document: Document
    token: int
    ids: tuple[list[int], list[int]]


class Failure(NamedTuple):
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
    seconds: tuple[float, float] = (0.0, 0.0)  # that each side spent encoding
    skipped: tuple[Failure, ...] = ()  # the first few
    skipped_documents: int = 0
    difference: Difference | None = None
    failure: Failure | None = None

    @property
    def is_over(self) -> bool:
        """Whether a difference or a failure stopped it."""
        return self.difference is not None or self.failure is not None


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
    return Position(document, _first_token(ids_of(one, document), ids_of(other, document)))


def ids_of(encoded: Encoded, text: int) -> NDArray[np.uint32]:
    """Return the ids of one document."""
    ids, offsets = encoded
    return ids[offsets[text] : offsets[text + 1]]


def _first_token(ids: NDArray[np.uint32], other: NDArray[np.uint32]) -> int:
    import numpy as np

    shared = min(len(ids), len(other))
    return int(np.argmax(np.append(ids[:shared] != other[:shared], True)))


# ---------------------------------------------------------------------- a whole corpus


def prove(
    ours: Side,
    theirs: Side,
    documents: Iterable[Document],
    *,
    skip_failures: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Proof:
    """Encode documents with both sides up to the first difference.

    A document that `theirs` cannot encode stops the proof too, unless `skip_failures`; one that
    only `ours` cannot encode always does. `progress` is called with the bytes compared so far.
    """
    proof = Proof()
    for batch in batches(documents, _BATCH_BYTES, lambda document: len(document.content)):
        if _compare(proof, ours, theirs, batch) is not None:
            _compare_singly(proof, ours, theirs, batch, skip_failures)
        if progress is not None:
            progress(proof.bytes)
        if proof.is_over:
            break
    return proof


def is_failure(error: BaseException) -> bool:
    """Whether an error is a side's failure: an Exception, or a panic of a peer's engine."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _compare(proof: Proof, ours: Side, theirs: Side, batch: list[Document]) -> Failure | None:
    """Compare a batch; if a side fails on it, nothing is counted."""
    texts = [document.content for document in batch]
    results = []
    for side in (theirs, ours):
        try:
            results.append(side.encode(texts))
        except BaseException as error:
            if not is_failure(error):
                raise
            return Failure(side.name, batch[0], str(error) or type(error).__name__)
    (their_ids, their_seconds), (our_ids, our_seconds) = results
    proof.seconds = (proof.seconds[0] + our_seconds, proof.seconds[1] + their_seconds)
    _count(proof, our_ids, their_ids, batch)
    return None


def _compare_singly(
    proof: Proof, ours: Side, theirs: Side, batch: list[Document], skip_failures: bool
) -> None:
    """Compare the documents of a batch one by one, to find those on which a side fails."""
    for document in batch:
        failure = _compare(proof, ours, theirs, [document])
        if failure is None:
            pass
        elif skip_failures and failure.side == theirs.name:
            proof.skipped_documents += 1
            proof.skipped = (*proof.skipped, failure)[:_MAX_SKIPPED]
        else:
            proof.failure = failure
        if proof.is_over:
            return


def _count(proof: Proof, ours: Encoded, theirs: Encoded, batch: list[Document]) -> None:
    found = first_difference(ours, theirs)
    same = len(batch) if found is None else found.text
    proof.documents += same
    proof.tokens += int(ours[1][same])
    proof.bytes += sum(len(document.content) for document in batch[:same])
    if found is not None:
        ids = (ids_of(ours, found.text).tolist(), ids_of(theirs, found.text).tolist())
        proof.difference = Difference(batch[found.text], found.token, ids)
