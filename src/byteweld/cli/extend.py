"""`byteweld extend`: adds tokens to a tokenizer, from a corpus or a list of words; ids stay."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import byteweld
from byteweld.api import choose_recipe
from byteweld.cli import _corpus, _errors, _input, _output, _targets, _training
from byteweld.cli import _options as options
from byteweld.corpus import ReadingOptions
from byteweld.render import visible
from byteweld.sources import Sources
from byteweld.training.plan import make_plan, minimum_size
from byteweld.training.words import Form, Word, documents_of, find_words, read_words

EXAMPLES = """
byteweld extend tokenizer.json letters/ --add 1000 --out longer.json
byteweld extend o200k_base code/ --ext .py,.rs --add 4k --out code.tiktoken
byteweld extend tokenizer.json --word Kubernetes --word webhook --out longer.json
byteweld extend tokenizer.json --words terms.txt --out longer.json --json
byteweld extend r50k.tiktoken --pattern gpt2 --no-special --words terms.txt --out longer.tiktoken
"""

_SHOWN = 10  # words of each kind
_SHOWN_PARTS = 8  # of a word


class _Extension(NamedTuple):
    """A tokenizer before and after."""

    before: byteweld.Tokenizer
    after: byteweld.Tokenizer
    target: _targets.Target

    @property
    def training(self) -> byteweld.Training:
        assert self.after.training is not None  # it was just trained
        return self.after.training

    @property
    def first_id(self) -> int:
        return max(self.before.vocab.tokens) + 1

    @property
    def new(self) -> list[tuple[int, bytes]]:
        """The new tokens by id."""
        tokens = self.after.vocab.tokens
        return [(i, tokens[i]) for i in range(self.first_id, max(tokens) + 1)]

    @property
    def revived(self) -> int:
        """Number of learned merges that make a token the tokenizer already had."""
        return self.training.merges_learned - len(self.new)


class _Measured(NamedTuple):
    """A word, and the number of tokens of each of its forms before and after."""

    word: Word
    before: tuple[int, int]
    after: tuple[int, int]

    @property
    def was_single(self) -> bool:
        return self._is_single(self.before)

    @property
    def is_single(self) -> bool:
        return self._is_single(self.after)

    def _is_single(self, tokens: tuple[int, int]) -> bool:
        """Whether every form that the pattern keeps whole is a single token."""
        pairs = zip(self.word.forms, tokens, strict=True)
        return self.word.problem is None and all(n == 1 for form, n in pairs if form.is_whole)


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
        out (PATH): The file or folder to write.
        format (NAME): The format of --out: {formats}. Default: by its name.
        force: Overwrite existing files.
    """
    has_words = bool(word) or words is not None
    _check_usage(source, add, reading, has_words=has_words)
    given = _read_words(word or [], words) if has_words else []
    start = lacking.load(tokenizer, from_format)
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
        _say_problems(found)
        raise _errors.UsageError("none of the words can be a single token; nothing was written")
    with _training.Display(sources, is_quiet=has_words) as display:
        tok = byteweld.train(
            sources,
            vocab_size=vocab_size,
            recipe=recipe,
            start=start,
            num_threads=threads,
            memory=memory,
            progress=display.on_event,
            on_counted=display.on_counted,
        )
    made = _Extension(start, tok, target)
    started = time.perf_counter()
    _targets.save_all([(tok, [target])], files=files, force=force)
    seconds = _training.seconds(tok, time.perf_counter() - started)
    report = _common_report(made, seconds)
    if has_words:
        measured = [_measure(one, made) for one in found]
        _say_words(measured, made, add)
        report |= _words_report(measured)
    else:
        rates = _rates(made, display.counted.counts, threads)
        _say_corpus(made, rates)
        report |= _corpus_report(made, rates)
    _targets.say_wrote(tok, [target])
    if json:
        _output.report(report)


# ---------------------------------------------------------------------------- before the work


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


def _read_words(given: Sequence[str], file: str | None) -> list[str]:
    for one in given:
        try:
            one.encode()
        except UnicodeEncodeError:
            raise _errors.UsageError(f"--word is {one!r}; expected UTF-8") from None
    lines = list(given)
    if file is not None:
        is_stdin = file == _input.STDIN
        content = options.as_text(_input.read(file), file) if is_stdin else options.read_text(file)
        lines += content.split("\n")
    words = read_words(lines)
    if not words:
        if file is None:
            raise _errors.UsageError("--word is empty; expected a word")
        where = "standard input" if file == _input.STDIN else file
        raise _errors.UsageError(f"{where} has no words; expected one per line")
    return words


# ---------------------------------------------------------------------------- after the work


def _say_new(made: _Extension) -> None:
    new = made.new
    kept = f"ids 0 to {made.first_id - 1} stay the same, special tokens included"
    if not new:
        _output.say(f"no new tokens; {kept}")
        return
    last = made.first_id + len(new) - 1
    which = f"id {last}" if len(new) == 1 else f"ids {made.first_id} to {last}"
    _output.say(f"{_output.amount(len(new), 'new token')}, {which}; {kept}")
    _output.say(f"  first    {_training.shown(token for _, token in new)}")
    _output.say(f"  longest  {_training.shown(_training.longest(new))}")
    if made.revived:
        _output.say(
            f"  and {_output.amount(made.revived, 'merge')} for tokens that had an id but no merge"
        )


def _common_report(made: _Extension, seconds: dict[str, float]) -> dict[str, Any]:
    vocab, training = made.after.vocab, made.training
    return {
        "out": made.target.path,
        "report": str(_targets.report_file(made.target)),
        "tokens": len(vocab),
        "tokens_before": len(made.before.vocab),
        "first_new_id": made.first_id,
        "new_tokens": [
            {"id": i, "bytes": token.hex(), "text": visible(token)} for i, token in made.new
        ],
        "merges": training.merges_learned,
        "stop": training.stop,
        "seconds": seconds,
        "fingerprint": vocab.fingerprint,
    }


# ---------------------------------------------------------------------------- a corpus


class _Rates(NamedTuple):
    """Bytes per token of the corpus; None if it is empty."""

    before: float | None
    after: float | None


def _rates(made: _Extension, counts: byteweld.Counts, threads: int | None) -> _Rates:
    training = made.training
    if made.after.vocab.pattern == training.recipe.pattern:
        tokens = training.first_tokens
        before = training.total_bytes / tokens if tokens else None
    else:
        start = byteweld.Tokenizer(made.before.vocab)  # without the report of its own training
        before = _corpus.bytes_per_token(start, counts, threads)
    return _Rates(before, _corpus.bytes_per_token(made.after, counts, threads))


def _say_corpus(made: _Extension, rates: _Rates) -> None:
    _training.say_learned(made.training)
    _say_new(made)
    if rates.before is not None and rates.after is not None:
        fewer = 1 - rates.before / rates.after
        _output.say(
            f"bytes per token on this corpus: {rates.before:.2f} before, {rates.after:.2f} after, "
            f"{100 * fewer:.1f}% fewer tokens"
        )


def _corpus_report(made: _Extension, rates: _Rates) -> dict[str, Any]:
    return {
        "bytes_per_token": rates._asdict(),
        "corpus": _training.corpus_report(made.training),
    }


# ---------------------------------------------------------------------------- words


def _measure(word: Word, made: _Extension) -> _Measured:
    return _Measured(word, _counts(made.before, word), _counts(made.after, word))


def _counts(tok: byteweld.Tokenizer, word: Word) -> tuple[int, int]:
    if word.problem == "unknown byte":  # it cannot be encoded
        return (0, 0)
    alone, spaced = (tok.count(form.text, allowed_special="all") for form in word.forms)
    return (alone, spaced)


def _per_word(measured: Sequence[_Measured]) -> _Rates | None:
    """Tokens per word before and after, the mean of all forms."""
    counted = [one for one in measured if one.word.problem != "unknown byte"]
    if not counted:
        return None
    forms = 2 * len(counted)
    return _Rates(
        sum(sum(one.before) for one in counted) / forms,
        sum(sum(one.after) for one in counted) / forms,
    )


def _say_words(measured: Sequence[_Measured], made: _Extension, add: int | None) -> None:
    possible = [one for one in measured if one.word.problem is None]
    already = sum(one.was_single for one in possible)
    now = sum(one.is_single and not one.was_single for one in possible)
    parts = [f"{now:,} made a single token"]
    parts += [f"{already:,} already one"] if already else []
    parts += (
        [f"{len(measured) - len(possible):,} cannot be"] if len(possible) < len(measured) else []
    )
    _output.say(f"{_output.amount(len(measured), 'word')}: {', '.join(parts)}")
    _say_new(made)
    _say_unfinished([one for one in possible if not one.is_single], add)
    _say_one_form([one.word for one in possible])
    _say_problems([one.word for one in measured])
    rates = _per_word(measured)
    if rates is not None:
        _output.say(
            f"tokens per word, with and without a space before it: {rates.before:.2f} before, "
            f"{rates.after:.2f} after"
        )


def _say_unfinished(unfinished: Sequence[_Measured], add: int | None) -> None:
    if not unfinished:
        return
    why = "" if add is None else f", since --add is {add:,}"
    _output.say(f"{_output.amount(len(unfinished), 'word')} still of several tokens{why}:")
    _say_list([f"{_name(one.word)} ({max(one.after)} tokens)" for one in unfinished])


def _say_one_form(words: Sequence[Word]) -> None:
    """Say which words the pattern keeps whole in one of their forms only."""
    for split, which in ((1, "only without a space before them"), (0, "only after a space")):
        names = [_name(word) for word in words if not word.forms[split].is_whole]
        if names:
            _output.say(f"a single token {which}, because of the pattern:")
            _say_list(names)


def _say_problems(words: Sequence[Word]) -> None:
    bad = [word for word in words if word.problem is not None]
    if not bad:
        return
    _output.say("cannot be a single token:")
    _say_list([f"{_name(word)}: {_problem(word)}" for word in bad])
    if any(word.problem == "split" for word in bad):
        _output.say(
            "  merges never join pre-tokens; instead, add such words where you use the tokenizer"
        )
        _output.say(
            "  (`add_tokens` in transformers), or train with a pattern that keeps them whole"
        )


def _say_list(items: Sequence[str]) -> None:
    for item in items[:_SHOWN]:
        _output.say(f"  {item}")
    if len(items) > _SHOWN:
        _output.say(f"  ... and {len(items) - _SHOWN:,} more")


def _name(word: Word) -> str:
    return _output.shortened(visible(word.text.encode()), 40)


def _problem(word: Word) -> str:
    if word.problem == "special token":
        return "contains a special token"
    if word.problem == "unknown byte":
        return "has a byte that the tokenizer has no token for"
    return f"the pattern splits it into {_parts(word.alone)}"


def _parts(form: Form) -> str:
    shown = [_output.shortened(visible(part), 20) for part in form.pretokens[:_SHOWN_PARTS]]
    return " | ".join([*shown, *(["…"] if len(form.pretokens) > _SHOWN_PARTS else [])])


def _words_report(measured: Sequence[_Measured]) -> dict[str, Any]:
    rates = _per_word(measured)
    return {
        "tokens_per_word": None if rates is None else rates._asdict(),
        "words": [
            {
                "word": one.word.text,
                "is_single": one.is_single,
                "was_single": one.was_single,
                "problem": one.word.problem,
                "forms": [
                    {
                        "text": form.text,
                        "pretokens": [part.hex() for part in form.pretokens],
                        "tokens_before": before,
                        "tokens_after": after,
                    }
                    for form, before, after in zip(
                        one.word.forms, one.before, one.after, strict=True
                    )
                ],
            }
            for one in measured
        ],
    }
