"""vocab.json + merges.txt: read under both names, written as others read them, nothing guessed."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byteweld import formats, patterns, reference
from byteweld._byte_letters import BYTE_TO_CHAR
from byteweld.errors import FormatError, UnsupportedError
from byteweld.formats import vocab_merges as gpt2
from byteweld.vocab import Vocabulary
from tests.helpers.strategies import examples

load = partial(formats.load, format="gpt2")
save = partial(formats.save, format="gpt2")

BYTES = {byte: bytes([byte]) for byte in range(256)}
LETTERS = {BYTE_TO_CHAR[byte]: byte for byte in range(256)}
NONE: dict[str, Any] = {"pattern": None, "special_tokens": {}}
TEXTS = ["", " ab", "abab  ab\n\n", "été \x00\x7f\xad 日本語 🦊", "x<|eot|>ab"]


def sound() -> Vocabulary:
    return Vocabulary(
        BYTES | {256: b"ab", 257: b" ab", 258: "é".encode(), 300: b"<|eot|>"},
        [(97, 98, 256), (32, 256, 257), (0xC3, 0xA9, 258)],
        special_tokens={"<|eot|>": 300},
        pattern=patterns.GPT2,
        roles={"eos": 300},
    )


def put(folder: Path, ids: object, merges: str, names: tuple[str, str] | None = None) -> Path:
    vocab_name, merges_name = names or ("vocab.json", "merges.txt")
    text = ids if isinstance(ids, str) else json.dumps(ids)
    (folder / vocab_name).write_text(text, encoding="utf-8")
    (folder / merges_name).write_bytes(merges.encode())
    return folder


# ---------------------------------------------------------------------- writing


def test_what_is_saved_is_loaded_the_same(tmp_path: Path) -> None:
    save(sound(), tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"vocab.json", "merges.txt", "byteweld.json"}
    assert (tmp_path / "out/merges.txt").read_text("utf-8") == ("#version: 0.2\na b\nĠ ab\nÃ ©\n")
    assert load(tmp_path / "out") == sound()
    assert load(tmp_path / "out/vocab.json") == sound()
    save(sound(), tmp_path / "out/vocab.json", overwrite=True)
    assert load(tmp_path / "out") == sound()


@examples(40)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=25),
    texts=st.lists(st.text("ab #é\n", max_size=40), min_size=3, max_size=6),
)
def test_the_real_library_gives_our_ids(
    tmp_path: Path, pairs: list[tuple[int, int]], texts: list[str]
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokens = dict(BYTES)
    order = list(b"ab #\xc3\xa9\n")
    merges = []
    for left, right in pairs:
        a, b = order[left % len(order)], order[right % len(order)]
        if tokens[a] + tokens[b] not in tokens.values() and len(tokens[a] + tokens[b]) < 20:
            merges.append((a, b, len(tokens)))
            order.append(len(tokens))
            tokens[len(tokens)] = tokens[a] + tokens[b]
    vocab = Vocabulary(tokens, merges, pattern=patterns.GPT2)
    save(vocab, tmp_path, overwrite=True)
    model = tokenizers.models.BPE.from_file(
        str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")
    )
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in texts:
        assert tokenizer.encode(text).ids == reference.encode(vocab, text)
    assert load(tmp_path) == vocab


def test_special_tokens_of_any_text_are_kept(tmp_path: Path) -> None:
    texts = ["Ġthe", "日本 語", "\n", "<a b>", '"\\']
    special_tokens = {text: 400 + n for n, text in enumerate(texts)}
    vocab = Vocabulary(
        BYTES | {i: text.encode() for text, i in special_tokens.items()},
        special_tokens=special_tokens,
    )
    save(vocab, tmp_path / "a")
    assert load(tmp_path / "a") == vocab
    shared = Vocabulary(BYTES | {256: b" a"}, [(32, 97, 256)], special_tokens={" a": 256})
    save(shared, tmp_path / "b")
    assert load(tmp_path / "b") == shared


# ---------------------------------------------------------------------- reading


def test_both_pairs_of_names_are_read(tmp_path: Path) -> None:
    merges = "#version: 0.2\na b\n"
    put(tmp_path, LETTERS | {"ab": 256}, merges, ("encoder.json", "vocab.bpe"))
    vocab = load(tmp_path, **NONE)
    assert vocab.merges == [(b"a", b"b")]
    assert load(tmp_path / "encoder.json", **NONE) == vocab


def test_without_pattern_and_special_tokens_the_error_says_how_to_give_them(
    tmp_path: Path,
) -> None:
    put(tmp_path, LETTERS, "#version: 0.2\n")
    with pytest.raises(FormatError, match=r"no byteweld.json .* pass pattern= .*special_tokens="):
        load(tmp_path)
    vocab = load(tmp_path, pattern="gpt2", special_tokens={"<s>": 256}, roles={"bos": 256})
    assert (vocab.pattern, vocab.roles) == (patterns.GPT2, {"bos": 256})


@pytest.mark.parametrize(
    ("merges", "line", "message"),
    [
        ("", 1, "expected '#version: 0.2', found ''"),
        ("a b\n", 1, "found 'a b'"),
        ("#version: 0.2\na b\nab\n", 3, "expected two tokens and a space between them, found 'ab'"),
        *(
            (f"#version: 0.2\n{line}\na b\n", 2, f"a space between them, found {line!r}")
            for line in (" b", "b ", " ", "a b c", "a  b", " a b")
        ),
        ("#version: 0.2\n\na b\n", 2, "expected two tokens"),
        ("#version: 0.2\na b\r\n", 2, "not in the vocabulary"),
        ("#version: 0.2\na c\n", 2, "'ac' is not in the vocabulary"),
        ("#version: 0.2\na b\n#version s\n", 3, "Hugging Face skips"),
    ],
)
def test_an_error_in_the_merges_names_its_line(
    tmp_path: Path, merges: str, line: int, message: str
) -> None:
    put(tmp_path, LETTERS | {"ab": 256}, merges)
    with pytest.raises(FormatError, match=message) as caught:
        load(tmp_path, **NONE)
    assert str(caught.value).startswith(f"{tmp_path / 'merges.txt'}:{line}: ")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("[]", "expected a JSON object"),
        ('{"a": 1, "a": 2}', "repeated"),
        ('{"a": NaN}', "NaN"),
        ({"a": "1"}, "the id of 'a' is '1'; expected an integer"),
        ({"a": 1.0}, "the id of 'a' is 1.0"),
        (LETTERS | {"zz": 97}, "same id 97"),
        (LETTERS | {"<日>": 300}, r"pass special_tokens=\{'<日>': 300"),
        (LETTERS | {"": 300}, "not written in byte letters"),
        ({"a": 1}, "255 of 256 bytes"),
        (LETTERS | {"ab": 256}, "merges 0 and 1 merge the same pair"),
    ],
)
def test_a_bad_vocabulary_is_a_format_error(tmp_path: Path, ids: object, message: str) -> None:
    put(tmp_path, ids, "#version: 0.2\n" + "a b\n" * 2 * ("merges" in message))
    with pytest.raises(FormatError, match=message):
        load(tmp_path, **NONE)


def test_a_special_token_with_another_id_than_in_the_file_is_refused(tmp_path: Path) -> None:
    put(tmp_path, LETTERS | {"<s>": 256}, "#version: 0.2\n")
    with pytest.raises(FormatError, match="'<s>' has id 300, but the file gives it 256"):
        load(tmp_path, pattern=None, special_tokens={"<s>": 300})
    with pytest.raises(FormatError, match="'<t>' has id 97"):
        load(tmp_path, pattern=None, special_tokens={"<t>": 97})
    vocab = load(tmp_path, pattern=None, special_tokens={"<s>": 256})
    assert vocab.special_tokens == {"<s>": 256}


def test_recognition_is_by_the_files_of_the_folder(tmp_path: Path) -> None:
    assert not gpt2.recognize(tmp_path, b"")
    save(sound(), tmp_path)
    assert gpt2.recognize(tmp_path, b"")
    path = tmp_path / "vocab.json"
    assert gpt2.recognize(path, path.read_bytes())
    assert not gpt2.recognize(path, b'{"model": {}}')
    assert not gpt2.recognize(tmp_path / "other.json", path.read_bytes())
    (tmp_path / "merges.txt").unlink()
    assert not gpt2.recognize(path, path.read_bytes())
    assert not gpt2.recognize(tmp_path, b"")


def test_the_original_files_of_gpt2_are_the_same_vocabulary(tmp_path: Path, shared: Path) -> None:
    for name in ("gpt2/encoder.json", "gpt2/vocab.bpe", "hf/gpt2.tokenizer.json"):
        data = gzip.decompress((shared / "vocabs" / f"{name}.gz").read_bytes())
        (tmp_path / name.rpartition("/")[2]).write_bytes(data)
    vocab = load(tmp_path, pattern="gpt2", special_tokens={"<|endoftext|>": 50256})
    assert vocab == formats.load(tmp_path / "gpt2.tokenizer.json", format="huggingface")
    save(vocab, tmp_path / "out")
    assert (tmp_path / "out/merges.txt").read_bytes() == (tmp_path / "vocab.bpe").read_bytes()
    assert load(tmp_path / "out") == vocab


# ---------------------------------------------------------------------- what only one check notices


@pytest.mark.parametrize("name", ["merges.txt", "vocab.json", "vocab.bpe", "encoder.json"])
def test_a_folder_with_one_of_the_two_files_is_not_the_format(tmp_path: Path, name: str) -> None:
    save(sound(), tmp_path / "saved")
    (tmp_path / "out").mkdir()
    saved = tmp_path / "saved" / name
    (tmp_path / "out" / name).write_bytes(saved.read_bytes() if saved.exists() else b"{}")
    with pytest.raises(FormatError, match=r"expected a folder with vocab\.json and merges\.txt"):
        load(tmp_path / "out")
    if name == "vocab.json":
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "out" / name)


def test_a_folder_may_have_the_name_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").mkdir()
    put(tmp_path / "vocab.json", LETTERS | {"ab": 256}, "#version: 0.2\na b\n")
    assert load(tmp_path / "vocab.json", **NONE).merges == [(b"a", b"b")]


def test_another_alphabet_beside_the_files_is_refused(tmp_path: Path) -> None:
    save(sound(), tmp_path / "out")
    sidecar = tmp_path / "out" / "byteweld.json"
    sidecar.write_text(sidecar.read_text().replace('"alphabet": "bytes"', '"alphabet": "ascii"'))
    with pytest.raises(UnsupportedError, match="such a sidecar cannot have the alphabet 'ascii'"):
        load(tmp_path / "out")


def test_the_last_line_needs_no_line_end(tmp_path: Path) -> None:
    ids = LETTERS | {"ab": 256, "abc": 257}
    with_end = load(put(tmp_path, ids, "#version: 0.2\na b\nab c\n"), **NONE)
    without = load(put(tmp_path, ids, "#version: 0.2\na b\nab c"), **NONE)
    assert len(without.merges) == 2
    assert without == with_end


def test_a_token_that_a_merge_makes_is_in_byte_letters_even_if_it_is_special(
    tmp_path: Path,
) -> None:
    put(tmp_path, LETTERS | {"ab": 256, "Ġa": 257}, "#version: 0.2\na b\nĠ a\n")
    loaded = load(tmp_path, pattern=None, special_tokens={"ab": 256})
    assert loaded.tokens[256] == b"ab"
    with pytest.raises(FormatError, match=r"'Ġa' has id 257, whose bytes are b' a'"):
        load(tmp_path, pattern=None, special_tokens={"Ġa": 257})
