"""Sources of corpus text: files, Python's standard library, generators, Debian packages.

A Source yields raw text in blocks; inputs.py divides it into documents. A tool next to the shared
data makes the large mixed corpus, once, from packages that it downloads.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import itertools
import json
import lzma
import platform
import random
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drawings

STDLIB = "stdlib"

_BLOCK_BYTES = 1 << 22
_SEED = 7
_SCRIPTS = {
    "Chinese": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "Japanese": "\u3040-\u30ff",
    "Thai": "\u0e00-\u0e7f",
    "Khmer": "\u1780-\u17ff",
}
_GENERATORS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "drawings": drawings.drawings,
}


class UnavailableError(Exception):
    """A corpus is not available here; the message says why and what to do."""


@dataclass(frozen=True)
class Source:
    """Raw text: `blocks` yields its bytes from the start, `identity` changes when they change."""

    name: str
    identity: str
    blocks: Callable[[], Iterator[bytes]]

    def head(self, size: int) -> Iterator[bytes]:
        """Yield the first `size` bytes, or fewer if the text is shorter."""
        blocks = self.blocks()
        while size > 0 and (block := next(blocks, None)) is not None:
            yield block[:size]
            size -= len(block)


def stdlib() -> Source:
    """Python's standard library sources, sorted by path, without site-packages."""
    return Source(STDLIB, platform.python_version(), _stdlib_files)


def from_file(name: str, path: Path) -> Source:
    """A text file, plain or compressed with xz or gzip."""
    return Source(name, file_sha256(path), lambda: _file_blocks(path))


def from_files(name: str, paths: Sequence[Path]) -> Source:
    """Text files, concatenated."""
    identity = " ".join(file_sha256(path) for path in paths)
    return Source(name, identity, lambda: itertools.chain.from_iterable(map(_file_blocks, paths)))


def lines_of_scripts(source: Source, scripts: Sequence[str]) -> Source:
    """The lines of a text that are mostly in these scripts."""
    letters = re.compile(f"[{''.join(_SCRIPTS[script] for script in scripts)}]")

    def blocks() -> Iterator[bytes]:
        rest = b""
        for block in source.blocks():
            *lines, rest = (rest + block).split(b"\n")
            mine = [line for line in lines if _is_mostly(line.decode("utf-8", "replace"), letters)]
            yield b"".join(line + b"\n" for line in mine)

    return Source(source.name, f"{source.identity} {' '.join(scripts)}", blocks)


def _is_mostly(line: str, letters: re.Pattern[str]) -> bool:
    return 2 * len(letters.findall(line)) > len(line.strip()) > 0


def from_generator(name: str, which: str) -> Source:
    """A generator in this folder, with its default seed. Its source code is its identity."""
    if which not in _GENERATORS:
        raise ValueError(f"unknown generator {which!r}; expected one of {', '.join(_GENERATORS)}")
    generator = _GENERATORS[which]
    code = Path(__file__).with_name(f"{which}.py")
    return Source(name, file_sha256(code), generator)


def from_letters(name: str, letters: str) -> Source:
    """Random letters, without spaces or newlines."""

    def blocks() -> Iterator[bytes]:
        source = random.Random(_SEED)
        while True:
            yield bytes(source.choices(letters.encode(), k=_BLOCK_BYTES))

    return Source(name, letters, blocks)


def from_big_corpus(name: str, folder: Path) -> Source:
    """The shards that `make_big_corpus.py` wrote into a folder, concatenated."""
    shards = json.loads((folder / "MANIFEST.json").read_bytes())["shards"]
    identity = " ".join(shard["sha256"] for shard in shards)
    files = [folder / shard["file"] for shard in shards]

    def blocks() -> Iterator[bytes]:
        return itertools.chain.from_iterable(map(_file_blocks, files))

    return Source(name, identity, blocks)


def big_corpus_is_made(folder: Path) -> bool:
    return (folder / "MANIFEST.json").is_file()


def make_big_corpus(folder: Path, tool: Path, megabytes: int) -> None:
    """Make the mixed corpus with the tool next to the shared data, unless it exists."""
    if big_corpus_is_made(folder):
        return
    if not tool.is_file():
        raise UnavailableError(
            f"the mixed corpus needs {tool}, which does not exist; "
            "pass --mixed FOLDER to use one made elsewhere"
        )
    programs = [name for name in ("apt-get", "apt-cache", "dpkg-deb") if not shutil.which(name)]
    if programs:
        raise UnavailableError(
            f"the mixed corpus is made from Debian packages, which needs {', '.join(programs)}; "
            "pass --mixed FOLDER to use one made elsewhere"
        )
    print(
        f"making the mixed corpus of {megabytes} MB in {folder}: downloads about 0.5 GB and takes "
        "about five minutes",
        file=sys.stderr,
        flush=True,
    )
    part = folder.with_name(folder.name + ".part")
    command = [sys.executable, str(tool), str(part), "--mb", str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        messages = (done.stdout + done.stderr).strip().splitlines()
        raise UnavailableError(
            f"the mixed corpus could not be made ({messages[-1] if messages else 'no message'}); "
            f"run `apt-get update` and try again, or pass --mixed FOLDER ({part} may be deleted)"
        )
    part.rename(folder)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _file_blocks(path: Path) -> Iterator[bytes]:
    openers: Mapping[str, Callable[[Path], Any]] = {".xz": lzma.open, ".gz": gzip.open}
    opener = openers.get(path.suffix, functools.partial(Path.open, mode="rb"))
    with opener(path) as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _stdlib_files() -> Iterator[bytes]:
    root = Path(sysconfig.get_paths()["stdlib"])
    for file in sorted(root.rglob("*.py")):
        if {"site-packages", "dist-packages"}.isdisjoint(file.relative_to(root).parts):
            if data := file.read_bytes():
                yield data
