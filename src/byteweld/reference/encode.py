"""Encode by applying the merge of lowest rank in each pre-token until none applies; and decode.

Every step looks at every pair again, so a pre-token of n bytes takes O(n²) time. The engine finds
the same ids faster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from byteweld._text import utf8
from byteweld.errors import UnknownIdError
from byteweld.reference.pretokenize import pretokenize, split_specials
from byteweld.vocab import Vocabulary


class Candidate(NamedTuple):
    """A pair that can merge: the index of its left part, its rank, and the id it becomes."""

    at: int
    rank: int
    new: int


class EncodeStep(NamedTuple):
    """A pre-token as a list of ids, the pairs that can merge, and the pair that merges next."""

    parts: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    chosen: Candidate | None  # None in the last step


def encode(
    vocab: Vocabulary,
    text: str | bytes,
    allowed_special: Collection[str] | Literal["all"] = frozenset(),
) -> list[int]:
    """Return the ids of a text. Special tokens that are not allowed are ordinary text.

    Examples:
        >>> from byteweld import Vocabulary, reference
        >>> tokens = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc", 257: b"ab"}
        >>> vocab = Vocabulary(tokens, [(98, 99, 256), (97, 98, 257)])
        >>> reference.encode(vocab, "abc")  # the pair (b, c) has the lower rank, so it merges first
        [97, 256]
    """
    allowed = [s for s in vocab.special_tokens if allowed_special == "all" or s in allowed_special]
    ids: list[int] = []
    offset = 0
    for segment in split_specials(utf8(text), allowed):
        if isinstance(segment, str):
            ids.append(vocab.special_tokens[segment])
            offset += len(segment.encode())
            continue
        for pretoken in pretokenize(segment, vocab.pattern):
            for step in encode_steps(vocab, pretoken, offset=offset):
                last = step
            ids.extend(last.parts)
            offset += len(pretoken)
    return ids


def encode_steps(
    vocab: Vocabulary, pretoken: bytes, *, whole_first: bool = True, offset: int = 0
) -> Iterator[EncodeStep]:
    """Yield the steps of encoding one pre-token; the `parts` of the last step are its ids.

    Args:
        vocab: the vocabulary.
        pretoken: what to encode.
        whole_first: with a rank file or `ignore_merges`, a pre-token that is itself a token is not
            split at all. If False, it is.
        offset: the pre-token's position in the text, for errors.

    Examples:
        >>> from byteweld import Vocabulary, reference
        >>> tokens = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc", 257: b"ab"}
        >>> vocab = Vocabulary(tokens, [(98, 99, 256), (97, 98, 257)])
        >>> [step.parts for step in reference.encode_steps(vocab, b"abc")]
        [(97, 98, 99), (97, 256)]
    """
    tries_whole = whole_first and (vocab.ranking == "ranks" or vocab.ignore_merges)
    if tries_whole and pretoken in vocab.ids:
        yield EncodeStep((vocab.ids[pretoken],), (), None)
        return
    rank_of = _rank_of(vocab)
    parts = tuple(token_id for _, token_id in _units(vocab, pretoken, offset))
    while True:
        found = ((at, rank_of(*pair)) for at, pair in enumerate(pairwise(parts)))
        candidates = tuple(Candidate(at, *ranked) for at, ranked in found if ranked)
        chosen = min(candidates, key=lambda c: c.rank, default=None)  # leftmost on a tie
        yield EncodeStep(parts, candidates, chosen)
        if chosen is None:
            return
        parts = (*parts[: chosen.at], chosen.new, *parts[chosen.at + 2 :])


@lru_cache(maxsize=8)
def _rank_of(vocab: Vocabulary) -> Callable[[int, int], tuple[int, int] | None]:
    """Return a function that maps a pair to (rank, new id), or to None if it does not merge."""
    if vocab.ranking == "merges":
        merges = {(left, right): (n, new) for n, (left, right, new) in enumerate(vocab.merge_ids)}
        return lambda left, right: merges.get((left, right))

    # A rank file lists tokens, not merges: two parts merge if their concatenation is a token, and
    # the id of that token is the rank.
    unk = vocab.roles.get("unk")

    def by_result(left: int, right: int) -> tuple[int, int] | None:
        new = vocab.ids.get(vocab.tokens[left] + vocab.tokens[right])
        return None if new is None or unk in (left, right) else (new, new)

    return by_result


def _units(vocab: Vocabulary, pretoken: bytes, offset: int) -> Iterator[tuple[bytes, int]]:
    """Yield each byte with its id; a character that the alphabet lacks is a single unk id."""
    for character in pretoken.decode("utf-8", "surrogateescape"):
        encoded = character.encode("utf-8", "surrogateescape")
        units = [bytes([byte]) for byte in encoded]
        if all(unit in vocab.ids for unit in units):
            yield from ((unit, vocab.ids[unit]) for unit in units)
        elif "unk" in vocab.roles:
            yield encoded, vocab.roles["unk"]
        else:
            shown = encoded.decode("utf-8", "backslashreplace")
            raise ValueError(
                f"character {shown!r} at byte {offset} is not "
                "in the vocabulary's alphabet, and there is no unk token; remove the character"
            )
        offset += len(encoded)


def encode_greedy(vocab: Vocabulary, pretoken: bytes) -> list[int]:
    """Encode by longest match from the left. This is not BPE; it is here for comparison.

    Examples:
        >>> from byteweld import Vocabulary, reference
        >>> tokens = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc", 257: b"ab"}
        >>> vocab = Vocabulary(tokens, [(98, 99, 256), (97, 98, 257)])
        >>> reference.encode_greedy(vocab, b"abc")
        [257, 99]
    """
    ids: list[int] = []
    start = end = 0
    for unit, unit_id in _units(vocab, pretoken, 0):
        if start >= end:  # not covered by the previous token
            matches = (pretoken[start:stop] for stop in range(len(pretoken), start, -1))
            token = next((match for match in matches if match in vocab.ids), unit)
            ids.append(vocab.ids.get(token, unit_id))
            end = start + len(token)
        start += len(unit)
    return ids


def decode_bytes(vocab: Vocabulary, ids: Iterable[int]) -> bytes:
    """Concatenate the bytes of the ids.

    Examples:
        >>> from byteweld import Vocabulary, reference
        >>> tokens = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc"}
        >>> reference.decode_bytes(Vocabulary(tokens, [(98, 99, 256)]), [97, 256])
        b'abc'
    """
    tokens = []
    for token_id in ids:
        if token_id not in vocab.tokens:
            raise UnknownIdError(
                f"id {token_id!r} is not in the vocabulary of {len(vocab)} tokens", token_id
            )
        tokens.append(vocab.tokens[token_id])
    return b"".join(tokens)


def decode(vocab: Vocabulary, ids: Iterable[int], errors: str = "replace") -> str:
    """Return the text of the ids; `errors` says what to do with invalid UTF-8, as in Python.

    Examples:
        >>> from byteweld import Vocabulary, reference
        >>> tokens = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc"}
        >>> reference.decode(Vocabulary(tokens, [(98, 99, 256)]), [97, 256])
        'abc'
    """
    return decode_bytes(vocab, ids).decode("utf-8", errors)
