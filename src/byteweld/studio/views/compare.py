"""The Compare view: tokenizers on one text, aligned by bytes, and the cost of each language."""

from __future__ import annotations

from typing import Any

from byteweld.comparison import align
from byteweld.samples import SENTENCES
from byteweld.studio.request import Request
from byteweld.studio.session import Opened, Session

_MAX_TOKENIZERS = 4
_MAX_SEGMENTS = 20_000
_MAX_SPOTS = 12


def _chosen(session: Session, fields: Request) -> list[Opened]:
    indices = fields.numbers("tokenizers", _MAX_TOKENIZERS, len(session.opened) - 1)
    return [session.opened[index] for index in indices]


def answer(session: Session, fields: Request) -> dict[str, Any]:
    """Return the segments of a text: [bytes, agrees, each tokenizer's ids, their lengths]."""
    text = fields.text("text").encode()
    specials = fields.specials()
    chosen = _chosen(session, fields)
    encoded = [opened.tok.encode_with_offsets(text, **specials) for opened in chosen]
    segments = align([[end for _, end in offsets] for _, offsets in encoded])
    rows = []
    for index in range(min(len(segments), _MAX_SEGMENTS)):
        segment = segments[index]
        ids, lengths = [], []
        for (token_ids, offsets), (first, last) in zip(encoded, segment.tokens, strict=True):
            ids.append(token_ids[first:last])
            lengths.append([end - start for start, end in offsets[first:last]])
        rows.append([segment.end - segment.start, segment.agrees, ids, lengths])
    return {
        "bytes": len(text),
        "counts": [len(ids) for ids, _ in encoded],
        "segments": rows,
        "total_segments": len(segments),
        "differing": segments.differing,
        "differing_bytes": segments.differing_bytes,
        "most": [index for index in segments.where_most(_MAX_SPOTS) if index < _MAX_SEGMENTS],
    }


def languages(session: Session, fields: Request) -> dict[str, Any]:
    """Return the cost of one sentence in each language, or of each given file."""
    texts = fields.texts("files") or SENTENCES
    specials = fields.specials()
    return {
        "names": list(texts),
        "texts": list(texts.values()) if texts is SENTENCES else None,
        "bytes": [len(text.encode()) for text in texts.values()],
        "tokens": [
            [opened.tok.count(text, **specials) for text in texts.values()]
            for opened in _chosen(session, fields)
        ],
    }
