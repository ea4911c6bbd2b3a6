"""The exceptions of byteweld. Every one says what was found, where, what was expected, what to do.

ByteweldError
├── VocabularyError (ValueError)    the value breaks its own rules
├── FormatError (ValueError)        a file is not what it claims; has .path, .offset
│   └── MissingKeyError (KeyError)  a required key is not there
├── CorpusError (ValueError)        a corpus file cannot be read as asked; has .path, .offset
├── PatternError (ValueError)       a pattern cannot be compiled, or ran past its limit
├── UnsupportedError (ValueError)   true, but this format or recipe cannot hold it
├── BudgetError (ValueError)        a memory budget that cannot work; has .needed
├── SpecialTokenError (ValueError)  a special token was met in text
├── UnknownIdError (KeyError)       an id outside the vocabulary; has .id
└── NativeError (RuntimeError)      our bug; please report it

Missing files stay FileNotFoundError; wrong types stay TypeError.
"""

from __future__ import annotations

import os


class ByteweldError(Exception):
    """The root of byteweld's own errors. Plain misuse stays TypeError, ValueError or KeyError."""


class VocabularyError(ByteweldError, ValueError):
    """A vocabulary breaks its own rules, such as a merge of tokens that do not exist."""


class _FileError(ByteweldError, ValueError):
    """An error with a place: `path: message` or `path: byte N: message`."""

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
        place = "" if self.path is None else f"{self.path}: "
        if self.offset is not None:
            place += f"byte {self.offset}: "
        return place + self.message

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
    """A corpus file cannot be read as asked: bad JSON, a truncated archive, a forbidden byte."""


class PatternError(ByteweldError, ValueError):
    """A split pattern cannot be compiled, or a text made it pass its backtracking limit."""


class UnsupportedError(ByteweldError, ValueError):
    """True, but this format or recipe cannot hold it; nothing is dropped silently."""


class BudgetError(ByteweldError, ValueError):
    """A memory budget that cannot work; `needed` bytes would do, where that is known."""

    def __init__(self, message: str, *, needed: int | None = None) -> None:
        self.needed = needed
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_budget, (str(self), self.needed))


def _rebuild_budget(message: str, needed: int | None) -> BudgetError:
    return BudgetError(message, needed=needed)


class SpecialTokenError(ByteweldError, ValueError):
    """A special token was met in text that may not hold it."""


class UnknownIdError(ByteweldError, KeyError):
    """An id outside the vocabulary."""

    def __init__(self, message: str, id: int | None = None) -> None:
        self.message = message
        self.id = id
        super().__init__(message)

    def __str__(self) -> str:
        return self.message


class NativeError(ByteweldError, RuntimeError):
    """The engine broke one of its own promises. Please report it with the input that did it."""
