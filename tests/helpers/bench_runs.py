"""Shared by the tests of benches/: tiny definitions, and the output and record of a run."""

from __future__ import annotations

import csv
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plan import NOT_MEASURES, expand

BENCHES = Path(__file__).parents[2] / "benches"


TEXT = "low lower lowest, newer and wider; the lower the newer\n" * 200


HEAD = """
[corpora]
tiny = { file = "tiny.txt" }

[vocabs]
tiny = "gpt2"
"""


COUNT = """
[[count]]
corpus = "tiny"
megabytes = 0.01
threads = 1
clock = "wall"
about = "A tiny corpus."
"""


TRAIN = """
[[train]]
corpus = "tiny"
megabytes = 0.01
vocab_size = 300
tie_rule = "smallest-ids"
threads = 1
clock = "wall"
about = "A tiny corpus."
"""


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

    def file(self, pattern: str) -> Path:
        [file] = self.folder.glob(f"*/{pattern}")
        return file


def train(engines: list[str], truth: str) -> str:
    return f"{HEAD}{TRAIN}engines = {json.dumps(engines)}\ntruth = {json.dumps(truth)}\n"


def read_definitions(name: str) -> dict[str, Any]:
    return tomllib.loads((BENCHES / name).read_text())


def all_definitions(name: str) -> list[dict[str, Any]]:
    """Every combination of the axes of a definitions file."""
    definitions = read_definitions(name)
    measures = [measure for measure in definitions if measure not in NOT_MEASURES]
    return list(expand(definitions, measures, quick=False))
