"""Fixtures for tests of the command line: run it in this process, or as a separate program."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import byteweld
from byteweld.cli import main


class Result(NamedTuple):
    """The outcome of a run; times in messages are replaced by TIME."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


Run = Callable[..., Result]


def _normalized(err: bytes) -> str:
    said = re.sub(r"\(\d+(\.\d)? m?s\)", "(TIME)", err.decode())
    return re.sub(r"^total .*$", "total TIME", said, flags=re.MULTILINE)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every test starts in an empty folder and with default colors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process, which is fast."""

    def call(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsysbinary.readouterr()
        code = main(list(arguments))
        seen = capsysbinary.readouterr()
        return Result(code, seen.out, _normalized(seen.err))

    return call


@pytest.fixture
def program() -> Run:
    """Run the real program in a separate process."""

    def call(*arguments: str, stdin: bytes = b"", **environment: str) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "byteweld", *arguments],
            input=stdin,
            capture_output=True,
            env=os.environ | environment,
            timeout=120,
            check=False,
        )
        return Result(done.returncode, done.stdout, _normalized(done.stderr))

    return call


@pytest.fixture(scope="session")
def tiny() -> byteweld.Tokenizer:
    """A small tokenizer: `low`, `lower`, `newest` and `widest`, pattern gpt2, one special token."""
    return byteweld.train(
        iter(["low low low low low lower lower newest newest newest widest widest"]),
        vocab_size=272,
        recipe="from-scratch",
        special_tokens=["<|endoftext|>"],
    )


@pytest.fixture
def saved(tiny: byteweld.Tokenizer, tmp_path: Path) -> Path:
    """The small tokenizer as tokenizer.json in the current folder."""
    byteweld.Tokenizer(tiny.vocab).save(tmp_path / "tokenizer.json")
    return tmp_path / "tokenizer.json"


@pytest.fixture
def ck_corpus(tmp_path: Path) -> Path:
    """The corpus of the ck seed's worked check."""
    folder = tmp_path / "corpus"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"ab ab ab\n")
    (folder / "sub" / "b.md").write_bytes("aaa bà\n".encode())
    return folder
