"""Words to learn: which of them merges can make a single token, and what to train on for that.

Merges never cross the boundary of a pre-token. So a word can become a token only if the pattern
keeps it whole. Text contains a word at its start or after a space, so each word has two forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from byteweld.vocab import Vocabulary

Problem = Literal["split", "special token", "unknown byte"]


class Form(NamedTuple):
    """A word, or a word after a space, and its pre-tokens."""

    text: str
    pretokens: tuple[bytes, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the pattern keeps it whole."""
        return len(self.pretokens) == 1


class Word(NamedTuple):
    """A word and its two forms. `problem` is why no merges can make it a token; None if some can.

    "split": the pattern splits both forms. "special token": it contains one, which is cut out
    before the pattern runs. "unknown byte": the vocabulary has no token for one of its bytes.
    """

    text: str
    alone: Form
    spaced: Form
    problem: Problem | None

    @property
    def forms(self) -> tuple[Form, Form]:
        """Both forms."""
        return (self.alone, self.spaced)

    @property
    def learnable(self) -> list[Form]:
        """The forms that merges can make a token."""
        return [] if self.problem else [form for form in self.forms if form.is_whole]


def read_words(lines: Iterable[str]) -> list[str]:
    """Return the words of a list, one per line, without the spaces around them; each word once.

    >>> read_words(["low", " lower ", "", "low"])
    ['low', 'lower']
    """
    return list(dict.fromkeys(word for line in lines if (word := line.strip())))


def find_words(
    words: Iterable[str], vocab: Vocabulary, pretokenize: Callable[[str], Sequence[bytes]]
) -> list[Word]:
    """Return each word with its forms and what is wrong with it; `pretokenize` is of `vocab`."""
    specials = "|".join(re.escape(text) for text in vocab.special_tokens)
    has_special = re.compile(specials or r"(?!)").search
    known = frozenset(token[0] for token in vocab.ids if len(token) == 1)
    found = []
    for text in words:
        alone, spaced = (Form(form, tuple(pretokenize(form))) for form in (text, f" {text}"))
        problem: Problem | None = None
        if has_special(text):
            problem = "special token"
        elif not known.issuperset(text.encode()):
            problem = "unknown byte"
        elif not alone.is_whole and not spaced.is_whole:
            problem = "split"
        found.append(Word(text, alone, spaced, problem))
    return found


def documents_of(words: Iterable[Word]) -> list[str]:
    """Return documents that train a vocabulary until every word is a token: its whole forms."""
    return [form.text for word in words for form in word.learnable]
