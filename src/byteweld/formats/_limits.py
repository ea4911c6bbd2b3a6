"""Checks, shared by formats, for vocabularies that a format cannot represent."""

from __future__ import annotations

from collections.abc import Iterable

from byteweld.errors import UnsupportedError
from byteweld.patterns import is_over_bytes, pattern_name
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
    """Return why a vocabulary does not have every byte as a token, or None."""
    if vocab.alphabet != "bytes":
        return f"its alphabet is {vocab.alphabet!r}, not 'bytes'"
    return None


def find_pattern_obstacle(pattern: str | None) -> str | None:
    """Return why no other library can run a pattern, or None."""
    if is_over_bytes(pattern):
        return f"its pattern {pattern_name(pattern)!r} matches bytes, and other libraries cannot"
    return None


def find_byte_obstacle(vocab: Vocabulary, alphabet: Iterable[int], first_id: int) -> str | None:
    """Return why the bytes of an alphabet do not have consecutive ids in order, or None."""
    for token_id, byte in enumerate(alphabet, first_id):
        if vocab.tokens.get(token_id) != bytes([byte]):
            return f"byte 0x{byte:02X} has id {vocab.ids.get(bytes([byte]))}, not {token_id}"
    return None


def is_join(token: bytes, left: bytes, right: bytes) -> bool:
    """Whether a token is its two parts joined.

    Comparing lengths first keeps a hostile file with many merges of long tokens cheap to reject.
    """
    return len(token) == len(left) + len(right) and token == left + right
