"""Memory budgets do not change results: counts, files and tokenizers are the same at any limit."""

from __future__ import annotations

import pickle
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import Counts, _memory
from byteweld._memory import Budget, memory_limit
from byteweld.counts import count_within
from tests.helpers.strategies import as_bytes, corpora, examples, recipes

# Down to tables that hold a single batch of pre-tokens, and merges of only two runs at a time.
limits = st.builds(
    memory_limit,
    table_bytes=st.sampled_from([1, 2_000, 6_000, 20_000, 100_000]),
    text_bytes=st.just(1 << 20),
    merge_bytes=st.sampled_from([300_000, 400_000, 4 << 20]),
    keep_bytes=st.sampled_from([0, 0, 5_000, 1 << 20]),
    record_bytes=st.just(1 << 20),
    dictionary_bytes=st.just(1 << 20),
)


def tiny(**changes):
    names = ("text_bytes", "merge_bytes", "record_bytes", "dictionary_bytes")
    sizes = {"table_bytes": 20_000, "keep_bytes": 0} | dict.fromkeys(names, 1 << 20)
    return memory_limit(**sizes | changes)


def varied_documents(seed, number):
    """Yield documents with many distinct pre-tokens, some of them long."""
    choose = random.Random(seed)
    letters = "abcdefghij"
    for _ in range(number):
        words = []
        for _ in range(choose.randint(1, 60)):
            length = choose.choice([1, 2, 3, 3, 4, 5, 15, 16, 17, 40])
            words.append("".join(choose.choice(letters) for _ in range(length)))
        yield " ".join(words)


@examples(60)
@given(st.data())
def test_counts_are_the_same_at_every_limit_and_number_of_threads(data):
    recipe = data.draw(recipes())
    documents = data.draw(corpora(recipe))
    expected = byteweld.count(iter(documents), recipe=recipe)
    for threads in (1, 2, 7):
        limit = data.draw(limits)
        counts = count_within(Budget(limit, threads), iter(documents), recipe)
        assert counts == expected
        assert counts.items() == expected.items()
        assert (counts.total, counts.total_bytes) == (expected.total, expected.total_bytes)


@examples(10)
@given(st.integers(0, 1 << 30), st.data())
def test_many_runs_add_up_to_the_same_counts_and_the_same_tokenizer(seed, data):
    documents = list(varied_documents(seed, 300))
    recipe = byteweld.RECIPES[data.draw(st.sampled_from(["modern", "from-scratch", "plain"]))]
    expected = byteweld.count(iter(documents), recipe=recipe)
    tok = byteweld.train(expected, vocab_size=400, recipe=recipe)
    for threads in (1, 2, 7):
        budget = Budget(data.draw(limits), threads, batch_bytes=20_000)
        counts = count_within(budget, iter(documents), recipe)
        assert counts == expected
        trained = byteweld.train(counts, vocab_size=400, recipe=recipe)
        assert trained.vocab.fingerprint == tok.vocab.fingerprint
        assert trained.training.merge_counts == tok.training.merge_counts


def test_files_count_the_same_at_every_limit(tmp_path):
    documents = list(varied_documents(5, 3000))
    for n in range(3):
        (tmp_path / f"{n}.txt").write_text("\n".join(documents[n::3]))
    expected = byteweld.count(tmp_path)
    corpus = byteweld.corpus.open_corpus(tmp_path)
    for threads in (1, 2, 7):
        for table_bytes in (5_000, 50_000, 1 << 20):
            limit = tiny(table_bytes=table_bytes)
            counts = count_within(Budget(limit, threads), corpus, byteweld.RECIPES["modern"])
            assert counts.is_on_disk and counts == expected


def test_counts_on_disk_behave_like_counts_in_memory(tmp_path):
    documents = list(varied_documents(1, 2000))
    expected = byteweld.count(iter(documents))
    counts = count_within(Budget(tiny(), None), iter(documents), byteweld.RECIPES["modern"])
    assert counts.is_on_disk and not expected.is_on_disk
    assert len(counts) == len(expected) and repr(counts) == repr(expected)
    assert list(counts) == list(expected)
    assert counts.items() == expected.items()
    for n in (0, 1, 7, None):
        assert counts.most_common(n) == expected.most_common(n)
    for pretoken, count in expected.items()[::97]:
        assert counts[pretoken] == count and pretoken in counts
    assert counts[b"absent"] == 0 and b"absent" not in counts and counts[b""] == 0
    assert pickle.loads(pickle.dumps(counts)) == expected
    assert counts + expected == expected + counts == Counts.merge([expected, expected])
    assert (counts + counts).is_on_disk
    assert sum(int(n.sum()) for _, n in counts.batches()) == expected.total
    assert dict(
        item for batch, n in counts.batches() for item in zip(batch, n.tolist(), strict=True)
    ) == dict(expected.items())
    pruned = counts.prune(3)
    assert pruned == expected.prune(3) and pruned.pruning == expected.prune(3).pruning


def test_a_pretoken_larger_than_the_table_is_counted(tmp_path):
    documents = [b"x" * 50_000, b"y" * 30_000, b"short", b"x" * 50_000]
    recipe = byteweld.RECIPES["plain"]
    expected = byteweld.count(iter(documents), recipe=recipe)
    for table_bytes in (1, 1_000, 40_000, 200_000):
        limit = tiny(table_bytes=table_bytes)
        assert count_within(Budget(limit, 1), iter(documents), recipe) == expected


# ---------------------------------------------------------------------- trees of merges


def test_counts_merged_in_random_trees_give_the_same_folder_byte_for_byte(tmp_path):
    pytest.importorskip("pyarrow", reason="saved counts are Parquet files")
    documents = list(varied_documents(3, 900))
    recipe = byteweld.RECIPES["modern"]
    byteweld.count(iter(documents)).save(tmp_path / "expected")
    expected = content(tmp_path / "expected")
    for seed in range(6):
        choose = random.Random(seed)
        shuffled = choose.sample(documents, len(documents))
        pending = []
        for n in range(9):
            limit = choose.choice([None, tiny(), tiny(table_bytes=3_000)])
            pending.append(count_within(Budget(limit, None), iter(shuffled[n::9]), recipe))
        step = 0
        while len(pending) > 1:
            choose.shuffle(pending)
            take = choose.randint(2, 4)
            together, pending = pending[:take], pending[take:]
            memory = choose.choice([None, _memory.resident_bytes() + (300 << 20)])
            merged = Counts.merge(together, memory=memory)
            if choose.random() < 0.5:
                step += 1
                merged.save(tmp_path / f"{seed}-{step}")
                pending.append(tmp_path / f"{seed}-{step}")
            else:
                pending.append(merged)
        Counts.merge(pending).save(tmp_path / f"{seed}")
        assert content(tmp_path / f"{seed}") == expected


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# ---------------------------------------------------------------------- the bound of pruning


@examples(60)
@given(
    st.dictionaries(st.binary(min_size=1, max_size=8), st.integers(1, 9), max_size=40),
    st.integers(1, 10),
)
def test_no_pair_loses_more_than_the_bound(table, threshold):
    counts = Counts(table)
    pruned = counts.prune(threshold)
    bound = pruned.pruning
    dropped = {pretoken: n for pretoken, n in table.items() if n < threshold}
    assert dict(pruned.items()) == {p: n for p, n in table.items() if n >= threshold}
    assert (bound.distinct, bound.occurrences) == (len(dropped), sum(dropped.values()))
    assert bound.bytes == sum(len(pretoken) * n for pretoken, n in dropped.items())
    assert all(n <= bound.word_error for n in dropped.values())
    lost: Counter[bytes] = Counter()
    for pretoken, n in dropped.items():
        for offset in range(len(pretoken) - 1):
            lost[pretoken[offset : offset + 2]] += n
    assert bound.pair_error == max(lost.values(), default=0)


@examples(30)
@given(st.data())
def test_documents_count_the_same_with_a_budget(data):
    documents = data.draw(corpora(byteweld.RECIPES["modern"]))
    counts = byteweld.count(iter(documents), memory=_memory.resident_bytes() + (1 << 30))
    assert counts == byteweld.count(iter(documents))
    assert counts.total_bytes == sum(len(as_bytes(document)) for document in documents)
