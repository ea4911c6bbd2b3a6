"""The harness for kills and hostile file systems: a sample passes, and planted holes are found."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from byteweld import _saves, formats
from tests.harness import kill
from tests.harness.run import Run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the harness forks")


@pytest.fixture(scope="module")
def writer() -> kill.Writer:
    pair = kill._tokenizers("modern")
    return next(kill._saver("tiktoken", "a.tiktoken", "tiktoken", pair))


def run(writer: kill.Writer, most: int) -> Run:
    made = Run("kill", 60, 0)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # for a reader without rights
        kill.run_all(made, [writer], Path(folder), 1, most)
    return made


def test_a_rank_file_and_its_sidecar_survive_every_kill(writer: kill.Writer) -> None:
    made = run(writer, 8)
    assert made.findings == []
    assert made.executions == {writer.name: 8, "random kills": 1}


def test_files_written_one_after_the_other_are_found(
    writer: kill.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_by_one(files: Mapping[Path, bytes], *, overwrite: bool, merged: object) -> None:
        for path, data in files.items():
            _saves.write_atomic(path, data, overwrite=overwrite)

    monkeypatch.setattr(formats, "write_together", one_by_one)
    made = run(writer, 8)
    assert any("the sidecar belongs to a file" in found for found in made.findings)
