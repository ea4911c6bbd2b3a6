"""Hugging Face's tokenizer.json: a BPE model in byte letters, and the pipeline around it.

The real `tokenizers` gives the same ids as byteweld for every file written here. Reading, in the
engine, accepts the part of the format that a `Vocabulary` can represent, and rejects the rest by
name. Roles are in `tokenizer_config.json`, where transformers looks;
if the file is not named tokenizer.json, they are in `<file>.byteweld.json`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from byteweld.errors import FormatError, UnsupportedError
from byteweld.formats import _sidecar
from byteweld.formats._beside import config_path, sidecar_path
from byteweld.formats._hf_config import has_conflict, merge_roles, read_roles, stale_files
from byteweld.formats._hf_letters import (
    needs_ignore_merges,
    without_added,
    write_keys,
    write_merges,
)
from byteweld.formats._hf_pipeline import (
    read_normalizer,
    read_steps,
    write_byte_level,
    write_normalizer,
    write_post_processor,
    write_pre_tokenizer,
)
from byteweld.formats._json import read_file
from byteweld.vocab import ROLES, AddedToken, Template, VocabAlphabet, Vocabulary

if TYPE_CHECKING:
    from byteweld._native import TokenizerJson

_VERSION: Final = "1.0"
_ADDED_FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")
_NO_UNK: Final = ""  # not a token, so that the library refuses unknown characters
# The last string of a head may be incomplete.
_TOP_LEVEL: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]:]', re.DOTALL)
_SIGNS: Final = frozenset(
    "truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model".split()
)


def recognize(path: Path, head: bytes) -> bool:
    """Whether a file begins as a JSON object with a part of the pipeline as a key.

    A vocab.json may also have the keys `model` or `padding`, but with numbers as values.
    """
    text = head.decode("utf-8", "replace")
    if not text.lstrip().startswith("{"):
        return False
    depth, last, is_value = 0, "", False
    for match in _TOP_LEVEL.finditer(text):
        sign = match[0]
        if sign in "{[":
            if depth == 1 and is_value and last in _SIGNS:
                return True
            depth, is_value = depth + 1, False
        elif sign in "}]":
            depth -= 1
        elif sign == ":":
            is_value = depth == 1
            if is_value and last in _SIGNS and text[match.end() :][:16].lstrip()[:4] == "null":
                return True
        else:
            last, is_value = sign[1:-1], False
    return False


# ---------------------------------------------------------------------- reading


def load(path: Path) -> Vocabulary:
    """Read a tokenizer.json; anything that cannot be represented exactly is rejected by name."""
    data = read_file(path)
    file = _parse(data, path)
    steps, normalizer = read_steps(file, path), read_normalizer(file, path)
    before, after = file.template
    template = tuple(before), tuple(after)
    added_tokens = [AddedToken(*fields) for fields in file.added_tokens]
    added = {token.text: token.id for token in added_tokens}

    def id_of(text: str) -> int | None:
        return added.get(text, file.id(text))

    roles = inferred = _infer_roles(id_of, file.unk_token, template, file.alphabet)
    config = config_path(path)
    if config is not None:
        roles = _declared_roles(config, inferred, id_of, file.alphabet)
    beside = _sidecar.read(sidecar_path(path), data)
    traits: dict[str, Any] = {
        "added_tokens": added_tokens,
        "steps": steps,
        "normalizer": normalizer,
        "template": template,
        "roles": roles if beside is None else beside.roles,
        "alphabet": file.alphabet,
        "ignore_merges": file.ignore_merges,
    }
    if file.table is None:
        vocab = Vocabulary(*file.sparse(), **traits)
    else:
        vocab = Vocabulary._of_table(file.table, **traits)
    if beside is not None:
        _check_sidecar(beside, vocab, inferred.get("unk"), sidecar_path(path))
    return vocab


def _parse(data: bytes, path: Path) -> TokenizerJson:
    """Have the engine read a file; errors say which."""
    from byteweld import _native  # the engine, loaded only when a file is read

    try:
        return _native.TokenizerJson.read(data)
    except FormatError as error:
        raise type(error)(error.message, path=path, offset=error.offset) from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{path}: {error}") from None


def _infer_roles(
    id_of: Callable[[str], int | None],
    unk_token: str | None,
    template: Template,
    alphabet: VocabAlphabet,
) -> dict[str, int]:
    """Return the roles that follow from a file: its unk_token, ck's four names, its template."""
    found = {role: id_of(f"<|{role}|>") for role in ROLES}
    roles: dict[str, int] = {role: i for role, i in found.items() if i is not None}
    unk = None if unk_token is None else id_of(unk_token)
    if unk is not None:
        roles["unk"] = unk
    elif alphabet != "bytes":  # where text can be unknown, only unk_token declares it
        roles.pop("unk", None)
    before, after = template
    if before:
        roles.setdefault("bos", before[0])
    if after:
        roles.setdefault("eos", after[-1])
    return roles


def _declared_roles(
    config: Path,
    inferred: Mapping[str, int],
    id_of: Callable[[str], int | None],
    alphabet: VocabAlphabet,
) -> dict[str, int]:
    """Return the roles that a config declares, and the inferred ones that it does not mention.

    If text can be unknown, unk comes from the model, since it decides ids. A role whose text is not
    a token is ignored; transformers would add a token that the file does not have.
    """
    roles = dict(inferred)
    for role, text in read_roles(config).items():
        if role == "unk" and alphabet != "bytes":
            continue
        if text is None:
            roles.pop(role, None)
            continue
        token_id = id_of(text)
        if token_id is not None:
            roles[role] = token_id
    return roles


def _check_sidecar(
    beside: _sidecar.Sidecar, vocab: Vocabulary, unk: int | None, path: Path
) -> None:
    """Reject a sidecar that contradicts its file in anything but roles."""
    other_unk = beside.roles.get("unk") != unk
    if vocab.alphabet == "bytes" and (unk is None or "unk" not in beside.roles):
        other_unk = False  # no text is unknown, so unk does not matter
    stated = (beside.pattern, beside.special_tokens, beside.alphabet)
    if other_unk or stated != (vocab.pattern, dict(vocab.special_tokens), vocab.alphabet):
        raise FormatError(
            "the sidecar contradicts the file beside it; delete the sidecar, "
            "or save the vocabulary again",
            path=path,
        )


# ---------------------------------------------------------------------- writing


def check(vocab: Vocabulary) -> None:
    """Raise NotHeldError for a vocabulary that the file cannot represent."""
    _write_parts(vocab)


def files(vocab: Vocabulary, path: Path) -> list[Path]:
    """Return the files to write, and the stale ones to remove.

    An existing tokenizer_config.json is listed only if a token in it must be replaced.
    """
    parts = _write_parts(vocab)
    config = _config_path(vocab, path)
    changed = [path, *_stale_files(vocab, parts, path)]
    if config is None and dict(vocab.roles) != parts.inferred:
        changed = list(dict.fromkeys([*changed, sidecar_path(path)]))
    elif config is not None:
        if not config.exists() or has_conflict(config, parts.roles, _added_texts(vocab)):
            changed.append(config)
    return changed


def render(vocab: Vocabulary, path: Path) -> dict[Path, bytes | None]:
    """Return the file to write, what goes beside it, and None for stale files.

    For a file named tokenizer.json, roles go to tokenizer_config.json. For any other, they go to a
    sidecar, unless they can be inferred from the file.
    """
    parts = _write_parts(vocab)
    data = _render(parts, write_merges(vocab))
    config = _config_path(vocab, path)
    contents: dict[Path, bytes | None] = dict.fromkeys(_stale_files(vocab, parts, path))
    if config is not None:
        merged = merge_roles(config, parts.roles, _added_texts(vocab))
        if merged is not None:
            contents[config] = merged
    elif dict(vocab.roles) != parts.inferred:
        contents[sidecar_path(path)] = _sidecar.render(vocab, data)
    return contents | {path: data}


def _config_path(vocab: Vocabulary, path: Path) -> Path | None:
    """Return the config that must have the roles of a vocabulary, if one must."""
    config = config_path(path)
    return config if config is not None and (vocab.roles or config.is_file()) else None


def _stale_files(vocab: Vocabulary, parts: _Parts, path: Path) -> list[Path]:
    """Return the files of another vocabulary that would be read with the new file."""
    sidecar = sidecar_path(path)
    found = [sidecar] if os.path.lexists(sidecar) else []
    if config_path(path) is not None:
        found += stale_files(path, parts.roles, _added_texts(vocab))
    return found


def _added_texts(vocab: Vocabulary) -> set[str]:
    return {token.text for token in vocab.added_tokens}


class _Parts(NamedTuple):
    """The parts of a tokenizer.json to write, except its merges, and the roles."""

    document: dict[str, object]  # all but the model's tokens and merges
    keys: Mapping[str, int]
    inferred: dict[str, int]  # the roles that a reader infers from the file alone
    roles: dict[str, str | None]  # role -> text; None where a reader must not infer one


def _write_parts(vocab: Vocabulary) -> _Parts:
    keys = write_keys(vocab)
    ignore_merges = needs_ignore_merges(vocab)
    texts = {token_id: text for text, token_id in keys.items()}
    unk_token = texts.get(vocab.roles.get("unk", -1))
    model_keys: Mapping[str, int] = keys
    if ignore_merges:
        # A model must contain its unk token, and then plain text can encode to it. Leave it out if
        # no text is unknown.
        if vocab.alphabet == "bytes" and unk_token in {token.text for token in vocab.added_tokens}:
            unk_token = None
        model_keys = without_added(keys, vocab, unk_token)
    document: dict[str, object] = {
        "version": _VERSION,
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": token.id, "content": token.text}
            | {flag: getattr(token, flag) for flag in _ADDED_FLAGS}
            for token in vocab.added_tokens
        ],
        "normalizer": write_normalizer(vocab.normalizer),
        "pre_tokenizer": write_pre_tokenizer(vocab),
        "post_processor": write_post_processor(vocab.template, texts.__getitem__),
        "decoder": {"type": "Fuse"} if vocab.alphabet == "ascii" else write_byte_level(),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": _NO_UNK if unk_token is None and vocab.alphabet == "ascii" else unk_token,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": ignore_merges,
            "vocab": {},
            "merges": [],
        },
    }
    inferred = _infer_roles(keys.get, unk_token, vocab.template, vocab.alphabet)
    roles: dict[str, str | None] = {
        role: texts[vocab.roles[role]] if role in vocab.roles else None
        for role in ROLES
        if role in vocab.roles or role in inferred
    }
    return _Parts(document, model_keys, inferred, roles)


def _render(parts: _Parts, merges: list[tuple[str, str]]) -> bytes:
    """Write JSON with one token or merge per line, which is easy to read and to `diff`."""
    text = json.dumps(parts.document, indent=2, ensure_ascii=False)
    quote = json.encoder.encode_basestring  # what the encoder without ensure_ascii calls
    lines = ",\n".join(f"      {quote(key)}: {token_id}" for key, token_id in parts.keys.items())
    pairs = ",\n".join(f"      [{quote(left)}, {quote(right)}]" for left, right in merges)
    # Neither can occur inside a JSON string, where quotes are escaped.
    head, tail = text.split('"vocab": {}', 1)
    tail = tail.replace('"merges": []', f'"merges": [\n{pairs}\n    ]' if pairs else '"merges": []')
    return f'{head}"vocab": {{\n{lines}\n    }}{tail}\n'.encode()
