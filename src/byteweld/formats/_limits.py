"""Checks, shared by formats, for vocabularies that a format cannot represent."""

from __future__ import annotations

from collections.abc import Iterable

from byteweld.errors import VocabularyError
from byteweld.patterns import is_over_bytes, pattern_name
from byteweld.vocab import Vocabulary


class NotHeldError(VocabularyError):
    """Why a format cannot hold a vocabulary; `formats` puts the name of the format before it."""


def check_merge_list(vocab: Vocabulary) -> None:
    """Raise unless merging by a list of merges is all that gives the ids of a pre-token."""
    if vocab.ranking != "merges":
        raise NotHeldError("it is ranked by id and has no merge list")
    if vocab.ignore_merges:
        raise NotHeldError("it has ignore_merges")


def check_alphabet(vocab: Vocabulary) -> None:
    """Raise unless every byte is a token."""
    if vocab.alphabet != "bytes":
        raise NotHeldError(f"its alphabet is {vocab.alphabet!r}, not 'bytes'")


def check_pattern(pattern: str | None) -> None:
    """Raise if no other library can run a pattern."""
    if is_over_bytes(pattern):
        raise NotHeldError(
            f"its pattern {pattern_name(pattern)!r} matches bytes, and other libraries cannot"
        )


def check_bytes(vocab: Vocabulary, alphabet: Iterable[int], first_id: int) -> int:
    """Raise unless the bytes of an alphabet have consecutive ids in order; return the next id."""
    token_id = first_id - 1
    for token_id, byte in enumerate(alphabet, first_id):
        if vocab.tokens.get(token_id) != bytes([byte]):
            raise NotHeldError(
                f"byte 0x{byte:02X} has id {vocab.ids.get(bytes([byte]))}, not {token_id}"
            )
    return token_id + 1


def check_merged_ids(vocab: Vocabulary, first_byte_id: int, first_id: int) -> int:
    """Raise unless each merge makes the next id, from earlier ones; return the id after them."""
    for rank, (left, right, new) in enumerate(vocab.merge_ids):
        if new != first_id + rank:
            raise NotHeldError(f"merge {rank} makes id {new}, not {first_id + rank}", merge=rank)
        if not (first_byte_id <= left < new and first_byte_id <= right < new):
            raise NotHeldError(
                f"merge {rank} makes id {new} from {left} and {right}; "
                f"expected both parts in {first_byte_id}..{new - 1}",
                merge=rank,
            )
    return first_id + len(vocab.merge_ids)


def check_no_more(vocab: Vocabulary, size: int) -> None:
    """Raise if there are tokens after the first `size` ids, all of which exist."""
    if len(vocab.tokens) != size:
        extra = next(token_id for token_id in vocab.tokens if token_id >= size)
        raise NotHeldError(f"token {extra}, {vocab.tokens[extra]!r}, is not made by a merge")
