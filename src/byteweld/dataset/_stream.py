"""Makes a dataset in one pass: documents are appended to growing files, which become the shards.

Between two documents, now and then, a record says what was encoded since the last one, where
reading is, and how long each file is. A run that finds records cuts the files back to the last one
and reads on from there. A shard is published after the record of its end.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from byteweld.dataset._document_files import DocumentFiles, in_order
from byteweld.dataset._encoding import DocumentEncoding, Encoded
from byteweld.dataset._order import Targets, grouped, order_in_bucket
from byteweld.dataset._plan import Cutting, Piece, ShardPlan
from byteweld.dataset._shard import Split
from byteweld.dataset._tasks import Storage
from byteweld.errors import ByteweldError
from byteweld.jobs._work import Stage
from byteweld.sources import Sources

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_RECORD_SECONDS: float = 2.0  # at least, between two records
_TIMES_AS_LONG: Final = 20  # as a record took: on a slow disk, they are rarer
_UNCUT: Final = Cutting()  # for buckets

Publish = Callable[[ShardPlan], object]


class State(NamedTuple):
    """A growing file: its number among those of a name, its ids, the documents that end in it."""

    number: int = 0
    tokens: int = 0
    documents: int = 0
    digest: str | None = None  # the SHA-256 of the ids, if it is known

    def piece(self, name: str) -> Piece:
        """Return the file as a piece."""
        return Piece(_stem(name, self.number), 0, self.tokens, 0, self.documents, self.digest)


class Full(NamedTuple):
    """A shard that has ended."""

    split: Split
    state: State
    continues: bool
    rows: int | None

    @property
    def plan(self) -> ShardPlan:
        """The shard, of one piece."""
        pieces = (self.state.piece(self.split),)
        return ShardPlan(self.split, self.state.number, pieces, None, self.continues, self.rows)


class Record(NamedTuple):
    """What a pass did since its last record, and where it is."""

    files: tuple[State, ...]
    full: tuple[Full, ...]
    is_last: bool
    encoded: Encoded = Encoded()
    position: tuple[int, ...] | None = None  # in the corpus
    shuffled: int = 0  # buckets, in all


STREAM: Final = Stage("stream", Record)  # of the documents as they come
ORDER: Final = Stage("order", Record)  # of the shuffled buckets


def bucket_name(number: int) -> str:
    """Return the name of the file of a bucket."""
    return f"bucket-{number:03d}"


def _stem(name: str, number: int) -> str:
    return f"{STREAM.name}/{name}-{number:06d}"


def full_shards(records: Sequence[Record]) -> Iterator[ShardPlan]:
    """Yield the shards that end before the last record."""
    return (full.plan for record in records for full in record.full)


class _Growing:
    """A growing file; where a shard ends, the next file begins."""

    def __init__(self, storage: Storage, name: str, cutting: Cutting, state: State) -> None:
        self.full: list[Full] = []  # shards that have ended since the last record
        self._storage = storage
        self._name = name
        self._cutting = cutting
        self._open(state)

    def _open(self, state: State) -> None:
        self._number = state.number
        folder = self._storage.local_folder
        self.files = DocumentFiles(
            folder / _stem(self._name, state.number),
            self._storage.kind,
            self._storage.header_bytes,
            state.tokens,
            state.documents,
            hashed=self._storage.is_hashed and self._cutting is not _UNCUT,
        )

    @property
    def state(self) -> State:
        """How far the file is."""
        return State(self._number, self.files.tokens, self.files.documents, self.files.digest)

    def append(self, ids: NDArray[Any], ends: NDArray[np.int64], *, is_open: bool = False) -> None:
        """Append ids; `ends` are where documents end, of which the last may be open."""
        start = first = 0
        for cut in self._cutting.cuts(self.files.tokens, len(ids), ends, is_open=is_open):
            self.files.append(ids[start : cut.token], ends[first : cut.document] - start)
            pack = self._cutting.pack
            rows = None if pack is None else self.files.tokens // pack
            continues = cut.continues and pack is None
            self.files.sync()
            self.files.close()
            self.full.append(Full(cast("Split", self._name), self.state, continues, rows))
            self._open(State(self._number + 1))
            start, first = cut.token, cut.document
        self.files.append(ids[start:], ends[first:] - start)

    def drop_rest(self) -> None:
        """Drop the ids that do not fill a packed row."""
        if self._cutting.pack is not None:
            self.files.drop(self.files.tokens % self._cutting.pack)


class _Pass:
    """A pass over documents: growing files, and the records of a stage."""

    def __init__(
        self,
        storage: Storage,
        stage: Stage,
        names: Sequence[str],
        cutting: Cutting,
        publish: Publish,
    ) -> None:
        self._storage = storage
        self._stage = stage
        self._publish = publish
        self._is_between = True  # two documents, so that a record is possible
        records = storage.work.records(stage)
        first = Record(tuple(State() for _ in names), (), is_last=False)
        self.last: Record = records[-1] if records else first
        self._number = len(records)
        (storage.local_folder / STREAM.name).mkdir(parents=True, exist_ok=True)
        self.files: list[_Growing] = []
        try:
            with _explaining(2 * len(names)):
                for name, state in zip(names, self.last.files, strict=True):
                    self.files.append(_Growing(storage, name, cutting, state))
        except BaseException:
            self.close()
            raise
        self._due = time.monotonic() + _RECORD_SECONDS

    @property
    def is_due(self) -> bool:
        """Whether it is time for a record."""
        return time.monotonic() >= self._due or any(file.full for file in self.files)

    def record(self, *, is_last: bool = False, **found: Any) -> None:
        """Put everything on disk and note it, then publish the shards that have ended."""
        started = time.monotonic()
        for file in self.files:
            if is_last:
                file.drop_rest()
            file.files.sync()
        states = tuple(file.state for file in self.files)
        full = tuple(shard for file in self.files for shard in file.full)
        record = Record(states, full, is_last, **found)
        self._storage.work.put(self._stage, self._number, record, sync=True)
        self._number += 1
        now = time.monotonic()
        if _RECORD_SECONDS:
            self._due = now + max(_RECORD_SECONDS, _TIMES_AS_LONG * (now - started))
        for file in self.files:
            file.full = []
        for plan in full_shards([record]):
            self._publish(plan)

    def close(self) -> None:
        """Close all files."""
        for file in self.files:
            file.files.close()


class EncodingPass(_Pass):
    """Encodes documents, and appends them to the shards of splits or to buckets.

    Blocks are added to `total`, what was encoded before; `report` is called now and then with the
    stored bytes read.
    """

    def __init__(
        self,
        storage: Storage,
        targets: Targets,
        splits: Sequence[Split],
        cutting: Cutting,
        publish: Publish,
        total: Encoded,
        report: Callable[[int], object],
    ) -> None:
        names: list[str] = list(splits)
        if targets.buckets is not None:
            names, cutting = list(map(bucket_name, range(targets.count))), _UNCUT
        super().__init__(storage, STREAM, names, cutting, publish)
        self._targets = targets
        self._total = total
        self._report = report
        self._encoded = Encoded()  # since the last record
        self._position = self.last.position
        self._stored_bytes = 0  # read by this pass

    def encode(self, sources: Sources, encoding: DocumentEncoding, num_threads: int | None) -> None:
        """Encode all documents that are not encoded yet."""
        try:
            events = encoding.encode(
                sources,
                self._receive,
                start=self._position,
                num_threads=num_threads,
                progress=lambda: self._report(self._stored_bytes),
            )
            self._is_between = False
            self._encoded.note(events)
            self._keep(is_last=True)
        except BaseException:
            # What is done is kept; if this fails as well, the last record counts.
            if self._is_between and self._encoded:
                with contextlib.suppress(OSError, ByteweldError):
                    self._keep()
            raise

    def _receive(
        self,
        ids: NDArray[np.uint32],
        ends: NDArray[np.int64],
        is_open: bool,
        text_bytes: int,
        stored_bytes: int,
        specials: dict[str, int],
        position: tuple[int, ...] | None,
        events: Any,
    ) -> None:
        """Take a block of encoded documents; the last one may continue in the next block."""
        self._is_between = False
        self._stored_bytes = stored_bytes
        self._route(ids, ends.astype("i8"), is_open)
        for encoded in (self._total, self._encoded):
            encoded.add(len(ids), len(ends), text_bytes, specials)
        self._encoded.note(events)
        if not is_open:
            self._position = position
            self._is_between = True
            if self.is_due:
                self._keep()

    def _route(self, ids: NDArray[np.uint32], ends: NDArray[np.int64], is_open: bool) -> None:
        """Append documents to the files that they belong to."""
        import numpy as np

        if self._targets.is_one:
            self.files[0].append(ids, ends, is_open=is_open)
            return
        count, first = len(ends) + is_open, self._total.documents
        targets = self._targets.of(np.arange(first, first + count, dtype=np.uint64))
        stops = np.append(ends, len(ids)) if is_open else ends
        starts = np.concatenate(([0], stops[:-1])) if count else stops
        for target, some, here in grouped(ids, starts, stops, targets):
            # The open document is the last one of its group.
            continues = is_open and target == targets[-1]
            self.files[target].append(some, here[:-1] if continues else here, is_open=continues)

    def _keep(self, *, is_last: bool = False) -> None:
        self._is_between = False
        self.record(is_last=is_last, encoded=self._encoded, position=self._position)
        self._encoded = Encoded()
        self._is_between = True


class OrderingPass(_Pass):
    """Appends the documents of buckets, each in random order, to the shards of splits."""

    def __init__(
        self, storage: Storage, splits: Sequence[Split], cutting: Cutting, publish: Publish
    ) -> None:
        super().__init__(storage, ORDER, splits, cutting, publish)

    def shuffle(self, buckets: Sequence[State], seed: int, report: Callable[[int], object]) -> None:
        """Shuffle the buckets that are not shuffled yet; report the documents done."""
        first = self.last.shuffled
        done = sum(state.documents for state in buckets[:first])
        per_split = len(buckets) // len(self.files)
        storage = self._storage
        for number, state in enumerate(buckets):
            if number < first:
                continue
            report(done)
            stem = storage.local_folder / state.piece(bucket_name(number)).stem
            order = order_in_bucket(number, state.documents, seed)
            for ids, ends in in_order(
                stem, storage.kind, storage.header_bytes, state.tokens, state.documents, order
            ):
                self.files[number // per_split].append(ids, ends)
                done += len(ends)
                report(done)
            is_last = number + 1 == len(buckets)
            if self.is_due or is_last:
                self.record(is_last=is_last, shuffled=number + 1)


@contextlib.contextmanager
def _explaining(count: int) -> Iterator[None]:
    """Say how many files must be open at once if the system does not allow that."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise OSError(
            error.errno,
            f"too many open files: shuffling this corpus needs {count} at once, and some more; "
            f"raise the limit (ulimit -n {2 * count}), or leave shuffle out",
            error.filename,
        ) from None
