"""The merges of the real trainers: tokenizers for `huggingface`, rustbpe for `rustbpe`."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import byteweld
from byteweld import UnsupportedError
from byteweld._byte_letters import CHAR_TO_BYTE
from tests.helpers import frozen
from tests.helpers.strategies import ENDOFTEXT, NASTY, examples, rich_texts, tiny_texts
from tests.helpers.trainers import (
    huggingface_peer,
    in_its_letters,
    in_letters,
    ranks_of,
    rustbpe_peer,
)

tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")
rustbpe = pytest.importorskip("rustbpe", reason="the real rustbpe is not installed")

FAMILIES = {
    "prose": ["english.txt.gz"],
    "code": ["code/python.txt.gz", "code/rust.txt.gz", "code/c.txt.gz", "code/html.txt.gz"],
    "multilingual": [
        f"multilingual/{language}.txt.gz"
        for language in ("ar", "de", "el", "hi", "ja", "ko", "ru", "th", "vi", "zh", "am", "ta")
    ],
}
LETTERS = sorted(CHAR_TO_BYTE)


def corpus_of(family, shared):
    """About 2 MB of documents (as str) of one kind."""
    documents = []
    for name in FAMILIES[family]:
        raw = gzip.decompress((shared / "corpora" / name).read_bytes())
        text = raw[: 2_000_000 // len(FAMILIES[family])]
        documents += text.decode(errors="ignore").split(f"{ENDOFTEXT}\n")
    return documents


def small_corpus(data):
    documents = [(data / name).read_text("utf-8") for name in ("prose.txt", "code.txt", "many.txt")]
    return documents + [text for text in NASTY if len(text) < 5000]


# ---------------------------------------------------------------------- tokenizers


def check_huggingface(documents, size, folder=None, encoded=None, **options):
    """We learn their merges and ids, and our file encodes in their library as their own does."""
    peer = huggingface_peer(documents, size=size, **options)
    names = {"specials": "special_tokens", "limit": "max_token_bytes"}
    changes = {names.get(name, name): value for name, value in options.items()}
    if "letters" in changes:
        changes["initial_alphabet"] = changes.pop("letters")
    tok = byteweld.train(iter(documents), vocab_size=size, recipe="huggingface", **changes)
    assert in_its_letters(tok.vocab) == in_letters(peer)
    if folder is not None:
        file = folder / "tokenizer.json"
        tok.save(file, overwrite=True)
        ours = tokenizers.Tokenizer.from_file(str(file))
        texts = documents if encoded is None else encoded
        for text in texts:
            theirs = peer.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, add_special_tokens=False).ids == theirs
            assert tok.encode(text, allowed_special="all") == theirs
        assert byteweld.load(file).vocab.fingerprint == tok.vocab.fingerprint
    return tok


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("size", "pattern"), [(1000, "o200k"), (8000, "gpt2")])
def test_huggingface_learns_the_same_from_large_corpora(family, size, pattern, shared):
    documents = corpus_of(family, shared)
    tok = byteweld.train(iter(documents), vocab_size=size, recipe="huggingface", pattern=pattern)
    assert len(tok) == size
    question = frozen.digest("huggingface", str(size), pattern, *map(str.encode, documents))
    answer = frozen.digest(*map(json.dumps, in_its_letters(tok.vocab)))
    if not frozen.is_known(question, answer):
        check_huggingface(documents, size, pattern=pattern)
        frozen.freeze(question, answer)


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "ck"])
@pytest.mark.parametrize("min_frequency", [0, 1, 2, 5])
@pytest.mark.parametrize("limit", [None, 3, 5, 8, 16])
def test_huggingface_learns_the_same_from_small_corpora(pattern, min_frequency, limit, data):
    tok = check_huggingface(
        small_corpus(data),
        900,
        pattern=pattern,
        limit=limit,
        specials=[ENDOFTEXT, "<pad>", "seam"],
        min_frequency=min_frequency,
    )
    longest = max(len(left + right) for left, right in tok.vocab.merges)
    assert limit not in (3, 5, 8) or longest == limit - 1  # the limit is exclusive


@pytest.mark.parametrize("letters", [[], ["Ġ", "q", "Ä", "ÿ"], LETTERS[:100], LETTERS])
@pytest.mark.parametrize("min_frequency", [0, 2])
def test_an_initial_alphabet_is_that_of_tokenizers(letters, min_frequency, data, tmp_path):
    documents = [(data / name).read_text("utf-8") for name in ("prose.txt", "code.txt")]
    options = {"letters": letters, "min_frequency": min_frequency, "specials": [ENDOFTEXT, "the"]}
    texts = [*documents, "naïve 漢字 \x00\x7f", "", f"the{ENDOFTEXT}the", "Ω" * 50]
    tok = check_huggingface(documents, 700, tmp_path, texts, **options)
    seen = {byte for text in documents for byte in text.encode()}
    expected = seen | {CHAR_TO_BYTE[letter] for letter in letters}
    assert {token[0] for token in tok.vocab.ids if len(token) == 1} == expected
    assert tok.vocab.alphabet == ("bytes" if letters == LETTERS else "partial")


def test_special_tokens_that_are_learned_take_the_ids_of_tokenizers(data, tmp_path):
    documents = small_corpus(data)
    specials = ["ing", "the", "er", "seam", "return", "in", "er"[::-1], ENDOFTEXT, "never met"]
    tok = check_huggingface(documents, 1200, tmp_path, specials=specials)
    made = {merge.new for merge in tok.vocab.merge_ids}
    assert len(made & set(range(len(specials)))) >= 4  # the point of the test
    assert len(tok) == 1200


@examples(150)
@given(
    documents=st.lists(st.one_of(tiny_texts, rich_texts), max_size=6),
    size=st.integers(256, 300),
    min_frequency=st.integers(0, 5),
    limit=st.sampled_from([None, 1, 2, 3, 4, 5, 8]),
    specials=st.lists(
        st.sampled_from([ENDOFTEXT, "<s>", "ab", "aa", "aaa", "the", "Ġa", "bab", "  "]),
        unique=True,
        max_size=3,
    ),
    letters=st.one_of(
        st.none(), st.just([]), st.lists(st.sampled_from(LETTERS), unique=True, max_size=9)
    ),
)
def test_huggingface_learns_the_same_from_any_documents(
    documents, size, min_frequency, limit, specials, letters, tmp_path_factory
):
    assume(size >= 256 + len(specials))
    try:
        check_huggingface(
            documents,
            size,
            tmp_path_factory.getbasetemp(),
            specials=specials,
            min_frequency=min_frequency,
            limit=limit,
            letters=letters,
        )
    except UnsupportedError:
        assert "Ġa" in specials  # it would share its id with the token b" a"


def test_a_size_below_the_letters_that_occur_is_rejected_with_the_minimum():
    options = {"recipe": "huggingface", "initial_alphabet": ["z"], "special_tokens": ["<s>"]}
    tok = byteweld.train(iter(["ab ab"]), vocab_size=5, **options)
    assert len(tok) == 5 and tok.vocab.merges == []
    with pytest.raises(ValueError, match=r"at least 5: 4 bytes and 1 special"):
        byteweld.train(iter(["ab ab"]), vocab_size=4, **options)


def test_an_initial_alphabet_is_a_list_of_byte_letters_for_this_recipe_only():
    recipe = byteweld.RECIPES["huggingface"]
    assert recipe.replace(initial_alphabet=LETTERS) == recipe
    assert recipe.replace(initial_alphabet=["b", "a", "b"]).initial_alphabet == ("a", "b")
    for wrong in (["漢"], ["ab"], [""], [" "]):
        with pytest.raises(ValueError, match=r"initial_alphabet contains .*ByteLevel"):
            recipe.replace(initial_alphabet=wrong)
    for wrong in ("ab", 5):
        with pytest.raises(TypeError, match="list of byte letters"):
            recipe.replace(initial_alphabet=wrong)
    with pytest.raises(ValueError, match="alphabet 'huggingface'"):
        byteweld.RECIPES["modern"].replace(initial_alphabet=[])


def test_huggingface_feeds_files_line_by_line(tmp_path, data):
    contents = [
        (data / "prose.txt").read_text("utf-8"),
        "windows\r\nlines\r\n\r\n\r\nend without one\n\n\n\n  x\n\n\n  x",
        "\n\n\n\n\n\n",
        "old\rmac\rlines\r\r\r",
        "",
    ]
    files = []
    for n, content in enumerate(contents):
        files.append(tmp_path / f"{n}.txt")
        files[-1].write_text(content, "utf-8", newline="")
    by_lines = byteweld.train(files, vocab_size=700, recipe="huggingface")
    assert in_its_letters(by_lines.vocab) == in_letters(huggingface_peer(files=files, size=700))
    # Whole items may contain "\n\n", which no line does.
    by_items = check_huggingface(contents, 700)
    assert by_items.vocab.merges != by_lines.vocab.merges


# ---------------------------------------------------------------------- rustbpe


def check_rustbpe(documents, size, pattern="gpt2", encoded=()):
    """We learn their tokens in their order, and encode as they do."""
    peer = rustbpe_peer(documents, size, pattern)
    tok = byteweld.train(iter(documents), vocab_size=size, recipe="rustbpe", pattern=pattern)
    assert dict(tok.vocab.ids) == ranks_of(peer)
    for text in encoded:
        assert tok.encode(text) == peer.encode(text)
    return tok


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("size", "pattern"), [(1000, "gpt2"), (8000, "cl100k")])
def test_rustbpe_learns_the_same_from_large_corpora(family, size, pattern, shared):
    documents = corpus_of(family, shared)
    tok = byteweld.train(iter(documents), vocab_size=size, recipe="rustbpe", pattern=pattern)
    assert len(tok) == size
    question = frozen.digest("rustbpe", str(size), pattern, *map(str.encode, documents))
    answer = frozen.digest(*(tok.vocab.tokens[token_id] for token_id in range(size)))
    if not frozen.is_known(question, answer):
        check_rustbpe(documents, size, pattern)
        frozen.freeze(question, answer)


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k"])
def test_rustbpe_learns_the_same_from_small_corpora(pattern, data):
    documents = small_corpus(data)
    check_rustbpe(documents, 1500, pattern, documents)


@examples(150)
@given(st.lists(st.one_of(tiny_texts, rich_texts), max_size=6), st.integers(256, 310))
def test_rustbpe_learns_the_same_from_any_documents(documents, size):
    check_rustbpe(documents, size, "gpt2", documents)
