"""Shows the result of a verb as text, as JSON, or as an HTML page in the file named by --html."""

from __future__ import annotations

from typing import Any

from byteweld._files import check_file
from byteweld._saves import write_atomic
from byteweld.cli import _errors, _output
from byteweld.markup import document
from byteweld.report import Displayable


class Shown:
    """Where the result goes; made before the work, so that a wrong path fails immediately."""

    def __init__(self, html: str | None, *, json: bool, force: bool) -> None:
        if html == "":
            raise _errors.UsageError("--html is empty; name a file, such as report.html")
        if force and html is None:
            raise _errors.UsageError("--force needs --html, whose file it overwrites")
        if html is not None:
            check_file(html, overwrite=force)
        self._file = html
        self._json = json
        self._force = force

    def show(self, title: str, found: Displayable, *, summary: str = "", **more: Any) -> None:
        """Show a result as JSON, as a page, or else as lines; computes only what is shown.

        `summary` is printed when the result goes to a page; `more` comes first in the JSON.
        """
        if self._json:
            value = found.to_dict()
            _output.report({**more, **value} if more else value)
        if self._file is not None:
            content = document(title, found.to_html()).encode()
            write_atomic(self._file, content, overwrite=self._force)
            first = f"{summary}; " if summary else ""
            _output.say(f"{first}wrote {self._file}: {_output.size(len(content))}")
        elif not self._json:
            _output.lines(found.lines(color=_output.has_color()))
