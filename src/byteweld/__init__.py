"""byteweld: train, encode, decode, convert and look into byte-level BPE. The public names."""

from byteweld._native import __version__ as __version__
from byteweld.api import count, load, train
from byteweld.checkpoint import Checkpoint
from byteweld.corpus import Corpus, open_corpus
from byteweld.counts import Counts, Pruning
from byteweld.encodings import (
    encoding_for_model,
    encoding_name_for_model,
    get_encoding,
    list_encoding_names,
)
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
from byteweld.explain import explain, explain_training, merge_tree
from byteweld.formats import FORMATS, recognise
from byteweld.patterns import PATTERNS
from byteweld.recipes import RECIPES, Recipe
from byteweld.streams import DecodeStream, EncodeStream
from byteweld.tokenizer import Tokenizer
from byteweld.training import Training, TrainingEvent, report_path
from byteweld.vocab import AddedToken, Merge, Replace, Split, Vocabulary

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
    "count",
    "encoding_for_model",
    "encoding_name_for_model",
    "explain",
    "explain_training",
    "get_encoding",
    "list_encoding_names",
    "load",
    "merge_tree",
    "open_corpus",
    "recognise",
    "report_path",
    "train",
]
