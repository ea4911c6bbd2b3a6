"""Why these tokens: the reference at work, step by step, as values, JSON, text and HTML.

`explain` shows how a text is encoded, `explain_training` how merges are learned, `merge_tree` how a
token is built. Pre-tokens come from the caller's tokenizer. Nothing is printed here.
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
