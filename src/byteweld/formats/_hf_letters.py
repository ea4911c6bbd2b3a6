"""A Vocabulary -> the letters of a tokenizer.json: the keys of its model, and its merges.

A vocabulary ranked by id becomes the merge list that does the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

from byteweld._byte_letters import bytes_to_chars, chars_to_bytes
from byteweld.formats._hf_fields import unsupported
from byteweld.formats._hf_model import ASCII, added_bytes, find_added_problem, spelled_bytes
from byteweld.vocab import AddedToken, Vocabulary


def write_keys(vocab: Vocabulary) -> dict[str, int]:
    """Return the texts of the model's vocabulary -> id, and of all added tokens, in order of id."""
    spell = spelling(vocab)
    keys = {spell(token): token_id for token_id, token in vocab.ordinary()}
    for token_id in vocab.twins:
        keys[_own_text(vocab.tokens[token_id], token_id)] = token_id
    taken = set(keys.values())
    made = {merge.new for merge in vocab.merge_ids}
    for token in vocab.added_tokens:
        problem = _find_problem(token, vocab, keys, taken, is_made=token.id in made)
        if problem is not None:
            raise unsupported(f"{'special' if token.special else 'added'} token {problem}")
        keys[token.text] = token.id
    return dict(sorted(keys.items(), key=lambda item: item[1]))


def _find_problem(
    token: AddedToken,
    vocab: Vocabulary,
    keys: Mapping[str, int],
    taken: set[int],
    *,
    is_made: bool,
) -> str | None:
    """Say why an added token cannot be a key of the model beside the others."""
    text, ignore_merges = token.text, vocab.ignore_merges or vocab.ranking == "ranks"
    if text in keys and keys[text] != token.id:
        other = vocab.tokens[keys[text]]
        return (
            f"{text!r} has id {token.id}, and the same letters are the token {other!r} "
            f"with id {keys[text]}"
        )
    if text not in keys and token.id in taken:
        return f"{text!r} shares its id {token.id} with a token of other letters"
    letters = spelled_bytes(text, vocab.alphabet)
    if text not in keys and letters is not None and len(letters) == 1:
        return f"{text!r} is the letter of byte 0x{letters[0]:02X}, which has no token"
    problem = find_added_problem(
        token, vocab.alphabet, is_made=is_made, ignore_merges=ignore_merges
    )
    if problem is not None:
        return f"{text!r} {problem}"
    if text in keys:
        met = added_bytes(text, vocab.alphabet, is_made=is_made, ignore_merges=ignore_merges)
        if met != vocab.tokens[token.id]:
            return f"{text!r} has the letters of {vocab.tokens[token.id]!r}, which no text becomes"
    return None


def _own_text(token: bytes, token_id: int) -> str:
    """Return the text of a token that no text becomes; in byte letters it would be its twin."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or chars_to_bytes(text) is not None:
        raise unsupported(f"token {token_id}, {token!r}, has the bytes and letters of another")
    return text


def without_added(keys: Mapping[str, int], vocab: Vocabulary) -> Mapping[str, int]:
    """Leave added tokens out of the model where the library gives them the same ids by itself.

    With `ignore_merges`, a model that holds them gives them to plain text too, where a whole
    pre-token is one. Its unk token it must hold.
    """
    ordinary = set(vocab.ids.values())
    apart = [token for token in vocab.added_tokens if token.id not in ordinary]
    texts = {token.text for token in apart}
    model = {text: token_id for text, token_id in keys.items() if text not in texts}
    ids = [token.id for token in apart]
    is_next = ids == list(range(len(model), len(keys)))
    return model if is_next and vocab.roles.get("unk") not in ids else keys


def spelling(vocab: Vocabulary) -> Callable[[bytes], str]:
    """Return how a token's bytes are written: in byte letters, or as the ascii text they are."""
    if vocab.alphabet != "ascii":
        return bytes_to_chars
    for token_id, token in vocab.ordinary():
        if not spelled_bytes(token.decode("latin-1"), "ascii"):
            raise unsupported(f"token {token_id}, {token!r}, is outside its ascii alphabet")
    missing = sorted(c for c in ASCII if c.encode() not in vocab.ids)
    if missing:
        raise unsupported(f"the character {missing[0]!r} of its ascii alphabet has no token")
    return bytes.decode


# ---------------------------------------------------------------------- merges


def write_merges(vocab: Vocabulary) -> tuple[list[tuple[str, str]], bool]:
    """Return merges in letters, and ignore_merges.

    A vocabulary ranked by id is written as the merge list that does the same. While text is merged,
    what happens inside the bytes that become token t is what happens to those bytes alone, because
    nothing reached across their border before. So t is only ever made of the two parts that are
    left last when its bytes are encoded alone, if they become t at all. A list of this one merge
    for each such t, ordered by id, holds the chosen pair of every step and no pair that was not
    there, so every step is the same. Tokens that are never made so are met only as a whole
    pre-token: that is `ignore_merges`.
    """
    spell = spelling(vocab)
    if vocab.ranking == "merges":
        texts = {i: spell(token) for i, token in vocab.ordinary()}
        merges = [(texts[left], texts[right]) for left, right, _ in vocab.merge_ids]
        return merges, vocab.ignore_merges
    if vocab.alphabet != "bytes":
        raise unsupported(f"it is ranked by id with the alphabet {vocab.alphabet!r}")
    merges = []
    for _, token in vocab.ordinary():
        middle = _last_cut(token, vocab.ids)
        if middle is not None:
            merges.append((spell(token[:middle]), spell(token[middle:])))
    return merges, True


def _last_cut(token: bytes, ids: Mapping[bytes, int]) -> int | None:
    """Merge a token's bytes by rank; return where its last two parts meet, or None if never."""
    size = len(token)
    if size < 3:
        return 1 if size == 2 else None
    ends = list(range(1, size + 1))  # start of a part -> its end; 0 once it is inside another
    starts = list(range(-1, size))  # end of a part -> its start
    heap: list[tuple[int, int, int, int]] = []  # rank, start, middle, end

    def consider(start: int, middle: int, end: int) -> None:
        rank = ids.get(token[start:end])
        if rank is not None:
            heapq.heappush(heap, (rank, start, middle, end))

    for start in range(size - 1):
        consider(start, start + 1, start + 2)
    while heap:
        _, start, middle, end = heapq.heappop(heap)
        if ends[start] != middle or ends[middle] != end:
            continue  # one of its parts is gone
        if end - start == size:
            return middle
        ends[start], ends[middle], starts[end] = end, 0, start
        if start > 0:
            consider(starts[start], start, end)
        if end < size:
            consider(start, end, ends[end])
    return None
