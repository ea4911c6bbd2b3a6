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
"""The formats of datasets by name, for `tokenize`: the files that training frameworks read.

| name | what it is |
|---|---|
| `flat` (the default) | Ids without a header, `train.bin` and `val.bin`, as nanoGPT reads them. |
| `llmc` | Shards of 10^8 tokens with a header, as llm.c and modded-nanogpt read them. |
| `megatron` | Ids and an index, `X_text_document.bin` and `.idx`, as Megatron-LM reads them. |
| `olmo` | Ids named `.npy`, without a header, and `.csv.gz`, as OLMo-core and dolma read them. |
| `datatrove` | Ids in `.ds` files, with `.ds.index` and `.ds.metadata`, as datatrove reads them. |
| `npy` | NumPy files, `train.npy` and `train.index.npy`; a table if packed. |
| `parquet` | Parquet files with a column `input_ids`, one row per document. |
| `arrow` | Arrow IPC files with a column `input_ids`, one row per document. |
| `hf` | A Hugging Face dataset on disk, which `datasets.load_from_disk` opens. |
| `mds` | MosaicML's MDS shards and `index.json`, for its `StreamingDataset`. |
| `litdata` | litdata's chunks and `index.json`, for its `TokensLoader`. |
"""

__all__ = ["DATASET_FORMATS", "FORMATS", "Format"]
