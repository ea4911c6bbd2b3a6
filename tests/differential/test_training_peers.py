"""Merges == the real trainers': tokenizers for `huggingface`, rustbpe for `rustbpe`."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import ENDOFTEXT, NASTY, examples, rich_texts, tiny_texts

import byteweld
from byteweld import PATTERNS, UnsupportedError
from byteweld._byte_letters import bytes_to_chars

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


def corpus_of(family, shared):
    """About 2 MB of documents (as str) of one kind."""
    documents = []
    for name in FAMILIES[family]:
        raw = gzip.decompress((shared / "corpora" / name).read_bytes())
        text = raw[: 2_000_000 // len(FAMILIES[family])]
        documents += text.decode(errors="ignore").split(f"{ENDOFTEXT}\n")
    return documents


# ---------------------------------------------------------------------- tokenizers


def huggingface_trained(
    documents=None, *, files=None, size, pattern="gpt2", specials=(), min_frequency=0, limit=None
):
    """What tokenizers itself learns: its merges and its vocabulary, both in its letters."""
    level = tokenizers.pre_tokenizers.ByteLevel
    peer = tokenizers.Tokenizer(tokenizers.models.BPE())
    if pattern == "gpt2":
        peer.pre_tokenizer = level(add_prefix_space=False)
    else:
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERNS[pattern]), "isolated")
        peer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [split, level(add_prefix_space=False, use_regex=False)]
        )
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=list(specials),
        initial_alphabet=level.alphabet(),
        show_progress=False,
        **({} if limit is None else {"max_token_length": limit}),
    )
    if files is None:
        peer.train_from_iterator(documents, trainer)
    else:
        peer.train([str(file) for file in files], trainer)
    model = json.loads(peer.to_str())["model"]
    return [tuple(merge) for merge in model["merges"]], model["vocab"]


def in_its_letters(vocab):
    """Our merges and vocabulary as tokenizers writes them."""
    merges = [(bytes_to_chars(left), bytes_to_chars(right)) for left, right in vocab.merges]
    tokens = {bytes_to_chars(token): token_id for token_id, token in vocab.ordinary()}
    return merges, tokens | dict(vocab.special_tokens)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("size", "pattern"), [(1000, "o200k"), (8000, "gpt2")])
def test_huggingface_learns_the_same_from_large_corpora(family, size, pattern, shared):
    documents = corpus_of(family, shared)
    expected = huggingface_trained(documents, size=size, pattern=pattern)
    tok = byteweld.train(iter(documents), vocab_size=size, recipe="huggingface", pattern=pattern)
    assert in_its_letters(tok.vocab) == expected
    assert len(tok) == size


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "ck"])
@pytest.mark.parametrize("min_frequency", [0, 1, 2, 5])
@pytest.mark.parametrize("limit", [None, 3, 6])
def test_huggingface_learns_the_same_from_small_corpora(pattern, min_frequency, limit, data):
    documents = [(data / name).read_text("utf-8") for name in ("prose.txt", "code.txt", "many.txt")]
    documents += [text for text in NASTY if len(text) < 5000]
    options = {"specials": [ENDOFTEXT, "<pad>", "seam"], "min_frequency": min_frequency}
    expected = huggingface_trained(documents, size=900, pattern=pattern, limit=limit, **options)
    tok = byteweld.train(
        iter(documents),
        vocab_size=900,
        recipe="huggingface",
        pattern=pattern,
        special_tokens=options["specials"],
        min_frequency=min_frequency,
        max_token_bytes=limit,
    )
    assert in_its_letters(tok.vocab) == expected


@examples(60)
@given(
    documents=st.lists(st.one_of(tiny_texts, rich_texts), max_size=6),
    size=st.integers(256, 300),
    min_frequency=st.integers(0, 4),
    limit=st.sampled_from([None, 1, 2, 3, 4, 5, 8]),
    specials=st.lists(
        st.sampled_from([ENDOFTEXT, "<s>", "ab", "aa", "aaa", "the", "Ġa", "bab"]),
        unique=True,
        max_size=3,
    ),
)
def test_huggingface_learns_the_same_from_any_documents(
    documents, size, min_frequency, limit, specials
):
    assume(size >= 256 + len(specials))
    try:
        tok = byteweld.train(
            iter(documents),
            vocab_size=size,
            recipe="huggingface",
            special_tokens=specials,
            min_frequency=min_frequency,
            max_token_bytes=limit,
        )
    except UnsupportedError:
        assert "Ġa" in specials  # it would share its id with the token b" a"
        return
    merges, tokens = in_its_letters(tok.vocab)
    their_merges, their_tokens = huggingface_trained(
        documents, size=size, specials=specials, min_frequency=min_frequency, limit=limit
    )
    assert merges == their_merges
    assert tokens == their_tokens


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
    expected = huggingface_trained(files=files, size=700)
    by_lines = byteweld.train(files, vocab_size=700, recipe="huggingface")
    assert in_its_letters(by_lines.vocab) == expected
    # Whole items may hold "\n\n", which no line does.
    expected = huggingface_trained(contents, size=700)
    by_items = byteweld.train(iter(contents), vocab_size=700, recipe="huggingface")
    assert in_its_letters(by_items.vocab) == expected
    assert by_items.vocab.merges != by_lines.vocab.merges


def test_huggingface_stops_early_where_tokenizers_does(data):
    documents = ["ab ab ab cd cd e"]
    for min_frequency in (0, 2, 3, 4):
        expected = huggingface_trained(documents, size=1000, min_frequency=min_frequency)
        tok = byteweld.train(
            iter(documents), vocab_size=1000, recipe="huggingface", min_frequency=min_frequency
        )
        assert in_its_letters(tok.vocab) == expected
        assert tok.training.stop in ("no pairs", "min frequency")


# ---------------------------------------------------------------------- rustbpe


def rustbpe_trained(documents, size, pattern):
    peer = rustbpe.Tokenizer()
    peer.train_from_iterator(iter(documents), size, pattern=PATTERNS[pattern])
    return {bytes(token): rank for token, rank in peer.get_mergeable_ranks()}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("size", "pattern"), [(1000, "gpt2"), (8000, "cl100k")])
def test_rustbpe_learns_the_same_from_large_corpora(family, size, pattern, shared):
    documents = corpus_of(family, shared)
    expected = rustbpe_trained(documents, size, pattern)
    tok = byteweld.train(iter(documents), vocab_size=size, recipe="rustbpe", pattern=pattern)
    assert dict(tok.vocab.ids) == expected
    assert len(tok) == size


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k"])
def test_rustbpe_learns_the_same_from_small_corpora(pattern, data):
    documents = [(data / name).read_text("utf-8") for name in ("prose.txt", "code.txt", "many.txt")]
    documents += [text for text in NASTY if len(text) < 5000]
    tok = byteweld.train(iter(documents), vocab_size=1500, recipe="rustbpe", pattern=pattern)
    assert dict(tok.vocab.ids) == rustbpe_trained(documents, 1500, pattern)


@examples(40)
@given(st.lists(st.one_of(tiny_texts, rich_texts), max_size=6), st.integers(256, 310))
def test_rustbpe_learns_the_same_from_any_documents(documents, size):
    tok = byteweld.train(iter(documents), vocab_size=size, recipe="rustbpe")
    assert dict(tok.vocab.ids) == rustbpe_trained(documents, size, "gpt2")
