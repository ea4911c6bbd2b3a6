"""Strict reading of a manifest's JSON: every value is checked before it becomes part of an entry.

What is read follows from the fields of the entries, so a new field needs nothing here. A manifest
may list millions of sources: checks that pass build no strings.
"""

from __future__ import annotations

import dataclasses
import json
import re
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from byteweld.dataset._shard import Split

if TYPE_CHECKING:
    from byteweld.dataset._manifest import FileEntry, Manifest, ShardEntry

DTYPES: Final = ("uint8", "uint16", "uint32", "uint64", "int32", "int64")
_MAX_COUNT: Final = 2**63 - 1
_MAX_DEPTH: Final = 8  # of options
_MAX_VOCAB: Final = 1 << 32
_SPLITS: Final[tuple[Split, ...]] = typing.get_args(Split)

_Read = Callable[[Any], Any]


class WrongError(ValueError):
    """Something that a manifest may not have; says where, with a byte offset if that is known."""

    def __init__(self, message: str, place: str = "", offset: int | None = None) -> None:
        self.message = message
        self.place = place
        self.offset = offset
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.place.lstrip('.')}: {self.message}" if self.place else self.message

    def within(self, place: str) -> WrongError:
        """Return the error as seen from the value around it."""
        return WrongError(self.message, place + self.place, self.offset)


def _expected(what: str, found: object) -> NoReturn:
    raise WrongError(f"expected {what}, found {reprlib.repr(found)}")


# ---------------------------------------------------------------------- JSON


def read_object(data: bytes) -> dict[str, Any]:
    """Parse one JSON object."""
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=lambda name: _expected("JSON", name))
    except UnicodeDecodeError as error:
        raise WrongError(f"expected UTF-8 ({error.reason})", offset=error.start) from None
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        raise WrongError(f"expected JSON: {error.msg}", offset=offset) from None
    except RecursionError:
        raise WrongError("values are nested too deeply") from None
    except WrongError:
        raise
    except ValueError as error:  # an integer with thousands of digits
        raise WrongError(str(error)) from None
    found: dict[str, Any] = _object(value)
    return found


# ---------------------------------------------------------------------- values


@cache
def reader(hint: Any) -> _Read:
    """Return the function that checks a value and makes it what a type hint says."""
    simple: dict[Any, _Read] = {int: _count, str: _text, bool: _flag, Any: _anything}
    if hint in simple:
        return simple[hint]
    if dataclasses.is_dataclass(hint):
        return _entry(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return _choice(arguments)
    if origin in (types.UnionType, typing.Union):
        inner = reader(arguments[0])
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        return _list(reader(arguments[0]))
    return _mapping(reader(arguments[1]))


def _typed(kind: type, what: str) -> _Read:
    def read(value: object) -> object:
        if type(value) is not kind:
            _expected(what, value)
        return value

    return read


_flag: Final = _typed(bool, "true or false")
_object: Final = _typed(dict, "an object")
_array: Final = _typed(list, "a list")


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _MAX_COUNT:
        _expected("a whole number from 0 to 2^63 - 1", value)
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        _expected("a string", value)
    if not value.isascii():
        try:  # lone surrogates may stand for bytes of undecodable file names, and only for those
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            _expected("a string that UTF-8 can encode", value)
    return value


def _anything(value: object, depth: int = 1) -> object:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict | list):
        if depth == _MAX_DEPTH:
            raise WrongError(f"values are nested deeper than {_MAX_DEPTH} levels")
        keys, inner = (value, value.values()) if isinstance(value, dict) else ((), value)
        for key in keys:
            _text(key)
        for item in inner:
            _anything(item, depth + 1)
    return value


def _sha256(value: object) -> str:
    text = _text(value)
    if not re.fullmatch("[0-9a-f]{64}", text):
        _expected("64 hexadecimal digits", text)
    return text


def _choice(choices: tuple[str, ...]) -> _Read:
    def read(value: object) -> object:
        if value not in choices:
            _expected(" or ".join(map(repr, choices)), value)
        return value

    return read


def _list(item: _Read) -> _Read:
    def read(value: object) -> tuple[Any, ...]:
        given = _array(value)
        made: list[Any] = []
        try:
            made.extend(map(item, given))
        except WrongError as error:
            raise error.within(f"[{len(made)}]") from None
        return tuple(made)

    return read


def _mapping(item: _Read) -> _Read:
    def read(value: object) -> dict[str, Any]:
        given = _object(value)
        for key in given:
            _text(key)
        return {key: _within(f".{reprlib.repr(key)}", item, v) for key, v in given.items()}

    return read


def _within(place: str, read: _Read, value: object) -> Any:
    try:
        return read(value)
    except WrongError as error:
        raise error.within(place) from None


def _member(value: Mapping[str, Any], name: str, read: _Read) -> Any:
    """Read a value that an object must have."""
    if name not in value:
        raise WrongError(f"the key {name!r} is missing")
    return _within(f".{name}", read, value[name])


def _entry(kind: Any) -> _Read:
    """Return the reader of an object that has exactly the fields of a dataclass."""
    hints = typing.get_type_hints(kind)
    readers = {field.name: reader(hints[field.name]) for field in dataclasses.fields(kind)}

    def read(value: object) -> Any:
        given = _object(value)
        for name in sorted(readers.keys() - given.keys()):
            raise WrongError(f"the key {name!r} is missing")
        for name in given.keys() - readers.keys():
            raise WrongError(f"unknown key {reprlib.repr(name)}")
        made = {}
        name = ""
        try:
            for name, read_field in readers.items():
                made[name] = read_field(given[name])
        except WrongError as error:
            raise error.within(f".{name}") from None
        return kind(**made)

    return read


# ---------------------------------------------------------------------- the whole manifest


def check_manifest(manifest: Manifest) -> None:
    """Check what the types of a manifest's fields do not say."""
    _within(".dtype", _choice(DTYPES), manifest.dtype)
    _within(".tokenizer", _check_tokenizer, manifest.tokenizer)
    pack = manifest.options.get("pack")
    if pack is not None and _within(".options.pack", _count, pack) == 0:
        raise WrongError("expected at least 1, found 0", ".options.pack")
    _within(".splits", _check_splits, manifest.splits)
    _check_shards(manifest)
    _check_files(manifest.all_files)


def _check_tokenizer(value: Mapping[str, Any]) -> None:
    _member(value, "fingerprint", _sha256)
    n_vocab = _member(value, "n_vocab", _count)
    if not 1 <= n_vocab <= _MAX_VOCAB:
        raise WrongError(f"expected 1 to 2^32, found {n_vocab}", ".n_vocab")

    def check_token(value: object) -> None:
        token = _object(value)
        _member(token, "text", _text)
        if _member(token, "id", _count) >= n_vocab:
            raise WrongError(f"expected an id below {n_vocab}, found {token['id']}", ".id")

    for role in ("eot", "bos"):
        if value.get(role) is not None:
            _within(f".{role}", check_token, value[role])


def _check_splits(splits: Mapping[str, Mapping[str, int]]) -> None:
    for name, totals in splits.items():
        _choice(_SPLITS)(name)
        for key in ("documents", "tokens"):
            if key not in totals:
                raise WrongError(f"the key {key!r} is missing", f".{name}")


def _check_shards(manifest: Manifest) -> None:
    """Shards are numbered from 0 in each split, those of train first."""
    for name in ("documents", "tokens"):
        total = sum(getattr(shard, name) for shard in manifest.shards)
        if total > _MAX_COUNT:
            raise WrongError(f"expected at most 2^63 - 1 {name} in all, found {total}", ".shards")
    previous: ShardEntry | None = None
    for at, shard in enumerate(manifest.shards):
        place = f".shards[{at}]"
        before = None if previous is None or previous.split != shard.split else previous
        if previous is not None and before is None:
            if shard.split == "train":
                raise WrongError("a shard of train after one of validation", place)
            _check_end(previous, at - 1)
        expected = 0 if before is None else before.number + 1
        if shard.number != expected:
            raise WrongError(f"expected number {expected}, found {shard.number}", place)
        has_piece = shard.continues or (before is not None and before.continues)
        if has_piece and shard.documents == 0:
            raise WrongError("it has no document that could continue", place)
        if not shard.files:
            raise WrongError("expected at least one file", place)
        previous = shard
    if previous is not None and manifest.is_complete:
        _check_end(previous, len(manifest.shards) - 1)


def _check_end(last: ShardEntry, at: int) -> None:
    if last.continues:
        raise WrongError(
            "its last document continues in a shard that does not exist", f".shards[{at}]"
        )


def is_plain_path(name: str) -> bool:
    """Whether a name is that of a file inside the folder, on every system."""
    return "\0" not in name and "\\" not in name and not {"", ".", ".."} & {*name.split("/")}


def _check_files(files: Iterable[FileEntry]) -> None:
    """Names are plain relative paths, each used once; hashes are hashes."""
    seen = set()
    for file in files:
        shown = f"the file {reprlib.repr(file.name)}"
        if not is_plain_path(file.name):
            raise WrongError(f"{shown} is not a plain path inside the folder")
        if file.name in seen:
            raise WrongError(f"{shown} is listed twice")
        seen.add(file.name)
        _within(f"{shown}: sha256", _sha256, file.sha256)
