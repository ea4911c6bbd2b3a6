"""`byteweld explain`: shows every step of encoding text, or of training on a corpus."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from typing import Any

import byteweld
from byteweld.cli import _corpus, _errors, _input, _output
from byteweld.cli import _options as options
from byteweld.cli._options import SpecialText
from byteweld.cli._page import Shown
from byteweld.corpus import ReadingOptions
from byteweld.sources import Sources
from byteweld.training.plan import check_size

EXAMPLES = """
byteweld explain --tokenizer tokenizer.json 'lowest of all'
byteweld explain --train 'low low low low low lower lower' --recipe from-scratch
byteweld explain --tokenizer tokenizer.json --text 'lowest of all' --html why.html
byteweld explain --train --vocab-size 262 notes.txt
byteweld explain --train --recipe modern books/ --memory 2GB --html merges.html
byteweld explain --train --pattern gpt2 --special '<|x|>' 'she eats<|x|>he eats' --json
"""

_MAX_PRETOKEN_BYTES = 1024
_MERGES = 8


def run(
    source: list[str] | None = None,
    *,
    text: str | None = None,
    train: bool = False,
    special_text: SpecialText | None = None,
    pattern: str | None = None,
    special: list[str] | None = None,
    max_pretoken_bytes: options.Positive | None = None,
    shown: Shown,
    recipe: options.RecipeName | None = None,
    vocab_size: options.Size | None = None,
    tokenizer: str | None = None,
    format: str | None = None,
    no_special: bool = False,
    reading: options.Reading,
    threads: options.Positive | None = None,
    memory: str | None = None,
) -> None:
    """Show step by step how text becomes tokens, or how training finds merges.

    The text comes from files, from standard input (- or no SOURCE), or from --text.

    For encoding, shows the pairs that could merge at each step, the one that does, the merge tree,
    and where greedy longest match would differ. For training (--train), shows the pair counts at
    each step, the pair that is merged, and how ties are broken.

    Args:
        source (SOURCE...): Files, or - for standard input (the default); with --train, also
            folders, globs and saved counts. A SOURCE that is not a file is taken as text, unless
            it looks like a path.
        train: Explain how training on a corpus of any size works instead; files are read as by
            `byteweld train`, and each text is a document.
        pattern (P): The pattern to train with or, without --train, for tokenizer files that do not
            have one: {patterns}, none, or a regular expression.
        special (TEXT=ID): A special token, for tokenizer files that do not list them. With
            --train, pass only TEXT. May be repeated.
        max_pretoken_bytes: Reject longer pre-tokens, since the time grows with the square of their
            length. Default: 1024.
        special_text (WHAT): {special_text} Default: fail.

    With --train:
        recipe: The recipe: {recipes}. Default: plain, which has no pattern.
        vocab_size: The size of the vocabulary; 4k is 4 x 1024. Default: enough for 8 merges.

    Tokenizer:
        tokenizer (-t PATH): The tokenizer: a file, a folder, or the name of a vocabulary (see
            `byteweld list`). Default: tokenizer.json.
    """
    shown.check()
    sources = _input.sources("explain", source, text, is_strict=False)
    if train:
        for flag, is_given in (
            ("--tokenizer", tokenizer is not None),
            ("--format", format is not None),
            ("--no-special", no_special),
            ("--special-text", special_text is not None),
            ("--max-pretoken-bytes", max_pretoken_bytes is not None),
        ):
            if is_given:
                raise _errors.UsageError(f"explain takes --train or {flag}, not both")
        given = {"pattern": pattern, "special_tokens": special}
        changes = {name: value for name, value in given.items() if value is not None}
        chosen = options.make_recipe(recipe or "plain", changes)
        opened = _open(sources, text, chosen, reading)
        training = _explain_training(opened, chosen, vocab_size, threads, memory)
        shown.show("Training, step by step", training)
        return
    if recipe is not None or vocab_size is not None:
        raise _errors.UsageError("--recipe and --vocab-size need --train")
    if threads or memory or reading:
        raise _errors.UsageError("--threads, --memory and the reading options need --train")
    if len(sources) > 1:
        raise _errors.UsageError(
            "explain takes one SOURCE; put text that contains spaces in quotes"
        )
    tok = options.load_tokenizer(
        tokenizer or options.DEFAULT_TOKENIZER,
        format=format,
        pattern=pattern,
        special=special,
        no_special=no_special,
    )
    encoding = byteweld.explain(
        tok,
        _documents(sources, text)[0],
        max_pretoken_bytes=max_pretoken_bytes or _MAX_PRETOKEN_BYTES,
        **options.special_arguments(special_text or "fail"),
    )
    shown.show("Why these tokens", encoding)


def _documents(sources: Sequence[str], text: str | None) -> list[bytes]:
    if text is not None:
        return [_input.argument_bytes(text)]
    _say_files(source for source in sources if _input.is_file(source))
    return [
        _input.read(source) if _input.is_file(source) else _input.argument_bytes(source)
        for source in sources
    ]


def _say_files(sources: Iterable[str]) -> None:
    for source in sources:
        if source != _input.STDIN:
            _output.say(f"reading {source}")


def _open(
    given: Sequence[str], text: str | None, recipe: byteweld.Recipe, reading: ReadingOptions
) -> Sources:
    """Open the sources of a training: files and folders to read, or the text itself."""
    files = [
        source for source in given if _is_glob(source) or _input.is_file(source, is_strict=True)
    ]
    if files and len(files) < len(given):
        missing = next(source for source in given if source not in files)
        raise _errors.UsageError(f"{missing}: no such file; pass either files or text")
    if files:
        _say_files(files)
        return _corpus.open_all(files, recipe, reading)
    if reading:
        raise _errors.UsageError("the reading options are for files; the SOURCE is text")
    return Sources(documents=_documents(given, text))


def _is_glob(source: str) -> bool:
    """Whether a source is a glob that matches something, rather than text with an asterisk."""
    return len(source.split()) == 1 and glob.has_magic(source) and bool(glob.glob(source))  # noqa: PTH207


def _explain_training(
    sources: Sources,
    recipe: byteweld.Recipe,
    vocab_size: int | None,
    threads: int | None,
    memory: str | None,
) -> Any:
    if vocab_size is None:
        vocab_size = recipe.minimum_size + _MERGES
    check_size(vocab_size, recipe)
    with _corpus.Bars(sources) as bars:
        counted = sources.count(recipe, num_threads=threads, memory=memory, progress=bars.count)
        bars.close()
        if (counted.files or 0) > 1 or counted.tables:
            bars.say_counted(counted)
        planned = vocab_size - recipe.minimum_size
        return byteweld.explain_training(
            counted.counts,
            vocab_size,
            recipe,
            num_threads=threads,
            memory=memory,
            progress=lambda merges: bars.show("merging", merges, planned, "merges"),
        )
