"""The options of ck-bpe-train, which `byteweld train` accepts so that its command lines run as is.

They are hidden: docs/about/seeds.md lists them with the options of byteweld that they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from byteweld.cli import _errors
from byteweld.cli import _options as options

_Value = TypeVar("_Value")


class CkOptions(NamedTuple):
    """The options that ck-bpe-train spells in another way."""

    corpus_dir: bool = False  # the folder after it is SOURCE
    min_freq: options.Natural | None = None
    max_piece_bytes: options.Natural | None = None
    binary_out_dir: str | None = None
    special_tokens_file: str | None = None
    verbose: bool = False

    def check(self, source: list[str]) -> None:
        """Raise unless the only source is the folder after --corpus-dir, if that is given."""
        if not self.corpus_dir:
            return
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

    def recipe(self, name: str | None, start: str | None, *, ascii_only: bool) -> str | None:
        """The name of the recipe: --corpus-dir means ck's."""
        if not self.corpus_dir:
            return name
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

    def changes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the recipe that options change, under either name."""
        least, most = given.get("min_frequency"), given.get("max_token_bytes")
        changes = {
            "min_frequency": _one("--min-freq", self.min_freq, "--min-frequency", least),
            # As in ck-bpe-train, 0 is no limit.
            "max_token_bytes": _one(
                "--max-piece-bytes", self.max_piece_bytes, "--max-token-bytes", most
            )
            or None,
        }
        return {**given, **{name: value for name, value in changes.items() if value is not None}}

    def specials_file(self, given: str | None) -> str | None:
        """The file of special tokens, under either name."""
        return _one("--special-tokens-file", self.special_tokens_file, "--specials-file", given)

    def binary_out(self, given: str | None) -> str | None:
        """The folder for the binary export, under either name."""
        return _one("--binary-out-dir", self.binary_out_dir, "--binary-out", given)


def _one(theirs: str, value: _Value | None, ours: str, given: _Value | None) -> _Value | None:
    """The value of an option with two names."""
    if value is not None and given is not None:
        raise _errors.UsageError(f"{theirs} and {ours} are the same option; pass one of them")
    return given if value is None else value
