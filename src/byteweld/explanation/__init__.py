"""Explain encoding and training step by step.

`explain` shows how a text is encoded, `explain_training` how merges are learned, and `merge_tree`
how a token is built. The results render as JSON, text or HTML. Encoding and trees are shown with
the reference, on pre-tokens from the caller's tokenizer; training with the engine, so that it works
for a corpus of any size.
"""

from byteweld.explanation._encoding import Explanation, PairRow, PretokenExplanation, Step, explain
from byteweld.explanation._text import MAX_PARTS, MAX_ROWS
from byteweld.explanation._training import (
    ExampleRow,
    LearnedMerge,
    TrainingExplanation,
    TrainingStep,
    explain_training,
)
from byteweld.explanation._tree import MAX_PRETOKEN_BYTES, DrawnNode, Tree, TreeNode, merge_tree
from byteweld.training.steps import CountRow, PretokenRow

__all__ = [
    "MAX_PARTS",
    "MAX_PRETOKEN_BYTES",
    "MAX_ROWS",
    "CountRow",
    "DrawnNode",
    "ExampleRow",
    "Explanation",
    "LearnedMerge",
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
