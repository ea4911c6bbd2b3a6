"""Texts that encoders get wrong, drawn from a seed: classes, runs, block boundaries, broken UTF-8.

In: a random generator, pieces of real text, tokens of a vocabulary. Out: a str or bytes. The same
generator state gives the same text.
"""

from __future__ import annotations

import gzip
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from random import Random

from tests.helpers.strategies import BROKEN, CHARACTERS, FRAGMENTS, NASTY

Text = str | bytes

TESTS = Path(__file__).parents[1]

# The engine works on blocks of 64 bytes, 32 at a time; it caches pre-tokens of up to 15 and up to
# 31 bytes in two tables; a text of 64 KiB is worth a second thread.
EDGES = (64, 64, 64, 128, 192, 2048)
WORD_BYTES = (*range(14, 18), *range(30, 34))
LARGE_BYTES = 70_000
# A batch of twice 64 KiB is divided among threads; a long text in it is cut after 32 KiB or more.
HUGE_BYTES = (140_000, 200_000, 400_000)
SHARE_BYTES = 32 << 10

WHITE = " \t\n\r\x0b\x0c\x1c\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000"
NOT_WHITE = "\u180e\u200b\u200d\u2060\ufeff"
APOSTROPHES = ["'", "'", "'", "’", "''", "‘", "ʼ", "'\u0301"]
ENDINGS = ["s", "S", "ſ", "t", "T", "m", "d", "D", "re", "RE", "rE", "ve", "Ve", "ll", "LL", "lL"]
NOT_ENDINGS = ["K", "k", "x", "l", "r", "v", "ss", "rd", "1", " s", "\ns", "", "ſſ", "ı"]
DIGITS = ["0123456789", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "½²₃ⅧⅫ㊿〇", "𝟘𝟙𝟚𝟛", "0٣½"]
CASES = ["abcxyz", "ABCXYZ", "ǅǈǋᾈ", "ʰʷˢªº", "漢字ع", "éßñ", "ÉÑΣ", "\u0301\u0308\u0903"]
# (first, last) of scripts written without spaces, and of some with many marks.
SCRIPTS = [
    *[(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x3041, 0x3096), (0x30A1, 0x30FA)],
    *[(0x0E01, 0x0E3A), (0x0E01, 0x0E5B), (0x1780, 0x17DD), (0x0E81, 0x0EDF), (0x1000, 0x109F)],
    *[(0xAC00, 0xD7A3), (0x0900, 0x097F), (0x0600, 0x06FF), (0x1200, 0x137F), (0x0F00, 0x0FBC)],
]
SIGNS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~…—«»€£±×👍🏽'
CONTEXTS = ("a{0}b", " {0}{0}", "{0}'s", "1{0}2", "{0}\n{0}", "A{0}a", "!{0}\n", "{0}", "\t{0} ")

Draw = Callable[[Random], str]


def as_str(text: Text) -> str | None:
    """A text as a str, if it is one or is the UTF-8 of one."""
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


# ---------------------------------------------------------------------- kinds of text


def soup(rng: Random) -> str:
    """Characters of every class, and easily confused ones, next to each other."""
    return "".join(
        rng.choice(FRAGMENTS) if rng.random() < 0.3 else rng.choice(CHARACTERS)
        for _ in range(rng.randint(1, 60))
    )


def few_letters(rng: Random) -> str:
    """A tiny alphabet, where pairs tie and overlap at every step."""
    letters = rng.choice(["ab", "ab ", "aé", "a' \n", "the ", "aA1", "漢字。"])
    return "".join(rng.choices(letters, k=rng.randint(1, 120)))


def contractions(rng: Random) -> str:
    parts = []
    for _ in range(rng.randint(1, 8)):
        parts += [rng.choice(["I", "don", "x", "A", "漢", "1", " ", "!", "\n", "", "e\u0301"])]
        parts += [rng.choice(APOSTROPHES), rng.choice([*ENDINGS, *NOT_ENDINGS])]
        parts += [rng.choice(["", "", " ", "a", "S", "'"])]
    return "".join(parts)


def whitespace(rng: Random) -> str:
    parts = []
    for _ in range(rng.randint(1, 8)):
        some = rng.choice([" ", " ", "\n", "\r\n", " \n", "\t", WHITE, WHITE + NOT_WHITE])
        parts += [rng.choice(some) for _ in range(_run_length(rng))]
        parts += [rng.choice(["", "a", "word", "1", "!", "//", "漢", "'s", "A"])]
    if rng.random() < 0.5:
        parts.pop()
    return "".join(parts)


def digits(rng: Random) -> str:
    parts = []
    for _ in range(rng.randint(1, 5)):
        parts += [rng.choice(["", " ", "a", ",", "\n", "x ", "-"])]
        parts += rng.choices(rng.choice(DIGITS), k=_run_length(rng))
    return "".join(parts)


def cases(rng: Random) -> str:
    """Letters whose case matters, mixed with marks and letters without case."""
    parts = []
    for _ in range(rng.randint(1, 10)):
        parts += rng.choices(rng.choice(CASES), k=rng.randint(1, 4))
        parts += [rng.choice(["", "", "", " ", "'s", "'LL", "_", "1"])]
    return "".join(parts)


def signs(rng: Random) -> str:
    parts = []
    for _ in range(rng.randint(1, 8)):
        parts += [rng.choice(["", " ", "  ", "a", "\n"])]
        parts += rng.choices(SIGNS, k=rng.randint(1, 5))
        parts += [rng.choice(["", "\n", "\r\n", "/\n/", "\n\n", "/", " \n", "\u0301", "x"])]
    return "".join(parts)


def script_run(rng: Random) -> str:
    """A long run of letters without a space, as in Chinese, Thai or Khmer."""
    first, last = rng.choice(SCRIPTS)
    letters = [chr(rng.randint(first, last)) for _ in range(rng.choice([3, 12, 60]))]
    run = rng.choices(letters, k=_run_length(rng) * 3)
    for _ in range(rng.randint(0, 2)):
        run.insert(rng.randrange(len(run) + 1), rng.choice(["。", "、", " ", "\n", "a", "\u200b"]))
    return "".join(run)


def words_of_edge_lengths(rng: Random) -> str:
    """Words just shorter and longer than a cache key; the last one ends the text."""
    words = []
    for _ in range(rng.randint(1, 6)):
        letter = rng.choice(["e", "aé", "th", "漢", "A", "1", "ab\0", "-", "กำ"])
        length, word = rng.choice(WORD_BYTES), ""
        while len(word.encode()) < length:
            word += rng.choice(letter)
        words.append(word)
    return rng.choice([" ", "  ", "\n", "!"]).join(words)


def code_points(rng: Random) -> str:
    """Any characters, mostly from where a class of characters begins or ends."""
    edges = _category_edges()
    chosen = [
        rng.choice(edges) if rng.random() < 0.7 else _any_code_point(rng)
        for _ in range(rng.randint(1, 6))
    ]
    return "".join(rng.choice(CONTEXTS).format(chr(code)) for code in chosen)


def sweep(turn: int, count: int = 48) -> str:
    """Every code point in turn, each time in another context."""
    start = turn * count
    codes = [code % 0x110000 for code in range(start, start + count)]
    lap = start // 0x110000
    return "".join(
        CONTEXTS[(code + lap) % len(CONTEXTS)].format(chr(code))
        for code in codes
        if not 0xD800 <= code < 0xE000
    )


def special_texts(specials: Sequence[str]) -> Draw:
    """Special tokens whole, cut, doubled, and inside whitespace."""

    def draw(rng: Random) -> str:
        parts = []
        for _ in range(rng.randint(1, 6)):
            special = rng.choice(specials)
            at = rng.randint(0, len(special))
            parts += [rng.choice([special, special, special[:at], special[at:], special * 2])]
            parts += [rng.choice(["", " ", "   ", "\n \n", "a", "'s", "12", "<|"])]
        return "".join(parts)

    return draw


def token_texts(tokens: Sequence[bytes]) -> Draw:
    """Tokens of the vocabulary in a row; most adjacent ones merge in another way."""

    def draw(rng: Random) -> str:
        some = rng.choices(tokens, k=rng.randint(1, 30))
        return b"".join(some).decode(errors="replace")

    return draw


def mutations(samples: Sequence[str]) -> Draw:
    """A piece of real text with a few changes."""

    def draw(rng: Random) -> str:
        sample = rng.choice(samples)
        start = rng.randrange(len(sample) + 1)
        text = list(sample[start : start + rng.choice([20, 80, 300])])
        for _ in range(rng.randint(0, 4)):
            at = rng.randint(0, len(text))
            end = min(len(text), at + rng.randint(1, 8))
            other = rng.choice([soup, whitespace, digits, contractions])(rng)[:12]
            text[at:end] = rng.choice([[], list(other), text[at:end] * 2, text[at:end][::-1]])
        return "".join(text)

    return draw


def _run_length(rng: Random) -> int:
    return rng.choice([1, 1, 2, 2, 3, 3, 4, 7, 15, 16, 17, 31, 32, 63, 64, 65, 130])


def _any_code_point(rng: Random) -> int:
    code = rng.randrange(0x110000 - 0x800)
    return code if code < 0xD800 else code + 0x800


@cache
def _category_edges() -> list[int]:
    """The first and the last code point of every range of one category."""
    codes = [*range(0xD800), *range(0xE000, 0x33480), *range(0xE0000, 0xE0200), 0x10FFFF]
    runs = [list(run) for _, run in groupby(codes, lambda code: unicodedata.category(chr(code)))]
    return [code for run in runs for code in (run[0], run[-1])]


# ---------------------------------------------------------------------- positions


class Texts:
    """Draws texts for one vocabulary, no longer than its oracles can encode in reasonable time."""

    def __init__(
        self,
        samples: Sequence[str],
        *,
        tokens: Sequence[bytes],
        specials: Sequence[str],
        max_bytes: int,
    ) -> None:
        self._samples = samples
        self._max_bytes = max_bytes
        self._kinds: list[Draw] = [
            *[soup, few_letters, contractions, whitespace, digits, cases, signs, script_run],
            *[words_of_edge_lengths, code_points, token_texts(tokens)],
            *[mutations(samples)] * 4,
        ]
        if specials:
            self._kinds.append(special_texts(specials))

    def draw(self, rng: Random, turn: int) -> list[Text]:
        """The texts of one round: every kind once, the sweep, and sometimes a large one."""
        drawn: list[Text] = [self._placed(rng, kind(rng)) for kind in self._kinds]
        drawn += [sweep(turn), "", self._torn(rng), self._with_surrogates(rng)]
        if turn % 8 == 0 and self._max_bytes >= LARGE_BYTES:
            drawn.append(self._large(rng))
        return [text for text in drawn if len(text) <= self._max_bytes]

    def _placed(self, rng: Random, text: str) -> Text:
        """Often after enough other text to reach the end of a block."""
        if rng.random() < 0.4:
            edge = rng.choice(EDGES)
            length = max(0, edge - rng.randint(0, min(edge, len(text.encode()) + 8)))
            text = self._filler(rng, length) + text
        if rng.random() < 0.3:
            text += self._filler(rng, rng.choice([1, 1, 16, 16, 40, 140, 140, 2100]))
        if rng.random() < 0.15:
            return self._tear(rng, text.encode())
        return text.encode() if rng.random() < 0.15 else text

    def _filler(self, rng: Random, length: int) -> str:
        """`length` bytes of real text, or of one character."""
        if rng.random() < 0.3:
            return rng.choice("a 1.\nA") * length
        sample = rng.choice(self._samples)
        start = rng.randrange(len(sample) + 1)
        found = sample[start : start + length].encode()[:length].decode(errors="ignore")
        return found + "." * (length - len(found.encode()))

    def _torn(self, rng: Random) -> bytes:
        return self._tear(rng, rng.choice(self._kinds)(rng).encode())

    def _tear(self, rng: Random, raw: bytes) -> bytes:
        """Break UTF-8: insert bytes, remove one, or cut the end off."""
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(raw))
            broken = rng.choice([*BROKEN, rng.randbytes(rng.randint(1, 4))])
            raw = rng.choice([raw[:at] + broken + raw[at:], raw[:at], raw[:at] + raw[at + 1 :]])
        return raw

    def _with_surrogates(self, rng: Random) -> str:
        text = rng.choice(self._kinds)(rng)
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(text))
            half = rng.choice(["\ud800", "\udfff", "\ud83d\ude00", "\ude00\ud83d", "\ud83d"])
            text = text[:at] + half + text[at:]
        return text

    def _large(self, rng: Random) -> str:
        """A text long enough for several threads: real text with hard strings in it."""
        parts: list[str] = []
        length = 0
        while length < LARGE_BYTES:
            parts += [self._filler(rng, rng.randint(500, 5000)), rng.choice(self._kinds)(rng)]
            length += len(parts[-2]) + len(parts[-1])
        return "".join(parts)

    def huge(self, rng: Random) -> list[Text]:
        """A batch for several threads: long texts that are hard where they are cut."""
        texts: list[Text] = []
        left = rng.choice(HUGE_BYTES)
        while left > 0:
            length = min(left, rng.choice([left, left // 2 + 1, 3000, 70_000]))
            text: Text = self._hard_at_cuts(rng, length)
            if rng.random() < 0.3:
                raw = text.encode()
                text = self._tear(rng, raw) if rng.random() < 0.5 else raw
            texts.append(text)
            left -= length
        rng.shuffle(texts)
        return texts

    def _hard_at_cuts(self, rng: Random, length: int) -> str:
        """Real text with hard strings before and after every 32 KiB."""
        parts: list[str] = []
        made = 0
        while made < length:
            hard = self._zone(rng)
            plain = max(
                0, SHARE_BYTES - rng.randint(0, len(hard.encode()) + 40) - made % SHARE_BYTES
            )
            parts += [self._filler(rng, min(plain, length - made)), hard]
            made += len(parts[-2].encode()) + len(hard.encode())
        return "".join(parts)

    def _zone(self, rng: Random) -> str:
        """Hard strings, one again and again, or a run without any place to cut."""
        kind = rng.choice(self._kinds)
        draw = rng.random()
        if draw < 0.4:
            return "".join(rng.choice(self._kinds)(rng) for _ in range(rng.randint(1, 12)))
        if draw < 0.8:
            unit = kind(rng)
            return unit * (rng.choice([50, 400, 2000]) // (len(unit) + 1) + 1)
        return rng.choice("a 1\n漢\u0301é") * rng.choice([100, 2000, 40_000])


# ---------------------------------------------------------------------- real text


@cache
def documents() -> tuple[str, ...]:
    """The small corpora that come with the tests."""
    names = ("prose.txt", "code.txt", "many.txt")
    return tuple((TESTS / "data" / name).read_text("utf-8") for name in names)


def own_samples() -> list[str]:
    """The small corpora and the hard strings."""
    return [*documents(), *(text for text in NASTY if text)]


def shared_samples(shared: Path) -> Iterator[str]:
    """The hostile texts in ../shared/data, and the start of every corpus."""
    for path in sorted((shared / "nasty").glob("*/*.txt")):
        yield path.read_bytes()[:20_000].decode(errors="ignore")
    for path in sorted((shared / "corpora").glob("**/*.txt.gz")):
        with gzip.open(path) as file:
            yield file.read(60_000).decode(errors="ignore")


@lru_cache(maxsize=8)
def random_words(seed: int, count: int, longest: int) -> str:
    """Words that occur nowhere else, to fill a cache with."""
    raw = Random(seed).randbytes(count * longest)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEF"
    text = raw.translate(bytes(ord(letters[byte % 32]) for byte in range(256))).decode()
    return " ".join(
        text[at : at + 2 + raw[at] % (longest - 1)] for at in range(0, len(text), longest)
    )
