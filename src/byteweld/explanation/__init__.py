"""Explain encoding and training step by step.

`explain` shows how a text is encoded, `explain_training` how merges are learned, and `merge_tree`
how a token is built. The results render as JSON, text or HTML. Encoding and trees are shown with
the reference, on pre-tokens from the caller's tokenizer; training with the engine, so that it works
for a corpus of any size. `train_in_buffers` is ck's own training method; `match_by_hash`,
`match_by_trie` and `merge_by_rank` encode in three ways. The studio draws these four.
"""

from byteweld.explanation._buffers import Iteration, shards, train_in_buffers
from byteweld.explanation._encoding import Explanation, explain, explain_pretoken, find_pretokens
from byteweld.explanation._matching import (
    TrieMatch,
    TrieNode,
    make_trie,
    match_by_hash,
    match_by_trie,
    merge_by_rank,
)
from byteweld.explanation._report import MAX_PARTS, MAX_ROWS
from byteweld.explanation._training import TrainingExplanation, explain_training
from byteweld.explanation._tree import Tree, merge_tree

__all__ = [
    "MAX_PARTS",
    "MAX_ROWS",
    "Explanation",
    "Iteration",
    "TrainingExplanation",
    "Tree",
    "TrieMatch",
    "TrieNode",
    "explain",
    "explain_pretoken",
    "explain_training",
    "find_pretokens",
    "make_trie",
    "match_by_hash",
    "match_by_trie",
    "merge_by_rank",
    "merge_tree",
    "shards",
    "train_in_buffers",
]
