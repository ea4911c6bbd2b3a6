"""`byteweld compare`: two tokenizers on one corpus; the same ids or not, and what each costs."""

from __future__ import annotations

from typing import Annotated, Any

import byteweld
from byteweld.cli import DONE, FAILED, NO, _corpus, _errors, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Argument, Option
from byteweld.cli._page import Shown
from byteweld.comparison._text import verdict
from byteweld.comparison.corpora import MAX_DIFFERENCES, compare_files

EXAMPLES = """
byteweld compare mine.json theirs.json books/
byteweld compare cl100k_base o200k_base src/ --ext .py,.rs --plain
byteweld compare mine.json theirs.json chats.jsonl --allowed-special all --html report.html
byteweld compare mine.json r50k.tiktoken books/ --pattern gpt2 --no-special --json
"""

First = Annotated[
    str, Argument(metavar="A", help="A tokenizer: a file, folder or name of an encoding.")
]
Second = Annotated[str, Argument(metavar="B", help="Another.")]
Differences = Annotated[
    int,
    Option(
        "--differences",
        metavar="N",
        read=options.whole_number("--differences", 0),
        help=f"How many differences to show. Default: {MAX_DIFFERENCES}.",
    ),
]
Pattern = Annotated[
    str | None,
    Option(
        "--pattern",
        metavar="P",
        help="The pattern, for those of the two files that hold none (.tiktoken, vocab.json with "
        f"merges.txt): {', '.join(byteweld.PATTERNS)}, none, or a regular expression.",
        group="Tokenizers",
    ),
]
Special = Annotated[
    list[str] | None,
    Option(
        "--special",
        metavar="TEXT=ID",
        help="A special token, for those of the two files that hold none. May be repeated.",
        group="Tokenizers",
    ),
]
NoSpecial = Annotated[
    bool,
    Option(
        "--no-special",
        help="There are no special tokens, for those of the two files that hold none.",
        group="Tokenizers",
    ),
]


def run(
    first: First,
    second: Second,
    source: options.Sources,
    differences: Differences = MAX_DIFFERENCES,
    allowed_special: options.AllowedSpecial = None,
    plain: options.Plain = False,
    threads: options.Threads = None,
    json: options.Json = False,
    html: options.Html = None,
    force: options.Force = False,
    pattern: Pattern = None,
    special: Special = None,
    no_special: NoSpecial = False,
    ext: options.Ext = None,
    lines: options.Lines = False,
    field: options.Field = None,
    separator: options.Separator = None,
    on_error: options.OnError = "fail",
) -> int:
    """Encode your corpus with two tokenizers, and compare.

    Told are: whether all ids are identical; the first spans that are cut differently, with the text
    around them, and how many there are (or, where all are cut alike, the first tokens with other
    ids); bytes per token by file and script; how fast each was. The exit code is 1 if ids differ.
    A special token in a text is an error unless --allowed-special or --plain says what it is.
    """
    shown = Shown(html, json=json, force=force)
    settings = _Settings(pattern, special, no_special)
    tokenizers = (settings.load(first), settings.load(second))
    settings.check_use()
    files = _corpus.Files(source, options.Reading(ext, lines, field, separator, on_error))
    with _output.progress("comparing", None, "bytes") as advance:
        found = compare_files(
            *tokenizers,
            files,
            names=(first, second),
            num_threads=threads,
            max_differences=differences,
            progress=advance,
            **_specials(tokenizers, allowed_special, plain),
        )
    files.tell_skipped()
    if not found.total.documents:
        _output.say("byteweld: nothing was compared: there is no document in the corpus")
        return FAILED
    shown.show(
        f"{first} and {second}",
        lines=lambda: found.lines(color=_output.has_color()),
        value=found.to_dict,
        page=found.to_html,
        said=verdict(found),
    )
    return DONE if found.is_identical else NO


class _Settings:
    """What files cannot say of themselves; only those that cannot are given it."""

    def __init__(self, pattern: str | None, special: list[str] | None, no_special: bool) -> None:
        self._given: dict[str, Any] = {
            "pattern": pattern,
            "special": special,
            "no_special": no_special,
        }
        self._is_used = not any(self._given.values())

    def load(self, path: str) -> byteweld.Tokenizer:
        """Load one of the two."""
        if not options.is_name(path) and byteweld.FORMATS[byteweld.recognize(path)].needs:
            self._is_used = True
            return options.load_tokenizer(path, format=None, **self._given)
        return options.load_tokenizer(
            path, format=None, pattern=None, special=None, no_special=False
        )

    def check_use(self) -> None:
        """Refuse options that had nothing to say."""
        if not self._is_used:
            raise _errors.UsageError(
                "both tokenizers say their own pattern and special tokens; "
                "leave --pattern, --special and --no-special out"
            )


def _specials(
    tokenizers: tuple[byteweld.Tokenizer, byteweld.Tokenizer],
    allowed: list[str] | None,
    plain: bool,
) -> Any:
    """The two arguments of every method that encodes; one of the two must know each name."""
    known = dict.fromkeys(name for tok in tokenizers for name in tok.vocab.special_tokens)
    return options.special_arguments(list(known), allowed, plain)
