"""Paths, folders and globs -> files, and how to read documents from them; the engine reads.

A folder is taken recursively, sorted by the bytes of the path; symbolic links and empty files in it
are passed over. Text files are one document each unless lines or a separator are asked for;
`.jsonl` and `.ndjson` files are one a line. gzip, zstd and xz are known by their first bytes.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from byteweld._native import Documents
from byteweld.errors import CorpusError

# What a folder is searched for unless `ext` or the recipe says otherwise.
FOLDER_EXTENSIONS = (".svg", ".txt", ".xml", ".html", ".md", ".json", ".jsonl", ".ndjson")
_COMPRESSED = (".gz", ".zst", ".xz")
_GLOB_CHARACTERS = frozenset("*?[")

OnError = Literal["fail", "skip", "replace"]
Unit = Literal["file", "line"]
Source = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Files, and how to read documents from them."""

    files: tuple[Path, ...]
    unit: Unit = "file"
    separator: str | None = None
    field: str = "text"
    on_error: OnError = "fail"

    @property
    def total_bytes(self) -> int:
        """How many bytes the files have on disk; one that is gone has none."""
        return sum(map(_size, self.files))

    def documents(self) -> Iterator[bytes]:
        """Read the documents, one after another."""
        separator = None if self.separator is None else self.separator.encode()
        return iter(
            Documents(
                self.files,
                unit=self.unit,
                separator=separator,
                field=self.field,
                on_error=self.on_error,
            )
        )


def open_corpus(
    sources: Source | Sequence[Source],
    *,
    ext: str | Sequence[str] | None = None,
    unit: Unit = "file",
    separator: str | None = None,
    field: str = "text",
    on_error: OnError = "fail",
    without: Source | None = None,
) -> Corpus:
    """Resolve paths, folders and globs to a Corpus. What names nothing is an error.

    `without`: a folder that is no part of the corpus, though it may lie in one that is.
    """
    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    extensions = _extensions(ext)
    files: list[Path] = []
    for source in sources:
        files.extend(_resolve(source, extensions))
    if without is not None:
        files = _outside(files, without)
    if not files:
        where = ", ".join(os.fspath(source) for source in sources) or "an empty list"
        which = f" with extension {', '.join(sorted(extensions))}" if extensions else ""
        raise CorpusError(
            f"no files in {where}{which}; name other extensions with ext (--ext), '*' for all"
        )
    return Corpus(
        files=tuple(files), unit=unit, separator=separator, field=field, on_error=on_error
    )


def _extensions(ext: str | Sequence[str] | None) -> frozenset[str]:
    """The extensions that a folder is searched for; empty for all."""
    if ext is None:
        return frozenset(FOLDER_EXTENSIONS)
    names = ext.split(",") if isinstance(ext, str) else list(ext)
    names = [name.strip().lower() for name in names if name.strip()]
    if "*" in names:
        return frozenset()
    return frozenset(name if name.startswith(".") else f".{name}" for name in names)


def _resolve(source: Source, extensions: frozenset[str]) -> Iterable[Path]:
    if not os.fspath(source):
        raise FileNotFoundError("'': no such file or folder; the name is empty")
    path = Path(source)
    if path.is_dir():
        return _folder(path, extensions)
    if path.exists():
        return [path]
    text = os.fspath(source)
    if _GLOB_CHARACTERS.intersection(text):
        found = sorted(glob.glob(text, recursive=True), key=os.fsencode)  # noqa: PTH207 (absolute too)
        files = [Path(name) for name in found if Path(name).is_file()]
        if files:
            return files
        raise FileNotFoundError(f"no file matches {text!r}")
    if path.is_symlink():
        target = os.fspath(path.readlink())
        raise FileNotFoundError(f"{text}: the link leads to {target!r}, which is no file")
    raise FileNotFoundError(f"{text}: no such file or folder")


def _outside(files: list[Path], folder: Source) -> list[Path]:
    """Those files that do not lie in a folder or below, however the two are spelt."""
    real = os.path.realpath(folder)
    is_inside: dict[str, bool] = {}
    found: list[Path] = []
    for file in files:
        parent = os.path.dirname(file)  # noqa: PTH120 (there may be millions)
        if parent not in is_inside:
            place = os.path.realpath(parent)
            is_inside[parent] = place == real or place.startswith(real.rstrip(os.sep) + os.sep)
        if not is_inside[parent]:
            found.append(file)
    return found


def _folder(folder: Path, extensions: frozenset[str]) -> list[Path]:
    """The files below a folder. One that cannot be looked into is an error, not nothing."""
    found: list[str] = []
    waiting = [os.fspath(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif (not extensions or _extension(entry.name) in extensions) and _has_text(entry):
                    found.append(entry.path)
    return [Path(name) for name in sorted(found, key=os.fsencode)]


def _has_text(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file with something in it; a link, a pipe or what just vanished is none."""
    try:
        state = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(state.st_mode) and state.st_size > 0


def _size(file: Path) -> int:
    try:
        return os.stat(file).st_size  # noqa: PTH116 (there may be millions)
    except OSError:
        return 0


def _extension(name: str) -> str:
    """`.jsonl` for `a.jsonl.zst`: the extension of what is inside."""
    lowered = name.lower()
    for suffix in _COMPRESSED:
        lowered = lowered.removesuffix(suffix)
    dot = lowered.rfind(".")
    return lowered[dot:] if 0 < dot < len(lowered) - 1 else ""
