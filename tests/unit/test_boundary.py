"""The boundary to the engine: str, bytes, lists and arrays of every kind, in and out.

The tokens are the 256 bytes, so ids are the bytes of UTF-8, and Python's own answer is at hand.
"""

from __future__ import annotations

import enum
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld import Tokenizer, UnknownIdError
from tests.helpers.programs import run_python

BYTES = {bytes([byte]): byte for byte in range(256)}
# Tokens of 1, 15, 16, 17 and 300 bytes: at most 16 are copied at once.
LENGTHS = (15, 16, 17, 300)


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_ranks(BYTES, pattern=None)


@pytest.fixture(scope="module")
def long_tok() -> Tokenizer:
    long = {bytes([97 + n]) * length: 256 + n for n, length in enumerate(LENGTHS)}
    return Tokenizer.from_ranks(BYTES | long, pattern=None)


# ---------------------------------------------------------------------- text in

# One, two and four bytes per character, on both sides of each boundary of UTF-8, no surrogates.
KINDS = {
    "ascii": "az\x00\x7f",
    "one byte": "a\x7f\x80\xa0ÿ",
    "two bytes": "a\x7f\x80ÿĀ߿ࠀ漢\ud7ff\ue000\uffff",
    "four bytes": "a\x80߿ࠀ漢\uffff\U00010000😀\U0010ffff",
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_str_becomes_its_utf8(tok, kind, data):
    alphabet = st.sampled_from(KINDS[kind])
    # Runs, so that some blocks of 16 characters are ASCII and some are not.
    runs = st.tuples(alphabet, st.integers(1, 40)).map(lambda run: run[0] * run[1])
    text = "".join(data.draw(st.lists(st.one_of(alphabet, runs), max_size=40)))
    ids = list(text.encode())
    assert tok.encode(text) == tok.encode_ordinary(text) == ids
    assert tok.encode_batch([text]) == [ids] and tok.count(text) == len(ids)
    assert tok.encode_to_numpy(text).tolist() == ids


@pytest.mark.parametrize("length", [*range(40), 254, 255, 256, 32_766, 32_767, 32_768, 70_000])
@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
def test_a_str_of_any_length_becomes_its_utf8(tok, character, length):
    for text in (character * length, character * length + "a", "a" * length + character):
        assert (
            tok.encode_to_numpy(text).tobytes()
            == np.frombuffer(text.encode(), np.uint8).astype(np.uint32).tobytes()
        )


@pytest.mark.parametrize("position", [0, 1, 15, 16, 17, 40])
@pytest.mark.parametrize("around", ["a", "é", "漢", "😀"])
@pytest.mark.parametrize("surrogate", ["\ud800", "\udbff", "\udc00", "\udfff"])
def test_a_lone_surrogate_is_replaced_anywhere(tok, around, surrogate, position):
    text = around * position + surrogate + around * (40 - position)
    expected = list(text.replace(surrogate, "\ufffd").encode())
    assert tok.encode(text) == tok.encode_ordinary(text) == expected
    assert tok.encode(text, disallowed_special=()) == expected
    assert tok.encode_batch(["a", text]) == [[97], expected]


def test_a_str_whose_utf8_python_has_cached_encodes_the_same(tok):
    import ctypes

    text = "é漢😀" * 30
    before = tok.encode(text)
    size = sys.getsizeof(text)
    ctypes.pythonapi.PyUnicode_AsUTF8AndSize.restype = ctypes.c_void_p
    ctypes.pythonapi.PyUnicode_AsUTF8AndSize(ctypes.py_object(text), None)
    assert sys.getsizeof(text) > size, "Python has not cached the UTF-8"
    assert tok.encode(text) == before == list(text.encode())


def test_encoding_does_not_make_a_str_cache_its_utf8(tok):
    text = "".join(["é漢😀"] * 30)
    size = sys.getsizeof(text)
    tok.encode(text)
    assert sys.getsizeof(text) == size


class _Str(str):
    pass


@pytest.mark.parametrize("text", ["", "abc", "é", "漢a", "😀"])
def test_a_subclass_of_str_is_a_str(tok, text):
    assert tok.encode(_Str(text)) == list(text.encode())


@pytest.mark.parametrize("text", [5, None, ["a"], memoryview(b"a")])
def test_what_is_not_text_is_a_type_error_that_names_it(tok, text):
    with pytest.raises(TypeError, match=f"expected str or bytes, found {type(text).__name__}"):
        tok.encode(text)


# ---------------------------------------------------------------------- lists out


def test_ids_in_lists_are_plain_integers_that_nothing_else_owns(tok):
    text = bytes(range(256)) * 3
    ids = tok.encode(text)
    assert ids == list(text) and {type(token_id) for token_id in ids} == {int}
    ids[0] = "mine"
    assert tok.encode(text) == list(text)


def test_integers_outlive_their_tokenizer_and_none_leaks():
    ranks = BYTES | {b"ab" * n: 10_000 + n for n in range(1, 50)}
    big = 10_049  # too large for the integers that Python caches

    def references() -> int:
        tok = Tokenizer.from_ranks(ranks, pattern=None)
        lists = [tok.encode("ab" * 49) for _ in range(3)]
        assert lists == [[big]] * 3 and lists[0][0] is lists[2][0]
        integer = lists[0][0]
        held = sys.getrefcount(integer)
        del lists
        assert sys.getrefcount(integer) == held - 3
        del tok
        gc.collect()
        assert integer == big
        return sys.getrefcount(integer)

    assert references() == 2  # the name, and the argument


# ---------------------------------------------------------------------- ids in


class _Int(int):
    pass


class _Other(int):
    def __index__(self) -> int:
        return 98  # not called: it is an integer already


class _Enum(enum.IntEnum):
    A = 97


class _Index:
    def __index__(self) -> int:
        return 97

    def __repr__(self) -> str:
        return "an index"  # the same in every process, as part of test names


class _List(list):  # type: ignore[type-arg]
    pass


GOOD_IDS: list[tuple[Any, bytes]] = [
    ([], b""),
    ((), b""),
    ([0, 255], b"\x00\xff"),
    ((97, 98), b"ab"),
    ([True, False], b"\x01\x00"),
    ([97, _Int(98)], b"ab"),
    ([97, _Other(97)], b"aa"),
    ([98, _Enum.A], b"ba"),
    ([98, _Index()], b"ba"),
    (_List([97]), b"a"),
    (list(np.array([97, 98])), b"ab"),
    (np.array([], np.uint32), b""),
    (np.arange(97, 105, dtype=np.uint32)[::3], b"adg"),
    (np.arange(97, 105, dtype=np.uint32)[::-1], b"hgfedcba"),
    (np.arange(97, 105)[::3], b"adg"),
    (np.array([97, 98], ">u4"), b"ab"),
    (np.frombuffer(b"\0" + np.array([97, 98], np.uint32).tobytes(), np.uint32, offset=1), b"ab"),
]


@pytest.mark.parametrize(("ids", "expected"), GOOD_IDS, ids=repr)
def test_ids_are_read_from_whatever_holds_integers(tok, ids, expected):
    assert tok.decode_bytes(ids) == expected
    assert tok.decode(ids, "surrogateescape") == expected.decode(errors="surrogateescape")


@pytest.mark.parametrize(
    "ids",
    [
        *([97, bad] for bad in (97.0, None, "a", b"a", [97])),
        *(np.array(bad) for bad in ([97.0], [True], ["a"], [[97, 98]], 97)),
        np.array([97, "a"], object),
        "ab",
        b"ab",
        5,
        None,
    ],
    ids=repr,
)
def test_what_is_not_an_integer_is_a_type_error(tok, ids):
    for method in (tok.decode, tok.decode_bytes):
        with pytest.raises(TypeError):
            method(ids)


@pytest.mark.parametrize("change", [list.clear, lambda ids: ids.extend([98] * 10_000)])
def test_a_list_that_changes_while_it_is_read_is_read_as_python_reads_it(tok, change):
    def changing() -> list[Any]:
        ids: list[Any] = [97, None, 99]

        class Changing:
            def __index__(self) -> int:
                change(ids)
                return 97

        ids[1] = Changing()
        return ids

    expected = bytes(token_id.__index__() for token_id in changing())
    assert tok.decode_bytes(changing()) == expected


# ---------------------------------------------------------------------- decoding


@given(ids=st.lists(st.sampled_from([0x61, 0xC3, 0xA9, 256, 257, 258, 259]), max_size=60))
def test_tokens_of_all_lengths_decode_to_their_bytes(long_tok, ids):
    tokens = [long_tok.decode_single_token_bytes(token_id) for token_id in ids]
    expected = b"".join(tokens)
    for given_ids in (ids, tuple(ids), np.array(ids, np.uint32)):
        assert long_tok.decode_bytes(given_ids) == expected
        assert long_tok.decode(given_ids) == expected.decode(errors="replace")


@pytest.mark.parametrize("count", [16_383, 16_384, 16_385, 100_000])
@pytest.mark.parametrize("last", [[], [0xC3, 0xA9], [0xC3], [259], [259, 97]])
def test_many_ids_decode_as_few_do(long_tok, count, last):
    ids = [97, 98, 256, 258, 97] * (count // 5) + last
    expected = b"".join(map(long_tok.decode_single_token_bytes, ids))
    for given_ids in (ids, np.array(ids, np.uint32)):
        assert long_tok.decode_bytes(given_ids) == expected
        assert long_tok.decode(given_ids) == expected.decode(errors="replace")
        with pytest.raises(UnknownIdError, match="260"):
            long_tok.decode_bytes([*given_ids, 260])
        with pytest.raises(UnknownIdError, match="260"):
            long_tok.decode([260, *given_ids])


ERRORS = ["strict", "replace", "ignore", "backslashreplace", "surrogateescape", "surrogatepass"]
WRONG: list[Any] = [
    *("xmlcharrefreplace", "no such", "re\0place", "é", "\ud800", "", 5, None, b"strict")
]


@pytest.mark.parametrize("errors", [*ERRORS, *WRONG], ids=repr)
@pytest.mark.parametrize(
    "data", [b"", b"a", b"ab", b"a\xff", b"\xff", b"\xed\xa0\x80", "é漢😀".encode(), b"a\xe6\xbc"]
)
@pytest.mark.parametrize("many", [1, 20_000])
def test_errors_are_handled_as_python_handles_them(tok, data, errors, many):
    data *= many
    assert _answer(lambda: tok.decode(list(data), errors)) == _answer(
        lambda: data.decode(errors=errors)
    )


def _answer(call: Callable[[], str]) -> object:
    try:
        return call()
    except (ValueError, LookupError, TypeError) as error:
        return type(error)


def test_a_handler_may_decode_itself(tok):
    import codecs

    codecs.register_error("byteweld-test", lambda error: (tok.decode([0x3F, 0xFF]), error.end))
    assert tok.decode([97, 0xFF, 98], "byteweld-test") == "a?�b"


def test_numpy_is_not_imported_for_lists():
    code = (
        "import sys, byteweld; tok = byteweld.Tokenizer.from_ranks("
        "{bytes([b]): b for b in range(256)}, pattern=None); "
        "assert tok.decode(tok.encode('é')) == 'é'; print('numpy' in sys.modules)"
    )
    done = run_python("-c", code)
    assert done.stdout == "False\n"


def test_an_array_modified_while_it_is_decoded_gives_bytes_or_an_error():
    ranks = BYTES | {b"x" * 300: 256}
    tok = Tokenizer.from_ranks(ranks, pattern=None)
    ids = np.zeros(200_000, np.uint32)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            ids[:] = 256
            ids[:] = 300  # unknown
            ids[:] = 0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(30):
            try:
                data = tok.decode_bytes(ids)
            except (UnknownIdError, RuntimeError):
                continue
            assert set(data) <= {0, ord("x")}
    finally:
        done.set()
        writer.join()
