"""What a verb writes: which files that will be, whether they are free, and all of them or none."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import byteweld

# What lies beside a file of ours and speaks for it: a new file must not find an old one.
_SIDECAR_SUFFIX = ".byteweld.json"


class Target(NamedTuple):
    """A file or folder to write a tokenizer to."""

    path: str
    format: str | None
    options: Mapping[str, Any]


def trial(recipe: byteweld.Recipe) -> byteweld.Tokenizer:
    """The recipe's tokenizer before its first merge; where it cannot be written, none can."""
    return byteweld.train(
        byteweld.Counts({}, pattern=recipe.pattern), vocab_size=recipe.minimum_size, recipe=recipe
    )


def check(tok: byteweld.Tokenizer, targets: Sequence[Target], *, force: bool) -> list[Path]:
    """Refuse what the formats cannot hold and, unless `force`, what is there already.

    Returns the files that will be written.
    """
    files = [file for target in targets for file in _files_of(tok, target)]
    taken = next((file for file in files if os.path.lexists(file)), None)
    if taken is not None and not force:
        raise FileExistsError(f"{taken} exists; pass --force to replace it")
    return files


def _files_of(tok: byteweld.Tokenizer, target: Target) -> list[Path]:
    """The files that writing gives, found by writing them elsewhere."""
    with scratch(target) as stand_in:
        save(tok, stand_in)
        folder = Path(stand_in.path).parent
        made = sorted(path for path in folder.rglob("*") if path.is_file())
        files = [Path(target.path).parent / path.relative_to(folder) for path in made]
    if not Path(target.path).is_dir():
        files.append(Path(target.path + _SIDECAR_SUFFIX))
    return list(dict.fromkeys(files))


@contextlib.contextmanager
def scratch(target: Target) -> Iterator[Target]:
    """A target of the same name in a folder that goes away; errors name the real one."""
    with tempfile.TemporaryDirectory(prefix="byteweld-") as folder:
        name = Path(target.path).name
        stand_in = Path(folder, name or "unnamed")
        if Path(target.path).is_dir() or target.path.endswith("/"):
            stand_in.mkdir()
        try:
            yield target._replace(path=str(stand_in))
        except byteweld.UnsupportedError as error:
            message = str(error).replace(str(stand_in), target.path.rstrip("/") or target.path)
            raise byteweld.UnsupportedError(message) from None


def save(tok: byteweld.Tokenizer, target: Target, *, force: bool = False) -> None:
    """Write one target."""
    tok.save(target.path, format=target.format, overwrite=force, **target.options)


def save_all(tok: byteweld.Tokenizer, targets: Sequence[Target], *, force: bool) -> None:
    """Write all targets; if one cannot be written, the new files of the others are removed."""
    new = [file for file in check(tok, targets, force=force) if not os.path.lexists(file)]
    try:
        for target in targets:
            Path(target.path).absolute().parent.mkdir(parents=True, exist_ok=True)
            save(tok, target, force=force)
    except BaseException:
        for file in new:
            file.unlink(missing_ok=True)
        raise
