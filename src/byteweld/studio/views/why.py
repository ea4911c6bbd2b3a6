"""The Why view: the pre-token at a place of a text, and every merge that made its tokens."""

from __future__ import annotations

from typing import Any

import byteweld
from byteweld.studio.examples import SURPRISING_WORDS
from byteweld.studio.request import MAX_TEXT_BYTES, Asked, Refused
from byteweld.studio.session import Session
from byteweld.studio.views.tokens import encode

# All steps of n bytes have n² parts in all, which nobody steps through.
_MAX_PRETOKEN_BYTES = 200


def answer(session: Session, asked: Asked) -> dict[str, Any]:
    """Explain the pre-token that holds byte `at`; with no text, a word that surprises."""
    tok = session.tokenizer(asked).tok
    text = asked.text("text", "")
    if not text:
        text = surprising_word(tok)
    data = text.encode()
    at = asked.number("at", 0, 0, MAX_TEXT_BYTES)
    pretoken, start, is_special = _pretoken_at(tok, data, at, asked.flag("special", True))
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
    return {"word": pretoken.hex(), "start": start, **explained.to_dict()}


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


def _pretoken_at(
    tok: byteweld.Tokenizer, data: bytes, at: int, special: bool
) -> tuple[bytes, int, bool]:
    """The pre-token at a byte, where it starts, and whether it is a special token.

    A normaliser may change lengths; then the place is only about right.
    """
    start, end = 0, len(data)
    if special:
        special_ids = set(tok.vocab.special_tokens.values())
        ids, offsets = encode(tok, data, special)
        for token_id, (first, last) in zip(ids, offsets, strict=True):
            if token_id not in special_ids:
                continue
            if first <= at < last:
                return data[first:last], first, True
            if last <= at:
                start = last
            else:
                end = first
                break
    found, found_at = b"", start
    for piece in tok.pretokenize(data[start:end]):
        found, found_at = piece, start
        start += len(piece)
        if at < start:
            break
    return found, found_at, False
