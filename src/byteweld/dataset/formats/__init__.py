"""The formats of token datasets, one module each: names, default options, how files are written.

A format gets a complete `Shard` and writes its files. Only `FORMATS` knows them all.
"""

from __future__ import annotations

from byteweld.dataset.formats._format import Format
from byteweld.dataset.formats.arrow import ARROW
from byteweld.dataset.formats.datatrove import DATATROVE
from byteweld.dataset.formats.flat import FLAT
from byteweld.dataset.formats.hf import HF
from byteweld.dataset.formats.litdata import LITDATA
from byteweld.dataset.formats.llmc import LLMC
from byteweld.dataset.formats.mds import MDS
from byteweld.dataset.formats.megatron import MEGATRON
from byteweld.dataset.formats.npy import NPY
from byteweld.dataset.formats.olmo import OLMO
from byteweld.dataset.formats.parquet import PARQUET

_RAW = (FLAT, LLMC, MEGATRON, OLMO, DATATROVE, NPY)
_ROWS = (PARQUET, ARROW, HF, MDS, LITDATA)
FORMATS: dict[str, Format] = {format.name: format for format in (*_RAW, *_ROWS)}
DATASET_FORMATS = FORMATS  # the public name

__all__ = ["DATASET_FORMATS", "FORMATS", "Format"]
