"""What formats share about the vocabularies they cannot hold: obstacles, and the error for them."""

from __future__ import annotations

from collections.abc import Iterable

from byteweld.errors import UnsupportedError
from byteweld.vocab import Vocabulary


def refuse(what: str, obstacle: str | None) -> None:
    """Raise UnsupportedError if there is an obstacle to writing a vocabulary."""
    if obstacle is not None:
        raise UnsupportedError(f"{what} cannot hold this vocabulary: {obstacle}")


def find_merge_list_obstacle(vocab: Vocabulary) -> str | None:
    """Return why a vocabulary is more than a list of merges, or None."""
    if vocab.ranking != "merges":
        return "it is ranked by id and has no merge list"
    if vocab.ignore_merges:
        return "it has ignore_merges"
    return None


def find_alphabet_obstacle(vocab: Vocabulary) -> str | None:
    """Return why a vocabulary does not have all bytes, or None."""
    if vocab.alphabet != "bytes":
        return f"its alphabet is {vocab.alphabet!r}, not 'bytes'"
    return None


def find_byte_obstacle(vocab: Vocabulary, alphabet: Iterable[int], first_id: int) -> str | None:
    """Return the first byte of an alphabet that does not have its id in order, or None."""
    for token_id, byte in enumerate(alphabet, first_id):
        if vocab.tokens.get(token_id) != bytes([byte]):
            return f"byte 0x{byte:02X} has id {vocab.ids.get(bytes([byte]))}, not {token_id}"
    return None


def is_join(token: bytes, left: bytes, right: bytes) -> bool:
    """Whether a token is its two parts joined.

    Lengths are compared first: many merges of two long tokens must not each cost their length.
    """
    return len(token) == len(left) + len(right) and token == left + right
