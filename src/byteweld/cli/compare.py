"""`byteweld compare`: whether two tokenizers give the same ids on a corpus, and what each costs."""

from __future__ import annotations

from typing import Annotated, Any

import byteweld
from byteweld.cli import DONE, FAILED, NO, _errors, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Argument, Option
from byteweld.cli._documents import Documents
from byteweld.cli._page import Shown
from byteweld.comparison._text import verdict
from byteweld.comparison.corpora import MAX_DIFFERENCES, compare_files

EXAMPLES = """
byteweld compare mine.json theirs.json books/
byteweld compare cl100k_base o200k_base src/ --ext .py,.rs --no-fail
byteweld compare mine.json theirs.json chats.jsonl --special-text text --html report.html
byteweld compare mine.json r50k.tiktoken books/ --pattern gpt2 --no-special --json
"""

First = Annotated[
    str, Argument(metavar="A", help="A tokenizer: a file, a folder, or the name of an encoding.")
]
Second = Annotated[str, Argument(metavar="B", help="Another tokenizer.")]
Differences = Annotated[
    int,
    Option(
        "--differences",
        metavar="N",
        read=options.whole_number("--differences", 0),
        help=f"Show at most this many differences. Default: {MAX_DIFFERENCES}.",
    ),
]
NoFail = Annotated[
    bool, Option("--no-fail", help="Exit with 0 even if ids differ; errors still exit with 2.")
]
Pattern = Annotated[
    str | None,
    Option(
        "--pattern",
        metavar="P",
        help="The pattern, for whichever file holds none (.tiktoken, vocab.json with "
        f"merges.txt): {', '.join(byteweld.PATTERNS)}, none, or a regular expression.",
        group="Tokenizers",
    ),
]
Special = Annotated[
    list[str] | None,
    Option(
        "--special",
        metavar="TEXT=ID",
        help="A special token, for whichever file holds none. May be repeated.",
        group="Tokenizers",
    ),
]
NoSpecial = Annotated[
    bool,
    Option(
        "--no-special",
        help="No special tokens, for whichever file holds none.",
        group="Tokenizers",
    ),
]


def run(
    first: First,
    second: Second,
    source: options.Sources,
    differences: Differences = MAX_DIFFERENCES,
    no_fail: NoFail = False,
    special_text: options.SpecialTextOrSpecial = None,
    allowed_special: options.OldAllowedSpecial = None,
    plain: options.OldPlain = False,
    threads: options.Threads = None,
    json: options.Json = False,
    html: options.Html = None,
    force: options.Force = False,
    pattern: Pattern = None,
    special: Special = None,
    no_special: NoSpecial = False,
    reading: options.Reading = options.Reading(),  # noqa: B008 (immutable)
) -> int:
    """Encode your corpus with two tokenizers and compare the results.

    Reports whether all ids are identical; the first spans that are split differently, in context,
    and how many there are (or, where every split agrees, the first tokens with different ids);
    bytes per token by file and script; and the speed of each. The exit code is 1 if ids differ.
    """
    shown = Shown(html, json=json, force=force)
    settings = _Settings(pattern, special, no_special)
    tokenizers = (settings.load(first), settings.load(second))
    settings.check_use()
    known = dict.fromkeys(name for tok in tokenizers for name in tok.vocab.special_tokens)
    specials = options.special_arguments(
        known, special_text, allowed_special, plain, default="special"
    )
    files = Documents(source, reading)
    with files.progress("comparing") as advance:
        found = compare_files(
            *tokenizers,
            files,
            names=(first, second),
            num_threads=threads,
            max_differences=differences,
            progress=advance,
            **specials,
        )
    files.say_skipped()
    if not found.total.documents:
        _output.say("byteweld: the corpus contains no documents, so nothing was compared")
        return FAILED
    shown.show(
        f"{first} and {second}",
        lines=lambda: found.lines(color=_output.has_color()),
        value=found.to_dict,
        page=found.to_html,
        summary=verdict(found),
    )
    return DONE if found.is_identical or no_fail else NO


class _Settings:
    """Pattern and special tokens for the files that hold none; other files do not get them."""

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
        """Refuse options that neither file needed."""
        if not self._is_used:
            raise _errors.UsageError(
                "both files hold their own pattern and special tokens; "
                "leave --pattern, --special and --no-special out"
            )
