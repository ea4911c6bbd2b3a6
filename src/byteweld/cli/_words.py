"""Words that `byteweld extend` makes single tokens: reads them, and says what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import byteweld
from byteweld.cli import _errors, _input, _output
from byteweld.cli import _options as options
from byteweld.render import visible
from byteweld.training.words import Word, read_words

_SHOWN = 10  # words of each kind
_SHOWN_PARTS = 8  # of a word


def read(given: Sequence[str], file: str | None) -> list[str]:
    """Return the words given and those of a file; at least one."""
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
    if not words and file is None:
        raise _errors.UsageError("--word is empty; expected a word")
    if not words:
        where = "standard input" if is_stdin else file
        raise _errors.UsageError(f"{where} has no words; expected one per line")
    return words


class Measured(NamedTuple):
    """A word, and the number of tokens of each of its forms before and after."""

    word: Word
    before: tuple[int, ...]
    after: tuple[int, ...]

    def is_single(self, tokens: tuple[int, ...]) -> bool:
        """Whether every form that the pattern keeps whole has one of these tokens."""
        pairs = zip(self.word.forms, tokens, strict=True)
        return self.word.problem is None and all(n == 1 for form, n in pairs if form.is_whole)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-serializable values."""
        return {
            "word": self.word.text,
            "is_single": self.is_single(self.after),
            "was_single": self.is_single(self.before),
            "problem": self.word.problem,
            "forms": [
                {
                    "text": form.text,
                    "pretokens": [part.hex() for part in form.pretokens],
                    "tokens_before": before,
                    "tokens_after": after,
                }
                for form, before, after in zip(
                    self.word.forms, self.before, self.after, strict=True
                )
            ],
        }


def measure(
    words: Sequence[Word], before: byteweld.Tokenizer, after: byteweld.Tokenizer
) -> list[Measured]:
    """Count the tokens of words with two tokenizers."""

    def counts(tok: byteweld.Tokenizer, word: Word) -> tuple[int, ...]:
        if word.problem == "unknown byte":  # it cannot be encoded
            return (0, 0)
        return tuple(tok.count(form.text, allowed_special="all") for form in word.forms)

    return [Measured(word, counts(before, word), counts(after, word)) for word in words]


def per_word(measured: Sequence[Measured]) -> dict[str, float] | None:
    """Tokens per word before and after, the mean of all forms."""
    counted = [one for one in measured if one.word.problem != "unknown byte"]
    if not counted:
        return None
    before, after = (sum(one.before) for one in counted), (sum(one.after) for one in counted)
    forms = 2 * len(counted)
    return {"before": sum(before) / forms, "after": sum(after) / forms}


# ---------------------------------------------------------------------------- in words


def summary(measured: Sequence[Measured]) -> str:
    """How many words are single tokens now."""
    already = sum(one.is_single(one.before) for one in measured)
    single = sum(one.is_single(one.after) for one in measured)
    impossible = sum(one.word.problem is not None for one in measured)
    parts = [f"{single - already:,} made a single token"]
    parts += [f"{already:,} already one"] if already else []
    parts += [f"{impossible:,} cannot be"] if impossible else []
    return f"{_output.amount(len(measured), 'word')}: {', '.join(parts)}"


def details(measured: Sequence[Measured], add: int | None) -> Iterator[str]:
    """Which words are not single tokens, and why; `add` is the limit of new tokens."""
    possible = [one for one in measured if one.word.problem is None]
    unfinished = [one for one in possible if not one.is_single(one.after)]
    if unfinished:
        why = "" if add is None else f", since --add is {add:,}"
        yield f"{_output.amount(len(unfinished), 'word')} still of several tokens{why}:"
        yield from _listed([f"{_name(one.word)} ({max(one.after)} tokens)" for one in unfinished])
    for split, which in ((1, "only without a space before them"), (0, "only after a space")):
        names = [_name(one.word) for one in possible if not one.word.forms[split].is_whole]
        if names:
            yield f"a single token {which}, because of the pattern:"
            yield from _listed(names)
    yield from problems([one.word for one in measured])
    rates = per_word(measured)
    if rates is not None:
        yield (
            "tokens per word, with and without a space before it: "
            f"{rates['before']:.2f} before, {rates['after']:.2f} after"
        )


def problems(words: Sequence[Word]) -> Iterator[str]:
    """Which words cannot be single tokens, and why."""
    bad = [word for word in words if word.problem is not None]
    if not bad:
        return
    yield "cannot be a single token:"
    yield from _listed([f"{_name(word)}: {_problem(word)}" for word in bad])
    if any(word.problem == "split" for word in bad):
        yield "  merges never join pre-tokens; instead, add such words where you use the tokenizer"
        yield "  (`add_tokens` in transformers), or train with a pattern that keeps them whole"


def _listed(items: Sequence[str]) -> Iterator[str]:
    yield from (f"  {item}" for item in items[:_SHOWN])
    if len(items) > _SHOWN:
        yield f"  ... and {len(items) - _SHOWN:,} more"


def _name(word: Word) -> str:
    return _output.shortened(visible(word.text.encode()), 40)


def _problem(word: Word) -> str:
    if word.problem == "special token":
        return "contains a special token"
    if word.problem == "unknown byte":
        return "has a byte that the tokenizer has no token for"
    parts = word.alone.pretokens
    shown = [_output.shortened(visible(part), 20) for part in parts[:_SHOWN_PARTS]]
    more = ["…"] if len(parts) > _SHOWN_PARTS else []
    return f"the pattern splits it into {' | '.join(shown + more)}"
