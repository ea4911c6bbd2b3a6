"""The formats of token datasets, one module each: names, default options, how files are written.

A format gets a complete `Shard` and writes its files. Only `DATASET_FORMATS` knows them all.
"""

from __future__ import annotations

from byteweld.dataset.formats._format import Format
from byteweld.dataset.formats.flat import FLAT

DATASET_FORMATS: dict[str, Format] = {format.name: format for format in (FLAT,)}

__all__ = ["DATASET_FORMATS", "Format"]
