"""Checks of the ids in a dataset, shard by shard: counts, range, end-of-text tokens, rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from byteweld.dataset._findings import Findings
from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset.formats import FORMATS
from byteweld.dataset.formats._documents import Documents
from byteweld.dataset.reading import open_shard
from byteweld.errors import ByteweldError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WINDOW_TOKENS: Final = 1 << 20
_BATCH_DOCUMENTS: Final = 1 << 20


class Added(NamedTuple):
    """The ids that are added before and after each document."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    marks_empty: bool = True  # whether documents without text have them, too

    @classmethod
    def of(cls, manifest: Manifest) -> Added:
        """Read from a manifest what its options add to each document."""
        eot, bos = (manifest.tokenizer.get(role) for role in ("eot", "bos"))
        where = manifest.options.get("eot")
        eot_ids = () if eot is None else (int(eot["id"]),)
        bos_ids = () if bos is None else (int(bos["id"]),)
        before = eot_ids if where == "prepend" else ()
        after = eot_ids if where == "append" else ()
        format = FORMATS.get(manifest.format)
        return cls(before + bos_ids, after, format is None or format.marks_empty)

    def strip(self, ids: NDArray[Any]) -> NDArray[Any] | None:
        """Return the ids of a document's text; None if the document has not what is added."""
        if not len(ids) and not self.marks_empty:
            return ids
        first, last = len(self.before), len(ids) - len(self.after)
        if first > last or tuple(ids[:first]) != self.before or tuple(ids[last:]) != self.after:
            return None
        return ids[first:last]

    def wrap(self, ids: NDArray[Any], *, has_text: bool) -> NDArray[Any]:
        """Return the ids of a document, from those of its text."""
        import numpy as np

        if not has_text and not self.marks_empty:
            return ids
        before, after = (np.array(added, ids.dtype) for added in (self.before, self.after))
        return np.concatenate([before, ids, after])


@dataclass
class IdCheck:
    """Checks shards in the order of the manifest."""

    folder: Path
    manifest: Manifest
    findings: Findings

    def __post_init__(self) -> None:
        self._pack = self.manifest.options.get("pack")
        self._added = Added.of(self.manifest) if self._pack is None else Added()
        self._previous: ShardEntry | None = None
        self._first = 0  # number of the document to which the shard's first piece belongs

    def check(self, entry: ShardEntry) -> bool:
        """Check a shard; returns whether it can be read."""
        previous, self._previous = self._previous, entry
        if previous is None or previous.split != entry.split:
            self._first, is_piece = 0, False
        else:
            self._first += previous.ended
            is_piece = previous.continues
        try:
            shard = open_shard(self.folder, entry, self.manifest)
            if not self._check_lengths(shard, entry):
                return False
            self._check_range(shard, entry)
            self._check_added(shard, entry, is_piece)
        # A damaged file may make a decoder fail in any way; its own message says most.
        except (ByteweldError, OSError, ValueError, LookupError, ArithmeticError) as error:
            self.findings.add(str(error), entry)
            return False
        return True

    def _check_lengths(self, shard: Documents, entry: ShardEntry) -> bool:
        """Check that documents cover the ids of the shard, and that packed rows are full."""
        total = 0
        for start, lengths in shard.length_batches():
            if (lengths < 0).any():
                at = start + int((lengths < 0).argmax())
                self._add("the index says that it ends before it starts", entry, at)
                return False
            wrong = lengths != (lengths if self._pack is None else self._pack)
            if wrong.any():
                at = int(wrong.argmax())
                self._add(f"has {lengths[at]} ids; expected {self._pack}", entry, start + at)
            total += int(lengths.sum())
        if total != entry.tokens:
            self.findings.add(f"its documents have {total} ids; expected {entry.tokens}", entry)
            return False
        return True

    def _check_range(self, shard: Documents, entry: ShardEntry) -> None:
        """Check that all ids are in the vocabulary."""
        n_vocab = self.manifest.tokenizer["n_vocab"]

        def windows() -> Iterator[_Window]:
            for start in range(0, entry.tokens, _WINDOW_TOKENS):
                ids = shard.ids(start, min(start + _WINDOW_TOKENS, entry.tokens))
                if int(ids.min()) < 0 or int(ids.max()) >= n_vocab:
                    yield start, ids, (ids < 0) | (ids >= n_vocab)

        count, first, found = _tally(windows())
        if count:
            message = f"has the id {found}; expected 0 to {n_vocab - 1}{_others(count, 'id')}"
            self._add(message, entry, int(shard.ends.searchsorted(first, side="right")))

    def _check_added(self, shard: Documents, entry: ShardEntry, is_piece: bool) -> None:
        """Check that documents start and end with the ids that are added to them."""

        def windows(side: str, added: int) -> Iterator[_Window]:
            for start in range(0, entry.documents, _BATCH_DOCUMENTS):
                stop = min(start + _BATCH_DOCUMENTS, entry.documents)
                ids = shard.edges(start, stop)[side == "end"]
                wrong = ids != added
                if not self._added.marks_empty:
                    wrong &= ids >= 0
                if side == "start" and start == 0 and is_piece:
                    wrong[0] = False
                if side == "end" and stop == entry.documents and entry.continues:
                    wrong[-1] = False
                yield start, ids, wrong

        sides = {"start": self._added.before[:1], "end": self._added.after[-1:]}
        for side, expected in ((side, added[0]) for side, added in sides.items() if added):
            count, first, found = _tally(windows(side, expected))
            if count:
                what = f"{side}s with the id {found}" if found >= 0 else "is empty"
                others = _others(count, "document")
                self._add(f"{what}; expected the id {expected} at its {side}{others}", entry, first)

    def _add(self, message: str, entry: ShardEntry, at: int) -> None:
        """Add a problem of a document, given by its number in the shard."""
        self.findings.add(message, entry, document=self._first + at)


_Window = tuple[int, "NDArray[Any]", "NDArray[Any]"]  # the first number, ids, which are wrong


def _tally(windows: Iterable[_Window]) -> tuple[int, int, int]:
    """Count what is wrong; return also the number of the first, and its id."""
    count = first = found = 0
    for start, ids, wrong in windows:
        if count == 0 and wrong.any():
            at = int(wrong.argmax())
            first, found = start + at, int(ids[at])
        count += int(wrong.sum())
    return count, first, found


def _others(count: int, what: str) -> str:
    if count == 1:
        return ""
    return f"; the same is true of {count - 1:,} more {what}{'' if count == 2 else 's'}"
