"""byteweld: train, encode, decode, convert and inspect byte-level BPE tokenizers.

The errors are imported at once, everything else on first use.
"""

from byteweld._native import __version__ as __version__
from byteweld.errors import (
    BudgetError,
    ByteweldError,
    CorpusError,
    FetchError,
    FormatError,
    MissingKeyError,
    NativeError,
    PatternError,
    SpecialTokenError,
    TaskError,
    UnknownIdError,
    UnsupportedError,
    VocabularyError,
)

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from byteweld.api import compare, count, evaluate, tokenize, train
    from byteweld.arrow_tokenizer import ArrowTokenizer
    from byteweld.comparison.corpora import Comparison
    from byteweld.counts import Counts
    from byteweld.dataset.formats import DATASET_FORMATS
    from byteweld.dataset.reading import Dataset, open_dataset
    from byteweld.dataset.verification import Verification, verify
    from byteweld.encodings import (
        encoding_for_model,
        encoding_name_for_model,
        get_encoding,
        list_encoding_names,
    )
    from byteweld.evaluation.corpora import Evaluation
    from byteweld.explanation import explain, explain_training, merge_tree
    from byteweld.fetching import fetch
    from byteweld.formats import FORMATS, recognize
    from byteweld.loading import load
    from byteweld.patterns import PATTERNS
    from byteweld.recipes import RECIPES, Recipe
    from byteweld.streams import DecodeStream, EncodeStream
    from byteweld.tokenizer import Tokenizer
    from byteweld.training import Training, TrainingEvent
    from byteweld.vocab import AddedToken, Replace, Split, Vocabulary
del TYPE_CHECKING

__all__ = [
    "DATASET_FORMATS",
    "FORMATS",
    "PATTERNS",
    "RECIPES",
    "AddedToken",
    "ArrowTokenizer",
    "BudgetError",
    "ByteweldError",
    "Comparison",
    "CorpusError",
    "Counts",
    "Dataset",
    "DecodeStream",
    "EncodeStream",
    "Evaluation",
    "FetchError",
    "FormatError",
    "MissingKeyError",
    "NativeError",
    "PatternError",
    "Recipe",
    "Replace",
    "SpecialTokenError",
    "Split",
    "TaskError",
    "Tokenizer",
    "Training",
    "TrainingEvent",
    "UnknownIdError",
    "UnsupportedError",
    "Verification",
    "Vocabulary",
    "VocabularyError",
    "compare",
    "count",
    "encoding_for_model",
    "encoding_name_for_model",
    "evaluate",
    "explain",
    "explain_training",
    "fetch",
    "get_encoding",
    "list_encoding_names",
    "load",
    "merge_tree",
    "open_dataset",
    "recognize",
    "tokenize",
    "train",
    "verify",
]

# Module -> the names imported from it on first use. The module is imported the same way.
_LAZY = {
    "api": ("compare", "count", "evaluate", "tokenize", "train"),
    "arrow_tokenizer": ("ArrowTokenizer",),
    "comparison.corpora": ("Comparison",),
    "counts": ("Counts",),
    "dataset.formats": ("DATASET_FORMATS",),
    "dataset.reading": ("Dataset", "open_dataset"),
    "dataset.verification": ("Verification", "verify"),
    "encodings": (
        *("encoding_for_model", "encoding_name_for_model", "get_encoding", "list_encoding_names"),
    ),
    "evaluation.corpora": ("Evaluation",),
    "explanation": ("explain", "explain_training", "merge_tree"),
    "fetching": ("fetch",),
    "formats": ("FORMATS", "recognize"),
    "loading": ("load",),
    "patterns": ("PATTERNS",),
    "recipes": ("RECIPES", "Recipe"),
    "streams": ("DecodeStream", "EncodeStream"),
    "tokenizer": ("Tokenizer",),
    "training": ("Training", "TrainingEvent"),
    "vocab": ("AddedToken", "Replace", "Split", "Vocabulary"),
}


def __getattr__(name: str) -> object:
    """Import a public name or module when it is first used."""
    import importlib

    if name in _LAZY:
        return importlib.import_module(f"byteweld.{name}")
    for module, names in _LAZY.items():
        if name in names:
            value: object = getattr(importlib.import_module(f"byteweld.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'byteweld' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
