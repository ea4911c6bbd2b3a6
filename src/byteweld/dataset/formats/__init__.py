"""The formats of token datasets, one module each: names, default options, how files are written.

A format gets a complete `Shard` and writes its files. Only `FORMATS` knows them all.
"""

from __future__ import annotations

from byteweld.dataset.formats._format import Format
from byteweld.dataset.formats.arrow import ARROW
from byteweld.dataset.formats.flat import FLAT
from byteweld.dataset.formats.hf import HF
from byteweld.dataset.formats.litdata import LITDATA
from byteweld.dataset.formats.mds import MDS
from byteweld.dataset.formats.parquet import PARQUET

FORMATS: dict[str, Format] = {
    format.name: format for format in (FLAT, PARQUET, ARROW, HF, MDS, LITDATA)
}

__all__ = ["FORMATS", "Format"]
