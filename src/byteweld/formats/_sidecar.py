"""Sidecars: small JSON files with what the vocabulary file beside them cannot represent.

A sidecar has the pattern, special tokens, roles and alphabet of a vocabulary, and the SHA-256 of
the vocabulary file, so that it is never used with another file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from byteweld._files import sha256
from byteweld.errors import FormatError, PatternError, UnsupportedError
from byteweld.formats._json import (
    MAX_BESIDE_BYTES,
    check_version,
    is_text,
    parse_object,
    read_fields,
    read_file,
    require,
    show,
    wrong,
)
from byteweld.patterns import resolve_pattern
from byteweld.vocab import ROLES, VocabAlphabet, Vocabulary

VERSION: Final = 1
# Options of `load`, in formats that have none of these.
OPTIONS: Final = ("pattern", "special_tokens", "roles")
# Options that are needed without a sidecar, and how to give them.
_NEEDED: Final = {
    "pattern": "pattern= (a name such as 'cl100k', an expression) or pattern=None",
    "special_tokens": "special_tokens={text: id} or special_tokens={}",
}


class Sidecar(NamedTuple):
    """The traits in a sidecar; `special_tokens` is text -> id and `roles` is role -> id."""

    pattern: str | None
    special_tokens: Mapping[str, int]
    roles: Mapping[str, int]
    alphabet: str


class _File(NamedTuple):
    byteweld: int
    pattern: str | None
    special_tokens: dict[str, int]
    roles: dict[str, int]
    alphabet: VocabAlphabet
    sha256: str


def render(vocab: Vocabulary, data: bytes) -> bytes:
    """Return the content of the sidecar of a vocabulary whose file has the content `data`."""
    import json  # slow to import, and only writing needs it

    value = {
        "byteweld": VERSION,
        "pattern": resolve_pattern(vocab.pattern),
        "special_tokens": _owners_first(vocab),
        "roles": dict(vocab.roles),
        "alphabet": vocab.alphabet,
        "sha256": sha256(data),
    }
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _owners_first(vocab: Vocabulary) -> dict[str, int]:
    """Return special token -> id; for a shared id, the text that it decodes to comes first.

    Readers decode an id to the first text that has it.
    """
    return dict(
        sorted(
            vocab.special_tokens.items(),
            key=lambda item: (item[1], vocab.tokens[item[1]] != item[0].encode(), item[0]),
        )
    )


def read(path: Path, data: bytes) -> Sidecar | None:
    """Read the sidecar at `path` of the file with the content `data`; None if it does not exist."""
    try:
        raw = read_file(path, MAX_BESIDE_BYTES)
    except FileNotFoundError:
        return None
    value = parse_object(raw, path)
    # The version first, because it determines the keys.
    version = require(value, "byteweld", path, "the sidecar")
    check_version("version 'byteweld'", version, VERSION, path)
    found = read_fields(_File, value, path)
    if found.sha256 != sha256(data):
        raise FormatError(
            f"the sidecar belongs to a file with sha256 {show(found.sha256)}, but the file beside "
            f"it has {sha256(data)!r}; delete the sidecar, or save the vocabulary again",
            path=path,
        )
    if not found.roles.keys() <= set(ROLES):
        raise wrong("'roles'", found.roles, f"only the keys {', '.join(ROLES)}", path)
    try:
        pattern = resolve_pattern(found.pattern)
    except PatternError as error:
        raise FormatError(str(error), path=path) from None
    return Sidecar(pattern, found.special_tokens, found.roles, found.alphabet)


def complete(
    main: Path, beside: Path, data: bytes, given: Mapping[str, Any], *, lacks: str
) -> Sidecar:
    """Combine the options of a call with the sidecar `beside` a file; options take precedence.

    Nothing is guessed: without a sidecar, and unless the file is a well-known one, the options must
    include the pattern and the special tokens.
    """
    _check_options(given)
    missing = [how for name, how in _NEEDED.items() if name not in given]
    found = read(beside, data) if missing else Sidecar(None, {}, {}, "bytes")
    if found is None:
        from byteweld.known_encodings import RANK_SETTINGS

        known = RANK_SETTINGS.get(sha256(data))
        if known is None:
            raise FormatError(
                f"{lacks}, and there is no {beside.name} beside it; pass {' and '.join(missing)}",
                path=main,
            )
        found = Sidecar(known.pattern, known.special_tokens, {}, "bytes")
    if found.alphabet != "bytes":
        raise UnsupportedError(
            f"{main}: a file with such a sidecar cannot have the alphabet {found.alphabet!r}"
        )
    found = found._replace(**given)
    return found._replace(pattern=resolve_pattern(found.pattern))


def _check_options(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if name == "pattern":
            if not (value is None or isinstance(value, str)):
                raise TypeError(f"pattern is {show(value)}; expected a str or None")
        elif not isinstance(value, Mapping) or not all(
            isinstance(text, str) and is_text(text) and type(i) is int for text, i in value.items()
        ):
            raise TypeError(f"{name} is {show(value)}; expected a mapping of text to id")
