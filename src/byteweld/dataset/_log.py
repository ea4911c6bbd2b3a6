"""A list that grows on disk, one JSON line per entry, and can be cut back to a checkpoint."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from byteweld._atomic import naming


class Log:
    """Entries in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries = self._bytes = 0
        with naming(path):
            self._file = path.open("a+b")
        self.restore({"entries": 0, "bytes": 0})

    def extend(self, entries: Iterable[Any]) -> None:
        """Append dataclasses."""
        for entry in entries:
            line = json.dumps(dataclasses.asdict(entry), ensure_ascii=False)
            data = line.encode("utf-8", "surrogateescape") + b"\n"
            with naming(self._path):
                self._file.write(data)
            self.entries += 1
            self._bytes += len(data)

    def sync(self) -> None:
        """Put all entries on disk."""
        with naming(self._path):
            self._file.flush()
            os.fdatasync(self._file.fileno())

    def state(self) -> dict[str, int]:
        """Return how long the list is."""
        return {"entries": self.entries, "bytes": self._bytes}

    def restore(self, state: dict[str, int]) -> None:
        """Cut the list back to an earlier length."""
        self.entries, self._bytes = state["entries"], state["bytes"]
        with naming(self._path):
            self._file.truncate(self._bytes)

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield all entries."""
        with self._path.open("rb") as file:
            for line in file:
                yield json.loads(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
