"""A list that grows on disk, one JSON line per entry, and can be cut back to a checkpoint."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from byteweld._atomic import naming
from byteweld.dataset._writer import open_at
from byteweld.errors import FormatError


class Log:
    """Entries in a file of JSON lines."""

    def __init__(self, path: Path, state: dict[str, int] | None = None) -> None:
        """Start, or cut the list back to an earlier length."""
        self._path = path
        self.entries = 0 if state is None else state["entries"]
        self._bytes = 0 if state is None else state["bytes"]
        self._file = open_at(path, self._bytes)

    @classmethod
    def complete(cls, path: Path) -> Log:
        """Open a list with all its entries; one that a killed run was writing is dropped."""
        data = path.read_bytes() if path.exists() else b""
        return cls(path, {"entries": data.count(b"\n"), "bytes": data.rfind(b"\n") + 1})

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

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield all entries."""
        with self._path.open("rb") as file:
            for line in file:
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise FormatError(
                        f"damaged ({error}); start over with overwrite=True (--force)",
                        path=self._path,
                    ) from None

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):  # it was synced, or is cut back later
            self._file.close()
