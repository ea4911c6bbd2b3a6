"""What a file cannot say itself: a small JSON object beside it. And this room's strict JSON reader.

A sidecar holds pattern, special tokens, roles and alphabet of the vocabulary whose file lies next
to it, and the SHA-256 of that file, so that it is never read together with another one.
"""

from __future__ import annotations

import enum
import hashlib
import json
import os
import re
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from byteweld._files import write_atomic
from byteweld.errors import FormatError, MissingKeyError, PatternError
from byteweld.patterns import resolve_pattern
from byteweld.vocab import MAX_ID, ROLES, Vocabulary

VERSION: Final = 1
SUFFIX: Final = ".byteweld.json"
MAX_FILE_BYTES: Final = 1 << 30  # the largest vocabularies of the field have 20 MB

_KEYS: Final = ("byteweld", "pattern", "special_tokens", "roles", "alphabet", "sha256")
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")

# Values of a file are shown shortened, and never deeper than a few levels: a hostile file may nest
# its values nearly as deep as Python's own stack.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 200
show = _SHOWN.repr


class Unset(enum.Enum):
    """The type of UNSET: an option that was not given, where None has a meaning of its own."""

    UNSET = enum.auto()


UNSET: Final = Unset.UNSET


class Sidecar(NamedTuple):
    """What a sidecar says; `special_tokens` and `roles` are text -> id and role -> id."""

    pattern: str | None
    special_tokens: dict[str, int]
    roles: dict[str, int]
    alphabet: str


# ---------------------------------------------------------------------- strict JSON


def read_file(path: Path) -> bytes:
    """Read a whole file, refusing one that no vocabulary can fill."""
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise FormatError(
            f"the file has {size} bytes; a vocabulary has at most {MAX_FILE_BYTES}", path=path
        )
    return path.read_bytes()


def parse_object(data: bytes, path: Path) -> dict[str, object]:
    """Read one JSON object: UTF-8, no repeated keys, NaN, lone surrogates or bottomless nesting."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"expected UTF-8, found {data[error.start : error.end]!r} ({error.reason})",
            path=path,
            offset=error.start,
        ) from None
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        raise FormatError(f"expected JSON: {error.msg}", path=path, offset=offset) from None
    except RecursionError:
        raise FormatError("values are nested too deep", path=path) from None
    except ValueError as error:  # from the two hooks, or an integer of thousands of digits
        raise FormatError(str(error), path=path) from None
    if type(value) is not dict:
        raise FormatError(f"expected a JSON object, found {show(value)}", path=path)
    if _SURROGATE_ESCAPE.search(data):
        _refuse_surrogates(value, path)
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object, refusing repeated keys: `json` would silently keep the last."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {show(key)} is repeated; every key of an object comes once")
            seen.add(key)
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"expected JSON, found {name}, which JSON does not have")


def _refuse_surrogates(value: object, path: Path) -> None:
    """Refuse strings such as "\\ud800": they are no text, and UTF-8 cannot hold them."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, str) and not is_text(item):
            raise FormatError(f"string {show(item)} holds a lone surrogate", path=path)


def is_text(value: str) -> bool:
    """Say whether a string can be written in UTF-8; one with a lone surrogate cannot.

    >>> is_text("\\ud800")
    False
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def require(value: Mapping[str, object], key: str, path: Path, what: str) -> object:
    """Return `value[key]`, or say that `what` lacks it."""
    if key not in value:
        raise MissingKeyError(f"{what} has no key {key!r}", path=path)
    return value[key]


def read_ids(value: object, path: Path, what: str) -> dict[str, int]:
    """Check that a value is an object of text -> id."""
    if type(value) is not dict:
        raise FormatError(f"{what} is {show(value)}; expected an object of text and id", path=path)
    for text, token_id in value.items():
        if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
            raise FormatError(
                f"{what} gives {show(text)} the id {show(token_id)}; "
                f"expected an integer in 0..{MAX_ID}",
                path=path,
            )
    return value


# ---------------------------------------------------------------------- sidecars


def sidecar_path(main: Path) -> Path:
    """Return where the sidecar of a file lies.

    >>> sidecar_path(Path("ranks.tiktoken")).name
    'ranks.tiktoken.byteweld.json'
    """
    return main.with_name(main.name + SUFFIX)


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def render(vocab: Vocabulary, data: bytes) -> bytes:
    """Return the sidecar of a vocabulary whose file holds `data`."""
    value = {
        "byteweld": VERSION,
        "pattern": resolve_pattern(vocab.pattern),
        "special_tokens": dict(vocab.special_tokens),
        "roles": dict(vocab.roles),
        "alphabet": vocab.alphabet,
        "sha256": digest(data),
    }
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def read(path: Path, data: bytes) -> Sidecar | None:
    """Read the sidecar at `path` of the file that holds `data`; None if there is none."""
    try:
        raw = read_file(path)
    except FileNotFoundError:
        return None
    value = parse_object(raw, path)
    version = require(value, "byteweld", path, "the sidecar")
    if type(version) is not int or version != VERSION:
        raise FormatError(
            f"version 'byteweld' is {show(version)}; only {VERSION} can be read", path=path
        )
    unknown = [key for key in value if key not in _KEYS]
    if unknown:
        raise FormatError(
            f"unknown key {show(unknown[0])}; known are {', '.join(_KEYS)}", path=path
        )
    wanted = require(value, "sha256", path, "the sidecar")
    if wanted != digest(data):
        raise FormatError(
            f"the sidecar belongs to a file with sha256 {show(wanted)}, but the file beside it has "
            f"{digest(data)!r}; delete the sidecar, or save the vocabulary again",
            path=path,
        )
    roles = read_ids(require(value, "roles", path, "the sidecar"), path, "'roles'")
    if not roles.keys() <= set(ROLES):
        raise FormatError(
            f"'roles' has the keys {show(sorted(roles))}; known are {', '.join(ROLES)}", path=path
        )
    alphabet = require(value, "alphabet", path, "the sidecar")
    if alphabet not in ("bytes", "ascii"):
        raise FormatError(f"'alphabet' is {show(alphabet)}; expected 'bytes' or 'ascii'", path=path)
    specials = require(value, "special_tokens", path, "the sidecar")
    return Sidecar(
        pattern=_read_pattern(require(value, "pattern", path, "the sidecar"), path),
        special_tokens=read_ids(specials, path, "'special_tokens'"),
        roles=roles,
        alphabet=str(alphabet),
    )


def _read_pattern(value: object, path: Path) -> str | None:
    if value is not None and type(value) is not str:
        raise FormatError(
            f"'pattern' is {show(value)}; expected a regular expression or null", path=path
        )
    try:
        return resolve_pattern(value)
    except PatternError as error:
        raise FormatError(str(error), path=path) from None


def complete(
    main: Path,
    beside: Path,
    data: bytes,
    *,
    holds_no: str,
    pattern: str | Unset | None,
    special_tokens: Mapping[str, int] | Unset,
    roles: Mapping[str, int] | Unset,
) -> Sidecar:
    """Join the options of a call with the sidecar `beside` a file; the options win.

    Nothing is guessed: without a sidecar, pattern and special tokens must be given.
    """
    _check_options(pattern, special_tokens, roles)
    found = None
    if isinstance(pattern, Unset) or isinstance(special_tokens, Unset):
        found = read(beside, data)
    if found is None:
        missing = [
            how
            for how, value in (
                ("pattern= (a name such as 'cl100k', an expression, or None for none)", pattern),
                ("special_tokens= ({text: id}, or {} for none)", special_tokens),
            )
            if isinstance(value, Unset)
        ]
        if missing:
            raise FormatError(
                f"{holds_no}, and there is no {beside.name} beside it; "
                f"pass {' and '.join(missing)}",
                path=main,
            )
        found = Sidecar(None, {}, {}, "bytes")
    return Sidecar(
        pattern=found.pattern if isinstance(pattern, Unset) else resolve_pattern(pattern),
        special_tokens=(
            found.special_tokens if isinstance(special_tokens, Unset) else dict(special_tokens)
        ),
        roles=found.roles if isinstance(roles, Unset) else dict(roles),
        alphabet=found.alphabet,
    )


def _check_options(pattern: object, special_tokens: object, roles: object) -> None:
    if not (pattern is None or isinstance(pattern, str | Unset)):
        raise TypeError(f"pattern is {show(pattern)}; expected a str or None")
    for name, value in (("special_tokens", special_tokens), ("roles", roles)):
        if isinstance(value, Unset):
            continue
        if not isinstance(value, Mapping) or not all(
            isinstance(text, str) and is_text(text) and type(i) is int for text, i in value.items()
        ):
            raise TypeError(f"{name} is {show(value)}; expected a mapping of text to id")


def write_together(files: Sequence[tuple[Path, bytes]], *, overwrite: bool) -> None:
    """Write several files, each whole or not at all; if one fails, those just made are removed.

    The last file should be the main one: its sidecar then names it before it is there, and a crash
    in between leaves a pair that `read` refuses, never one that is read wrongly.
    """
    if not overwrite:
        for path, _ in files:
            if path.exists() or path.is_symlink():
                raise FileExistsError(f"{path} exists; pass overwrite=True (--force) to replace it")
    made: list[Path] = []
    try:
        for path, data in files:
            is_new = not path.exists()
            write_atomic(path, data, overwrite=overwrite)
            if is_new:
                made.append(path)
    except BaseException:
        for path in made:
            if os.path.lexists(path):
                path.unlink()
        raise
