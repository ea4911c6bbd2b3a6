"""Opens the page in a browser without showing the token to other users of the machine.

The arguments of a process can be read by every user, and a browser is started with the address as
an argument. So it gets the name of a file that only its owner can read, which redirects to the
page.
"""

from __future__ import annotations

import os
import tempfile
import threading
import webbrowser
from html import escape
from pathlib import Path
from typing import Self

_REDIRECT = """\
<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>byteweld studio</title>
<p><a href="{url}">Open the studio</a></p>
"""


class Redirect:
    """A private file that redirects to a URL; it is removed by `close`, or at the end."""

    def __init__(self, url: str) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="byteweld-studio-", ignore_cleanup_errors=True
        )
        self.path = Path(self._folder.name) / "studio.html"
        # Created with its mode: there is no moment at which others can open it.
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(file, "w", encoding="utf-8") as opened:  # noqa: PTH123
            opened.write(_REDIRECT.format(url=escape(url)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def open_browser(self) -> None:
        """Start the browser, on a thread: some browsers end only when their window is closed."""
        address = self.path.as_uri()
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    def close(self) -> None:
        """Remove the file; may be called several times."""
        self._folder.cleanup()
