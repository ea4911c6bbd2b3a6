"""Every way to encode, in one table: a path returns what it found and what is right.

A path is given a text with its right ids, and encodes it in its own way: to a list, an array, a
count, offsets, as a stream in pieces, as a batch on threads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import byteweld.tiktoken
from byteweld import SpecialTokenError, Tokenizer
from byteweld._text import utf8
from tests.helpers.vocabularies import unambiguous

from .oracles import Allowed, Ids
from .subjects import Subject
from .texts import Text, as_str

THREADS = (1, 2, 3, 5)
LONG = 1000  # characters; beyond that, a path in Python takes longer than all others together

Both = tuple[object, object]  # what was found, what is right


class Asked(NamedTuple):
    """One text, its right ids, and the special tokens recognized in it."""

    subject: Subject
    tok: Tokenizer
    text: Text
    ids: Ids
    allowed: Allowed
    seed: float  # for what a path draws: limits, and offsets to cut at

    @property
    def rng(self) -> Random:
        return Random(self.seed)

    @property
    def options(self) -> dict[str, Any]:
        return options(self.allowed)


OnePath = Callable[[Asked], Both | None]  # None where a path does not apply


def options(allowed: Allowed) -> dict[str, Any]:
    return {"allowed_special": allowed, "disallowed_special": ()}


# ---------------------------------------------------------------------- one text


def encode_ordinary(asked: Asked) -> Both | None:
    return None if asked.allowed else (asked.tok.encode_ordinary(asked.text), asked.ids)


def encode_strict(asked: Asked) -> Both | None:
    """By default, a text that contains a special token is rejected, and any other is encoded."""
    specials = asked.tok.vocab.special_tokens
    if asked.allowed or not asked.subject.is_plain:
        return None
    raw = utf8(asked.text)
    held = any(special.encode() in raw for special in specials)
    try:
        return asked.tok.encode(asked.text), "rejected" if held else asked.ids
    except SpecialTokenError:
        return "rejected", "rejected" if held else asked.ids


def count_to_limit(asked: Asked) -> Both:
    limit = max(0, len(asked.ids) + asked.rng.choice([-len(asked.ids) // 2, -1, 0, 1]))
    found = asked.tok.count(asked.text, limit=limit, **asked.options)
    return found, None if len(asked.ids) > limit else len(asked.ids)


def truncate(asked: Asked) -> Both | None:
    if not asked.subject.is_lossless:
        return None
    limit = asked.rng.randint(0, len(asked.ids))
    found = asked.tok.truncate(utf8(asked.text), limit, **asked.options)
    return found, b"".join(_tokens(asked)[:limit])


def offsets(asked: Asked) -> Both | None:
    ids, spans = asked.tok.encode_with_offsets(asked.text, **asked.options)
    if not asked.subject.is_lossless:
        return ids, asked.ids
    ends = accumulate(map(len, _tokens(asked)), initial=0)
    return (ids, spans), (asked.ids, list(pairwise(ends)))


def character_offsets(asked: Asked) -> Both | None:
    """The characters of a token contain its bytes."""
    if not isinstance(asked.text, str) or not asked.subject.is_lossless or len(asked.text) > LONG:
        return None
    ids, spans = asked.tok.encode_with_offsets(asked.text, unit="characters", **asked.options)
    held = [
        token in utf8(asked.text[start:end])
        for token, (start, end) in zip(_tokens(asked), spans, strict=False)
    ]
    return (ids, held), (asked.ids, [True] * len(asked.ids))


def stream(asked: Asked) -> Both:
    """In pieces of str, or of bytes cut inside characters too."""
    rng = asked.rng
    text = asked.text if rng.random() < 0.5 else utf8(asked.text)
    feeder = asked.tok.encode_stream(**asked.options)
    found: Ids = []
    for piece in _pieces(rng, text):
        found += feeder.feed(piece)
    return found + feeder.finish(), asked.ids


def spans(asked: Asked) -> Both | None:
    """Untrusted spans are ordinary text, wherever they are cut."""
    if not asked.subject.is_plain:
        return None
    vocab = asked.tok.vocab
    if not asked.allowed:
        pieces = _pieces(asked.rng, asked.text)
        expected = unambiguous(vocab, asked.ids) if vocab.ambiguous_ids else asked.ids
        return asked.tok.encode_spans([(piece, False) for piece in pieces]), expected
    if asked.allowed != frozenset(vocab.special_tokens) or vocab.ambiguous_ids:
        return None
    return asked.tok.encode_spans([(asked.text, True)]), asked.ids


def round_trip(asked: Asked) -> Both | None:
    if not asked.subject.is_lossless:
        return None
    return asked.tok.decode_bytes(asked.ids), utf8(asked.text)


def tiktoken_names(asked: Asked) -> Both | None:
    """The module with tiktoken's names, which calls the engine in its own way."""
    text = as_str(asked.text)
    if text is None or not asked.subject.is_plain:
        return None
    encoding = byteweld.tiktoken.Encoding.from_tokenizer(asked.tok)
    return encoding.encode(text, **asked.options), asked.ids


ONE: dict[str, OnePath] = {
    "encode": lambda asked: (asked.tok.encode(asked.text, **asked.options), asked.ids),
    "encode of bytes": lambda asked: (
        asked.tok.encode(utf8(asked.text), **asked.options),
        asked.ids,
    ),
    "encode_ordinary": encode_ordinary,
    "encode, strict": encode_strict,
    "encode_to_numpy": lambda asked: (
        asked.tok.encode_to_numpy(asked.text, **asked.options).tolist(),
        asked.ids,
    ),
    "count": lambda asked: (asked.tok.count(asked.text, **asked.options), len(asked.ids)),
    "count_to_limit": count_to_limit,
    "truncate": truncate,
    "encode_with_offsets": offsets,
    "encode_with_offsets in characters": character_offsets,
    "encode_stream": stream,
    "encode_spans": spans,
    "decode_bytes": round_trip,
    "tiktoken.Encoding": tiktoken_names,
}


# ---------------------------------------------------------------------- several texts


class AskedMany(NamedTuple):
    """Several texts and their right ids."""

    tok: Tokenizer
    texts: Sequence[Text]
    lists: Sequence[Ids]
    allowed: Allowed


ManyPath = Callable[[AskedMany], Both | None]


def batch(threads: int, asked: AskedMany) -> Both:
    found = asked.tok.encode_batch(asked.texts, num_threads=threads, **options(asked.allowed))
    return found, list(asked.lists)


def ordinary_batch(threads: int, asked: AskedMany) -> Both | None:
    if asked.allowed:
        return None
    return asked.tok.encode_ordinary_batch(asked.texts, num_threads=threads), list(asked.lists)


def ragged(threads: int, asked: AskedMany) -> Both:
    found = asked.tok.encode_ragged(asked.texts, num_threads=threads, **options(asked.allowed))
    return _lists(*found), list(asked.lists)


def _lists(ids: Any, ends: Any) -> list[Ids]:
    return [ids[start:end].tolist() for start, end in pairwise(ends.tolist())]


def files(asked: AskedMany) -> Both | None:
    """Documents in files; bytes that are not UTF-8 are left out, since they are rejected."""
    some = [
        (raw, ids)
        for raw, ids in zip(map(utf8, asked.texts), asked.lists, strict=True)
        if as_str(raw) is not None
    ]
    if not some:
        return None
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number:04}.txt" for number in range(len(some))]
        for path, (raw, _) in zip(paths, some, strict=True):
            path.write_bytes(raw)
        found = _lists(*asked.tok.encode_files(paths, num_threads=2, **options(asked.allowed)))
    return found, [ids for _, ids in some]


MANY: dict[str, ManyPath] = {
    **{f"encode_batch on {n}": partial(batch, n) for n in THREADS},
    **{f"encode_ordinary_batch on {n}": partial(ordinary_batch, n) for n in THREADS},
    **{f"encode_ragged on {n}": partial(ragged, n) for n in THREADS},
    "encode_files": files,
}


SINGLE = tuple(name for name in MANY if name.endswith(" on 1"))  # the others may use threads


# ---------------------------------------------------------------------- private


def _pieces(rng: Random, text: Text) -> list[Text]:
    """A text cut at a few offsets, or after every character."""
    if len(text) < 100 and rng.random() < 0.2:
        cuts = list(range(len(text)))
    else:
        cuts = sorted(rng.randint(0, len(text)) for _ in range(rng.randint(0, 6)))
    return [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]


def _tokens(asked: Asked) -> list[bytes]:
    tokens = asked.tok.vocab.tokens
    return [tokens[token_id] for token_id in asked.ids]
