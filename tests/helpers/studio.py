"""A studio to open in a browser, and pages of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import byteweld
from byteweld.studio.server import StudioServer
from byteweld.studio.session import Session


@contextmanager
def serving(**tokenizers: byteweld.Tokenizer) -> Iterator[str]:
    """Serve tokenizers by name; yields the address of the page."""
    with StudioServer(Session([*tokenizers.items()])) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()


@contextmanager
def open_page(
    browser: Any, url: str, size: tuple[int, int] = (1440, 900), **state: str
) -> Iterator[Any]:
    """Open the page in a new context, and wait until it is complete; errors on it are raised."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{url}&{urlencode(state)}" if state else url)
    wait(page)
    yield page
    context.close()
    assert faults == []


def wait(page: Any) -> None:
    """Wait until nothing is loading."""
    page.locator("main[class]:not([aria-busy])").wait_for()
    page.wait_for_load_state("networkidle")
