"""Seeded story-like English: templates over a Zipf-distributed lexicon of invented words.

Short sentences, dialogue, paragraphs; distinct documents joined by SEPARATOR. Only integers and our
own random numbers, so a seed gives the same bytes on every machine and library version.

    python benches/stories.py MEGABYTES [SEED] > stories.txt
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SEPARATOR = b"<|endoftext|>"
SEED = 11

_DOCUMENTS_PER_BLOCK = 4_000
_FEWEST_SENTENCES, _MORE_SENTENCES = 5, 20
_PARAGRAPH_IN = 5  # one sentence in five ends a paragraph
_RARE_IN = 150  # one in 150 contains a compound, which may never occur again
_SLOTS = 1 << 18  # resolution of the word probabilities in a lexicon

_Words = list[str]
_Ids = npt.NDArray[np.int32]
_Draws = npt.NDArray[np.uint64]
_Indices = npt.NDArray[np.int64]
_Source = Callable[[int], _Draws]  # the next n random numbers

# Slots: A, B the two people of the story, T its thing; n noun, s plural noun, a adjective, v past
# tense, i infinitive, g -ing form, m adverb, M capitalized adverb, P name of a location, k number,
# h head of a compound; +n, +a with an article.
_OPENINGS = """
Once upon a time, there was {+a} {n} named {A}.
One day, {A} and {B} went to the {P} to find {+n}.
There was once {+a} {T} that lived near {P}.
{A} was {+a} {n} who loved to {i} with {B}.
Long ago, in {P}, a little {n} called {A} had {+a} {T}.
It was {+a} morning in {P}, and {A} wanted to {i}.
{A} and {B} were good friends. They liked to {i} the {s} every day.
In a small house by the {n} lived {A}, {+a} child with {k} {s}.
Every day {A} took the {T} to {P} and {v} it there.
{B} had a new {T}. It was big and {a}, and {A} liked it too.
"""
_SENTENCES = """
{A} {v} the {n} and {v} it {m}.
{B} was very {a} and did not want to {i}.
The {T} was {a}, but it could not {i}.
They {v} to the {P} and saw {+a} {n}.
"Can you {i} my {T}?" asked {A}.
"Yes, I can!" said {B}. "But first we must {i} the {s}."
"No, {A}," said the {n}. "That is not your {n}."
{M}, the {n} {v} away from the {P}.
{A} felt {a}. {B} gave {A} {+n} to {i}.
"I am sorry," {B} said {m}. "I didn't know it was yours."
The {s} were {g} in the {P} and {A} laughed.
It was the most {a} {n} that {A} had ever seen.
{A} looked under the {n}, behind the {n} and inside the {n}.
There were {k} {s} in the {n}, and all of them were {a}.
"Look at the {s}!" {A} shouted. "They are {g}!"
{B}'s mom said, "Please {i} your {s} before we go to {P}."
The old {n} smiled and {v} {m}.
So {A} went to {i} the {T} with {+a} {n}.
But the {T} did not {i}. It only {v}.
{M}, {B} heard a sound. It was {+n}, {g} near the {n}.
"What is that?" {B} asked. "It looks like {+a} {n}."
They didn't know what to do, so they {v} and {v} until it was dark.
{A} tried to {i} it, but it was too {a}.
The {n} said, "If you {i} me, I'll give you {k} {s}."
{B} thought about the {a} {n} and began to {i}.
{A} put the {n} on the {n}, and the {n} fell down.
"We can't {i} here," said {A}. "It isn't {a}."
After that, {A} {v} every {n} in {P}.
The sun was {a} and the {s} were {g} in the wind.
{A}'s {T} was {a} again, and {B} {v} with joy.
He {v} the {n}, she {v} the {n}, and they both {v} the {T}.
"You're {+a} {n}," said {A}, "and I like you {m}."
A {n} came out of the {n} and {v} at {B}.
{B} ran to {P} to get some {s} for the {n}.
{M}, all the {s} of {P} came to {i}.
"Let's {i} together!" said the {T}.
{A} had an idea. She would {i} the {n} with the {T}.
They shared the {s} and {v} under {+a} {n}.
"Do not be {a}, little {n}," {B} said. "We'll {i} it."
The {n} was so {a} that nobody could {i}.
At last the {s} stopped {g}, and it was {a} in {P}.
{A} wished for {+a} {n} and {+a} {n}.
Then {A}'s dad came and asked, "Who {v} my {n}?"
"I did," said {A} {m}. "I wanted to {i} the {s}."
{B} climbed the {n} and found {k} {a} {s}.
It smelled like {n} and {s}.
"""
_RARE = """
{A} had never seen {+n}{h} before, not even in {P}.
"That is my {n}{h}!" said {B}, and {v} it {m}.
The {n}{h} was {a} and full of {s}.
"""
_ENDINGS = """
And so {A} and {B} {v} the {T} and were happy.
From that day on, {A} always {v} {m}.
They went home with the {T}, and everyone was {a}.
{A} learned that it is good to {i} when a friend is {a}.
The end of the day was {a}, and {B} slept with the {T}.
"Thank you, {B}," said {A}. And they never {v} the {n} again.
{A} hugged {B} and said, "You are my best {n}."
After that, {P} was never {a} again.
"""

_ONSETS = (
    "b b c d d f g h j k l l m m n n p p r r s s t t v w bl br ch cl cr dr fl fr gl gr kn pl pr qu "
    "sc sh sl sm sn sp st sw th tr tw wh y"
).split() + [""] * 3
_NUCLEI = "a a a e e e i i i o o u u ai ay ea ee oa oo ou ow".split()
_CODAS = "b ck d g l ll m m n n n nd ng nk nt p r r r rd rk rn s sh st t t tch th".split()
_VOWELS = frozenset("aeiou")

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15  # splitmix64's


@dataclass(frozen=True)
class _Lexicon:
    """A class of words: its first index in the table of pieces, and words weighted by frequency."""

    first: int
    chances: _Ids

    def choose(self, draws: _Draws) -> _Ids:
        return self.chances[_below(len(self.chances), draws)] + np.int32(self.first)


def stories(seed: int = SEED) -> Iterator[bytes]:
    """Yield blocks of about 4 MB forever; concatenated, they are documents joined by SEPARATOR."""
    generator = _Generator()
    number = 0
    while True:
        block = generator.block(_mix(_mix(seed) + number))
        yield SEPARATOR + block if number else block
        number += 1


# ---------------------------------------------------------------------- random numbers


def _mix(value: int) -> int:
    """One step of splitmix64: hashes an integer."""
    value = (value + _GAMMA) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def _draws(key: int, how_many: int) -> _Draws:
    """`how_many` numbers of splitmix64 at once."""
    value = np.arange(1, how_many + 1, dtype=np.uint64)
    value *= np.uint64(_GAMMA)
    value += np.uint64(key)
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return value


def _below(limit: int, draws: _Draws) -> _Indices:
    """Numbers from 0 to limit - 1, from the upper half of each draw."""
    return (((draws >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)).astype(np.int64)


# ---------------------------------------------------------------------- words


class _WordMaker:
    """Invents distinct words; the first ones are short, like frequent words."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._state = 0

    def _pick(self, choices: list[str]) -> str:
        self._state = (self._state + 1) & _MASK
        return choices[_mix(self._state) % len(choices)]

    def words(self, how_many: int) -> _Words:
        found: _Words = []
        while len(found) < how_many:
            syllables = 1 if len(found) < 250 else 2 if len(found) < 4000 else 3
            word = "".join(
                self._pick(_ONSETS) + self._pick(_NUCLEI) for _ in range(syllables)
            ) + self._pick(_CODAS)
            if len(word) > 2 and word not in self._seen:
                self._seen.add(word)
                found.append(word)
        return found


def _past(verb: str) -> str:
    return verb + ("d" if verb.endswith("e") else "ed")


def _ing(verb: str) -> str:
    return verb.removesuffix("e") + "ing"


def _plural(noun: str) -> str:
    return noun + ("es" if noun.endswith(("s", "sh", "ch", "x", "z")) else "s")


def _with_article(word: str) -> str:
    return ("an " if word[0] in _VOWELS else "a ") + word


def _classes() -> dict[str, _Words]:
    """The words of every slot class, most frequent first."""
    maker = _WordMaker()
    nouns, adjectives, verbs = maker.words(14_000), maker.words(7_000), maker.words(8_000)
    adverbs = [word + "ly" for word in maker.words(4_000)]
    names = [word.capitalize() for word in maker.words(6_000)]
    return {
        "n": nouns,
        "+n": [_with_article(noun) for noun in nouns],
        "s": [_plural(noun) for noun in nouns],
        "h": nouns[:400],
        "T": nouns,
        "a": adjectives,
        "+a": [_with_article(word) for word in adjectives],
        "i": verbs,
        "v": [_past(verb) for verb in verbs],
        "g": [_ing(verb) for verb in verbs],
        "m": adverbs,
        "M": [adverb.capitalize() for adverb in adverbs],
        "A": names,
        "B": names,
        "P": [word.capitalize() for word in maker.words(3_000)],
        "k": [str(n) for n in range(2, 400)],
    }


def _chances(words: int) -> _Ids:
    """Zipf-Mandelbrot: the n-th word has weight 1 / (n + 2.7), and every word at least one slot."""
    weights = (1 << 40) // (10 * np.arange(words, dtype=np.int64) + 27)
    slots = np.maximum(1, weights * _SLOTS // int(weights.sum()))
    return np.repeat(np.arange(words, dtype=np.int32), slots)


# ---------------------------------------------------------------------- stories


class _Generator:
    """Pieces of text by index, and templates as rows of indices."""

    _OF_THE_STORY = ("A", "B", "T")  # chosen once per document
    _NOTHING = -1

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._lexicons: dict[str, _Lexicon] = {}
        for name, words in _classes().items():
            self._lexicons[name] = _Lexicon(len(self._pieces), _chances(len(words)))
            self._pieces += [word.encode() for word in words]
        # A slot in a template row is its class number, from -2 down.
        self._codes = {name: -2 - n for n, name in enumerate(self._lexicons)}
        self._gap, self._paragraph, self._end = map(
            self._piece, (" ", "\n\n", f"\n{SEPARATOR.decode()}")
        )
        kinds = [text.strip().splitlines() for text in (_SENTENCES, _RARE, _OPENINGS, _ENDINGS)]
        rows = [self._row(line) for lines in kinds for line in lines]
        width = max(map(len, rows))
        padded = [row + [self._NOTHING] * (width - len(row)) for row in rows]
        self._templates = np.array(padded, dtype=np.int32)
        self._how_many = [len(lines) for lines in kinds]
        self._all_pieces = np.frombuffer(b"".join(self._pieces), dtype=np.uint8)
        self._lengths = np.array([len(piece) for piece in self._pieces], dtype=np.int32)
        self._starts = np.cumsum(self._lengths, dtype=np.int32) - self._lengths

    def _piece(self, text: str) -> int:
        self._pieces.append(text.encode())
        return len(self._pieces) - 1

    def _row(self, template: str) -> list[int]:
        parts = re.split(r"\{(.*?)\}", template)
        return [
            self._codes[part] if n % 2 else self._piece(part)
            for n, part in enumerate(parts)
            if n % 2 or part
        ] + [self._NOTHING]  # filled with the separator after the sentence

    def block(self, key: int) -> bytes:
        """A block of documents; each key gives a different one."""
        keys = iter(range(1, 1000))

        def draw(how_many: int) -> _Draws:
            return _draws(_mix(key ^ _mix(next(keys))), how_many)

        documents = _DOCUMENTS_PER_BLOCK
        lengths = _FEWEST_SENTENCES + _below(_MORE_SENTENCES, draw(documents))
        of = np.repeat(np.arange(documents), lengths)
        last = np.cumsum(lengths) - 1
        first = last - lengths + 1
        rows = self._templates[self._choose_templates(draw, first, last)]
        is_end = _below(_PARAGRAPH_IN, draw(len(rows))) == 0
        rows[:, -1] = np.where(is_end, self._paragraph, self._gap)
        rows[last, -1] = self._end
        filled = rows != self._NOTHING
        story = np.repeat(of, filled.sum(axis=1))
        pieces = rows[filled]
        self._fill(pieces, story, draw)
        return self._text(pieces).removesuffix(SEPARATOR)

    def _text(self, pieces: _Ids) -> bytes:
        """Join the pieces, by computing the source offset of every byte of the text."""
        lengths = self._lengths[pieces]
        ends = np.cumsum(lengths, dtype=np.int32)
        offsets = np.repeat(self._starts[pieces] - (ends - lengths), lengths)
        offsets += np.arange(len(offsets), dtype=np.int32)
        return bytes(self._all_pieces[offsets])

    def _fill(self, pieces: _Ids, story: _Indices, draw: _Source) -> None:
        """Fill the slots with words; people and things are fixed per story."""
        slots = np.flatnonzero(pieces < self._NOTHING)
        codes = pieces[slots]
        for name, code in self._codes.items():
            where = slots[codes == code]
            if name in self._OF_THE_STORY:
                pieces[where] = self._lexicons[name].choose(draw(_DOCUMENTS_PER_BLOCK))[
                    story[where]
                ]
            else:
                pieces[where] = self._lexicons[name].choose(draw(len(where)))

    def _choose_templates(self, draw: _Source, first: _Indices, last: _Indices) -> _Indices:
        usual, rare, openings, endings = self._how_many
        sentences = int(last[-1]) + 1
        chosen = _below(usual, draw(sentences))
        is_rare = _below(_RARE_IN, draw(sentences)) == 0
        chosen[is_rare] = usual + _below(rare, draw(int(is_rare.sum())))
        chosen[first] = usual + rare + _below(openings, draw(len(first)))
        chosen[last] = usual + rare + openings + _below(endings, draw(len(last)))
        return chosen


def main() -> None:
    """Write MEGABYTES of text to standard output."""
    left = int(float(sys.argv[1]) * 1_000_000)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else SEED
    for block in stories(seed):
        sys.stdout.buffer.write(block[:left])
        left -= len(block)
        if left <= 0:
            break


if __name__ == "__main__":
    main()
