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
├── TaskError (RuntimeError)        tasks of a runner failed; has .failures
└── NativeError (RuntimeError)      a bug in byteweld; please report it

Missing files stay FileNotFoundError; wrong types stay TypeError.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ByteweldError(Exception):
    """The root of byteweld's own errors. Plain misuse stays TypeError, ValueError or KeyError.

    Examples:
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> tok.decode([1000])
        Traceback (most recent call last):
        byteweld.errors.UnknownIdError: invalid token for decoding: 1000 is not in the vocabulary
    """


class VocabularyError(ByteweldError, ValueError):
    """A vocabulary breaks its own rules, such as a merge of tokens that do not exist.

    Examples:
        >>> byteweld.Vocabulary({97: b"a"})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        byteweld.errors.VocabularyError: no token for 255 of 256 bytes, first 0x00; ...
    """

    def __init__(
        self, message: str, *, token_id: int | None = None, merge: int | None = None
    ) -> None:
        # Which token, or which merge by rank: for readers, which know where in a file that is.
        self.token_id = token_id
        self.merge = merge
        super().__init__(message)


class _FileError(ByteweldError, ValueError):
    """An error in a file: `path: message` or `path: byte N: message`."""

    def __init__(
        self, message: str, *, path: str | os.PathLike[str] | None = None, offset: int | None = None
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


class FormatError(_FileError):
    """A file is not what it claims to be.

    Attributes:
        message: what is wrong.
        path: the file; None if unknown.
        offset: the byte in it; None if unknown.

    Examples:
        >>> byteweld.load("/dev/null")
        Traceback (most recent call last):
        byteweld.errors.FormatError: /dev/null: expected a regular file, found a device
    """


class MissingKeyError(FormatError, KeyError):
    """A required key of a file is missing.

    Examples:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "tokenizer.json")
        ...     _ = path.write_text('{"version": "1.0"}')
        ...     byteweld.load(path, format="huggingface")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        byteweld.errors.MissingKeyError: ...tokenizer.json: the file has no key 'model'
    """


class CorpusError(_FileError):
    """A corpus file cannot be read: bad JSON, a truncated archive, a forbidden byte.

    Attributes:
        message: what is wrong.
        path: the file; None if unknown.
        offset: the byte in it; None if unknown.

    Examples:
        >>> byteweld.count(documents=["café"], recipe="ck-ascii")
        Traceback (most recent call last):
        byteweld.errors.CorpusError: byte 3: 0xC3 is not in the alphabet of this recipe
    """


class PatternError(ByteweldError, ValueError):
    """A split pattern cannot be compiled, or takes too many steps on some text.

    Examples:
        >>> byteweld.train(documents=["low"], vocab_size=256, pattern="o100k")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        byteweld.errors.PatternError: unknown pattern 'o100k'; expected one of gpt2, cl100k, ...
    """


class UnsupportedError(ByteweldError, ValueError):
    """A valid value that this format or recipe cannot hold; nothing is dropped silently.

    Examples:
        >>> tok = byteweld.train(documents=["low low"], vocab_size=258)
        >>> tok.save("tokenizer.model")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        byteweld.errors.UnsupportedError: the name 'tokenizer.model' does not imply a format; ...
    """


class BudgetError(ByteweldError, ValueError):
    """A memory budget is too small.

    Attributes:
        needed: how many bytes would be enough; None if unknown.

    Examples:
        >>> try:
        ...     byteweld.train(documents=["low low"], vocab_size=258, memory="1MB")
        ... except byteweld.BudgetError as error:
        ...     print(error.needed > 1_000_000)
        True
    """

    def __init__(self, message: str, *, needed: int | None = None) -> None:
        self.needed = needed
        super().__init__(message)


class SpecialTokenError(ByteweldError, ValueError):
    """A special token was found in text where it is not allowed.

    Examples:
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=266, eos="<|end|>")
        >>> tok.encode("hello<|end|>")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        byteweld.errors.SpecialTokenError: text contains the special token '<|end|>'; ...
    """


class UnknownIdError(ByteweldError, KeyError):
    """An id is not in the vocabulary.

    Attributes:
        id: the id.

    Examples:
        >>> tok = byteweld.train(documents=["hello world"] * 2, vocab_size=265)
        >>> try:
        ...     tok.decode([263, 1000])
        ... except byteweld.UnknownIdError as error:
        ...     print(error.id)
        1000
    """

    def __init__(self, message: str, id: int | None = None) -> None:
        self.message = message
        self.id = id
        super().__init__(message)

    def __str__(self) -> str:
        return self.message


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
    """A vocabulary cannot be downloaded, or is not the published one; nothing was written.

    Examples:
        >>> try:
        ...     byteweld.fetch("cl100k_base")  # doctest: +SKIP
        ... except byteweld.FetchError as error:
        ...     print(error)  # what happened, and how to get the file by hand
    """


class TaskError(ByteweldError, RuntimeError):
    """Tasks of a runner failed.

    Attributes:
        failures: the item and the cause of each, as text.

    Examples:
        >>> from byteweld.jobs import LocalRunner
        >>> with LocalRunner(max_failures=10) as runner:
        ...     list(runner.map_unordered(int, ["1", "two", "3"]))
        Traceback (most recent call last):
        byteweld.errors.TaskError: two: invalid literal for int() with base 10: 'two'
    """

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
    """The engine failed one of its own checks. Please report it with the input that caused it.

    Examples:
        >>> issubclass(byteweld.NativeError, RuntimeError)
        True
    """


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


def show(value: object) -> str:
    """Return a value as errors show it: shortened, and not deeper than a few levels.

    A hostile file may nest its values nearly as deep as Python's own stack.
    """
    import reprlib  # `import byteweld` loads nothing that it does not need

    shown = reprlib.Repr()
    shown.maxstring = shown.maxother = 200
    return shown.repr(value)
