"""Exceptions -> one-line messages that name options instead of Python arguments."""

from __future__ import annotations

import os
import re

from byteweld.errors import ByteweldError
from byteweld.errors import nearest as nearest

# Python arguments as the library's messages name them, and the options that replace them.
_FLAGS: tuple[tuple[str, str], ...] = (
    (r"overwrite=True \(--force\)", "--force"),
    (r"ext \(--ext\)", "--ext"),
    (r"\ballowed_special=\{.*\} \(or \"all\"\)", "--special-text special"),
    (r"\bdisallowed_special=\(\)", "--special-text text"),
    (
        r"pattern= \(a name such as 'cl100k', an expression, or None for none\)",
        "--pattern (a name such as 'cl100k', an expression, or 'none')",
    ),
    (r"special_tokens= \(\{text: id\}, or \{\} for none\)", "--special TEXT=ID (or --no-special)"),
    (r"special_tokens=\{('.*?'): (\d+), \.\.\.\}", r"--special \1=\2"),
    (r"\bformat=", "--format"),
    (r"\badd_(bos|eos)\b", r"--add-\1"),
    (r"\bpattern='([\w-]+)'", r"--pattern \1"),
    (r"\bmax_pretoken_bytes\b", "--max-pretoken-bytes"),
    (r"^vocab_size is\b", "--vocab-size is"),
    (r"^memory is\b", "--memory is"),
    (r"\bas memory= \(--memory\)", "as --memory"),
    (r"\bas field= \(--field\)", "as --field"),
    (r"\bon_error='(\w+)' \(--on-error \w+\)", r"--on-error \1"),
    (r"\bon_error='replace' or 'skip' \(--on-error\)", "--on-error replace or skip"),
    (r"\beot_token= \(--eot-token\)", "--eot-token"),
    (r"\beot='none' \(--eot none\)", "--eot none"),
    (r"^(bos|dtype|pack|prefix) is\b", r"--\1 is"),
    (r"\bleave (bos|pack|prefix|shuffle) out\b", r"leave --\1 out"),
    (r"^eot_token is\b", "--eot-token is"),
    (r"^shard_tokens is\b", "--shard-tokens is"),
    (r"\(bos=, --bos\)", "(--bos)"),
    # What is not as in an earlier run: "eot was 'append', now 'none'".
    (r"(?<=[:;] )(format|dtype|eot|bos|validation|seed|shuffle|pack|prefix) was ", r"--\1 was "),
    (r"(?<=[:;] )(separator|field) was ", r"--\1 was "),
    (r"(?<=[:;] )(eot|shard|special|on)_(token|tokens|text|error) was ", r"--\1-\2 was "),
    (r"\bwith the same special_tokens\b", "with the same --special"),
    (r"\bleave pattern out\b", "leave --pattern out"),
    (r"\bleave special_tokens out\b", "leave --special out"),
)


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
    """Replace the names of Python arguments with those of options."""
    import byteweld  # not at the top: an unknown verb does not need it

    for name, pattern in byteweld.PATTERNS.items():
        message = message.replace(repr(pattern), repr(name))
    for python, flag in _FLAGS:
        message = re.sub(python, flag, message)
    return message


def _one_line(message: str) -> str:
    return re.sub(r"\s*[\r\n]+\s*", " ", message).strip()
