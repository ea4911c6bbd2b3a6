"""Parameters that verbs share: their help, their types, and the values made from them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypedDict

import byteweld
from byteweld._files import read_regular
from byteweld._places import find_model
from byteweld.cli import _errors
from byteweld.cli._command import Entry, Fields, sections
from byteweld.corpus import FOLDER_EXTENSIONS, ReadingOptions
from byteweld.formats._json import MAX_BESIDE_BYTES

DEFAULT_TOKENIZER: Final = "tokenizer.json"
_KILO = 1024

SHARED = """
Args:
    source (SOURCE...): Files, folders, globs or URLs, or - for standard input, which is text: one
        document unless --lines, --separator or --json-lines splits it.
    text: The text to use, instead of SOURCE.
    special_text (WHAT): {special_text}
    threads: Number of threads. Default: one per CPU.
    memory (SIZE): Memory limit, such as 2GB or 512MiB; data that does not fit is spilled to TMPDIR.
    prune: Drop pre-tokens that occur fewer than N times, and report how much that can change pair
        counts.
    progress (json): Report progress as JSON lines on stderr: stage, done, total, rate, time left.
        Default: a bar on a terminal, an occasional line elsewhere.
    json: Write the report as JSON to stdout.
    html (FILE): Write a self-contained HTML page to FILE instead of printing text.
    force: Overwrite existing files.

Recipe:
    recipe: Training recipe: {recipes}.
    pattern (P): How text is split into pre-tokens: {patterns}, none, or a regular expression.
    encode_pattern (P): The pattern to store in the tokenizer, if not the one used for training.
    special_tokens: A special token. May be repeated.
    specials_file (FILE): A file of special tokens, one per line; blank lines, duplicates and
        built-in special tokens are ignored.
    ascii_only: Start from 98 base tokens instead of 256: tab, line feed, carriage return and
        0x20-0x7E. Any other byte in the corpus is an error.

Reading:
    ext (LIST): File extensions to read in folders, such as .txt,.py; * for all files.
        Default: {extensions}; with recipe ck, the first six.
    lines: Make each line a document, including its line ending.
    field (NAME): The field of JSON Lines files, or the column of tables, that has the text.
        Default: text.
    json_lines: Read every text file as JSON Lines, whatever its name.
    separator: Text that separates documents within a file.
    on_error (WHAT): What to do with malformed input. fail: stop at a malformed record; text files
        are read byte for byte. skip: skip malformed records and documents that are not UTF-8.
        replace: turn invalid UTF-8 into U+FFFD; stop at a malformed record. Default: fail.

Writing:
    out (PATH): The file or folder to write.
    binary_out (DIR): Also write ck's binary export (four files) to this folder.

Tokenizer:
    tokenizer (-t PATH): The tokenizer: a file or folder in any format, or the name of a vocabulary
        on this machine, such as cl100k_base or openai-community/gpt2; `byteweld list` shows them,
        and `byteweld fetch` downloads more.
    from_format (--from NAME): The format of the tokenizer. Default: detected from its content.
    format (NAME): The tokenizer's format: {formats}. Default: detected from its content.
    special (TEXT=ID): A special token, for files that do not list them. May be repeated.
    no_special: Load without special tokens, for files that do not list them.
"""

Positive = Annotated[int, 1]
Natural = Annotated[int, 0]
RecipeName = Annotated[str, tuple(byteweld.RECIPES)]
Reading = Annotated[ReadingOptions, Fields(ReadingOptions, "Reading")]
# What of a recipe matters when pre-tokens are counted, and what when merges are learned.
_SPLIT = ("pattern", "special_tokens")
_LEARN = (
    *("pattern", "encode_pattern", "special_tokens"),
    *("min_frequency", "max_token_bytes", "tie_break"),
)
SplitChanges = Annotated[dict[str, Any], Fields(byteweld.Recipe, "Recipe", _SPLIT)]
RecipeChanges = Annotated[dict[str, Any], Fields(byteweld.Recipe, "Recipe", _LEARN)]


@functools.cache
def shared() -> dict[str, Entry]:
    """What `SHARED` says about each parameter."""
    return sections(SHARED)[1]


def filled(help: str, default: object, words: Mapping[str, str]) -> str:
    """The help of a parameter, with the lists of names that it mentions, and its default."""
    help = re.sub(r"{(\w+)}", lambda found: {**_WORDS, **words}[found[1]], help)
    has_default = isinstance(default, str | int | float) and default not in (False, "")
    return f"{help} Default: {default}." if has_default and "Default:" not in help else help


_WORDS = {
    "recipes": ", ".join(byteweld.RECIPES),
    "patterns": ", ".join(byteweld.PATTERNS),
    "formats": ", ".join(byteweld.FORMATS),
    "extensions": " ".join(FOLDER_EXTENSIONS),
    "special_text": "How to treat special tokens that occur in the text. fail: stop with an error. "
    "text: encode them as ordinary text. special: encode each as its id.",
}


def size(text: str) -> int:
    """Read a vocabulary size: a whole number, or one with k for 1024, such as 32k."""
    match = re.fullmatch(r"(-?[0-9]{1,15})([kK]?)", text)
    if match is None:
        raise ValueError("expected a whole number, or one with k for 1024")
    return int(match[1]) * (_KILO if match[2] else 1)


Size = Annotated[int, size]

# ---------------------------------------------------------------------------- recipes


def preset(name: str, *, ascii_only: bool) -> byteweld.Recipe:
    """The preset with this name; ck with --ascii-only is the preset ck-ascii."""
    return byteweld.RECIPES["ck-ascii" if ascii_only and name == "ck" else name]


def make_recipe(name: str, changes: Mapping[str, Any], **flags: Any) -> byteweld.Recipe:
    """The preset with this name, changed by options."""
    recipe = preset(name, ascii_only=flags.get("ascii_only", False))
    return recipe.replace(**recipe_changes(recipe, changes, **flags))


def recipe_changes(
    recipe: byteweld.Recipe,
    given: Mapping[str, Any],
    *,
    specials_file: str | None = None,
    ascii_only: bool = False,
) -> dict[str, Any]:
    """The fields of a recipe that options change."""
    changes = {k: None if k.endswith("pattern") and v == "none" else v for k, v in given.items()}
    if ascii_only and recipe.alphabet != "ascii":
        changes["alphabet"] = "ascii"
    specials = list(given.get("special_tokens", ()))
    if specials_file is not None:
        known = {*recipe.built_in, *specials}
        lines = (line.removesuffix("\r") for line in read_text(specials_file).split("\n"))
        specials += [text for text in dict.fromkeys(lines) if text.strip() and text not in known]
    return changes | ({"special_tokens": specials} if specials else {})


def read_text(file: str) -> str:
    """Read a small file of words, such as special tokens."""
    return as_text(read_regular(file, MAX_BESIDE_BYTES), file)


def as_text(content: bytes, file: str) -> str:
    """Decode the content of such a file."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise byteweld.FormatError(
            f"expected UTF-8 ({error.reason})", path=file, offset=error.start
        ) from None


# ---------------------------------------------------------------------------- tokenizers


class Loading(TypedDict, total=False):
    """What tokenizer files may lack, and their format.

    Tokenizer:
        pattern (P): The pattern, for files that do not have one (.tiktoken, vocab.json with
            merges.txt, ck's export): {patterns}, none, or a regular expression.
    """

    format: str
    pattern: str
    special: list[str]
    no_special: bool


_LACKING = ("pattern", "special", "no_special")
Lacking = Annotated[dict[str, Any], Fields(Loading, names=_LACKING)]  # without their format


def is_name(path: str) -> bool:
    """Whether a path names an encoding rather than a file."""
    return not Path(path).exists() and path in byteweld.list_encoding_names()


def file_of(path: str) -> str:
    """The path of a tokenizer's file: of a model in Hugging Face's cache, if a path names one."""
    found = None if Path(path).exists() else find_model(path)
    return path if found is None else str(found)


def load_tokenizer(
    path: str,
    *,
    format: str | None = None,
    pattern: str | None = None,
    special: Sequence[str] | None = None,
    no_special: bool = False,
) -> byteweld.Tokenizer:
    """Load a tokenizer by its path or name; options supply what its file lacks."""
    options: dict[str, Any] = {}
    if pattern is not None:
        options["pattern"] = None if pattern == "none" else pattern
    if special and no_special:
        raise _errors.UsageError("--special and --no-special cannot be combined; pass one of them")
    if special or no_special:
        options["special_tokens"] = dict(map(_text_and_id, special or ()))
    try:
        return byteweld.load(path, format=format, **options)
    except FileNotFoundError:
        if path != DEFAULT_TOKENIZER or Path(path).exists():
            raise
        raise _errors.UsageError(
            f"{path}: no such file in this folder; name another tokenizer (`byteweld list` shows "
            "those on this machine), or make this one with `byteweld train`"
        ) from None
    except TypeError:
        if is_name(path):
            raise _errors.UsageError(
                f"{path!r} is the name of an encoding, which has its own format, pattern and "
                "special tokens; leave these options out"
            ) from None
        name = format or byteweld.recognize(file_of(path))
        if not options or byteweld.FORMATS[name].needs:
            raise
        flags = " and ".join({"special_tokens": "--special"}.get(n, f"--{n}") for n in options)
        raise _errors.UsageError(
            f"{path} is in format {name!r}, which has its own pattern and special tokens; "
            f"leave {flags} out"
        ) from None


def _text_and_id(given: str) -> tuple[str, int]:
    text, equals, number = given.rpartition("=")
    if not (text and equals and number.isascii() and number.isdigit() and len(number) <= 10):
        raise _errors.UsageError(
            f"--special is {given!r}; expected TEXT=ID, such as '<|endoftext|>=50256'"
        )
    return text, int(number)


SpecialText = Literal["fail", "text", "special"]


def special_arguments(special_text: SpecialText) -> dict[str, Any]:
    """The arguments of methods that encode for a policy."""
    if special_text == "special":
        return {"allowed_special": "all"}
    return {
        "allowed_special": frozenset(),
        "disallowed_special": () if special_text == "text" else "all",
    }


def pattern_words(pattern: str | None) -> str:
    """The name of a pattern, or the pattern itself if it has no name."""
    if pattern is None:
        return "none"
    return next((name for name, known in byteweld.PATTERNS.items() if known == pattern), pattern)
