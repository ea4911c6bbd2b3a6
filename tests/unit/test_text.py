"""Text and its bytes: how documents are grouped into batches."""

from __future__ import annotations

from byteweld._text import batches


def test_batches_stay_small_and_every_document_is_in_one():
    documents = [b"a" * (n % 300) for n in range(1, 500)]
    found = list(batches(iter(documents), 1000))
    assert [document for batch in found for document in batch] == documents
    assert len(found) > 50
    for batch in found:
        assert sum(map(len, batch[:-1])) < 1000


def test_a_batch_ends_with_the_document_that_fills_it():
    documents = [b"ab", b"cd", b"", b"efghij", b"k"]
    assert list(batches(documents, 132)) == [[b"ab", b"cd"], [b"", b"efghij"], [b"k"]]


def test_a_batch_of_empty_documents_ends():
    assert max(map(len, batches(iter([""] * 10_000), 1000))) < 20


def test_documents_may_be_measured_by_a_function():
    assert list(batches([1, 500, 1], 600, lambda n: n)) == [[1, 500], [1]]
