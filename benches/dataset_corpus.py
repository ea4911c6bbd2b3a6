"""The corpus of `dataset.py` and docs/design/proof.md: JSON lines, compressed, Parquet.

    python benches/dataset_corpus.py FOLDER [--mixed FOLDER] [--shared FOLDER] [--mb N]
        [--file-mb N]

Writes FOLDER/jsonl/000.jsonl, jsonl.zst/000.jsonl.zst (level 3) and parquet/000.parquet (zstd, row
groups of 16 MB): the documents of the mixed corpus (see README.md), then those of the shared
corpora, which have chat and more languages, in documents of about 4 KB. `--file-mb` starts a new
file after so much text. `--mb` takes a slice: every document whose number is a multiple of a
constant, so that it has the same mixture. The same inputs give the same documents; corpus.json has
their number, bytes and SHA-256, and those of each file.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

import sources

ROOT = Path(__file__).resolve().parent.parent
_SEPARATOR = b"\n<|endoftext|>\n"
_SEPARATOR_TEXT = b"<|endoftext|>"
_BLOCK_BYTES = 1 << 24
_CUT_BYTES = 4096
_ROW_GROUP_BYTES = 16 << 20
FORMATS = ("jsonl", "jsonl.zst", "parquet")
_FILES = ("english.txt.gz", "code/*.txt.gz", "chat/*.txt.gz", "multilingual/*.txt.gz")


def mixed_documents(folder: Path) -> Iterator[bytes]:
    """The documents of the shards that `make_big_corpus.py` wrote."""
    for shard in json.loads((folder / "MANIFEST.json").read_bytes())["shards"]:
        rest = b""
        with (folder / shard["file"]).open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                *documents, rest = (rest + block).split(_SEPARATOR)
                yield from documents
        if rest:
            raise ValueError(f"{shard['file']}: the last document has no separator; make it again")


def shared_documents(shared: Path) -> Iterator[bytes]:
    """The shared corpora, cut at the first line end after 4 KB."""
    for pattern in _FILES:
        for path in sorted((shared / "corpora").glob(pattern)):
            text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace").encode()
            # The engines treat special tokens in text differently; this corpus has none.
            text = text.replace(_SEPARATOR_TEXT, b"")
            start = 0
            while start < len(text):
                end = text.find(b"\n", start + _CUT_BYTES) + 1 or len(text)
                yield text[start:end]
                start = end


class _Files:
    """One file in each format, open for writing."""

    def __init__(self, folder: Path, number: int) -> None:
        for name in FORMATS:
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.paths = [folder / name / f"{number:03}.{name}" for name in FORMATS]
        plain, compressed, table = self.paths
        self._plain = plain.open("wb")
        self._file = compressed.open("wb")
        self._compressed = zstandard.ZstdCompressor(level=3).stream_writer(self._file)
        schema = pa.schema([("text", pa.string())])
        self._table = pq.ParquetWriter(table, schema, compression="zstd")
        self._group: list[bytes] = []
        self._filled = 0
        self.bytes = 0

    def add(self, document: bytes) -> bytes:
        """Write a document, and return it as a line of JSON."""
        line = json.dumps({"text": document.decode()}, ensure_ascii=False).encode() + b"\n"
        self._plain.write(line)
        self._compressed.write(line)
        self._group.append(document)
        self._filled += len(document)
        self.bytes += len(document)
        if self._filled >= _ROW_GROUP_BYTES:
            self._write_group()
        return line

    def _write_group(self) -> None:
        if self._group:
            self._table.write_table(pa.table({"text": pa.array(self._group).cast(pa.string())}))
        self._group, self._filled = [], 0

    def close(self) -> None:
        self._write_group()
        for file in (self._plain, self._compressed, self._file, self._table):
            file.close()


def write(folder: Path, documents: Iterator[bytes], file_bytes: int | None) -> dict[str, Any]:
    """Write the documents in all formats; return what was written."""
    digest = hashlib.sha256()  # of all lines of JSON
    count = num_bytes = 0
    closed: list[Path] = []
    files = _Files(folder, 0)
    for document in documents:
        if file_bytes is not None and files.bytes >= file_bytes:
            files.close()
            closed += files.paths
            files = _Files(folder, len(closed) // len(FORMATS))
        digest.update(files.add(document))
        count += 1
        num_bytes += len(document)
    files.close()
    return {
        "documents": count,
        "bytes": num_bytes,
        "sha256": digest.hexdigest(),
        "files": {
            str(path.relative_to(folder)): {
                "bytes": path.stat().st_size,
                "sha256": sources.file_sha256(path),
            }
            for path in sorted([*closed, *files.paths])
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mixed", type=Path, help="the mixed corpus; made there if missing")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--mb", type=int, default=1000, help="about this size; 1000 is everything")
    parser.add_argument("--file-mb", type=int, help="text per file; by default all in one")
    chosen = parser.parse_args()
    mixed = chosen.mixed or ROOT / "benches" / ".cache" / "mixed"
    tool = chosen.shared.parent / "tools" / "make_big_corpus.py"
    mixed.parent.mkdir(parents=True, exist_ok=True)
    sources.make_big_corpus(mixed, tool, 1000)
    every = max(1, 1000 // chosen.mb)
    found = (
        document
        for part in (mixed_documents(mixed), shared_documents(chosen.shared))
        for number, document in enumerate(part)
        if number % every == 0
    )
    file_bytes = None if chosen.file_mb is None else chosen.file_mb * 1_000_000
    facts = write(chosen.folder, found, file_bytes)
    (chosen.folder / "corpus.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{facts['documents']:,} documents, {facts['bytes']:,} bytes of text")
    for name, file in facts["files"].items():
        print(f"{file['sha256']}  {file['bytes']:>13,}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
