"""The laws of Counts: tables add up in any order; documents, files and threads do not matter."""

from __future__ import annotations

import gzip
import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import PATTERNS, RECIPES, Counts
from tests.helpers.strategies import as_bytes, corpora, examples, recipes

tables = st.dictionaries(st.binary(min_size=1, max_size=4), st.integers(0, 2**40), max_size=8)


@examples(100)
@given(st.lists(tables, max_size=6), st.randoms(use_true_random=False))
def test_tables_add_up_in_any_order_and_any_tree(dicts, choose):
    expected: dict[bytes, int] = {}
    for table in dicts:
        for pretoken, count in table.items():
            expected[pretoken] = expected.get(pretoken, 0) + count
    expected = {pretoken: count for pretoken, count in expected.items() if count}
    pending = [Counts(table) for table in dicts]
    assert dict(Counts.merge(pending).items()) == expected
    choose.shuffle(pending)
    pending.append(Counts({}))
    while len(pending) > 1:
        take = choose.randint(2, len(pending))
        together, pending = pending[:take], pending[take:]
        pending.insert(choose.randint(0, len(pending)), Counts.merge(together))
    assert dict(pending[0].items()) == expected
    assert pending[0].total == sum(expected.values())


@examples(40)
@given(st.data())
def test_counts_of_two_corpora_add_up_to_those_of_both(data):
    recipe = data.draw(recipes())
    a, b = data.draw(corpora(recipe)), data.draw(corpora(recipe))

    def count(documents):
        return byteweld.count(iter(documents), recipe=recipe)

    assert count(a) + count(b) == count([*a, *b]) == count(b) + count(a)


@examples(60)
@given(st.data())
def test_the_order_of_documents_and_the_number_of_threads_do_not_matter(data):
    recipe = data.draw(recipes())
    documents = data.draw(corpora(recipe))
    shuffled = data.draw(st.permutations(documents))
    tables = [
        byteweld.count(iter(order), recipe=recipe, num_threads=threads)
        for order, threads in [(documents, 1), (shuffled, 2), (documents, 7)]
    ]
    assert tables[0] == tables[1] == tables[2]


@examples(100)
@given(tables)
def test_counts_hold_the_table_they_were_made_from(table):
    counts = Counts(table)
    kept = sorted((p, n) for p, n in table.items() if n)  # zero counts are dropped
    assert counts.items() == kept
    assert list(counts) == [p for p, _ in kept]
    assert len(counts) == len(kept)
    assert counts.total == sum(table.values())
    assert counts.total_bytes == sum(len(p) * n for p, n in table.items())
    assert all(counts[p] == n for p, n in table.items())
    assert counts == Counts(dict(kept))
    assert counts.most_common() == sorted(kept, key=lambda item: (-item[1], item[0]))


@examples(40)
@given(tables, st.sampled_from([None, *PATTERNS.values(), "[ab]+"]))
def test_counts_survive_pickling(table, pattern):
    counts = Counts(table, pattern=pattern)
    copy = pickle.loads(pickle.dumps(counts))
    assert copy == counts and copy.pattern == pattern


def test_counts_survive_saving_for_any_table(tmp_path):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "counts"

    @examples(30)
    @given(tables, st.sampled_from([None, *PATTERNS.values(), "none", ""]))
    def survives(table, pattern):
        counts = Counts(table, pattern=pattern)
        counts.save(folder, overwrite=True)
        loaded = Counts.load(folder)
        assert loaded == counts and loaded.pattern == pattern

    survives()


# ---------------------------------------------------------------------- files


def write_files(folder, documents):
    paths = []
    for n, document in enumerate(documents):
        path = folder / f"{n:03}.txt{'.gz' if n % 3 == 2 else ''}"
        content = as_bytes(document)
        path.write_bytes(gzip.compress(content) if n % 3 == 2 else content)
        paths.append(path)
    return paths


def test_files_count_like_their_documents_in_any_order_and_on_any_number_of_threads(
    tmp_path, data, nasty_texts
):
    documents = [(data / name).read_bytes() for name in ("prose.txt", "code.txt", "many.txt")]
    documents += [text.encode() for text in nasty_texts if text]
    paths = write_files(tmp_path, documents)
    for name in ("modern", "from-scratch", "ck", "plain"):
        expected = byteweld.count(iter(documents), recipe=name)
        for threads in (1, 2, 7):
            random.Random(threads).shuffle(paths)
            assert byteweld.count(paths, recipe=name, num_threads=threads) == expected


@pytest.mark.parametrize("name", ["modern", "from-scratch", "huggingface", "bpetite", "plain"])
def test_a_large_file_counts_the_same_on_any_number_of_threads(name, tmp_path, data, nasty_texts):
    # Large enough to be split into blocks.
    choose = random.Random(7)
    parts = (data / "prose.txt").read_text("utf-8").split("\n") + nasty_texts
    parts += (data / "many.txt").read_text("utf-8").split(" ")
    text = "".join(
        choose.choice(parts)[:300] + choose.choice([" ", "\n", ""]) for _ in range(60_000)
    )
    file = tmp_path / "large.txt"
    file.write_text(text, "utf-8", newline="")
    documents = [text.encode()]
    if RECIPES[name].document_unit == "line":  # only "\n" ends a line
        *lines, last = documents[0].split(b"\n")
        documents = [line + b"\n" for line in lines] + [last]
    expected = byteweld.count(iter(documents), recipe=name, num_threads=1)
    assert expected.total_bytes == len(text.encode())
    for threads in (1, 2, 7):
        assert byteweld.count(file, recipe=name, num_threads=threads) == expected
