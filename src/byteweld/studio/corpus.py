"""A visitor's corpus: lines of text as documents, checked against the alphabet of a recipe."""

from __future__ import annotations

from collections.abc import Iterable

import byteweld
from byteweld.studio.request import Refused


def lines(text: str) -> list[tuple[str, str]]:
    """Return the lines that are not empty, each with its name: line 1, line 2, ..."""
    return [(f"line {n}", line) for n, line in enumerate(text.split("\n"), 1) if line]


def check_alphabet(documents: Iterable[tuple[str, str]], recipe: byteweld.Recipe) -> None:
    """Refuse the first character that has no token; `documents` are pairs of name and text."""
    if recipe.vocab_alphabet != "ascii":
        return
    letters = set(recipe.letters.decode())
    for name, text in documents:
        for character in text:
            if character not in letters:
                shown = repr(character).strip("'")
                raise Refused(
                    400,
                    f"recipe {recipe.name} has no token for {shown} (U+{ord(character):04X}) in "
                    f"{name}, only for tab, newline, return and printable ASCII; remove it, or "
                    f"use recipe {recipe.name.removesuffix('-ascii')}",
                )
