"""proof: where two encodings part, and what a proof of a corpus counts."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld import proof


def encoded(lists):
    ids = np.array([i for some in lists for i in some], np.uint32)
    return ids, np.cumsum([0, *map(len, lists)], dtype=np.int64)


def position_by_hand(one, other):
    for text, (ids, other_ids) in enumerate(zip(one, other, strict=True)):
        if ids != other_ids:
            pairs = enumerate(zip(ids, other_ids, strict=False))
            return text, next((n for n, (a, b) in pairs if a != b), min(len(ids), len(other_ids)))
    return None


batches = st.lists(
    st.tuples(*[st.lists(st.integers(0, 2), max_size=3)] * 2).flatmap(
        lambda pair: st.sampled_from([pair, (pair[0], pair[0])])
    ),
    max_size=6,
)


@given(batches)
def test_the_first_difference_is_the_one_that_is_found_by_hand(pairs):
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    expected = position_by_hand(one, other)
    assert proof.first_difference(encoded(one), encoded(other)) == expected


def test_encodings_of_different_numbers_of_documents_cannot_be_compared():
    with pytest.raises(ValueError, match="one side has 2 documents, the other 1"):
        proof.first_difference(encoded([[1], [2]]), encoded([[1, 2]]))


class Half:
    """A side that gives the bytes of a text as ids, and fails on some texts."""

    def __init__(self, name, *, bad=(), changed=()):
        self.name = name
        self.bad, self.changed = bad, changed
        self.calls = 0

    def encode(self, texts):
        self.calls += 1
        for text in texts:
            if text in self.bad:
                raise RuntimeError(f"{self.name} cannot do {text!r}")
        return encoded([list(t) + [7] * (t in self.changed) for t in texts]), 0.25


def documents(*texts):
    return [proof.Document("file", n, text) for n, text in enumerate(texts, 1)]


def test_a_proof_counts_what_was_the_same():
    heard = []
    found = proof.prove(
        Half("ours"), Half("theirs"), documents(b"ab", b"", b"c"), progress=heard.append
    )
    assert (found.documents, found.tokens, found.bytes) == (3, 3, 3)
    assert found.seconds == (0.25, 0.25)
    assert not found.is_over
    assert heard == [3]


def test_a_proof_ends_with_the_first_difference(monkeypatch):
    monkeypatch.setattr(proof, "_BATCH_BYTES", 1)  # a batch for each document
    theirs = Half("theirs", changed=[b"c", b"e"])
    found = proof.prove(Half("ours"), theirs, documents(b"ab", b"c", b"d", b"e"))
    assert found.difference == (proof.Document("file", 2, b"c"), 1, ([99], [99, 7]))
    assert (found.documents, found.tokens) == (1, 2)
    assert theirs.calls == 2


def test_a_document_that_a_side_fails_on_ends_the_proof_after_counting_the_earlier_ones():
    found = proof.prove(Half("ours"), Half("theirs", bad=[b"c"]), documents(b"ab", b"c", b"d"))
    assert found.failure == ("theirs", proof.Document("file", 2, b"c"), "theirs cannot do b'c'")
    assert (found.documents, found.tokens) == (1, 2)


def test_only_the_other_sides_failures_can_be_skipped():
    texts = documents(b"ab", b"c", b"d")
    found = proof.prove(Half("ours"), Half("theirs", bad=[b"c"]), texts, skip_failures=True)
    assert (found.documents, found.tokens, found.skipped_documents) == (2, 3, 1)
    assert [failure.document.number for failure in found.skipped] == [2]
    found = proof.prove(Half("ours", bad=[b"c"]), Half("theirs"), texts, skip_failures=True)
    assert found.failure is not None and found.failure.side == "ours"


@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_interrupt_does_not_count_as_a_failure(num_threads):
    class Interrupted(Half):
        def encode(self, texts):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        proof.prove(Half("ours"), Interrupted("theirs"), documents(b"a"), num_threads=num_threads)


def test_few_of_many_failures_are_kept():
    texts = documents(*([b"c"] * 50))
    found = proof.prove(Half("ours"), Half("theirs", bad=[b"c"]), texts, skip_failures=True)
    assert found.skipped_documents == 50
    assert 0 < len(found.skipped) <= 10


# ---------------------------------------------------------------------- threads


class Uneven(Half):
    """A side that takes longer for earlier documents, and knows how many calls ran at once."""

    def __init__(self, name, **options):
        super().__init__(name, **options)
        self.now = self.most = 0
        self.lock = threading.Lock()

    def encode(self, texts):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02 / texts[0][0])
        with self.lock:
            self.now -= 1
        return super().encode(texts)


NUMBERED = [bytes([n]) for n in range(1, 41)]


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_threads_change_no_result(monkeypatch, num_threads):
    monkeypatch.setattr(proof, "_BATCH_BYTES", 1)  # a batch for each document
    everything = documents(*NUMBERED)
    sides = Uneven("ours"), Uneven("theirs")
    heard = []
    found = proof.prove(*sides, everything, num_threads=num_threads, progress=heard.append)
    assert (found.documents, found.tokens, found.bytes) == (40, 40, 40)
    assert heard == list(range(1, 41))
    assert sides[0].most <= num_threads
    # A later document differs, too, and its batch is finished earlier.
    theirs = Uneven("theirs", changed=[NUMBERED[9], NUMBERED[11], NUMBERED[30]])
    found = proof.prove(Uneven("ours"), theirs, everything, num_threads=num_threads)
    assert found.difference is not None and found.difference.document.number == 10
    assert (found.documents, found.tokens) == (9, 9)
    # The same with failures: which documents are skipped, and which one stops it.
    theirs = Uneven("theirs", bad=[NUMBERED[3], NUMBERED[9]])
    found = proof.prove(
        Uneven("ours", bad=[NUMBERED[20]]),
        theirs,
        everything,
        num_threads=num_threads,
        skip_failures=True,
    )
    assert [failure.document.number for failure in found.skipped] == [4, 10]
    assert found.failure is not None and found.failure.document.number == 21
    assert found.documents == 18


def test_only_a_few_batches_are_read_ahead(monkeypatch):
    monkeypatch.setattr(proof, "_BATCH_BYTES", 1)
    read = 0

    def reading():
        nonlocal read
        for document in documents(*NUMBERED * 10):
            read += 1
            yield document

    ahead = []
    sides = Half("ours"), Half("theirs")
    proof.prove(*sides, reading(), num_threads=3, progress=lambda done: ahead.append(read - done))
    assert 0 < max(ahead) <= 4
