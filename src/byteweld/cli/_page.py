"""Shows the result of a verb as text, as JSON, or as an HTML page in the file named by --html."""

from __future__ import annotations

from typing import Any, NamedTuple

from byteweld._files import check_file
from byteweld._saves import write_atomic
from byteweld.cli import _errors, _output
from byteweld.markup import document
from byteweld.report import Displayable


class Shown(NamedTuple):
    """Where the result goes."""

    json: bool = False
    html: str | None = None
    force: bool = False

    def check(self) -> None:
        """Raise if the page cannot be written; called before the work."""
        if self.html == "":
            raise _errors.UsageError("--html is empty; name a file, such as report.html")
        if self.html is not None:
            check_file(self.html, overwrite=self.force)
        elif self.force:
            raise _errors.UsageError("--force needs --html, whose file it overwrites")

    def show(self, title: str, found: Displayable, *, summary: str = "", **more: Any) -> None:
        """Show a result as JSON, as a page, or else as lines; computes only what is shown.

        `summary` is printed when the result goes to a page; `more` comes first in the JSON.
        """
        if self.json:
            value = found.to_dict()
            _output.report({**more, **value} if more else value)
        if self.html is not None:
            content = document(title, found.to_html()).encode()
            write_atomic(self.html, content, overwrite=self.force)
            first = f"{summary}; " if summary else ""
            _output.say(f"{first}wrote {self.html}: {_output.size(len(content))}")
        elif not self.json:
            _output.lines(found.lines(color=_output.has_color()))
