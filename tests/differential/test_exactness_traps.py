"""Traps that encoders have fallen into, one test each, against the real tiktoken and tokenizers.

Elsewhere already: `ignore_merges` (unit/formats/test_hf_tokenizer_json.py against the real library,
unit/test_reference.py, and encode/tests.rs in the core), and the same cuts as here in every tier of
instructions (traps_of_the_field and blocks_cut_as_the_scanner_does_in_every_tier in the core's
pretoken/tests/scanner.rs).
"""

from __future__ import annotations

import os
from itertools import pairwise, product

import pytest

import byteweld
from byteweld import PATTERNS, Tokenizer, Vocabulary, reference
from byteweld.evaluation import unreachable
from byteweld.tiktoken import Encoding

tiktoken = pytest.importorskip("tiktoken", reason="the real tiktoken is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")

BYTE_RANKS = {bytes([byte]): byte for byte in range(256)}
# As tiktoken 0.14 writes it; no other library reads `{1,3}+` and `$` in the same way.
TIKTOKEN_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
FIRST_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def both(ranks, pattern, specials=None):
    """A table of ranks in byteweld and in tiktoken."""
    specials = specials or {}
    theirs = tiktoken.Encoding(
        "trap", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials
    )
    return Tokenizer.from_ranks(ranks, pattern=pattern, special_tokens=specials), theirs


def ranks_of(*tokens):
    """Bytes, then these tokens, in order."""
    every = dict.fromkeys([*BYTE_RANKS, *tokens])
    return {token: rank for rank, token in enumerate(every)}


def cuts(pattern, text):
    """The pre-tokens of a text, which ours, the real tiktoken and the reference agree on.

    Every substring of the text is a token, so each pre-token is one, and the ids show the cuts.
    """
    raw = text.encode()
    substrings = [raw[a:b] for b in range(len(raw) + 1) for a in range(b)]
    ours, theirs = both(ranks_of(*sorted(substrings, key=len)), pattern)
    ids = theirs.encode_ordinary(text)
    assert ours.encode_ordinary(text) == ids
    pretokens = theirs.decode_tokens_bytes(ids)
    assert ours.pretokenize(text) == pretokens
    return [pretoken.decode() for pretoken in pretokens]


def cuts_of_oniguruma(pattern, text):
    step = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    return [piece for piece, _ in step.pre_tokenize_str(text)]


CUTS = [  # a pattern, a text, and its pre-tokens
    ("cl100k", "it'ſ ok", ["it", "'ſ", " ok"]),  # the long s, where case does not matter
    ("o200k", "it'ſ ok", ["it'ſ", " ok"]),
    ("gpt2", "it'ſ ok", ["it", "'", "ſ", " ok"]),
    ("cl100k", "it'\u212a", ["it", "'\u212a"]),  # the Kelvin sign is k, not a contraction
    ("o200k", "it'\u212a", ["it", "'\u212a"]),
    *(("gpt2", f"a{c}{c}b", ["a", c, c, "b"]) for c in "\x85\xa0\u2028\u3000"),  # white space
    *(("gpt2", f"a{c}{c}b", ["a", c * 2, "b"]) for c in "\u180e\u200b"),  # looks like it
    ("o200k", "e\u0301a", ["e\u0301a"]),  # marks join letters, or are punctuation
    ("qwen3_5", "e\u0301a", ["e\u0301a"]),
    ("cl100k", "e\u0301a", ["e", "\u0301a"]),
    ("qwen2", "e\u0301a", ["e", "\u0301a"]),
    ("o200k", "ǅemo aǅ ǅǅa", ["ǅemo", " a", "ǅ", " ǅǅa"]),  # titlecase begins words
    ("tekken", "aǅb", ["a", "ǅb"]),
    ("o200k", "中A中", ["中A中"]),  # letters without case
    ("o200k", "a中B", ["a中", "B"]),
    ("cl100k", "a\n ", ["a", "\n "]),  # trailing white space
    ("cl100k", "12345٣٤٥٦", ["123", "45٣", "٤٥٦"]),  # three characters, not three bytes
    ("o200k", "½٣a𝟘𝟙𝟚𝟛", ["½٣", "a", "𝟘𝟙𝟚", "𝟛"]),
    ("nanochat", "12345", ["12", "34", "5"]),
    ("qwen2", "١٢", ["١", "٢"]),
]


@pytest.mark.parametrize(("name", "text", "expected"), CUTS)
def test_a_known_pattern_cuts_as_all_four_engines_do(name, text, expected):
    pattern = PATTERNS[name]
    assert cuts(pattern, text) == expected
    assert cuts_of_oniguruma(pattern, text) == expected
    assert reference.pretokenize(text.encode(), pattern) == [piece.encode() for piece in expected]


# ---------------------------------------------------------------------- classes of characters


def test_letters_without_case_go_to_the_alternative_that_needs_them():
    # Every row of capitals, small letters, letters without case and marks; each is a token.
    rows = ["".join(row) for n in range(1, 6) for row in product("aA中\u0301ʰ", repeat=n)]
    ours, theirs = both(ranks_of(*(row.encode() for row in rows)), PATTERNS["o200k"])
    text = "\n".join(rows)
    ids = theirs.encode_ordinary(text)
    assert ours.encode_ordinary(text) == ids
    cut = [pretoken.decode() for pretoken in theirs.decode_tokens_bytes(ids)]
    assert cut == cuts_of_oniguruma(PATTERNS["o200k"], text)
    assert len(cut) > len(rows) * 2 - 1  # some rows are cut


# ---------------------------------------------------------------------- the end of a text


def test_trailing_whitespace_with_newlines_is_one_pretoken():
    assert cuts(TIKTOKEN_CL100K, "a\n ") == ["a", "\n "]
    assert cuts(TIKTOKEN_CL100K, "a \n\n \t") == ["a", " \n\n \t"]
    assert cuts(TIKTOKEN_CL100K, "a\n b") == ["a", "\n", " b"]


def test_the_first_spelling_of_cl100k_is_another_pattern():
    assert cuts(FIRST_CL100K, "a\n ") == ["a", "\n", " "]
    first, present = (
        Vocabulary(dict(enumerate(BYTE_RANKS)), pattern=pattern)
        for pattern in (FIRST_CL100K, TIKTOKEN_CL100K)
    )
    assert first.fingerprint != present.fingerprint
    assert Vocabulary(first.tokens, pattern="llama3").fingerprint == first.fingerprint
    assert Vocabulary(first.tokens, pattern="cl100k").fingerprint == present.fingerprint


def test_a_dollar_is_the_end_of_the_text_and_not_of_a_line():
    pattern = r"\s+$|\S+|\s"
    assert cuts(pattern, "a  \nb  ") == ["a", " ", " ", "\n", "b", "  "]
    assert cuts_of_oniguruma(pattern, "a  \nb  ") != cuts(pattern, "a  \nb  ")
    # So a Hugging Face file with a dollar is rejected: unit/formats/test_hf_tokenizer_json.py.


def test_text_that_ends_inside_a_character_has_the_ids_of_the_reference_and_of_tiktoken():
    ranks = ranks_of(b"\xe6\xbc", "漢".encode(), b"ab", b" ab", b"\xf0\x9f", b"\x91\x8d", b"  ")
    for pattern in ("gpt2", "cl100k", "o200k"):
        ours, theirs = both(ranks, PATTERNS[pattern])
        named = Encoding.from_tokenizer(ours)
        # The end is at every offset of a block of 64 bytes, and of the 16 that a key is read from.
        for length in range(40, 70):
            whole = ("ab " * 30)[:length].encode() + "漢👍é".encode()
            for raw in (whole[:-n] for n in range(1, 9)):
                assert ours.encode_ordinary(raw) == reference.encode(ours.vocab, raw)
                assert named._encode_bytes(raw) == theirs._encode_bytes(raw)


# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize("name", ["cl100k", "o200k", "nanochat", "llama3"])
def test_digits_are_counted_across_block_boundaries(name):
    numbers = [f"{n:0{length}}".encode() for length in (2, 3) for n in range(10**length)]
    ours, theirs = both(ranks_of(*numbers), PATTERNS[name])
    digits = "1234567890" * 20
    for before in (*range(130), *range(2040, 2056)):
        for text in (
            " " * before + digits,
            "x" * before + digits + "a",
            digits[:before] + "½" + digits,
        ):
            assert ours.encode_ordinary(text) == theirs.encode_ordinary(text), before


# ---------------------------------------------------------------------- tokens and merges


def hugging_face(tmp_path, vocab, merges, *, pattern=None, normalizer=None, specials=(), **options):
    """A tokenizer of the real library, and ours from the file it writes."""
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=merges, **options))
    steps = [tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pattern)]
    if pattern:
        expression = tokenizers.Regex(pattern)
        steps.insert(0, tokenizers.pre_tokenizers.Split(expression, "isolated"))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(steps)
    if normalizer is not None:
        theirs.normalizer = normalizer
    theirs.add_special_tokens(list(specials))
    path = tmp_path / "tokenizer.json"
    theirs.save(str(path))
    return byteweld.load(path), theirs


def letters_and(*tokens):
    """{token: id} in the byte letters of Hugging Face: the alphabet, then these."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    return {letter: n for n, letter in enumerate([*alphabet, *tokens])}


def test_a_token_without_a_merge_is_never_used_where_merges_rank(tmp_path):
    vocab = letters_and("ab", "abc")
    ours, theirs = hugging_face(tmp_path, vocab, [("a", "b")])
    expected = [vocab["ab"], vocab["c"]]
    for text in ("abc", "abc"):  # a cache miss, then a hit
        assert ours.encode(text) == theirs.encode(text).ids == expected
    assert list(unreachable(ours)) == [vocab["abc"]]
    ours, theirs = both(ranks_of(b"ab", b"abc"), PATTERNS["gpt2"])
    assert ours.encode("abc") == theirs.encode("abc") == [257]


def test_ranks_merge_any_pair_that_is_a_token_and_merge_lists_only_their_pairs(tmp_path):
    vocab = letters_and("bc", "ab", "abc")
    merges = [("b", "c"), ("a", "b"), ("ab", "c")]
    ours, theirs = hugging_face(tmp_path, vocab, merges)
    by_list = [vocab["a"], vocab["bc"], vocab["x"]]
    assert ours.encode("abcx") == theirs.encode("abcx").ids == by_list
    ours, theirs = both(ranks_of(b"bc", b"ab", b"abc"), PATTERNS["gpt2"])
    assert ours.encode("abcx") == theirs.encode("abcx") == [258, ord("x")]


def test_pretokens_that_differ_in_zero_bytes_are_different():
    ours, theirs = both(ranks_of(b"\0\0", b"ab", b"b\0", b"\0" * 4), r"[^ ]+| ")
    words = ["ab" * length + "\0" * zeros for length in range(8) for zeros in range(20)]
    text = " ".join(words)
    for _ in range(2):  # a cache miss, then a hit
        assert ours.encode(text) == theirs.encode(text)
        for word in words:
            assert ours.encode(word) == theirs.encode(word)
    ids = [tuple(ours.encode(word)) for word in words]
    assert len(set(ids)) == len(set(words)) == len(words)


def test_text_is_composed_before_it_is_cut(tmp_path):
    composed = "Ã©a"  # the letters of the bytes of éa
    vocab = letters_and("Ã©", composed)
    ours, theirs = hugging_face(
        tmp_path,
        vocab,
        [("Ã", "©"), ("Ã©", "a")],
        pattern=PATTERNS["qwen2"],
        normalizer=tokenizers.normalizers.NFC(),
    )
    for text in ("éa", "e\u0301a"):  # cut first, the mark would begin a pre-token
        assert ours.encode(text) == theirs.encode(text).ids == [vocab[composed]]


def test_special_tokens_split_long_whitespace(tmp_path):
    special = "<|x|>"
    runs = [b" " * 2**n for n in range(1, 7)]
    for name in ("gpt2", "cl100k", "o200k"):
        ours, theirs = both(ranks_of(*runs, b"\n\n"), PATTERNS[name], {special: 1000})
        for before, after in product(range(70), (0, 1, 2, 63, 64)):
            text = "a" + " " * before + special + " " * after + "b"
            ids = theirs.encode(text, allowed_special="all")
            assert ours.encode(text, allowed_special="all") == ids
            assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)
    letters = [run.decode().replace(" ", "Ġ") for run in runs]
    merges = [(short, short) for short, _ in pairwise(["Ġ", *letters])]
    ours, theirs = hugging_face(tmp_path, letters_and(*letters), merges, specials=[special])
    for before, after in product(range(70), (0, 1, 63)):
        text = "a" + " " * before + special + "\n" + " " * after + "b"
        assert ours.encode(text, allowed_special="all") == theirs.encode(text).ids


# ---------------------------------------------------------------------- size


@pytest.mark.slow
def test_offsets_beyond_4_gib_are_right():
    if "SC_AVPHYS_PAGES" not in os.sysconf_names:
        pytest.skip("this system does not report free memory")
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < 8 << 30:
        pytest.skip(f"needs 8 GiB of memory, but {free >> 30} GiB are free")
    word = b" " + b"x" * 1000
    tok = Tokenizer.from_ranks(ranks_of(word, b" end"), pattern="gpt2")
    count = (1 << 32) // len(word) + 100
    text = b"".join([*[word] * count, b" end\n"])
    expected = count + 2
    assert tok.count(text) == expected
    for threads in (1, 2):
        ids, offsets = tok.encode_ragged([text], num_threads=threads)
        assert offsets.tolist() == [0, expected]
        assert ids[-3:].tolist() == [256, 257, ord("\n")]
        assert (ids[:count] == 256).all()
    assert len(tok.truncate(text, count - 1)) == (count - 1) * len(word) > 1 << 32
