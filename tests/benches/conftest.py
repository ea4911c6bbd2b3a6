"""Runs of benches/run.py on a tiny corpus."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.bench_runs import BENCHES, TEXT, Run


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Run]:
    """Run benches/run.py on a tiny corpus, with stub engines in addition to the real ones."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "tiny.txt").write_text(TEXT)
    engines = tmp_path / "engines"
    engines.mkdir()

    def run(definitions: str, *arguments: str, **stubs: str) -> Run:
        (tmp_path / "definitions.toml").write_text(definitions)
        for name, source in stubs.items():
            (engines / f"{name}.py").write_text(source)
        paths = {
            "definitions": tmp_path / "definitions.toml",
            "engines": engines,
            "record": tmp_path / "record",
            "cache": tmp_path / "cache",
            "shared": shared,
        }
        options = [f"--{name}={path}" for name, path in paths.items()]
        done = subprocess.run(
            [sys.executable, str(BENCHES / "run.py"), *options, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Run(done.returncode, done.stdout, done.stderr, tmp_path / "record")

    return run
