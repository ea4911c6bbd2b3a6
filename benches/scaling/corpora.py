"""The corpora of `scale.py`: documents in random order, and slices as files.

Heaps' law is about random samples of text. The first n bytes of a corpus are not one: a corpus is
sorted by source, and every new source brings its own words. So documents are shuffled, with a fixed
seed, and a sample of n bytes is the start of that order.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

SEPARATOR = "<|endoftext|>"
_LINE = b"\n" + SEPARATOR.encode() + b"\n"
_CUT_BYTES = 4096  # documents of corpora that have no separators
_SEED = 0
SHARED = ("prose100", "code40", "multi40")
NAMES = ("mixed", *SHARED)


def documents(name: str, mixed: Path, shared: Path) -> list[bytes]:
    """The documents of a corpus, in its own order."""
    if name == "mixed":
        shards = json.loads((mixed / "MANIFEST.json").read_bytes())["shards"]
        return [
            document
            for shard in shards
            for document in (mixed / shard["file"]).read_bytes().split(_LINE)
            if document
        ]
    text = lzma.decompress((shared / "bench" / f"{name}.txt.xz").read_bytes())
    return list(cut(text.replace(SEPARATOR.encode(), b"")))


def cut(text: bytes, size: int = _CUT_BYTES) -> Iterator[bytes]:
    """Cut a text at the first line end after every `size` bytes."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + size) + 1 or len(text)
        yield text[start:end]
        start = end


def shuffled(whole: Sequence[bytes]) -> list[bytes]:
    """The documents in random order, the same every time."""
    order = list(whole)
    random.Random(_SEED).shuffle(order)
    return order


def sample(order: Sequence[bytes], size: int, start: int = 0) -> list[bytes]:
    """The documents that begin in `size` bytes of the order, from `start` on."""
    taken, position = [], 0
    for document in order:
        if start <= position < start + size:
            taken.append(document)
        position += len(document)
    return taken


def cipher(number: int) -> bytes:
    """A table for `bytes.translate` that exchanges ASCII letters, in both cases alike.

    Gives a text of the same shape with other words. Cipher 0 changes nothing.
    """
    letters = list(range(26))
    if number:
        random.Random(number).shuffle(letters)
    table = bytearray(range(256))
    for letter, other in enumerate(letters):
        table[65 + letter], table[97 + letter] = 65 + other, 97 + other
    return bytes(table)


def digest(whole: Iterable[bytes]) -> str:
    """The SHA-256 of all documents in order, each with its separator."""
    found = hashlib.sha256()
    for document in whole:
        found.update(document + _LINE)
    return found.hexdigest()


def write_slices(whole: Sequence[bytes], folder: Path, size: int) -> list[Path]:
    """Write consecutive documents to files of at least `size` bytes; the last may be smaller."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    start = 0
    while start < len(whole):
        end, total = start, 0
        while end < len(whole) and total < size:
            total += len(whole[end]) + len(_LINE)
            end += 1
        path = folder / f"slice-{len(paths):04}.txt"
        with path.open("wb") as file:
            file.writelines(document + _LINE for document in whole[start:end])
        paths.append(path)
        start = end
    return paths
