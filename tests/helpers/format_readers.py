"""Readers of the formats of datasets, written from the layouts alone."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from byteweld.dataset._manifest import Manifest, ShardEntry
from byteweld.dataset.formats import FORMATS
from byteweld.dataset.formats._documents import Documents

KINDS = {"uint8": "B", "uint16": "H", "uint32": "I", "int32": "i", "int64": "q", "uint64": "Q"}


def files_of(folder: Path, entry: ShardEntry) -> list[Path]:
    return [folder / file.name for file in entry.files]


def read_shard(name: str, folder: Path, entry: ShardEntry, dtype: str) -> list[list[int]]:
    """Read the documents of a shard in a format."""
    return READERS[name](files_of(folder, entry), dtype)


def read_numbers(path: Path, dtype: str, offset: int = 0) -> list[int]:
    return [n for (n,) in struct.iter_unpack("<" + KINDS[dtype], path.read_bytes()[offset:])]


def split_at(ids: list[int], ends: list[int]) -> list[list[int]]:
    assert not ends or ends[-1] == len(ids)
    return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def read_ends(files: Sequence[Path], dtype: str, header: int = 0) -> list[list[int]]:
    return split_at(read_numbers(files[0], dtype, header), read_numbers(files[-1], "uint64"))


def read_llmc(files: Sequence[Path], dtype: str) -> list[list[int]]:
    header = struct.unpack("<256i", files[0].read_bytes()[:1024])
    magic = {"uint16": (20240520, 1), "uint32": (20240801, 7)}[dtype]
    assert header[:2] == magic
    assert files[0].stat().st_size == 1024 + np.dtype(dtype).itemsize * header[2]
    assert not any(header[3:])
    return read_ends(files, dtype, header=1024)


def read_olmo(files: Sequence[Path], dtype: str) -> list[list[int]]:
    """The rows of .csv.gz leave out empty documents, so take those from the index."""
    documents = read_ends(files, dtype)
    ids = read_numbers(files[0], dtype)
    rows = [line.split(",") for line in gzip.decompress(files[1].read_bytes()).decode().split()]
    assert [ids[int(start) : int(end)] for start, end in rows] == [d for d in documents if d]
    return documents


def read_megatron(files: Sequence[Path], dtype: str) -> list[list[int]]:
    data, index = files[0].read_bytes(), files[1].read_bytes()
    magic, version, code, sequences, indices = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\x00\x00", 1)
    assert code == {"uint16": 8, "int32": 4}[dtype]
    size = np.dtype(dtype).itemsize
    assert len(index) == 34 + 12 * sequences + 8 * indices
    lengths = struct.unpack_from(f"<{sequences}i", index, 34)
    offsets = struct.unpack_from(f"<{sequences}q", index, 34 + 4 * sequences)
    firsts = struct.unpack_from(f"<{indices}q", index, 34 + 12 * sequences)
    starts = [0, *itertools.accumulate(size * length for length in lengths)]
    assert list(offsets) == starts[:-1]
    assert (firsts[0], firsts[-1]) == (0, sequences)
    documents = []
    for first, after in itertools.pairwise(firsts):
        ids: list[int] = []
        for at in range(first, after):
            ids += struct.unpack_from(f"<{lengths[at]}{KINDS[dtype]}", data, offsets[at])
        documents.append(ids)
    assert sum(map(len, documents)) * size == len(data)
    return documents


def read_npy(files: Sequence[Path], dtype: str) -> list[list[int]]:
    ids, ends = (np.load(file, mmap_mode="r") for file in files)
    assert (ids.dtype, ends.dtype) == (dtype, "uint64")
    return split_at(ids.ravel().tolist(), ends.tolist())


def read_parquet(files: Sequence[Path], dtype: str) -> list[list[int]]:
    return _read_table(pyarrow.parquet.read_table(files[0]), dtype, "element")


def read_arrow(files: Sequence[Path], dtype: str) -> list[list[int]]:
    return _read_table(pyarrow.ipc.open_file(files[0].read_bytes()).read_all(), dtype)


def read_hf(files: Sequence[Path], dtype: str) -> list[list[int]]:
    return _read_table(pyarrow.ipc.open_stream(files[0].read_bytes()).read_all(), dtype)


def _read_table(table: Any, dtype: str, item: str = "item") -> list[list[int]]:
    expected = f"input_ids: list<{item}: {dtype}>\n  child 0, {item}: {dtype}"
    assert table.schema.to_string() == expected
    documents: list[list[int]] = table.column(0).to_pylist()
    return documents


def _read_items(path: Path) -> tuple[list[bytes], bytes]:
    """The items of a file that starts with their number and offsets, and what is between."""
    data = path.read_bytes()
    (count,) = struct.unpack_from("<I", data)
    offsets = struct.unpack_from(f"<{count + 1}I", data, 4)
    assert offsets[-1] == len(data)
    between = data[4 * (count + 2) : offsets[0]]
    return [data[a:b] for a, b in itertools.pairwise(offsets)], between


def read_mds(files: Sequence[Path], dtype: str) -> list[list[int]]:
    samples, config = _read_items(files[0])
    assert json.loads(config) == mds_config(dtype)
    documents = []
    for sample in samples:
        size, code = struct.unpack_from("<IB", sample)
        assert size == len(sample) - 4
        kind = {4: "B", 5: "H", 6: "I"}[code]
        (length,) = struct.unpack_from(f"<{kind}", sample, 5)
        assert length >= {"B": 0, "H": 256, "I": 65_536}[kind]  # the smallest type that fits
        start = 5 + struct.calcsize(kind)
        documents.append(list(struct.unpack(f"<{length}{KINDS[dtype]}", sample[start:])))
    return documents


def mds_config(dtype: str) -> dict[str, Any]:
    return {
        "version": 2,
        "format": "mds",
        "compression": None,
        "hashes": ["sha256"],
        "size_limit": None,
        "column_names": ["tokens"],
        "column_encodings": [f"ndarray:{dtype}"],
        "column_sizes": [None],
    }


def read_litdata(files: Sequence[Path], dtype: str) -> list[list[int]]:
    items, between = _read_items(files[0])
    assert between == b""
    return [[id for (id,) in struct.iter_unpack(f"<{KINDS[dtype]}", item)] for item in items]


READERS: dict[str, Callable[[Sequence[Path], str], list[list[int]]]] = {
    "flat": read_ends,
    "llmc": read_llmc,
    "megatron": read_megatron,
    "olmo": read_olmo,
    "datatrove": read_ends,
    "npy": read_npy,
    "parquet": read_parquet,
    "arrow": read_arrow,
    "hf": read_hf,
    "mds": read_mds,
    "litdata": read_litdata,
}


def lengths_of(documents: Documents) -> list[int]:
    """Return the number of ids of each document of a shard that was opened."""
    return [int(length) for _, lengths in documents.length_batches() for length in lengths]


def read_back(name: str, folder: Path, entry: ShardEntry, manifest: Manifest) -> list[list[int]]:
    """Read a shard as `open` does; only FormatError may come of it."""
    found = FORMATS[name].open(folder, entry, manifest)
    lengths = lengths_of(found)
    documents = [found[number].tolist() for number in range(entry.documents)]
    assert lengths == [len(document) for document in documents]
    return documents


def put(folder: Path, entry: ShardEntry, data: bytes, at: int = 0) -> ShardEntry:
    """Replace a file of a shard, in the folder and in its entry."""
    files = list(entry.files)
    (folder / files[at].name).write_bytes(data)
    files[at] = dataclasses.replace(files[at], size=len(data))
    return dataclasses.replace(entry, files=tuple(files))


def files_under(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files in a folder, by name."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
