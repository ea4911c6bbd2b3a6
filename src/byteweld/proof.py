"""The proof that two encoders agree: documents go through both in batches, the ids are compared.

In: the ids of two encoders as arrays. Out: how much was the same, or the first place where they
part. Memory is that of one batch. Nothing is printed here, and no peer is known (see `peers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np  # slow to import
    from numpy.typing import NDArray

    # The ids of several texts on end, and where those of each start; as `encode_ragged` gives them.
    Encoded = tuple[NDArray[np.uint32], NDArray[np.int64]]

# A peer may need a hundred bytes for every token of a batch while it works.
_BATCH_BYTES = 2 << 20
# What a document costs besides its bytes: a corpus of empty lines must not make one endless batch.
_DOCUMENT_BYTES = 64
_KEPT_FAILURES = 10


class Place(NamedTuple):
    """Where two encodings part: which text of the batch, and which token of that text."""

    text: int
    token: int


class Document(NamedTuple):
    """A document, with the name of its file and its number there, from 1."""

    source: str
    number: int
    content: bytes


class Side(Protocol):
    """One of the two encoders, under the name that people know it by."""

    @property
    def name(self) -> str: ...

    def encode(self, texts: Sequence[bytes]) -> tuple[Encoded, float]:
        """The ids of texts, and the seconds that encoding took without what is done around it."""


class Difference(NamedTuple):
    """The first document with other ids, those ids, and the first token that differs."""

    document: Document
    token: int
    ids: tuple[list[int], list[int]]


class Failure(NamedTuple):
    """A document that one side could not encode, and what it said."""

    side: str
    document: Document
    reason: str


@dataclass(slots=True)
class Proof:
    """What was compared and found the same, and what stopped it, if anything did."""

    documents: int = 0
    tokens: int = 0
    bytes: int = 0
    seconds: tuple[float, float] = (0.0, 0.0)  # that each side needed for encoding
    skipped: tuple[Failure, ...] = ()  # the first few of them
    skipped_documents: int = 0
    difference: Difference | None = None
    failure: Failure | None = None

    @property
    def is_over(self) -> bool:
        """Whether something stopped it."""
        return self.difference is not None or self.failure is not None


# ---------------------------------------------------------------------- comparing ids


def first_difference(one: Encoded, other: Encoded) -> Place | None:
    """The first place where two encodings of the same texts part; None where they are the same.

    >>> import numpy as np
    >>> first_difference(
    ...     (np.array([1, 2, 3, 4]), np.array([0, 2, 4])),
    ...     (np.array([1, 2, 3]), np.array([0, 2, 3])),
    ... )
    Place(text=1, token=1)
    """
    import numpy as np

    ids, offsets = one
    other_ids, other_offsets = other
    if len(offsets) != len(other_offsets):
        raise ValueError(
            f"{len(offsets) - 1} texts on one side, {len(other_offsets) - 1} on the other"
        )
    if np.array_equal(offsets, other_offsets) and np.array_equal(ids, other_ids):
        return None
    # Up to the first text of another length, both lie on the same offsets: a differing id in
    # that stretch shows its text; if there is none, that text is the first to differ.
    texts = int(np.argmax(np.append(offsets[1:] != other_offsets[1:], True)))
    same_length = int(offsets[texts])
    unequal = ids[:same_length] != other_ids[:same_length]
    if unequal.any():
        texts = int(np.searchsorted(offsets, int(np.argmax(unequal)), side="right")) - 1
    return Place(texts, _first_token(ids_of(one, texts), ids_of(other, texts)))


def ids_of(encoded: Encoded, text: int) -> NDArray[np.uint32]:
    """The ids of one text."""
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
    """Send documents through both sides until they end, or until the first difference.

    A document that `theirs` cannot encode is the end too, unless `skip_failures` leaves it out. One
    that only `ours` cannot encode always is. `progress` hears of bytes compared.
    """
    proof = Proof()
    for batch in _batches(documents):
        if _compare(proof, ours, theirs, batch) is not None:
            _compare_singly(proof, ours, theirs, batch, skip_failures)
        if progress is not None:
            progress(proof.bytes)
        if proof.is_over:
            break
    return proof


def is_failure(error: BaseException) -> bool:
    """Whether a side has failed: a panic of a peer's engine is no Exception, an interrupt none."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _compare(proof: Proof, ours: Side, theirs: Side, batch: list[Document]) -> Failure | None:
    """Compare a batch; nothing is counted if a side fails on it."""
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
    """Find out on which documents of a batch a side fails."""
    for document in batch:
        failure = _compare(proof, ours, theirs, [document])
        if failure is None:
            pass
        elif skip_failures and failure.side == theirs.name:
            proof.skipped_documents += 1
            proof.skipped = (*proof.skipped, failure)[:_KEPT_FAILURES]
        else:
            proof.failure = failure
        if proof.is_over:
            return


def _count(proof: Proof, ours: Encoded, theirs: Encoded, batch: list[Document]) -> None:
    place = first_difference(ours, theirs)
    same = len(batch) if place is None else place.text
    proof.documents += same
    proof.tokens += int(ours[1][same])
    proof.bytes += sum(len(document.content) for document in batch[:same])
    if place is not None:
        ids = (ids_of(ours, place.text).tolist(), ids_of(theirs, place.text).tolist())
        proof.difference = Difference(batch[place.text], place.token, ids)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document.content) + _DOCUMENT_BYTES
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
