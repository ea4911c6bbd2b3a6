"""The Tokens view: a text's ids and where each token ends."""

from __future__ import annotations

from typing import Any

import byteweld
from byteweld.studio.request import Asked
from byteweld.studio.session import Session


def encode(
    tok: byteweld.Tokenizer, text: str | bytes, special: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """Ids and byte offsets, with special tokens recognised or as plain text."""
    if special:
        return tok.encode_with_offsets(text, allowed_special="all")
    return tok.encode_with_offsets(text, disallowed_special=())


def answer(session: Session, asked: Asked) -> dict[str, Any]:
    """The tokens of a text. Lengths are in bytes; together they are the text."""
    opened = session.tokenizer(asked)
    ids, offsets = encode(opened.tok, asked.text("text"), asked.flag("special", True))
    special_ids = set(opened.tok.vocab.special_tokens.values())
    # Most texts hold no special token: then no id is looked at one by one.
    met = special_ids.intersection(ids)
    return {
        "ids": ids,
        "lengths": [end - start for start, end in offsets],
        "special": [place for place, token_id in enumerate(ids) if token_id in met] if met else [],
    }
