"""JSON values ↔ dataclasses and named tuples. What is read is checked by the type hints of fields.

So manifests and the records of jobs are read, and a new field needs nothing here. Lists may have
millions of items: checks that pass build no strings.
"""

from __future__ import annotations

import dataclasses
import json
import re
import reprlib
import types
import typing
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NoReturn

MAX_COUNT: Final = 2**63 - 1
_MAX_DEPTH: Final = 8  # of values of any type

_Read = Callable[[Any], Any]


class WrongError(ValueError):
    """A value that may not be there; says where, with a byte offset if that is known."""

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


def expected(what: str, found: object) -> NoReturn:
    """Raise for a value."""
    raise WrongError(f"expected {what}, found {reprlib.repr(found)}")


# ---------------------------------------------------------------------- JSON


def _plain(value: Any) -> object:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value.hex() if isinstance(value, bytes) else dict(value)


# Values as JSON: dataclasses are objects, named tuples lists, bytes hexadecimal digits.
to_json: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain).encode


def parse(data: bytes) -> Any:
    """Parse JSON."""
    try:
        text = data.decode()
        return json.loads(text, parse_constant=lambda name: expected("JSON", name))
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


# ---------------------------------------------------------------------- values


@cache
def reader(hint: Any, bits: int = 63) -> _Read:
    """Return the function that checks a value and makes it what a type hint says.

    `bits` is how many a whole number may have; none is negative.
    """
    simple: dict[Any, _Read] = {
        int: read_count if bits == 63 else _count_of(bits),
        float: _number,
        str: read_text,
        bytes: _bytes,
        bool: _flag,
        Any: _anything,
    }
    if hint in simple:
        return simple[hint]
    if dataclasses.is_dataclass(hint) or hasattr(hint, "_fields"):
        return _entry(hint, bits)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return choice(arguments)
    if origin in (types.UnionType, typing.Union):
        inner = reader(arguments[0], bits)
        return lambda value: None if value is None else inner(value)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _tuple([reader(hint, bits) for hint in arguments])
    if origin in (tuple, list):
        return _list(origin, reader(arguments[0], bits))
    if origin is Counter:
        counts = _mapping(reader(int, bits))
        return lambda value: Counter(counts(value))
    return _mapping(reader(arguments[1], bits))


def _typed(kind: type, what: str) -> _Read:
    def read(value: object) -> object:
        if type(value) is not kind:
            expected(what, value)
        return value

    return read


_flag: Final = _typed(bool, "true or false")
_array: Final = _typed(list, "a list")
read_dict: Final = _typed(dict, "an object")


def _count_of(bits: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if type(value) is not int or not 0 <= value < limit:
            expected(f"a whole number from 0 to 2^{bits} - 1", value)
        return value

    limit = 1 << bits
    return read


read_count: Final = _count_of(63)


def _number(value: object) -> float:
    # float() of an integer may overflow; that of a str does not.
    if type(value) not in (int, float) or not 0 <= float(str(value)) < float("inf"):
        expected("a number", value)
    return float(str(value))


def _bytes(value: object) -> bytes:
    try:
        return bytes.fromhex(read_text(value))
    except ValueError:
        expected("bytes in hexadecimal digits", value)


def read_text(value: object) -> str:
    """Read a string."""
    if type(value) is not str:
        expected("a string", value)
    if not value.isascii():
        try:  # lone surrogates may stand for bytes of undecodable file names, and only for those
            value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            expected("a string that UTF-8 can encode", value)
    return value


def _anything(value: object, depth: int = 1) -> object:
    if isinstance(value, str):
        return read_text(value)
    if isinstance(value, dict | list):
        if depth == _MAX_DEPTH:
            raise WrongError(f"values are nested deeper than {_MAX_DEPTH} levels")
        keys, inner = (value, value.values()) if isinstance(value, dict) else ((), value)
        for key in keys:
            read_text(key)
        for item in inner:
            _anything(item, depth + 1)
    return value


def read_sha256(value: object) -> str:
    """Read a SHA-256."""
    found = read_text(value)
    if not re.fullmatch("[0-9a-f]{64}", found):
        expected("64 hexadecimal digits", found)
    return found


def choice(choices: tuple[str, ...]) -> _Read:
    """Return the reader of one of some strings."""

    def read(value: object) -> object:
        if value not in choices:
            expected(" or ".join(map(repr, choices)), value)
        return value

    return read


def _tuple(items: list[_Read]) -> _Read:
    def read(value: object) -> tuple[Any, ...]:
        given = _array(value)
        if len(given) != len(items):
            expected(f"a list of {len(items)}", value)
        places = (f"[{at}]" for at in range(len(items)))
        return tuple(map(within, places, items, given))

    return read


def _list(make: type, item: _Read) -> _Read:
    def read(value: object) -> Any:
        given = _array(value)
        made: list[Any] = []
        try:
            made.extend(map(item, given))
        except WrongError as error:
            raise error.within(f"[{len(made)}]") from None
        return make(made)

    return read


def _mapping(item: _Read) -> _Read:
    def read(value: object) -> dict[str, Any]:
        given = read_dict(value)
        for key in given:
            read_text(key)
        return {key: within(f".{reprlib.repr(key)}", item, v) for key, v in given.items()}

    return read


def within(place: str, read: _Read, value: object) -> Any:
    """Read a value; an error says where it is."""
    try:
        return read(value)
    except WrongError as error:
        raise error.within(place) from None


def member(value: Mapping[str, Any], name: str, read: _Read) -> Any:
    """Read a value that an object must have."""
    if name not in value:
        raise WrongError(f"the key {name!r} is missing")
    return within(f".{name}", read, value[name])


def _entry(kind: Any, bits: int) -> _Read:
    """Return the reader of an object that has exactly the fields of a dataclass or named tuple.

    A named tuple may also be a list of its fields.
    """
    hints = typing.get_type_hints(kind)
    is_tuple = hasattr(kind, "_fields")
    names = kind._fields if is_tuple else [field.name for field in dataclasses.fields(kind)]
    readers = {name: reader(hints[name], bits) for name in names}

    def read(value: object) -> Any:
        if is_tuple and type(value) is list and len(value) == len(names):
            value = dict(zip(names, value, strict=True))
        given = read_dict(value)
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
        try:
            return kind(**made)
        except (TypeError, ValueError) as error:  # by its own checks
            raise WrongError(str(error)) from None

    return read
