"""Options of the verbs that still declare them one by one; see `_options`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Annotated, Any, NamedTuple, cast, get_args

import byteweld
from byteweld._files import read_regular
from byteweld.cli import _errors
from byteweld.cli._command import Argument, Option
from byteweld.cli._options import file_of as file_of
from byteweld.cli._options import is_name as is_name
from byteweld.cli._options import load_tokenizer as load_tokenizer
from byteweld.corpus import FOLDER_EXTENSIONS, ReadingOptions
from byteweld.corpus import OnError as ErrorPolicy
from byteweld.formats._json import MAX_BESIDE_BYTES
from byteweld.recipes import TieBreak as TieRule

_RECIPE = "Recipe"
_READING = "Reading"
_TOKENIZER = "Tokenizer"
_TIES = get_args(TieRule)
_ON_ERROR = get_args(ErrorPolicy)
_KILO = 1024


def vocab_size(option: str) -> Any:
    """A reader of a vocabulary size: a whole number, or one with k for 1024, such as 32k."""

    def read(value: str | int) -> int:
        match = re.fullmatch(r"(-?[0-9]{1,15})([kK]?)", str(value))
        if match is None:
            raise _errors.UsageError(
                f"{option} is {str(value)!r}; expected a whole number, or one with k for 1024"
            )
        return int(match[1]) * (_KILO if match[2] else 1)

    return read


def whole_number(option: str, at_least: int | None = None) -> Any:
    """A reader of a whole number; its errors name the option."""

    def read(value: str | int) -> int:
        text = str(value)
        if not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise _errors.UsageError(f"{option} is {text!r}; expected a whole number")
        if at_least is not None and int(text) < at_least:
            raise _errors.UsageError(f"{option} is {text}; it must be at least {at_least}")
        return int(text)

    return read


def fraction(option: str) -> Any:
    """A reader of a fraction, at least 0 and below 1; its errors name the option."""

    def read(value: str | float) -> float:
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < 1:
            raise _errors.UsageError(
                f"{option} is {str(value)!r}; expected a fraction, at least 0 and below 1"
            )
        return number

    return read


# ---------------------------------------------------------------------------- recipe

RecipeName = Annotated[
    str,
    Option(
        "--recipe",
        metavar="NAME",
        help=f"Training recipe: {', '.join(byteweld.RECIPES)}. Default: modern.",
        choices=list(byteweld.RECIPES),
        group=_RECIPE,
    ),
]
PatternText = Annotated[
    str | None,
    Option(
        "--pattern",
        metavar="P",
        help=f"How text is split into pre-tokens: {', '.join(byteweld.PATTERNS)}, none, "
        "or a regular expression.",
        group=_RECIPE,
    ),
]
EncodePattern = Annotated[
    str | None,
    Option(
        "--encode-pattern",
        metavar="P",
        help="The pattern to store in the tokenizer, if not the one used for training.",
        group=_RECIPE,
    ),
]
Special = Annotated[
    list[str] | None,
    Option(
        "--special",
        metavar="TEXT",
        help="A special token. May be repeated.",
        group=_RECIPE,
    ),
]
SpecialsFile = Annotated[
    str | None,
    Option(
        "--specials-file",
        metavar="FILE",
        help="A file of special tokens, one per line; blank lines, duplicates and built-in special "
        "tokens are ignored.",
        group=_RECIPE,
    ),
]
MinFrequency = Annotated[
    int | None,
    Option(
        "--min-frequency",
        metavar="N",
        read=whole_number("--min-frequency", 0),
        help="Stop when the most frequent pair occurs fewer than N times.",
        group=_RECIPE,
    ),
]
MaxTokenBytes = Annotated[
    int | None,
    Option(
        "--max-token-bytes",
        metavar="N",
        read=whole_number("--max-token-bytes", 1),
        help="Learn no tokens longer than N bytes.",
        group=_RECIPE,
    ),
]
TieBreak = Annotated[
    str | None,
    Option(
        "--tie-break",
        metavar="RULE",
        help=f"Which of several pairs with the same count is merged first: {', '.join(_TIES)}.",
        choices=_TIES,
        group=_RECIPE,
    ),
]
AsciiOnly = Annotated[
    bool,
    Option(
        "--ascii-only",
        help="Start from 98 base tokens instead of 256: tab, line feed, carriage return "
        "and 0x20-0x7E. "
        "Any other byte in the corpus is an error.",
        group=_RECIPE,
    ),
]


class RecipeChanges(NamedTuple):
    """The options that change fields of a recipe."""

    pattern: PatternText = None
    encode_pattern: EncodePattern = None
    special: Special = None
    specials_file: SpecialsFile = None
    min_frequency: MinFrequency = None
    max_token_bytes: MaxTokenBytes = None
    tie_break: TieBreak = None
    ascii_only: AsciiOnly = False


def preset(name: str, *, ascii_only: bool) -> byteweld.Recipe:
    """The preset with this name; ck with --ascii-only is the preset ck-ascii."""
    return byteweld.RECIPES["ck-ascii" if ascii_only and name == "ck" else name]


def make_recipe(name: str, *, ascii_only: bool, **flags: Any) -> byteweld.Recipe:
    """The preset with this name, changed by options."""
    recipe = preset(name, ascii_only=ascii_only)
    return recipe.replace(**recipe_changes(recipe, ascii_only=ascii_only, **flags))


def recipe_changes(
    recipe: byteweld.Recipe,
    *,
    pattern: str | None = None,
    special: Sequence[str] | None = None,
    specials_file: str | None = None,
    ascii_only: bool = False,
    **changes: Any,
) -> dict[str, Any]:
    """The fields of a recipe that options change; None means that an option was not given."""
    changes = {field: value for field, value in changes.items() if value is not None}
    if ascii_only and recipe.alphabet != "ascii":
        changes["alphabet"] = "ascii"
    if pattern is not None:
        changes["pattern"] = _no_pattern(pattern)
    if "encode_pattern" in changes:
        changes["encode_pattern"] = _no_pattern(changes["encode_pattern"])
    specials = list(special or ())
    if specials_file is not None:
        specials += _read_specials(specials_file, {*recipe.built_in, *specials})
    if specials:
        changes["special_tokens"] = tuple(specials)
    return changes


def check_size(vocab_size: int, recipe: byteweld.Recipe) -> None:
    """Reject a vocabulary size that is too small, before anything is read."""
    from byteweld.training.plan import check_size

    check_size(vocab_size, recipe)


def _no_pattern(pattern: str) -> str | None:
    return None if pattern == "none" else pattern


def _read_specials(file: str, known: set[str]) -> list[str]:
    try:
        content = read_regular(file, MAX_BESIDE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise byteweld.FormatError(
            f"expected UTF-8 ({error.reason})", path=file, offset=error.start
        ) from None
    found = dict.fromkeys(line.removesuffix("\r") for line in content.split("\n"))
    return [text for text in found if text.strip() and text not in known]


# ---------------------------------------------------------------------------- reading

SOURCES_HELP = (
    "Files, folders, globs or URLs, or - for standard input, which is plain, uncompressed text: "
    "one document unless --lines, --separator or --json-lines splits it."
)
Sources = Annotated[list[str], Argument(metavar="SOURCE...", help=SOURCES_HELP)]
Ext = Annotated[
    str | None,
    Option(
        "--ext",
        metavar="LIST",
        help="File extensions to read in folders, such as .txt,.py; * for all files. "
        f"Default: {' '.join(FOLDER_EXTENSIONS)}; with recipe ck, the first six.",
        group=_READING,
    ),
]
Lines = Annotated[
    bool,
    Option(
        "--lines",
        help="Make each line a document, including its line ending.",
        group=_READING,
    ),
]
Field = Annotated[
    str | None,
    Option(
        "--field",
        metavar="NAME",
        help="The field of JSON Lines files, or the column of tables, that has the text. "
        "Default: text.",
        group=_READING,
    ),
]
JsonLines = Annotated[
    bool,
    Option(
        "--json-lines",
        help="Read every text file as JSON Lines, whatever its name.",
        group=_READING,
    ),
]
Separator = Annotated[
    str | None,
    Option(
        "--separator",
        metavar="TEXT",
        help="Text that separates documents within a file.",
        group=_READING,
    ),
]
OnError = Annotated[
    str,
    Option(
        "--on-error",
        metavar="WHAT",
        help="What to do with malformed input. fail: stop at a malformed record; text files are "
        "read byte for byte. skip: skip malformed records and documents that are not UTF-8. "
        "replace: turn invalid UTF-8 into U+FFFD; stop at a malformed record. Default: fail.",
        choices=_ON_ERROR,
        group=_READING,
    ),
]


class Reading(NamedTuple):
    """How documents are read from files."""

    ext: Ext = None
    lines: Lines = False
    field: Field = None
    json_lines: JsonLines = False
    separator: Separator = None
    on_error: OnError = "fail"

    def options(self) -> ReadingOptions:
        """The keyword arguments of the library's functions."""
        given = {name: value for name, value in self._asdict().items() if value is not None}
        return cast("ReadingOptions", given)


# ---------------------------------------------------------------------------- tokenizer

TokenizerPath = Annotated[
    str,
    Option(
        "--tokenizer",
        "-t",
        metavar="PATH",
        help="The tokenizer: a file or folder in any format, or the name of a vocabulary on this "
        "machine, such as cl100k_base or openai-community/gpt2; `byteweld list` shows them, and "
        "`byteweld fetch` downloads more. Default: tokenizer.json.",
        group=_TOKENIZER,
    ),
]
Format = Annotated[
    str | None,
    Option(
        "--format",
        metavar="NAME",
        help=f"The tokenizer's format: {', '.join(byteweld.FORMATS)}. Default: detected from its "
        "content.",
        group=_TOKENIZER,
    ),
]
LoadPattern = Annotated[
    str | None,
    Option(
        "--pattern",
        metavar="P",
        help="The pattern, for files that do not have one (.tiktoken, vocab.json with merges.txt, "
        "ck's export): "
        f"{', '.join(byteweld.PATTERNS)}, none, or a regular expression.",
        group=_TOKENIZER,
    ),
]
LoadSpecial = Annotated[
    list[str] | None,
    Option(
        "--special",
        metavar="TEXT=ID",
        help="A special token, for files that do not list them. May be repeated.",
        group=_TOKENIZER,
    ),
]
NoSpecial = Annotated[
    bool,
    Option(
        "--no-special",
        help="Load without special tokens, for files that do not list them.",
        group=_TOKENIZER,
    ),
]


class Loading(NamedTuple):
    """Format, pattern and special tokens, for tokenizer files that lack them."""

    format: Format = None
    pattern: LoadPattern = None
    special: LoadSpecial = None
    no_special: NoSpecial = False

    def load(self, path: str) -> byteweld.Tokenizer:
        """Load a tokenizer by its path or name."""
        return load_tokenizer(path, **self._asdict())


# ---------------------------------------------------------------------------- special tokens

_SPECIAL_TEXT = ("fail", "text", "special")


def _special_text(default: str) -> Option:
    return Option(
        "--special-text",
        metavar="WHAT",
        choices=_SPECIAL_TEXT,
        help="How to treat special tokens that occur in the text. fail: stop with an error. text: "
        f"encode them as ordinary text. special: encode each as its id. Default: {default}.",
    )


AllowedSpecial = Annotated[
    list[str] | None,
    Option(
        "--allowed-special",
        metavar="TEXT",
        help="Encode this special token as its id, and treat the others as --special-text says. "
        "May be repeated.",
    ),
]
# Hidden older spellings: `--allowed-special all` is `--special-text special`, and --plain is
# `--special-text text`.
OldAllowedSpecial = Annotated[
    list[str] | None,
    Option("--allowed-special", help="Encode this special token as its id.", is_hidden=True),
]
OldPlain = Annotated[
    bool, Option("--plain", help="The same as --special-text text.", is_hidden=True)
]


class SpecialsOrFail(NamedTuple):
    """How verbs that reject special tokens in text by default treat them."""

    special_text: Annotated[str | None, _special_text("fail")] = None
    allowed_special: AllowedSpecial = None
    plain: OldPlain = False

    def arguments(self, known: Collection[str]) -> Any:
        """The arguments of methods that encode; `known` are the special tokens."""
        return special_arguments(known, *self, default="fail")


class Specials(NamedTuple):
    """How verbs that measure treat special tokens in text."""

    special_text: Annotated[str | None, _special_text("special")] = None
    allowed_special: OldAllowedSpecial = None
    plain: OldPlain = False

    def arguments(self, known: Collection[str]) -> Any:
        """The arguments of methods that encode; `known` are the special tokens."""
        return special_arguments(known, *self, default="special")


def special_arguments(
    known: Collection[str],
    special_text: str | None,
    allowed: Sequence[str] | None,
    plain: bool,
    *,
    default: str,
) -> Any:
    """Turn options into the arguments of methods that encode; `known` are the special tokens."""
    names = list(allowed or ())
    if special_text is None:
        special_text = "text" if plain else "fail" if names else default
    if special_text == "special" or "all" in names:
        return {"allowed_special": "all"}
    for name in names:
        if name not in known:
            raise _errors.UsageError(
                f"--allowed-special {name!r} is not a special token of this tokenizer; "
                f"it has {', '.join(map(repr, known)) or 'none'}{_errors.nearest(name, known)}"
            )
    disallowed = () if special_text == "text" else "all"
    return {"allowed_special": frozenset(names), "disallowed_special": disallowed}


# ---------------------------------------------------------------------------- text

TextSources = Annotated[
    list[str] | None,
    Argument(metavar="SOURCE...", help="Files, or - for standard input (the default)."),
]
Text = Annotated[
    str | None, Option("--text", metavar="TEXT", help="The text to use, instead of SOURCE.")
]


# ---------------------------------------------------------------------------- others

Threads = Annotated[
    int | None,
    Option(
        "--threads",
        metavar="N",
        read=whole_number("--threads", 1),
        help="Number of threads. Default: one per CPU.",
    ),
]
Memory = Annotated[
    str | None,
    Option(
        "--memory",
        metavar="SIZE",
        help="Memory limit, such as 2GB or 512MiB; data that does not fit is spilled to TMPDIR.",
    ),
]
Prune = Annotated[
    int | None,
    Option(
        "--prune",
        metavar="N",
        read=whole_number("--prune", 1),
        help="Drop pre-tokens that occur fewer than N times, and report how much that can change "
        "pair counts.",
    ),
]
Force = Annotated[bool, Option("--force", help="Overwrite existing files.")]
Json = Annotated[bool, Option("--json", help="Write the report as JSON to stdout.")]
Html = Annotated[
    str | None,
    Option(
        "--html",
        metavar="FILE",
        help="Write a self-contained HTML page to FILE instead of printing text.",
    ),
]


def pattern_words(pattern: str | None) -> str:
    """The name of a pattern, or the pattern itself if it has no name."""
    if pattern is None:
        return "none"
    return next((name for name, known in byteweld.PATTERNS.items() if known == pattern), pattern)
