"""`byteweld megatron`: Megatron-LM's own options, read and turned into a dataset."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import byteweld
from byteweld.cli import megatron
from tests.helpers.format_readers import read_megatron

TEXTS = ["low lower", "", "lowest <|endoftext|> low", "new"]


@pytest.fixture
def tok(tmp_path):
    trained = byteweld.train(
        documents=["low lower lowest newer newest"] * 9,
        vocab_size=280,
        special_tokens=["<|endoftext|>"],
    )
    trained.save("tok.json")
    return trained


@pytest.fixture
def corpus(tmp_path):
    records = [{"text": text, "title": f"t{n}"} for n, text in enumerate(TEXTS)]
    Path("c.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def documents(prefix="data/books_text_document"):
    return read_megatron([Path(f"{prefix}.bin"), Path(f"{prefix}.idx")], "uint16")


def expected(tok, texts, *, eod):
    eot = [tok.eot_token] if eod else []
    return [[*tok.encode(text, disallowed_special=()), *eot] if text else [] for text in texts]


def changed(tok, **traits):
    """The tokenizer with other traits."""
    vocab = tok.vocab
    traits = {**vocab.traits(), **traits}
    return byteweld.Tokenizer(byteweld.Vocabulary(vocab.tokens, vocab.merge_ids, **traits))


BASE = ("megatron", "--input", "c.jsonl", "--output-prefix", "data/books")
MODEL = ("--tokenizer-model", "tok.json")


def test_a_dataset_with_eod(run, tok, corpus):
    """As preprocess_data.py does it: a document without text stays empty."""
    result = run(*BASE, *MODEL, "--tokenizer-type", "HuggingFaceTokenizer", "--workers", "2",
                 "--append-eod")  # fmt: skip
    assert result.code == 0, result.err
    assert documents() == expected(tok, TEXTS, eod=True)
    assert "4 documents" in result.text
    assert result.text.splitlines()[-1].startswith("data/books_text_document: 2 files")


def test_several_keys(run, tok, corpus):
    result = run(*BASE, "--json-keys", "text", "title", *MODEL, "--append-eod")
    assert result.code == 0, result.err
    titles = [f"t{n}" for n in range(4)]
    assert documents() == expected(tok, TEXTS, eod=True)
    assert documents("data/books_title_document") == expected(tok, titles, eod=True)


def test_several_datasets_in_one_folder(run, tok, corpus):
    for name in ("a", "b"):
        assert run("megatron", "--input", "c.jsonl", "--output-prefix", name, *MODEL).code == 0
    assert documents("a_text_document") == documents("b_text_document")


def test_gpt2_files_of_any_name(run, tok, corpus, tmp_path):
    gpt2 = changed(tok, pattern=byteweld.PATTERNS["gpt2"])
    gpt2.save("pair", format="gpt2")
    Path("pair/vocab.json").rename("v.json")
    Path("pair/merges.txt").rename("m.txt")
    result = run(*BASE, "--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", "v.json",
                 "--merge-file", "m.txt", "--append-eod")  # fmt: skip
    assert result.code == 0, result.err
    assert documents() == expected(gpt2, TEXTS, eod=True)


def test_errors_in_gpt2_files_name_them(run, tok, corpus):
    Path("v.json").write_text('{"a": 0}')
    Path("m.txt").write_text("#version: 0.2\na\n")
    result = run(*BASE, "--vocab-file", "v.json", "--merge-file", "m.txt")
    assert result.code == 2
    assert result.err.startswith("byteweld: m.txt:2: expected two tokens")
    Path("v.json").write_text("[]")
    result = run(*BASE, "--vocab-file", "v.json", "--merge-file", "m.txt")
    assert "v.json: expected a JSON object of tokens" in result.err


def test_the_files_are_links_and_the_same_command_does_nothing(run, tok, corpus):
    assert run(*BASE, *MODEL).code == 0
    link, file = Path("data/books_text_document.bin"), Path("data/books_text_document")
    assert link.samefile(file / "books_text_document.bin")
    before = link.stat()
    again = run(*BASE, *MODEL)
    assert again.code == 0
    assert "is complete already" in again.err
    assert link.stat() == before
    assert sorted(file.name for file in Path("data").iterdir()) == [
        "books_text_document",
        "books_text_document.bin",
        "books_text_document.idx",
    ]


def test_symbolic_links_where_there_are_no_hard_ones(run, tok, corpus, monkeypatch):
    def refuse(*arguments):
        raise PermissionError("no hard links")

    monkeypatch.setattr(os, "link", refuse)
    assert run(*BASE, *MODEL).code == 0
    link = Path("data/books_text_document.bin")
    assert link.readlink() == Path("books_text_document/books_text_document.bin")
    assert documents() == expected(tok, TEXTS, eod=False)


def test_files_of_others_are_not_replaced(run, tok, corpus):
    Path("data").mkdir()
    Path("data/books_text_document.bin").write_bytes(b"of someone else")
    result = run(*BASE, *MODEL)
    assert result.code == 2
    assert "books_text_document.bin exists" in result.err
    assert not Path("data/books_text_document").exists()
    assert run(*BASE, *MODEL, "--force").code == 0
    assert documents() == expected(tok, TEXTS, eod=False)


@pytest.mark.parametrize("name", ["c.json", "c.txt", "c"])
def test_files_are_json_lines_whatever_their_name(run, tok, corpus, name):
    Path("c.jsonl").rename(name)
    assert run("megatron", "--input", name, "--output-prefix", "a", *MODEL).code == 0
    assert documents("a_text_document") == expected(tok, TEXTS, eod=False)
    Path(name).write_text("[1]\nplain text\n")
    result = run("megatron", "--input", name, "--output-prefix", "b", *MODEL)
    assert result.code == 2
    assert f"{name}:1: byte 0: " in result.err
    assert not Path("b_text_document.bin").exists()


def test_options_without_effect_are_named(run, tok, corpus):
    result = run(*BASE, *MODEL, "--partitions", "4", "--keep-sequential-samples", "--log-interval",
                 "5", "--workers-to-check", "16", "32", "--tokenizer-hf-use-fast",
                 "--vocab-size", "280")  # fmt: skip
    assert result.code == 0, result.err
    assert result.err.splitlines()[0].endswith(
        "without effect here: --partitions, --keep-sequential-samples, --log-interval, "
        "--workers-to-check, --vocab-size, --tokenizer-hf-use-fast"
    )
    assert documents() == expected(tok, TEXTS, eod=False)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--split-sentences"], "each document is one"),
        (["--find-optimal-num-workers"], "a thread per CPU"),
        (["--tiktoken-special-tokens", "<s>", "</s>"], "those of the tokenizer's files"),
        (["--tokenizer-type", "BertWordPieceCase"], "byteweld has byte-level BPE"),
        (["--tokenizer-type", "GPT2BPETokenizer"], "needs --vocab-file and --merge-file"),
        (["--merge-file", "m.txt"], "needs --vocab-file and --merge-file"),
        (["--json-keys", "a/b"], "cannot be part of a file name"),
        (["--json-keys"], "needs a value"),
        (["--output-prefix", "data/"], "must end with the start of a file name"),
        (["--input", "-"], "must be a file"),
        (["--input", "no.jsonl"], "no.jsonl"),
        (["--workers", "0"], "at least 1"),
        (["--tokenizer-hf"], "megatron has no option"),
    ],
)
def test_refusals(run, tok, corpus, arguments, reason):
    result = run(*BASE, *MODEL, *arguments)
    assert result.code == 2
    assert reason in result.err
    assert not Path("data/books_text_document").exists()


@pytest.mark.parametrize("missing", ["--input", "--output-prefix"])
def test_required_options(run, tok, missing):
    arguments = [*BASE[1:], *MODEL]
    at = arguments.index(missing)
    result = run("megatron", *arguments[:at], *arguments[at + 2 :])
    assert result.code == 2
    assert f"missing option {missing}" in result.err


def test_the_tokenizer_is_required(run, corpus):
    assert "needs --tokenizer-model" in run(*BASE).err


def test_a_template_is_applied_if_asked(run, tok, corpus):
    bos = tok.eot_token
    changed(tok, template=((bos,), ()), roles={"bos": bos}).save("tok.json", overwrite=True)
    result = run(*BASE, *MODEL)
    assert "template is not applied" in result.err
    assert documents() == expected(tok, TEXTS, eod=False)
    flag = "--tokenizer-hf-include-special-tokens"
    assert run(*BASE, *MODEL, flag, "--force").code == 0
    plain = expected(tok, TEXTS, eod=False)
    assert documents() == [ids and [bos, *ids] for ids in plain]
    changed(tok, template=((bos,), (bos,)), roles={"bos": bos}).save("tok.json", overwrite=True)
    assert "can be applied" in run(*BASE, *MODEL, flag, "--force").err


def test_several_values_of_an_option():
    assert megatron.prepare(["--json-keys", "a", "b", "--workers", "2", "c"]) == [
        "--json-keys", "a", "--json-keys", "b", "--workers", "2", "c",
    ]  # fmt: skip
