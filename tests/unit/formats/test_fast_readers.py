"""A vocabulary read into the engine's table is the same as a plain one, and so are its errors."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import ByteweldError, Vocabulary, _native, formats
from tests.helpers.plain_readers import plain_readers

TEXTS = ["low lower lowest", "naïve «café» 東京", "\t x = [1, 22, 333]\n", "<|end|> <|end|>"]


def outcome(load) -> object:
    """Return the whole outcome: all parts of the vocabulary, or the error and its message."""
    try:
        vocab = load()
    except (ByteweldError, ValueError, TypeError) as error:
        return type(error), str(error)
    return (
        vocab.merge_ids,
        vocab.traits(),
        dict(vocab.tokens),
        vocab.fingerprint,
        dict(vocab.ids),
        len(vocab),
    )


def check(path: Path, **options) -> None:
    """Check that loading has the same outcome with the plain readers."""
    load = partial(formats.load, path, **options)
    with plain_readers():
        expected = outcome(load)
    assert outcome(load) == expected


@pytest.fixture(scope="module")
def small() -> byteweld.Tokenizer:
    texts = [*TEXTS[:3], "the cat sat on the mat, the cat"] * 5
    return byteweld.train(iter(texts), vocab_size=330, special_tokens=["<|end|>"])


@pytest.fixture(scope="module")
def files(small, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    made = {"ranks": folder / "small.tiktoken", "json": folder / "small.json"}
    for path in made.values():
        small.save(path)
    return made


# ---------------------------------------------------------------------- the same vocabulary


@pytest.mark.parametrize("kind", ["ranks", "json"])
def test_a_typical_file_is_read_into_a_table(kind, files, small):
    vocab = formats.load(files[kind])
    assert vocab._table is not None
    assert "tokens" not in vars(vocab)  # not made before they are used
    assert vocab == small.vocab
    check(files[kind])
    tok = byteweld.Tokenizer(vocab)
    for text in TEXTS:
        assert tok.encode(text, allowed_special="all") == small.encode(text, allowed_special="all")


def real(shared: Path, kind: str, name: str) -> tuple[bytes, dict]:
    index = json.loads((shared / "vocabs" / "index.json").read_bytes())["vocabs"]
    (entry,) = [e for e in index if (e["kind"], e["name"]) == (kind, name)]
    options = {}
    if kind == "tiktoken":
        options = {"pattern": entry["pat_str"], "special_tokens": entry["special_tokens"]}
    return gzip.decompress((shared / "vocabs" / entry["file"]).read_bytes()), options


SMALL = {("tiktoken", "r50k_base"), ("hf", "gpt2"), ("hf", "v_added_flags")}
REAL = [
    *(("tiktoken", n) for n in ("r50k_base", "p50k_edit", "cl100k_base", "o200k_harmony")),
    *(("tiktoken", n) for n in ("llama3", "llama4", "qwen", "kimi_k2", "whisper_multilingual")),
    *(("hf", n) for n in ("gpt2", "v_added_flags", "gpt2_legacy", "gpt4o", "llama3_2", "qwen3")),
    *(("hf", n) for n in ("deepseek_v3", "mistral_nemo", "command_r_plus", "claude", "falcon")),
    *(("hf", n) for n in ("gpt_neox", "modernbert", "starcoder", "clip_base", "v_prefix_space")),
]


@pytest.mark.parametrize(
    ("kind", "name"),
    [p if p in SMALL else pytest.param(*p, marks=pytest.mark.slow) for p in REAL],
)
def test_real_vocabularies_are_the_same(kind, name, shared, tmp_path):
    data, options = real(shared, kind, name)
    path = tmp_path / "vocabulary"
    path.write_bytes(data)
    check(path, **options)


# ---------------------------------------------------------------------- the same error


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"merges": [\n', '"merges": [\n      ["a", "b", "c"],\n'),
        ('"merges": [\n', '"merges": [\n      ["the", "nothing"],\n'),
        ('"vocab": {\n', '"vocab": {\n      "Ā€": 700,\n'),
        ('"vocab": {\n', '"vocab": {\n      "é": 700, "é": 701,\n'),
        ('"vocab": {\n', '"vocab": {\n      "new": 0,\n'),
        ('"vocab": {\n', '"vocab": {\n      "new": 1.5,\n'),
        ('"vocab": {\n', '"vocab": {\n      "new": true,\n'),
        ('"vocab": {\n', '"vocab": {\n      "\\ud800": 700,\n'),
        ('"vocab": {\n', '"vocab": {\n      "": 700,\n'),
        ('"vocab": {\n', '"vocab": {\n      "far": 4000000000,\n'),
        ('"vocab": {\n', '"vocab": {\n      "hole": 331,\n'),
        ('"vocab": {\n', '"vocab": {\n      "東京": 700,\n'),
        ('"ignore_merges": false', '"ignore_merges": true'),
        ('"ignore_merges": false', '"ignore_merges": 1'),
        ('"byte_fallback": false', '"byte_fallback": true'),
        ('"unk_token": null', '"unk_token": "the"'),
        ('"type": "BPE"', '"type": "WordPiece"'),
        ('"content": "<|end|>"', '"content": "é"'),
        ('"content": "<|end|>"', '"content": "Ġthe"'),
        ('"special": true', '"special": false'),
        ('"version": "1.0"', '"version": "2.0"'),
        ('"truncation": null', '"truncation": null, "truncation": null'),
        ('"model": {', '"model": {"vocab": {}, '),
        ('"model": {', '"model": null, "model": {'),
    ],
)
def test_an_odd_file_is_read_or_refused_with_the_same_error(old, new, files, tmp_path):
    text = files["json"].read_text("utf-8")
    assert old in text
    path = tmp_path / "odd.json"
    path.write_text(text.replace(old, new, 1), "utf-8")
    check(path, format="huggingface")


BYTES = b'"{}[]:,\\ \n019aG=+ue\x00\xff'


@given(offset=st.integers(0), byte=st.sampled_from(BYTES), cut=st.booleans())
@pytest.mark.parametrize("kind", ["ranks", "json"])
def test_any_change_of_a_byte_has_the_same_outcome(kind, offset, byte, cut, files):
    data = bytearray(files[kind].read_bytes())
    offset %= len(data)
    data[offset] = byte
    path = files[kind].with_name(f"changed.{kind}")
    path.write_bytes(data[:offset] if cut else data)
    options = {"pattern": "gpt2", "special_tokens": {"<|end|>": 329}} if kind == "ranks" else {}
    name = {"ranks": "tiktoken", "json": "huggingface"}[kind]
    check(path, format=name, **options)


@pytest.mark.parametrize(
    "specials",
    [
        *({"<|end|>": 5000}, {"<|end|>": 400, "<|too|>": 400}, {"ab": 0}, {"<|end|>": 0}),
        *({"": 400}, {"<|end|>": -1}, {"<|end|>": 2**32}, {"a": 400}, {}),
    ],
)
def test_special_tokens_of_ranks_are_the_same(specials, files, tmp_path):
    path = tmp_path / "ranks.tiktoken"
    path.write_bytes(files["ranks"].read_bytes())
    check(path, pattern=None, special_tokens=specials)


# ---------------------------------------------------------------------- the checks of a table


@given(changes=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_table_is_checked_as_a_vocabulary_is(changes, small):
    ordinary = dict(small.vocab.ordinary())
    table = _native.TokenizerJson.read(letters(ordinary, small.vocab.merges)).table
    data = bytearray(table.store())
    for offset, value in changes:
        data[12 + offset % (len(data) - 12)] = value
    changed = _native.Table.restore(bytes(data))
    if changed is not None:
        rest = {"pattern": "gpt2", "special_tokens": {"low": 5}}
        fast = outcome(lambda: Vocabulary._of_table(changed, **rest))
        assert fast == outcome(lambda: Vocabulary(changed.tokens(), changed.merges(), **rest))


def letters(tokens: dict[int, bytes], merges: list[tuple[bytes, bytes]]) -> bytes:
    from byteweld._byte_letters import bytes_to_chars as spell

    model = {
        "vocab": {spell(token): token_id for token_id, token in tokens.items()},
        "merges": [[spell(left), spell(right)] for left, right in merges],
    }
    level = {"type": "ByteLevel", "add_prefix_space": False}
    return json.dumps({"pre_tokenizer": level, "model": model}).encode()


def test_a_vocabulary_of_a_table_is_a_vocabulary(files):
    import copy
    import pickle

    vocab = formats.load(files["json"])
    plain = Vocabulary(
        dict(vocab.tokens),
        vocab.merge_ids,
        special_tokens=vocab.special_tokens,
        pattern=vocab.pattern,
    )
    assert vocab == plain
    assert hash(vocab) == hash(plain)
    assert repr(vocab) == repr(plain)
    assert (vocab.merges, vocab.extras, vocab.twins) == (plain.merges, plain.extras, plain.twins)
    assert list(vocab.not_ordinary()) == list(plain.not_ordinary())
    assert pickle.loads(pickle.dumps(vocab)) == plain
    assert copy.copy(vocab) == plain
    with pytest.raises(AttributeError, match="immutable"):
        vocab.tokens = {}
