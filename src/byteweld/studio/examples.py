"""Built-in examples for the views: short strings and tiny corpora with a surprise in each."""

from __future__ import annotations

from typing import NamedTuple

import byteweld
from byteweld.patterns import pattern_name
from byteweld.samples import SENTENCES


class Example(NamedTuple):
    """Sample text for the Tokens and Compare views, and what to look for in it."""

    name: str
    text: str
    note: str


class TinyCorpus(NamedTuple):
    """A corpus for the Training view, one document per line, and what to look for in it."""

    name: str
    text: str
    recipe: str
    merges: int
    note: str


_BOAT = "\n".join(SENTENCES.values())

TEXTS: tuple[Example, ...] = (
    Example(
        "A first look",
        "The lowest tokenizer in town untokenizes 1234567 words a minute.\n"
        "Tokenizer, tokenizer and TOKENIZER are not the same. 🙂 costs more than a smile.",
        "This is what a language model reads: tokens, not letters. The same word is split in three "
        "different ways: after a space, capitalized, and in all caps. Select a token to see why.",
    ),
    Example(
        "Numbers",
        "7 77 777 7777 77777\n1234 + 8766 = 10000\n3.14159265358979 and 2026-11-16 at 07:30",
        "Long numbers are split, and not always where you would split them. Many patterns allow at "
        "most three digits per token.",
    ),
    Example(
        "Emoji",
        "🙂 👋🏽 👩‍🚀 🏳️‍🌈\nA family is one symbol and many bytes: 👨‍👩‍👧‍👦",
        "A character that is not a token is split among several: it is drawn across them, with "
        "the bytes of each below. Some emoji are several characters, joined by an invisible one.",
    ),
    Example(
        "Spaces and code",
        "def area(width, height):\n    if width < 0:\n        raise ValueError(width)\n"
        "    return width * height\n\n\tindented with a tab\n        and with eight spaces",
        "Indentation is text, too: see how many spaces become one token.",
    ),
    Example(
        f"One sentence, {len(SENTENCES)} languages",
        _BOAT,
        "Every line says the same thing. Compare how finely the lines are split: a language that "
        "was rare in the training corpus needs more tokens for the same meaning.",
    ),
    Example(
        "Hidden characters",
        "no\u00a0break, zero\u200bwidth, soft\u00adhyphen, a \u202eright-to-left\u202c trick, "
        "nai\u0308ve and naïve",
        "Invisible characters are written out, as in ⟨U+200B⟩. The last two words look the same "
        "but have different bytes.",
    ),
)

# The Why view opens on the last of these that greedy longest match would split differently.
SURPRISING_WORDS: tuple[str, ...] = (
    *(" lowest", " newest", " unhappiness", " internationalization", " reopening", " strawberry"),
    *(" defenestration", " overestimated", " misunderstandings", " kindergarten", " butterflies"),
    *(" counterexamples", " hyperparameters", " nationality", " instantaneous", " tokenization"),
    *(" unbelievable", " thoughtfulness", " lighthouses", " superconductors", " tokenizer"),
)

CORPORA: tuple[TinyCorpus, ...] = (
    TinyCorpus(
        "low, newest, widest",
        "low low low low low lower lower\nnewest newest newest newest newest newest\n"
        "widest widest widest",
        "from-scratch",
        14,
        "est is learned before low, since its pairs occur in two words. Step 1 is a tie.",
    ),
    TinyCorpus(
        "I work, he works",
        "I work\nI work\nI worked\nhe works\nhe worked",
        "plain",
        8,
        "Without a pattern, a space is a byte like any other, and it sorts before all letters. So "
        "space + w wins the first tie, and work is built from its space on.",
    ),
    TinyCorpus(
        "Who eats?",
        "he eats\nhe eats\nI eat\nyou eat",
        "plain",
        6,
        "eat is the most common word but never a token by itself: the space merges first.",
    ),
    TinyCorpus(
        "A drawing",
        '<svg viewBox="0 0 24 24">\n<path d="M12 2L2 22h20z" fill="#222"/>\n'
        '<path d="M2 2h20v20H2z" fill="none"/>\n<path d="M4 12h16" stroke="#222"/>\n'
        '<circle cx="12" cy="12" r="8" fill="none" stroke="#222"/>\n</svg>',
        "plain",
        40,
        'What repeats becomes a token: parts of a tag, then =" and " f, then all of <path d=".',
    ),
    TinyCorpus(
        "A short tale",
        "The weaver wove a net, and the net was new.\n"
        "The fisher threw the net where the river was deep.\n"
        "Nothing was there. The fisher waited, and the weaver waited with her.\n"
        "Then the river gave them what the river gives to those who wait: weather.\n"
        "They went home together, wet and laughing, with the net over their heads.",
        "from-scratch",
        60,
        "the comes early, with and without its space; then er and we compete for weaver.",
    ),
)

# For the view "How it works", each line a file.
FILES: tuple[TinyCorpus, ...] = (
    TinyCorpus(
        "Weather",
        "the weather there\nthen they gather\ntogether they weather it\nthe other father",
        "ck",
        12,
        "he, the and ther come first: they are in almost every word. Nothing merges across files.",
    ),
    TinyCorpus(
        "low, newest, widest",
        "low low lower lowest\nnew newer newest\nslow slower slowest\nwide wider widest",
        "ck",
        14,
        "low is complete after two merges; est needs es first. Most other merges are ties.",
    ),
    TinyCorpus(
        "Drawings (SVG)",
        '<svg viewBox="0 0 24 24"><path d="M12 2L2 22h20z"/></svg>\n'
        '<svg viewBox="0 0 24 24"><path d="M4 4h16v16H4z" fill="none"/></svg>\n'
        '<svg viewBox="0 0 24 24"><path d="M4 12h16" stroke="#222"/></svg>\n'
        '<svg viewBox="0 0 24 24"><circle cx="12" cy="12" r="8" fill="none"/></svg>',
        "ck-ascii",
        40,
        "Drawings repeat themselves, so a whole opening tag becomes one token. They are pure "
        "ASCII: 98 byte tokens suffice.",
    ),
)


def recipes() -> list[tuple[str, str]]:
    """Return the recipes to choose from: name, and a short description."""
    found = []
    for name, recipe in byteweld.RECIPES.items():
        known = pattern_name(recipe.pattern)
        pattern = "no pattern" if known is None else f"pattern {known}"
        ties = recipe.tie_break.replace("-", " ")
        often = f", pairs seen at least {recipe.min_frequency} times"
        least = often if recipe.min_frequency > 1 else ""
        ascii_only = ", ASCII only" if recipe.alphabet == "ascii" else ""
        found.append((name, f"{name}: {pattern}, ties go to the {ties}{least}{ascii_only}"))
    return found
