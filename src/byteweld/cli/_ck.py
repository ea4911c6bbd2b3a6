"""The options of ck-bpe-train, which `byteweld train` accepts so that its command lines run as is.

They are hidden: docs/about/seeds.md lists them with the options of byteweld that they stand for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from byteweld.cli import _errors
from byteweld.cli import _options as options
from byteweld.cli._command import Option

_Value = TypeVar("_Value")


def _option(name: str, same_as: str, **declared: Any) -> Option:
    return Option(name, help=f"The name of {same_as} in ck-bpe-train.", is_hidden=True, **declared)


class CkOptions(NamedTuple):
    """The options that ck-bpe-train spells in another way."""

    corpus_dir: Annotated[str | None, _option("--corpus-dir", "SOURCE")] = None
    min_freq: Annotated[
        int | None,
        _option("--min-freq", "--min-frequency", read=options.whole_number("--min-freq", 0)),
    ] = None
    max_piece_bytes: Annotated[
        int | None,
        _option(
            "--max-piece-bytes",
            "--max-token-bytes",
            read=options.whole_number("--max-piece-bytes", 0),
        ),
    ] = None
    binary_out_dir: Annotated[str | None, _option("--binary-out-dir", "--binary-out")] = None
    special_tokens_file: Annotated[
        str | None, _option("--special-tokens-file", "--specials-file")
    ] = None
    verbose: Annotated[bool, _option("--verbose", "the messages, which are always shown")] = False

    def source(self, source: list[str]) -> list[str]:
        """The sources: those given, or the folder of --corpus-dir."""
        if self.corpus_dir is None:
            return source
        if source:
            raise _errors.UsageError(
                f"--corpus-dir and SOURCE ({source[0]!r}) cannot be combined; "
                "pass all folders as SOURCE, with --recipe ck"
            )
        if not Path(self.corpus_dir).is_dir():
            raise _errors.UsageError(
                f"--corpus-dir is {self.corpus_dir!r}, which is not a folder; "
                "pass files as SOURCE, with --recipe ck"
            )
        return [self.corpus_dir]

    def recipe(self, name: str | None, start: str | None, *, ascii_only: bool) -> str | None:
        """The name of the recipe: --corpus-dir means ck's."""
        if self.corpus_dir is None:
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

    def changes(self, given: options.RecipeChanges) -> options.RecipeChanges:
        """The options that change the recipe, under either name."""
        return given._replace(
            min_frequency=_one("--min-freq", self.min_freq, "--min-frequency", given.min_frequency),
            # As in ck-bpe-train, 0 is no limit.
            max_token_bytes=_one(
                "--max-piece-bytes",
                self.max_piece_bytes,
                "--max-token-bytes",
                given.max_token_bytes,
            )
            or None,
            specials_file=_one(
                "--special-tokens-file",
                self.special_tokens_file,
                "--specials-file",
                given.specials_file,
            ),
        )

    def binary_out(self, given: str | None) -> str | None:
        """The folder for the binary export, under either name."""
        return _one("--binary-out-dir", self.binary_out_dir, "--binary-out", given)


def _one(theirs: str, value: _Value | None, ours: str, given: _Value | None) -> _Value | None:
    """The value of an option with two names."""
    if value is not None and given is not None:
        raise _errors.UsageError(f"{theirs} and {ours} are the same option; pass one of them")
    return given if value is None else value
