"""Calls with short texts, which take a shortcut to the engine, give the same answers as others."""

from __future__ import annotations

import gc
import os
import signal
import threading
import warnings
import weakref

import pytest

import byteweld
from byteweld import SpecialTokenError, Tokenizer, Vocabulary
from byteweld.tiktoken import Encoding

END = "<|endoftext|>"
CALLS = {
    "encode": Tokenizer.encode,
    "encode_to_numpy": Tokenizer.encode_to_numpy,
    "count": Tokenizer.count,
}


def _train():
    return byteweld.train(
        iter(["low low low lower lower newest newest"]),
        vocab_size=266,
        recipe="from-scratch",
        special_tokens=[END],
    )


@pytest.fixture(scope="module")
def tok():
    return _train()


@pytest.fixture
def built(monkeypatch):
    """The vocabularies of which an engine was built during a test."""
    found = []
    not_ordinary = Vocabulary.not_ordinary

    def watched(vocab):
        if len(vocab):  # training tries its pattern with an empty one
            found.append(vocab)
        return not_ordinary(vocab)

    monkeypatch.setattr(Vocabulary, "not_ordinary", watched)
    return found


def _number(answer):
    return answer if isinstance(answer, int) else len(answer)


# Around the length from which the GIL is released.
@pytest.mark.parametrize("length", [0, 1, 3, 15, 16, 17, 100, 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("letters", ["low lower ", "é", "低い", "🙂 newest"])
def test_lists_arrays_and_counts_agree_at_every_length(tok, letters, length):
    text = (letters * length)[:length]
    expected, _ = tok.encode_with_offsets(text)
    assert tok.decode(expected) == text
    assert tok.encode(text) == tok.encode_ordinary(text) == expected
    array = tok.encode_to_numpy(text)
    assert array.dtype == "uint32" and array.tolist() == expected
    assert tok.count(text) == tok.count(text, limit=1 << 20) == len(expected)


def test_encoding_again_does_not_change_an_earlier_array(tok):
    first = tok.encode_to_numpy("low")
    before = first.tolist()
    tok.encode_to_numpy("newest")
    assert first.tolist() == before
    first[:] = 0  # it is the caller's own
    assert tok.encode_to_numpy("low").tolist() == before


@pytest.mark.parametrize("name", CALLS)
def test_special_tokens_are_refused_recognized_or_text_as_requested(tok, name):
    call, text = CALLS[name], f"low{END}"
    for refusing in [{}, {"disallowed_special": "all"}, {"allowed_special": set()}]:
        with pytest.raises(SpecialTokenError, match="endoftext"):
            call(tok, text, **refusing)
    assert _number(call(tok, text, allowed_special={END})) == tok.count("low") + 1
    as_text = len(tok.encode_ordinary(text))
    assert _number(call(tok, text, disallowed_special=())) == as_text > tok.count("low") + 1


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("argument", ["allowed_special", "disallowed_special"])
@pytest.mark.parametrize("text", ["", END])
def test_a_string_that_is_not_all_is_not_a_set_of_special_tokens(tok, name, argument, text):
    with pytest.raises(TypeError, match=f"{argument} is '.*'; it must be 'all' or a set"):
        CALLS[name](tok, "low", **{argument: text})


def test_an_engine_is_built_at_the_first_call_and_once(built):
    tok = _train()
    assert built == []
    together = threading.Barrier(4)
    answers = []

    def call():
        together.wait()
        answers.append(tok.encode("lower"))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert answers == [tok.encode("lower")] * 4


def test_a_fork_while_an_engine_is_built_does_not_hang_the_child(monkeypatch):
    tok = _train()
    is_building, may_go_on = threading.Event(), threading.Event()
    traits = Vocabulary.traits

    def slow(vocab):
        if threading.current_thread() is builder:
            is_building.set()
            may_go_on.wait(10)
        return traits(vocab)

    monkeypatch.setattr(Vocabulary, "traits", slow)
    builder = threading.Thread(target=tok.encode, args=("lower",))
    builder.start()
    is_building.wait(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is the point
        child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(0 if len(tok.encode("lower")) > 0 else 1)
    may_go_on.set()
    builder.join()
    assert os.waitpid(child, 0)[1] == 0


def test_an_engine_that_cannot_be_built_raises_at_every_call(monkeypatch):
    tok = _train()

    def fail(vocab):
        raise RuntimeError("no traits")

    with monkeypatch.context() as patched:
        patched.setattr(Vocabulary, "traits", fail)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no traits"):
                tok.encode("low")
    assert tok.decode(tok.encode("low")) == "low"


@pytest.mark.parametrize("first", ["the tokenizer", "its other face"])
def test_a_tokenizer_and_its_encoding_share_one_engine(built, first):
    tok = _train()
    face = Encoding.from_tokenizer(tok)
    assert built == []
    pair = (tok, face) if first == "the tokenizer" else (face, tok)
    assert pair[0].encode("lower") == pair[1].encode("lower")
    assert len(built) == 1 and tok._encoder is face._encoder


def test_a_tokenizer_that_never_encoded_is_freed_at_once():
    tok = _train()
    watched = weakref.ref(tok)
    gc.disable()
    try:
        del tok
        assert watched() is None
    finally:
        gc.enable()
