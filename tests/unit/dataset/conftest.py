"""Shared by tests of datasets: a small tokenizer, and a corpus of three files."""

from __future__ import annotations

from pathlib import Path

import pytest

import byteweld
from tests.helpers.tokenized import make_documents, make_tokenizer, write_jsonl


@pytest.fixture(scope="session")
def tok() -> byteweld.Tokenizer:
    return make_tokenizer()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(3):
        write_jsonl(folder / f"{number}.jsonl", make_documents(70, number))
    return folder
