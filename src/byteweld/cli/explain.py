"""`byteweld explain`: every step of encoding a text, or of training on a tiny corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import byteweld
from byteweld.cli import _errors, _input, _output
from byteweld.cli import _options as options
from byteweld.cli._command import Argument, Option
from byteweld.cli._page import Shown

EXAMPLES = """
byteweld explain --tokenizer tokenizer.json 'lowest of all'
byteweld explain --train 'low low low low low lower lower' --recipe from-scratch
byteweld explain --tokenizer tokenizer.json 'lowest of all' --html why.html
byteweld explain --train --vocab-size 262 notes.txt
byteweld explain --train --pattern gpt2 --special '<|x|>' 'she eats<|x|>he eats' --json
"""

# The reference recounts everything at every step; a page is enough to see how it goes.
_MAX_CORPUS_BYTES = 100_000
_MAX_PRETOKEN_BYTES = 1024
_MERGES = 8

Texts = Annotated[
    list[str],
    Argument(
        metavar="TEXT...",
        help="The text; - for standard input. With --train, each is a document, or a file of one.",
    ),
]
Train = Annotated[bool, Option("--train", help="Show a training on the text instead.")]
VocabSize = Annotated[
    int | None,
    Option(
        "--vocab-size",
        metavar="N",
        read=options.whole_number("--vocab-size"),
        help=f"How many tokens. Default: enough for {_MERGES} merges.",
        group="With --train",
    ),
]
RecipeName = Annotated[
    str | None,
    Option(
        "--recipe",
        metavar="NAME",
        help=f"How to train: {', '.join(byteweld.RECIPES)}. Default: plain, which has no pattern.",
        read=options.choice(list(byteweld.RECIPES), "--recipe"),
        group="With --train",
    ),
]
PatternText = Annotated[
    str | None,
    Option(
        "--pattern",
        metavar="P",
        help="The pattern, for tokenizer files that hold none; with --train, that of the training: "
        f"{', '.join(byteweld.PATTERNS)}, none, or a regular expression.",
    ),
]
Special = Annotated[
    list[str] | None,
    Option(
        "--special",
        metavar="TEXT=ID",
        help="A special token, for tokenizer files that hold none; with --train, one of the "
        "training, as TEXT alone. May be repeated.",
    ),
]
TokenizerPath = Annotated[
    str | None,
    Option(
        "--tokenizer",
        "-t",
        metavar="PATH",
        help="The tokenizer: a file or folder of any format. Default: tokenizer.json.",
        group="Tokenizer",
    ),
]
MaxPretokenBytes = Annotated[
    int | None,
    Option(
        "--max-pretoken-bytes",
        metavar="N",
        read=options.whole_number("--max-pretoken-bytes", 1),
        help="Refuse longer pre-tokens: the time grows with the square. "
        f"Default: {_MAX_PRETOKEN_BYTES}.",
    ),
]


def run(
    texts: Texts,
    train: Train = False,
    allowed_special: options.AllowedSpecial = None,
    plain: options.Plain = False,
    pattern: PatternText = None,
    special: Special = None,
    max_pretoken_bytes: MaxPretokenBytes = None,
    json: options.Json = False,
    html: options.Html = None,
    force: options.Force = False,
    tokenizer: TokenizerPath = None,
    format: options.Format = None,
    no_special: options.NoSpecial = False,
    recipe: RecipeName = None,
    vocab_size: VocabSize = None,
) -> None:
    """Show why a text has these tokens, step by step.

    Of encoding: the pairs that may merge at each step, the chosen one, the merge tree, and where
    greedy longest match would differ. A special token in the text is an error unless
    --allowed-special or --plain says what it is. Of training (--train): the table of pair counts at
    each step, the winner, and why it won its tie.
    """
    explained: Any
    shown = Shown(html, json=json, force=force)
    if train:
        for flag, is_given in (
            ("--tokenizer", tokenizer is not None),
            ("--format", format is not None),
            ("--no-special", no_special),
            ("--allowed-special", bool(allowed_special)),
            ("--plain", plain),
            ("--max-pretoken-bytes", max_pretoken_bytes is not None),
        ):
            if is_given:
                raise _errors.UsageError(f"explain takes --train or {flag}, not both")
        chosen = options.make_recipe(
            recipe or "plain",
            pattern=pattern,
            special=special,
            specials_file=None,
            ascii_only=False,
        )
        explained = _explain_training([_document(text) for text in texts], chosen, vocab_size)
    else:
        if recipe is not None or vocab_size is not None:
            raise _errors.UsageError("--recipe and --vocab-size go with --train")
        if len(texts) > 1:
            raise _errors.UsageError("explain takes one TEXT; put it in quotes")
        tok = options.load_tokenizer(
            tokenizer or "tokenizer.json",
            format=format,
            pattern=pattern,
            special=special,
            no_special=no_special,
        )
        text = _input.read("-") if texts[0] == "-" else _input.argument_bytes(texts[0])
        explained = byteweld.explain(
            tok,
            text,
            max_pretoken_bytes=max_pretoken_bytes or _MAX_PRETOKEN_BYTES,
            **options.special_arguments(tok, allowed_special, plain),
        )
    shown.show(
        "A training, step by step" if train else "Why these tokens",
        lines=lambda: explained.lines(color=_output.has_color()),
        value=explained.to_dict,
        page=explained.to_html,
    )


def _document(text: str) -> bytes:
    if text == _input.STDIN:
        return _input.read(text)
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        is_file = False
    if is_file:
        _output.say(f"reading {text}")
        return _input.read(text)
    return _input.argument_bytes(text)


def _explain_training(
    documents: list[bytes], recipe: byteweld.Recipe, vocab_size: int | None
) -> Any:
    if vocab_size is None:
        vocab_size = recipe.minimum_size + _MERGES
    options.check_size(vocab_size, recipe)
    size = sum(map(len, documents))
    if size > _MAX_CORPUS_BYTES:
        raise _errors.UsageError(
            f"the corpus has {size} bytes, too many to show every step of a training "
            f"(at most {_MAX_CORPUS_BYTES}); take a part of it, or use `byteweld train`"
        )
    # The engine cuts: the reference would need the package `regex` for a pattern.
    counts = byteweld.count(iter(documents), recipe=recipe)
    return byteweld.explain_training(dict(counts.items()), vocab_size, recipe)
