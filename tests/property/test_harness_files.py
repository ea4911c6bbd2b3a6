"""The harness for kills and hostile file systems: a sample passes, and planted holes are found."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from byteweld import _saves
from byteweld.formats import tiktoken_ranks
from tests.harness import hostile_fs, kill
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
    def one_by_one(files: Mapping[Path, bytes], *, overwrite: bool) -> None:
        for path, data in files.items():
            _saves.write_atomic(path, data, overwrite=overwrite)

    monkeypatch.setattr(tiktoken_ranks, "write_together", one_by_one)
    made = run(writer, 8)
    assert any("the sidecar belongs to a file" in found for found in made.findings)


def test_temporaries_that_stay_are_found(
    writer: kill.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(folder: Path, targets: Collection[str] | None = None) -> None:
        pass

    monkeypatch.setattr(_saves, "remove_stale", keep)
    made = run(writer, 8)
    assert any("the next save leaves" in found for found in made.findings)


def test_hostile_cases_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile_fs, "SECONDS", 5.0)

    def wrong(work: object, **options: object) -> str | None:
        return hostile_fs.check(hostile_fs.Case("x", work, **options), tmp_path)

    def fail(error: Exception) -> None:
        raise error

    assert wrong(lambda folder: None, may_succeed=True) is None
    assert wrong(lambda folder: fail(OSError("typed"))) is None
    assert wrong(lambda folder: None) == "succeeds, and should not"
    assert wrong(lambda folder: fail(KeyError("x"))) == "UNTYPED KeyError: 'x'"
    assert wrong(lambda folder: os.kill(os.getpid(), signal.SIGKILL)) == "dies with -9"
    assert wrong(lambda folder: b"x" * (4 << 30)) == "UNTYPED MemoryError: "
    assert "and changes ['y']" in str(wrong(lambda folder: ((folder / "y").touch(), _raise())))
    left = wrong(lambda folder: (folder / ".byteweld-x").touch(), may_succeed=True)
    assert left == "leaves ['.byteweld-x']"
    monkeypatch.setattr(
        hostile_fs, "SECONDS", 0.3
    )  # last: a busy machine may need it for the others
    assert wrong(lambda folder: (folder / "x").read_bytes(), prepare=_pipe) == "hangs"


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "x")


def _raise() -> None:
    raise OSError
