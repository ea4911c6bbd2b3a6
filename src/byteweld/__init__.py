"""byteweld: train, encode, decode, convert and look into byte-level BPE. The public names.

What loading and encoding need is imported at once; the rest when it is first named.
"""

import typing as _typing

from byteweld._native import __version__ as __version__
from byteweld.errors import (
    BudgetError,
    ByteweldError,
    CorpusError,
    FormatError,
    MissingKeyError,
    NativeError,
    PatternError,
    SpecialTokenError,
    UnknownIdError,
    UnsupportedError,
    VocabularyError,
)
from byteweld.formats import FORMATS, recognize
from byteweld.loading import load
from byteweld.patterns import PATTERNS
from byteweld.streams import DecodeStream, EncodeStream
from byteweld.tokenizer import Tokenizer
from byteweld.vocab import AddedToken, Merge, Replace, Split, Vocabulary

if _typing.TYPE_CHECKING:
    from byteweld.api import compare, count, measure, train
    from byteweld.corpus import Corpus, open_corpus
    from byteweld.counts import Counts, Pruning
    from byteweld.encodings import (
        encoding_for_model,
        encoding_name_for_model,
        get_encoding,
        list_encoding_names,
    )
    from byteweld.explanation import explain, explain_training, merge_tree
    from byteweld.recipes import RECIPES, Recipe
    from byteweld.training import Training, TrainingEvent, report_path
    from byteweld.training.checkpoint import Checkpoint

__all__ = [
    "FORMATS",
    "PATTERNS",
    "RECIPES",
    "AddedToken",
    "BudgetError",
    "ByteweldError",
    "Checkpoint",
    "Corpus",
    "CorpusError",
    "Counts",
    "DecodeStream",
    "EncodeStream",
    "FormatError",
    "Merge",
    "MissingKeyError",
    "NativeError",
    "PatternError",
    "Pruning",
    "Recipe",
    "Replace",
    "SpecialTokenError",
    "Split",
    "Tokenizer",
    "Training",
    "TrainingEvent",
    "UnknownIdError",
    "UnsupportedError",
    "Vocabulary",
    "VocabularyError",
    "compare",
    "count",
    "encoding_for_model",
    "encoding_name_for_model",
    "explain",
    "explain_training",
    "get_encoding",
    "list_encoding_names",
    "load",
    "measure",
    "merge_tree",
    "open_corpus",
    "recognize",
    "report_path",
    "train",
]

# Module -> its names, as above.
_LATER = {
    "api": ("compare", "count", "measure", "train"),
    "training.checkpoint": ("Checkpoint",),
    "corpus": ("Corpus", "open_corpus"),
    "counts": ("Counts", "Pruning"),
    "encodings": (
        *("encoding_for_model", "encoding_name_for_model", "get_encoding", "list_encoding_names"),
    ),
    "explanation": ("explain", "explain_training", "merge_tree"),
    "recipes": ("RECIPES", "Recipe"),
    "training": ("Training", "TrainingEvent", "report_path"),
}

# Deprecated name -> its name today.
_RENAMED = {"recognise": "recognize"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used; warn about a deprecated one."""
    if name in _RENAMED:
        import warnings

        warnings.warn(
            f"byteweld.{name} is deprecated; use byteweld.{_RENAMED[name]}",
            DeprecationWarning,
            stacklevel=2,
        )
        return globals().get(_RENAMED[name]) or __getattr__(_RENAMED[name])
    for module, names in _LATER.items():
        if name in names:
            import importlib

            value: object = getattr(importlib.import_module(f"byteweld.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'byteweld' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
