"""ck's trainer with two buffers and a pool of threads learns what the engine learns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.explanation import Iteration, shards, train_in_buffers

TEXTS = {
    "ck": st.one_of(
        st.text("ab \n", max_size=30).map(str.encode),
        st.text("aé🙂", max_size=12).map(str.encode),
        st.binary(max_size=12),
    ),
    "ck-ascii": st.text("ab<|=\t\n", max_size=30).map(str.encode),
}


@pytest.mark.parametrize("recipe", TEXTS)
@given(
    data=st.data(),
    merges=st.integers(0, 30),
    min_frequency=st.integers(0, 4),
    workers=st.sampled_from([1, 2, 7]),
)
def test_its_merges_are_the_engines(recipe, data, merges, min_frequency, workers):
    files = data.draw(st.lists(TEXTS[recipe], max_size=6))
    size = byteweld.RECIPES[recipe].minimum_size + merges
    options = {"min_frequency": min_frequency}
    is_ascii = recipe == "ck-ascii"
    trained = train_in_buffers(files, size, ascii_only=is_ascii, workers=workers, **options)
    tok = byteweld.train(iter(files), vocab_size=size, recipe=recipe, **options)
    assert trained.vocab == tok.vocab
    assert trained.vocab.merge_ids == tok.vocab.merge_ids
    assert [merge.pair_count for merge in trained.merges] == list(tok.training.merge_counts)
    assert trained.stopped == tok.training.stop


def test_the_name_of_a_special_token_is_not_learned_as_in_the_engine():
    files = [b"<|unk|> <|unk|> <|unk|>"] * 3
    trained = train_in_buffers(files, 300)
    assert trained.vocab == byteweld.train(iter(files), vocab_size=300, recipe="ck").vocab
    assert list(trained.vocab.tokens.values()).count(b"<|unk|>") == 1


def test_the_buffers_swap_roles_and_local_tables_add_up():
    seen: list[Iteration] = []
    files = [b"ab ab", b"abab", b"aab"]
    train_in_buffers(files, 262, min_frequency=1, workers=2, watch=seen.append)
    a, b, space = 4 + ord("a"), 4 + ord("b"), 4 + ord(" ")
    first, second = seen
    assert first.before == ((a, b, space, a, b), (a, b, a, b), (a, a, b))
    assert first.local_counts == [
        {(a, b): 2, (b, space): 1, (space, a): 1},
        {(a, b): 3, (b, a): 1, (a, a): 1},
    ]
    assert first.pair_counts[a, b] == 5
    assert first.merge == (a, b, 260, 5)
    assert first.tied == []
    assert first.after == second.before == ((260, space, 260), (260, 260), (a, 260))
    # Every pair now occurs once, so the smallest ids win.
    assert second.merge == (space, 260, 261, 1)
    assert second.tied == [(a, 260), (260, space), (260, 260)]
    assert second.after == ((260, 261), (260, 260), (a, 260))


@pytest.mark.parametrize(("files", "workers"), [(0, 3), (1, 2), (7, 2), (7, 7), (3, 7), (200, 7)])
def test_every_file_has_one_worker(files, workers):
    divided = shards(files, workers)
    assert len(divided) == workers
    assert [file for shard in divided for file in shard] == list(range(files))
    assert max(map(len, divided)) - min(map(len, divided)) <= 1


def test_wrong_values_are_refused():
    with pytest.raises(byteweld.CorpusError, match="byte 0xC3 at offset 1 of file 1 is outside"):
        train_in_buffers([b"a", "aé".encode()], 110, ascii_only=True)
    with pytest.raises(ValueError, match="workers is 0"):
        train_in_buffers([b"a"], 260, workers=0)
    with pytest.raises(ValueError, match="at least 260"):
        train_in_buffers([b"a"], 259)
