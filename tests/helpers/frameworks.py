"""What training frameworks wrote for the same documents, frozen in data/frameworks/.

`make test` compares our files with the frozen ones; `make test-frameworks` compares those with the
frameworks themselves. To freeze them anew: `BYTEWELD_FREEZE=1 pytest tests/frameworks`.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data" / "frameworks"
EOS = 50_256
# Empty documents, a single id, and ids of every size that uint16 holds; each ends with EOS unless
# it is empty.
DOCUMENTS = [
    [31_373, 995, EOS],
    [],
    [EOS],
    [0, 1, 255, 256, 65_535, EOS],
    [*range(1000, 1100), EOS],
    [],
]
LARGE = 100_000  # an id that only 32 bits hold


def large(documents: list[list[int]]) -> list[list[int]]:
    """Return the documents with ids that need 32 bits."""
    return [[id + LARGE if id != EOS else id for id in document] for document in documents]


def check_frozen(name: str, written: bytes) -> None:
    """Compare what a framework writes with the frozen file, or freeze it."""
    file = FOLDER / name
    if os.environ.get("BYTEWELD_FREEZE"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(written)
    assert file.read_bytes() == written
