"""The Why view: the pre-tokens of a text, and every merge that leads to the tokens of one."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Any

import numpy as np

import byteweld
from byteweld.explanation import explain_pretoken, find_pretokens
from byteweld.studio.examples import SURPRISING_WORDS
from byteweld.studio.request import MAX_TEXT_BYTES, Refused, Request
from byteweld.studio.session import Session
from byteweld.studio.views.tokens import packed

# The steps of a pre-token of n bytes have up to n²/2 parts in total.
_MAX_PRETOKEN_BYTES = 200


def pretokens(session: Session, fields: Request) -> dict[str, Any]:
    """Return the lengths of all pre-tokens of a text; without text, of a surprising word.

    `bytes` are those of the pre-tokens if they differ from the text's, as after a normalizer.
    """
    tok = session.tokenizer(fields).tok
    text = fields.text("text") if fields.has("text") else surprising_word(tok)
    data = text.encode()
    found, added = _pretokens(tok, data, fields.specials())
    whole = b"".join(found)
    return {
        "text": None if fields.has("text") else text,
        "bytes": None if whole == data else whole.hex(),
        "lengths": packed(np.fromiter(map(len, found), np.uint32, len(found))),
        "special": sorted(added),
    }


def answer(session: Session, fields: Request) -> dict[str, Any]:
    """Explain the pre-token at byte `at` of the text, or the last one; of no text, nothing."""
    tok = session.tokenizer(fields).tok
    data = fields.text("text").encode()
    at = fields.number("at", 0, 0, MAX_TEXT_BYTES)
    found, added = _pretokens(tok, data, fields.specials())
    if not found:
        return {"word": "", "start": 0, **byteweld.explain(tok, b"").to_dict()}
    # A normalizer may change lengths, so that the offset is approximate.
    starts = list(accumulate(map(len, found), initial=0))[:-1]
    index = max(0, bisect_right(starts, at) - 1)
    pretoken = found[index]
    if len(pretoken) > _MAX_PRETOKEN_BYTES:
        raise Refused(
            413,
            f"this pre-token has {len(pretoken):,} bytes, too many to step through "
            f"(at most {_MAX_PRETOKEN_BYTES}); choose a shorter one",
        )
    explained = explain_pretoken(tok.vocab, pretoken, added.get(index))
    return {"word": pretoken.hex(), "start": starts[index], **explained.to_dict()}


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


def _pretokens(
    tok: byteweld.Tokenizer, data: bytes, specials: dict[str, Any]
) -> tuple[list[bytes], dict[int, int]]:
    """Return the pre-tokens of a text, and the ids of those that are special or added tokens."""
    found = list(find_pretokens(tok, data, **specials))
    added = {n: added_id for n, (_, added_id) in enumerate(found) if added_id is not None}
    return [pretoken for pretoken, _ in found], added
