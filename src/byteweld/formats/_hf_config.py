"""What transformers reads beside tokenizer.json: the roles of tokens, and lists of them.

The keys `bos_token`, `eos_token`, `pad_token` and `unk_token` of `tokenizer_config.json` are the
roles: the text of a token, an object with the text as `content`, or null. Only these are read.
Writing sets all four, and preserves the other keys, except where they name added tokens that the
vocabulary lacks: transformers would add those, with ids beyond the vocabulary. Two more files, from
older versions of transformers, are removed if they do so.

Reading ignores a config that is not valid, and roles of any other type: no config can make a valid
tokenizer.json unreadable. Saving refuses to merge into such a file, which would lose what it says.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from byteweld.errors import FormatError
from byteweld.formats._json import MAX_BESIDE_BYTES, parse_object, read_file, show
from byteweld.vocab import ROLES

_KEYS: Final[dict[str, str]] = {f"{role}_token": role for role in ROLES}
_LISTS: Final = ("additional_special_tokens", "extra_special_tokens", "added_tokens_decoder")
_ADDED: Final = "added_tokens.json"  # text -> id
_OLDER: Final = ("special_tokens_map.json", _ADDED)


def read_roles(path: Path) -> dict[str, str | None]:
    """Return role -> text of the roles in a config; ignores what cannot be read."""
    try:
        config = _read(path)
    except (FormatError, OSError):
        return {}
    texts = {role: _text(config[key]) for key, role in _KEYS.items() if key in config}
    return {role: text for role, text in texts.items() if text is None or isinstance(text, str)}


def has_conflict(path: Path, roles: Mapping[str, str | None], added: Collection[str]) -> bool:
    """Whether a config names a token that `merge_roles` replaces by another, or by none."""
    config = _read(path)
    return any(config[key] is not None for key in _changes(config, roles, added, path))


def stale_files(main: Path, roles: Mapping[str, str | None], added: Collection[str]) -> list[Path]:
    """Return the older files beside a tokenizer.json with roles or tokens of another vocabulary."""
    found = []
    for path in map(main.with_name, _OLDER):
        config = _read(path)
        if path.name == _ADDED:
            config = {_LISTS[-1]: {text: text for text in config}}
        if _changes(config, roles, added, path):
            found.append(path)
    return found


def merge_roles(
    path: Path, roles: Mapping[str, str | None], added: Collection[str]
) -> bytes | None:
    """Return the content of a config with exactly these roles; None if it needs no change.

    A role that only the old content has becomes null. `added` are the texts of the added tokens.
    """
    config = _read(path)
    changes = _changes(config, roles, added, path)
    for key, role in _KEYS.items():
        if key not in config and role in roles:
            changes[key] = roles[role]
    if not changes:
        return None
    if not path.exists():  # without it, transformers 4 finds no class
        changes["tokenizer_class"] = "PreTrainedTokenizerFast"
    return (json.dumps(config | changes, indent=2, ensure_ascii=False) + "\n").encode()


def _changes(
    config: Mapping[str, object],
    roles: Mapping[str, str | None],
    added: Collection[str],
    path: Path,
) -> dict[str, object]:
    """Return the values of a config that must change, and what they become."""

    def is_known(item: object) -> bool:
        return isinstance(text := _text(item), str) and text in added

    changes: dict[str, object] = {}
    for key, value in config.items():
        text, new = _text(value), value
        if key in _KEYS:
            if text is not None and not isinstance(text, str):
                raise FormatError(
                    f"{key} is {show(value)}; expected a string, an object with 'content', or null",
                    path=path,
                )
            new = value if text == roles.get(_KEYS[key]) else roles.get(_KEYS[key])
        elif key.endswith("_token") and isinstance(text, str):
            new = value if is_known(value) else None
        elif key in _LISTS and isinstance(value, list):
            new = [item for item in value if is_known(item)]
        elif key in _LISTS and isinstance(value, dict):
            new = {name: item for name, item in value.items() if is_known(item)}
        if new != value:
            changes[key] = new
    return changes


def _text(value: object) -> object:
    return value.get("content", value) if isinstance(value, dict) else value


def _read(path: Path) -> dict[str, object]:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file")
    try:
        data = read_file(path, MAX_BESIDE_BYTES)
    except FileNotFoundError:
        return {}
    return parse_object(data, path)
