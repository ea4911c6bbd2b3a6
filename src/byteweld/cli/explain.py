"""`byteweld explain`: every step of encoding a text, or of training on a tiny corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import byteweld
from byteweld.cli import _errors, _input, _output
from byteweld.cli import _options as options

EXAMPLES = """
byteweld explain --tokenizer tokenizer.json 'lowest of all'
byteweld explain --train 'low low low low low lower lower' --recipe from-scratch
byteweld explain --train --vocab-size 262 notes.txt
byteweld explain --train --recipe plain 'she eats' 'he eats' --json
"""

# The reference recounts everything at every step; a page is enough to see how it goes.
_MAX_CORPUS_BYTES = 100_000
_MERGES = 8

Texts = Annotated[
    list[str],
    typer.Argument(
        metavar="TEXT...",
        help="The text; - for standard input. With --train, each is a document, or a file of one.",
    ),
]
Train = Annotated[bool, typer.Option("--train", help="Show a training on the text instead.")]
VocabSize = Annotated[
    int | None,
    typer.Option(
        "--vocab-size",
        metavar="N",
        parser=options.whole_number("--vocab-size"),
        help=f"How many tokens. Default: enough for {_MERGES} merges.",
        rich_help_panel="With --train",
    ),
]
RecipeName = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="NAME",
        help="How to train. Default: plain, which has no pattern.",
        rich_help_panel="With --train",
    ),
]
TokenizerPath = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        "-t",
        metavar="PATH",
        help="The tokenizer: a file or folder of any format. Default: tokenizer.json.",
        rich_help_panel="Tokenizer",
    ),
]
MaxPretokenBytes = Annotated[
    int,
    typer.Option(
        "--max-pretoken-bytes",
        metavar="N",
        parser=options.whole_number("--max-pretoken-bytes", 1),
        help="Refuse longer pre-tokens: the time grows with the square. Default: 1024.",
    ),
]


def run(
    texts: Texts,
    train: Train = False,
    max_pretoken_bytes: MaxPretokenBytes = 1024,
    json: options.Json = False,
    tokenizer: TokenizerPath = None,
    format: options.Format = None,
    pattern: options.LoadPattern = None,
    special: options.LoadSpecial = None,
    no_special: options.NoSpecial = False,
    recipe: RecipeName = None,
    vocab_size: VocabSize = None,
) -> None:
    """Show why a text has these tokens, step by step.

    Of encoding: the pairs that may merge at each step, the chosen one, the merge tree, and where
    greedy longest match would differ. Of training (--train): the table of pair counts at each step,
    the winner, and why it won its tie.
    """
    explained: Any
    if train:
        if tokenizer is not None:
            raise _errors.UsageError("explain takes --train or --tokenizer, not both")
        documents = [_document(text) for text in texts]
        explained = _explain_training(documents, recipe or "plain", vocab_size)
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
        explained = byteweld.explain(tok, text, max_pretoken_bytes=max_pretoken_bytes)
    if json:
        _output.report(explained.to_dict())
    else:
        _output.lines(explained.lines())


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


def _explain_training(documents: list[bytes], name: str, vocab_size: int | None) -> Any:
    if name not in byteweld.RECIPES:
        hint = _errors.nearest(name, byteweld.RECIPES)
        raise _errors.UsageError(
            f"--recipe is {name!r}; it must be one of {', '.join(byteweld.RECIPES)}{hint}"
        )
    size = sum(map(len, documents))
    if size > _MAX_CORPUS_BYTES:
        raise _errors.UsageError(
            f"the corpus has {size} bytes, too many to show every step of a training "
            f"(at most {_MAX_CORPUS_BYTES}); take a part of it, or use `byteweld train`"
        )
    if vocab_size is None:
        vocab_size = byteweld.RECIPES[name].minimum_size + _MERGES
    return byteweld.explain_training(documents, vocab_size, name)
