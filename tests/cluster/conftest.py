"""A Ray cluster for the tests of a module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byteweld
from byteweld.jobs import open_runner

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    """Ray, connected to a cluster of its own that `runner="ray"` uses; it asks for a token."""
    ray = pytest.importorskip("ray", reason="no ray; run `make test-cluster`")
    ray.shutdown()  # the cluster of a fixture that failed, whose token is not known here
    folders = [Path(byteweld.__file__).parents[1], TESTS.parent]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, folders)))
        patch.delenv("RAY_ADDRESS", raising=False)
        with open_runner("ray"):
            yield ray
