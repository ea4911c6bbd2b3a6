"""tekken.json as mistral-common reads it: special tokens, sizes and order of ids."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byteweld import formats, patterns, reference
from byteweld.errors import FormatError, MissingKeyError, UnsupportedError
from byteweld.formats import recognize, tekken
from byteweld.vocab import Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]
TEXTS = ["", "hello <s> there", "été 日本語", "a\n\n  b", "<SPECIAL_21>[INST]"]


def document(tokens: list[bytes] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a file of an old version: 22 special tokens, 20 of them named."""
    tokens = [*BYTES, b"he", b"ll", b"hell"] if tokens is None else tokens
    config = {
        "pattern": patterns.O200K,
        "num_vocab_tokens": len(tokens),
        "default_vocab_size": len(tokens) + 22,
        "default_num_special_tokens": 22,
        "version": "v3",
    }
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(tokens)
    ]
    return {"config": config, "vocab": vocab} | changes


def specials(*texts: str) -> list[dict[str, Any]]:
    return [{"rank": n, "token_str": text, "is_control": True} for n, text in enumerate(texts)]


def read(value: object, folder: Path) -> Vocabulary:
    path = folder / "t.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return formats.load(path, format="tekken")


# ---------------------------------------------------------------------- reading


def test_a_file_without_special_tokens_has_the_default_ones(tmp_path: Path) -> None:
    vocab = read(document(), tmp_path)
    assert len(vocab) == 256 + 3 + 22
    assert list(vocab.special_tokens)[:3] == ["<unk>", "<s>", "</s>"]
    assert list(vocab.special_tokens)[17:] == [
        *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
        *("<SPECIAL_20>", "<SPECIAL_21>"),
    ]
    assert vocab.roles == {"bos": 1, "eos": 2, "pad": 11, "unk": 0}
    assert vocab.tokens[22 + 97] == b"a"
    assert vocab.merges == [(b"h", b"e"), (b"l", b"l"), (b"he", b"ll")]
    assert reference.encode(vocab, "hello") == [22 + 258, 22 + 111]
    assert reference.encode(vocab, "<s>", allowed_special="all") == [1]


def test_the_sizes_determine_how_many_tokens_are_used(tmp_path: Path) -> None:
    value = document()
    value["config"]["default_vocab_size"] -= 1
    value["vocab"][-1]["token_bytes"] = "not base64, and nobody looks"
    vocab = read(value, tmp_path)
    assert len(vocab) == 256 + 2 + 22
    assert reference.encode(vocab, "hell") == [22 + 256, 22 + 257]


def test_a_file_with_special_tokens_has_these_and_fills_the_rest(tmp_path: Path) -> None:
    value = document(special_tokens=specials("<pad>", "[X]"), image={"image_patch_size": 16})
    value["config"]["version"] = "v13"
    vocab = read(value, tmp_path)
    assert list(vocab.special_tokens)[:3] == ["<pad>", "[X]", "<SPECIAL_2>"]
    assert vocab.roles == {"pad": 0}


def test_ranks_that_are_not_a_merge_list_stay_ranks(tmp_path: Path) -> None:
    vocab = read(document([*BYTES, b"abc"]), tmp_path)
    assert vocab.ranking == "ranks"
    assert reference.encode(vocab, "abc") == [22 + 256]


Change = Callable[[dict[str, Any]], object]


def config(**changes: Any) -> Change:
    return lambda value: value["config"].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (config(version="three"), "version is 'three'"),
        (config(version=3), "version is 3"),
        (config(version="v11"), "lists no special tokens; after v7 it must"),
        (config(pattern=None), "'pattern' is None"),
        (config(default_num_special_tokens=19, default_vocab_size=278), "at least 20"),
        (config(default_num_special_tokens=-1), "'default_num_special_tokens' is -1"),
        (config(default_vocab_size=True), "'default_vocab_size' is True"),
        (config(default_vocab_size=900), "imply 878 tokens, but it lists 259"),
        (config(default_vocab_size=100), "imply 78 tokens"),
        (
            config(default_vocab_size=4_000_000_259, default_num_special_tokens=4_000_000_000),
            "at most 259, the number of other tokens",
        ),
        (lambda v: v.update(special_tokens={}), "'special_tokens' is {}"),
        (lambda v: v.update(special_tokens=specials("a", "a")), "'a' is given twice"),
        (
            lambda v: v.update(special_tokens=specials("<SPECIAL_21>")),
            "'<SPECIAL_21>' is given twice",
        ),
        (
            lambda v: v.update(special_tokens=specials("a", "")),
            "'token_str' of special token 1 is ''",
        ),
        (
            lambda v: v.update(special_tokens=specials("a", "b")[::-1]),
            "'rank' of special token 0 is 1",
        ),
        (lambda v: v.update(special_tokens=["a"]), "special token 0 is 'a'"),
        (lambda v: v.update(vocab={}), "'vocab' is {}"),
        (lambda v: v["vocab"].reverse(), "'rank' of token 0 is 258"),
        (lambda v: v["vocab"][7].update(token_bytes="AA"), "'token_bytes' of token 7 is 'AA'"),
        (lambda v: v["vocab"][7].update(token_bytes=""), "token 7"),
        (lambda v: v["vocab"][7].update(token_bytes="CA=="), "the first 256 are the bytes"),
        (lambda v: v["vocab"][258].update(token_bytes="bGw="), "ids 279 and 280 are both b'll'"),
        (lambda v: v["vocab"].__setitem__(9, 9), "token 9 is 9"),
    ],
)
def test_what_is_wrong_is_a_format_error_with_the_path(
    tmp_path: Path, change: Change, message: str
) -> None:
    value = document()
    change(value)
    with pytest.raises(FormatError, match=message) as caught:
        read(value, tmp_path)
    assert caught.value.path == str(tmp_path / "t.json")


def test_missing_parts_are_missing_keys_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    for where, keys in (
        ((), ("config", "vocab")),
        (("config",), ("pattern", "version", "default_vocab_size")),
        (("vocab", 3), ("rank", "token_bytes")),
    ):
        for key in keys:
            value = document()
            inner: Any = value
            for step in where:
                inner = inner[step]
            del inner[key]
            with pytest.raises(MissingKeyError, match=key):
                read(value, tmp_path)
            inner[key] = None
            inner["novel"] = 1
            with pytest.raises((UnsupportedError, FormatError)):
                read(value, tmp_path)


def test_recognition_needs_an_object_and_a_key_of_tekken(tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    for value in (document(), {"vocab": document()["vocab"], "config": document()["config"]}):
        path.write_text(json.dumps(value, indent=1), encoding="utf-8")
        assert recognize(path) == "tekken"
    assert not tekken.recognize(path, b'{"vocab": [], "config": {"pattern": "x"}}')
    assert not tekken.recognize(path, b'["token_bytes": "AA=="]')


# ---------------------------------------------------------------------- writing


def test_what_is_read_is_written_and_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    for value in (document(), document([*BYTES, b"abc"]), document(special_tokens=specials("x"))):
        vocab = read(value, tmp_path)
        formats.save(vocab, path, overwrite=True, format="tekken")
        assert recognize(path) == "tekken"
        assert formats.load(path, format="tekken") == vocab
    with pytest.raises(FileExistsError, match="overwrite=True"):
        formats.save(vocab, path, format="tekken")


def test_mistral_common_reads_what_is_written_with_our_ids(tmp_path: Path) -> None:
    module = pytest.importorskip(
        "mistral_common.tokens.tokenizers.tekken", reason="mistral-common is not installed"
    )
    vocab = read(document(), tmp_path)
    path = tmp_path / "tekken.json"
    formats.save(vocab, path, format="tekken")
    peer = module.Tekkenizer.from_file(path)
    for text in TEXTS:
        assert peer.encode(text, bos=False, eos=False) == reference.encode(vocab, text)
    assert (peer.bos_id, peer.eos_id, peer.pad_id, peer.unk_id) == (1, 2, 11, 0)


def test_a_bare_word_is_a_regular_expression_and_not_a_name(tmp_path):
    value = document()
    config(pattern="gpt2")(value)
    assert read(value, tmp_path).pattern == "(?:gpt2)"
