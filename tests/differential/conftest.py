"""The vocabularies of ../shared/data: their index, their files, and as a user loads them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import byteweld


@pytest.fixture(scope="session")
def entries(shared):
    index = json.loads((shared / "vocabs" / "index.json").read_bytes())
    return {(entry["kind"], entry["name"]): entry for entry in index["vocabs"]}


@pytest.fixture(scope="session")
def unpacked(shared, entries, tmp_path_factory):
    """Unpack a vocabulary's file by kind and name; returns its entry and the file."""
    folder = tmp_path_factory.mktemp("vocabularies")

    def unpack(kind, name):
        entry = entries[kind, name]
        file = folder / kind / Path(entry["file"]).name.removesuffix(".gz")
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(gzip.decompress((shared / "vocabs" / entry["file"]).read_bytes()))
        return entry, file

    return unpack


@pytest.fixture(scope="session")
def load(unpacked):
    """Load a vocabulary by kind and name."""

    def load_one(kind, name):
        entry, file = unpacked(kind, name)
        options = {}
        if kind == "tiktoken":
            options = {"pattern": entry["pat_str"], "special_tokens": entry["special_tokens"]}
        return byteweld.load(file, **options)

    return load_one
