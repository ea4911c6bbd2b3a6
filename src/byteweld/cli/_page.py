"""How a verb shows what it found: text, JSON, or one page in the file that --html names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from byteweld._files import check_file, write_atomic
from byteweld.cli import _errors, _output
from byteweld.markup import Child, document


class Shown:
    """Where the answer goes. Made before the work, so that a wrong file shows at once."""

    def __init__(self, html: str | None, *, json: bool, force: bool) -> None:
        if html == "":
            raise _errors.UsageError("--html is empty; name a file, such as report.html")
        if force and html is None:
            raise _errors.UsageError("--force goes with --html, whose file it replaces")
        if html is not None:
            check_file(html, overwrite=force)
        self._file = html
        self._json = json
        self._force = force

    def show(
        self,
        title: str,
        *,
        lines: Callable[[], Iterable[str]],
        value: Callable[[], Any],
        page: Callable[[], Child],
        said: str = "",
    ) -> None:
        """Show an answer: JSON if asked, a page if asked, else lines. Only what is shown is made.

        `said` is told beside a page, which does not show by itself.
        """
        if self._json:
            _output.report(value())
        if self._file is not None:
            content = document(title, page()).encode()
            write_atomic(self._file, content, overwrite=self._force)
            told = f"{said}; " if said else ""
            _output.say(f"{told}wrote {self._file}: {_output.size(len(content))}")
        elif not self._json:
            _output.lines(lines())
