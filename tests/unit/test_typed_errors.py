"""Typed errors: ids out of range, and lone surrogates where text must be Unicode."""

from __future__ import annotations

import numpy as np
import pytest

import byteweld
import byteweld.tiktoken
from byteweld.errors import ByteweldError, IdRangeError, UnknownIdError

BYTES = {b: bytes([b]) for b in range(256)}
TOK = byteweld.Tokenizer.from_merges(BYTES | {256: b"lo"}, [(b"l", b"o")], special_tokens=["<|x|>"])
RANKS = {token: token_id for token_id, token in (BYTES | {256: b"lo"}).items()}
ENCODING = byteweld.tiktoken.Encoding(
    "mine", pat_str=r"\S+|\s", mergeable_ranks=RANKS, special_tokens={"<|x|>": 257}
)

# ---------------------------------------------------------------------- ids

OUT_OF_RANGE = [-1, -(2**31), -(2**63), -(2**70), 2**32, 2**63, 2**64, 2**70, 10**5000]
UNKNOWN = [258, 1000, 2**31, 2**32 - 2, 2**32 - 1]
DECODERS = {
    "decode": lambda tok, i: tok.decode([i]),
    "decode of a tuple": lambda tok, i: tok.decode((97, i)),
    "decode_bytes": lambda tok, i: tok.decode_bytes([97, i]),
    "decode_batch": lambda tok, i: tok.decode_batch([[97], [i]]),
    "decode_bytes_batch": lambda tok, i: tok.decode_bytes_batch([[i]]),
    "decode_single_token_bytes": lambda tok, i: tok.decode_single_token_bytes(i),
    "decode_tokens_bytes": lambda tok, i: tok.decode_tokens_bytes([97, i]),
    "decode_with_offsets": lambda tok, i: tok.decode_with_offsets([i]),
    "stream of one": lambda tok, i: tok.decode_stream().feed(i),
    "stream of several": lambda tok, i: tok.decode_stream().feed([97, i]),
    "an array of objects": lambda tok, i: tok.decode(np.array([97, i], object)),
    "merge_tree": lambda tok, i: byteweld.merge_tree(tok.vocab, i),
}


@pytest.mark.parametrize("name", DECODERS)
def test_an_unknown_id_is_the_same_error_everywhere(name):
    for bad in (*OUT_OF_RANGE, *UNKNOWN):
        with pytest.raises(UnknownIdError) as caught:
            DECODERS[name](TOK, bad)
        assert caught.value.id == bad and str(caught.value)
        assert isinstance(caught.value, KeyError) and isinstance(caught.value, ByteweldError)
        # Both builtin kinds catch an integer that is not an id of any vocabulary.
        is_overflow = bad in OUT_OF_RANGE or (name == "merge_tree" and bad == 2**32 - 1)
        assert isinstance(caught.value, OverflowError) == is_overflow


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numpy_integers_of_every_type_are_ids(dtype):
    good = dtype(97)
    for call in DECODERS.values():
        call(TOK, good)
    assert TOK.decode(np.array([97, 98], dtype)) == "ab"
    assert TOK.decode(np.array([97, 0, 98, 0], dtype)[::2]) == "ab"
    assert not TOK.is_special_token(good)
    for bad in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        if 0 <= bad <= 257:
            continue
        for ids in (np.array([97, bad], dtype), np.array([bad, 97, bad], dtype)[::2], [dtype(bad)]):
            with pytest.raises(UnknownIdError) as caught:
                TOK.decode_bytes(ids)
            assert caught.value.id == bad
        with pytest.raises(UnknownIdError):
            TOK.decode_single_token_bytes(dtype(bad))
        assert not TOK.is_special_token(dtype(bad))


@pytest.mark.parametrize(
    "bad",
    [1.0, float("nan"), "97", b"a", None, [97], 1j, np.float64(97), np.array([1.5]), object()],
)
@pytest.mark.parametrize("name", [*DECODERS, "is_special_token"])
def test_what_is_not_an_integer_is_a_type_error(name, bad):
    call = DECODERS.get(name, lambda tok, i: tok.is_special_token(i))
    if name == "stream of one" and isinstance(bad, list):
        pytest.skip("several ids")
    with pytest.raises(TypeError):
        call(TOK, bad)


def test_a_truth_value_is_an_integer_as_in_tiktoken():
    assert TOK.decode([True]) == ENCODING.decode([True]) == "\x01"


def test_an_index_that_raises_is_heard():
    class Bad:
        def __index__(self):
            raise OverflowError("mine")

    for call in (lambda: TOK.decode([Bad()]), lambda: TOK.decode_single_token_bytes(Bad())):
        with pytest.raises(OverflowError, match="mine") as caught:
            call()
        assert not isinstance(caught.value, UnknownIdError)

    class Good:
        def __index__(self):
            return 2**80

    with pytest.raises(IdRangeError):
        TOK.decode([Good()])


@pytest.mark.parametrize(
    "name", ["decode", "decode_bytes", "decode_single_token_bytes", "decode_tokens_bytes"]
)
def test_the_errors_of_tiktoken_are_kept(name):
    tiktoken = pytest.importorskip("tiktoken", reason="the real tiktoken is not installed")
    theirs = tiktoken.Encoding(
        "mine", pat_str=r"\S+|\s", mergeable_ranks=RANKS, special_tokens={"<|x|>": 257}
    )
    for bad in (-1, 300, 2**32, 2**64, 1.5, None):
        given = bad if name == "decode_single_token_bytes" else [bad]
        with pytest.raises(Exception) as expected:
            getattr(theirs, name)(given)
        with pytest.raises(expected.type):
            getattr(ENCODING, name)(given)


# ---------------------------------------------------------------------- lone surrogates

LONE = "a\ud800b"
TEXT = ["low lower lowest"]
Vocabulary, Tokenizer, Recipe = byteweld.Vocabulary, byteweld.Tokenizer, byteweld.Recipe
Encoding, Split, Replace = byteweld.tiktoken.Encoding, byteweld.Split, byteweld.Replace


def train(**options):
    return byteweld.train(documents=TEXT, **{"vocab_size": 300} | options)


SURROGATES = [
    lambda: Vocabulary(BYTES, pattern=LONE),
    lambda: Vocabulary(BYTES, special_tokens={LONE: 7}),
    lambda: Vocabulary(
        BYTES | {256: LONE.encode("utf-8", "surrogatepass")}, special_tokens={LONE: 256}
    ),
    lambda: Vocabulary(BYTES, added_tokens=[byteweld.AddedToken(LONE, 97, special=False)]),
    lambda: Vocabulary(BYTES, steps=[Split(LONE)]),
    lambda: Vocabulary(BYTES, steps=["prefix-space", Split(LONE, "removed")]),
    lambda: Vocabulary(BYTES, normalizer=[Replace("a", LONE)]),
    lambda: Vocabulary(BYTES, normalizer=[Replace(LONE, "a")]),
    lambda: Vocabulary(BYTES, roles={LONE: 7}),
    lambda: Tokenizer.from_merges(BYTES, [], special_tokens=[LONE]),
    lambda: Tokenizer.from_merges(BYTES, [], pattern=LONE),
    lambda: Tokenizer.from_ranks(RANKS, pattern=None, special_tokens={LONE: 300}),
    lambda: Encoding("x", pat_str=LONE, mergeable_ranks=RANKS, special_tokens={}),
    lambda: Recipe(special_tokens=(LONE,)),
    lambda: Recipe(pattern=LONE),
    lambda: byteweld.RECIPES["modern"].with_roles({"bos": LONE}),
    lambda: train(special_tokens=[LONE]),
    lambda: train(pattern=LONE),
    lambda: train(eos=LONE),
    lambda: train(recipe=LONE),
    lambda: byteweld.count("x", separator=LONE),
    lambda: byteweld.count("x", field=LONE),
    lambda: byteweld.Counts({b"a": 1}, boundaries=[LONE], pattern=LONE),
    lambda: TOK.encode("a", allowed_special={LONE}),
    lambda: TOK.encode("a", disallowed_special={LONE}),
    lambda: TOK.encode_batch(["a"], allowed_special=[LONE]),
    lambda: byteweld.get_encoding(LONE),
    lambda: byteweld.encoding_name_for_model(LONE),
]


@pytest.mark.parametrize("call", SURROGATES)
def test_a_lone_surrogate_is_named_where_it_is(call):
    with pytest.raises((ValueError, KeyError, OSError)) as caught:
        call()
    assert not isinstance(caught.value, UnicodeError)
    assert repr(LONE)[1:-1] in str(caught.value).replace("\\\\", "\\")


def test_text_with_lone_surrogates_is_encoded_as_in_tiktoken():
    assert TOK.encode(LONE) == TOK.encode("a\ufffdb")


def test_a_tokenizers_name_may_be_anything(tmp_path):
    tok = byteweld.Tokenizer(TOK.vocab, name=LONE)
    assert tok.name == LONE
    tok.save(tmp_path / "t.json")
    assert byteweld.load(tmp_path / "t.json") == tok


@pytest.mark.parametrize(
    "change",
    [
        {"added_tokens": [{"id": 5, "content": LONE, "special": True}]},
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": LONE}, "behavior": "Isolated"}},
        {"normalizer": {"type": "Replace", "pattern": {"String": LONE}, "content": "x"}},
        {"normalizer": {"type": "Replace", "pattern": {"String": "x"}, "content": LONE}},
        {"model": {"type": "BPE", "vocab": {LONE: 0}, "merges": []}},
        {"model": {"type": LONE}},
        {LONE: LONE},
    ],
)
def test_a_file_with_lone_surrogates_gives_an_error_of_byteweld_or_loads(tmp_path, change):
    import json

    TOK.save(tmp_path / "t.json")
    content = json.loads((tmp_path / "t.json").read_text())
    (tmp_path / "bad.json").write_text(json.dumps(content | change))
    try:
        byteweld.load(tmp_path / "bad.json").encode("low")
    except ByteweldError as error:
        assert str(error)
