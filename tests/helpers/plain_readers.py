"""Vocabularies without the engine's table, which files of the usual kind are read into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from byteweld import _native
from byteweld.formats import hf_tokenizer_json, tiktoken_ranks


class _Sparse:
    """A tokenizer.json whose tokens and merges are not a table, as if its ids were sparse."""

    table = None

    def __init__(self, file: _native.TokenizerJson) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def sparse(self) -> object:
        table = self._file.table
        return self._file.sparse() if table is None else (table.tokens(), table.merges())


@contextmanager
def plain_readers() -> Iterator[None]:
    """Within this, rank files and tokenizer.json files are not read into a table."""
    parse = hf_tokenizer_json._parse
    with (
        patch.object(hf_tokenizer_json, "_parse", lambda *given: _Sparse(parse(*given))),
        patch.object(tiktoken_ranks, "read_ranks", lambda data: None),
    ):
        yield
