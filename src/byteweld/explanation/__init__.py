"""Explain encoding and training step by step, with the reference implementation.

`explain` shows how a text is encoded, `explain_training` how merges are learned, and `merge_tree`
how a token is built. The results render as JSON, text or HTML. Pre-tokens come from the caller's
tokenizer.
"""

from byteweld.explanation._encoding import Explanation, PairRow, PretokenExplanation, Step, explain
from byteweld.explanation._text import MAX_PARTS, MAX_ROWS
from byteweld.explanation._training import (
    CountRow,
    PretokenRow,
    TrainingExplanation,
    TrainingStep,
    explain_training,
)
from byteweld.explanation._tree import MAX_PRETOKEN_BYTES, DrawnNode, Tree, TreeNode, merge_tree

__all__ = [
    "MAX_PARTS",
    "MAX_PRETOKEN_BYTES",
    "MAX_ROWS",
    "CountRow",
    "DrawnNode",
    "Explanation",
    "PairRow",
    "PretokenExplanation",
    "PretokenRow",
    "Step",
    "TrainingExplanation",
    "TrainingStep",
    "Tree",
    "TreeNode",
    "explain",
    "explain_training",
    "merge_tree",
]
