"""Alignment: segments tile the text, end at common boundaries, and say correctly who agrees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld.comparison import Segment, align


@st.composite
def cuts(draw):
    """A length, and the token ends of each of a few tokenizers."""
    length = draw(st.integers(0, 40))
    inner = st.sets(st.integers(1, max(1, length - 1)))
    lanes = draw(st.lists(inner, min_size=1, max_size=4))
    return length, [
        sorted(e for e in lane if e < length) + [length] * (length > 0) for lane in lanes
    ]


@given(cuts())
def test_segments_tile_the_text_and_end_at_common_boundaries(given_cuts):
    length, lanes = given_cuts
    segments = list(align(lanes))
    edges = [0, *(segment.end for segment in segments)]
    assert [segment.start for segment in segments] == edges[:-1]
    assert edges[-1] == length
    assert set(edges[1:]) == set(lanes[0]).intersection(*lanes[1:])


@given(cuts())
def test_segments_hold_every_token_and_agree_only_if_cut_the_same_way(given_cuts):
    _, lanes = given_cuts
    segments = list(align(lanes))
    for lane, ends in enumerate(lanes):
        indices = [index for s in segments for index in range(*s.tokens[lane])]
        assert indices == list(range(len(ends)))
    for segment in segments:
        found = {tuple(e[a:b]) for e, (a, b) in zip(lanes, segment.tokens, strict=True)}
        assert segment.agrees == (len(found) == 1)


def test_a_worked_example():
    segments = align([[1, 3, 5], [2, 3, 5]])
    assert list(segments) == [
        Segment(0, 3, ((0, 2), (0, 2)), False),
        Segment(3, 5, ((2, 3), (2, 3)), True),
    ]
    assert (len(segments), segments.differing, segments.differing_bytes) == (2, 1, 3)


def test_a_token_of_no_bytes_belongs_to_the_segment_around_it():
    (segment,) = align([[0, 2], [2]])
    assert segment == Segment(0, 2, ((0, 2), (0, 1)), False)


def test_the_widest_spread_comes_first():
    one = [4, 6, 9]
    other = [1, 2, 3, 4, 5, 6, 9]
    assert align([one, other]).where_most(5) == [0, 1]
    assert align([one, other]).where_most(1) == [0]
    assert align([one, one]).where_most(5) == []


def test_aligning_no_tokenizers_fails_and_an_empty_text_works():
    with pytest.raises(ValueError, match="no tokenizer to align"):
        align([])
    assert list(align([[], []])) == []
