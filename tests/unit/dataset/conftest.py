"""Shared by tests of datasets: a small tokenizer, and a corpus of three files."""

from __future__ import annotations

from pathlib import Path

import pytest

import byteweld
from tests.helpers.tokenized import make_tokenizer, write_corpus


@pytest.fixture(scope="session")
def tok() -> byteweld.Tokenizer:
    return make_tokenizer()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus", 3, 70)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a dataset is made."""
    return tmp_path / "out"
