"""Exceptions -> one-line messages that name options instead of Python arguments."""

from __future__ import annotations

import os
import re
from typing import Final

from byteweld.errors import ByteweldError
from byteweld.errors import nearest as nearest

# Options whose names are not those of the library's arguments, with the value where it says more.
RENAMED: Final = {
    "overwrite": "--force",
    "num_threads": "--threads",
    "special_tokens": "--special",
    "special_tokens={}": "--no-special",
    "allowed_special": "--special-text special",
    "disallowed_special": "--special-text text",
}
# `name=value`; `name is` and `name was` where a sentence starts; and `leave name out`.
_ARGUMENT = re.compile(
    r"\b([a-z_]+)=((?:'[^']*'(?: or )?)+|\w+|\{.*?\}(?: \(or \"all\"\))?|\(\)|)(?: \(--[^)]*\))?"
    r"|(?:^|(?<=[:;,] )|(?<=leave ))([a-z_]+)(?= (?:is|was|out)\b)"
)
flags: dict[str, str] = {}  # of the verb that runs, by the names of its parameters


class UsageError(Exception):
    """Wrong use of the command line."""


def message_for_people(error: BaseException) -> str | None:
    """Return the message for an error; None if the error is a bug, not a user's mistake."""
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, OSError):
        return _one_line(with_flags(_os_error(error)))
    if isinstance(error, ByteweldError | ValueError | ImportError | OverflowError):
        return _one_line(with_flags(str(error)))
    if isinstance(error, MemoryError):
        found = _one_line(str(error)) or "not enough memory"
        return f"{found}; use a smaller corpus, --memory, or fewer --threads"
    return None


def _os_error(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{os.fsdecode(error.filename)}: {error.strerror[:1].lower()}{error.strerror[1:]}"


def with_flags(message: str) -> str:
    """Replace the arguments that a message names by options of the verb that runs."""
    import byteweld  # not at the top: an unknown verb does not need it

    for name, pattern in byteweld.PATTERNS.items():
        message = message.replace(repr(pattern), repr(name))
    return _ARGUMENT.sub(_with_flag, message)


def _with_flag(found: re.Match[str]) -> str:
    name, value = found[1] or found[3], found[2] or ""
    exact = RENAMED.get(f"{name}={value}")
    flag = exact or RENAMED.get(name) or flags.get(name)
    if flag is None or flag.split()[0] not in flags.values():
        return found[0]
    if exact or value in ("", "True") or " " in flag:
        return flag
    if value.startswith("{"):
        return f"{flag} {value.strip('{}').replace(': ', '=').removesuffix(', ...')}"
    return f"{flag} {'none' if value == 'None' else value.replace(chr(39), '')}"


def _one_line(message: str) -> str:
    return re.sub(r"\s*[\r\n]+\s*", " ", message).strip()
