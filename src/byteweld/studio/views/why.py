"""The Why view: the pre-token at an offset, and every merge that leads to its tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import byteweld
from byteweld.studio.examples import SURPRISING_WORDS
from byteweld.studio.request import MAX_TEXT_BYTES, Fields, Refused
from byteweld.studio.session import Session
from byteweld.studio.views.tokens import encode

# The steps of a pre-token of n bytes have up to n²/2 parts in total.
_MAX_PRETOKEN_BYTES = 200
_PRETOKENS_AROUND = 40


def answer(session: Session, fields: Fields) -> dict[str, Any]:
    """Explain the pre-token at byte `at` of the text; without text, a surprising word."""
    tok = session.tokenizer(fields).tok
    text = fields.text("text", "")
    if not text:
        text = surprising_word(tok)
    data = text.encode()
    at = fields.number("at", 0, 0, MAX_TEXT_BYTES)
    start, pretokens, is_special = _pretokens_around(tok, data, at, fields.flag("special", True))
    index, starts = _find(pretokens, start, at)
    pretoken, start = pretokens[index], starts[index]
    if len(pretoken) > _MAX_PRETOKEN_BYTES:
        raise Refused(
            413,
            f"this pre-token has {len(pretoken):,} bytes, too many to step through "
            f"(at most {_MAX_PRETOKEN_BYTES}); choose a shorter one",
        )
    if is_special:
        explained = byteweld.explain(tok, pretoken, allowed_special="all")
    else:
        explained = byteweld.explain(tok, pretoken, disallowed_special=())
    first, last = max(0, index - _PRETOKENS_AROUND), index + _PRETOKENS_AROUND + 1
    return {
        "word": pretoken.hex(),
        "start": start,
        "around": [
            [at, other.hex()]
            for at, other in zip(starts[first:last], pretokens[first:last], strict=True)
            if len(other) <= _MAX_PRETOKEN_BYTES
        ],
        **explained.to_dict(),
    }


def surprising_word(tok: byteweld.Tokenizer) -> str:
    """Return a word that greedy longest match splits differently, or else one of several tokens."""
    fallback = SURPRISING_WORDS[0]
    for word in reversed(SURPRISING_WORDS):
        explained = byteweld.explain(tok, word, disallowed_special=())
        if any(pretoken.greedy_differs_at is not None for pretoken in explained.pretokens):
            return word
        if len(explained.ids) > 1:
            fallback = word
    return fallback


def _pretokens_around(
    tok: byteweld.Tokenizer, data: bytes, at: int, special: bool
) -> tuple[int, list[bytes], bool]:
    """Return the start offset and the pre-tokens between the special tokens around a byte.

    If the byte is in a special token, that token is returned instead, with True.
    """
    start, end = 0, len(data)
    if special:
        special_ids = set(tok.vocab.special_tokens.values())
        ids, offsets = encode(tok, data, special)
        for token_id, (first, last) in zip(ids, offsets, strict=True):
            if token_id not in special_ids:
                continue
            if first <= at < last:
                return first, [data[first:last]], True
            if last <= at:
                start = last
            else:
                end = first
                break
    return start, tok.pretokenize(data[start:end]) or [b""], False


def _find(pretokens: Sequence[bytes], start: int, at: int) -> tuple[int, list[int]]:
    """Return the index of the pre-token at a byte, or of the last one; and all start offsets.

    A normalizer may change lengths, so the result is then approximate.
    """
    starts = list(accumulate(map(len, pretokens), initial=start))[:-1]
    return max(0, bisect_right(starts, at) - 1), starts
