"""What is wrong with a dataset, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

_MAX_LISTED: Final = 100


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something wrong: a message, and where it can be told, the file, the shard and the document.

    A shard is "train 3"; documents are counted from 0 in their split.
    """

    message: str
    file: str | None = None
    shard: str | None = None
    document: int | None = None

    def __str__(self) -> str:
        where = [
            *([] if self.file is None else [self.file]),
            *([] if self.shard is None else [f"shard {self.shard}"]),
            *([] if self.document is None else [f"document {self.document}"]),
        ]
        return f"{', '.join(where)}: {self.message}" if where else self.message

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as JSON-serializable values."""
        return dict(vars(self))


class Problems:
    """Collects problems: lists the first, counts all."""

    def __init__(self) -> None:
        self.listed: list[Problem] = []
        self.count = 0
        self.notes: list[str] = []  # what could not be checked

    def add(
        self,
        message: str,
        *,
        file: str | None = None,
        shard: str | None = None,
        document: int | None = None,
    ) -> None:
        """Add a problem."""
        self.count += 1
        if len(self.listed) < _MAX_LISTED:
            found = Problem(message=message, file=file, shard=shard, document=document)
            self.listed.append(found)
