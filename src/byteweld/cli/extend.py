"""`byteweld extend`: adds tokens to a tokenizer, from a corpus or a list of words; ids stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import byteweld
from byteweld.api import choose_recipe
from byteweld.cli import _corpus, _errors, _output, _targets, _training, _words
from byteweld.cli import _options as options
from byteweld.corpus import ReadingOptions
from byteweld.render import visible
from byteweld.sources import Sources
from byteweld.training.plan import make_plan, minimum_size
from byteweld.training.words import documents_of, find_words

EXAMPLES = """
byteweld extend tokenizer.json letters/ --add 1000 --out longer.json
byteweld extend o200k_base code/ --ext .py,.rs --add 4k --out code.tiktoken
byteweld extend tokenizer.json --word Kubernetes --word webhook --out longer.json
byteweld extend tokenizer.json --words terms.txt --out longer.json --json
byteweld extend r50k.tiktoken --pattern gpt2 --no-special --words terms.txt --out longer.tiktoken
"""

prepare = _training.prepare


def run(
    tokenizer: str,
    source: list[str] | None = None,
    *,
    add: options.Size | None = None,
    word: list[str] | None = None,
    words: str | None = None,
    out: str,
    format: str | None = None,
    force: bool = False,
    threads: options.Positive | None = None,
    memory: str | None = None,
    progress: Literal["json"] | None = None,
    json: bool = False,
    from_format: str | None = None,
    lacking: options.Lacking,
    reading: options.Reading,
) -> None:
    """Add tokens to a tokenizer: learn more merges from a corpus, or from a list of words.

    Every id stays the same, those of special tokens included; new tokens get the ids after the
    highest. New merges rank after the old ones, so the ids of a text change only where they apply.

    From a list of words, merges are learned until each word is a single token, at the start of a
    text and after a space. A word that the pattern splits into several pre-tokens cannot be one
    token; it is reported, and the others are learned.

    `byteweld train --start` does the same for a corpus, with all options of training.

    Args:
        tokenizer: The tokenizer to extend: a file, a folder, or the name of a vocabulary (see
            `byteweld list`).
        source (SOURCE...): The corpus to learn from. Files, folders, globs or URLs, or - for
            standard input, which is text: one document unless --lines, --separator or --json-lines
            splits it.
        add: How many tokens to add; 4k is 4 x 1024. With words, the most to add. Default with
            words: as many as they need.
        word (WORD): A word to make a single token, instead of a corpus. May be repeated.
        words (FILE): A file of such words, one per line, or - for standard input; blank lines and
            duplicates are ignored.

    Writing:
        format (NAME): The format of --out: {formats}. Default: by its name.
        force: Overwrite existing files.
    """
    has_words = bool(word) or words is not None
    _check_usage(source, add, reading, has_words=has_words)
    given = _words.read(word or [], words) if has_words else []
    start = options.load_tokenizer(tokenizer, format=from_format, **lacking)
    # A word counts once, however rare or long it is.
    changes = {"min_frequency": 1, "max_token_bytes": None} if has_words else {}
    recipe = choose_recipe(None, start, {}, changes)
    found = find_words(given, start.vocab, start.pretokenize)
    if has_words:
        needed = sum(start.count(text, disallowed_special=()) - 1 for text in documents_of(found))
        sources = Sources(documents=documents_of(found))
        size = needed if add is None else min(add, needed)
    else:
        sources = _corpus.open_all(source or [], recipe, reading)
        size = add or 0
    vocab_size = minimum_size(recipe, start.vocab) + size
    target = _targets.Target(out, format)
    smallest = make_plan(vocab_size, recipe, start.vocab).smallest()
    files = _targets.check_all(smallest, [target], force)
    if has_words and all(one.problem for one in found):
        _output.say_all(_words.problems(found))
        raise _errors.UsageError("none of the words can be a single token; nothing was written")
    tok, counted = _training.learn(
        sources,
        is_quiet=has_words,
        vocab_size=vocab_size,
        recipe=recipe,
        start=start,
        num_threads=threads,
        memory=memory,
    )
    seconds = _training.save([(tok, [target])], files=files, force=force)
    training, tokens = tok.training, tok.vocab.tokens
    assert training is not None  # it was just trained
    first_id = max(start.vocab.tokens) + 1
    new = [(i, tokens[i]) for i in range(first_id, max(tokens) + 1)]
    about_new = _new_lines(first_id, new, training.merges_learned - len(new))
    more: dict[str, Any]
    if has_words:
        measured = _words.measure(found, start, tok)
        _output.say_all([_words.summary(measured), *about_new, *_words.details(measured, add)])
        words_after = [one.to_dict() for one in measured]
        more = {"tokens_per_word": _words.per_word(measured), "words": words_after}
    else:
        _training.say_learned(training)
        rates = _rates(start, tok, counted.counts, threads)
        _output.say_all([*about_new, *_rate_lines(**rates)])
        more = {"bytes_per_token": rates, "corpus": _training.corpus_report(training)}
    _targets.say_wrote(tok, [target])
    if json:
        _output.report(
            {
                "out": out,
                "report": str(_targets.report_file(target)),
                "tokens": len(tok),
                "tokens_before": len(start),
                "first_new_id": first_id,
                "new_tokens": [{"id": i, "bytes": t.hex(), "text": visible(t)} for i, t in new],
                "merges": training.merges_learned,
                "stop": training.stop,
                "seconds": seconds,
                "fingerprint": tok.vocab.fingerprint,
                **more,
            }
        )


def _check_usage(
    source: Sequence[str] | None, add: int | None, reading: ReadingOptions, *, has_words: bool
) -> None:
    if add is not None and add < 1:
        raise _errors.UsageError(f"--add is {add}; it must be at least 1")
    if has_words:
        if source:
            raise _errors.UsageError("extend takes SOURCE or words (--word, --words), not both")
        if reading:
            raise _errors.UsageError("the reading options are for a SOURCE; leave them out")
    elif not source:
        raise _errors.UsageError("extend needs a SOURCE with --add N, or --word or --words")
    elif add is None:
        raise _errors.UsageError("extend needs the number of tokens to add; pass --add N")


# ---------------------------------------------------------------------------- after the work


def _new_lines(first: int, new: Sequence[tuple[int, bytes]], revived: int) -> Iterator[str]:
    kept = f"ids 0 to {first - 1} stay the same, special tokens included"
    if not new:
        yield f"no new tokens; {kept}"
        return
    which = f"id {first}" if len(new) == 1 else f"ids {first} to {new[-1][0]}"
    yield f"{_output.amount(len(new), 'new token')}, {which}; {kept}"
    yield f"  first    {_training.shown(token for _, token in new)}"
    yield f"  longest  {_training.shown(_training.longest(new))}"
    if revived:
        yield f"  and {_output.amount(revived, 'merge')} for tokens that had an id but no merge"


def _rate_lines(before: float | None, after: float | None) -> Iterator[str]:
    if before is not None and after is not None:
        yield (
            f"bytes per token on this corpus: {before:.2f} before, {after:.2f} after, "
            f"{100 * (1 - before / after):.1f}% fewer tokens"
        )


def _rates(
    start: byteweld.Tokenizer, tok: byteweld.Tokenizer, counts: byteweld.Counts, threads: int | None
) -> dict[str, float | None]:
    """Bytes per token of the corpus before and after; None if it is empty."""
    training = tok.training
    if training is not None and tok.vocab.pattern == training.recipe.pattern:
        tokens = training.first_tokens
        before = training.total_bytes / tokens if tokens else None
    else:
        start = byteweld.Tokenizer(start.vocab)  # without the report of its own training
        before = _corpus.bytes_per_token(start, counts, threads)
    return {"before": before, "after": _corpus.bytes_per_token(tok, counts, threads)}
