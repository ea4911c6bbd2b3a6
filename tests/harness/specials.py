"""`make fuzz-specials`: no text forges a special token, whatever the vocabulary and the spans.

Vocabularies of every kind (trained, from ranks, from merges, with flags and normalizers, real
ones), many of them with special tokens that share an id with a learned token, encode spans that
are cut inside special tokens, hold halves and nested ones, and are trusted at random. Where special
tokens may be is computed here by regular expressions, not by the engine.
"""

from __future__ import annotations

import re
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import byteweld
from byteweld import PATTERNS, RECIPES, Counts, SpecialTokenError, Tokenizer, Vocabulary
from byteweld.errors import ByteweldError
from byteweld.vocab import AddedToken, Split
from tests.harness.run import Run, parser
from tests.helpers.vocabularies import (
    BYTES,
    joined_tokens,
    published,
    ranked_by_merges,
    shuffled_ids,
    unpack,
)

Span = tuple[str | bytes, bool]

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"
TEXTS_PER_VOCABULARY = 250
WORDS = ["user", "system", "ab", "aba", "ba", " user", "é漢", "<|end|>", "abab"]
LITERALS = "<s> <s><t> <t> <|end|> <|end|><|end|> aa aaa |><| Fi é 😀".split()
LETTERS = [*"abeus \n<|>A1", "er", "é", "\u0301", "ﬁ", "漢"]


@dataclass
class Subject:
    """A tokenizer, and what is known of it without asking the engine."""

    tok: Tokenizer
    ids: dict[bytes, int] = field(init=False)  # of the special tokens
    special_ids: frozenset[int] = field(init=False)
    finder: re.Pattern[bytes] | None = field(init=False)
    is_plain: bool = field(init=False)  # special tokens are found in the text as it is
    is_lossless: bool = field(init=False)
    unk: int | None = field(init=False)

    def __post_init__(self) -> None:
        vocab = self.tok.vocab
        self.ids = {text.encode(): i for text, i in vocab.special_tokens.items()}
        self.special_ids = frozenset(self.ids.values())
        # The longest first: of several alternatives, the first that matches wins.
        texts = sorted(self.ids, key=len, reverse=True)
        self.finder = re.compile(b"|".join(map(re.escape, texts))) if texts else None
        self.unk = vocab.roles.get("unk") if vocab.alphabet != "bytes" else None
        self.is_plain = all(t.is_plain for t in vocab.added_tokens) and not vocab.normalizer
        rewrites = vocab.normalizer or any(s for s in vocab.steps)
        own = len({t.id for t in vocab.added_tokens}) == len(vocab.added_tokens)
        self.is_lossless = self.is_plain and own and not rewrites and vocab.alphabet == "bytes"

    def recognized(self, trusted: Sequence[bytes]) -> list[int]:
        """The special ids that plain vocabularies find in trusted spans, in order."""
        if self.finder is None:
            return []
        return [self.ids[found[0]] for text in trusted for found in self.finder.finditer(text)]

    def possible(self, trusted: Sequence[bytes]) -> Counter[int]:
        """How often each special id may come from trusted spans, at most."""
        found: Counter[int] = Counter()
        forms = [text.decode(errors="replace") for text in trusted]
        forms += [_normalized(form, self.tok.vocab) for form in forms]
        for added in self.tok.vocab.added_tokens:
            if added.special:
                for text in {added.text, _normalized(added.text, self.tok.vocab)}:
                    found[added.id] += sum(_occurrences(text, form) for form in forms)
        return found


def _normalized(text: str, vocab: Vocabulary) -> str:
    for step in vocab.normalizer:
        if isinstance(step, str):
            text = (
                text.lower() if step == "lowercase" else unicodedata.normalize(step.upper(), text)
            )
        else:
            text = re.sub(step.pattern, lambda _, step=step: step.content, text)
    return text


def _occurrences(text: str, form: str) -> int:
    """How often a text occurs, overlapping itself or not."""
    return sum(form.startswith(text, at) for at in range(len(form))) if text else 0


# ---------------------------------------------------------------------- vocabularies


def trained(name: str, rng: Random) -> Tokenizer:
    """Trained on a corpus that spells its special tokens."""
    recipe = RECIPES[name]
    if name not in ("bpetite", "rustbpe"):
        recipe = recipe.replace(
            special_tokens=rng.sample(WORDS, rng.randint(1, 5)), split_specials=rng.random() < 0.3
        )
    letters = [letter for letter in LETTERS if letter.isascii() or recipe.alphabet != "ascii"]
    words = [word for word in [*WORDS, *recipe.all_specials] if word.isascii() or len(letters) > 14]
    documents = ["".join(rng.choices([*words, *letters], k=rng.randint(5, 60))) for _ in range(4)]
    size = recipe.minimum_size + rng.randint(0, 40)
    source = Counts({d.encode(): 3 for d in documents}) if rng.random() < 0.3 else iter(documents)
    return byteweld.train(source, vocab_size=size, recipe=recipe.replace(min_frequency=1))


def _random_ids(rng: Random) -> dict[bytes, int]:
    """The bytes, and joined tokens of a few letters, half of the time with ids in random order."""
    letters = [b"a", b"b", b" ", b"u", b"s", b"e", b"r", b"\xc3", b"\xa9"]
    tokens = joined_tokens(rng, letters, rng.randint(0, 60), 16)
    if rng.random() < 0.5:
        return shuffled_ids(rng, tokens)
    return {token: i for i, token in enumerate(dict.fromkeys([*BYTES.values(), *tokens]))}


def _pattern(rng: Random) -> str | None:
    return rng.choice([*PATTERNS.values(), r"\s+|\S+", None])


def from_ranks(_: str, rng: Random) -> Tokenizer:
    ranks = _random_ids(rng)
    chosen = rng.sample([*LITERALS, *WORDS], 6)
    specials = {text: ranks.get(text.encode(), 900 + n) for n, text in enumerate(chosen)}
    return Tokenizer.from_ranks(ranks, pattern=_pattern(rng), special_tokens=specials)


def from_merges(_: str, rng: Random) -> Tokenizer:
    vocab = ranked_by_merges(rng, _random_ids(rng))
    tokens = dict(vocab.ordinary())
    merges = [(tokens[left], tokens[right]) for left, right, _ in vocab.merge_ids]
    learned = [text for t in tokens.values() if len(t) > 1 and (text := _text(t))]
    specials = {*rng.sample(LITERALS, 4), *rng.sample(learned, min(4, len(learned)))}
    if rng.random() < 0.1:
        specials.add("a")
    return Tokenizer.from_merges(
        tokens, merges, special_tokens=sorted(specials), pattern=_pattern(rng)
    )


def _text(token: bytes) -> str | None:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None


FLAGS = ("single_word", "lstrip", "rstrip", "normalized")


def with_flags(_: str, rng: Random) -> Tokenizer:
    """Added tokens of all kinds, a normalizer, steps, through a `tokenizer.json` if it can be."""
    vocab = rng.choice([from_merges, from_merges, from_ranks])("", rng).vocab
    taken = list(vocab.special_tokens.values())
    made = [i for i, token in vocab.ordinary() if len(token) > 1]
    added: list[AddedToken] = list(vocab.added_tokens)
    texts = {token.text for token in added}
    tokens = dict(vocab.tokens)
    for n, text in enumerate(rng.sample([*LITERALS, *WORDS, "forged", "x y"], 8)):
        if text in texts:
            continue
        shared = rng.choice([*made, *taken]) if rng.random() < 0.4 and made else None
        flags = {flag: rng.random() < 0.3 for flag in FLAGS}
        new = AddedToken(text, 2000 + n, special=rng.random() < 0.6, **flags)
        if shared is not None and not new._replace(id=shared).is_plain:
            new = new._replace(id=shared)
        tokens.setdefault(new.id, text.encode())
        added.append(new)
    vocab = Vocabulary(
        tokens,
        vocab.merge_ids,
        added_tokens=added,
        normalizer=rng.sample(["nfc", "nfkc", "nfd", "lowercase"], rng.randint(0, 2)),
        **_splitting(rng),
        ranking=vocab.ranking,
        ignore_merges=vocab.ranking == "merges" and rng.random() < 0.3,
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "tokenizer.json"
            byteweld.formats.save(vocab, file, format="huggingface")
            return byteweld.load(file)
    except ByteweldError:
        return Tokenizer(vocab)


def _splitting(rng: Random) -> dict[str, object]:
    chains = [(), ("prefix-space", Split(r"\s+|\S+")), (Split(r"\d", "removed"),)]
    steps = rng.choice(chains)
    return {"steps": steps} if steps else {"pattern": _pattern(rng)}


Maker = Callable[[str, Random], Tokenizer]
KINDS: dict[str, Maker] = {
    **{f"trained {name}": (lambda _, rng, name=name: trained(name, rng)) for name in RECIPES},
    "ranks": from_ranks,
    "merges": from_merges,
    "flags": with_flags,
}


def real(folder: Path) -> Iterator[tuple[str, Tokenizer]]:
    """The vocabularies of a folder of test data, each loaded when its turn comes."""
    for entry in published(folder, "hf", "tiktoken"):
        options = {}
        if entry["kind"] == "tiktoken":
            options = {"pattern": entry["pat_str"], "special_tokens": entry["special_tokens"]}
        with tempfile.TemporaryDirectory() as unpacked:
            try:
                tok = byteweld.load(unpack(folder, entry, Path(unpacked)), **options)
            except ByteweldError:
                continue  # refused, with the reason; other tests say which
        yield entry["name"], tok


# ---------------------------------------------------------------------- spans


@dataclass
class Texts:
    """Draws spans that are hostile to a vocabulary."""

    pieces: list[str]

    @classmethod
    def of(cls, vocab: Vocabulary, rng: Random) -> Texts:
        added = [token.text for token in vocab.added_tokens]
        specials = rng.sample(added, min(len(added), 40))
        some = rng.sample(sorted(vocab.tokens), min(len(vocab.tokens), 60))
        shared = rng.sample(sorted(vocab.ambiguous_ids), min(len(vocab.ambiguous_ids), 30))
        learned = [text for i in [*some, *shared] if (text := _text(vocab.tokens[i]))]
        halves = [text[: rng.randint(0, len(text))] for text in specials]
        halves += [text[rng.randint(0, len(text)) :] for text in specials]
        # Special tokens are most of what is drawn.
        return cls([*specials * 3, *halves, *learned, *LETTERS])

    def draw(self, rng: Random) -> list[Span]:
        if rng.random() < 0.7:
            text = "".join(rng.choices(self.pieces, k=rng.randint(1, 12)))
            return _cut(text, rng)
        return _cut("".join(rng.choices(self.pieces, k=rng.randint(1, 12))).encode(), rng)


def _cut(text: str | bytes, rng: Random) -> list[Span]:
    """Cut anywhere, also inside a character if it is bytes; trust at random."""
    cuts = sorted(rng.randint(0, len(text)) for _ in range(rng.randint(0, 5)))
    ends = [*cuts, len(text)]
    return [(text[a:b], rng.random() < 0.5) for a, b in zip([0, *cuts], ends, strict=True)]


def _raw(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


# ---------------------------------------------------------------------- invariants


def violation(subject: Subject, spans: list[Span], rng: Random) -> str | None:
    """What is wrong with the ids of these spans; None if nothing is."""
    tok, vocab = subject.tok, subject.tok.vocab
    whole = b"".join(_raw(text) for text, _ in spans)
    untrusted: list[Span] = [(text, False) for text, _ in spans]
    try:
        ids = tok.encode_spans(spans)
        none = tok.encode_spans(untrusted)
    except SpecialTokenError:
        return None if vocab.ambiguous_ids else "refused, although no id is shared"
    trusted = [_raw(text) for text, is_trusted in spans if is_trusted]
    special_ids = subject.special_ids - {subject.unk}
    found = [i for i in ids if i in special_ids]
    if subject.is_plain:
        expected = [i for i in subject.recognized(trusted) if i != subject.unk]
        if found != expected:
            return f"special ids {found}, expected {expected}"
    elif Counter(found) - subject.possible(trusted):
        return f"special ids {found} from {trusted}"
    if special_ids.intersection(none):
        return f"special ids in {none}, although nothing is trusted"
    if subject.is_lossless and not tok.decode_bytes(ids) == tok.decode_bytes(none) == whole:
        return f"{ids} decode to {tok.decode_bytes(ids)!r}"
    if not vocab.ambiguous_ids:
        if none != tok.encode(whole, disallowed_special=()):
            return "none trusted is not disallowed_special=()"
        if tok.encode_spans([(whole, True)]) != tok.encode(whole, allowed_special="all"):
            return 'all trusted is not allowed_special="all"'
    if tok.encode_spans([*_split_untrusted(spans, rng)]) != ids:
        return "splitting an untrusted span changes the ids"
    return None


def _split_untrusted(spans: list[Span], rng: Random) -> Iterator[Span]:
    for text, is_trusted in spans:
        if is_trusted:
            yield text, True
            continue
        at = rng.randint(0, len(text))
        yield text[:at], False
        yield text[at:], False


# ---------------------------------------------------------------------- the program


def attack(run: Run, kind: str, tok: Tokenizer, rng: Random) -> None:
    """Encode many texts with one vocabulary."""
    subject = Subject(tok)
    texts = Texts.of(tok.vocab, rng)
    name = f"{kind}, shared ids" if tok.vocab.ambiguous_ids else kind
    for _ in range(TEXTS_PER_VOCABULARY):
        spans = texts.draw(rng)
        wrong = violation(subject, spans, rng)
        if wrong is not None:
            run.find(kind, f"{wrong}: {spans!r} with {tok!r}, {dict(tok.vocab.special_tokens)!r}")
            return
    run.count(name, TEXTS_PER_VOCABULARY)


def main(arguments: list[str] | None = None) -> int:
    given = parser("fuzz-specials", __doc__)
    given.add_argument("--turns", type=int, help="turns of every kind, instead of --seconds")
    given.add_argument("--data", type=Path, default=SHARED_DATA, help="a folder of vocabularies")
    options = given.parse_args(arguments)
    run = Run.of("fuzz-specials", options)
    for name, tok in real(options.data):
        if run.elapsed > run.seconds / 2:
            break
        attack(run, "real", tok, run.random("real", name))
    turn = 0
    while not run.is_over if options.turns is None else turn < options.turns:
        for kind, make in KINDS.items():
            rng = run.random(kind, turn)
            try:
                tok = make("", rng)
            except ByteweldError:
                run.count("refused vocabularies")
                continue
            attack(run, kind, tok, rng)
        turn += 1
    return run.finish()


if __name__ == "__main__":
    sys.exit(main())
