"""The fields of a request: each has a type and a limit, and errors name the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MAX_TEXT_BYTES = 1 << 20
_MAX_ITEMS = 200


class Refused(Exception):
    """A rejected request: the HTTP status, and the reason in one line."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class Request:
    """The fields of a request. Every method checks and returns one of them."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def has(self, name: str) -> bool:
        """Whether the request has this field."""
        return name in self._fields

    def text(self, name: str, default: str | None = None, limit: int = MAX_TEXT_BYTES) -> str:
        """A string of at most `limit` UTF-8 bytes; lone surrogates become U+FFFD."""
        value = self._get(name, default)
        if not isinstance(value, str):
            raise Refused(400, f"{name} is {type(value).__name__}; expected a string")
        # A string has at least as many bytes as characters: check the cheap bound first.
        if len(value) > limit or len(value.encode("utf-8", "surrogatepass")) > limit:
            raise Refused(413, f"{name} has more than {limit:,} bytes; use a part of it")
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def number(self, name: str, default: int | None, low: int, high: int) -> int:
        """An integer within limits."""
        value = self._get(name, default)
        if type(value) is not int or not low <= value <= high:
            raise Refused(400, f"{name} is {value!r:.40}; expected a number from {low} to {high}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise Refused(400, f"{name} is {value!r:.40}; expected true or false")
        return value

    def specials(self) -> dict[str, Any]:
        """What becomes of special tokens in the text: arguments of methods that encode."""
        if self.choice("special_text", "special", ("special", "text")) == "special":
            return {"allowed_special": "all"}
        return {"disallowed_special": ()}

    def choice(self, name: str, default: str | None, choices: Sequence[str]) -> str:
        """One of several strings."""
        value = self._get(name, default)
        if value not in choices:
            raise Refused(400, f"{name} is {value!r:.40}; expected one of {', '.join(choices)}")
        return str(value)

    def numbers(self, name: str, most: int, high: int) -> list[int]:
        """A list of 1 to `most` integers from 0 to `high`."""
        value = self._get(name, None)
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise Refused(400, f"{name} is {value!r:.40}; expected 1 to {most} numbers")
        for item in value:
            if type(item) is not int or not 0 <= item <= high:
                raise Refused(
                    400, f"{name} contains {item!r:.40}; expected numbers from 0 to {high}"
                )
        return value

    def texts(self, name: str) -> dict[str, str]:
        """Strings by name, of at most 1,048,576 characters in total; empty if missing."""
        value = self._fields.get(name) or {}
        if not isinstance(value, dict) or len(value) > _MAX_ITEMS:
            raise Refused(400, f"{name} is not an object of at most {_MAX_ITEMS} strings")
        texts = Request(value)
        found = {key: texts.text(key) for key in value}
        if sum(map(len, found.values())) > MAX_TEXT_BYTES:
            raise Refused(413, f"{name} have more than {MAX_TEXT_BYTES:,} characters in total")
        return found

    def answers(self, name: str) -> dict[str, Any]:
        """The answers for a saved page, by request; they are stored unchanged."""
        value = self._get(name, None)
        if not isinstance(value, dict) or len(value) > _MAX_ITEMS:
            raise Refused(400, f"{name} is not an object of at most {_MAX_ITEMS} answers")
        return value

    def _get(self, name: str, default: Any) -> Any:
        value = self._fields.get(name, default)
        if value is None:
            raise Refused(400, f"{name} is missing")
        return value
