"""Merge trees: how merges build a token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

from byteweld.errors import IdRangeError, UnknownIdError
from byteweld.reference.encode import EncodeStep, encode_steps
from byteweld.report import Displayable, Report
from byteweld.vocab import MAX_ID, Vocabulary

# The reference visits every pair at every step, so time is quadratic in this.
MAX_PRETOKEN_BYTES = 1024


def check_length(pretoken: bytes, limit: int) -> None:
    if len(pretoken) > limit:
        raise ValueError(
            f"pre-token {pretoken[:20]!r}... has {len(pretoken):,} bytes, too many to show step by "
            f"step (at most {limit:,}); use a shorter one, or raise max_pretoken_bytes="
        )


@dataclass(frozen=True)
class TreeNode:
    """A token in a merge tree. `left` and `right` are indices into the nodes; None in a leaf."""

    id: int
    left: int | None = None
    right: int | None = None
    rank: int | None = None


@dataclass(frozen=True, repr=False)
class Tree(Displayable):
    """Merge trees, one per token, as a flat list: a tree may be deeper than the call stack.

    Made by `byteweld.merge_tree`; `print` draws it.

    Attributes:
        nodes: the id, the indices of both parts, and the rank of each node; children come before
            their parents.
        roots: the indices of the final tokens, in order.
        tokens: the bytes of every id mentioned.

    Examples:
        >>> tok = byteweld.train(documents=["low low"], vocab_size=258)
        >>> tree = byteweld.merge_tree(tok.vocab, 257)
        >>> tree.nodes[tree.roots[0]]
        TreeNode(id=257, left=3, right=2, rank=1)
    """

    nodes: tuple[TreeNode, ...]
    roots: tuple[int, ...]
    tokens: Mapping[int, bytes]

    def report(self) -> Report:
        """Return what is shown of the trees: one node per line."""
        from byteweld.explanation._report import tree_part

        return Report("", tree_part(self))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-serializable lists: [id, left, right, rank] per node, and the roots."""
        nodes = [[node.id, node.left, node.right, node.rank] for node in self.nodes]
        return {"nodes": nodes, "roots": list(self.roots)}


def tree_of(steps: Iterable[EncodeStep], tokens: Mapping[int, bytes]) -> Tree:
    nodes: list[TreeNode] = []
    roots: list[int] = []  # the node of each part
    for step in steps:
        if not roots:
            nodes = [TreeNode(token_id) for token_id in step.parts]
            roots = list(range(len(nodes)))
        if step.chosen is not None:
            at, rank, new = step.chosen
            nodes.append(TreeNode(new, roots[at], roots[at + 1], rank))
            roots[at : at + 2] = [len(nodes) - 1]
    used = {node.id: tokens[node.id] for node in nodes}
    return Tree(tuple(nodes), tuple(roots), used)


def merge_tree(
    vocab: Vocabulary, token_id: int, *, max_pretoken_bytes: int = MAX_PRETOKEN_BYTES
) -> Tree:
    """Return how merges build one token; several roots if they cannot build it from its bytes.

    Args:
        vocab: the vocabulary.
        token_id: the token.
        max_pretoken_bytes: the longest token to show; n bytes take n² time.

    Examples:
        >>> tok = byteweld.train(documents=["low low"], vocab_size=258)
        >>> print(byteweld.merge_tree(tok.vocab, 257))
        low  257  rank 1
        ├── lo  256  rank 0
        │   ├── l  108
        │   └── o  111
        └── w  119
    """
    if not isinstance(vocab, Vocabulary):
        raise TypeError(f"expected a Vocabulary, found {type(vocab).__name__}")
    token_id = index(token_id)
    if not 0 <= token_id <= MAX_ID:
        raise IdRangeError(token_id)
    if token_id not in vocab.tokens:
        raise UnknownIdError(
            f"id {token_id} is not in the vocabulary of {len(vocab)} tokens", token_id
        )
    token = vocab.tokens[token_id]
    if token not in vocab.ids:  # special tokens are not built from parts
        return Tree((TreeNode(token_id),), (0,), {token_id: token})
    check_length(token, max_pretoken_bytes)
    return tree_of(encode_steps(vocab, token, whole_first=False), vocab.tokens)
