"""What a verb writes: which files that will be, whether they are free, and all of them or none."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import byteweld
from byteweld._files import check_file
from byteweld.cli import _errors

# What lies beside a file of ours and speaks for it: a new file must not find an old one.
_SIDECAR_SUFFIX = ".byteweld.json"
_FOLDERS = ("gpt2", "ck")  # formats of several files


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
        with saved_aside(tok, target, force=force) as (_, its_files):
            files += its_files
    return files


@contextlib.contextmanager
def saved_aside(
    tok: byteweld.Tokenizer, target: Target, *, force: bool
) -> Iterator[tuple[Target, list[Path]]]:
    """Write a target in a folder that goes away: yields that copy, and the files of the real one.

    Refuses what `check` refuses; errors name the real target.
    """
    if not target.path:
        raise _errors.UsageError("the path to write to is empty; pass one, such as tokenizer.json")
    place = Path(target.path)
    if place.name in ("", ".."):
        place = place.resolve()
    with tempfile.TemporaryDirectory(prefix="byteweld-") as folder:
        copy = target._replace(path=str(Path(folder, place.name)))
        if place.is_dir() or target.path.endswith("/"):
            Path(copy.path).mkdir()
        try:
            save(tok, copy)
        except byteweld.UnsupportedError as error:
            message = str(error).replace(copy.path, target.path.rstrip("/"))
            raise byteweld.UnsupportedError(message) from None
        made = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        files = [place.parent / path.relative_to(folder) for path in made]
        sidecar = place.with_name(place.name + _SIDECAR_SUFFIX)
        check_free([*files, sidecar], force=force)
        yield copy, files


def report_place(target: Target) -> Path:
    """Where the report of the training will lie, whether or not the target is there yet."""
    place = Path(target.path)
    is_folder = target.format in _FOLDERS or target.path.endswith("/") or place.is_dir()
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
