"""Which ids of which files make up each shard, when documents were encoded in several tasks.

A split is a sequence of pieces, each with whole documents. Shards end where `SplitWriter`, which
sees all documents one after another, would end them; only the lengths of the pieces in which a
shard ends are read. Pure: nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from byteweld.dataset._shard import Split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Lengths = Callable[["Piece"], NDArray[np.int64]]


class Piece(NamedTuple):
    """Consecutive documents in a pair of files; a shard may have some of their ids."""

    stage: str  # of the task that wrote the files
    number: int  # of that task
    first_token: int
    tokens: int
    first_document: int
    documents: int

    @property
    def name(self) -> str:
        """The name of the files, without `.tokens` and `.lengths`."""
        return f"{self.stage}/{self.number:07d}"

    def part(self, token: int, tokens: int, document: int, documents: int) -> Piece:
        """Return some of the ids and documents, counted from the start of the piece."""
        return self._replace(
            first_token=self.first_token + token,
            tokens=tokens,
            first_document=self.first_document + document,
            documents=documents,
        )


class ShardPlan(NamedTuple):
    """A shard: which pieces it consists of.

    If documents may go on in the next shard, `first_length` is what the first document has in this
    one, and `continues` says that another one starts, after those of the pieces.
    """

    task: int  # its number among the shards of all splits
    split: Split
    number: int  # in its split
    pieces: tuple[Piece, ...]
    first_length: int | None = None
    continues: bool = False
    rows: int | None = None  # if packed

    def __str__(self) -> str:
        return f"shard {self.number:,} of {self.split}"

    @property
    def tokens(self) -> int:
        """The number of ids."""
        return sum(piece.tokens for piece in self.pieces)

    @property
    def documents(self) -> int:
        """The number of documents, or of rows."""
        if self.rows is not None:
            return self.rows
        return sum(piece.documents for piece in self.pieces) + self.continues


class SplitPlan(NamedTuple):
    """The shards of a split, and its totals."""

    shards: list[ShardPlan]
    documents: int  # or rows
    tokens: int
    dropped: int


def plan_split(
    split: Split,
    pieces: Sequence[Piece],
    *,
    shard_tokens: int | None,
    splits_documents: bool,
    pack: int | None,
    lengths: Lengths,
    first_task: int = 0,
) -> SplitPlan:
    """Divide the documents of a split into shards.

    Args:
        split: its name.
        pieces: all its documents, in order.
        shard_tokens: the size at which a shard ends; None for one shard.
        splits_documents: shards have exactly that size, even if a document goes on in the next.
        pack: the length of rows, which do not depend on documents.
        lengths: returns the lengths of the documents of a piece.
        first_task: the number of the first shard among those of all splits.
    """
    tokens = sum(piece.tokens for piece in pieces)
    documents = sum(piece.documents for piece in pieces)
    if pack is not None:
        found = _packed(pieces, tokens, shard_tokens, pack)
        documents, tokens = tokens // pack, tokens - tokens % pack
    elif splits_documents and shard_tokens is not None:
        found = _exact(pieces, shard_tokens, lengths)
    else:
        found = _whole(pieces, shard_tokens, lengths)
    shards = [
        plan._replace(task=first_task + number, split=split, number=number)
        for number, plan in enumerate(found)
    ]
    return SplitPlan(shards, documents, tokens, sum(piece.tokens for piece in pieces) - tokens)


def _shard(pieces: Iterable[Piece], **facts: object) -> ShardPlan:
    kept = tuple(piece for piece in pieces if piece.tokens or piece.documents)
    return ShardPlan(0, "train", 0, kept)._replace(**facts)  # type: ignore[arg-type]


def _whole(pieces: Sequence[Piece], size: int | None, lengths: Lengths) -> Iterator[ShardPlan]:
    """Shards of whole documents: each ends with the document that reaches the size."""
    import numpy as np

    current: list[Piece] = []
    filled = made = 0
    for piece in pieces:
        token = document = 0
        if size is not None and filled + piece.tokens >= size:
            ends = np.cumsum(lengths(piece))
            while filled + piece.tokens - token >= size:
                at = int(np.searchsorted(ends, token + size - filled))
                stop = int(ends[at])
                current.append(piece.part(token, stop - token, document, at + 1 - document))
                yield _shard(current)
                current, filled, made = [], 0, made + 1
                token, document = stop, at + 1
        rest = piece.part(token, piece.tokens - token, document, piece.documents - document)
        current.append(rest)
        filled += rest.tokens
    last = _shard(current)
    if last.pieces or not made:
        yield last


def _exact(pieces: Sequence[Piece], size: int, lengths: Lengths) -> Iterator[ShardPlan]:
    """Shards of exactly this size, but for the last one; documents go on in the next."""
    import numpy as np

    current: list[Piece] = []
    first_length: int | None = None  # of the document that goes on from the shard before
    filled = made = 0
    for piece in pieces:
        token = document = 0
        if filled + piece.tokens >= size:
            ends = np.cumsum(lengths(piece))
            while filled + piece.tokens - token >= size:
                stop = token + size - filled
                at = int(np.searchsorted(ends, stop))
                is_end = at < len(ends) and int(ends[at]) == stop
                current.append(piece.part(token, stop - token, document, at + is_end - document))
                yield _shard(current, first_length=first_length, continues=not is_end)
                current, filled, made = [], 0, made + 1
                token, document = stop, at + is_end
                first_length = None if is_end else int(ends[at]) - stop
        rest = piece.part(token, piece.tokens - token, document, piece.documents - document)
        current.append(rest)
        filled += rest.tokens
    last = _shard(current, first_length=first_length)
    if last.pieces or not made:
        yield last


def _packed(
    pieces: Sequence[Piece], tokens: int, size: int | None, pack: int
) -> Iterator[ShardPlan]:
    """Shards of rows, whatever the documents; what fills no row is dropped."""
    rows = tokens // pack
    rows_per_shard = max(1, rows) if size is None else -(-size // pack)
    upcoming = iter(pieces)
    piece, token = next(upcoming, None), 0
    for first in range(0, max(1, rows), rows_per_shard):
        here = min(rows_per_shard, rows - first)
        current, left = [], here * pack
        while left and piece is not None:
            taken = min(left, piece.tokens - token)
            current.append(piece.part(token, taken, 0, 0))
            left, token = left - taken, token + taken
            if token == piece.tokens:
                piece, token = next(upcoming, None), 0
        yield _shard(current, rows=here)
