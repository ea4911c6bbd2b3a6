"""The checkpoint of `byteweld prove`: a JSON file from which an interrupted proof resumes.

It says what is compared (tokenizer, peer, options, files) and what was found so far. Everything in
it holds for the documents before its position, whoever wrote it last, so it needs no lock.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from byteweld import proof
from byteweld._saves import write_atomic
from byteweld._text import printable
from byteweld.cli._documents import Documents
from byteweld.corpus import File, describe
from byteweld.errors import CorpusError, FormatError
from byteweld.formats import _json
from byteweld.training.checkpoint import describe_files, differences

_FORMAT = "byteweld proof checkpoint 1"
_WRITE_SECONDS = 1.0  # at least, between two writes
_TIMES_AS_LONG = 50  # as a write took: on a slow disk, writes are rarer
_MAX_REASON = 1000  # characters of a failure; far more than are shown
_TOO_LARGE = 1 << 63  # for a count, or seconds
_COUNTS = ("documents", "tokens", "bytes", "skipped_documents")


class _Place(NamedTuple):
    """Where a file starts: how many documents, skipped records and bytes of text are before it."""

    file: int
    documents: int
    skipped: int
    bytes: int


class Checkpoint:
    """Opens the checkpoint in a file, or starts one there, and moves `files` to its position.

    `facts` are everything else that the result depends on, by name, as JSON values. If the facts or
    files have changed, raises a ValueError that lists the changes.
    """

    def __init__(self, path: str, facts: Mapping[str, object], files: Documents) -> None:
        self.path = Path(path)
        self.proof = proof.Proof()  # so far, when it was opened
        self.is_finished = False
        self._files = files
        self._place = _Place(0, 0, 0, 0)  # of the file to begin with
        self._places: deque[_Place] = deque()  # of files that are being compared, in order
        self._seconds = 0.0  # that earlier runs took
        self._started = time.monotonic()
        self._due = 0.0  # when to write again
        self._stored_bytes = 0  # of the files, as progress counts them
        self._latest: str | None = None  # a state that is not yet written
        described = describe_files(_fact(file) for file in files.paths if file is not None)
        known = json.loads(json.dumps({**facts, "files": described}))  # as they will be read
        self._facts = json.dumps(known)  # once: there may be thousands of files
        is_new = not os.path.lexists(self.path)
        if not is_new:
            self._read(known)
            place = self._place
            files.start_at(
                place.file,
                skipped=place.skipped,
                text_bytes=place.bytes,
                already=self._stored_bytes,
            )
        # Now, so that a file that cannot be written is reported before the work.
        self._latest = self._state(self.proof, self._place)
        self.write(overwrite=not is_new)

    @property
    def seconds(self) -> float:
        """Seconds that this proof has taken, over all runs."""
        return self._seconds + (0.0 if self.is_finished else time.monotonic() - self._started)

    # ------------------------------------------------------------------ during the proof

    def rest(self, name: str, documents: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield the documents of the next file that are not yet compared, with their numbers."""
        place = self._place._replace(skipped=self._files.skipped)
        self._places.append(place)
        drop = max(0, self.proof.seen - place.documents)
        count = num_bytes = 0
        for count, content in enumerate(documents, 1):
            num_bytes += len(content)
            if count > drop:
                yield count, content
        if count < drop:
            raise CorpusError(
                f"the file has {count:,} documents, but the checkpoint {self.path} was written "
                f"after document {drop:,}; remove the checkpoint",
                path=name,
            )
        self._place = _Place(
            file=place.file + 1,
            documents=place.documents + count,
            skipped=0,  # not known before the file is closed
            bytes=place.bytes + num_bytes,
        )

    def keep(self, found: proof.Proof) -> None:
        """Take what was found so far, and write it now and then."""
        while len(self._places) > 1 and self._places[1].documents <= found.seen:
            self._places.popleft()
        self._stored_bytes = self._files.stored_bytes(found.bytes)
        self._latest = self._state(found, self._places[0])
        if time.monotonic() >= self._due:
            self.write()

    def finish(self, found: proof.Proof) -> None:
        """Write that all documents were compared."""
        end = self._place._replace(skipped=self._files.skipped)
        self._seconds = self.seconds
        self.is_finished = True
        self._latest = self._state(found, end)
        self.write()

    def write(self, *, overwrite: bool = True) -> None:
        """Write the latest state, unless it is written."""
        if self._latest is None:
            return
        content = f'{{"format": "{_FORMAT}",\n"facts": {self._facts},\n"state": {self._latest}}}\n'
        started = time.monotonic()
        write_atomic(self.path, content.encode(), overwrite=overwrite)
        self._latest = None
        now = time.monotonic()
        self._due = now + max(_WRITE_SECONDS, _TIMES_AS_LONG * (now - started))

    def _state(self, found: proof.Proof, place: _Place) -> str:
        return json.dumps(
            {
                "finished": self.is_finished,
                **{name: getattr(found, name) for name in _COUNTS},
                "seconds": list(found.seconds),
                "elapsed_seconds": self.seconds,
                "skipped": [
                    # As they will be shown: a JSON string cannot hold just any file name.
                    [
                        side,
                        printable(document.source),
                        document.number,
                        printable(reason[:_MAX_REASON]),
                    ]
                    for side, document, reason in found.skipped
                ],
                "place": place._asdict(),
                "stored_bytes": self._stored_bytes,
            }
        )

    # ------------------------------------------------------------------ opening

    def _read(self, facts: Mapping[str, object]) -> None:
        path = self.path
        found = _json.parse_object(_json.read_file(path, _json.MAX_BESIDE_BYTES), path)
        if found.get("format") != _FORMAT:
            raise FormatError(
                "expected a checkpoint of `byteweld prove` of this version; name another file",
                path=path,
            )
        _json.require_exactly(found, ("format", "facts", "state"), path)
        old = _json.read_object(found["facts"], "the key 'facts'", path)
        changes = list(differences(old, facts))
        if changes:
            raise ValueError(
                f"{path} is the checkpoint of another proof: {'; '.join(changes)}; pass the same "
                "inputs and options or another file, or remove this one"
            )
        self._restore(_json.read_object(found["state"], "the key 'state'", path))

    def _restore(self, state: dict[str, Any]) -> None:
        place, seconds, skipped = (state.get(n) for n in ("place", "seconds", "skipped"))
        counts = {name: state.get(name) for name in _COUNTS}
        if (
            type(state.get("finished")) is not bool
            or not isinstance(place, dict)
            or place.keys() != set(_Place._fields)
            or not isinstance(skipped, list)
            or not isinstance(seconds, list)
            or len(seconds) != 2
            or not all(map(_is_time, [*seconds, state.get("elapsed_seconds")]))
            or not all(
                map(_is_count, [*counts.values(), *place.values(), state.get("stored_bytes")])
            )
        ):
            self._reject(state)
        failures = tuple(map(self._failure, skipped))
        sides = (seconds[0], seconds[1])
        self.proof = proof.Proof(**counts, seconds=sides, skipped=failures)  # type: ignore[arg-type]
        self._place = _Place(**place)
        self.is_finished = state["finished"]
        self._seconds = state["elapsed_seconds"]
        self._stored_bytes = state["stored_bytes"]
        num_files = len(self._files.paths)
        is_at_end = self._place.file == num_files
        if (
            self._place.file > num_files
            or self._place.documents > self.proof.seen
            or is_at_end != self.is_finished
        ):
            self._reject(state)

    def _failure(self, item: object) -> proof.Failure:
        if not isinstance(item, list) or [type(part) for part in item] != [str, str, int, str]:
            self._reject(item)
        side, source, number, reason = item
        return proof.Failure(side, proof.Document(source, number, b""), reason)

    def _reject(self, found: object) -> NoReturn:
        raise FormatError(
            f"expected the state of a proof, found {_json.show(found)}; remove the file, and the "
            "proof starts over",
            path=self.path,
        )


def _fact(file: File) -> Path | list[object]:
    """A file, or what identifies a remote one."""
    if not isinstance(file, str):
        return file
    found = describe(file)
    return [str(file), found.size, found.version]


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _TOO_LARGE


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < _TOO_LARGE
