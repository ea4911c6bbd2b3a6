"""find_chunk_boundaries: even offsets moved to special tokens; chunks count as the file does."""

from __future__ import annotations

import io
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import byteweld
from byteweld.corpus import _chunks, find_chunk_boundaries

END = "<|endoftext|>"


class Watched(io.BytesIO):
    """A file that records how much is read of it, and in how large pieces."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.total = 0
        self.largest = 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None and size > 0, "reads the whole file"
        data = super().read(size)
        self.total += len(data)
        self.largest = max(self.largest, len(data))
        return data


def chunks(data: bytes, boundaries: list[int]) -> list[bytes]:
    return [data[start:end] for start, end in itertools.pairwise(boundaries)]


def test_every_chunk_but_the_first_starts_at_the_token_after_an_even_offset():
    story = b"once upon a time" + END.encode()
    data = story * 1000
    found = find_chunk_boundaries(io.BytesIO(data), 4, END)
    assert found[0] == 0
    assert found[-1] == len(data)
    assert len(found) == 5
    for number, boundary in enumerate(found[1:-1], start=1):
        assert boundary == data.find(END.encode(), len(data) // 4 * number)


def test_two_offsets_that_reach_the_same_token_are_one_boundary():
    data = b"a" * 10_000 + END.encode() + b"b" * 10
    assert find_chunk_boundaries(io.BytesIO(data), 8, END) == [0, 10_000, len(data)]
    assert find_chunk_boundaries(io.BytesIO(data), 1, END) == [0, len(data)]


def test_a_file_without_the_token_or_without_text_is_one_chunk_or_none():
    assert find_chunk_boundaries(io.BytesIO(b"a" * 1000), 4, END) == [0, 1000]
    assert find_chunk_boundaries(io.BytesIO(b"ab"), 4, END) == [0, 2]
    assert find_chunk_boundaries(io.BytesIO(b""), 4, END) == [0]


@pytest.mark.parametrize("shift", range(len(END) + 1))
def test_a_token_that_straddles_two_windows_is_found(shift):
    # The even offset is half the file, and windows are read from just before it.
    first = _chunks._WINDOW_BYTES - len(END) + 1 - shift
    half = first + _chunks._WINDOW_BYTES
    data = bytearray(b"a" * 2 * half)
    data[half + first : half + first + len(END)] = END.encode()
    assert find_chunk_boundaries(io.BytesIO(data), 2, END) == [0, half + first, 2 * half]


def test_nothing_is_read_whole_and_little_is_read():
    data = (b"a" * 10_000 + END.encode()) * 1000
    file = Watched(data)
    assert len(find_chunk_boundaries(file, 8, END)) == 9
    assert file.largest <= _chunks._WINDOW_BYTES
    assert file.total <= 7 * _chunks._WINDOW_BYTES


def test_the_position_of_an_open_file_is_restored_and_a_path_is_opened(tmp_path):
    data = (b"abc" + END.encode()) * 100
    file = io.BytesIO(data)
    file.seek(7)
    found = find_chunk_boundaries(file, 3, END.encode())
    assert file.tell() == 7
    (tmp_path / "stories.txt").write_bytes(data)
    assert find_chunk_boundaries(tmp_path / "stories.txt", 3, END) == found
    assert find_chunk_boundaries(str(tmp_path / "stories.txt"), 3, END) == found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, END), "desired_num_chunks is 0"),
        ((-1, END), "desired_num_chunks is -1"),
        ((True, END), "desired_num_chunks is True"),
        ((2, ""), "split_special_token is empty"),
        ((2, b""), "split_special_token is empty"),
        ((2, "\ud800"), "lone surrogate"),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[Any, Any], words: str):
    with pytest.raises(ValueError, match=words):
        find_chunk_boundaries(io.BytesIO(b"ab"), *arguments)


@given(
    st.lists(st.sampled_from([b"a", b"b ", b"\n\n", b"\n", END.encode(), b"<|endo"]), max_size=60),
    st.integers(1, 9),
    st.sampled_from([END, "\n\n", "aa", "a", "ab a", "aba"]),
)
@example(parts=[b"b ", b"a", b"a", b"a", b"b "], number=2, token="aa")
def test_chunks_have_the_counts_of_the_whole(parts: list[bytes], number: int, token: str):
    data = b"".join(parts)
    boundaries = find_chunk_boundaries(io.BytesIO(data), number, token)
    pieces = chunks(data, boundaries)
    assert b"".join(pieces) == data
    assert len(pieces) <= number
    assert all(piece.startswith(token.encode()) for piece in pieces[1:])
    options: dict[str, Any] = {"recipe": "from-scratch", "special_tokens": [token]}
    total: Counter[bytes] = Counter()
    for piece in pieces:
        total.update(dict(byteweld.count(documents=[piece], **options).items()))
    assert total == dict(byteweld.count(documents=[data], **options).items())


@given(st.binary(max_size=300), st.integers(1, 7), st.binary(min_size=1, max_size=3))
def test_a_boundary_is_where_splitting_from_the_beginning_finds_the_token(
    data: bytes, number: int, token: bytes
):
    found = find_chunk_boundaries(io.BytesIO(data), number, token)
    offsets = set(
        itertools.accumulate((len(part + token) for part in data.split(token)), initial=0)
    )
    starts = {offset - len(token) for offset in offsets}
    assert set(found[1:-1]) <= starts


def test_a_large_file_of_tokens_that_overlap_is_searched_in_linear_time(tmp_path: Path):
    # Every offset is an occurrence of "aa", and none is free of an earlier one.
    (tmp_path / "a").write_bytes(b"a" * 1_000_000)
    assert find_chunk_boundaries(tmp_path / "a", 64, "aa") == [0, 1_000_000]


def test_more_chunks_than_bytes_are_as_many_as_there_are_bytes():
    data = b"one<|end|>two<|end|>three"
    expected = find_chunk_boundaries(io.BytesIO(data), len(data), "<|end|>")
    assert expected == [0, 3, 13, 25]
    assert find_chunk_boundaries(io.BytesIO(data), 10**18, "<|end|>") == expected
    assert find_chunk_boundaries(io.BytesIO(b""), 5, "<|end|>") == [0]


@pytest.mark.parametrize("file", [io.StringIO("abc"), b"path", 7])
def test_what_is_not_a_binary_file_is_a_type_error(file: Any):
    with pytest.raises(TypeError, match="binary mode"):
        find_chunk_boundaries(file, 2, "a")
