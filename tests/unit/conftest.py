"""Shared by unit tests: a test without a network."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every use of the network fail."""

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("something went to the network")

    monkeypatch.setattr(socket, "socket", refuse)


@pytest.fixture(scope="session")
def files(data: Path) -> list[tuple[str, list[bytes]]]:
    """Corpora of the tests as files of lines, each a document."""
    names = ("prose.txt", "code.txt", "many.txt")
    return [(name, (data / name).read_bytes().splitlines(keepends=True)) for name in names]
