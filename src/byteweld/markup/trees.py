"""Merge trees as plain SVG, drawn as in the studio: parents above their children, leaves in order.

The drawing has its natural size and scrolls if it is wide, so that labels stay readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from byteweld.markup import Html, element

_ROW, _GAP, _MARGIN, _BOX = 62, 14, 12, 28  # as in studio/page/tree.js
_CELL = 9  # width of a character
_MAX_LABEL = 24


class Node(NamedTuple):
    """A node. `left` and `right` are indices of nodes before it; None in a leaf.

    `cells` is the width of the label in columns of a terminal; `kind` is its class, a tint.
    """

    label: str
    cells: int
    title: str
    kind: str
    left: int | None = None
    right: int | None = None
    rank: int | None = None


class _Drawn(NamedTuple):
    """A node, where its center is, and half its width."""

    node: Node
    label: str
    half: float
    x: float
    y: float


def tree(nodes: Sequence[Node], roots: Sequence[int], label: str) -> Html:
    """Return the drawing of trees side by side; `label` describes it in words."""
    drawn, width, height = _lay_out(nodes, roots)
    svg = element(
        "svg",
        element("title", label),
        [_edges(one, drawn) for one in drawn],
        [_box(one) for one in drawn],
        class_="merges",
        width=round(width),
        height=round(height),
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_label=label,
    )
    return element("div", svg, class_="wide drawing", tabindex="0")


def _edges(one: _Drawn, drawn: Sequence[_Drawn]) -> list[Html]:
    found = []
    for index in (one.node.left, one.node.right):
        if index is not None:
            child = drawn[index]
            top, bottom = one.y + _BOX / 2, child.y - _BOX / 2
            middle = (one.y + child.y) / 2
            curve = f"C{one.x:g} {middle:g} {child.x:g} {middle:g} {child.x:g} {bottom:g}"
            found.append(element("path", class_="edge", d=f"M{one.x:g} {top:g}{curve}"))
    return found


def _box(one: _Drawn) -> Html:
    node = one.node
    rank = None
    if node.rank is not None:
        rank = element("text", node.rank, class_="rank", x=one.x, y=one.y - _BOX / 2 - 5)
    return element(
        "g",
        element("title", node.title),
        element(
            "rect", x=one.x - one.half, y=one.y - _BOX / 2, width=2 * one.half, height=_BOX, rx=5
        ),
        element("text", one.label, x=one.x, y=one.y + 5),
        rank,
        class_=f"node {node.kind}",
    )


def _lay_out(nodes: Sequence[Node], roots: Sequence[int]) -> tuple[list[_Drawn], float, float]:
    """Place leaves from left to right and each parent above the middle of its children."""
    labels = [_shortened(node.label) for node in nodes]
    halves = [_width(node, text) / 2 for node, text in zip(nodes, labels, strict=True)]
    depths = [0] * len(nodes)
    for index in reversed(range(len(nodes))):  # children come before their parents
        for child in (nodes[index].left, nodes[index].right):
            if child is not None:
                depths[child] = depths[index] + 1
    places = [0.0] * len(nodes)
    at = float(_MARGIN)
    for root in roots:
        stack = [(root, False)]
        while stack:
            index, is_done = stack.pop()
            left, right = nodes[index].left, nodes[index].right
            if left is None or right is None:
                places[index] = at + halves[index]
                at += 2 * halves[index] + _GAP
            elif is_done:
                places[index] = (places[left] + places[right]) / 2
            else:
                stack += [(index, True), (right, False), (left, False)]
        at += _GAP
    # A parent may be wider than its children: shift everything by its overhang on the left.
    overhang = min((x - half for x, half in zip(places, halves, strict=True)), default=_MARGIN)
    shift = max(0.0, _MARGIN - overhang)
    drawn = [
        _Drawn(node, text, half, x + shift, _MARGIN + _BOX + depth * _ROW)
        for node, text, half, x, depth in zip(nodes, labels, halves, places, depths, strict=True)
    ]
    width = max((one.x + one.half for one in drawn), default=0) + _MARGIN
    return drawn, width, _MARGIN + 2 * _BOX + max(depths, default=0) * _ROW


def _shortened(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}…"


def _width(node: Node, shown: str) -> int:
    cells = node.cells if shown == node.label else 2 * _MAX_LABEL
    return max(30, _CELL * cells + 16)
