"""Readers and writers that all parts of a tokenizer.json share: flags, strings, steps, patterns.

Patterns are literal strings, or regular expressions in Oniguruma's dialect. A pattern that
Oniguruma and byteweld may interpret differently is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from byteweld.errors import FormatError, UnsupportedError
from byteweld.formats._json import check_keys, read_list, read_object, require, show, unreadable
from byteweld.formats._limits import NotHeldError, check_pattern
from byteweld.patterns import PATTERNS, is_over_bytes

BYTE_LEVEL_KEYS: Final = ("type", "add_prefix_space", "trim_offsets", "use_regex")

_META: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")


def describe(part: object) -> str:
    """Describe a part of the pipeline, by its type if it has one."""
    kind = part.get("type") if isinstance(part, dict) else None
    return show(part if kind is None else kind)


def read_flag(value: Mapping[str, object], key: str, what: str, path: Path) -> bool:
    """Return a field that must be true or false."""
    found = require(value, key, path, what)
    if type(found) is not bool:
        raise FormatError(f"{key} of {what} is {show(found)}; expected true or false", path=path)
    return found


def read_text(value: Mapping[str, object], key: str, what: str, path: Path) -> str:
    """Return a field that must be a string."""
    found = require(value, key, path, what)
    if type(found) is not str:
        raise FormatError(f"{key} of {what} is {show(found)}; expected a string", path=path)
    return found


def read_sequence(value: object, part: str, key: str, path: Path) -> list[dict[str, object]]:
    """Return the steps of a part of the pipeline: none, one, or those of nested Sequences."""
    steps: list[dict[str, object]] = []
    pending = [] if value is None else [value]
    while pending:
        step = read_object(pending.pop(), part if not steps else f"a step of the {part}", path)
        if type(step.get("type")) is not str:
            raise FormatError(f"a {part} has the type {show(step.get('type'))}", path=path)
        if step["type"] != "Sequence":
            steps.append(step)
            continue
        check_keys(step, ("type", key), f"its {part}", path)
        items = require(step, key, path, f"the {part} Sequence")
        pending += reversed(read_list(items, repr(key), path))
    return steps


def write_sequence(steps: list[dict[str, object]], key: str) -> dict[str, object] | None:
    """Return steps as `read_sequence` reads them: None, one step, or a Sequence."""
    if len(steps) < 2:
        return steps[0] if steps else None
    return {"type": "Sequence", key: steps}


# ---------------------------------------------------------------------- patterns


def read_pattern(step: Mapping[str, object], what: str, path: Path) -> str:
    """Return the `pattern` of a step, a Regex or a String, as a regular expression."""
    source = read_object(require(step, "pattern", path, what), f"the pattern of {what}", path)
    kind = next(iter(source), "")
    if len(source) != 1 or kind not in ("Regex", "String"):
        raise unreadable(path, f"{what} has the pattern {show(source)}")
    text = source[kind]
    if type(text) is not str or not text:
        raise FormatError(
            f"the {kind} of {what} is {show(text)}; expected a non-empty string", path=path
        )
    pattern = text if kind == "Regex" else _META.sub(r"\\\g<0>", text)
    problem = _dialect_problem(pattern)
    if problem is not None:
        raise UnsupportedError(
            f"{path}: the pattern of {what} has {problem}, which Oniguruma and byteweld "
            "read differently"
        )
    return pattern


def _dialect_problem(pattern: str) -> str | None:
    """Return a construct that Oniguruma reads differently, or None, as for built-in patterns."""
    if pattern in PATTERNS.values() and not is_over_bytes(pattern):
        return None
    from byteweld.formats._oniguruma import find_dialect_problem  # slow to import

    return find_dialect_problem(pattern)


def write_pattern(pattern: str) -> dict[str, object]:
    """Return a regular expression as the `pattern` of a step, unless Oniguruma would misread it."""
    check_pattern(pattern)
    problem = _dialect_problem(pattern)
    if problem is not None:
        raise NotHeldError(
            f"its pattern has {problem}, which Oniguruma and byteweld read differently"
        )
    return {"Regex": pattern}
