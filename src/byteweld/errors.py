"""The exceptions of byteweld. Each says what was found, where, what was expected, what to do.

ByteweldError
├── VocabularyError (ValueError)    the value breaks its own rules
├── FormatError (ValueError)        a file is not what it claims; has .path, .offset
│   └── MissingKeyError (KeyError)  a required key is missing
├── CorpusError (ValueError)        a corpus file cannot be read; has .path, .offset
├── PatternError (ValueError)       a pattern cannot be compiled, or exceeded its limit
├── UnsupportedError (ValueError)   valid, but this format or recipe cannot hold it
├── BudgetError (ValueError)        a memory budget is too small; has .needed
├── SpecialTokenError (ValueError)  a special token was found in text
├── UnknownIdError (KeyError)       an id is not in the vocabulary; has .id
│   └── IdRangeError (OverflowError)  no vocabulary can have it: negative, or too large
├── FetchError (OSError)            a vocabulary cannot be downloaded
├── TaskError (RuntimeError)        tasks of an engine failed; has .failures
└── NativeError (RuntimeError)      a bug in byteweld; please report it

Missing files stay FileNotFoundError; wrong types stay TypeError.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence


class ByteweldError(Exception):
    """The root of byteweld's own errors. Plain misuse stays TypeError, ValueError or KeyError."""


class VocabularyError(ByteweldError, ValueError):
    """A vocabulary breaks its own rules, such as a merge of tokens that do not exist."""


class _FileError(ByteweldError, ValueError):
    """An error in a file: `path: message` or `path: byte N: message`."""

    def __init__(
        self,
        message: str,
        *,
        path: str | os.PathLike[str] | None = None,
        offset: int | None = None,
    ) -> None:
        self.message = message
        self.path = None if path is None else os.fspath(path)
        self.offset = offset
        super().__init__(message)

    def __str__(self) -> str:
        position = "" if self.path is None else f"{self.path}: "
        if self.offset is not None:
            position += f"byte {self.offset}: "
        return position + self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.path, self.offset))


def _rebuild(
    kind: type[_FileError], message: str, path: str | None, offset: int | None
) -> _FileError:
    return kind(message, path=path, offset=offset)


class FormatError(_FileError):
    """A file is not what it claims to be."""


class MissingKeyError(FormatError, KeyError):
    """A required key of a file is missing."""


class CorpusError(_FileError):
    """A corpus file cannot be read: bad JSON, a truncated archive, a forbidden byte."""


class PatternError(ByteweldError, ValueError):
    """A split pattern cannot be compiled, or takes too many steps on some text."""


class UnsupportedError(ByteweldError, ValueError):
    """A valid value that this format or recipe cannot hold; nothing is dropped silently."""


class BudgetError(ByteweldError, ValueError):
    """A memory budget is too small; `needed` bytes would be enough (None if unknown)."""

    def __init__(self, message: str, *, needed: int | None = None) -> None:
        self.needed = needed
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_budget, (str(self), self.needed))


def _rebuild_budget(message: str, needed: int | None) -> BudgetError:
    return BudgetError(message, needed=needed)


class SpecialTokenError(ByteweldError, ValueError):
    """A special token was found in text where it is not allowed."""


class UnknownIdError(ByteweldError, KeyError):
    """An id is not in the vocabulary."""

    def __init__(self, message: str, id: int | None = None) -> None:
        self.message = message
        self.id = id
        super().__init__(message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (UnknownIdError, (self.message, self.id))


class IdRangeError(UnknownIdError, OverflowError):
    """An integer that is not an id of any vocabulary; tiktoken raises OverflowError for it."""

    def __init__(self, id: int) -> None:
        # Python refuses to write out integers of thousands of digits.
        shown = str(id) if id.bit_length() <= 128 else f"an integer of {id.bit_length()} bits"
        super().__init__(
            f"invalid token for decoding: {shown} is out of range; an id is 0 to 4294967294", id
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (IdRangeError, (self.id,))


class FetchError(ByteweldError, OSError):
    """A vocabulary cannot be downloaded, or is not the published one; nothing was written."""


class TaskError(ByteweldError, RuntimeError):
    """Tasks of an engine failed; `failures` has the item and the cause of each."""

    def __init__(self, failures: Sequence[str]) -> None:
        self.failures = tuple(failures)
        if len(self.failures) == 1:
            super().__init__(self.failures[0])
            return
        listed = "".join(f"\n  {failure}" for failure in self.failures[:10])
        more = f"\n  and {len(self.failures) - 10} more" if len(self.failures) > 10 else ""
        super().__init__(f"{len(self.failures)} tasks failed:{listed}{more}")

    def __reduce__(self) -> tuple[object, ...]:
        return (TaskError, (self.failures,))


class NativeError(ByteweldError, RuntimeError):
    """The engine failed one of its own checks. Please report it with the input that caused it."""


def check_text(what: str, text: object, kind: type[ValueError] = ValueError) -> None:
    """Raise if an argument is not a str that UTF-8 can encode: it may have lone surrogates.

    >>> check_text("a special token", "\\ud800")
    Traceback (most recent call last):
    ValueError: a special token is '\\ud800', which has a lone surrogate; UTF-8 cannot encode it
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} is {text!r}; it must be a string")
    try:
        str.encode(text)
    except UnicodeEncodeError:
        raise kind(
            f"{what} is {text!r}, which has a lone surrogate; UTF-8 cannot encode it"
        ) from None


def nearest(name: object, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for an error about an unknown name; empty if none is similar.

    >>> nearest("gtp2", ["gpt2", "o200k"])
    "; did you mean 'gpt2'?"
    """
    if not isinstance(name, str):
        return ""
    import difflib  # slow to import, and only errors need it

    lowered = {text.lower(): text for text in known}
    near = difflib.get_close_matches(name.lower(), lowered, n=1)
    return f"; did you mean {lowered[near[0]]!r}?" if near else ""
