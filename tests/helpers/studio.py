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
def running(session: Session) -> Iterator[StudioServer]:
    """Serve a session."""
    with StudioServer(session) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def serving(**tokenizers: byteweld.Tokenizer) -> Iterator[str]:
    """Serve tokenizers by name; yields the address of the page."""
    with running(Session([*tokenizers.items()])) as server:
        yield server.url


@contextmanager
def open_page(
    browser: Any, url: str, size: tuple[int, int] = (1440, 900), scheme: str = "light", **state: str
) -> Iterator[Any]:
    """Open the page in a new context, and wait until it is complete; what it does wrong raises."""
    from tests.helpers.browser import Watch

    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        reduced_motion="reduce",
        accept_downloads=True,
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    watch = Watch(page, url.partition("#")[0])
    page.goto(f"{url}&{urlencode(state)}" if state else url)
    wait(page)
    yield page
    context.close()
    assert watch.faults == []


def wait(page: Any) -> None:
    """Wait until nothing is loading."""
    page.locator("main[class]:not([aria-busy])").wait_for()
    page.wait_for_load_state("networkidle")


def go(page: Any, view: str, fields: str = "") -> None:
    """Show a view by its address."""
    page.evaluate("(hash) => { location.hash = hash; }", f"#view={view}{fields}")
    page.locator(f"main.view-{view}").wait_for()


def click_view(page: Any, view: str) -> None:
    """Show a view by its tab."""
    page.click(f"#views a:has-text('{view.capitalize()}')")
    page.locator(f"main.view-{view}").wait_for()


def token_texts(page: Any) -> list[str]:
    found: list[str] = page.locator("#tokens .t").all_text_contents()
    return found
