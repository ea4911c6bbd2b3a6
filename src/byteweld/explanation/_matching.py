"""From hash table to trie to BPE: three ways to encode a pre-token, with their work counted.

The first two take the longest token at each position, which is not BPE. For reading and drawing;
the engine encodes in another way.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from byteweld.vocab import Vocabulary


class HashMatch(NamedTuple):
    """Longest match by hash table: the ids, the probes, and the bytes hashed for them."""

    ids: list[int]
    probes: int
    hashed_bytes: int


def match_by_hash(vocab: Vocabulary, pretoken: bytes) -> HashMatch:
    """Look up every length at each position, longest first, until one is a token."""
    longest = max(map(len, vocab.ids))
    ids: list[int] = []
    probes = hashed_bytes = at = 0
    while at < len(pretoken):
        for length in range(min(longest, len(pretoken) - at), 0, -1):
            probes += 1
            hashed_bytes += length
            token = vocab.ids.get(pretoken[at : at + length])
            if token is not None:
                break
        else:
            raise _no_token(pretoken, at)
        ids.append(token)
        at += length
    return HashMatch(ids, probes, hashed_bytes)


class TrieNode(NamedTuple):
    """A node: the byte that leads to it, its parent, its children, the token that ends here."""

    byte: int | None  # None: the root
    parent: int | None
    children: dict[int, int]  # byte -> node
    token: int | None


class TrieStep(NamedTuple):
    """One byte read: where, the node it leads to (None: none), the token taken after it if any."""

    at: int
    node: int | None
    token: int | None


class TrieMatch(NamedTuple):
    """Longest match by trie: the ids, and every step of the walk."""

    ids: list[int]
    steps: list[TrieStep]


def make_trie(tokens: Iterable[tuple[int, bytes]]) -> list[TrieNode]:
    """Return the trie of some tokens; its root is node 0.

    >>> [(node.byte, node.token) for node in make_trie([(0, b"a"), (1, b"ab")])]
    [(None, None), (97, 0), (98, 1)]
    """
    nodes = [TrieNode(None, None, {}, None)]
    for token_id, token in tokens:
        at = 0
        for byte in token:
            if byte not in nodes[at].children:
                nodes[at].children[byte] = len(nodes)
                nodes.append(TrieNode(byte, at, {}, None))
            at = nodes[at].children[byte]
        nodes[at] = nodes[at]._replace(token=token_id)
    return nodes


def match_by_trie(trie: list[TrieNode], pretoken: bytes) -> TrieMatch:
    """Follow the bytes as far as the trie goes, then take the last token on the way."""
    ids: list[int] = []
    steps: list[TrieStep] = []
    start = 0
    while start < len(pretoken):
        node, at, found, end = 0, start, None, start
        while at < len(pretoken):
            child = trie[node].children.get(pretoken[at])
            steps.append(TrieStep(at, child, None))
            if child is None:
                break
            node, at = child, at + 1
            if trie[node].token is not None:
                found, end = trie[node].token, at
        if found is None:
            raise _no_token(pretoken, start)
        steps[-1] = steps[-1]._replace(token=found)
        ids.append(found)
        start = end
    return TrieMatch(ids, steps)


class RankMatch(NamedTuple):
    """BPE by merge rules: the ids, the merges made, and the pairs looked up for them."""

    ids: list[int]
    merges: int
    lookups: int


def merge_by_rank(vocab: Vocabulary, pretoken: bytes) -> RankMatch:
    """Merge the pair of lowest rank until no pair can merge.

    The rank of a pair is looked up once, when the two parts become neighbors.
    """
    rules = {(left, right): (rank, new) for rank, (left, right, new) in enumerate(vocab.merge_ids)}
    parts = []
    for at in range(len(pretoken)):
        if pretoken[at : at + 1] not in vocab.ids:
            raise _no_token(pretoken, at)
        parts.append(vocab.ids[pretoken[at : at + 1]])
    found = [rules.get(pair) for pair in pairwise(parts)]
    lookups = len(found)
    while ranked := [(rule, at) for at, rule in enumerate(found) if rule is not None]:
        (_, new), at = min(ranked)  # the leftmost one among equals
        parts[at : at + 2] = [new]
        # The pair itself is gone; its neighbors have a new part.
        near = [(parts[n], parts[n + 1]) for n in (at - 1, at) if 0 <= n < len(parts) - 1]
        found[max(0, at - 1) : at + 2] = [rules.get(pair) for pair in near]
        lookups += len(near)
    return RankMatch(parts, len(pretoken) - len(parts), lookups)


def _no_token(pretoken: bytes, at: int) -> ValueError:
    return ValueError(f"byte 0x{pretoken[at]:02X} at offset {at} is not in the alphabet")
