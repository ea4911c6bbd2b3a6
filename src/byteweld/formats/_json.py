"""The strict JSON reader that all formats share, and checks of the values it returns.

Strict means UTF-8, no repeated keys, no NaN, no lone surrogates, and bounded nesting.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from byteweld._files import read_regular, read_start
from byteweld.errors import FormatError, MissingKeyError, UnsupportedError
from byteweld.errors import show as show

MAX_FILE_BYTES: Final = 1 << 30  # the largest known vocabularies have 20 MB
MAX_BESIDE_BYTES: Final = 1 << 28  # sidecars, configs, reports; a million special tokens have 40 MB

_Fields = TypeVar("_Fields")
_SURROGATE_ESCAPE: Final = rb"\\u[dD][89a-fA-F]"


def read_file(path: Path, limit: int | None = None) -> bytes:
    """Read a whole regular file, decompressed, unless it is larger than any vocabulary."""
    limit = MAX_FILE_BYTES if limit is None else limit
    data = read_regular(path, limit)
    from byteweld import _native  # the engine, loaded only when files are read

    if not _native.is_compressed(data):
        return data
    try:
        return _native.decompress(data, limit)
    except ValueError as error:
        raise _damaged(path, error) from None


def read_head(path: Path, size: int) -> bytes:
    """Read the first bytes of a file, decompressed; the rest is not decompressed."""
    head = read_start(path, size)
    from byteweld import _native  # as above

    if not _native.is_compressed(head):
        return head
    try:
        return _native.decompress_head(read_regular(path, MAX_FILE_BYTES), size)
    except ValueError as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: ValueError) -> FormatError:
    return FormatError(f"the file cannot be decompressed: {error}", path=path)


def decode(data: bytes, path: Path) -> str:
    """Return text in UTF-8; a FormatError says where it is not."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"expected UTF-8, found {data[error.start : error.end]!r} ({error.reason})",
            path=path,
            offset=error.start,
        ) from None


def parse_object(data: bytes, path: Path) -> dict[str, object]:
    """Parse one JSON object strictly; anything else is a FormatError."""
    import json  # slow to import, and rank files need none of it

    text = decode(data, path)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        raise FormatError(f"expected JSON: {error.msg}", path=path, offset=offset) from None
    except RecursionError:
        raise FormatError("values are nested too deeply", path=path) from None
    except ValueError as error:  # from the hooks, or an integer with thousands of digits
        raise FormatError(str(error), path=path) from None
    if type(value) is not dict:
        raise FormatError(f"expected a JSON object, found {show(value)}", path=path)
    if re.search(_SURROGATE_ESCAPE, data):
        _refuse_surrogates(value, path)
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object; reject repeated keys, of which `json` silently uses the last."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {show(key)} is repeated; expected each key once")
            seen.add(key)
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"expected JSON, found {name}, which is not valid JSON")


def _refuse_surrogates(value: object, path: Path) -> None:
    """Reject strings such as "\\ud800", which UTF-8 cannot encode."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, str) and not is_text(item):
            raise FormatError(f"string {show(item)} contains a lone surrogate", path=path)


def is_text(value: str) -> bool:
    """Whether a string can be encoded as UTF-8; one with a lone surrogate cannot.

    >>> is_text("\\ud800")
    False
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def require(value: Mapping[str, object], key: str, path: Path, what: str) -> object:
    """Return `value[key]`; `what` names the value if it lacks the key."""
    if key not in value:
        raise MissingKeyError(f"{what} has no key {key!r}", path=path)
    return value[key]


def read_fields(kind: type[_Fields], value: object, path: Path, bits: int = 63) -> _Fields:
    """Make a NamedTuple of an object that must have exactly its fields, of the types declared."""
    from byteweld._typed import WrongError, reader  # slow to import, with `dataclasses`

    for key in kind.__annotations__:
        if isinstance(value, dict) and key not in value:
            raise MissingKeyError(f"key {key!r} is missing", path=path)
    hint: Any = kind
    try:
        made: _Fields = reader(hint, bits)(value)
    except WrongError as error:
        raise FormatError(str(error), path=path) from None
    return made


def wrong(what: str, found: object, expected: str, path: Path) -> FormatError:
    """Return the error for a value of a file that is not what it must be."""
    return FormatError(f"{what} is {show(found)}; expected {expected}", path=path)


def check_version(what: str, found: object, known: object, path: Path) -> None:
    """Reject any version but the one that can be read, and 1.0 or True for 1."""
    if type(found) is not type(known) or found != known:
        raise FormatError(f"{what} is {show(found)}; only {known!r} can be read", path=path)


def check_keys(value: Mapping[str, object], known: Collection[str], what: str, path: Path) -> None:
    """Reject an unknown key, because it may change ids."""
    unknown = next((key for key in value if key not in known), None)
    if unknown is not None:
        raise UnsupportedError(
            f"{path}: {what} has the key {show(unknown)}, which cannot be read yet"
        )


def read_object(value: object, what: str, path: Path) -> dict[str, object]:
    """Return a value that must be an object."""
    if type(value) is not dict:
        raise wrong(what, value, "an object", path)
    return value


def read_list(value: object, what: str, path: Path) -> list[object]:
    """Return a value that must be a list."""
    if type(value) is not list:
        raise wrong(what, value, "a list", path)
    return value
