"""Arrow IPC files: `train-00000.arrow`, one row per document; memory-mapped to read."""

from __future__ import annotations

from typing import Final

from byteweld.dataset.formats._arrow import IpcFormat

ARROW: Final = IpcFormat(
    name="arrow",
    summary="Arrow IPC files with a column input_ids, one row per document",
    file_names=lambda name: (f"{name.split}-{name.number:05d}.arrow",),
    kind="file",
)
