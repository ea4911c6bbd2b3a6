"""Every well-known vocabulary in ../shared/data: loaded, compared, written and read again.

The answers are frozen; they come from the real tiktoken, tokenizers and mistral-common.
"""

from __future__ import annotations

import gzip

import pytest

import byteweld
from byteweld import UnsupportedError, formats
from tests.helpers.vocabularies import GOLDEN_FILES, golden, snippets

RANKS = [
    *("r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"),
    *("llama3", "llama4", "qwen", "qwen3_6", "kimi_k2", "whisper_multilingual"),
]
TEKKEN = ["tekken_240718", "tekken_240911"]
FILES = [*GOLDEN_FILES, "v_split_behaviors"]
REJECTED = {"clip_base": 'end_of_word_suffix "</w>": a byte is a different token at the end'}
PAIR = ["gpt2_encoder.json", "gpt2_vocab.bpe"]

# These take seconds to write and read again.
LARGE = {
    *("o200k_base", "o200k_harmony", "llama3", "llama4", "qwen", "qwen3_6", "kimi_k2"),
    *("gpt4o", "llama3_2", "mistral_nemo", "qwen2_5", "qwen3", "deepseek_v3", "command_r_plus"),
    *TEKKEN,
}


def params(names):
    return [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in names]


@pytest.fixture(scope="module")
def texts(shared):
    return snippets(shared)


def answers(shared, name, texts):
    """Each snippet with its frozen answer."""
    return [(texts[key], answer) for key, answer in golden(shared, name).items()]


def test_the_lists_above_are_the_whole_index(entries):
    known = [("tiktoken", n) for n in RANKS] + [("tekken", n) for n in TEKKEN]
    known += [("hf", n) for n in [*FILES, *REJECTED]] + [("raw", n) for n in PAIR]
    assert set(known) == set(entries)


# ---------------------------------------------------------------------- golden ids


@pytest.mark.parametrize("name", RANKS)
def test_rank_files_have_tiktokens_ids(name, load, entries, shared, texts):
    entry = entries["tiktoken", name]
    tok = load("tiktoken", name)
    assert tok.n_vocab == entry["n_vocab"]
    assert tok.vocab.special_tokens == entry["special_tokens"]
    assert len(list(tok.vocab.ordinary())) == entry["n_ranks"]
    for text, answer in answers(shared, name, texts):
        ids = answer["ids"]
        assert tok.encode_ordinary(text) == ids, answer["id"]
        assert tok.encode_ordinary(text.encode()) == ids, answer["id"]
        special = answer.get("ids_special", ids)
        assert tok.encode(text, allowed_special="all") == special, answer["id"]
        assert tok.count(text, allowed_special="all") == len(special), answer["id"]
        assert tok.decode(ids) == tok.decode(special) == text, answer["id"]


@pytest.mark.parametrize("name", TEKKEN)
def test_tekken_files_have_mistral_commons_ids(name, load, shared, texts):
    tok = load("tekken", name)
    assert tok.n_vocab == 131_072
    assert tok.vocab.roles == {"bos": 1, "eos": 2, "pad": 11, "unk": 0}
    assert tok.vocab.special_tokens["[TOOL_CONTENT]"] == 19
    assert tok.vocab.special_tokens["<SPECIAL_20>"] == 20
    assert tok.vocab.special_tokens["<SPECIAL_999>"] == 999
    assert tok.vocab.tokens[1000] == b"\0"
    for text, answer in answers(shared, name, texts):
        assert tok.encode_ordinary(text) == answer["ids"], answer["id"]
        assert tok.decode(answer["ids"]) == text, answer["id"]


@pytest.mark.parametrize("name", FILES)
def test_hugging_face_files_have_its_ids(name, load, entries, shared, texts):
    entry = entries["hf", name]
    tok = load("hf", name)
    vocab = tok.vocab
    assert len(vocab) == entry["n_vocab_with_added"]
    assert len(vocab.added_tokens) == entry["added"]["n"]
    around = (entry["add_special_tokens_prefix"], entry["add_special_tokens_suffix"])
    assert tuple(map(list, vocab.template)) == around
    missing = [byte for byte in range(256) if bytes([byte]) not in vocab.ids]
    assert missing == entry["missing_bytes"]
    for text, answer in answers(shared, f"hf_{name}", texts):
        ids = answer["ids"]
        assert tok.encode(text, allowed_special="all") == ids, answer["id"]
        plain = answer.get("ids_plain", ids)
        assert tok.encode_ordinary(text) == plain, answer["id"]
        if name != "v_added_flags":  # there the library decodes HTTP as http, its normal form
            assert tok.decode(ids) == answer.get("decoded", text), answer["id"]


def test_the_two_files_of_openai_are_gpt2(shared, entries, texts, tmp_path):
    for name in PAIR:
        packed = (shared / "vocabs" / entries["raw", name]["file"]).read_bytes()
        (tmp_path / name.removeprefix("gpt2_")).write_bytes(gzip.decompress(packed))
    tok = byteweld.load(tmp_path, pattern="gpt2", special_tokens={"<|endoftext|>": 50256})
    for text, answer in answers(shared, "r50k_base", texts):
        assert tok.encode_ordinary(text) == answer["ids"], answer["id"]


@pytest.mark.parametrize(("name", "reason"), REJECTED.items())
def test_a_file_that_cannot_be_exact_is_rejected_with_the_reason(name, reason, load):
    with pytest.raises(UnsupportedError, match=reason):
        load("hf", name)


# ---------------------------------------------------------------------- written and read again


def round_trip(vocab, path, format):
    formats.save(vocab, path, format=format)
    assert formats.recognize(path) == format
    again = formats.load(path)
    assert again == vocab
    assert again.fingerprint == vocab.fingerprint


@pytest.mark.parametrize("name", params(RANKS))
def test_rank_files_are_written_as_they_were(name, load, entries, shared, tmp_path):
    round_trip(load("tiktoken", name).vocab, tmp_path / "again", "tiktoken")
    packed = (shared / "vocabs" / entries["tiktoken", name]["file"]).read_bytes()
    assert (tmp_path / "again").read_bytes() == gzip.decompress(packed)


@pytest.mark.parametrize("name", params(TEKKEN))
def test_tekken_files_are_written_and_read_again(name, load, tmp_path):
    round_trip(load("tekken", name).vocab, tmp_path / "again", "tekken")


@pytest.mark.parametrize("name", params(FILES))
def test_hugging_face_files_are_written_with_the_same_ids_in_the_real_library(
    name, load, shared, texts, tmp_path
):
    tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")
    vocab = load("hf", name).vocab
    round_trip(vocab, tmp_path / "again", "huggingface")
    real = tokenizers.Tokenizer.from_file(str(tmp_path / "again"))
    for text, answer in answers(shared, f"hf_{name}", texts):
        assert real.encode(text, add_special_tokens=False).ids == answer["ids"], answer["id"]
    for text in ("", "hello world"):
        ids = real.encode(text, add_special_tokens=False).ids
        assert real.encode(text).ids == [*vocab.template[0], *ids, *vocab.template[1]]
    real.encode_special_tokens = True
    for text, answer in answers(shared, f"hf_{name}", texts):
        plain = answer.get("ids_plain", answer["ids"])
        assert real.encode(text, add_special_tokens=False).ids == plain, answer["id"]
