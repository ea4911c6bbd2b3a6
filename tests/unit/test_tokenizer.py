"""Tokenizer: arguments and their errors, special tokens, roles, properties, files."""

from __future__ import annotations

import pickle

import pytest

import byteweld
from byteweld import (
    PATTERNS,
    AddedToken,
    PatternError,
    SpecialTokenError,
    Tokenizer,
    UnsupportedError,
    Vocabulary,
    VocabularyError,
)
from byteweld.evaluation import pattern_engine
from tests.helpers.streams import streamed

BYTES = {byte: bytes([byte]) for byte in range(256)}
RANKS = {bytes([byte]): byte for byte in range(256)}
END = "<|endoftext|>"


@pytest.fixture(scope="module")
def tok():
    document = f"low low low lower lower{END}newest newest"
    return byteweld.train(
        iter([document] * 2), vocab_size=266, recipe="from-scratch", special_tokens=[END]
    )


@pytest.fixture(scope="module")
def bpe1():
    return byteweld.train(iter(["the the the"]), vocab_size=262, recipe="bpe1")


# ---------------------------------------------------------------------- texts


@pytest.mark.parametrize("text", [None, 5, ["low"], {"low"}, 1.5])
@pytest.mark.parametrize(
    "method",
    [
        *("encode", "encode_ordinary", "encode_to_numpy", "encode_with_offsets", "count"),
        *("encode_single_token", "pretokenize", "encode_with_unstable"),
    ],
)
def test_texts_of_another_type_are_type_errors(tok, method, text):
    with pytest.raises(TypeError):
        getattr(tok, method)(text)


def test_empty_texts_and_batches_have_no_ids(tok):
    assert tok.encode("") == tok.encode(b"") == tok.encode_ordinary("") == []
    assert tok.encode_batch([]) == [] and tok.encode_batch(["", "low"])[0] == []
    assert tok.encode_with_offsets("") == ([], [])
    assert tok.encode_to_numpy("").tolist() == []
    ids, offsets = tok.encode_ragged([])
    assert ids.tolist() == [] and offsets.tolist() == [0]
    assert list(streamed(tok, [])) == []
    assert tok.count("") == tok.count("", limit=0) == 0
    assert tok.truncate("", 0) == "" and tok.truncate(b"", 5) == b""
    assert tok.decode([]) == "" and tok.decode_bytes([]) == b""
    assert tok.decode_with_offsets([]) == ("", [])


@pytest.mark.parametrize("threads", [0, -1])
def test_a_number_of_threads_below_one_is_a_value_error(tok, threads):
    with pytest.raises(ValueError, match="threads"):
        tok.encode_batch(["low"], num_threads=threads)


# ---------------------------------------------------------------------- special tokens


def test_special_tokens_in_text_raise_and_the_error_names_both_ways_out(tok):
    for call in (
        lambda: tok.encode(f"low{END}"),
        lambda: tok.encode(f"low{END}".encode()),
        lambda: tok.count(f"low{END}"),
        lambda: tok.encode_batch(["low", f"low{END}"]),
        lambda: tok.encode_ragged([f"low{END}"]),
        lambda: tok.encode_to_numpy(END),
        lambda: tok.encode_with_offsets(END),
        lambda: tok.count(f"low{END}", limit=100),
        lambda: tok.truncate(f"low{END}", 100),
        lambda: tok.encode_with_unstable(END),
        lambda: list(streamed(tok, [END[:5], END[5:]])),
    ):
        with pytest.raises(SpecialTokenError) as caught:
            call()
        message = str(caught.value)
        assert repr(END) in message
        assert f"allowed_special={{{END!r}}}" in message and "disallowed_special=()" in message
        assert isinstance(caught.value, ValueError)


def test_a_special_token_beyond_the_limit_still_raises_or_is_never_reached(tok):
    text = "low " * 1000 + END
    with pytest.raises(SpecialTokenError):
        tok.count(text)
    assert tok.count(text, limit=3, disallowed_special=()) is None


def test_many_choices_of_special_tokens_stay_correct(tok):
    for n in range(200):
        assert tok.encode(f"low {n}", disallowed_special={f"x{n}"})
        with pytest.raises(SpecialTokenError):
            tok.encode(f"x{n}", disallowed_special={f"x{n}"})


# ---------------------------------------------------------------------- roles and alphabets


def test_bos_and_eos_are_added_on_request(bpe1):
    assert bpe1.encode("the") == [261]
    assert bpe1.encode("the", add_bos=True) == [256, 261]
    assert bpe1.encode("the", add_bos=True, add_eos=True) == [256, 261, 257]
    batch = bpe1.encode_batch(["the", ""], add_bos=True, add_eos=True)
    assert batch == [[256, 261, 257], [256, 257]]


def test_a_role_that_the_vocabulary_lacks_is_unsupported(tok):
    for role in ("bos", "eos"):
        with pytest.raises(UnsupportedError, match=f"no {role} token"):
            tok.encode("low", **{f"add_{role}": True})
        with pytest.raises(UnsupportedError, match=f"no {role} token"):
            tok.encode_batch(["low"], **{f"add_{role}": True})


def test_a_character_outside_ascii_is_unk_or_an_error_that_names_it():
    with_unk = byteweld.train(iter(["ab ab"]), vocab_size=103, recipe="ck-ascii")
    unk = with_unk.vocab.roles["unk"]
    assert with_unk.encode("aé漢b").count(unk) == 2
    assert with_unk.encode_with_offsets("aé漢b")[1] == [(0, 1), (1, 3), (3, 6), (6, 7)]
    without = Tokenizer(Vocabulary({0: b"a", 1: b"b"}, alphabet="ascii"))
    for call in (without.encode, without.count, lambda text: without.encode_batch(["a", text])):
        with pytest.raises(ValueError, match=r"é.*byte 2"):
            call("abé")


# ---------------------------------------------------------------------- limits


def test_a_limit_is_a_whole_number(tok):
    for call in (lambda limit: tok.count("low", limit=limit), lambda n: tok.truncate("low", n)):
        with pytest.raises(ValueError, match="limit is -1"):
            call(-1)
        for limit in ("3", 1.5):
            with pytest.raises(TypeError):
                call(limit)


def test_a_limit_may_be_larger_than_any_text(tok):
    assert tok.count("low", limit=2**70) == tok.count("low")
    assert tok.truncate("low", 2**70) == "low"


# ---------------------------------------------------------------------- decoding


def test_decoding_with_offsets_counts_characters():
    tok = Tokenizer.from_ranks(RANKS, pattern=None)
    assert tok.decode_with_offsets(list("aé漢".encode())) == ("aé漢", [0, 1, 1, 2, 2, 2])


# ---------------------------------------------------------------------- making


def test_merges_make_a_tokenizer():
    tok = Tokenizer.from_merges(
        BYTES | {256: b"bc", 257: b"ab"}, [(b"b", b"c"), (b"a", b"b")], special_tokens=[END, "<s>"]
    )
    assert tok.encode("abc") == [97, 256]
    assert dict(tok.vocab.special_tokens) == {END: 258, "<s>": 259}
    assert tok.vocab.pattern == PATTERNS["gpt2"]
    listed = Tokenizer.from_merges(BYTES | {256: END.encode()}, [], special_tokens=[END])
    assert listed.eot_token == 256 and len(listed) == 257
    placed = Tokenizer.from_merges(BYTES, [], special_tokens={END: 1000}, pattern=None)
    assert placed.encode(END, allowed_special="all") == [1000] and len(placed) == 257
    assert placed.n_vocab == 1001


@pytest.mark.parametrize(
    ("vocab", "merges", "options", "kind", "words"),
    [
        (BYTES, [(b"a", b"b")], {}, VocabularyError, "merge 0.*b'ab'"),
        (BYTES, [("a", "b")], {}, (VocabularyError, TypeError), "'a'"),
        ({0: b"a"}, [], {}, VocabularyError, "255 of 256"),
        (BYTES, [(b"a",)], {}, (ValueError, TypeError), None),
        (BYTES, [], {"special_tokens": "abc"}, TypeError, "expected a list or a mapping"),
        (BYTES, [], {"special_tokens": {END: 97}}, VocabularyError, "which is the token b'a'"),
        (BYTES, [], {"special_tokens": ["<a>", "<a>"]}, VocabularyError, "'<a>' is given twice"),
        (BYTES, [], {"pattern": "gpt3"}, PatternError, "did you mean 'gpt2'"),
        (BYTES, [], {"pattern": "(a"}, PatternError, "compile"),
        (BYTES | {256: b"ab"}, [(b"a", b"b")] * 2, {}, VocabularyError, "merges 0 and 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_merges_are_refused(vocab, merges, options, kind, words):
    with pytest.raises(kind, match=words):
        Tokenizer.from_merges(vocab, merges, **options)


def test_ranks_make_a_tokenizer():
    tok = Tokenizer.from_ranks(RANKS | {b"ab": 256, b"abc": 257}, pattern="gpt2", name="mine")
    assert tok.encode("abc") == [257] and tok.name == "mine"
    assert tok.vocab.merges == [(b"a", b"b"), (b"ab", b"c")]
    # "abcd" cannot be made of two tokens, so merges cannot be recovered; the ranks still decide.
    odd = Tokenizer.from_ranks(RANKS | {b"abcd": 256}, pattern="gpt2")
    assert odd.encode("abcd") == [256] and odd.vocab.ranking == "ranks"


def test_a_rank_file_may_hold_an_empty_token_and_two_special_tokens_with_one_id():
    specials = {"<s>": 300, "<t>": 300}
    tok = Tokenizer.from_ranks(RANKS | {b"": 299}, pattern="gpt2", special_tokens=specials)
    assert tok.encode("<s><t>", allowed_special="all") == [300, 300]
    assert tok.decode([300, 299]) == "<s>" and 299 not in tok.encode("abc abc")


@pytest.mark.parametrize(
    ("ranks", "options", "kind", "words"),
    [
        (RANKS | {b"ab": 97}, {}, VocabularyError, "same rank"),
        ({b"a": 0}, {}, VocabularyError, "255 of 256"),
        (RANKS | {b"ab": -5}, {}, VocabularyError, "-5"),
        (RANKS | {b"ab": 2**40}, {}, VocabularyError, str(2**40)),
        (RANKS | {"ab": 256}, {}, (VocabularyError, TypeError), "ab"),
        (
            *(RANKS | {b"xyz": 256}, {"special_tokens": {"<|e|>": 256}}, VocabularyError),
            r"'<\|e\|>' has id 256, which is the token b'xyz'",
        ),
        (RANKS, {"special_tokens": ["<s>"]}, (TypeError, VocabularyError, ValueError), None),
        (None, {}, TypeError, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_ranks_are_refused(ranks, options, kind, words):
    with pytest.raises(kind, match=words):
        Tokenizer.from_ranks(ranks, pattern=None, **options)


@pytest.mark.parametrize("vocab", [None, "tokenizer.json", BYTES])
def test_a_tokenizer_needs_a_vocabulary(vocab):
    with pytest.raises(TypeError):
        Tokenizer(vocab)


# ---------------------------------------------------------------------- properties


def test_a_tokenizer_describes_itself(tok):
    assert repr(tok) == f"<Tokenizer 266 tokens, pattern 'gpt2', sha {tok.vocab.fingerprint[:8]}>"
    assert len(tok) == tok.n_vocab == tok.max_token_value + 1 == 266
    assert tok.special_tokens_set == {END}
    assert tok.eot_token == 256 and tok.is_special_token(256) and not tok.is_special_token(97)
    assert tok.token_byte_values() == sorted(token for _, token in tok.vocab.ordinary())
    assert pattern_engine(tok) == "scanner"
    with pytest.raises(TypeError):
        tok.is_special_token("low")


def test_a_vocabulary_without_endoftext_has_no_eot_token(bpe1):
    with pytest.raises(KeyError, match="endoftext"):
        _ = bpe1.eot_token


def test_tokenizers_of_equal_vocabularies_are_equal(tok):
    again = Tokenizer(tok.vocab, name="other")
    assert again == tok and hash(again) == hash(tok)
    assert tok != Tokenizer.from_ranks(RANKS, pattern=None)
    assert tok != tok.vocab


def test_the_properties_of_a_tokenizer_cannot_be_changed(tok):
    for name in ("vocab", "training", "name", "n_vocab"):
        with pytest.raises(AttributeError):
            setattr(tok, name, None)
    tok.special_tokens_set.clear()
    assert tok.special_tokens_set == {END}


# ---------------------------------------------------------------------- files


def test_saving_overwrites_only_on_request(tok, tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text("precious")
    with pytest.raises(FileExistsError, match=r"tokenizer\.json"):
        tok.save(file)
    assert file.read_text() == "precious"
    tok.save(file, overwrite=True)
    assert byteweld.load(file) == tok
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["tokenizer.json", "tokenizer.training.json"]


def test_an_unknown_format_or_option_is_an_error_with_the_nearest(tok, tmp_path):
    with pytest.raises(UnsupportedError, match="did you mean 'huggingface'"):
        tok.save(tmp_path / "x.json", format="hugginface")
    with pytest.raises(UnsupportedError, match="format="):
        tok.save(tmp_path / "x.unknown")
    tok.save(tmp_path / "x.tiktoken")
    with pytest.raises(TypeError, match="did you mean 'pattern'"):
        byteweld.load(tmp_path / "x.tiktoken", patern="gpt2")


def test_a_loaded_tokenizer_is_named_after_its_file(tok, tmp_path):
    tok.save(tmp_path / "mine.json")
    loaded = byteweld.load(tmp_path / "mine.json")
    assert loaded.name == "mine" and loaded == tok


# ---------------------------------------------------------------------- training reports


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "format"), [("mine.json", None), ("mine.tiktoken", None), ("mine", "gpt2")]
)
def test_saving_writes_the_training_report_so_that_a_loaded_tokenizer_can_be_cut(
    tok, tmp_path, name, format
):
    tok.save(tmp_path / name, format=format)
    loaded = byteweld.load(tmp_path / name)
    assert loaded.training == pickle.loads(pickle.dumps(loaded)).training == tok.training
    assert loaded.cut(260).vocab == tok.cut(260).vocab
    loaded.save(tmp_path / "again.json")
    assert byteweld.load(tmp_path / "again.json").training == tok.training


def test_two_formats_of_a_vocabulary_share_a_report(tok, tmp_path):
    tok.save(tmp_path / "mine.json")
    report = (tmp_path / "mine.training.json").read_bytes()
    tok.save(tmp_path / "mine.tiktoken")
    assert (tmp_path / "mine.training.json").read_bytes() == report
    assert byteweld.load(tmp_path / "mine.tiktoken").training == tok.training


def test_the_report_of_another_vocabulary_is_neither_replaced_nor_used(tok, tmp_path):
    smaller = tok.cut(260)
    smaller.save(tmp_path / "mine.json")
    (tmp_path / "mine.json").unlink()
    with pytest.raises(FileExistsError, match=r"mine\.training\.json exists"):
        tok.save(tmp_path / "mine.json")
    assert _names(tmp_path) == ["mine.training.json"]
    Tokenizer(tok.vocab).save(tmp_path / "mine.json")
    assert byteweld.load(tmp_path / "mine.json").training is None
    tok.save(tmp_path / "mine.json", overwrite=True)
    assert byteweld.load(tmp_path / "mine.json").training == tok.training


# ---------------------------------------------------------------------- found by review


def test_claimed_lengths_are_not_trusted(tok):
    class Claims:
        def __len__(self):
            return 2**60

        def __iter__(self):
            return iter([97, 98])

    assert tok.decode_bytes(Claims()) == b"ab"
    with pytest.raises(TypeError):
        tok.encode_batch(Claims())
    with pytest.raises(TypeError):
        tok.decode_bytes(b"ab")


def test_white_space_that_is_special_is_certain():
    import tiktoken

    options = {"special_tokens": {"\n\n": 256}}
    ours = Tokenizer.from_ranks(RANKS, pattern=r"\S+|\s+", **options)
    peer = tiktoken.Encoding("x", pat_str=r"\S+|\s+", mergeable_ranks=RANKS, **options)
    for text in ("a\n\n ", "a\n\n", " \n\n \n"):
        stable, completions = peer.encode_with_unstable(text, allowed_special="all")
        found = ours.encode_with_unstable(text, allowed_special="all")
        assert found == (stable, sorted(completions))


# ---------------------------------------------------------------------- offsets in characters


def test_offsets_in_characters_need_a_str(tok):
    for raw in (b"low", bytearray(b"low")):
        with pytest.raises(TypeError, match="decode it, or pass unit='bytes'"):
            tok.encode_with_offsets(raw, unit="characters")
        assert tok.encode_with_offsets(raw, unit="bytes") == tok.encode_with_offsets(raw)
    with pytest.raises(ValueError, match="'bytes' or 'characters'"):
        tok.encode_with_offsets("low", unit="char")


# ---------------------------------------------------------------------- templates


def test_a_template_wraps_the_ids_on_request():
    vocab = Vocabulary(
        BYTES | {256: b"<s>", 257: b"</s>", 258: b"<x>"},
        special_tokens={"<s>": 256, "</s>": 257, "<x>": 258},
        roles={"bos": 256, "eos": 257},
        template=((256, 258), (257,)),
    )
    tok = Tokenizer(vocab)
    assert tok.encode("a") == [97]
    assert tok.encode("a", template=True) == [256, 258, 97, 257]
    assert tok.encode_batch(["a", ""], template=True) == [[256, 258, 97, 257], [256, 258, 257]]
    for role in ({"add_bos": True}, {"add_eos": True}):
        with pytest.raises(ValueError, match="without add_bos and add_eos"):
            tok.encode("a", template=True, **role)
        with pytest.raises(ValueError, match="without add_bos and add_eos"):
            tok.encode_batch([], template=True, **role)


def test_a_vocabulary_without_a_template_adds_nothing(tok):
    assert tok.encode("low", template=True) == tok.encode("low")
    assert tok.encode_batch(["low"], template=True) == [tok.encode("low")]


# ---------------------------------------------------------------------- spans


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ("low", "iterable of"),
        (b"low", "iterable of"),
        (["low"], "span 0 is 'low'"),
        ([("low",)], "span 0"),
        ([("low", True), ("low", True, True)], "span 1"),
        ([("low", True), (None, True)], "span 1 has a text of type NoneType"),
        ([(5, True)], "span 0 has a text of type int"),
        ([("low", "no")], "trusted 'no'"),  # a str is truthy
        ([("low", 1)], "trusted 1"),
        ([("low", None)], "trusted None"),
        (None, None),
        (5, None),
    ],
)
def test_spans_are_pairs_of_text_and_trust(tok, spans, words):
    with pytest.raises(TypeError, match=words):
        tok.encode_spans(spans)


def test_an_added_token_that_is_not_special_is_a_single_token_too():
    added = AddedToken("<tool>", 256, special=False)
    tokens = {b: bytes([b]) for b in range(256)} | {256: b"<tool>"}
    tok = Tokenizer(Vocabulary(tokens, added_tokens=[added]))
    assert tok.encode("<tool>") == [256] and tok.encode_single_token("<tool>") == 256
