"""Shared by unit tests: a test without a network."""

from __future__ import annotations

import socket

import pytest


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every use of the network fail."""

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("something went to the network")

    monkeypatch.setattr(socket, "socket", refuse)
