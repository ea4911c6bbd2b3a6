"""Writes the model of a tokenizer.json: the tokens in byte letters, and the merges.

Byte letters are GPT-2's printable characters for the 256 bytes. A vocabulary ranked by id becomes
the merge list that gives the same ids.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import Final

from byteweld._byte_letters import CHAR_TO_BYTE, bytes_to_chars, chars_to_bytes
from byteweld.formats._limits import NotHeldError
from byteweld.vocab import ASCII_BYTES, AddedToken, Vocabulary

_ASCII_TO_BYTE: Final = {chr(byte): byte for byte in ASCII_BYTES}


def write_keys(vocab: Vocabulary) -> dict[str, int]:
    """Return text -> id of the model's tokens and of all added tokens, in order of id."""
    spell = spelling(vocab)
    keys = {spell(token): token_id for token_id, token in vocab.ordinary()}
    for token_id in vocab.twins:
        keys[_own_text(vocab.tokens[token_id], token_id)] = token_id
    taken = set(keys.values())
    made = {merge.new for merge in vocab.merge_ids}
    for token in vocab.added_tokens:
        problem = _find_problem(token, vocab, keys, taken, is_made=token.id in made)
        if problem is not None:
            raise NotHeldError(f"{'special' if token.special else 'added'} token {problem}")
        keys[token.text] = token.id
    return dict(sorted(keys.items(), key=lambda item: item[1]))


def _find_problem(
    token: AddedToken, vocab: Vocabulary, keys: Mapping[str, int], taken: set[int], *, is_made: bool
) -> str | None:
    """Return why an added token cannot be a key of the model, or None."""
    text, ignore_merges = token.text, needs_ignore_merges(vocab)
    if text in keys and keys[text] != token.id:
        other = vocab.tokens[keys[text]]
        return (
            f"{text!r} has id {token.id}, but the same letters are the token {other!r} "
            f"with id {keys[text]}"
        )
    if text not in keys and token.id in taken:
        return f"{text!r} shares its id {token.id} with a token that is written differently"
    is_ascii = vocab.alphabet == "ascii"
    byte = (_ASCII_TO_BYTE if is_ascii else CHAR_TO_BYTE).get(text)
    if text not in keys and byte is not None:
        return f"{text!r} is the letter of byte 0x{byte:02X}, which has no token"
    from byteweld import _native  # the engine, loaded only when a file is written

    # As the reader of the file will.
    found, problem = _native.added_in_model(token, is_ascii, is_made, ignore_merges)
    if problem is not None:
        return f"{text!r} {problem}"
    if text in keys and found != vocab.tokens[token.id]:
        return f"{text!r} is how {vocab.tokens[token.id]!r} is written, to which no text encodes"
    return None


def _own_text(token: bytes, token_id: int) -> str:
    """Return the key of a twin token: its text, since its byte letters are another token's key."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or chars_to_bytes(text) is not None:
        raise NotHeldError(
            f"token {token_id}, {token!r}, has the same bytes and letters as another"
        )
    return text


def without_added(
    keys: Mapping[str, int], vocab: Vocabulary, unk_token: str | None
) -> Mapping[str, int]:
    """Leave added tokens out of the model if the library then assigns them the same ids.

    With `ignore_merges`, added tokens in the model would also be found in plain text, as whole
    pre-tokens. The unk token must be in the model.
    """
    ordinary = set(vocab.ids.values())
    apart = [token for token in vocab.added_tokens if token.id not in ordinary]
    texts = {token.text for token in apart}
    model = {text: token_id for text, token_id in keys.items() if text not in texts}
    ids = [token.id for token in apart]
    is_next = ids == list(range(len(model), len(keys)))
    return model if is_next and unk_token not in texts else keys


def spelling(vocab: Vocabulary) -> Callable[[bytes], str]:
    """Return the function that writes a token's bytes: as byte letters, or as ASCII text."""
    if vocab.ranking == "ranks" and vocab.alphabet != "bytes":
        raise NotHeldError(f"it is ranked by id with the alphabet {vocab.alphabet!r}")
    if vocab.alphabet != "ascii":
        return bytes_to_chars
    for token_id, token in vocab.ordinary():
        if not set(token) <= set(ASCII_BYTES):
            raise NotHeldError(f"token {token_id}, {token!r}, is outside its ascii alphabet")
    missing = [chr(byte) for byte in ASCII_BYTES if bytes([byte]) not in vocab.ids]
    if missing:
        raise NotHeldError(f"the character {missing[0]!r} of its ascii alphabet has no token")
    return bytes.decode


# ---------------------------------------------------------------------- merges


def needs_ignore_merges(vocab: Vocabulary) -> bool:
    """Whether the model looks up whole pre-tokens before it merges them; see `write_merges`."""
    return vocab.ignore_merges or vocab.ranking == "ranks"


def write_merges(vocab: Vocabulary) -> list[tuple[str, str]]:
    """Return the merges in letters.

    A vocabulary ranked by id is written as the merge list that gives the same ids. In any text, the
    bytes that become a token t are merged as if they stood alone, since no earlier merge crossed
    their boundary. So if t can be made at all, its last merge joins the same two parts as when its
    bytes are encoded alone. A list with that one merge for each such t, ordered by id, has the
    chosen pair of every step and no other pair that could occur, so every step is the same. Tokens
    that are never made are found only as whole pre-tokens, by `ignore_merges`.
    """
    spell = spelling(vocab)
    if vocab.ranking == "merges":
        texts = {i: spell(token) for i, token in vocab.ordinary()}
        return [(texts[left], texts[right]) for left, right, _ in vocab.merge_ids]
    merges = []
    for _, token in vocab.ordinary():
        middle = _split_in_two(token, vocab)
        if middle is not None:
            merges.append((spell(token[:middle]), spell(token[middle:])))
    return merges


def _split_in_two(token: bytes, vocab: Vocabulary) -> int | None:
    """Merge the parts of a token by rank, except the last two; return where these meet, or None.

    The lowest rank goes first, and of equal ranks the leftmost.
    """
    size = len(token)
    ends = list(range(1, size + 1))  # start of a part -> its end; 0 once it is merged into another
    starts = list(range(-1, size))  # end of a part -> its start
    heap: list[tuple[int, int, int, int]] = []  # rank, start, middle, end

    def consider(start: int, middle: int, end: int) -> None:
        if end - start == size:
            return
        rank = vocab.ids.get(token[start:end])
        if rank is not None:
            heapq.heappush(heap, (rank, start, middle, end))

    for start in range(size - 1):
        consider(start, start + 1, start + 2)
    while heap:
        _, start, middle, end = heapq.heappop(heap)
        if ends[start] != middle or ends[middle] != end:
            continue  # one of its parts was merged
        ends[start], ends[middle], starts[end] = end, 0, start
        if start > 0:
            consider(starts[start], start, end)
        if end < size:
            consider(start, end, ends[end])
    return ends[0] if size > 1 and ends[0] < size and ends[ends[0]] == size else None
