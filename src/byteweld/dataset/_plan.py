"""Where shards end, and which documents of which files make up each. Pure: nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from byteweld.dataset._shard import Split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Lengths = Callable[["Piece"], NDArray[np.int64]]


class Cut(NamedTuple):
    """The end of a shard within a block of documents."""

    token: int  # ids of the block before it
    document: int  # documents of the block that end before it
    continues: bool = False  # a document continues in the next shard


class Cutting(NamedTuple):
    """When a shard ends.

    With a size, it ends with the document that reaches the size; if it is exact, at this size,
    even within a document. Of packed rows, documents do not matter.
    """

    size: int | None = None
    is_exact: bool = False
    pack: int | None = None

    @classmethod
    def of(cls, shard_tokens: int | None, pack: int | None, *, splits_documents: bool) -> Cutting:
        """Return the rule of a format's shards."""
        if pack is not None:
            rows = None if shard_tokens is None else -(-shard_tokens // pack)
            return cls(None if rows is None else rows * pack, True, pack)
        return cls(shard_tokens, splits_documents)

    def cuts(
        self, filled: int, tokens: int, ends: NDArray[np.int64], *, is_open: bool = False
    ) -> Iterator[Cut]:
        """Yield the ends of shards within a block.

        Of documents that end where an exact shard does, the first is its last one.

        The current shard has `filled` ids before the block, which has `tokens` ids and documents
        that end at `ends`; if it is open, its last document continues in the next block.
        """
        import numpy as np

        start = -filled
        while self.size is not None:
            stop = start + self.size
            if self.is_exact and (stop > tokens or (stop == tokens and is_open)):
                return  # whether the open document ends here is known only with the next block
            at = int(np.searchsorted(ends, stop))
            if self.is_exact:
                is_end = at < len(ends) and int(ends[at]) == stop
                cut = Cut(stop, at + is_end, not is_end)
            elif at < len(ends):
                cut = Cut(int(ends[at]), at + 1)
            else:
                return
            yield cut
            start = cut.token


class Piece(NamedTuple):
    """Consecutive ids and documents in a pair of files of the work folder."""

    stem: str  # of the files' names
    first_token: int
    tokens: int
    first_document: int
    documents: int
    digest: str | None = None  # the SHA-256 of the ids, if it is known

    def part(self, token: int, tokens: int, document: int, documents: int) -> Piece:
        """Return some of the ids and documents, counted from the start of the piece."""
        return self._replace(
            first_token=self.first_token + token,
            tokens=tokens,
            first_document=self.first_document + document,
            documents=documents,
            digest=self.digest if tokens == self.tokens else None,
        )


class ShardPlan(NamedTuple):
    """A shard: which pieces it consists of.

    If documents may continue in the next shard, `first_length` is what the first document has in
    this one if it began before, and `continues` says that one starts after those of the pieces.
    """

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


def plan_shards(
    split: Split, pieces: Sequence[Piece], cutting: Cutting, lengths: Lengths, first: int = 0
) -> list[ShardPlan]:
    """Divide the documents of a split, in order, into shards, numbered from `first`.

    `lengths` returns the lengths of the documents of a piece.
    """
    import numpy as np

    plans: list[ShardPlan] = []
    current: list[Piece] = []
    filled = 0
    first_length: int | None = None  # of the document that continues from the shard before

    def end(*, continues: bool) -> None:
        nonlocal filled
        kept = tuple(piece for piece in current if piece.tokens or piece.documents)
        rows = None if cutting.pack is None else filled // cutting.pack
        number = first + len(plans)
        if kept or not number:
            plans.append(ShardPlan(split, number, kept, first_length, continues, rows))
        current.clear()
        filled = 0

    for piece in pieces:
        token = document = 0
        if cutting.size is not None and filled + piece.tokens >= cutting.size:
            is_packed = cutting.pack is not None
            ends = np.zeros(0, np.int64) if is_packed else np.cumsum(lengths(piece))
            for cut in cutting.cuts(filled, piece.tokens, ends):
                stop = cut.token - token
                current.append(piece.part(token, stop, document, cut.document - document))
                filled += stop
                end(continues=cut.continues and not is_packed)
                token, document = cut.token, cut.document
                is_within = cut.continues and not is_packed
                first_length = int(ends[document]) - token if is_within else None
        rest = piece.part(token, piece.tokens - token, document, piece.documents - document)
        current.append(rest)
        filled += rest.tokens
    if cutting.pack is not None:
        filled -= filled % cutting.pack
        current = list(_first(current, filled))
    end(continues=False)
    return plans


def _first(pieces: Sequence[Piece], tokens: int) -> Iterator[Piece]:
    """Yield the first ids of pieces; rows have no documents."""
    for piece in pieces:
        taken = min(tokens, piece.tokens)
        yield piece.part(0, taken, 0, 0)
        tokens -= taken
