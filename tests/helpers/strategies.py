"""What property tests draw: texts, corpora, recipes, vocabularies of every kind of ranking.

Two kinds of text find bugs: tiny alphabets, where pairs tie and overlap at every step, and
characters of every class next to each other, where patterns cut.
"""

from __future__ import annotations

import ast
import os
import random
from pathlib import Path
from typing import get_args

from hypothesis import settings
from hypothesis import strategies as st

from byteweld import PATTERNS, RECIPES, Recipe, Vocabulary, reference
from byteweld.recipes import TieBreak
from tests.helpers.vocabularies import (
    ENDOFTEXT,
    any_tokens,
    joined_tokens,
    ranked_by_id,
    ranked_by_merges,
    shuffled_ids,
)

# A quarter finds what a change breaks; `make test-long` draws twenty times the number.
SHARE_OF_EXAMPLES = float(os.environ.get("BYTEWELD_EXAMPLES", "0.25"))


def examples(count: int) -> settings:
    """Try `count` examples times BYTEWELD_EXAMPLES, but no fewer than ten of them."""
    return settings(max_examples=max(min(count, 10), round(count * SHARE_OF_EXAMPLES)))


def read_nasty(path: Path) -> list[str]:
    """Read a file of Python string literals such as `"ab" * 10`, one per line; `#` is a comment."""
    texts = []
    for line in path.read_text("utf-8").split("\n"):
        if line and not line.startswith("#"):
            literal, _, times = line.rpartition(" * ") if line[-1] != '"' else (line, "", "1")
            texts.append(ast.literal_eval(literal) * int(times))
    return texts


NASTY = read_nasty(Path(__file__).parent.parent / "data" / "nasty.txt")

# ---------------------------------------------------------------------- texts

# One or two of every class that a known pattern distinguishes, and easily confused ones.
CHARACTERS = (
    "abzAZ sdmtlvrSDMTLVRſK'’0123456789½٣Ⅷ \t\n\r\x0b\x0c\x1c\x85\xa0\u2028\u3000\u180e\u200b\u200d"
    '!/.,-_<|>\\"éÉßǅʰªº漢字か한ֿ\u0301\u0903\u20ddαΣςяЯᾈ👍🏽\x00\x01\x7f\ufeff\ufffd\ue000\U0010ffff'
)
FRAGMENTS = [
    *"'s|'LL|'ſ|don't| the|The|ing|\r\n|\n\n|  |   |    x| \n|123|1234|12345|ABC|aBc|AbC".split(
        "|"
    ),
    *"e\u0301|👨‍👩‍👧|日本|://|//\n|...\n|\t\t| \u3000|\xa0 |ÿ".split("|"),
    *[ENDOFTEXT, "<|a|>", "<|a|><|b|>", "<|", "|>", "<|endoftext"],
]
BROKEN = [
    *b"\x80|\xbf\xbf|\xc3|\xe2\x82|\xf0\x9f\x91|\xff|\xfe\xff|\xc0\xaf|\xed\xa0\x80".split(b"|"),
    *b"\xf5\x80\x80\x80|\xe0\x80\x80|\xf4\x90\x80\x80|\xf8\x88".split(b"|"),
]

tiny_texts = st.one_of(
    st.text(alphabet="ab", max_size=40),
    st.text(alphabet="ab ", max_size=60),
    st.text(alphabet="aé'\n ", max_size=40),
)
rich_texts = st.one_of(
    st.lists(st.one_of(st.sampled_from(CHARACTERS), st.sampled_from(FRAGMENTS)), max_size=40).map(
        "".join
    ),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=40),
)
texts = st.one_of(tiny_texts, rich_texts)
surrogate_texts = st.text(st.sampled_from("a \ud800\udc00\udfff\ud83d\ude00é\n"), max_size=12)

byte_texts = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=30).map(lambda b: bytes(x % 3 + 97 for x in b)),
    st.lists(
        st.one_of(
            st.sampled_from(CHARACTERS).map(str.encode),
            st.sampled_from(FRAGMENTS).map(str.encode),
            st.sampled_from(BROKEN),
        ),
        max_size=30,
    ).map(b"".join),
)
any_texts = st.one_of(texts, byte_texts)

ascii_texts = st.text(
    st.sampled_from("ab <|>\t\n\r") | st.characters(min_codepoint=32, max_codepoint=126),
    max_size=60,
)

# ---------------------------------------------------------------------- patterns

CUSTOM_PATTERNS = [
    r"[a-z]+",
    r"(?:a)",
    r"ab|a|b+",
    r"(?:ab)+?|x",
    r"(?=b)|a",
    r"a|(?<=a)",
    r".",
    r"(?s:.)",
    r"(?s:.{1,3})",
    r"\s+|\S+",
    r"\p{L}+|\p{N}|[^\p{L}\p{N}]+",
    r"\p{Han}+|\p{Greek}+| ?\p{Lu}\p{Ll}*",
    r"[^\r\n]+|[\r\n]+",
    r"(?i:[sk]+)|\p{M}",
    r"a(?=b)|b(?!a)|\s(?!\s)",
    r"(?<=a)b+|(?<!\s)\n",
    r"([ab])\1|'(?:s|t)",
    r"(?>a+)b|a",
    r"a++b|\s++",
    r" ?[^\s]+?(?=[ \n])|\s",
    r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))|\p{L}+",
    r"[\p{L}&&[^\p{Han}a]]+|[\w--\d]|[^\w&&[^ ]]+",
    r"(?i:ss|st|k)|[[a-c]é]+|[a-e~~[d-z]]",
]
# Known patterns take hundredths of a second to compile, so most draws are of others.
patterns = st.one_of(
    st.none(), st.sampled_from(CUSTOM_PATTERNS), st.sampled_from([*PATTERNS, *CUSTOM_PATTERNS])
)

# ---------------------------------------------------------------------- recipes and corpora

SPECIAL_TOKENS = [ENDOFTEXT, "<|a|>", "<|a|><|b|>", "ab", "a", " ", "é", "\n\n", "bb", "<|b|>"]
special_lists = st.lists(st.sampled_from(SPECIAL_TOKENS), unique=True, max_size=3)


@st.composite
def recipes(draw: st.DrawFn, name: str | None = None) -> Recipe:
    """A preset with any of its fields changed."""
    recipe = RECIPES[name or draw(st.sampled_from(sorted(RECIPES)))]
    changes: dict[str, object] = {}
    if draw(st.booleans()):
        changes["tie_break"] = draw(st.sampled_from(get_args(TieBreak)))
    if draw(st.booleans()):
        changes["min_frequency"] = draw(st.integers(0, 5))
    if draw(st.booleans()):
        changes["max_token_bytes"] = draw(st.sampled_from([None, 1, 2, 3, 4, 7]))
    if recipe.name not in ("bpetite", "rustbpe") and draw(st.booleans()):
        changes["special_tokens"] = draw(special_lists)
        changes["split_specials"] = draw(st.booleans())
    if draw(st.integers(0, 3)) == 0:
        changes["special_ids"] = draw(st.sampled_from(["first", "after_alphabet", "last"]))
    if recipe.alphabet != "ascii" and draw(st.booleans()):
        changes["pattern"] = draw(patterns)
    if recipe.alphabet == "huggingface" and draw(st.booleans()):
        changes["initial_alphabet"] = draw(st.lists(st.sampled_from("abÄĠŃ"), max_size=3))
    return recipe.replace(**changes)


def corpora(recipe: Recipe) -> st.SearchStrategy[list[str | bytes]]:
    """Lists of documents that a recipe accepts, some of them repeated."""
    is_ascii = recipe.alphabet == "ascii"
    documents: st.SearchStrategy[str | bytes] = (
        ascii_texts if is_ascii else st.one_of(tiny_texts, any_texts)
    )
    spelled = [text for text in recipe.all_specials if text.isascii() or not is_ascii]
    if spelled:  # unless the recipe splits there, training has to leave them unmerged
        pieces = st.sampled_from([*spelled, "a", "b", " "])
        documents = st.one_of(documents, st.lists(pieces, max_size=12).map("".join))
    return st.lists(
        st.tuples(documents, st.integers(1, 3)).map(lambda pair: [pair[0]] * pair[1]), max_size=6
    ).map(lambda lists: [document for documents in lists for document in documents])


def as_bytes(document: str | bytes) -> bytes:
    return document.encode() if isinstance(document, str) else document


# ---------------------------------------------------------------------- vocabularies

vocabulary_patterns = st.one_of(
    st.sampled_from([None, r"[ab]+", r"\s+|\S+", r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"]),
    st.sampled_from([*PATTERNS, None, r" ?\p{L}+|\s(?!\S)"]),
)


def _resolved(name: str | None) -> str | None:
    return PATTERNS.get(name, name) if name is not None else None


@st.composite
def merge_vocabularies(draw: st.DrawFn, ignore_merges: bool | None = None) -> Vocabulary:
    """Tokens over a tiny alphabet, merges in random order, several of them for one token."""
    choose = random.Random(draw(st.integers(0, 2**32)))
    letters = [b"a", b"b", b" ", "é".encode()[:1], "é".encode()[1:]][: draw(st.integers(2, 5))]
    return ranked_by_merges(
        choose,
        shuffled_ids(choose, joined_tokens(choose, letters, draw(st.integers(0, 25)), 12)),
        pattern=_resolved(draw(vocabulary_patterns)),
        ignore_merges=draw(st.booleans()) if ignore_merges is None else ignore_merges,
    )


@st.composite
def rank_tables(draw: st.DrawFn) -> dict[bytes, int]:
    """{bytes: rank} as tiktoken takes it; not every token is the sum of two others."""
    choose = random.Random(draw(st.integers(0, 2**32)))
    letters = draw(st.sampled_from([b"ab", b"ab ", "aé".encode(), "👍 ".encode()]))
    return shuffled_ids(choose, any_tokens(choose, letters, draw(st.integers(0, 30)), 6))


rank_vocabularies = st.builds(ranked_by_id, rank_tables(), vocabulary_patterns.map(_resolved))


@st.composite
def ascii_vocabularies(draw: st.DrawFn) -> Vocabulary:
    """An ascii alphabet with an unk token, in ck's layout."""
    words = draw(st.lists(ascii_texts.filter(bool), max_size=4))
    size = RECIPES["ck-ascii"].minimum_size + draw(st.integers(0, 12))
    documents = [word.encode() for word in words * 2]
    return reference.train(documents, size, RECIPES["ck-ascii"]).vocab


@st.composite
def ambiguous_vocabularies(draw: st.DrawFn) -> Vocabulary:
    """Special tokens that share their ids with learned tokens, sometimes with a byte."""
    vocab = draw(merge_vocabularies())
    texts = {i: _text(token) for i, token in vocab.ordinary()}
    made = sorted({new for _, _, new in vocab.merge_ids if texts[new]})
    shared = draw(st.lists(st.sampled_from(made), max_size=4, unique=True)) if made else []
    if draw(st.integers(0, 4)) == 0:
        shared.append(draw(st.sampled_from([i for i, text in texts.items() if text in ("a", "b")])))
    specials = {**vocab.special_tokens, **{texts[i]: i for i in shared}}
    traits = {"pattern": vocab.pattern, "ignore_merges": vocab.ignore_merges}
    return Vocabulary(vocab.tokens, vocab.merge_ids, special_tokens=specials, **traits)


def _text(token: bytes) -> str:
    return token.decode(errors="ignore") if token.decode(errors="ignore").encode() == token else ""


vocabularies = st.one_of(
    merge_vocabularies(ignore_merges=False),
    merge_vocabularies(ignore_merges=True),
    rank_vocabularies,
    ambiguous_vocabularies(),
)
