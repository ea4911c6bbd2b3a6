"""The corpus of `dataset.py` and docs/proof.md: documents as JSON Lines, compressed, and Parquet.

    python benches/dataset_corpus.py FOLDER [--mixed FOLDER] [--shared FOLDER] [--mb N]

Writes FOLDER/mixed.jsonl, mixed.jsonl.zst (level 3) and mixed.parquet (zstd, 16 MB row groups):
the documents of the mixed corpus (see README.md), then those of the shared corpora, which have chat
and more languages, in documents of about 4 KB. `--mb` takes a slice: every document whose number
is a multiple of a constant, so that it has the same mixture. The same inputs give the same
mixed.jsonl, whose size and SHA-256 are printed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

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


def write(folder: Path, documents: Iterator[bytes]) -> tuple[int, int]:
    """Write the three files; return the number of documents and of their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("text", pa.string())])
    count = num_bytes = filled = 0
    group: list[bytes] = []
    with (
        (folder / "mixed.jsonl").open("wb") as plain,
        (folder / "mixed.jsonl.zst").open("wb") as file,
        zstandard.ZstdCompressor(level=3).stream_writer(file) as compressed,
        pq.ParquetWriter(folder / "mixed.parquet", schema, compression="zstd") as table,
    ):

        def flush() -> None:
            table.write_table(pa.table({"text": pa.array(group).cast(pa.string())}))
            group.clear()

        for document in documents:
            line = json.dumps({"text": document.decode()}, ensure_ascii=False).encode() + b"\n"
            plain.write(line)
            compressed.write(line)
            group.append(document)
            count += 1
            num_bytes += len(document)
            filled += len(document)
            if filled >= _ROW_GROUP_BYTES:
                flush()
                filled = 0
        flush()
    return count, num_bytes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mixed", type=Path, help="the mixed corpus; made there if missing")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--mb", type=int, default=1000, help="about this size; 1000 is everything")
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
    count, num_bytes = write(chosen.folder, found)
    print(f"{count:,} documents, {num_bytes:,} bytes of text")
    for path in sorted(chosen.folder.glob("mixed.*")):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        print(f"{digest}  {path.stat().st_size:>13,}  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
