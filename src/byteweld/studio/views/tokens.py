"""The Tokens view: ids and token lengths, fast enough to retokenize a megabyte while typing."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from byteweld.studio.request import Request
from byteweld.studio.session import Opened, Session

if TYPE_CHECKING:
    from numpy.typing import NDArray


def answer(session: Session, fields: Request) -> dict[str, Any]:
    """Return the ids of a text and the length of each token in bytes.

    Both are packed, because parsing half a million JSON numbers is slow.
    """
    opened = session.tokenizer(fields)
    given = fields.text("text")
    text = given.encode()
    ids, lengths = _ids_and_lengths(opened, text, fields.specials())
    special_ids = sorted(opened.tok.vocab.special_tokens.values())
    return {
        "ids": packed(ids),
        "lengths": packed(lengths),
        "characters": len(given),
        "special": np.flatnonzero(np.isin(ids, special_ids)).tolist(),
    }


def _ids_and_lengths(
    opened: Opened, text: bytes, specials: dict[str, Any]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    if opened.token_lengths is not None:
        ids = opened.tok.encode_to_numpy(text, **specials)
        return ids, opened.token_lengths[ids].astype(np.uint32)
    listed, offsets = opened.tok.encode_with_offsets(text, **specials)
    starts_and_ends = np.array(offsets, np.int64).reshape(-1, 2)
    lengths = (starts_and_ends[:, 1] - starts_and_ends[:, 0]).astype(np.uint32)
    return np.array(listed, np.uint32), lengths


def packed(numbers: NDArray[np.uint32]) -> dict[str, int | str]:
    """Pack numbers as base64, little-endian, in the fewest bytes that hold the largest."""
    largest = int(numbers.max(initial=0))
    width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
    packed = numbers.astype(f"<u{width}").tobytes()
    return {"width": width, "data": base64.b64encode(packed).decode()}
