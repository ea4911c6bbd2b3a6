"""nanochat's tokenizer folder: what tiktoken makes of it, and that it is never read."""

from __future__ import annotations

import importlib.util
import os
import pickle
import pickletools
import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken

import byteweld
from byteweld import formats, patterns
from byteweld.errors import UnsupportedError
from byteweld.vocab import Vocabulary
from tests.helpers.vocabularies import BYTES, EXTRAS

SPECIALS = {"<|bos|>": 300, "<|user_start|>": 301}
TEXTS = ["", "low lower lowest", "12345 67", "naïve 你好 🌍\r\n\n  x", "<|bos|> is text"]


def trained(**options):
    text = "low lower lowest newer wider 12345 naïve 你好 " * 3
    return byteweld.train(documents=[text], vocab_size=300, pattern="nanochat", **options)


@pytest.fixture(scope="module")
def tok():
    vocab = trained().vocab
    tokens = {i: t for i, t in vocab.ordinary()}
    first = max(tokens) + 1
    specials = {text: first + n for n, text in enumerate(SPECIALS)}
    return byteweld.Tokenizer.from_ranks(
        {t: i for i, t in tokens.items()}, pattern=vocab.pattern, special_tokens=specials
    )


def saved(tok, folder):
    tok.save(folder, format="nanochat")
    return (folder / "tokenizer.pkl").read_bytes()


def test_tiktoken_gives_the_same_ids(tok, tmp_path):
    encoding = pickle.loads(saved(tok, tmp_path / "tokenizer"))
    assert type(encoding) is tiktoken.Encoding
    assert encoding.n_vocab == tok.max_token_value + 1
    for text in TEXTS:
        assert encoding.encode_ordinary(text) == tok.encode(text, disallowed_special=())
        assert encoding.encode(text, allowed_special="all") == tok.encode(
            text, allowed_special="all"
        )
    assert encoding.encode_single_token("<|bos|>") == tok.vocab.special_tokens["<|bos|>"]


def test_the_pickle_names_nothing_but_the_encoding(tok, tmp_path):
    data = saved(tok, tmp_path / "tokenizer")
    names, strings = [], []
    for opcode, value, _ in pickletools.genops(data):
        if opcode.name.endswith("UNICODE"):
            strings.append(value)
        if opcode.name == "STACK_GLOBAL":
            names.append(tuple(strings[-2:]))
        assert opcode.name not in ("GLOBAL", "INST", "REDUCE")
    assert names == [("tiktoken.core", "Encoding")]


def test_every_process_writes_the_same_bytes(tok, tmp_path):
    data = saved(tok, tmp_path / "a")
    tok.save(tmp_path / "t.tiktoken")
    code = "import sys, byteweld; byteweld.load(sys.argv[1]).save(sys.argv[2], format='nanochat')"
    paths = [tmp_path / "t.tiktoken", tmp_path / "b"]
    subprocess.run(
        [sys.executable, "-c", code, *paths],
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "7"},
    )
    assert (tmp_path / "b/tokenizer.pkl").read_bytes() == data


def test_a_vocabulary_without_a_pattern_is_one_piece(tmp_path):
    vocab = Vocabulary(
        BYTES | {256: b"ab", 257: b"b a", 258: b"<|bos|>"},
        [(97, 98, 256)],
        special_tokens={"<|bos|>": 258},
    )
    whole = Vocabulary(
        BYTES | {256: b" a", 257: b"b a", 258: b"<|bos|>"},
        [(32, 97, 256), (98, 256, 257)],
        special_tokens={"<|bos|>": 258},
    )
    with pytest.raises(UnsupportedError, match="cannot be made by merging"):
        formats.save(vocab, tmp_path / "no", format="nanochat")
    formats.save(whole, tmp_path / "yes", format="nanochat")
    encoding = pickle.loads((tmp_path / "yes/tokenizer.pkl").read_bytes())
    assert encoding.encode("ab a\nb a") == byteweld.Tokenizer(whole).encode("ab a\nb a")


# ---------------------------------------------------------------------- refused


def test_a_vocabulary_that_nanochat_cannot_use_is_refused(tmp_path):
    path = tmp_path / "tokenizer"
    for vocab, message in [
        (Vocabulary(BYTES), "has no special token '<|bos|>'"),
        (Vocabulary(BYTES, pattern=patterns.PATTERNS["ck-runtime"]), "matches bytes"),
        *((vocab, f"cannot hold .*: {extra}") for extra, vocab in EXTRAS.items()),
    ]:
        for write in (formats.check, formats.save):
            with pytest.raises(UnsupportedError, match=message.replace("|", r"\|")):
                write(vocab, path, format="nanochat")
    assert not path.exists()


def test_without_tiktoken_an_error_says_how_to_install_it(tok, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    for write in (formats.check, formats.save):
        with pytest.raises(ImportError, match=r"pip install 'byteweld\[prove\]'"):
            write(tok.vocab, tmp_path / "tokenizer", format="nanochat")


def test_a_pickle_is_never_read(tok, tmp_path, monkeypatch):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    folder = tmp_path / "tokenizer"
    folder.mkdir()
    (folder / "tokenizer.pkl").write_bytes(pickle.dumps(Trap()))
    for path in (folder, folder / "tokenizer.pkl"):
        for format in (None, "nanochat"):
            with pytest.raises(UnsupportedError, match=r"never does; .*from_ranks\("):
                byteweld.load(path, format=format)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        (tmp_path / "odd.name").write_bytes(pickle.dumps(Trap(), protocol=protocol))
        with pytest.raises(UnsupportedError, match="holds a pickle"):
            formats.recognize(tmp_path / "odd.name")
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(FileNotFoundError):
        byteweld.load(tmp_path / "nowhere", format="nanochat")


def test_the_way_that_the_error_names_works(tok, tmp_path):
    enc = pickle.loads(saved(tok, tmp_path / "tokenizer"))
    again = byteweld.Tokenizer.from_ranks(
        enc._mergeable_ranks, pattern=enc._pat_str, special_tokens=enc._special_tokens
    )
    assert again.vocab.fingerprint == tok.vocab.fingerprint


# ---------------------------------------------------------------------- files


def test_files_lists_what_is_written(tok, tmp_path):
    listed = formats.files(tok.vocab, tmp_path / "out", "nanochat")
    saved(tok, tmp_path / "out")
    assert sorted(listed) == sorted((tmp_path / "out").iterdir())
    assert listed[0].name == "tokenizer.pkl"
    has_torch = importlib.util.find_spec("torch") is not None
    assert (tmp_path / "out/token_bytes.pt" in listed) == has_torch


def test_a_training_report_is_next_to_it(tmp_path):
    tok = trained(special_tokens=["<|bos|>"])
    saved(tok, tmp_path / "out")
    assert len(list(Path(tmp_path / "out").iterdir())) >= 2
