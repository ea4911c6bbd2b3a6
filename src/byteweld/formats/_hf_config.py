"""The roles in `tokenizer_config.json`, the file beside tokenizer.json that transformers reads.

Only the keys `bos_token`, `eos_token`, `pad_token` and `unk_token` are read or written. Writing
gives them the roles of the vocabulary, all four, and preserves the other keys of a file. A role is
the text of a token, an object with the text as `content`, or null for no token.

Reading ignores a config that is not valid, and roles of any other type: no config can make a valid
tokenizer.json unreadable. Saving refuses to merge into such a file, which would lose what it says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from byteweld.errors import FormatError
from byteweld.formats._json import MAX_BESIDE_BYTES, parse_object, read_file, show
from byteweld.vocab import ROLES

_KEYS: Final[dict[str, str]] = {role: f"{role}_token" for role in ROLES}


def read_roles(path: Path) -> dict[str, str | None]:
    """Return role -> text of the roles in a config; ignores what cannot be read."""
    try:
        texts = _texts(_read(path))
    except (FormatError, OSError):
        return {}
    return {role: text for role, text in texts.items() if text is None or isinstance(text, str)}


def has_conflict(path: Path, roles: Mapping[str, str | None]) -> bool:
    """Whether a config declares a role whose text is not that of the vocabulary."""
    found = _roles_in(_read(path), path)
    return any(text not in (None, roles.get(role)) for role, text in found.items())


def merge_roles(path: Path, roles: Mapping[str, str | None], *, overwrite: bool) -> bytes | None:
    """Return the content of a config with exactly these roles; None if it needs no change.

    A role that only the old content has becomes null: transformers would add its token to the
    vocabulary.
    """
    config = _read(path)
    found = _roles_in(config, path)
    is_changed = False
    for role, key in _KEYS.items():
        text, old = roles.get(role), found.get(role)
        if old not in (None, text) and not overwrite:
            raise FileExistsError(
                f"{path} has the {key} {old!r}, and the vocabulary has {text!r}; "
                "pass overwrite=True (--force) to replace it"
            )
        if text != old or (role in roles and role not in found):
            config[key] = text
            is_changed = True
    if not is_changed:
        return None
    if not path.exists():
        config["tokenizer_class"] = (
            "PreTrainedTokenizerFast"  # without it, transformers 4 finds no class
        )
    return (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode()


def _read(path: Path) -> dict[str, object]:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file")
    try:
        data = read_file(path, MAX_BESIDE_BYTES)
    except FileNotFoundError:
        return {}
    return parse_object(data, path)


def _texts(config: Mapping[str, object]) -> dict[str, object]:
    values = {role: config[key] for role, key in _KEYS.items() if key in config}
    return {
        role: value.get("content", value) if isinstance(value, dict) else value
        for role, value in values.items()
    }


def _roles_in(config: Mapping[str, object], path: Path) -> dict[str, str | None]:
    roles: dict[str, str | None] = {}
    for role, text in _texts(config).items():
        if text is not None and not isinstance(text, str):
            raise FormatError(
                f"{_KEYS[role]} is {show(config[_KEYS[role]])}; "
                "expected a string, an object with 'content', or null",
                path=path,
            )
        roles[role] = text
    return roles
