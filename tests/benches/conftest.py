"""Runs of benches/run.py on a tiny corpus, with stub engines beside the real ones."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plan import NOT_MEASURES, expand

BENCHES = Path(__file__).parents[2] / "benches"
TEXT = "low lower lowest, newer and wider; the lower the newer\n" * 200
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def table(measure: str, engines: list[str], truth: str, **changes: Any) -> str:
    """A file with one definition."""
    keys: dict[str, Any] = {"corpus": "tiny", "megabytes": 0.01, "threads": 1, "clock": "wall"}
    if measure == "train":
        keys |= {"vocab_size": 300, "tie_rule": "smallest-ids"}
    elif measure != "count":
        keys |= {"vocab": "tiny", "clock": "cpu", "shape": "documents", "passes": ["first"]}
    keys |= {"about": "A tiny corpus.", "engines": engines, "truth": truth} | changes
    lines = [f"{key} = {_toml(value)}" for key, value in keys.items() if value is not None]
    head = '[corpora]\ntiny = { file = "tiny.txt" }\n\n[vocabs]\ntiny = "gpt2"\n'
    return "\n".join([head, f"[[{measure}]]", *lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {item}' for key, item in value.items()) + " }"
    return json.dumps(value)


@dataclass
class Run:
    """What a run printed, and the record that it left."""

    status: int
    out: str
    err: str
    folder: Path

    @property
    def rows(self) -> list[dict[str, str]]:
        with self.file("*.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    @property
    def turns(self) -> list[tuple[str, str, str]]:
        return [(row["engine"], row["run"], row["ok"]) for row in self.rows]

    def file(self, pattern: str) -> Path:
        [file] = self.folder.glob(f"*/{pattern}")
        return file


Bench = Callable[..., Run]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Run benches/run.py; stubs are given as sources by name."""
    for name in ("shared", "engines"):
        (tmp_path / name).mkdir()
    (tmp_path / "shared" / "tiny.txt").write_text(TEXT)

    def run(definitions: str, *arguments: str, **stubs: str) -> Run:
        (tmp_path / "definitions.toml").write_text(definitions)
        for name, source in stubs.items():
            (tmp_path / "engines" / f"{name}.py").write_text(source)
        names = ("engines", "record", "cache", "shared")
        options = [f"--{name}={tmp_path / name}" for name in names]
        options.append(f"--definitions={tmp_path / 'definitions.toml'}")
        done = subprocess.run(
            [sys.executable, str(BENCHES / "run.py"), *options, "--repeat=1", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Run(done.returncode, done.stdout, done.stderr, tmp_path / "record")

    return run


@pytest.fixture
def tiny_vocab(tmp_path: Path, bench: Bench) -> None:
    """A published vocabulary called `tiny`, with a special token, for runs with tiktoken."""
    pytest.importorskip("tiktoken")
    tokens = [b"lo", b"low", b"er", b" the", b"the", b"ne"]
    every = [bytes([byte]) for byte in range(256)] + tokens
    ranks = b"".join(base64.b64encode(token) + b" %d\n" % n for n, token in enumerate(every))
    entry = {"name": "tiny", "file": "tiny.tiktoken.gz", "pat_str": GPT2}
    entry |= {"sha256": hashlib.sha256(ranks).hexdigest(), "special_tokens": {"<|end|>": 300}}
    folder = tmp_path / "shared" / "vocabs"
    folder.mkdir()
    (folder / "tiny.tiktoken.gz").write_bytes(gzip.compress(ranks))
    (folder / "index.json").write_text(json.dumps({"vocabs": [entry]}))


def read_definitions(name: str) -> dict[str, Any]:
    return tomllib.loads((BENCHES / name).read_text())


def all_definitions(name: str, *, quick: bool = False) -> list[dict[str, Any]]:
    """Every combination of the axes of a definitions file."""
    definitions = read_definitions(name)
    measures = [measure for measure in definitions if measure not in NOT_MEASURES]
    return list(expand(definitions, measures, quick=quick))
