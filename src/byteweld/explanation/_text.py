"""Helpers that render explanations as text and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from byteweld.render import columns, visible

MAX_ROWS = 12  # rows of a table
MAX_PARTS = 40  # parts of a pre-token on a line

Show = Callable[[int], str]  # shows a token within a line


def parts_line(parts: Sequence[int], show: Show, chosen: int | None = None) -> str:
    """Join parts with spaces, the chosen pair in brackets; show only a window of a long list."""
    first = 0 if chosen is None else max(0, min(chosen - MAX_PARTS // 2, len(parts) - MAX_PARTS))
    last = min(len(parts), first + MAX_PARTS)
    shown = ["..."] if first else []
    for index in range(first, last):
        text = show(parts[index])
        if index == chosen:
            text = f"[{text}"
        elif chosen is not None and index == chosen + 1:
            text = f"{text}]"
        shown.append(text)
    return " ".join([*shown, "..."] if last < len(parts) else shown)


def marked_columns(rows: Sequence[Sequence[str]], marks: Sequence[str]) -> Iterator[str]:
    """Align rows in columns; a row may have a mark after its last column."""
    every = [*marks, *[""] * len(rows)]
    return columns([[*row, mark] for row, mark in zip(rows, every, strict=False)])


def joined(values: Iterable[object]) -> str:
    return " ".join(map(str, values))


def tokens_to_dict(tokens: Mapping[int, bytes]) -> dict[str, dict[str, str]]:
    return {
        str(token_id): {"bytes": token.hex(), "text": visible(token)}
        for token_id, token in tokens.items()
    }
