"""Find the files of a corpus: resolve paths and globs, walk folders, filter by extension."""

from __future__ import annotations

import glob
import os
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from byteweld._files import COMPRESSED_SUFFIXES, read_regular
from byteweld.corpus._datasets import DATASET_MARKS, MAX_BYTES, dataset_files
from byteweld.corpus._remote import RemoteFile, base_name, describe, find_remote, is_remote
from byteweld.errors import CorpusError

# Files with columns, which pyarrow opens.
TABLE_EXTENSIONS = (".parquet", ".arrow", ".feather", ".ipc")
# The files that are read in a folder, unless `ext` or the recipe says otherwise.
FOLDER_EXTENSIONS = (
    *(".svg", ".txt", ".xml", ".html", ".md"),
    *(".json", ".jsonl", ".ndjson", ".warc", ".wet"),
    *TABLE_EXTENSIONS,
)
# JSON lines, and compressed files that are read with a dictionary of up to hundreds of megabytes.
RECORD_EXTENSIONS = (".jsonl", ".ndjson")
DICTIONARY_SUFFIXES = (".zst", ".xz")
_GLOB_CHARACTERS = frozenset("*?[")
# Longer strings cannot be paths, and the file system would refuse them with a raw OSError.
_MAX_PATH_BYTES = 4096
_MAX_NAME_BYTES = 255

Source = str | os.PathLike[str]
File = Path | str  # a str is the URL of a remote file


def extensions(ext: str | Sequence[str] | None) -> frozenset[str]:
    """Return the extensions of the files to read in folders; empty for all files."""
    if ext is None:
        return frozenset(FOLDER_EXTENSIONS)
    names = ext.split(",") if isinstance(ext, str) else list(ext)
    names = [name.strip().lower() for name in names if name.strip()]
    if "*" in names:
        return frozenset()
    return frozenset(name if name.startswith(".") else f".{name}" for name in names)


def find_files(
    sources: Iterable[Source], wanted: frozenset[str], without: Source | None
) -> tuple[list[File], Counter[str]]:
    """Return the files of all sources, and the number of skipped files by extension."""
    skipped: Counter[str] = Counter()
    files: list[File] = []
    for source in sources:
        files.extend(_resolve(source, wanted, skipped))
    return files if without is None else _outside(files, without), skipped


def file_size(file: File) -> int:
    """Return the size of a file in bytes; 0 if it cannot be read, or a server does not tell."""
    try:
        if isinstance(file, str):
            return describe(file).size or 0
        return os.stat(file).st_size  # noqa: PTH116 (there may be millions)
    except OSError:
        return 0


def file_state(file: File) -> tuple[int | None, int | str | None]:
    """Return the size of a file, and what changes when it is modified; None where not known."""
    if isinstance(file, str):
        found = describe(file)
        return found.size, found.version
    try:
        status = os.stat(file)  # noqa: PTH116 (there may be millions)
    except OSError:
        return None, None
    if not stat.S_ISREG(status.st_mode):  # a pipe has neither
        return None, None
    return status.st_size, status.st_mtime_ns


def file_name(file: File) -> str:
    """Return the last part of a path or URL."""
    return base_name(file) if isinstance(file, str) else os.path.basename(file)  # noqa: PTH119 (there may be millions)


def _resolve(source: Source, wanted: frozenset[str], skipped: Counter[str]) -> Iterable[File]:
    if is_remote(source) and not os.path.lexists(source):
        return _find_remote(os.fspath(source), wanted, skipped)
    text = os.fspath(source)
    if not text:
        raise FileNotFoundError("'': no such file or folder; the name is empty")
    if not _can_be_path(text):
        shown = repr(text if len(text) <= 60 else text[:57] + "...")
        raise FileNotFoundError(
            f"{shown}: no such file or folder; this looks like text, not a path"
        )
    path = Path(source)
    if path.is_dir():
        return _walk(path, wanted, skipped)
    if path.exists():
        _refuse_tokenizer(path)
        return [path]
    if _GLOB_CHARACTERS.intersection(text):
        found = sorted(glob.glob(text, recursive=True), key=os.fsencode)  # noqa: PTH207 (absolute too)
        files = [Path(name) for name in found if Path(name).is_file()]
        if files:
            return files
        raise FileNotFoundError(f"no file matches {text!r}")
    if path.is_symlink():
        target = os.fspath(path.readlink())
        raise FileNotFoundError(f"{text}: the link points to {target!r}, which does not exist")
    raise FileNotFoundError(f"{text}: no such file or folder")


def _refuse_tokenizer(path: Path) -> None:
    """Raise if a file that is named, rather than found in a folder, is a tokenizer."""
    if not path.is_file() or extension_of(path.name) in (*RECORD_EXTENSIONS, *TABLE_EXTENSIONS):
        return  # a pipe can be read only once
    from byteweld.formats import recognized  # formats that cannot be meant are not imported

    found = recognized(path)
    if found is not None:
        raise CorpusError(
            f"this is a tokenizer (format {found}), not text; to read it as text nevertheless, "
            "pass its content: on standard input (-), or as documents=[...]",
            path=os.fspath(path),
        )


def _can_be_path(text: str) -> bool:
    try:
        path = os.fsencode(text)
    except UnicodeEncodeError:  # a lone surrogate
        return False
    longest = max(map(len, path.split(os.fsencode(os.sep))))
    if b"\0" in path or longest > _MAX_NAME_BYTES or len(path) >= _MAX_PATH_BYTES:
        return False
    return b"\n" not in path or os.path.lexists(path)


def _find_remote(url: str, wanted: frozenset[str], skipped: Counter[str]) -> list[RemoteFile]:
    def is_wanted(name: str) -> bool:
        return not wanted or extension_of(name) in wanted

    return find_remote(url, is_wanted, skipped, extension_of)


def _outside(files: list[File], folder: Source) -> list[File]:
    """Return the files that are not inside a folder, however the paths are spelled."""
    real = os.path.realpath(folder)
    is_inside: dict[str, bool] = {}
    found: list[File] = []
    for file in files:
        if isinstance(file, str):
            found.append(file)
            continue
        parent = os.path.dirname(file)  # noqa: PTH120 (there may be millions)
        if parent not in is_inside:
            real_parent = os.path.realpath(parent)
            below = real_parent.startswith(real.rstrip(os.sep) + os.sep)
            is_inside[parent] = real_parent == real or below
        if not is_inside[parent]:
            found.append(file)
    return found


def _walk(folder: Path, wanted: frozenset[str], skipped: Counter[str]) -> list[Path]:
    """Return the files below a folder. An unreadable folder is an error, not an empty folder."""
    found: list[str] = []
    places: dict[str, bytes] = {}  # what a dataset's files are sorted by, instead of their names
    pending = [os.fspath(folder)]
    while pending:
        parent = pending.pop()
        folders: list[str] = []
        files: list[str] = []
        others: Counter[str] = Counter()
        is_dataset = False
        with os.scandir(parent) as entries:
            for entry in entries:
                is_dataset |= entry.name in DATASET_MARKS
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif _has_content(entry):
                    extension = extension_of(entry.name)
                    if not wanted or extension in wanted:
                        files.append(entry.path)
                    else:
                        others[extension] += 1
        names = _dataset(parent) if is_dataset else None
        if names is None:
            pending += folders
            skipped.update(others)
        else:
            files = [os.path.join(parent, name) for name in names]  # noqa: PTH118
            place = os.fsencode(os.path.join(parent, ""))  # noqa: PTH118
            places |= {file: place + b"%09d" % at for at, file in enumerate(files)}
        found += files
    found.sort(key=lambda file: places.get(file) or os.fsencode(file))
    return [Path(name) for name in found]


def _dataset(folder: str) -> list[str] | None:
    """Return the files of a dataset in their order; None if the folder is not one."""

    def read(name: str) -> bytes:
        return read_regular(os.path.join(folder, name), MAX_BYTES)  # noqa: PTH118

    return dataset_files(folder, os.listdir(folder), read)  # noqa: PTH208 (names)


def _has_content(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a regular file that is not empty (and has not vanished)."""
    try:
        state = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(state.st_mode) and state.st_size > 0


def extension_of(name: str) -> str:
    """Return the extension of the uncompressed file: `.jsonl` for `a.jsonl.zst`."""
    lowered = name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        lowered = lowered.removesuffix(suffix)
    dot = lowered.rfind(".")
    return lowered[dot:] if 0 < dot < len(lowered) - 1 else ""
