"""One request's questions, checked: every field has a type and a limit, or is refused by name."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

MAX_TEXT_BYTES = 1 << 20
_MAX_TEXTS = 200


class Refused(Exception):
    """A request that is not answered: the HTTP status, and why in one line."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class Asked:
    """The fields of a request."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def text(self, name: str, default: str | None = None, limit: int = MAX_TEXT_BYTES) -> str:
        """A text of at most `limit` bytes in UTF-8; a lone surrogate is U+FFFD, as in encoding."""
        value = self._get(name, default)
        if not isinstance(value, str):
            raise Refused(400, f"{name} is {type(value).__name__}; expected a text")
        # As many code units as bytes at least: the first look costs nothing.
        if len(value) > limit or len(value.encode("utf-8", "surrogatepass")) > limit:
            raise Refused(413, f"{name} has more than {limit:,} bytes; take a part of it")
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def data(self, name: str, default: str | None = None) -> bytes:
        """A text's bytes; or any bytes, in base64, as `name_base64`."""
        given = self._fields.get(f"{name}_base64")
        if given is None:
            return self.text(name, default).encode()
        if not isinstance(given, str) or len(given) > 4 * (MAX_TEXT_BYTES // 3 + 1):
            raise Refused(413, f"{name} has more than {MAX_TEXT_BYTES:,} bytes; take a part of it")
        try:
            return base64.b64decode(given, validate=True)
        except binascii.Error:
            raise Refused(400, f"{name}_base64 is not base64") from None

    def number(self, name: str, default: int | None, low: int, high: int) -> int:
        """A whole number within limits."""
        value = self._get(name, default)
        if type(value) is not int or not low <= value <= high:
            raise Refused(400, f"{name} is {value!r:.40}; expected a number from {low} to {high}")
        return value

    def optional_number(self, name: str, low: int, high: int) -> int | None:
        """A whole number within limits, or nothing."""
        return None if self._fields.get(name) is None else self.number(name, None, low, high)

    def flag(self, name: str, default: bool = False) -> bool:
        """Yes or no."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise Refused(400, f"{name} is {value!r:.40}; expected true or false")
        return value

    def choice(self, name: str, default: str | None, choices: Sequence[str]) -> str:
        """One of several words."""
        value = self._get(name, default)
        if value not in choices:
            raise Refused(400, f"{name} is {value!r:.40}; expected one of {', '.join(choices)}")
        return str(value)

    def numbers(self, name: str, most: int, high: int) -> list[int]:
        """A few whole numbers from 0."""
        value = self._get(name, None)
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise Refused(400, f"{name} is {value!r:.40}; expected 1 to {most} numbers")
        for item in value:
            if type(item) is not int or not 0 <= item <= high:
                raise Refused(400, f"{name} holds {item!r:.40}; expected numbers from 0 to {high}")
        return value

    def texts(self, name: str) -> dict[str, str]:
        """Texts by name, of at most a megabyte in all; empty where there are none."""
        value = self._fields.get(name) or {}
        if not isinstance(value, dict) or len(value) > _MAX_TEXTS:
            raise Refused(400, f"{name} is no object of at most {_MAX_TEXTS} texts")
        texts = Asked(value)
        found = {key: texts.text(key) for key in value}
        if sum(map(len, found.values())) > MAX_TEXT_BYTES:
            raise Refused(413, f"{name} have more than {MAX_TEXT_BYTES:,} characters in all")
        return found

    def answers(self, name: str) -> dict[str, Any]:
        """The answers that a saved page is to hold, by question; they are never looked into."""
        value = self._get(name, None)
        if not isinstance(value, dict) or len(value) > _MAX_TEXTS:
            raise Refused(400, f"{name} is no object of at most {_MAX_TEXTS} answers")
        return value

    def _get(self, name: str, default: Any) -> Any:
        value = self._fields.get(name, default)
        if value is None:
            raise Refused(400, f"{name} is missing")
        return value
