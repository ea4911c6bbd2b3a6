"""Trust in spans: no special id ever comes from untrusted text, wherever spans are cut."""

from __future__ import annotations

import unicodedata
from itertools import accumulate, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from byteweld import PATTERNS, SpecialTokenError, Tokenizer, Vocabulary
from byteweld.vocab import AddedToken, Split
from tests.helpers.strategies import (
    BROKEN,
    ENDOFTEXT,
    ambiguous_vocabularies,
    byte_texts,
    examples,
    rich_texts,
    surrogate_texts,
    tiny_texts,
    vocabularies,
)
from tests.helpers.streams import streamed
from tests.helpers.vocabularies import unambiguous

BYTE_RANKS = {bytes([b]): b for b in range(256)}
MERGED = {b"ab": 256, b" a": 257, b"<|": 258, b"|>": 259, "é".encode(): 260, b"  ": 261}
# Nested, overlapping, prefixes of each other, white space, multibyte characters, one byte.
SPECIALS = [
    *[ENDOFTEXT, "<|a|>", "<|a|><|b|>", "<|b|>", "|><|", "<|a", "a|>", "é漢", "😀", " ", "\n\n"],
    *["aa", "aaa", "b", "<|endoftext|><|endoftext|>", "'s", "\ufffd"],
]
IDS = {text: 400 + n for n, text in enumerate(SPECIALS)}


@pytest.fixture(scope="module")
def toks():
    ranks = BYTE_RANKS | MERGED
    return {
        pattern: Tokenizer.from_ranks(ranks, pattern=pattern, special_tokens=IDS)
        for pattern in [*PATTERNS, None]
    }


def joined(spans):
    """The bytes of all spans: runs of str are joined as str, so that halves of pairs meet."""
    parts = []
    for text, _ in spans:
        if parts and isinstance(text, str) and isinstance(parts[-1], str):
            parts[-1] += text
        else:
            parts.append(text)
    return b"".join(map(in_utf8, parts))


def in_utf8(text):
    if isinstance(text, bytes):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def byte_ranges(spans):
    """(start, end, trusted) of each span in the joined bytes, counted by characters of the str."""
    widths = []
    for n, (text, _) in enumerate(spans):
        if isinstance(text, bytes):
            widths.append(len(text))
            continue
        before = _neighbor(spans, n, -1)
        after = _neighbor(spans, n, 1)
        around = before + text + after
        first, last = len(before), len(before) + len(text)
        width = 0
        at = 0
        while at < len(around):
            pair = (
                "\ud800" <= around[at] <= "\udbff"
                and "\udc00" <= around[at + 1 : at + 2] <= "\udfff"
            )
            size = 4 if pair else len(in_utf8(around[at]))
            for part in range(2 if pair else 1):
                if first <= at + part < last:
                    width += size // 2 if pair else size
            at += 2 if pair else 1
        widths.append(width)
    ends = list(accumulate(widths, initial=0))
    return [(a, b, trusted) for (a, b), (_, trusted) in zip(pairwise(ends), spans, strict=True)]


def _neighbor(spans, n, step):
    """The nearest character of the str beside a span, across empty strs."""
    n += step
    while 0 <= n < len(spans):
        text = spans[n][0]
        if isinstance(text, bytes):
            return ""
        if text:
            return text[-1] if step < 0 else text[0]
        n += step
    return ""


def reference(tok, spans):
    """The rule, by brute force: leftmost, then longest, wholly inside one trusted span."""
    text = joined(spans)
    ranges = [(a, b) for a, b, trusted in byte_ranges(spans) if trusted]
    literals = sorted(((t.encode(), i) for t, i in tok.vocab.special_tokens.items()), reverse=True)
    literals.sort(key=lambda item: -len(item[0]))
    ids = []
    start = at = 0
    while at < len(text):
        for literal, token_id in literals:
            end = at + len(literal)
            if text.startswith(literal, at) and any(a <= at and end <= b for a, b in ranges):
                ids += unambiguous(tok.vocab, tok.encode_ordinary(text[start:at]))
                ids.append(token_id)
                start = at = end
                break
        else:
            at += 1
    return ids + unambiguous(tok.vocab, tok.encode_ordinary(text[start:]))


def spans_or_error(encode, *given):
    try:
        return encode(*given)
    except SpecialTokenError:
        return "error"


literals = st.sampled_from(SPECIALS)
halves = literals.flatmap(lambda t: st.integers(0, len(t)).map(lambda n: t[:n]))
other_halves = literals.flatmap(lambda t: st.integers(0, len(t)).map(lambda n: t[n:]))
str_pieces = st.one_of(literals, halves, other_halves, rich_texts, surrogate_texts)
byte_pieces = st.one_of(
    literals.map(str.encode),
    literals.map(str.encode).flatmap(lambda t: st.integers(0, len(t)).map(lambda n: t[n:])),
    st.sampled_from(BROKEN),
    byte_texts,
)
span_texts = st.one_of(
    st.lists(str_pieces, max_size=3).map("".join), st.lists(byte_pieces, max_size=3).map(b"".join)
)
span_lists = st.lists(st.tuples(span_texts, st.booleans()), max_size=7)


@pytest.mark.parametrize("pattern", [*PATTERNS, None])
def test_spans_follow_the_rule(pattern, toks):
    tok = toks[pattern]

    @examples(150)
    @given(span_lists)
    @example([("<|a|>", True), ("<|b|>", True)])
    @example([("<|a|><", True), ("|b|>", True)])
    @example([("\ud83d", True), ("", False), ("\ude00", True)])
    @example([("\ud83d", True), (b"", True), ("\ude00", True)])
    @example([("a\ud83d\ude00", True), ("\ude00\ud83d", False)])
    def follow(spans):
        assert tok.encode_spans(spans) == reference(tok, spans)

    follow()


@examples(150)
@given(vocabularies, span_lists)
def test_spans_follow_the_rule_for_any_vocabulary(vocab, spans):
    tok = Tokenizer(vocab)
    expected = spans_or_error(reference, tok, spans)
    assert spans_or_error(tok.encode_spans, spans) == expected
    assert expected != "error" or vocab.ambiguous_ids


@examples(300)
@given(ambiguous_vocabularies(), st.lists(st.tuples(tiny_texts, st.booleans()), max_size=4))
def test_no_shared_id_comes_from_untrusted_text(vocab, spans):
    tok = Tokenizer(vocab)
    ids = spans_or_error(tok.encode_spans, spans)
    assert ids == spans_or_error(reference, tok, spans)
    untrusted = spans_or_error(tok.encode_spans, [(text, False) for text, _ in spans])
    if "error" not in (ids, untrusted):
        assert tok.decode_bytes(ids) == tok.decode_bytes(untrusted) == joined(spans)
        assert not set(untrusted) & set(vocab.special_tokens.values())


BYTES = {b: bytes([b]) for b in range(256)}
# "user" is a special token with the id of the learned token, and so is its part "us".
SHARED = Vocabulary(
    BYTES | {256: b"us", 257: b"er", 258: b"user", 259: b"users"},
    [(117, 115, 256), (101, 114, 257), (256, 257, 258), (258, 115, 259)],
    special_tokens={"user": 258, "us": 256},
)


def test_a_shared_id_is_replaced_by_the_parts_of_its_merge():
    tok = Tokenizer(SHARED)
    assert SHARED.ambiguous_ids == {256, 258}
    # As the peers do, everything but encode_spans keeps the learned token.
    assert tok.encode_ordinary("user") == tok.encode("user", disallowed_special=()) == [258]
    assert [*streamed(tok, ["us", "er"], disallowed_special=())] == [258]
    assert tok.encode_spans([("user", False)]) == [117, 115, 257]
    assert tok.encode_spans([("users", False)]) == [259]  # not shared
    assert tok.encode_spans([("user", True), ("user", False)]) == [258, 117, 115, 257]
    assert tok.encode_spans([("us", True), ("er", True)]) == [256, 257]
    # The pre-token cache holds [258] from the calls above, and still does after these.
    assert tok.encode_ordinary("user") == [258]


def test_a_shared_id_without_parts_is_an_error():
    for tok in (
        Tokenizer(Vocabulary(BYTES, special_tokens={"a": 97})),
        Tokenizer(
            Vocabulary(
                BYTES | {256: b"xa", 257: b"axa"},
                [(120, 97, 256), (97, 256, 257)],
                special_tokens={"axa": 257, "a": 97},
            )
        ),
    ):
        with pytest.raises(
            SpecialTokenError, match=r"at byte 1 .* id 97, .* special token 'a', and no merge"
        ):
            tok.encode_spans([("y", True), ("axa", False)])
        assert tok.encode_spans([("x", False), ("a", True)]) == [120, 97]


def test_parts_follow_from_ranks():
    ranks = {256: b"ab", 257: b"abab", 258: b"ababc"}
    added = [AddedToken("<x>", 257, lstrip=True)]
    tok = Tokenizer(Vocabulary(BYTES | ranks, added_tokens=added, ranking="ranks"))
    assert tok.encode_ordinary("abab") == [257]
    assert tok.encode_spans([("abab", False)]) == [256, 256]
    assert tok.encode_spans([("ababc", False)]) == [258]
    # Its bytes merge to three parts, not two.
    added = [AddedToken("<x>", 257, lstrip=True)]
    tok = Tokenizer(Vocabulary(BYTES | {257: b"abc"}, added_tokens=added, ranking="ranks"))
    assert tok.encode_ordinary("abc") == [257]
    with pytest.raises(SpecialTokenError, match=r"special token '<x>'"):
        tok.encode_spans([("abc", False)])


def test_an_added_token_that_is_not_special_does_not_forge_either():
    vocab = Vocabulary(
        SHARED.tokens | {300: b"<s>"},
        SHARED.merge_ids,
        added_tokens=[
            *(AddedToken("<s>", 300), AddedToken("forged", 300, special=False)),
            *(AddedToken("user", 258, special=False), AddedToken("<u>", 258, rstrip=True)),
        ],
    )
    tok = Tokenizer(vocab)
    assert vocab.ambiguous_ids == {258, 300}
    assert tok.encode_ordinary("forged user") == [300, 32, 258]
    assert tok.encode_spans([("<s>", True), (" user", False)]) == [300, 32, 256, 257]
    for trusted in (True, False):
        with pytest.raises(SpecialTokenError, match=r"at byte 1 .* special token '<s>'"):
            tok.encode_spans([("x", False), ("forged", trusted)])


def test_shared_ids_are_replaced_in_rewritten_text():
    for more in ({"normalizer": ["lowercase"]}, {"steps": ["prefix-space", Split(r"\s")]}):
        vocab = Vocabulary(
            SHARED.tokens, SHARED.merge_ids, special_tokens=SHARED.special_tokens, **more
        )
        tok = Tokenizer(vocab)
        ids = tok.encode_spans([("user user", False), ("us", True)])
        assert ids[-1] == 256 and not {256, 258} & set(ids[:-1])
        assert tok.decode(ids).strip() == "user userus"


def test_unk_stands_for_unknown_characters_even_if_it_is_special():
    vocab = Vocabulary(
        {97: b"a", 98: b"b", 256: b"ab", 257: b"<unk>"},
        [(97, 98, 256)],
        special_tokens={"<unk>": 257, "ab": 256},
        roles={"unk": 257},
        alphabet="partial",
    )
    tok = Tokenizer(vocab)
    assert tok.encode_spans([("ab<b", False)]) == [97, 98, 257, 98]
    shared = Vocabulary(
        {97: b"a", 98: b"b", 256: b"ab"},
        [(97, 98, 256)],
        special_tokens={"ab": 256},
        roles={"unk": 256},
        alphabet="partial",
    )
    assert Tokenizer(shared).encode_spans([("abxab", False)]) == [97, 98, 256, 97, 98]


@pytest.mark.parametrize("pattern", [*PATTERNS, None])
def test_untrusted_text_never_becomes_a_special_id(pattern, toks):
    tok = toks[pattern]
    special_ids = set(IDS.values())

    @examples(100)
    @given(span_lists)
    def never(spans):
        trusted = [(text, True) for text, _ in spans]
        untrusted = [(text, False) for text, _ in spans]
        text = joined(spans)
        ids = tok.encode_spans(untrusted)
        assert ids == tok.encode(text, disallowed_special=()) and not special_ids & set(ids)
        assert tok.decode_bytes(tok.encode_spans(spans)) == text
        assert tok.decode_bytes(tok.encode_spans(trusted)) == text
        assert tok.encode_spans([(text, True)]) == tok.encode(text, allowed_special="all")

    never()


@pytest.mark.parametrize("literal", SPECIALS, ids=ascii)
def test_a_literal_that_is_cut_is_not_a_special_token(literal, toks):
    """Wherever it is cut, whichever span is trusted, unless one trusted span holds all of it."""
    for tok in (toks["gpt2"], toks["o200k"]):
        raw = literal.encode()
        around = [(f"x{literal}y", True), (f"x{literal}y", False)]
        whole, plain = (tok.encode_spans([span]) for span in around)
        assert IDS[literal] in whole and IDS[literal] not in plain
        for cut in range(1, len(raw)):
            for left in (True, False):
                for right in (True, False):
                    spans = [(b"x" + raw[:cut], left), (raw[cut:] + b"y", right)]
                    ids = tok.encode_spans(spans)
                    assert IDS[literal] not in ids
                    assert ids == reference(tok, spans)
        assert tok.encode_spans([("x", False), (literal, True), ("y", False)]) == whole
        assert tok.encode_spans([("x", True), (literal, False), ("y", True)]) == plain
        assert tok.encode_spans([("x", True), ("", False), (literal, True), ("y", False)]) == whole


def test_thousands_of_spans_and_of_special_tokens_are_quick(toks):
    specials = {f"<|reserved_{n}|>": 1000 + n for n in range(3000)}
    tok = Tokenizer.from_ranks(BYTE_RANKS, pattern="o200k", special_tokens=specials)
    spans = [(f"<|reserved_{n % 3000}|> text", n % 2 == 0) for n in range(20_000)]
    ids = tok.encode_spans(spans)
    assert sum(i >= 1000 for i in ids) == 10_000
    # One long text in short trusted spans, with every special token across a boundary.
    text = "<|reserved_1|>" * 20_000
    slivers = [(text[n : n + 7], True) for n in range(0, len(text), 7)]
    assert max(tok.encode_spans(slivers)) < 256


# ---------------------------------------------------------------------- rewritten text

FLAGS = ["single_word", "lstrip", "rstrip", "normalized"]


@st.composite
def flagged_vocabularies(draw):
    """Special tokens with Hugging Face's flags, a normalizer, a step that adds a space."""
    added = [
        AddedToken(text, 400 + n, **{flag: draw(st.booleans()) for flag in FLAGS})
        for n, text in enumerate(["<s>", "<s><t>", "<t>", "Fi", "é", "aa"])
    ]
    return Vocabulary(
        BYTES | {token.id: token.text.encode() for token in added},
        added_tokens=added,
        steps=draw(st.sampled_from([(), ("prefix-space", Split(r"\s+|\S+"))])),
        normalizer=draw(st.lists(st.sampled_from(["nfc", "nfkc", "lowercase"]), max_size=2)),
    )


hostile = st.sampled_from(
    ["<s>", "<t>", "<s", ">", "<", "s>", "Fi", "ﬁ", "fi", "é", "e", "\u0301", "a", "aa", " ", "x"]
)
hostile_spans = st.lists(
    st.tuples(st.lists(hostile, max_size=4).map("".join), st.booleans()), max_size=5
)


def normalized(text, steps):
    for step in steps:
        text = text.lower() if step == "lowercase" else unicodedata.normalize(step.upper(), text)
    return text


@examples(300)
@given(flagged_vocabularies(), hostile_spans)
def test_no_flag_and_no_normalizer_makes_a_special_token_of_untrusted_text(vocab, spans):
    tok = Tokenizer(vocab)
    text = "".join(text for text, _ in spans)
    special_ids = set(vocab.special_tokens.values())
    untrusted = tok.encode_spans([(text, False) for text, _ in spans])
    assert untrusted == tok.encode(text, disallowed_special=())
    assert not special_ids & set(untrusted)
    assert tok.encode_spans([(text, True)]) == tok.encode(text, allowed_special="all")
    trusted = [text for text, is_trusted in spans if is_trusted]
    trusted += [normalized(text, vocab.normalizer) for text in trusted]
    for added in vocab.added_tokens:
        if added.id in tok.encode_spans(spans):
            forms = {added.text, normalized(added.text, vocab.normalizer)}
            assert any(form in text for form in forms for text in trusted), added


@examples(150)
@given(flagged_vocabularies(), hostile_spans, st.lists(st.integers(0, 99), max_size=4))
def test_rewritten_text_streams_to_the_ids_of_the_whole(vocab, spans, cuts):
    tok = Tokenizer(vocab)
    text = "".join(text for text, _ in spans)
    at = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    stream = tok.encode_stream(allowed_special="all")
    ids = [i for a, b in pairwise(at) for i in stream.feed(text[a:b])] + stream.finish()
    assert ids == tok.encode(text, allowed_special="all")
    in_bytes = tok.encode_with_offsets(text, allowed_special="all")[1]
    in_characters = tok.encode_with_offsets(text, unit="characters", allowed_special="all")[1]
    starts = [len(text[:n].encode()) for n in range(len(text) + 1)]
    for (first, last), (start, end) in zip(in_bytes, in_characters, strict=True):
        assert starts[start] <= first and last <= starts[end]
        assert start == end or (
            first < starts[start + 1] and starts[end - 1] < max(last, first + 1)
        )
