"""What the frameworks' own writers write: run in their environment, frozen for all others.

`python -m tests.helpers.framework_writers` freezes it again, in tests/data/frameworks/; each writer
is a function of its own, so that an environment may lack the others.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

FROZEN = Path(__file__).parents[1] / "data" / "frameworks"
# Ids of more than two bytes; lengths that MDS writes as one byte and as two.
DOCUMENTS = [[1, 2, 3], [70_000], list(range(300)), [7, 0], [9]]
Documents = Sequence[Sequence[int]]


def write_mds(folder: Path, documents: Documents) -> None:
    """Write with mosaicml-streaming 0.13.0."""
    import numpy as np
    from streaming import MDSWriter

    columns = {"tokens": "ndarray:int32"}
    with MDSWriter(columns=columns, out=str(folder), hashes=["sha256"], size_limit=None) as writer:
        for document in documents:
            writer.write({"tokens": np.array(document, np.int32)})


def write_litdata(folder: Path, documents: Documents) -> None:
    """Write with litdata 0.2.76: the class that its `optimize` uses in each worker."""
    import torch
    from litdata.streaming.item_loader import TokensLoader
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(folder), chunk_bytes=64_000_000, item_loader=TokensLoader())
    for number, document in enumerate(documents):
        writer[number] = torch.tensor(document, dtype=torch.int32)
    writer.done()
    writer.merge()


def write_hf(folder: Path, documents: Documents) -> None:
    """Write with datasets 4.8.5."""
    import datasets

    features = datasets.Features({"input_ids": datasets.List(datasets.Value("uint32"))})
    made = datasets.Dataset.from_dict({"input_ids": documents}, features=features, split="train")
    made.save_to_disk(folder)


WRITERS = {"mds": write_mds, "litdata": write_litdata, "hf": write_hf}

if __name__ == "__main__":
    for name in sys.argv[1:] or WRITERS:
        shutil.rmtree(FROZEN / name, ignore_errors=True)
        WRITERS[name](FROZEN / name, DOCUMENTS)
