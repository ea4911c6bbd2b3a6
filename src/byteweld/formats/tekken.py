"""Mistral's tekken.json: ranks in base64, the pattern and the special tokens.

Special tokens have the first ids; the id of any other token is its rank plus their number. The
sizes in a file determine how many of its ranks are used. Settings for images and audio do not
affect text; they are neither read nor written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from byteweld.errors import FormatError
from byteweld.formats._json import (
    check_keys,
    parse_object,
    read_file,
    read_list,
    read_object,
    require,
    wrong,
)
from byteweld.formats._limits import NotHeldError, check_pattern
from byteweld.formats._ranks import check_ranks, from_base64, recover_merges, to_base64
from byteweld.vocab import MAX_ID, AddedToken, Split, Vocabulary

# Files after v7 must list their special tokens, according to mistral-common 1.13.
_VERSION: Final = re.compile(r"v([0-9]{1,4})")
_LAST_WITHOUT_SPECIALS: Final = 7
_WRITTEN_VERSION: Final = "v3"  # the first version with tekken files; it does not affect text

_KEYS: Final = frozenset(
    ("config", "vocab", "special_tokens", "version", "type", "image", "multimodal", "audio")
) | {"model_settings_builder"}
_SIZES: Final = ("default_vocab_size", "default_num_special_tokens")
_CONFIG_KEYS: Final = frozenset(("pattern", "num_vocab_tokens", "version", *_SIZES))
_TOKEN_KEYS: Final = frozenset(("rank", "token_bytes", "token_str"))
_SPECIAL_KEYS: Final = frozenset(("rank", "token_str", "is_control"))

# The special tokens of a file that lists none, in order, and the names of those after them; from
# `tekken.py` of mistral-common 1.13.
_DEFAULT_SPECIALS: Final = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] "
    "[/TOOL_RESULTS] [TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] "
    "[SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
).split()
_FILLER: Final = "<SPECIAL_{}>"
_ROLES: Final = {"bos": "<s>", "eos": "</s>", "pad": "<pad>", "unk": "<unk>"}

_SIGN: Final = re.compile(rb'"token_bytes"\s*:\s*"|"default_num_special_tokens"\s*:\s*[0-9]')


def recognize(path: Path, head: bytes) -> bool:
    """Whether a JSON object starts with tekken's settings or tokens."""
    return head.lstrip().startswith(b"{") and _SIGN.search(head) is not None


# ---------------------------------------------------------------------- reading


def load(path: Path) -> Vocabulary:
    """Read a tekken.json."""
    document = parse_object(read_file(path), path)
    check_keys(document, _KEYS, "the file", path)
    config = read_object(require(document, "config", path, "the file"), "'config'", path)
    check_keys(config, _CONFIG_KEYS, "'config'", path)
    version = _read_version(config, path)
    size, num_specials = (_read_size(config, key, path) for key in _SIZES)
    listed = read_list(require(document, "vocab", path, "the file"), "'vocab'", path)
    ranks = _read_ranks(listed, size - num_specials, path)
    specials = _read_specials(document, version, path)
    if not len(specials) <= num_specials <= max(len(ranks), len(specials)):
        raise FormatError(
            f"'default_num_special_tokens' is {num_specials}; expected at least {len(specials)}, "
            f"the number of names, and at most {len(ranks)}, the number of other tokens",
            path=path,
        )
    specials += map(_FILLER.format, range(len(specials), num_specials))
    tokens = {num_specials + rank: token for rank, token in enumerate(ranks)}
    merges = recover_merges(tokens)
    return Vocabulary(
        tokens | {token_id: text.encode() for token_id, text in enumerate(specials)},
        merges or (),
        added_tokens=[AddedToken(text, token_id) for token_id, text in enumerate(specials)],
        steps=[Split(_read_pattern(config, path))],
        roles=_infer_roles({text: token_id for token_id, text in enumerate(specials)}),
        ranking="ranks" if merges is None else "merges",
    )


def _read_size(config: Mapping[str, object], key: str, path: Path) -> int:
    size = require(config, key, path, "'config'")
    if type(size) is not int or not 0 <= size <= MAX_ID:
        raise wrong(repr(key), size, "a number of tokens", path)
    return size


def _read_version(config: Mapping[str, object], path: Path) -> int:
    version = require(config, "version", path, "'config'")
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise wrong("version", version, "a version such as 'v3'", path)
    return int(match[1])


def _read_pattern(config: Mapping[str, object], path: Path) -> str:
    pattern = require(config, "pattern", path, "'config'")
    if type(pattern) is not str or not pattern:
        raise wrong("'pattern'", pattern, "a regular expression", path)
    return pattern


def _read_specials(document: Mapping[str, object], version: int, path: Path) -> list[str]:
    """Return the special tokens that a file lists; old files list none, and 20 are implied."""
    listed = document.get("special_tokens")
    if listed is None:
        if version > _LAST_WITHOUT_SPECIALS:
            raise FormatError(
                f"the file lists no special tokens; after v{_LAST_WITHOUT_SPECIALS} it must",
                path=path,
            )
        return list(_DEFAULT_SPECIALS)
    texts = []
    for rank, item in enumerate(read_list(listed, "'special_tokens'", path)):
        what = f"special token {rank}"
        text = _read_entry(item, rank, "token_str", _SPECIAL_KEYS, what, path)
        if type(text) is not str or not text:
            raise wrong(f"'token_str' of {what}", text, "a text", path)
        texts.append(text)
    return texts


def _read_ranks(items: list[object], count: int, path: Path) -> list[bytes]:
    """Return the first `count` tokens, in order of rank; the rest are unused."""
    if not 256 <= count <= len(items):
        raise FormatError(
            f"the sizes in the file imply {count} tokens, but it lists {len(items)}; "
            "expected at least 256, and at most the number listed",
            path=path,
        )
    tokens: list[bytes] = []
    for rank, item in enumerate(items[:count]):
        what = f"token {rank}"
        text = _read_entry(item, rank, "token_bytes", _TOKEN_KEYS, what, path)
        token = from_base64(text.encode()) if isinstance(text, str) else None
        if not token:
            raise wrong(f"'token_bytes' of {what}", text, "base64", path)
        if rank < 256 and token != bytes([rank]):
            raise wrong(what, token, f"{bytes([rank])!r}: the first 256 are the bytes", path)
        tokens.append(token)
    return tokens


def _read_entry(
    item: object, rank: int, key: str, known: Collection[str], what: str, path: Path
) -> object:
    """Return what an entry of a list has under a key, besides its own index as rank."""
    entry = read_object(item, what, path)
    check_keys(entry, known, what, path)
    found = require(entry, "rank", path, what)
    if type(found) is not int or found != rank:
        raise wrong(f"'rank' of {what}", found, str(rank), path)
    return require(entry, key, path, what)


def _infer_roles(special_tokens: Mapping[str, int]) -> dict[str, int]:
    return {role: special_tokens[text] for role, text in _ROLES.items() if text in special_tokens}


# ---------------------------------------------------------------------- writing


def check(vocab: Vocabulary) -> None:
    """Raise NotHeldError for a vocabulary that the format cannot represent.

    The ids must be in its order: special tokens, bytes, other tokens.
    """
    if vocab.pattern is None:
        raise NotHeldError("it has no pattern")
    check_pattern(vocab.pattern)
    num_specials = len(vocab.special_tokens)
    if list(vocab.special_tokens.values()) != list(range(num_specials)):
        raise NotHeldError("its special tokens do not have the first ids")
    for expected, (token_id, token) in enumerate(vocab.ordinary(), start=num_specials):
        if token_id != expected:
            raise NotHeldError(f"its ids have a gap before {token_id}")
        byte = expected - num_specials
        if byte < 256 and token != bytes([byte]):
            raise NotHeldError(
                f"token {token_id} is {token!r}; after the special tokens come the 256 bytes"
            )
    if dict(vocab.roles) != _infer_roles(vocab.special_tokens):
        names = ", ".join(f"{role} {text}" for role, text in _ROLES.items())
        raise NotHeldError(
            f"its roles are {dict(vocab.roles)}; in tekken they follow from names ({names})"
        )
    check_ranks(vocab)


def render(vocab: Vocabulary, path: Path) -> dict[Path, bytes]:
    """Return the file to write."""
    tokens = [token for _, token in vocab.ordinary()]
    config = {
        "pattern": vocab.pattern,
        "num_vocab_tokens": len(tokens),
        "default_vocab_size": len(vocab),
        "default_num_special_tokens": len(vocab.special_tokens),
        "version": _WRITTEN_VERSION,
    }
    specials = [
        {"rank": rank, "token_str": text, "is_control": True}
        for text, rank in vocab.special_tokens.items()
    ]
    entries = [
        {"rank": rank, "token_bytes": to_base64(token).decode(), "token_str": _text(token)}
        for rank, token in enumerate(tokens)
    ]
    quote = json.JSONEncoder(ensure_ascii=False).encode
    lines = ",\n".join(f"    {quote(entry)}" for entry in entries)
    head = f'{{\n  "config": {quote(config)},\n  "special_tokens": {quote(specials)},\n'
    return {path: f'{head}  "vocab": [\n{lines}\n  ]\n}}\n'.encode()}


def _text(token: bytes) -> str | None:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None
