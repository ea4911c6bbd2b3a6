"""Datasets of a small tokenizer, made from lists of ids through the real formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byteweld import Tokenizer
from byteweld.dataset._manifest import Manifest
from byteweld.dataset._shard import Split
from byteweld.dataset.formats import FORMATS
from tests.helpers.shards import Documents, write_dataset

BYTES = Tokenizer.from_merges(
    {byte: bytes([byte]) for byte in range(256)} | {256: b"ab"},
    [(b"a", b"b")],
    special_tokens=["<|endoftext|>"],
)
EOT = BYTES.eot_token


def with_eot(*texts: str) -> list[list[int]]:
    """Encode strings as documents that end with the end-of-text token."""
    return [[*BYTES.encode_ordinary(text), EOT] for text in texts]


def make_dataset(
    folder: Path,
    shards: Sequence[Documents] = (),
    validation: Sequence[Documents] = (),
    *,
    format: str = "flat",
    **changes: Any,
) -> Manifest:
    """Write a dataset of `BYTES`; other options are those of `write_dataset`."""
    splits: dict[Split, Sequence[Documents]] = {"train": shards}
    if validation:
        splits["validation"] = validation
    tokenizer = {
        "fingerprint": BYTES.vocab.fingerprint,
        "n_vocab": BYTES.n_vocab,
        "eot": {"text": "<|endoftext|>", "id": EOT},
    }
    changes = {"tokenizer": tokenizer, "options": {"eot": "append", "pack": None}} | changes
    pack = dict(changes["options"]).get("pack")
    manifest = write_dataset(
        FORMATS[format], folder, splits, n_vocab=BYTES.n_vocab, pack=pack, **changes
    )
    manifest.save(folder)
    return manifest
