"""The files that a verb writes: lists them, checks that they are free, writes all or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import byteweld
from byteweld import formats
from byteweld._files import check_file
from byteweld.cli import _errors, _output
from byteweld.cli import _options as options
from byteweld.formats._beside import sidecar_path
from byteweld.training import report_path
from byteweld.vocab import Vocabulary


class Target(NamedTuple):
    """A file or folder to write a tokenizer to."""

    path: str
    format: str | None


def check(vocab: Vocabulary, target: Target, *, force: bool) -> list[Path]:
    """Return the files that will be written.

    Raises if the format cannot hold the vocabulary or, unless `force`, if a file exists.
    """
    if not target.path:
        raise _errors.UsageError("the path to write to is empty; pass one, such as tokenizer.json")
    formats.check(vocab, target.path, target.format)
    path = named_path(target)
    files = formats.files(vocab, path, target.format)
    # A stale sidecar must not remain: `load` would read it along with the new file.
    for file in (*files, sidecar_path(path)):
        check_file(file, overwrite=force)
    return files


def check_all(vocab: Vocabulary, targets: Sequence[Target], force: bool) -> list[Path]:
    """Return all files that will be written, with that of the report; raises like `check`."""
    files = [file for target in targets for file in check(vocab, target, force=force)]
    report = report_file(targets[0])
    check_file(report, overwrite=force)
    return [*files, report]


def named_path(target: Target) -> Path:
    """Return the path, resolved if it has no file name, as `.` has none."""
    path = Path(target.path)
    return path.resolve() if path.name in ("", "..") else path


def report_file(target: Target) -> Path:
    """Return the file of the training report, whether or not the target exists yet."""
    return report_path(f"{target.path}/" if formats.is_folder(target.format) else target.path)


def lost_pattern(vocab: Vocabulary, target: Target) -> str | None:
    """Return a sentence on the pattern that the target does not keep, or None."""
    held = formats.held(vocab, *target)
    if held.pattern == vocab.pattern:
        return None
    before, after = map(options.pattern_words, (vocab.pattern, held.pattern))
    return (
        f"{target.path} has no field for the pattern {before}: ck's runtime, and byteweld when it "
        f"loads the export, split text with {after}, so some text gets different ids"
    )


def save(tok: byteweld.Tokenizer, target: Target, *, force: bool = False) -> None:
    """Write a tokenizer, with the report of its training if that is known, and parent folders."""
    Path(target.path).absolute().parent.mkdir(parents=True, exist_ok=True)
    tok.save(target.path, format=target.format, overwrite=force)


def say_wrote(tok: byteweld.Tokenizer, targets: Sequence[Target], more: str = "") -> None:
    """Say what was written, and what a format does not keep."""
    for target in targets:
        lost = lost_pattern(tok.vocab, target)
        if lost is not None:
            _output.say(f"lost: {lost}")
    paths = " and ".join(target.path for target in targets)
    _output.say(f"wrote {paths}: {_output.amount(len(tok), 'token')}{more}")
