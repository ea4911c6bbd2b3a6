"""The fast reader: the engine parses and stores the tokens and merges of a tokenizer.json.

It raises UnusualError for anything unusual or wrong; `_hf_model` then reads the file again, and
reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from byteweld._byte_letters import BYTE_TO_CHAR
from byteweld.errors import ByteweldError
from byteweld.formats._hf_model import Model, added_bytes, find_added_problem, has_ck_letters
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
    letters: LetterModel, model: Model, added: Collection[AddedToken], alphabet: VocabAlphabet
) -> Table:
    """Return the tokens, as `read_tokens` does, of a model that has a token for every byte.

    Uses only the settings of `model`.
    """
    if alphabet != "bytes" or has_ck_letters(letters):
        raise UnusualError
    if any(letter not in letters for letter in BYTE_TO_CHAR.values()):
        raise UnusualError
    given = _foreign(letters, model, {token.text for token in added})
    num_new = 0
    for token in added:
        token_id, own = letters.get(token.text), token.text.encode()
        if token_id is None:
            num_new += token.id not in given
            if given.setdefault(token.id, own) != own:
                raise UnusualError
            continue
        is_made = letters.is_made(token.text)
        problem = find_added_problem(
            token, alphabet, is_made=is_made, ignore_merges=model.ignore_merges
        )
        if problem is not None:
            raise UnusualError
        given[token_id] = added_bytes(
            token.text, alphabet, is_made=is_made, ignore_merges=model.ignore_merges
        )
    table = letters.table(list(given.items()))
    if table is None or len(table) != len(letters) + num_new:  # an id was already taken
        raise UnusualError
    return table


def _foreign(letters: LetterModel, model: Model, added: Collection[str]) -> dict[int, bytes]:
    """Return id -> bytes of the tokens that are not in byte letters; no text encodes to them."""
    found: dict[int, bytes] = {}
    for text in letters.foreign():
        token_id, own = letters.get(text), text.encode()
        if text in added or token_id is None:
            continue
        if model.ignore_merges or len(own) < 2:  # text would encode to them
            raise UnusualError
        found[token_id] = own
    return found
