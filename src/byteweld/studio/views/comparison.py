"""The Compare view: tokenizers on one text, aligned on its bytes; and what each language costs."""

from __future__ import annotations

from typing import Any

from byteweld.comparison import align
from byteweld.evaluation import rates
from byteweld.samples import SENTENCES
from byteweld.studio.request import Asked, Refused
from byteweld.studio.session import Opened, Session
from byteweld.studio.views.tokens import encode

_MOST = 4
_MAX_SEGMENTS = 20_000
_MAX_SPOTS = 12


def _chosen(session: Session, asked: Asked) -> list[Opened]:
    places = asked.numbers("tokenizers", _MOST, len(session.opened) - 1)
    return [session.opened[place] for place in places]


def answer(session: Session, asked: Asked) -> dict[str, Any]:
    """The segments of a text: [bytes, agrees, ids of each tokenizer, lengths of each]."""
    text = asked.text("text").encode()
    special = asked.flag("special", True)
    encoded = [encode(opened.tok, text, special) for opened in _chosen(session, asked)]
    segments = align([[end for _, end in offsets] for _, offsets in encoded])
    rows = []
    for place in range(min(len(segments), _MAX_SEGMENTS)):
        segment = segments[place]
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
        "most": [place for place in segments.where_most(_MAX_SPOTS) if place < _MAX_SEGMENTS],
    }


def languages(session: Session, asked: Asked) -> dict[str, Any]:
    """What the same sentence costs in each language, or what each file given costs."""
    texts = asked.texts("files") or SENTENCES
    if not texts:
        raise Refused(400, "files is empty")
    measured = [rates(opened.tok, texts) for opened in _chosen(session, asked)]
    return {
        "names": list(texts),
        "texts": list(texts.values()) if texts is SENTENCES else None,
        "bytes": [rate.bytes for rate in measured[0]],
        "characters": [rate.characters for rate in measured[0]],
        "tokens": [[rate.tokens for rate in row] for row in measured],
    }
