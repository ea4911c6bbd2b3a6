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

    @cached_property
    def ends(self) -> NDArray[Any]:
        """The end of each document in the shard, in ids; mapped if the format has it in a file."""
        import numpy as np

        mapped: NDArray[Any] | None = getattr(self._documents, "ends", None)
        return np.cumsum(self.lengths) if mapped is None else mapped

    @property
    def _whole(self) -> NDArray[Any] | None:
        """All ids, one after another, if the format has them so."""
        return getattr(self._documents, "ids", None)

    def ids(self, start: int, stop: int) -> NDArray[Any]:
        """Return ids `start` to `stop` of the shard, without copying if its format has no rows."""
        import numpy as np

        if self._whole is not None:
            return self._whole[start:stop]
        number = int(np.searchsorted(self.ends, start, side="right"))
        parts: list[NDArray[Any]] = []
        while start < stop and number < len(self.ends):
            document, end = self._documents[number], int(self.ends[number])
            first = start - (end - len(document))
            parts.append(document[first : first + stop - start])
            start, number = end, number + 1
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty(0, self._dtype)

    def edges(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first and the last id of some documents, -1 for those that are empty."""
        import numpy as np

        ends = np.asarray(self.ends[start:stop]).astype(np.int64)
        starts = np.empty_like(ends)
        starts[1:] = ends[:-1]
        starts[:1] = self.ends[start - 1] if start else 0
        filled = np.flatnonzero(ends > starts)
        firsts, lasts = np.full((2, len(ends)), -1, np.int64)
        if self._whole is not None:
            firsts[filled], lasts[filled] = (
                self._whole[starts[filled]],
                self._whole[ends[filled] - 1],
            )
        else:
            for number in filled:
                document = self._documents[start + int(number)]
                firsts[number], lasts[number] = document[0], document[-1]
        return firsts, lasts
