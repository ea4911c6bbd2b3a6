"""Verifies a conversion: both tokenizers have the same vocabulary and give the same ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import byteweld
from byteweld._text import batches
from byteweld.cli import _input
from byteweld.proof import first_difference, ids_of
from byteweld.vocab import ASCII_BYTES

# Strings on which tokenizers tend to differ. Each is encoded alone, and all of them joined.
HARD_STRINGS: tuple[bytes, ...] = (
    b"",
    b"\x00",
    b" ",
    b"  leading, trailing and   inner spaces  ",
    b"line\nline\r\nline\rline\n\n\n  indented\n\ttabbed\n ",
    "no-break\u00a0space, thin\u2009space, wide\u3000space, \u2028 \u2029 \u0085 \v \f".encode(),
    b"it's, IT'S, we'll, WE'LL, they've, I'm, I'd, don't, 'tis, ''s",
    b"1 12 123 1234 12345 1234567890 3.14159 1,000,000 0x7f 1e-9",
    "½ ² ٣٤٥ 一二三 Ⅷ ๑๒๓".encode(),
    b"def f(x):\n    return {'a': [x**2 for x in range(10)]}  # why?!\n",
    b"CamelCaseWords snake_case_words SCREAMING kebab-case ALLCAPSthenlower",
    b"https://example.org/a/b?c=d&e=%20#f user@example.org \\path\\to ... --- ==>",
    "naïve café Straße ŒUVRE İstanbul ǅ ŉ ﬁ".encode(),
    "e\u0301 n\u0303 \u0301alone a\u0300\u0301\u0302\u0303".encode(),
    "Привет, мир! Γειά σου Κόσμε. שלום עולם مرحبا بالعالم नमस्ते दुनिया สวัสดีชาวโลก".encode(),
    "你好，世界。こんにちは世界 안녕하세요 세계".encode(),
    "🙂👍🏽👩‍👩‍👧‍👦🇩🇪 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿".encode(),
    "\ufeffbyte order mark \u200b\u200d\u202e\ufffd".encode(),
    b"\x80\xbf\xc3\x28\xe2\x82\xf0\x9f\x98 not UTF-8 \xff\xfe\xed\xa0\x80",
    bytes(range(256)),
    b"a" * 1000,
    b" " * 1000,
    b"\n" * 100,
    b"ab" * 500,
    b"<|endoftext|><|unk|><|bos|><|eos|><|pad|>",
)


class Probe(NamedTuple):
    """What was compared."""

    tokens: int
    texts: int
    bytes: int


def prove(
    first: byteweld.Tokenizer, second: byteweld.Tokenizer, corpus: Iterable[bytes]
) -> Probe | str:
    """Compare the vocabularies of two tokenizers, then the ids of probes and of a corpus.

    Returns what was compared or, in words, the first difference.
    """
    difference = _compare_vocabularies(first.vocab, second.vocab)
    if difference is not None:
        return difference
    texts = size = 0
    for batch in batches(_texts(first.vocab, corpus), _input.BATCH_BYTES):
        difference = _compare_ids(first, second, batch)
        if difference is not None:
            return difference
        texts += len(batch)
        size += sum(map(len, batch))
    return Probe(len(first), texts, size)


def _compare_vocabularies(first: byteweld.Vocabulary, second: byteweld.Vocabulary) -> str | None:
    before, after = dict(first.tokens), dict(second.tokens)
    if before != after:
        odd = min(i for i in before.keys() | after.keys() if before.get(i) != after.get(i))
        return f"token {odd} was {before.get(odd)!r} and is {after.get(odd)!r}"
    # Ranks may have become an equivalent merge list; then only the ids can be compared.
    if first.ranking == second.ranking and first.merge_ids != second.merge_ids:
        if len(first.merge_ids) == len(second.merge_ids):
            return "the merges differ in their order"
        return f"the merges differ: {len(first.merge_ids)} became {len(second.merge_ids)}"
    for name in ("special_tokens", "pattern", "roles", "alphabet"):
        one, other = (getattr(vocab, name) for vocab in (first, second))
        if isinstance(one, Mapping):
            one, other = dict(one), dict(other)
        if one != other:
            return f"{name.replace('_', ' ')}: {one!r} became {other!r}"
    return None


def _texts(vocab: byteweld.Vocabulary, corpus: Iterable[bytes]) -> Iterator[bytes]:
    """Every token, pairs of tokens, special tokens in text, the hard strings, and the corpus."""
    tokens = list(vocab.tokens.values())
    probes = [
        *tokens,
        *(left + right for left, right in zip(tokens, reversed(tokens), strict=True)),
        *(b"a %b b" % text.encode() for text in vocab.special_tokens),
        *HARD_STRINGS,
        b"".join(HARD_STRINGS),
    ]
    if vocab.alphabet == "ascii" and "unk" not in vocab.roles:
        # Both reject any other byte.
        probes = [text for text in probes if not text.translate(None, ASCII_BYTES)]
    yield from probes
    yield from corpus


def _compare_ids(
    first: byteweld.Tokenizer, second: byteweld.Tokenizer, batch: list[bytes]
) -> str | None:
    for allowed in (frozenset[str](), "all"):
        before, after = (
            tok.encode_ragged(batch, allowed_special=allowed, disallowed_special=())
            for tok in (first, second)
        )
        found = first_difference(before, after)
        if found is not None:
            text = batch[found.text]
            shown = f"{text[:40]!r}{'...' if len(text) > 40 else ''}"
            some = slice(found.token, found.token + 5)
            was, became = (ids_of(ids, found.text)[some].tolist() for ids in (before, after))
            return f"the ids of {shown} differ from token {found.token}: {was} became {became}"
    return None
