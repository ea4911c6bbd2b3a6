"""What a verb writes: which files, whether they are free, and all of them or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import byteweld
from byteweld import formats
from byteweld._files import check_file
from byteweld.cli import _errors
from byteweld.formats._sidecar import sidecar_path
from byteweld.training import report_path
from byteweld.vocab import Vocabulary


class Target(NamedTuple):
    """A file or folder to write a tokenizer to."""

    path: str
    format: str | None


def check(vocab: Vocabulary, target: Target, *, force: bool) -> list[Path]:
    """Refuse what the format cannot hold and, unless `force`, files that exist.

    Returns the files that will be written.
    """
    if not target.path:
        raise _errors.UsageError("the path to write to is empty; pass one, such as tokenizer.json")
    formats.check(vocab, target.path, target.format)
    path = named_path(target)
    files = formats.files(vocab, path, target.format)
    # `load` would read an old sidecar with the new file.
    check_free([*files, sidecar_path(path)], force=force)
    return files


def named_path(target: Target) -> Path:
    """Return the path, resolved if it has no name of its own, such as `.`."""
    path = Path(target.path)
    return path.resolve() if path.name in ("", "..") else path


def report_place(target: Target) -> Path:
    """Where the training report goes, whether or not the target exists yet."""
    is_folder = target.format is not None and formats.FORMATS[target.format].is_folder
    return report_path(f"{target.path}/" if is_folder else target.path)


def check_free(files: Iterable[Path], *, force: bool) -> None:
    """Refuse files that cannot be written and, unless `force`, those that exist."""
    for file in files:
        check_file(file, overwrite=force)


def save(tok: byteweld.Tokenizer, target: Target, *, force: bool = False) -> None:
    """Write one target without its report; the folders above it are made."""
    Path(target.path).absolute().parent.mkdir(parents=True, exist_ok=True)
    formats.save(tok.vocab, target.path, format=target.format, overwrite=force)


def save_all(
    made: Iterable[tuple[byteweld.Tokenizer, Sequence[Target]]],
    *,
    files: Sequence[Path],
    force: bool,
) -> None:
    """Write every target, and a report beside the first of each tokenizer.

    If one cannot be written, the new files of the others are removed. `files` are all that will be
    written.
    """
    new = [file for file in files if not os.path.lexists(file)]
    try:
        for tok, targets in made:
            for target in targets:
                save(tok, target, force=force)
            if tok.training is not None:
                tok.training.save(report_place(targets[0]), tok.vocab, overwrite=force)
    except BaseException:
        for file in new:
            file.unlink(missing_ok=True)
        raise
