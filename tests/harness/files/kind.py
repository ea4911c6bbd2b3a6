"""What a kind of file is, and the changes and readers that several kinds share.

`make(rng)` draws a case, a dict of file name to content. `run(files, folder, number)` writes it,
reads it and uses it; returns whether it was accepted, and raises what the reader raises.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import byteweld
from tests.harness.files import mutate
from tests.harness.files.bases import Files
from tests.harness.files.use import attempt, check_plain_reader, use

THOROUGH_EVERY = 32  # cases; the others are used briefly

# What a change may raise where an earlier one broke the file.
BROKEN = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    struct.error,
    OverflowError,
)

Change = Callable[[Random, Files, Files], Files]  # a case, and another to take parts from
Weighted = tuple[float, Change]
Finish = Callable[[Random, Files], Files]


@dataclass(frozen=True)
class Kind:
    """A kind of file. The first of `changes` that a draw selects is applied, several times."""

    name: str
    bases: Callable[[], Sequence[Files]]
    changes: Sequence[Weighted]
    run: Callable[[Files, Path, int], bool]
    finish: Finish = field(default=lambda rng, files: files)

    def make(self, rng: Random, *, times: int | None = None) -> Files:
        """Draw a case."""
        every = self._bases
        files = dict(rng.choice(every))
        other = rng.choice(every)
        weights = [weight for weight, _ in self.changes]
        drawn = rng.choice((1, 1, 1, 2, 2, 3))
        for _ in range(drawn if times is None else times):
            (change,) = rng.choices([change for _, change in self.changes], weights)
            try:
                files = change(rng, files, other)
            except BROKEN:
                files = change_bytes(rng, files, other)
        return self.finish(rng, files)

    @property
    def _bases(self) -> Sequence[Files]:
        return _made(self.bases)


@cache
def _made(make: Callable[[], Sequence[Files]]) -> Sequence[Files]:
    found = list(make())
    if not found:
        raise ValueError("a kind without a base")
    return found


def write(files: Files, folder: Path) -> None:
    """Make a folder hold exactly these files."""
    wanted = {folder / name for name in files}
    for path in list(folder.rglob("*")):
        if path not in wanted and not path.is_dir():
            path.unlink()
    for name, data in files.items():
        path = folder / name
        if "/" in name:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


# ---------------------------------------------------------------------- changes of any file


def change_bytes(rng: Random, files: Files, other: Files) -> Files:
    name = rng.choice(sorted(files))
    return files | {name: mutate.change_bytes(rng, files[name], other.get(name, b""))}


def lose_file(rng: Random, files: Files, other: Files) -> Files:
    name = rng.choice(sorted(files))
    if len(files) == 1 or rng.random() < 0.5:
        return files | {name: b""}
    return {key: data for key, data in files.items() if key != name}


def swap_file(rng: Random, files: Files, other: Files) -> Files:
    """Take a file of another vocabulary."""
    name = rng.choice(sorted(files))
    return files | {name: other.get(name, files[name])}


def on_json(name: str, edit: Callable[[Random, Any], Any]) -> Change:
    """Change the parsed content of a file."""

    def change(rng: Random, files: Files, other: Files) -> Files:
        return files | {name: mutate.dump(edit(rng, mutate.load(files[name])))}

    return change


def json_changes(name: str, *edits: Callable[[Random, Any], Any]) -> list[Weighted]:
    """Changes of bytes and of values, and those that keep a document likely valid."""
    own = [(5.0 / len(edits), on_json(name, edit)) for edit in edits]
    tree = partial(mutate.change_json, deep=0.8)
    return [(2.0, change_bytes), (4.0, on_json(name, tree)), (0.1, lose_file), *own]


# ---------------------------------------------------------------------- loading a vocabulary


def load_and_use(
    files: Files, folder: Path, number: int, *, target: str, format: str, options: Any = None
) -> bool:
    write(files, folder)
    options = options or {}
    tok = byteweld.load(folder / target, format=format, **options)
    check_plain_reader(tok.vocab, folder / target, format, options)
    thorough = number % THOROUGH_EVERY == 0
    if thorough:
        attempt(lambda: byteweld.load(folder / target, **options))  # recognized
    use(tok, folder / "saved", number=number, thorough=thorough)
    return True
