"""The options of ck-bpe-train, which `byteweld train` accepts so that its command lines run as is.

They are hidden: docs/about/seeds.md lists them with the options of byteweld that they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from byteweld.cli import _errors

ALIASES: Final = {
    "--min-freq": "--min-frequency",
    "--max-piece-bytes": "--max-token-bytes",
    "--binary-out-dir": "--binary-out",
    "--special-tokens-file": "--specials-file",
}


class CkOptions(NamedTuple):
    """The options that have no equivalent."""

    corpus_dir: bool = False  # the folder after it is SOURCE
    verbose: bool = False

    def recipe(
        self, name: str | None, source: Sequence[str], start: str | None, *, ascii_only: bool
    ) -> str | None:
        """The name of the recipe: --corpus-dir means ck's."""
        if not self.corpus_dir:
            return name
        if len(source) > 1:
            raise _errors.UsageError(
                f"--corpus-dir and SOURCE ({source[1]!r}) cannot be combined; "
                "pass all folders as SOURCE, with --recipe ck"
            )
        if not Path(source[0]).is_dir():
            raise _errors.UsageError(
                f"--corpus-dir is {source[0]!r}, which is not a folder; "
                "pass files as SOURCE, with --recipe ck"
            )
        if start is not None:
            raise _errors.UsageError(
                "--corpus-dir cannot be used with --start, because it means recipe ck; "
                "pass the folder as SOURCE"
            )
        if name not in (None, "ck", "ck-ascii"):
            flags = "--corpus-dir and --ascii-only mean" if ascii_only else "--corpus-dir means"
            recipe = "ck-ascii" if ascii_only else "ck"
            raise _errors.UsageError(
                f"--recipe is {name!r}, but {flags} recipe {recipe}; "
                "for another recipe, pass the folder as SOURCE"
            )
        return name or "ck"
