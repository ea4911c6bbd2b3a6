"""Roles in tokenizer_config.json: written, merged, read back, shown by the real library."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld import formats
from byteweld.errors import FormatError
from byteweld.formats._beside import sidecar_path
from byteweld.vocab import Vocabulary

BYTES = {byte: bytes([byte]) for byte in range(256)}
SPECIALS = {"<s>": 256, "</s>": 257, "<pad>": 258}
ROLES = {"bos": 256, "eos": 257, "pad": 258}


def vocabulary(roles: dict[str, int] | None = None, **changes: Any) -> Vocabulary:
    tokens = BYTES | {i: text.encode() for text, i in SPECIALS.items()} | {259: b"ab"}
    fields: dict[str, Any] = {"special_tokens": SPECIALS, "pattern": "gpt2"} | changes
    return Vocabulary(tokens, [(97, 98, 259)], roles=roles, **fields)


@pytest.fixture
def main(tmp_path: Path) -> Path:
    return tmp_path / "tokenizer.json"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "tokenizer_config.json"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def put(path: Path, value: object) -> bytes:
    data = json.dumps(value).encode()
    path.write_bytes(data)
    return data


# ---------------------------------------------------------------------- writing


def test_roles_are_written_for_transformers_and_read_back(main: Path, config: Path) -> None:
    vocab = vocabulary(ROLES)
    assert formats.files(vocab, main) == [main, config]
    formats.save(vocab, main)
    assert names(main.parent) == {main.name, config.name}
    assert config.read_text("utf-8") == (
        '{\n  "bos_token": "<s>",\n  "eos_token": "</s>",\n  "pad_token": "<pad>",\n'
        '  "tokenizer_class": "PreTrainedTokenizerFast"\n}\n'
    )
    assert formats.load(main) == vocab


def test_without_roles_nothing_else_is_written(main: Path) -> None:
    assert formats.files(vocabulary(), main) == [main]
    formats.save(vocabulary(), main)
    assert names(main.parent) == {main.name}


def test_the_tokenizer_json_itself_does_not_depend_on_roles(main: Path, tmp_path: Path) -> None:
    formats.save(vocabulary(), main)
    formats.save(vocabulary(ROLES), tmp_path / "books.json")
    assert main.read_bytes() == (tmp_path / "books.json").read_bytes()


def test_under_another_name_roles_are_in_a_sidecar(tmp_path: Path) -> None:
    put(tmp_path / "tokenizer_config.json", {"eos_token": "<pad>"})
    path = tmp_path / "books.json"
    formats.save(vocabulary(ROLES), path)
    assert names(tmp_path) == {path.name, f"{path.name}.byteweld.json", "tokenizer_config.json"}
    assert formats.load(path) == vocabulary(ROLES)


def test_a_role_that_a_name_suggests_but_the_vocabulary_lacks_is_null(
    main: Path, config: Path
) -> None:
    specials = {"<|bos|>": 256, "<|eos|>": 257}
    tokens = BYTES | {i: text.encode() for text, i in specials.items()}
    vocab = Vocabulary(tokens, special_tokens=specials, roles={"eos": 257})
    formats.save(vocab, main)
    assert json.loads(config.read_bytes())["bos_token"] is None
    assert formats.load(main) == vocab


def test_an_existing_config_keeps_its_other_keys(main: Path, config: Path) -> None:
    template = {"chat_template": "{{ 'é' }}", "model_max_length": 10**30, "pad_token": None}
    eos = {"__type": "AddedToken", "content": "</s>", "lstrip": False}
    put(config, template | {"eos_token": eos})
    assert formats.files(vocabulary(ROLES), main) == [main]  # nothing is replaced
    formats.save(vocabulary(ROLES), main)
    assert json.loads(config.read_bytes()) == template | {
        "eos_token": eos,
        "bos_token": "<s>",
        "pad_token": "<pad>",
    }
    assert formats.load(main) == vocabulary(ROLES)


def test_a_complete_config_is_not_rewritten(main: Path, config: Path) -> None:
    formats.save(vocabulary(ROLES), main)
    before = put(config, json.loads(config.read_bytes()))
    formats.save(vocabulary(ROLES), main, overwrite=True)
    assert config.read_bytes() == before


def test_a_role_that_differs_is_replaced_only_with_overwrite(main: Path, config: Path) -> None:
    before = put(config, {"eos_token": "<pad>", "other": 1})
    assert formats.files(vocabulary(ROLES), main) == [main, config]
    with pytest.raises(FileExistsError, match=config.name):
        formats.save(vocabulary(ROLES), main)
    assert names(main.parent) == {config.name}
    assert config.read_bytes() == before
    formats.save(vocabulary(ROLES), main, overwrite=True)
    found = json.loads(config.read_bytes())
    assert (found["eos_token"], found["other"]) == ("</s>", 1)


@pytest.mark.parametrize("roles", [None, {"eos": 257}])
def test_a_role_that_the_vocabulary_no_longer_has_becomes_null(
    main: Path, config: Path, roles: dict[str, int] | None
) -> None:
    formats.save(vocabulary(ROLES), main)
    others = {"chat_template": "{{ x }}", "add_bos_token": True}
    put(config, json.loads(config.read_bytes()) | others)
    vocab = vocabulary(roles)
    assert formats.files(vocab, main) == [main, config]
    main.unlink()
    with pytest.raises(FileExistsError, match=config.name):
        formats.save(vocab, main)
    formats.save(vocab, main, overwrite=True)
    found = json.loads(config.read_bytes())
    assert [found[f"{role}_token"] for role in ROLES] == [None, "</s>" if roles else None, None]
    assert {key: found[key] for key in others} == others
    assert formats.load(main) == vocab


def test_training_again_leaves_no_role_of_the_first_training(main: Path, config: Path) -> None:
    text = ["low lower lowest"]
    byteweld.train(documents=text, vocab_size=262, bos="<s>").save(main)
    again = byteweld.train(documents=text, vocab_size=262)
    again.save(main, overwrite=True)
    assert json.loads(config.read_bytes())["bos_token"] is None
    again.save(main, overwrite=True)  # a config that says nothing of ours stays as it is
    assert byteweld.load(main) == again


OLD = {"content": "<old>", "special": True}


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("sep_token", "<old>", None),
        ("image_token", OLD, None),
        ("mask_token", "</s>", "</s>"),
        ("additional_special_tokens", ["<old>", "</s>", OLD], ["</s>"]),
        ("extra_special_tokens", {"old_token": "<old>", "end": "</s>"}, {"end": "</s>"}),
        ("added_tokens_decoder", {"258": OLD, "257": {"content": "</s>"}}, {"257": {"content": "</s>"}}),  # noqa: E501
    ],
)  # fmt: skip
def test_tokens_that_the_vocabulary_lacks_are_removed_from_a_config(
    main: Path, config: Path, key: str, old: object, new: object
) -> None:
    before = put(config, {key: old, "other": 1})
    if old != new:
        assert formats.files(vocabulary(), main) == [main, config]
        with pytest.raises(FileExistsError, match=config.name):
            formats.save(vocabulary(), main)
        assert config.read_bytes() == before
    formats.save(vocabulary(), main, overwrite=True)
    assert json.loads(config.read_bytes()) == {key: new, "other": 1}


@pytest.mark.parametrize(
    ("name", "stale", "sound"),
    [
        ("special_tokens_map.json", {"bos_token": "<old>"}, {"bos_token": {"content": "<s>"}}),
        ("special_tokens_map.json", {"additional_special_tokens": ["<old>"]}, {}),
        ("added_tokens.json", {"<old>": 256, "</s>": 257}, {"<s>": 256}),
    ],
)
def test_older_files_of_another_vocabulary_are_removed_only_with_overwrite(
    main: Path, config: Path, name: str, stale: object, sound: object
) -> None:
    older, vocab = main.with_name(name), vocabulary({"bos": 256})
    put(older, stale)
    assert formats.files(vocab, main) == [main, older, config]
    with pytest.raises(FileExistsError, match=name):
        formats.save(vocab, main)
    assert names(main.parent) == {name}
    formats.save(vocab, main, overwrite=True)
    assert names(main.parent) == {main.name, config.name}
    before = put(older, sound)
    formats.save(vocab, main, overwrite=True)
    assert older.read_bytes() == before


def test_a_stale_sidecar_is_removed_only_with_overwrite(main: Path) -> None:
    sidecar = sidecar_path(main)
    sidecar.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"byteweld\.json exists"):
        formats.save(vocabulary(ROLES), main)
    assert names(main.parent) == {sidecar.name}
    formats.save(vocabulary(ROLES), main, overwrite=True)
    assert not sidecar.exists()


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"eos_token": 5}', b"\xff", b"[" * 10**5])
def test_a_broken_config_is_ignored_by_load_and_kept_by_save(
    main: Path, config: Path, content: bytes
) -> None:
    formats.save(vocabulary(), main)
    config.write_bytes(content)
    assert formats.load(main) == vocabulary()
    with pytest.raises(FormatError, match=config.name):
        formats.save(vocabulary(ROLES), main, overwrite=True)
    assert config.read_bytes() == content


@pytest.mark.parametrize("value", [["</s>"], 5, False, {}, {"content": 5}])
def test_a_role_of_another_type_is_ignored_and_the_others_are_read(
    main: Path, config: Path, value: object
) -> None:
    formats.save(vocabulary(), main)
    put(config, {"eos_token": value, "bos_token": "<s>"})
    assert dict(formats.load(main).roles) == {"bos": 256}
    with pytest.raises(FormatError, match=r"eos_token is .*; expected a string"):
        formats.save(vocabulary(ROLES), main, overwrite=True)


def test_a_folder_named_like_the_config_is_ignored_by_load_and_refused_by_save(
    main: Path, config: Path
) -> None:
    formats.save(vocabulary(), main)
    config.mkdir()
    assert formats.load(main) == vocabulary()
    with pytest.raises(IsADirectoryError, match=r"config\.json is a folder; expected a file"):
        formats.save(vocabulary(ROLES), main, overwrite=True)


@pytest.mark.parametrize("options", [{"ignore_merges": True}, {"ranking": "ranks"}])
def test_an_unk_role_does_not_change_the_ids_of_plain_text(main: Path, options: Any) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    merges = [] if "ranking" in options else [(97, 98, 256)]
    tokens = BYTES | {256: b"ab", 257: b"<unk>"}
    vocab = Vocabulary(tokens, merges, special_tokens={"<unk>": 257}, roles={"unk": 257}, **options)
    formats.save(vocab, main)
    assert dict(formats.load(main).roles) == {"unk": 257}
    real = tokenizers.Tokenizer.from_file(str(main))
    real.encode_special_tokens = True
    assert real.encode("<unk>").ids == list(b"<unk>")
    assert byteweld.load(main).encode_ordinary("<unk>") == list(b"<unk>")


# ---------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("declared", "roles"),
    [
        ({"eos_token": "</s>"}, {"eos": 257}),
        ({"eos_token": {"content": "</s>", "special": True}, "sep_token": 7}, {"eos": 257}),
        ({"eos_token": "<gone>", "pad_token": None}, {}),
        ({"eos_token": "</s>", "bos_token": "</s>", "unk_token": "</s>"}, dict.fromkeys(("bos", "eos", "unk"), 257)),  # noqa: E501
        ({"eos_token": "ab"}, {"eos": 259}),
    ],
)  # fmt: skip
def test_roles_are_read_from_the_config_of_a_downloaded_model(
    main: Path, config: Path, declared: dict[str, Any], roles: dict[str, int]
) -> None:
    formats.save(vocabulary(), main)
    put(config, declared)
    assert dict(formats.load(main).roles) == roles


def test_a_declared_eos_can_be_added(main: Path, config: Path) -> None:
    formats.save(vocabulary(), main)
    before = byteweld.load(main).encode("abba")
    put(config, {"eos_token": "</s>"})
    tok = byteweld.load(main)
    assert tok.encode("abba", add_eos=True) == [*before, 257]
    assert tok.encode("abba") == before


def test_where_text_can_be_unknown_unk_is_the_models_own(main: Path, config: Path) -> None:
    vocab = Vocabulary(
        {0: b"<unk>", 1: b"a", 2: b"<other>"},
        special_tokens={"<unk>": 0, "<other>": 2},
        roles={"unk": 0},
        alphabet="partial",
    )
    formats.save(vocab, main)
    for unk in ("<other>", None):
        put(config, {"unk_token": unk})
        assert formats.load(main) == vocab


def test_a_sidecar_wins_over_the_config(main: Path, config: Path) -> None:
    specials = {"<|eos|>": 256}
    vocab = Vocabulary(BYTES | {256: b"<|eos|>"}, special_tokens=specials)  # eos is not a role
    formats.save(vocab, main)
    put(config, {"eos_token": "<|eos|>"})
    assert sidecar_path(main).exists()
    assert formats.load(main) == vocab


def test_a_compiled_vocabulary_knows_the_config_it_was_made_with(
    main: Path, config: Path, tmp_path: Path
) -> None:
    formats.save(vocabulary(), main)
    cache = tmp_path / "cache"
    assert dict(byteweld.load(main, cache=cache).vocab.roles) == {}
    put(config, {"eos_token": "</s>"})
    assert dict(byteweld.load(main, cache=cache).vocab.roles) == {"eos": 257}
    config.unlink()
    assert dict(byteweld.load(main, cache=cache).vocab.roles) == {}


# ---------------------------------------------------------------------- the real library


def test_transformers_shows_the_roles(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    vocab = vocabulary(ROLES)
    formats.save(vocab, main)
    theirs = transformers.AutoTokenizer.from_pretrained(str(main.parent))
    assert (theirs.bos_token, theirs.eos_token, theirs.pad_token) == ("<s>", "</s>", "<pad>")
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (256, 257, 258)
    ours = byteweld.load(main)
    for text in ("abba", "a</s>b", " ab\n<pad><s>"):
        ids = theirs.encode(text, add_special_tokens=False)
        assert ids == ours.encode(text, allowed_special="all")
    theirs.save_pretrained(str(main.parent))
    assert dict(formats.load(main).roles) == ROLES


@pytest.mark.parametrize(
    "name", ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"]
)
def test_transformers_adds_no_token_that_the_vocabulary_no_longer_has(
    main: Path, config: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    formats.save(vocabulary(ROLES), main)
    older: dict[str, object] = {"bos_token": "<s>", "sep_token": "<sep>", "image_token": "<image>"}
    older |= {"additional_special_tokens": ["<more>"]}
    if name == config.name:
        older |= json.loads(config.read_bytes()) | {"added_tokens_decoder": {"256": OLD}}
    put(main.with_name(name), {"<old>": 258} if name == "added_tokens.json" else older)
    formats.save(Vocabulary(BYTES, pattern="gpt2"), main, overwrite=True)
    theirs = transformers.AutoTokenizer.from_pretrained(str(main.parent))
    assert (theirs.bos_token_id, len(theirs)) == (None, 256)
