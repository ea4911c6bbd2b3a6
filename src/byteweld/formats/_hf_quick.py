"""The fast reader: the engine parses and stores the tokens and merges of a tokenizer.json.

It raises UnusualError for anything unusual or wrong; `_hf_model` then reads the file again, and
reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from byteweld._byte_letters import BYTE_TO_CHAR
from byteweld.errors import ByteweldError
from byteweld.formats._hf_model import Model, add_tokens, has_ck_letters
from byteweld.vocab import AddedToken, VocabAlphabet

if TYPE_CHECKING:
    from byteweld._native import LetterModel as LetterModel
    from byteweld._native import Table


class UnusualError(ByteweldError):
    """This file needs the plain reader; callers of the package never see this error."""


def read_letters(data: bytes) -> LetterModel | None:
    """Read tokens and merges, apart from the rest of the file; None if anything is unusual."""
    from byteweld import _native  # the engine, loaded only when a file is read

    return _native.LetterModel.of_json(data)


def read_table(
    letters: LetterModel,
    model: Model,
    added: Collection[AddedToken],
    alphabet: VocabAlphabet,
    path: Path,
) -> Table:
    """Return the tokens, as `read_tokens` does, of a model that has a token for every byte."""
    if alphabet != "bytes" or has_ck_letters(letters):
        raise UnusualError
    if any(letter not in letters for letter in BYTE_TO_CHAR.values()):
        raise UnusualError
    given: dict[int, bytes] = {}
    add_tokens(given, letters, model, added, alphabet, path)
    table = letters.table(list(given.items()))
    num_new = sum(token.text not in letters for token in added)
    if table is None or len(table) != len(letters) + num_new:  # an id was already taken
        raise UnusualError
    return table
