"""A shard of a dataset, opened: its documents by number, and its ids as one array."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from byteweld._cached import cached_property
from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset.formats import FORMATS
from byteweld.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class OpenShard:
    """The documents (or packed rows) of a shard, whatever its format."""

    def __init__(self, folder: Path, entry: ShardEntry, manifest: Manifest) -> None:
        if manifest.format not in FORMATS:
            raise UnsupportedError(
                f"{folder} has the format {manifest.format!r:.100}, which this version of byteweld "
                f"cannot read; it knows {', '.join(FORMATS)}"
            )
        self._documents = FORMATS[manifest.format].open(folder, entry, manifest)
        self._dtype = manifest.dtype
        self._entry = entry
        self._file = folder / entry.files[0].name

    def __getitem__(self, number: int) -> NDArray[Any]:
        return self._documents[number]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of ids of each document."""
        lengths = self._documents.lengths
        if len(lengths) != self._entry.documents:
            raise FormatError(
                f"the shard has {len(lengths)} documents; its manifest says "
                f"{self._entry.documents}",
                path=self._file,
            )
        return lengths

    def ids(self, start: int, stop: int) -> NDArray[Any]:
        """Return ids `start` to `stop` of the shard, without copying if its format has no rows."""
        import numpy as np

        whole = getattr(self._documents, "ids", None)
        if whole is not None:
            found: NDArray[Any] = whole[start:stop]
            return found
        ends = self._ends
        number = int(np.searchsorted(ends, start, side="right"))
        parts: list[NDArray[Any]] = []
        while start < stop and number < len(ends):
            document, end = self._documents[number], int(ends[number])
            first = start - (end - len(document))
            parts.append(document[first : first + stop - start])
            start, number = end, number + 1
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty(0, self._dtype)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        import numpy as np

        return np.cumsum(self.lengths)
