"""Tokenizers extended by words: the real tokenizers and tiktoken give the ids that we give."""

from __future__ import annotations

import base64

import pytest

import byteweld
from byteweld.cli import main

tiktoken = pytest.importorskip("tiktoken", reason="the real tiktoken is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the real tokenizers is not installed")

WORDS = (
    "Kubernetes",
    "foobarium",
    "разработчик",
    "Donaudampfschifffahrt",
    "größtenteils",
    "小船儿推开波浪",
    "webhook",
)
TEXTS = (
    *WORDS,
    *(f"{word}{word}" for word in WORDS),
    " ".join(WORDS),
    "\n".join(f"  {word}s, ({word}) {word.upper()}!" for word in WORDS),
    "Nothing new here; 12345 and naïve café.\n\n\tEnd.",
    "Kubern etes Kubernete foobari разработ webhoo",
)
SPECIALS = "a Kubernetes<|endoftext|>foobarium <|endoftext|>"


@pytest.fixture
def extended(tmp_path, monkeypatch):
    """Extend a tokenizer file by the words, into a file of the same format."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("\n".join(WORDS))

    def extend(name, out, **options):
        flags = [
            *(("--pattern", options["pattern"]) if options else ()),
            *(("--format", "gpt2") if out.endswith("/") else ()),
            *(() if options.get("special_tokens", True) else ("--no-special",)),
            *(f"--special={text}={i}" for text, i in options.get("special_tokens", {}).items()),
        ]
        assert main(["extend", name, "--words", "words.txt", "--out", out, *flags]) == 0
        before = byteweld.load(name, **options)
        after = byteweld.load(out, **options)
        assert before.vocab.tokens.items() <= after.vocab.tokens.items()
        assert before.vocab.special_tokens == after.vocab.special_tokens
        assert all(after.count(text) == 1 for word in WORDS for text in (word, f" {word}"))
        assert any(before.count(word) > 1 for word in WORDS)
        return after

    return extend


@pytest.mark.parametrize("name", ["gpt2", "gpt4o"])
def test_a_tokenizer_json_has_the_same_ids_in_the_real_tokenizers(
    name, extended, unpacked, tmp_path
):
    (tmp_path / "start.json").write_bytes(unpacked("hf", name)[1].read_bytes())
    tok = extended("start.json", "longer.json")
    real = tokenizers.Tokenizer.from_file("longer.json")
    for text in TEXTS:
        assert real.encode(text, add_special_tokens=False).ids == tok.encode(text), text
    with_specials = real.encode(SPECIALS, add_special_tokens=False).ids
    assert with_specials == tok.encode(SPECIALS, allowed_special="all")


@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
def test_a_rank_file_has_the_same_ids_in_the_real_tiktoken(name, extended, unpacked, tmp_path):
    entry, file = unpacked("tiktoken", name)
    (tmp_path / "start.tiktoken").write_bytes(file.read_bytes())
    options = {"pattern": entry["pat_str"], "special_tokens": entry["special_tokens"]}
    tok = extended("start.tiktoken", "longer.tiktoken", **options)
    lines = [line.split() for line in (tmp_path / "longer.tiktoken").read_bytes().splitlines()]
    written = {base64.b64decode(token): int(rank) for token, rank in lines}
    assert written == {token: i for i, token in tok.vocab.ordinary()}
    real = tiktoken.Encoding(
        name, pat_str=entry["pat_str"], mergeable_ranks=written,
        special_tokens=entry["special_tokens"],
    )  # fmt: skip
    for text in TEXTS:
        assert real.encode_ordinary(text) == tok.encode_ordinary(text), text
    ids = real.encode(SPECIALS, allowed_special="all")
    assert ids == tok.encode(SPECIALS, allowed_special="all")


def test_a_folder_in_the_format_of_gpt2_has_the_same_ids_in_the_real_tokenizers(
    extended, tmp_path, data
):
    text = (data / "prose.txt").read_text("utf-8")
    tok = byteweld.train(documents=[text], vocab_size=600, pattern="gpt2")
    tok.save(tmp_path / "start", format="gpt2")
    tok = extended("start", "longer/", pattern="gpt2", special_tokens={})
    real = tokenizers.ByteLevelBPETokenizer("longer/vocab.json", "longer/merges.txt")
    for given in (*TEXTS, text):
        assert real.encode(given).ids == tok.encode_ordinary(given), given[:40]
