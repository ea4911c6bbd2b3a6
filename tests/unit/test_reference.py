"""The reference. The seeds' worked examples run on it in tests/seeds/test_examples.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld.errors import CorpusError, PatternError, UnknownIdError, UnsupportedError
from byteweld.recipes import RECIPES
from byteweld.reference import (
    count_pretokens,
    decode,
    decode_bytes,
    encode,
    encode_greedy,
    encode_steps,
    pretokenize,
    split_specials,
    train,
)
from byteweld.reference.train import count_pairs, merge, pick
from byteweld.vocab import Vocabulary

BYTES = {byte: bytes([byte]) for byte in range(256)}
# ---------------------------------------------------------------------------- pre-tokens


def test_special_tokens_are_found_leftmost_first_and_longest_first():
    specials = ["<a>", "<a><a>"]
    assert list(split_specials(b"x<a><a><a>y", specials)) == [b"x", "<a><a>", "<a>", b"y"]


def test_splitting_at_special_tokens_yields_no_empty_text():
    assert list(split_specials(b"<a><a>", ["<a>"])) == ["<a>", "<a>"]
    assert list(split_specials(b"", ["<a>"])) == []
    assert list(split_specials(b"", [])) == []


def test_text_that_the_pattern_does_not_match_is_a_pretoken_too():
    assert pretokenize(b"ab12cd--", "[a-z]+") == [b"ab", b"12", b"cd", b"--"]


def test_empty_matches_do_not_split():
    assert pretokenize(b"abxc", "x*") == [b"ab", b"x", b"c"]


def test_an_invalid_byte_is_neither_a_letter_a_digit_nor_a_space():
    assert pretokenize(b"ab\xffcd \xe2\x82", "gpt2") == [b"ab", b"\xff", b"cd", b" \xe2\x82"]


def test_without_a_pattern_the_text_is_one_pretoken_unless_it_is_empty():
    assert pretokenize(b"a b\n", None) == [b"a b\n"]
    assert pretokenize(b"", None) == []
    assert pretokenize(b"", "gpt2") == []


def test_the_gpt2_pattern_splits_contractions_letters_digits_symbols_and_spaces():
    pieces = pretokenize("I'll pay 50€!  ok\n".encode(), "gpt2")
    expected = ["I", "'ll", " pay", " 50", "€!", " ", " ok", "\n"]
    assert pieces == [text.encode() for text in expected]


def test_a_broken_pattern_is_a_pattern_error_that_shows_it():
    with pytest.raises(PatternError, match=r"'\(a'"):
        pretokenize(b"a", "(a")


def test_set_operations_are_supported():
    assert pretokenize(b"ab&c", "[a-c&&[^b]]+") == [b"a", b"b&", b"c"]
    assert pretokenize(b"a1-b", r"[\w--\d]") == [b"a", b"1-", b"b"]
    assert pretokenize(b"abcx]", "[[a-b]x]+") == [b"ab", b"c", b"x", b"]"]
    # Outside a set, or escaped, the operators are literal.
    assert pretokenize(b"a&&b--", r"&&|[\-\[]+") == [b"a", b"&&", b"b", b"--"]


def test_case_folding_stays_simple_with_set_operations():
    text = "ss SS ß ẞ ſs"
    plain = pretokenize(text.encode(), "(?i:ss|st)|x")
    assert plain == [b"ss", b" ", b"SS", " ß ẞ ".encode(), "ſs".encode()]
    assert pretokenize(text.encode(), "(?i:ss|st)|[x&&[^y]]") == plain


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("[a-z||[0-9]]+", "'||'"),
        ("[a&&]", "'&&'"),
        ("[^--/]", "'--'"),
        ("[[:alpha:]]+", "the class [:alpha:]"),
    ],
)
def test_a_set_that_regex_and_the_engine_read_differently_is_refused(pattern, what):
    with pytest.raises(PatternError) as caught:
        pretokenize(b"a", pattern)
    assert f"has {what} in a set at character " in str(caught.value)


@given(st.binary(), st.sampled_from(["gpt2", "cl100k", "o200k", "ck", None, "a+", "(?=b)"]))
def test_concatenated_pretokens_are_the_text(text, pattern):
    pieces = pretokenize(text, pattern)
    assert b"".join(pieces) == text
    assert all(pieces)


# ---------------------------------------------------------------------------- the parts of training


def test_overlapping_pairs_are_counted():
    assert count_pairs({(7, 7, 7): 10, (7, 8): 1}) == {(7, 7): 20, (7, 8): 1}


def test_merges_apply_left_to_right_without_overlap():
    assert merge((7, 7, 7), (7, 7), 300) == (300, 7)
    assert merge((1, 2, 1, 2), (1, 2), 300) == (300, 300)


def test_the_three_tie_rules_pick_three_pairs():
    tokens = {0: b"m", 1: b"z", 2: b"a"}
    tied = {(2, 1): 5, (1, 2): 5, (0, 1): 5, (0, 0): 5, (1, 1): 4}
    assert pick(tied, tokens, "smallest-ids") == (0, 0)
    assert pick(tied, tokens, "greatest-bytes") == (1, 2)
    assert pick(tied, tokens, "smallest-bytes") == (2, 1)


def test_pairs_of_byte_strings_compare_like_tuples():
    tokens = {0: b"a", 1: b"ab", 2: b"c", 3: b"b"}
    tied = {(0, 2): 1, (1, 3): 1}  # comparing the concatenations "ac" and "abb" would differ
    assert pick(tied, tokens, "greatest-bytes") == (1, 3)
    assert pick(tied, tokens, "smallest-bytes") == (0, 2)


def test_a_single_string_as_documents_is_a_type_error():
    with pytest.raises(TypeError, match="expected a list"):
        count_pretokens(b"abc", RECIPES["plain"])


# ---------------------------------------------------------------------------- training


def test_ck_never_merges_across_files_and_splits_only_at_given_specials():
    recipe = RECIPES["ck"].replace(special_tokens=("[SEP]",), min_frequency=1)
    counts = count_pretokens([b"ab[SEP]c<|bos|>", b"ab"], recipe)
    assert counts == {b"ab": 2, b"c<|bos|>": 1}


def test_ck_ascii_refuses_other_bytes_in_the_corpus_with_their_offset():
    with pytest.raises(CorpusError, match="byte 0xC3 at offset 2"):
        train(["abà".encode()], 110, RECIPES["ck-ascii"])


def test_a_size_below_the_minimum_names_it():
    with pytest.raises(ValueError, match="at least 260: 256 bytes and 4 special tokens"):
        train([b"ab"], 259, RECIPES["ck"])


def test_max_token_bytes_is_inclusive_and_skips_longer_pairs():
    recipe = RECIPES["plain"].replace(max_token_bytes=2)
    result = train({b"aaaa": 9, b"bc": 1}, 300, recipe)
    assert result.vocab.merges == [(b"a", b"a"), (b"b", b"c")]
    assert result.stopped == "no pairs"
    one = RECIPES["plain"].replace(max_token_bytes=1)
    assert train({b"aaaa": 9}, 300, one).merges == ()


@pytest.mark.parametrize(("limit", "longest"), [(1, 2), (2, 2), (3, 2), (4, 3), (5, 4)])
def test_max_token_bytes_is_exclusive_as_in_hugging_face(limit, longest):
    recipe = RECIPES["huggingface"].replace(max_token_bytes=limit)
    counts = {b"abcdefgh"[:length]: 10 - length for length in range(2, 9)}
    assert max(map(len, train(counts, 300, recipe).vocab.ids)) == longest


def test_a_token_spelled_like_a_special_token_takes_its_id_in_hugging_face():
    recipe = RECIPES["huggingface"].replace(special_tokens=("ab",))
    result = train({b"abc": 3}, 258, recipe)
    assert [m.new for m in result.merges] == [0, 257]
    assert result.vocab.merges == [(b"a", b"b"), (b"ab", b"c")]
    assert len(result.vocab) == 258


@pytest.mark.parametrize("special", ["a", "Ġa"])
def test_a_special_token_spelled_like_other_bytes_is_refused(special):
    recipe = RECIPES["huggingface"].replace(special_tokens=(special,))
    with pytest.raises(UnsupportedError, match=f"special token '{special}'"):
        train([b"x a a a"], 300, recipe)


# ---------------------------------------------------------------------------- encoding


def test_the_lowest_rank_merges_first_not_the_leftmost_pair():
    vocab = Vocabulary(BYTES | {256: b"bc", 257: b"ab"}, [(98, 99, 256), (97, 98, 257)])
    assert encode(vocab, "abc") == [97, 256]
    assert encode_greedy(vocab, b"abc") == [257, 99]


def test_rank_is_the_position_in_the_merge_list_not_the_id():
    vocab = Vocabulary(BYTES | {256: b"ab", 257: b"bc"}, [(98, 99, 257), (97, 98, 256)])
    assert encode(vocab, "abc") == [97, 257]


def ranked(*tokens):
    return Vocabulary(BYTES | {256 + n: token for n, token in enumerate(tokens)}, ranking="ranks")


def test_a_rank_file_merges_the_pair_whose_result_has_the_lowest_id():
    assert encode(ranked(b"bc", b"ab"), "abcx") == [97, 256, 120]
    assert encode(ranked(b"ab", b"bc"), "abcx") == [256, 99, 120]


def test_a_rank_file_merges_any_two_parts_whose_bytes_are_a_token():
    # "abcd" is ab + cd, although there is no list of merges that says so.
    assert encode(ranked(b"ab", b"cd", b"abcd"), "abcdx") == [258, 120]


def test_a_rank_file_looks_up_the_whole_pretoken_first():
    vocab = ranked(b"xyz")  # no merge makes it
    assert encode(vocab, "xyz") == [256]
    assert encode(vocab, "xyzx") == [120, 121, 122, 120]
    *_, last = encode_steps(vocab, b"xyz", whole_first=False)
    assert last.parts == (120, 121, 122)


def test_only_ignore_merges_looks_up_the_whole_pretoken_first():
    tokens = BYTES | {256: b"bc", 257: b"ab", 258: b"abc"}
    merges = [(98, 99, 256), (97, 98, 257), (257, 99, 258)]
    assert encode(Vocabulary(tokens, merges), "abc") == [97, 256]
    assert encode(Vocabulary(tokens, merges, ignore_merges=True), "abc") == [258]
    assert encode(Vocabulary(tokens, merges, ignore_merges=True), "abcx") == [97, 256, 120]


def test_equal_ranks_merge_leftmost_first():
    vocab = Vocabulary(BYTES | {256: b"aa"}, [(97, 97, 256)])
    assert encode(vocab, "aaa") == [256, 97]
    assert encode(ranked(b"aa"), "aaa") == [256, 97]


def test_a_merge_that_enables_a_lower_rank_is_followed_by_it():
    # (ab, c) is listed before (a, b). Each step applies the lowest rank that is possible then.
    tokens = BYTES | {256: b"abc", 257: b"ab", 258: b"ca"}
    vocab = Vocabulary(tokens, [(257, 99, 256), (97, 98, 257), (99, 97, 258)])
    assert encode(vocab, "abcab") == [256, 257]


def test_special_tokens_are_text_unless_allowed():
    recipe = RECIPES["bpetite"]
    vocab = train([b"ab"], 257, recipe).vocab
    text = "ab<|endoftext|>ab"
    assert encode(vocab, text, allowed_special="all") == [256, 257, 256]
    assert encode(vocab, text, allowed_special={"<|endoftext|>"}) == [256, 257, 256]
    assert 257 not in encode(vocab, text)
    assert decode(vocab, encode(vocab, text)) == text


def test_a_character_outside_ascii_is_one_unk():
    vocab = train([b"abab"], 103, RECIPES["ck-ascii"]).vocab
    assert encode(vocab, "abàab🦊") == [102, 0, 102, 0]
    assert encode(vocab, b"ab\xff\xfe") == [102, 0, 0]
    assert encode_greedy(vocab, "abàab".encode()) == [102, 0, 102]


def test_a_character_outside_ascii_without_unk_is_an_error_with_its_offset():
    tokens = {byte: bytes([byte]) for byte in range(0x20, 0x7F)}
    vocab = Vocabulary(tokens | {200: b"<s>"}, special_tokens={"<s>": 200}, alphabet="ascii")
    with pytest.raises(ValueError, match="character 'à' at byte 5 "):
        encode(vocab, "ab<s>à", allowed_special="all")
    with pytest.raises(ValueError, match="at byte 1 "):
        encode(vocab, b"a\xff")


def test_an_unk_never_takes_part_in_a_merge():
    tokens = {97: b"a", 0: b"?", 1: b"?a", 63: b"!"}
    vocab = Vocabulary(
        tokens, special_tokens={"?": 0}, roles={"unk": 0}, alphabet="ascii", ranking="ranks"
    )
    assert encode(vocab, "éa") == [0, 97]


def test_surrogate_pairs_are_joined_and_lone_surrogates_replaced():
    vocab = Vocabulary(BYTES)
    assert encode(vocab, "\ud83e\udd8a") == list("🦊".encode())
    assert encode(vocab, "a\ud800") == list("a\ufffd".encode())


def test_an_unknown_id_is_an_error_that_names_it():
    with pytest.raises(UnknownIdError, match="id 999 is not in the vocabulary of 256 tokens"):
        decode_bytes(Vocabulary(BYTES), [97, 999])


def test_decoding_replaces_invalid_utf8_by_default():
    vocab = Vocabulary(BYTES)
    assert decode(vocab, [97, 0xFF]) == "a\ufffd"
    with pytest.raises(UnicodeDecodeError):
        decode(vocab, [0xFF], errors="strict")


TRAINED = [
    train(["the cat, the hat — naïve œuvre aaaa 1234\r\n\t ".encode() * 2], 330, recipe).vocab
    for recipe in RECIPES.values()
    if recipe.alphabet != "ascii"
]
TRAINED.append(ranked(b"th", b"the", b" t", b" the", b"\xc3\xa9", b"aa", b"aaaa"))


@given(st.binary(max_size=60), st.sampled_from(TRAINED))
def test_every_byte_string_round_trips(text, vocab):
    assert decode_bytes(vocab, encode(vocab, text)) == text
    assert decode_bytes(vocab, encode(vocab, text, "all")) == text
    assert decode_bytes(vocab, encode_greedy(vocab, text)) == text


@given(st.text("the ca1\n", max_size=30))
def test_a_trained_vocabulary_encodes_the_same_by_merges_and_by_ranks(text):
    # docs/design/algorithm.md, "Rank files and merge lists".
    corpus = [b"the cat, the hat 1234 that cat hat aaaa"]
    vocab = train(corpus, 290, RECIPES["rustbpe"]).vocab
    ranks = Vocabulary(vocab.tokens, pattern=vocab.pattern, ranking="ranks")
    assert encode(vocab, text) == encode(ranks, text)


@st.composite
def rank_files_that_resplit(draw):
    """Tokens of a's and b's, each of which the tokens before it encode to exactly two ids."""
    tokens = dict(BYTES)
    merges = []
    for token in draw(st.lists(st.text("ab", min_size=2, max_size=6), max_size=12, unique=True)):
        below = Vocabulary(tokens, ranking="ranks")
        *_, last = encode_steps(below, token.encode(), whole_first=False)
        if len(last.parts) == 2:
            merges.append((*last.parts, len(tokens)))
            tokens[len(tokens)] = token.encode()
    return tokens, merges


@given(rank_files_that_resplit(), st.lists(st.text("ab", max_size=16), max_size=5))
def test_a_rank_file_that_resplits_is_equal_to_a_merge_list(tokens_and_merges, texts):
    # docs/design/algorithm.md, fact 5. The tokens are random; few could come from a training.
    tokens, merges = tokens_and_merges
    by_ranks, by_merges = Vocabulary(tokens, ranking="ranks"), Vocabulary(tokens, merges)
    for text in [*texts, *(token.decode() for token in tokens.values() if len(token) > 1)]:
        assert encode(by_ranks, text) == encode(by_merges, text)


def test_no_merge_spells_a_special_token():
    trained = train([b"<|bos|><|bos|><|bos|>"], 300, RECIPES["ck"])
    assert b"<|bo" in trained.vocab.ids
    assert b"<|bos|>" not in trained.vocab.ids
    assert (b"<|bo", b"s|>") not in trained.vocab.merges


def test_a_pretoken_that_never_occurs_changes_nothing():
    recipe = RECIPES["huggingface"].replace(initial_alphabet=())
    trained = train({b"ab": 3, b"xyz": 0}, 10, recipe)
    assert trained == train({b"ab": 3}, 10, recipe)
    assert b"x" not in trained.vocab.ids
