"""The laws of Tokenizer: round trips, offsets, counting, streams, batches, cuts, saving."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import byteweld
from byteweld import FORMATS, RECIPES, Tokenizer, UnsupportedError, Vocabulary, formats
from tests.helpers.strategies import (
    ENDOFTEXT,
    NASTY,
    any_texts,
    as_bytes,
    ascii_vocabularies,
    byte_texts,
    examples,
    texts,
    vocabularies,
)
from tests.helpers.streams import streamed


@pytest.fixture(scope="module")
def toks(data):
    """A tokenizer of every recipe, trained on the small texts."""
    documents = [(data / name).read_text("utf-8") for name in ("prose.txt", "code.txt", "many.txt")]
    made = {}
    for name, recipe in RECIPES.items():
        fed = documents
        if recipe.alphabet == "ascii":
            fed = [document.encode("ascii", "ignore").decode() for document in documents]
        # bpetite and bpe1 have their own special tokens, and their formats hold no others.
        own = name in ("bpetite", "bpe1", "rustbpe")
        given_specials = {} if own else {"special_tokens": [ENDOFTEXT]}
        size = recipe.minimum_size + 400
        made[name] = byteweld.train(iter(fed), vocab_size=size, recipe=name, **given_specials)
    # Special tokens that share their ids with learned tokens.
    specials = [ENDOFTEXT, "in", "er"]
    made["shared ids"] = byteweld.train(
        iter(documents), vocab_size=660, recipe="huggingface", special_tokens=specials
    )
    assert made["shared ids"].vocab.ambiguous_ids
    return made


BYTE_RECIPES = [name for name, recipe in RECIPES.items() if recipe.alphabet != "ascii"]
BYTE_RECIPES += ["shared ids"]


# ---------------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", BYTE_RECIPES)
def test_every_text_and_every_byte_string_round_trips(name, toks):
    tok = toks[name]

    @examples(80)
    @given(any_texts)
    @example(bytes(range(256)))
    def round_trips(text):
        ids = tok.encode(text, disallowed_special=())
        assert tok.decode_bytes(ids) == as_bytes(text)
        assert b"".join(tok.decode_tokens_bytes(ids)) == as_bytes(text)
        assert tok.decode_bytes(tok.encode(text, allowed_special="all")) == as_bytes(text)
        if isinstance(text, str):
            assert tok.decode(ids) == tok.decode(ids, errors="strict") == text

    round_trips()
    for text in NASTY:
        assert tok.decode(tok.encode_ordinary(text)) == text


@examples(80)
@given(vocabularies, any_texts)
def test_any_vocabulary_round_trips(vocab, text):
    tok = Tokenizer(vocab)
    assert tok.decode_bytes(tok.encode_ordinary(text)) == as_bytes(text)


@pytest.mark.parametrize("name", [*RECIPES, "shared ids"])
def test_every_token_alone_in_its_pretoken_encodes_to_itself(name, toks):
    vocab = toks[name].vocab
    whole = Tokenizer(  # without the pattern: a token may be cut where its neighbors are missing
        Vocabulary(
            vocab.tokens,
            vocab.merge_ids,
            special_tokens=vocab.special_tokens,
            alphabet=vocab.alphabet,
        )
    )
    for token_id, token in vocab.ordinary():
        assert whole.encode_ordinary(token) == [token_id]
        assert toks[name].encode_single_token(token) == token_id
        assert toks[name].decode_single_token_bytes(token_id) == token


# ---------------------------------------------------------------------- offsets, counts, limits


@examples(150)
@given(st.one_of(vocabularies, ascii_vocabularies()), any_texts)
def test_offsets_cover_the_text_without_gaps_or_overlaps(vocab, text):
    tok = Tokenizer(vocab)
    for specials in ({"disallowed_special": ()}, {"allowed_special": "all"}):
        ids, offsets = tok.encode_with_offsets(text, **specials)
        assert ids == tok.encode(text, **specials)
        expected_start = 0
        for token_id, (start, end) in zip(ids, offsets, strict=True):
            assert start == expected_start < end
            if token_id != vocab.roles.get("unk"):
                assert as_bytes(text)[start:end] == tok.decode_single_token_bytes(token_id)
            expected_start = end
        assert expected_start == len(as_bytes(text))


@examples(150)
@given(st.one_of(vocabularies, ascii_vocabularies()), any_texts)
def test_counting_and_truncating_are_exact_at_every_limit(vocab, text):
    tok = Tokenizer(vocab)
    for specials in ({"disallowed_special": ()}, {"allowed_special": "all"}):
        ids, offsets = tok.encode_with_offsets(text, **specials)
        assert tok.count(text, **specials) == len(ids)
        for limit in {0, 1, 2, len(ids) // 2, len(ids) - 1, len(ids), len(ids) + 1} - {-1}:
            until = tok.count(text, limit=limit, **specials)
            assert until == (len(ids) if len(ids) <= limit else None)
            kept = tok.truncate(text, limit, **specials)
            assert type(kept) is type(text)
            covered = offsets[min(limit, len(ids)) - 1][1] if limit and ids else 0
            start = as_bytes(text)[:covered]
            assert kept == (start if isinstance(text, bytes) else start.decode(errors="ignore"))
            assert as_bytes(text).startswith(as_bytes(kept))


@pytest.mark.parametrize("name", ["modern", "from-scratch", "plain"])
def test_counting_and_truncating_long_texts_is_exact(name, toks):
    tok = toks[name]
    for text in ["word " * 30_000, "a" * 100_000, "é漢👍 x\n" * 20_000, ENDOFTEXT * 5000]:
        ids, offsets = tok.encode_with_offsets(text, disallowed_special=())
        total = tok.count(text, disallowed_special=())
        assert total == len(ids)
        for limit in (0, 1, 999, 5000, total - 1, total, total + 1):
            until = tok.count(text, limit=limit, disallowed_special=())
            assert until == (total if total <= limit else None)
            covered = offsets[min(limit, total) - 1][1] if limit else 0
            kept = tok.truncate(text, limit, disallowed_special=())
            assert kept == text.encode()[:covered].decode(errors="ignore")


# ---------------------------------------------------------------------- streams and batches


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "ck", None, r"\s+|\S+", "(?:ab)+"])
@pytest.mark.parametrize("size", [1, 7, 4096, 70_000])
def test_a_long_text_streams_to_the_ids_of_the_whole(pattern, size, toks, data):
    vocab = toks["modern"].vocab
    tok = Tokenizer.from_ranks(
        dict(vocab.ids), pattern=pattern, special_tokens={ENDOFTEXT: 9000, "<|a|>": 9001}
    )
    prose = (data / "prose.txt").read_text("utf-8")
    many = (data / "many.txt").read_text("utf-8")
    # Runs, white space and special tokens fall on both sides of every cut of a stream.
    text = "".join(
        f"{prose[n * 7 % 500 :]}{' ' * n}\n{'a' * n}{ENDOFTEXT}{many[n * 3 :]}\r\n<|a|> {n}'s"
        for n in range(90)
    )
    assert len(text.encode()) > 3 * 65536
    raw = text.encode()
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    for specials in ({"disallowed_special": ()}, {"allowed_special": "all"}):
        whole = tok.encode(text, **specials)
        assert list(streamed(tok, pieces, **specials)) == whole


def test_an_endless_stream_yields_ids(toks):
    def lines():
        while True:
            yield "The notebook says: hot, then hold, then wait.\n"

    stream = streamed(toks["modern"], lines())
    some = [next(stream) for _ in range(50_000)]
    assert toks["modern"].decode(some).startswith("The notebook says: hot")


@examples(60)
@given(vocabularies, st.lists(any_texts, max_size=8), st.sampled_from([None, 1, 2, 7]))
def test_a_batch_gives_the_ids_of_each_text_alone(vocab, some, threads):
    tok = Tokenizer(vocab)
    ordinary = [tok.encode_ordinary(text) for text in some]
    assert tok.encode_ordinary_batch(some, num_threads=threads) == ordinary
    allowed = [tok.encode(text, allowed_special="all") for text in some]
    assert tok.encode_batch(some, num_threads=threads, allowed_special="all") == allowed
    ids, offsets = tok.encode_ragged(some, num_threads=threads, disallowed_special=())
    assert ids.dtype == "uint32" and offsets.dtype == "int64" and len(offsets) == len(some) + 1
    rows = [ids[a:b].tolist() for a, b in pairwise(offsets)]
    assert rows == ordinary
    arrays = [tok.encode_to_numpy(text, disallowed_special=()) for text in some]
    assert [array.tolist() for array in arrays] == ordinary
    assert tok.decode_bytes_batch(ordinary) == [as_bytes(text) for text in some]
    assert tok.decode_batch(arrays) == [tok.decode(row) for row in ordinary]


def test_files_encode_as_their_contents_do(toks, tmp_path):
    tok = toks["modern"]
    paths = []
    for n, text in enumerate(NASTY):
        paths.append(tmp_path / f"{n}.txt")
        paths[-1].write_bytes(text.encode())
    ids, offsets = tok.encode_files(paths, disallowed_special=())
    expected = tok.encode_ordinary_batch([text for text in NASTY if text])
    rows = [ids[a:b].tolist() for a, b in pairwise(offsets)]
    assert [row for row in rows if row] == expected


# ---------------------------------------------------------------------- training


@pytest.mark.parametrize("name", RECIPES)
def test_trainings_give_the_same_bytes_for_any_threads_and_order_of_files(name, tmp_path, data):
    texts = [(data / file).read_bytes() for file in ("prose.txt", "code.txt", "many.txt")]
    if RECIPES[name].alphabet == "ascii":
        texts = [text.decode().encode("ascii", "ignore") for text in texts]
    paths = []
    for n, text in enumerate(texts * 5):
        paths.append(tmp_path / f"{n}.txt")
        paths[-1].write_bytes(text[n * 11 :].decode(errors="ignore").encode())
    format = {"bpetite": "bpetite", "bpe1": "bpe1"}.get(name, "huggingface")
    size = RECIPES[name].minimum_size + 300
    files = set()
    for threads, order in [(1, paths), (2, paths[::-1]), (7, paths[5:] + paths[:5])]:
        tok = byteweld.train(order, vocab_size=size, recipe=name, num_threads=threads)
        out = tmp_path / f"{threads}.out"
        tok.save(out, format=format)
        files.add(out.read_bytes())
    assert len(files) == 1


# ---------------------------------------------------------------------- saving


@pytest.mark.parametrize("format", FORMATS)
def test_what_a_format_can_hold_survives_saving_and_loading(format, toks, tmp_path):
    held = []
    for name, tok in toks.items():
        path = tmp_path / name
        try:
            tok.save(path, format=format)
        except UnsupportedError:
            assert not path.exists()
            continue
        held.append(name)
        assert formats.recognize(path) == format
        loaded = byteweld.load(path)
        expected = formats.held(tok.vocab, path, format)
        assert loaded.vocab == expected, name
        assert loaded.vocab.fingerprint == expected.fingerprint
        # Only ck's export loses anything, and only the pattern.
        if format == "ck" and tok.vocab.pattern is not None:
            loaded = byteweld.load(path, pattern=tok.vocab.pattern)
        assert loaded.vocab == tok.vocab, name
    assert held, "no recipe's vocabulary could be saved"


def test_any_vocabulary_survives_saving_and_loading_or_is_refused(tmp_path):
    @examples(60)
    @given(st.one_of(vocabularies, ascii_vocabularies()), st.lists(texts, max_size=4))
    def given_back(vocab, some):
        for format in FORMATS:
            path = tmp_path / format
            try:
                formats.save(vocab, path, format=format, overwrite=True)
            except UnsupportedError:
                continue
            loaded = formats.load(path)
            if vocab.ranking == "merges" and not vocab.ignore_merges:
                assert loaded == vocab, format
            # Ranks may come back as equivalent merges.
            assert loaded.tokens == vocab.tokens and loaded.special_tokens == vocab.special_tokens
            a, b = Tokenizer(vocab), Tokenizer(loaded)
            for text in some:
                assert a.encode(text, allowed_special="all") == b.encode(
                    text, allowed_special="all"
                )

    given_back()


@examples(40)
@given(st.one_of(vocabularies, ascii_vocabularies()), texts)
def test_tokenizers_and_vocabularies_survive_pickling(vocab, text):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(vocab, protocol)) == vocab
    tok = Tokenizer(vocab, name="some name")
    copy = pickle.loads(pickle.dumps(tok))
    assert copy == tok and copy.name == "some name" and copy.vocab.fingerprint == vocab.fingerprint
    assert copy.encode_ordinary(text) == tok.encode_ordinary(text)


@examples(60)
@given(byte_texts, st.sampled_from(["strict", "replace", "ignore", "backslashreplace"]))
def test_decoding_handles_bytes_that_are_not_utf8_as_python_does(text, errors):
    tok = Tokenizer.from_ranks({bytes([b]): b for b in range(256)}, pattern=None)
    ids = tok.encode(text)
    try:
        expected = text.decode(errors=errors)
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            tok.decode(ids, errors=errors)
    else:
        assert tok.decode(ids, errors=errors) == expected
