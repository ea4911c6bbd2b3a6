"""The Why view: the pre-token at a place of a text, and every merge that made its tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import byteweld
from byteweld.studio.examples import SURPRISING_WORDS
from byteweld.studio.request import MAX_TEXT_BYTES, Asked, Refused
from byteweld.studio.session import Session
from byteweld.studio.views.tokens import encode

# All steps of n bytes have n² parts in all, which nobody steps through.
_MAX_PRETOKEN_BYTES = 200
_WORDS_AROUND = 40


def answer(session: Session, asked: Asked) -> dict[str, Any]:
    """Explain the pre-token that holds byte `at`; with no text, a word that surprises."""
    tok = session.tokenizer(asked).tok
    text = asked.text("text", "")
    if not text:
        text = surprising_word(tok)
    data = text.encode()
    at = asked.number("at", 0, 0, MAX_TEXT_BYTES)
    start, pieces, is_special = _stretch_at(tok, data, at, asked.flag("special", True))
    place, starts = _find(pieces, start, at)
    pretoken, start = pieces[place], starts[place]
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
    first, last = max(0, place - _WORDS_AROUND), place + _WORDS_AROUND + 1
    return {
        "word": pretoken.hex(),
        "start": start,
        "around": [
            [at, piece.hex()]
            for at, piece in zip(starts[first:last], pieces[first:last], strict=True)
            if len(piece) <= _MAX_PRETOKEN_BYTES
        ],
        **explained.to_dict(),
    }


def surprising_word(tok: byteweld.Tokenizer) -> str:
    """A word that greedy longest match would cut otherwise; if there is none, the first that is
    cut at all."""
    cut = SURPRISING_WORDS[0]
    for word in reversed(SURPRISING_WORDS):
        explained = byteweld.explain(tok, word, disallowed_special=())
        if any(pretoken.greedy_differs_at is not None for pretoken in explained.pretokens):
            return word
        if len(explained.ids) > 1:
            cut = word
    return cut


def _stretch_at(
    tok: byteweld.Tokenizer, data: bytes, at: int, special: bool
) -> tuple[int, list[bytes], bool]:
    """The pre-tokens between the special tokens around a byte, and where they start; or the
    special token that is there."""
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


def _find(pieces: Sequence[bytes], start: int, at: int) -> tuple[int, list[int]]:
    """The place of the pre-token that holds a byte, or of the last; and where each starts.

    A normaliser may change lengths; then the place is only about right.
    """
    starts = list(accumulate(map(len, pieces), initial=start))[:-1]
    return max(0, bisect_right(starts, at) - 1), starts
