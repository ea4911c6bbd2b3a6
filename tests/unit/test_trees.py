"""Merge trees as SVG: where nodes are, that boxes do not overlap, that labels stay text."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld.markup import palette, tint
from byteweld.markup.trees import Node, tree
from byteweld.render import tile
from byteweld.studio.assets import ASSETS
from tests.helpers.strategies import examples

RECT = re.compile(r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([-\d.]+)" height="([-\d.]+)"')
SIZE = re.compile(r'width="(\d+)" height="(\d+)" viewBox="0 0 (\d+) (\d+)"')


def boxes(drawing):
    """The left, top, right and bottom edge of every box, in the order of the nodes."""
    found = []
    for match in RECT.finditer(drawing):
        x, y, width, height = map(float, match.groups())
        found.append((x, y, x + width, y + height))
    return found


def node(label, left=None, right=None, rank=None):
    return Node(label, len(label), f"{label} title", "c1", left, right, rank)


def test_a_parent_is_above_the_middle_of_its_children():
    drawing = tree([node("a"), node("b"), node("ab", 0, 1, 7)], [2], "merge tree of ab")
    left, right, parent = boxes(drawing)
    middle = (left[0] + right[2]) / 2
    assert (parent[0] + parent[2]) / 2 == middle
    assert left[1] == right[1] > parent[3]
    assert left[2] < right[0]
    assert re.findall(r'<text class="rank"[^>]*>([^<]*)', drawing) == ["7"]
    assert drawing.count('class="edge"') == 2
    assert 'role="img" aria-label="merge tree of ab"' in drawing
    assert drawing.startswith('<div class="wide drawing" tabindex="0">')


def test_trees_are_side_by_side_and_inside_the_drawing():
    nodes = [node("a"), node("b"), node("c"), node("longer than its children", 0, 1, 0)]
    drawing = tree(nodes, [3, 2], "")
    assert boxes(drawing)[3][2] <= boxes(drawing)[2][0] + 200
    width, height, *view = map(int, SIZE.search(drawing).groups())
    assert [width, height] == view
    assert all(0 <= x and 0 <= y and right <= width and bottom <= height
               for x, y, right, bottom in boxes(drawing))  # fmt: skip


def test_a_long_label_is_cut_and_markup_stays_text():
    drawing = tree([node("<script>" * 9), node("x" * 24)], [0, 1], "<b>")
    assert "<script" not in drawing and "<b>" not in drawing
    assert "&lt;script&gt;&lt;script&gt;&lt;script…" in drawing
    assert f">{'x' * 24}<" in drawing


def test_a_token_has_the_tint_of_its_tile_and_of_the_studio():
    tints = {tint(token_id) for token_id in range(1000)}
    assert tints == set(re.findall(r"\.(c\d+)\b", palette()))
    assert all(f'class="t {tint(i)}"' in tile(i, b"a") for i in range(30))
    script = ASSETS["glyphs.js"].content.decode()
    assert f"const TINTS = {len(tints)};" in script
    [factor, offset] = map(int, re.findall(r"\(id \* (\d+) \+ (\d+)\) % TINTS", script)[0])
    assert [tint(i) for i in range(30)] == [
        f"c{(i * factor + offset) % len(tints)}" for i in range(30)
    ]


def overlaps(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@examples(40)
@given(
    text=st.text(st.sampled_from("abcßü小船 \u202e<"), min_size=1, max_size=24),
    size=st.integers(256, 300),
)
def test_no_boxes_of_a_merge_tree_overlap(text, size):
    tok = byteweld.train(documents=[text * 3], vocab_size=size, pattern=None)
    for part in byteweld.explain(tok, text).pretokens:
        found = boxes(part.tree.to_html())
        assert len(found) == (len(part.tree.nodes) if len(part.tree.nodes) > 1 else 0)
        for index, one in enumerate(found):
            assert not any(overlaps(one, other) for other in found[:index])
