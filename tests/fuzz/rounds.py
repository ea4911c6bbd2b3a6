"""The loop: draw texts, get the expected ids, compare every path and state, shrink a difference.

Seed, subject and number identify a round. States are tokenizers of one vocabulary: a new one, one
that has seen all texts before, one whose caches are full, and one for each other engine that can
run the pattern.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, NamedTuple

from byteweld import Tokenizer
from byteweld.evaluation import pattern_engine
from byteweld.proof import is_failure
from byteweld.tiktoken import Encoding
from tests.harness.run import shrink

from .oracles import Allowed, Ids, Oracle, answer
from .paths import MANY, ONE, SINGLE, THREADS, Asked, AskedMany, Both, options
from .subjects import Subject
from .texts import LARGE_BYTES, Text, Texts, random_words

# By the longest length: more pre-tokens than the cache has slots (2^18), with more bytes and ids
# than fit its arena (4 MiB), see crates/byteweld-core/src/encode/cache/.
FLOOD_WORDS = {15: 300_000, 31: 60_000}
DRIP_WORDS = {15: 300, 31: 100}
SHRINK_TRIES = 3000
# Slow paths and states are not part of every round.
LARGE_PATHS = 3
FILES_EVERY = 8
HUGE_PATHS = 4
HUGE_EVERY = 8
HUGE_ORACLES_EVERY = 32  # rounds; in the others, the ids on one thread are right
COLD_EVERY = 4  # rounds, where a vocabulary takes as long to load as a round takes

Drawn = Any  # a text to shrink, or a list of them


class Case(NamedTuple):
    """One combination of round, allowed special tokens, state and path."""

    round: int
    allowed: Allowed = frozenset()  # special tokens
    state: str = ""
    path: str = ""


@dataclass
class Mismatch:
    """A path that gave a wrong answer, on a text shrunk as far as possible."""

    subject: str
    case: Case
    text: Text | list[Text]
    found: object
    expected: object
    repeats: bool  # False if asking again gave the right answer


class Rounds:
    """The rounds of one subject."""

    def __init__(self, subject: Subject, samples: Sequence[str], seed: int) -> None:
        # Comparisons of one text, in one state, by one path, are "executions".
        self.tally: Counter[str] = Counter()
        self._subject = subject
        self._seed = seed
        vocab = subject.vocab
        self._specials = list(vocab.special_tokens)
        self._warm = {"warm": Tokenizer(vocab)}
        self._warm |= {name: Tokenizer(other) for name, other in subject.others.items()}
        self._with_tiktokens_names = Encoding.from_tokenizer(self._warm["warm"])
        # Without a pattern, a text is one pre-token, on which the reference takes quadratic time.
        self._is_whole = pattern_engine(self._warm["warm"]) == "whole"
        self._texts = Texts(
            samples,
            tokens=[token for _, token in vocab.ordinary()],
            specials=self._specials,
            max_bytes=250 if self._is_whole and subject.is_plain else 3 * LARGE_BYTES,
        )
        self._full = Tokenizer(vocab)
        self._flood(FLOOD_WORDS, seed)

    def run(self) -> Iterator[Mismatch | None]:
        """Run forever; yields None after each round without a mismatch."""
        while True:
            number = self.tally["rounds"]
            rng = Random(f"{self._seed} {self._subject.name} {number}")
            yield self._round(number, rng)
            self.tally["rounds"] += 1

    # ------------------------------------------------------------------ a round

    def _round(self, number: int, rng: Random) -> Mismatch | None:
        texts = self._texts.draw(rng, number)
        self.tally["texts"] += len(texts)
        self.tally["characters"] += sum(map(len, texts))
        self._flood(DRIP_WORDS, number)
        for allowed in self._choices(rng):
            case = Case(number, allowed)
            answered = []
            for text in texts:
                ids, mismatch = self._expected(text, case)
                if mismatch is not None:
                    return mismatch
                if ids is not None:
                    answered.append((text, ids))
            self.tally["unchecked"] += len(texts) - len(answered)
            for state, tok in self._states(number):
                mismatch = self._check(case._replace(state=state), tok, answered, rng)
                if mismatch is not None:
                    return mismatch
        if number % HUGE_EVERY == 1 and not self._is_whole:
            mismatch = self._check_threads(Case(number), rng)
            if mismatch is not None:
                return mismatch
        return self._check_tiktokens_bytes(texts, Case(number))

    def _choices(self, rng: Random) -> list[Allowed]:
        """No special tokens, all, and in some rounds a few of them."""
        choices = [frozenset[str]()]
        if self._specials:
            choices.append(frozenset(self._specials))
        has_some = len(self._specials) > 1 and self._subject.is_plain
        if has_some and rng.random() < 0.3:
            choices.append(frozenset(rng.sample(self._specials, len(self._specials) // 2)))
        return choices

    def _states(self, number: int) -> Iterator[tuple[str, Tokenizer]]:
        if self._subject.is_small or number % COLD_EVERY == 0:
            yield "cold", Tokenizer(self._subject.vocab)
        yield from self._warm.items()
        yield "full", self._full

    def _flood(self, words: dict[int, int], seed: int) -> None:
        """Fill the caches of every thread that a path may use."""
        for longest, count in words.items():
            text = random_words(seed, count, longest)
            if self._is_whole:
                text = text[:2000]  # one pre-token that no cache holds
            threads = max(THREADS)
            self._full.encode_ragged([text] * threads, num_threads=threads, disallowed_special=())

    # ------------------------------------------------------------------ expected ids

    def _expected(self, text: Text, case: Case) -> tuple[Ids | None, Mismatch | None]:
        """The right ids, or None; and a mismatch if two oracles disagree."""
        answers = {
            oracle: ids
            for oracle in self._subject.oracles
            if (ids := oracle.ids(text, case.allowed)) is not None
        }
        if not answers:
            return None, None
        (first, ids), *others = answers.items()
        for oracle, other in others:
            if other != ids:
                between = case._replace(state=first.name, path=f"against {oracle.name}")
                ask = partial(_ask_both, first, oracle, case.allowed)
                return None, self._shrunk(ask, text, between)
        return ids, None

    def _right(self, text: Text, allowed: Allowed) -> Ids | None:
        found = (oracle.ids(text, allowed) for oracle in self._subject.oracles)
        return next((ids for ids in found if ids is not None), None)

    # ------------------------------------------------------------------ checking

    def _check(
        self, case: Case, tok: Tokenizer, answered: list[tuple[Text, Ids]], rng: Random
    ) -> Mismatch | None:
        # In another order every time, so that each path is sometimes the first to see a text.
        paths = rng.sample(list(ONE), len(ONE))
        for text, ids in answered:
            for name in paths if len(text) < LARGE_BYTES else paths[:LARGE_PATHS]:
                asked = Asked(self._subject, tok, text, ids, case.allowed, rng.random())
                if self._is_wrong(partial(ONE[name], asked)):
                    case = case._replace(path=name)
                    return self._shrunk(partial(self._ask_one, case, asked), text, case)
        texts, lists = [text for text, _ in answered], [ids for _, ids in answered]
        for name, path in MANY.items():
            if name == "encode_files" and case.round % FILES_EVERY:
                continue
            many = AskedMany(tok, texts, lists, case.allowed)
            if self._is_wrong(partial(path, many), len(texts)):
                case = case._replace(path=name)
                return self._shrunk(partial(self._ask_many, case, tok), texts, case)
        return None

    def _check_threads(self, case: Case, rng: Random) -> Mismatch | None:
        """Long texts on several threads have the ids that they have on one."""
        texts = self._texts.huge(rng)
        self.tally["texts"] += len(texts)
        self.tally["characters"] += sum(map(len, texts))
        case = case._replace(allowed=rng.choice(self._choices(rng)))
        state, tok = rng.choice(list(self._states(case.round)))
        if case.round % HUGE_ORACLES_EVERY == 1:
            for text in texts:
                ids, mismatch = self._expected(text, case)
                if mismatch is not None:
                    return mismatch
                asked = Asked(self._subject, tok, text, ids or [], case.allowed, 0.0)
                if ids is not None and self._is_wrong(partial(ONE["encode"], asked)):
                    case = case._replace(path="encode", state=state)
                    return self._shrunk(partial(self._ask_one, case, asked), text, case)
        names = [name for name in MANY if name not in ("encode_files", *SINGLE)]
        for name in rng.sample(names, HUGE_PATHS):
            case = case._replace(path=name, state=state)
            if self._is_wrong(partial(self._ask_threads, case, tok, texts), len(texts)):
                return self._shrunk(partial(self._ask_threads, case, tok), texts, case)
        return None

    def _ask_threads(self, case: Case, tok: Tokenizer, texts: list[Text]) -> Both | None:
        lists = [tok.encode(text, **options(case.allowed)) for text in texts]
        return MANY[case.path](AskedMany(tok, texts, lists, case.allowed))

    def _check_tiktokens_bytes(self, texts: list[Text], case: Case) -> Mismatch | None:
        """tiktoken has its own rule for invalid UTF-8, and our module of its names follows it."""
        real = self._subject.tiktoken
        if real is None:
            return None
        ask = partial(_ask_bytes, self._with_tiktokens_names, real)
        for raw in texts:
            if isinstance(raw, bytes) and self._is_wrong(partial(ask, raw)):
                case = case._replace(state="warm", path="tiktoken.Encoding._encode_bytes")
                return self._shrunk(ask, raw, case)
        return None

    def _is_wrong(self, call: Callable[[], Both | None], texts: int = 1) -> bool:
        both = _outcome(call)
        self.tally["executions"] += texts if both is not None else 0
        return both is not None and both[0] != both[1]

    # ------------------------------------------------------------------ shrinking

    def _ask_one(self, case: Case, asked: Asked, text: Text) -> Both | None:
        """Ask again with a smaller text; a cold tokenizer is cold again."""
        ids = self._right(text, case.allowed)
        tok = Tokenizer(asked.tok.vocab) if case.state == "cold" else asked.tok
        return None if ids is None else ONE[case.path](asked._replace(tok=tok, text=text, ids=ids))

    def _ask_many(self, case: Case, tok: Tokenizer, texts: list[Text]) -> Both | None:
        lists = [ids for text in texts if (ids := self._right(text, case.allowed)) is not None]
        tok = Tokenizer(tok.vocab) if case.state == "cold" else tok
        if len(lists) < len(texts):
            return None
        return MANY[case.path](AskedMany(tok, texts, lists, case.allowed))

    def _shrunk(self, ask: Callable[[Drawn], Both | None], text: Drawn, case: Case) -> Mismatch:
        repeats = _differs(ask, text)
        if repeats:
            text = _shrink(text, partial(_differs, ask))
        if repeats and isinstance(text, list):
            for at in range(len(text)):
                text[at] = _shrink(text[at], partial(_differs_with, ask, text, at))
        found, expected = _outcome(partial(ask, text)) or (None, None)
        return Mismatch(self._subject.name, case, text, found, expected, repeats)


def _ask_both(first: Oracle, second: Oracle, allowed: Allowed, text: Text) -> Both | None:
    both = first.ids(text, allowed), second.ids(text, allowed)
    return None if None in both else both


def _ask_bytes(ours: Encoding, real: Any, raw: bytes) -> Both | None:
    right = answer(lambda: real._encode_bytes(raw))
    return None if right is None else (ours._encode_bytes(raw), right)


def _outcome(call: Callable[[], Both | None]) -> Both | None:
    """What a path gives; an error or a panic counts as a wrong answer."""
    try:
        return call()
    except BaseException as error:
        if not is_failure(error):
            raise
        return repr(error), "no error"


def _differs(ask: Callable[[Drawn], Both | None], text: Drawn) -> bool:
    both = _outcome(partial(ask, text))
    return both is not None and both[0] != both[1]


def _differs_with(
    ask: Callable[[list[Text]], Both | None], texts: list[Text], at: int, text: Text
) -> bool:
    return _differs(ask, [*texts[:at], text, *texts[at + 1 :]])


def _shrink(whole: Drawn, fails: Callable[[Drawn], bool]) -> Drawn:
    """Remove parts while it still fails; then replace characters by plain ones."""
    whole = shrink(whole, fails, SHRINK_TRIES)
    return _plainer(whole, fails) if isinstance(whole, str) else whole


def _plainer(text: str, fails: Callable[[str], bool]) -> str:
    for at, character in enumerate(text[:200]):
        for plain in "a 1":
            simpler = text[:at] + plain + text[at + 1 :]
            if character not in "a 1" and fails(simpler):
                text = simpler
                break
    return text
