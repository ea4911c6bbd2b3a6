"""byteweld.tiktoken against the real tiktoken: every public name, every argument, every error."""

from __future__ import annotations

import copy
import gzip
import hashlib
import inspect
import pickle
import random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import byteweld
import byteweld.tiktoken as ours
from tests.helpers.strategies import (
    ENDOFTEXT,
    NASTY,
    examples,
    rank_tables,
    rich_texts,
    surrogate_texts,
    texts,
)

real = pytest.importorskip("tiktoken", reason="the real tiktoken is not installed")

BASE = "https://openaipublic.blob.core.windows.net/"
NAMES = ["gpt2", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"]
PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BYTE_RANKS = {bytes([b]): b for b in range(256)}


@pytest.fixture(scope="module")
def cache(shared, tmp_path_factory):
    """A tiktoken cache of the shared rank files; both sides find it, so neither downloads."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        patch.delenv("BYTEWELD_PATH", raising=False)
        vocabs = shared / "vocabs"
        files = {
            f"encodings/{name}.tiktoken": vocabs / "tiktoken" / f"{name}.tiktoken.gz"
            for name in byteweld.encodings.RANK_FILES
        } | {
            f"gpt-2/encodings/main/{name}": vocabs / "gpt2" / f"{name}.gz"
            for name in ("encoder.json", "vocab.bpe")
        }
        for address, path in files.items():
            name = hashlib.sha1((BASE + address).encode()).hexdigest()
            (folder / name).write_bytes(gzip.decompress(path.read_bytes()))
        yield folder


@pytest.fixture(scope="module")
def pairs(cache):
    """Encodings of the two, by name."""
    return {name: (real.get_encoding(name), ours.get_encoding(name)) for name in NAMES}


@pytest.fixture(scope="module")
def small():
    """A small encoding, made by the two constructors."""
    merged = [b"he", b"ll", b"hell", b"hello", b" w", b"or", b" wor", b"ld", b"\xf0\x9f", b"\n\n"]
    ranks = BYTE_RANKS | {token: 256 + n for n, token in enumerate(merged)}
    options = {
        "pat_str": PATTERN,
        "mergeable_ranks": ranks,
        "special_tokens": {ENDOFTEXT: 300, "<|fim|>": 305},
    }
    return real.Encoding("small", **options), ours.Encoding("small", **options)


def outcome(call):
    """The result of a call, or the error that it raises."""
    try:
        value = call()
    except Exception as error:
        return error
    if isinstance(value, np.ndarray):
        return value.dtype, value.flags.writeable, value.tolist()
    return value


def check_same(first, second, call):
    expected, found = outcome(lambda: call(first)), outcome(lambda: call(second))
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), (expected, found)
        if isinstance(expected, KeyError):
            assert found.args == expected.args
    else:
        assert found == expected


# ---------------------------------------------------------------------- names and arguments


def test_the_public_names_are_tiktokens():
    for name in dir(real):
        is_public = not name.startswith("_") and not inspect.ismodule(getattr(real, name))
        assert not is_public or hasattr(ours, name), name
    for name in dir(real.Encoding):
        assert hasattr(ours.Encoding, name) or name in ("__weakref__", "__setstate__"), name


def test_the_arguments_are_tiktokens():
    for name, method in inspect.getmembers(real.Encoding, inspect.isfunction):
        if name in ("__getstate__", "__setstate__", "__repr__"):
            continue
        theirs = inspect.signature(method).parameters
        mine = inspect.signature(getattr(ours.Encoding, name)).parameters
        for key, parameter in theirs.items():
            assert key in mine, (name, key)
            assert mine[key].kind == parameter.kind, (name, key)
            if key != "num_threads":  # ours defaults to one per processor
                has_default = parameter.default is not parameter.empty
                assert (mine[key].default == parameter.default) or not has_default, (name, key)
                assert (mine[key].default is parameter.empty) == (not has_default), (name, key)
    for name in ("get_encoding", "list_encoding_names", "encoding_for_model"):
        theirs = list(inspect.signature(getattr(real, name)).parameters)
        assert list(inspect.signature(getattr(ours, name)).parameters) == theirs


def test_every_property_of_an_encoding_is_tiktokens(pairs, small):
    for first, second in [*pairs.values(), small]:
        for name in ("name", "n_vocab", "max_token_value", "special_tokens_set", "eot_token"):
            assert getattr(second, name) == getattr(first, name), name
        assert repr(second) == repr(first)
        assert second.token_byte_values() == first.token_byte_values()
        assert second._special_tokens == first._special_tokens
        assert second._mergeable_ranks == first._mergeable_ranks
        assert second == second and second != copy.copy(first) and hash(second) == hash(second)


def test_the_pattern_of_an_encoding_works_in_tiktoken(pairs):
    for first, second in pairs.values():
        again = real.Encoding(
            "again",
            pat_str=second._pat_str,
            mergeable_ranks=second._mergeable_ranks,
            special_tokens={**second._special_tokens, "<|new|>": 300_000},
        )
        for text in NASTY:
            if len(text) < 2000:
                assert again.encode_ordinary(text) == first.encode_ordinary(text)


# ---------------------------------------------------------------------- encoding

TEXTS = [
    *["", "hello world", "hello  \n world 's 1234567", f"hello {ENDOFTEXT}", ENDOFTEXT * 2],
    *[
        *("<|fim|>", "<|fim_prefix|>a", "<|endof", "👍 漢字", "\ud83d\udc4d", "a\ud83d"),
        "\udc4d\ud83d",
    ],
]
ALLOWED = ["all", set(), {ENDOFTEXT}, frozenset({ENDOFTEXT, "<|fim|>"}), {"unknown"}, None]
DISALLOWED = ["all", (), set(), {ENDOFTEXT}, ["hello"], "", "xyz", {"<|fim|>", "unknown"}, None]
CHOICES = [
    {
        **({} if allowed is None else {"allowed_special": allowed}),
        **({} if disallowed is None else {"disallowed_special": disallowed}),
    }
    for allowed in ALLOWED
    for disallowed in DISALLOWED
]


def check_choice(first, second, choice):
    for text in TEXTS:
        check_same(first, second, lambda enc, text=text: enc.encode(text, **choice))
        check_same(first, second, lambda enc, text=text: enc.encode_batch([text], **choice))
        if not any("\ud800" <= character <= "\udfff" for character in text):  # see the departures
            check_same(first, second, lambda enc, text=text: enc.encode_to_numpy(text, **choice))
    batch = [text for text in TEXTS if "|" not in text]
    check_same(first, second, lambda enc: enc.encode_batch(batch, num_threads=2, **choice))


@pytest.mark.parametrize("choice", CHOICES, ids=range(len(CHOICES)))
def test_encoding_is_tiktokens_for_every_choice_of_special_tokens(choice, small):
    check_choice(*small, choice)


@pytest.mark.parametrize("name", NAMES)
def test_public_encodings_take_every_choice_of_special_tokens(name, pairs):
    for choice in CHOICES:
        check_choice(*pairs[name], choice)


@pytest.mark.parametrize("name", NAMES)
def test_any_text_has_tiktokens_ids(name, pairs):
    first, second = pairs[name]

    @examples(100)
    @given(st.one_of(texts, rich_texts, surrogate_texts))
    def same(text):
        for call in (
            lambda enc: enc.encode(text),
            lambda enc: enc.encode(text, allowed_special="all"),
            lambda enc: enc.encode(text, disallowed_special=()),
            lambda enc: enc.encode_ordinary(text),
            lambda enc: enc.encode_ordinary_batch([text, "", text], num_threads=3),
            lambda enc: enc.decode(enc.encode_ordinary(text)),
            lambda enc: enc.decode_with_offsets(enc.encode_ordinary(text)),
            lambda enc: enc.decode_tokens_bytes(enc.encode_ordinary(text)),
        ):
            check_same(first, second, call)

    same()


@examples(60)
@given(
    rank_tables(), st.sampled_from([PATTERN, r"\S+|\s+", r"(?s:.+)"]), st.lists(texts, max_size=4)
)
def test_any_ranks_make_tiktokens_encoding(ranks, pattern, some):
    ranks = {bytes([b]): 1000 + b for b in range(256)} | ranks
    options = {"pat_str": pattern, "mergeable_ranks": ranks, "special_tokens": {ENDOFTEXT: 5000}}
    first, second = real.Encoding("any", **options), ours.Encoding("any", **options)
    assert second._mergeable_ranks == ranks and second._pat_str == pattern
    for text in some:
        check_same(first, second, lambda enc, text=text: enc.encode(text, allowed_special="all"))
        check_same(first, second, lambda enc, text=text: enc.encode_ordinary(text))
        check_same(first, second, lambda enc, text=text: enc._encode_bytes(text.encode()))
        if text:  # tiktoken panics on an empty piece
            check_same(first, second, lambda enc, text=text: enc._encode_single_piece(text))


@pytest.mark.parametrize("name", ["gpt2", "cl100k_base"])
def test_the_private_methods_that_others_use_are_tiktokens(name, pairs):
    first, second = pairs[name]

    @examples(100)
    @given(st.binary(max_size=30), texts)
    def same(raw, text):
        broken = text.encode() + raw
        check_same(first, second, lambda enc: enc._encode_bytes(raw))
        check_same(first, second, lambda enc: enc._encode_bytes(broken))
        check_same(first, second, lambda enc: enc._encode_only_native_bpe(text))
        assume(raw)
        check_same(first, second, lambda enc: enc._encode_single_piece(raw))

    same()
    for raw in (b" \xec\x8b\xa4\xed", b"a \n \xff", b"a  \xff", b"\n\n\xff", b"  a\t\xff b"):
        check_same(first, second, lambda enc, raw=raw: enc._encode_bytes(raw))


# ---------------------------------------------------------------------- decoding


@pytest.mark.parametrize("name", NAMES)
def test_any_ids_have_tiktokens_text(name, pairs):
    first, second = pairs[name]
    handlers = st.sampled_from(["strict", "replace", "ignore", "backslashreplace", "unknown"])

    @examples(150)
    @given(st.lists(st.integers(-1, first.n_vocab + 2), max_size=12), handlers)
    def same(ids, errors):
        for call in (
            lambda enc: enc.decode(ids),
            lambda enc: enc.decode(ids, errors),
            lambda enc: enc.decode(tokens=ids, errors=errors),
            lambda enc: enc.decode_bytes(tokens=ids),
            lambda enc: enc.decode_tokens_bytes(tokens=ids),
            lambda enc: enc.decode_with_offsets(tokens=ids),
            lambda enc: enc.decode_batch([ids, ids], errors=errors, num_threads=2),
            lambda enc: enc.decode_bytes_batch([ids], num_threads=2),
            lambda enc: [enc.decode_single_token_bytes(token=i) for i in ids],
            lambda enc: [enc.is_special_token(token=i) for i in ids],
        ):
            check_same(first, second, call)

    same()


def test_single_tokens_are_tiktokens(pairs, small):
    choose = random.Random(5)
    for first, second in [*pairs.values(), small]:
        tokens = [*choose.sample(first.token_byte_values(), 200), *first.special_tokens_set]
        for token in [*tokens, b"", b"hello qq", "hello qq", "hello", b"\xff\xfe\xfd", "漢漢", 5]:
            check_same(first, second, lambda enc, token=token: enc.encode_single_token(token))


# ---------------------------------------------------------------------- errors

WRONG = {
    "bytes": lambda enc: enc.encode(b"hello"),
    "ordinary bytes": lambda enc: enc.encode_ordinary(b"hello"),
    "bytes to numpy": lambda enc: enc.encode_to_numpy(b"hello"),
    "unstable bytes": lambda enc: enc.encode_with_unstable(b"hello"),
    "a batch of bytes": lambda enc: enc.encode_batch([b"hello"]),
    "an ordinary batch of bytes": lambda enc: enc.encode_ordinary_batch([b"hello"]),
    "a str as batch": lambda enc: enc.encode_batch("ab"),
    "an iterator as batch": lambda enc: enc.encode_ordinary_batch(iter(["a", "b"])),
    "nothing": lambda enc: enc.encode(None),
    "a number": lambda enc: enc.encode_batch(5),
    "a second argument": lambda enc: enc.encode("a", set()),
    "no argument": lambda enc: enc.encode(),
    "an unknown argument": lambda enc: enc.encode("a", special="all"),
    "no threads": lambda enc: enc.encode_batch(["a"], num_threads=0),
    "a special token": lambda enc: enc.encode(ENDOFTEXT),
    "a special token in a batch": lambda enc: enc.encode_batch(["a", ENDOFTEXT]),
    "a str that is allowed": lambda enc: enc.encode(
        "a", allowed_special="x", disallowed_special=()
    ),
    "an unknown id": lambda enc: enc.decode([97, 999_999]),
    "an unknown token": lambda enc: enc.decode_single_token_bytes(999_999),
    "unknown tokens": lambda enc: enc.decode_tokens_bytes([999_999]),
    "an unknown id in a batch": lambda enc: enc.decode_batch([[97], [999_999]]),
    "a negative id": lambda enc: enc.decode([-1]),
    "a huge id": lambda enc: enc.decode([2**32]),
    "a negative token": lambda enc: enc.decode_single_token_bytes(-1),
    "a float": lambda enc: enc.decode([1.5]),
    "a str of ids": lambda enc: enc.decode("abc"),
    "bytes of ids": lambda enc: enc.decode(b"hello"),
    "one id": lambda enc: enc.decode(5),
    "half a character": lambda enc: enc.decode([0xF0], errors="strict"),
    "offsets of half a character": lambda enc: enc.decode_with_offsets([0xF0]),
    "a special str": lambda enc: enc.is_special_token("a"),
    "a special truth": lambda enc: enc.is_special_token(True),
    "private bytes": lambda enc: enc._encode_bytes("a"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_are_tiktokens_errors(what, small):
    check_same(*small, WRONG[what])


def test_the_message_for_an_unknown_id_is_tiktokens(small):
    for enc in small:
        with pytest.raises(KeyError) as caught:
            enc.decode([999_999])
        assert caught.value.args == ("Invalid token for decoding: 999999",)


CONSTRUCTORS = {
    "nothing": {"mergeable_ranks": {}},
    "no pattern": {"pat_str": None},
    "half a pattern": {"pat_str": "("},
    "str tokens": {"mergeable_ranks": {"a": 0}},
    "a size": {"explicit_n_vocab": 257},
    "a wrong size": {"explicit_n_vocab": 256},
    "a gap": {"explicit_n_vocab": 257, "special_tokens": {ENDOFTEXT: 300}},
    "a word as pattern": {"pat_str": "gpt2"},
    "no special tokens": {"special_tokens": {}, "explicit_n_vocab": 256},
}


@pytest.mark.parametrize("what", CONSTRUCTORS)
def test_constructors_accept_and_refuse_what_tiktokens_does(what):
    def make(kind):
        options = {
            "pat_str": PATTERN,
            "mergeable_ranks": BYTE_RANKS,
            "special_tokens": {ENDOFTEXT: 256},
        }
        return kind("made", **(options | CONSTRUCTORS[what])).n_vocab

    check_same(real.Encoding, ours.Encoding, make)


def test_names_of_encodings_are_tiktokens(pairs):
    assert ours.list_encoding_names() == real.list_encoding_names()
    for name in ("nope", "", 5, None, b"gpt2"):
        check_same(real, ours, lambda module, name=name: module.get_encoding(name))
    for name in NAMES:
        assert ours.get_encoding(name) is ours.get_encoding(name)
        assert ours.get_encoding(name).vocab is byteweld.get_encoding(name).vocab


def test_models_are_tiktokens():
    from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

    models = [*MODEL_TO_ENCODING, *MODEL_PREFIX_TO_ENCODING, "", "nope", "gpt-4x", "o", "o1"]
    models += [f"{start}2026-01-01" for start in MODEL_PREFIX_TO_ENCODING]
    models += [model[:-1] for model in models] + [f"{model}-x" for model in models]
    for model in models:
        expected = outcome(lambda model=model: real.encoding_name_for_model(model))
        found = outcome(lambda model=model: ours.encoding_name_for_model(model))
        assert isinstance(found, KeyError) if isinstance(expected, KeyError) else found == expected
    with pytest.raises(KeyError):
        ours.encoding_for_model("nope")


def test_the_facts_about_public_encodings_are_tiktokens(cache):
    from tiktoken_ext import openai_public

    for name, public in byteweld.encodings.PUBLIC_ENCODINGS.items():
        known = openai_public.ENCODING_CONSTRUCTORS[name]()
        assert public.special_tokens == known["special_tokens"], name


# ---------------------------------------------------------------------- pickling, and the rest


def test_encodings_survive_pickling(pairs, small):
    for _, enc in pairs.values():
        pickled = pickle.dumps(enc)
        assert len(pickled) < 200  # by name
        assert pickle.loads(pickled) is enc and copy.deepcopy(enc) is enc
    _, enc = small
    for again in (pickle.loads(pickle.dumps(enc)), copy.deepcopy(enc)):
        assert type(again) is ours.Encoding and again is not enc and again.name == "small"
        assert again.encode(f"hello{ENDOFTEXT}", allowed_special="all") == [259, 300]
        assert again._pat_str == PATTERN and again._mergeable_ranks == enc._mergeable_ranks


def test_an_encoding_with_the_name_of_a_public_one_is_pickled_by_value(pairs):
    other = ours.Encoding(
        "gpt2", pat_str=PATTERN, mergeable_ranks=BYTE_RANKS, special_tokens={"<|x|>": 256}
    )
    again = pickle.loads(pickle.dumps(other))
    assert again.n_vocab == 257 and again is not pairs["gpt2"][1]


def test_an_encoding_is_also_a_tokenizer(small, tmp_path):
    _, enc = small
    assert isinstance(enc, byteweld.Tokenizer)
    assert enc.count("hello world") == len(enc.encode("hello world"))
    assert enc.decode_stream().feed(enc.encode("hello")) == "hello"
    (tmp_path / "a.txt").write_text("hello world")
    ids, _ = enc.encode_files(tmp_path / "a.txt")
    assert ids.tolist() == enc.encode("hello world")
    enc.save(tmp_path / "small.json")
    loaded = byteweld.load(tmp_path / "small.json")
    assert loaded.vocab == enc.vocab
    assert ours.Encoding.from_tokenizer(loaded).encode("hello world") == enc.encode("hello world")
    assert repr(ours.Encoding.from_ranks(BYTE_RANKS, pattern=None, name="x")) == "<Encoding 'x'>"
    tokens = {rank: token for token, rank in BYTE_RANKS.items()}
    assert ours.Encoding.from_merges(tokens, []).encode("a") == [97]


def test_where_tiktoken_panics_or_drops_text_this_does_not(small):
    """The departures of docs/migrating/tiktoken.md."""
    first, second = small
    # Lone surrogates are repaired everywhere, not in `encode` alone.
    for text in ("\ud83d", "a\ud83d\udc4d"):
        assert isinstance(outcome(lambda text=text: first.encode_to_numpy(text)), UnicodeError)
        assert second.encode_to_numpy(text).tolist() == second.encode(text) == first.encode(text)
    # A list of special tokens works like a set.
    assert second.encode(ENDOFTEXT, allowed_special=[ENDOFTEXT]) == [300]
    # An empty piece has no ids; tiktoken panics.
    assert second._encode_single_piece(b"") == []
    # Text that the pattern does not match is kept; tiktoken drops it.
    options = {"pat_str": "a+", "mergeable_ranks": BYTE_RANKS, "special_tokens": {}}
    assert real.Encoding("a", **options).encode("aba") == [97, 97]
    assert ours.Encoding("a", **options).encode("aba") == [97, 98, 97]
