"""What a verb writes: which files that will be, whether they are free, and all of them or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import byteweld
from byteweld import formats
from byteweld._files import check_file
from byteweld.cli import _errors


class Target(NamedTuple):
    """A file or folder to write a tokenizer to."""

    path: str
    format: str | None


def trial(recipe: byteweld.Recipe) -> byteweld.Tokenizer:
    """The recipe's tokenizer before its first merge; where it cannot be written, none can."""
    return byteweld.train(
        byteweld.Counts({}, pattern=recipe.pattern), vocab_size=recipe.minimum_size, recipe=recipe
    )


def check(tok: byteweld.Tokenizer, targets: Sequence[Target], *, force: bool) -> list[Path]:
    """Refuse what the formats cannot hold and, unless `force`, what is there already.

    Returns the files that will be written.
    """
    files: list[Path] = []
    for target in targets:
        _check_path(target)
        formats.check(tok.vocab, target.path, target.format)
        files += formats.files(tok.vocab, target.path, target.format)
    check_free(files, force=force)
    return files


def _check_path(target: Target) -> None:
    if not target.path:
        raise _errors.UsageError("the path to write to is empty; pass one, such as tokenizer.json")


def report_place(target: Target) -> Path:
    """Where the report of the training will lie, whether or not the target is there yet."""
    place = Path(target.path)
    has_format = target.format is not None and byteweld.FORMATS[target.format].is_folder
    is_folder = has_format or target.path.endswith("/") or place.is_dir()
    return place / "training.json" if is_folder else byteweld.report_path(place)


def check_free(files: Iterable[Path], *, force: bool) -> None:
    """Refuse, unless `force`, what is there already, and what no folder has room for."""
    for file in files:
        check_file(file, overwrite=force)


def save(tok: byteweld.Tokenizer, target: Target, *, force: bool = False) -> None:
    """Write one target; the folders above it are made."""
    Path(target.path).absolute().parent.mkdir(parents=True, exist_ok=True)
    tok.save(target.path, format=target.format, overwrite=force)


def save_all(
    made: Sequence[tuple[byteweld.Tokenizer, Sequence[Target]]],
    reports: Sequence[tuple[byteweld.Tokenizer, byteweld.Training, Path]] = (),
    *,
    files: Sequence[Path],
    force: bool,
) -> None:
    """Write all targets and reports; if one cannot be, the new files of the others are removed.

    `files` are those that `check` said will be written, and the reports.
    """
    new = [file for file in files if not os.path.lexists(file)]
    try:
        for tok, targets in made:
            for target in targets:
                save(tok, target, force=force)
        for tok, training, place in reports:
            training.save(place, tok.vocab, overwrite=force)
    except BaseException:
        for file in new:
            file.unlink(missing_ok=True)
        raise
