"""Counts: the table, training on it, and counting documents and files."""

from __future__ import annotations

import pickle

import pytest

import byteweld
from byteweld import Counts, PatternError


def items(source, **options):
    return byteweld.count(source, **({"recipe": "plain"} | options)).items()


# ---------------------------------------------------------------------- the table


def test_a_table_is_read_like_a_mapping():
    counts = Counts({b"low": 5, b"lower": 2})
    assert counts[b"low"] == 5
    assert counts[b"absent"] == 0
    assert b"lower" in counts
    assert b"absent" not in counts
    assert list(counts) == [b"low", b"lower"]
    assert len(counts) == 2
    assert counts.total == 7
    assert counts.total_bytes == 25
    assert repr(counts) == "<Counts 2 pre-tokens, 7 in all>"


def test_an_empty_table_is_valid():
    counts = Counts({})
    assert len(counts) == counts.total == counts.total_bytes == 0
    assert counts == Counts.merge([])
    assert byteweld.train(counts, vocab_size=300, recipe="plain").training.stop == "no pairs"


@pytest.mark.parametrize("pretoken", ["a", b"", 5, None])
def test_pretokens_are_non_empty_bytes(pretoken):
    with pytest.raises(TypeError, match="expected non-empty bytes"):
        Counts({pretoken: 1})


@pytest.mark.parametrize("count", [-1, 1.0, "1", True, None])
def test_counts_are_whole_numbers(count):
    with pytest.raises(ValueError, match="count of b'a'"):
        Counts({b"a": count})


def test_a_table_cannot_be_changed():
    counts = Counts({b"a": 1})
    with pytest.raises(AttributeError):
        counts.pattern = "x"
    with pytest.raises(AttributeError):
        del counts.pattern
    with pytest.raises(TypeError):
        counts[b"a"] = 2
    with pytest.raises(TypeError):
        hash(counts)
    assert counts == Counts({b"a": 1})


def test_a_pretoken_of_str_is_a_type_error():
    with pytest.raises(TypeError):
        Counts({b"a": 1})["a"]


def test_pretokens_that_differ_only_in_zero_bytes_are_different():
    table = {b"\0" * n + end: 1 + n for n in range(40) for end in (b"", b"a", b"\xff")}
    del table[b""]
    counts = Counts(table)
    assert counts.items() == sorted(table.items())
    assert all(counts[pretoken] == count for pretoken, count in table.items())


def test_tables_with_different_patterns_cannot_be_added():
    with pytest.raises(ValueError, match="different patterns"):
        Counts({b"a": 1}, pattern="x+") + Counts({b"a": 1}, pattern="y+")
    with pytest.raises(ValueError, match="different patterns"):
        Counts({b"a": 1}, pattern="x+") + Counts({b"a": 1})


@pytest.mark.parametrize("other", [5, None, {b"a": 1}])
def test_a_table_is_made_of_a_mapping_and_added_only_to_a_table(other):
    with pytest.raises(TypeError):
        Counts({b"a": 1}) + other
    for table in (None, [(b"a", 1)], "abc"):
        with pytest.raises(TypeError):
            Counts(table)


def test_the_pattern_is_part_of_the_value():
    assert Counts({b"a": 1}, pattern="x+") != Counts({b"a": 1})
    assert Counts({b"a": 1}) != {b"a": 1}


# ---------------------------------------------------------------------- counting


def test_documents_are_counted_one_by_one():
    assert items(iter(["ab", b"ab", "", b"", "c"])) == [(b"ab", 2), (b"c", 1)]
    assert items([b"ab", b"ab"]) == [(b"ab", 2)]
    assert items(text for text in ("a", "b")) == [(b"a", 1), (b"b", 1)]
    assert items({"a": 1, "b": 2}.keys()) == [(b"a", 1), (b"b", 1)]
    assert items(iter([])) == []


def test_a_list_of_str_is_a_list_of_paths(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("ab")
    assert items([str(file), file]) == [(b"ab", 2)]
    with pytest.raises(FileNotFoundError, match="some text"):
        items(["some text"])
    with pytest.raises(TypeError):
        items([str(file), b"a document"])


@pytest.mark.parametrize("source", [5, None, 1.5, [1, 2], [None], iter([1]), iter([None]), b"one"])
def test_a_source_that_is_not_a_corpus_is_a_type_error(source):
    with pytest.raises(TypeError):
        items(source)


@pytest.mark.parametrize(
    ("threads", "error"),
    [(0, ValueError), (-1, ValueError), (-(2**31), ValueError), ("2", TypeError), (1.5, TypeError)],
)
def test_a_number_of_threads_is_a_positive_integer(threads, error):
    with pytest.raises(error, match="threads"):
        items(iter(["a"]), num_threads=threads)


@pytest.mark.slow  # a failure would use up all threads of the machine
def test_more_threads_than_a_machine_can_run_do_not_panic(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("ab")
    assert items(file, num_threads=100_000) == [(b"ab", 1)]


@pytest.mark.parametrize("pattern", ["(a", "[z-a]", r"\p{Nonsense}", "a)", "*"])
def test_a_broken_pattern_is_a_pattern_error_that_shows_it(pattern):
    with pytest.raises(PatternError) as caught:
        items(iter(["a"]), pattern=pattern)
    assert pattern.replace("\\", "") in str(caught.value).replace("\\", "")


@pytest.mark.parametrize("pattern", ["x*", "a?", "(?:ab)*", "|a", ""])
def test_a_pattern_that_can_match_the_empty_string_is_refused(pattern):
    with pytest.raises(PatternError, match="empty"):
        items(iter(["a"]), pattern=pattern)


def test_progress_reports_all_bytes_read(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("ab " * 100_000)
    reported: list[int] = []
    byteweld.count(file, recipe="plain", progress=reported.append)
    assert reported and reported == sorted(reported) and reported[-1] == 300_000
    reported.clear()
    byteweld.count(iter(["x" * 1_000_000] * 20), recipe="plain", progress=reported.append)
    assert reported and reported[-1] == 20_000_000


def test_an_exception_in_progress_or_in_the_documents_propagates(tmp_path):
    def documents():
        yield "a"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        byteweld.count(documents())
    file = tmp_path / "a.txt"
    file.write_text("ab " * 1_000_000)

    def fail(_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        byteweld.count(file, recipe="plain", progress=fail)


# ---------------------------------------------------------------------- how counts were made


def test_counts_record_what_split_them_and_do_not_fit_another_recipe(tmp_path):
    plain = byteweld.count(iter(["was it"]), recipe="plain")
    assert plain.pattern is None and plain.boundaries == ()
    with pytest.raises(ValueError, match="made with pattern None"):
        byteweld.train(plain, vocab_size=300, recipe="modern")
    plain.save(tmp_path / "counts")
    assert Counts.load(tmp_path / "counts") == plain
    with pytest.raises(ValueError, match="made with pattern None"):
        byteweld.train(tmp_path / "counts", vocab_size=300, recipe="modern")
    split = byteweld.count(iter(["was it"]), special_tokens=["was"])
    assert split.boundaries == ("was",)
    with pytest.raises(ValueError, match="count again"):
        byteweld.train(split, vocab_size=300)
    assert byteweld.train(split, vocab_size=300, special_tokens=["was"]).vocab.special_tokens
    with pytest.raises(ValueError, match="different special tokens"):
        Counts.merge([split, byteweld.count(iter(["was it"]))])


def test_counts_made_by_hand_fit_any_recipe_with_special_tokens():
    counts = Counts({b"low": 5, b"lower": 2})
    assert counts.boundaries is None
    for recipe in ("plain", "from-scratch", "modern"):
        assert byteweld.train(counts, vocab_size=259, recipe=recipe, special_tokens=["<s>"])


def test_counts_record_the_number_of_skipped_documents(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\nbroken\n')
    counts = byteweld.count(tmp_path / "a.jsonl", on_error="skip")
    assert counts.skipped_documents == 1
    assert pickle.loads(pickle.dumps(counts)).skipped_documents == 1
    assert (counts + counts).skipped_documents == 2


def test_a_set_of_paths_is_refused():
    with pytest.raises(TypeError, match="list of paths"):
        byteweld.count({"a.txt"})
