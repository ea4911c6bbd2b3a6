"""A corpus, a tokenizer, and what a dataset of them must be, computed document by document."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import byteweld

EOT = "<|endoftext|>"
WORDS = ["the", "cat", "sat", "naïve", "mat", "日本語", "12345", "don't", "\n\n", "  ", EOT, "zzz"]


def make_tokenizer() -> byteweld.Tokenizer:
    """Train a small tokenizer with an end-of-text and a bos token."""
    text = " ".join(WORDS[:8]) * 50
    return byteweld.train(documents=[text], vocab_size=320, eos=EOT, bos="<|start|>")


def make_documents(count: int, seed: int = 0, max_words: int = 60) -> list[str]:
    """Return documents of random words, some of them empty."""
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(WORDS) for _ in range(draw.randrange(max_words))) for _ in range(count)
    ]


def write_jsonl(path: Path, documents: Iterable[str]) -> Path:
    """Write documents as JSON lines."""
    lines = (json.dumps({"text": text}, ensure_ascii=False) for text in documents)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_corpus(folder: Path, files: int, documents: int) -> Path:
    """Make a folder of files, each with the given number of documents."""
    folder.mkdir()
    for number in range(files):
        write_jsonl(folder / f"{number}.jsonl", make_documents(documents, number))
    return folder


def encoded(
    tok: byteweld.Tokenizer, documents: Sequence[str], eot: str = "append", *, bos: bool = False
) -> list[list[int]]:
    """Return the ids of each document, special tokens as text, with eot and bos."""
    mark = [tok.eot_token]
    start = [tok.vocab.roles["bos"]] if bos else []
    return [
        (mark if eot == "prepend" else [])
        + start
        + tok.encode_ordinary(text)
        + (mark if eot == "append" else [])
        for text in documents
    ]


def flat(path: Path, dtype: str = "uint16", header_bytes: int = 0) -> list[int]:
    """Read a file of ids."""
    return np.frombuffer(path.read_bytes()[header_bytes:], np.dtype(dtype)).tolist()


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a folder, by its relative name."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
