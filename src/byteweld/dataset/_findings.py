"""What the checks of a dataset found: problems and where they are, and how much was checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from byteweld.dataset._manifest import ShardEntry

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
        places = {"": self.file, "shard ": self.shard, "document ": self.document}
        where = ", ".join(f"{what}{at}" for what, at in places.items() if at is not None)
        return f"{where}: {self.message}" if where else self.message

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as JSON-serializable values."""
        return dict(vars(self))


@dataclass
class Findings:
    """The first problems, their number, and amounts: the fields of `Verification`."""

    problems: list[Problem] = field(default_factory=list)
    num_problems: int = 0
    notes: list[str] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    documents: int = 0
    tokens: int = 0
    encoded: int = 0
    compared: int = 0
    sources: int = 0

    def add(
        self,
        message: str,
        shard: ShardEntry | None = None,
        *,
        file: str | None = None,
        document: int | None = None,
    ) -> None:
        """Add a problem, by default of the main file of its shard."""
        self.num_problems += 1
        if len(self.problems) == _MAX_LISTED:
            return
        name = None
        if shard is not None:
            name = f"{shard.split} {shard.number}"
            file = file or shard.files[0].name
        self.problems.append(Problem(message=message, file=file, shard=name, document=document))

    def note(self, note: str) -> None:
        """Note what could not be checked, once."""
        if note not in self.notes:
            self.notes.append(note)
