"""`byteweld decode`: ids -> text."""

from __future__ import annotations

import re

import byteweld
from byteweld.cli import _errors, _input, _output
from byteweld.cli import _options as options

EXAMPLES = """
byteweld decode --tokenizer tokenizer.json ids.txt
echo '[15339, 1917]' | byteweld decode --tokenizer tokenizer.json
byteweld decode --tokenizer tokenizer.json --ids '15339 1917'
byteweld encode -t tokenizer.json a.txt | byteweld decode -t tokenizer.json | cmp - a.txt
"""

# Separators between ids; brackets are among them so that JSON lists can be read.
_BETWEEN = rb"[\s,\[\]]"
_ID = re.compile(rb"([0-9]+)(?=" + _BETWEEN + rb"|\Z)|([^\s,\[\]]+)")
_MAX_ID = 2**32 - 1


def run(
    file: str | None = None,
    *,
    ids: str | None = None,
    tokenizer: str = options.DEFAULT_TOKENIZER,
    loading: options.Loading,
) -> None:
    """Turn ids back into text, byte for byte. No newline is added.

    Ids are decimal numbers separated by whitespace or commas, or JSON lists. Several lists are
    decoded as one.

    Args:
        file: A file of ids, or - for standard input (the default).
        ids (IDS): The ids to decode, instead of FILE.
    """
    if file is not None and ids is not None:
        raise _errors.UsageError("decode takes FILE or --ids, not both")
    source = _input.STDIN if file is None else file
    given = _input.read(source) if ids is None else _input.argument_bytes(ids)
    origin = "--ids" if ids is not None else "stdin" if source == _input.STDIN else source
    numbers = parse_ids(given, origin)
    tok = options.load_tokenizer(tokenizer, **loading)
    _output.data(tok.decode_bytes(numbers))


def parse_ids(given: bytes, origin: str) -> list[int]:
    """Read ids; an error names `origin` and the offset."""
    numbers: list[int] = []
    for match in _ID.finditer(given):
        word = match[1]
        if word is None or len(word.lstrip(b"0")) > 10 or int(word) > _MAX_ID:
            found = match[0][:40].decode("utf-8", "backslashreplace")
            raise byteweld.FormatError(
                f"expected an id, found {found!r}", path=origin, offset=match.start()
            )
        numbers.append(int(word))
    return numbers
