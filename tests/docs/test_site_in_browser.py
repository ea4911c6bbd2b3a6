"""The docs site in a real browser: it loads nothing from elsewhere, searches, and fits a phone.

Needs the site (`make docs`), playwright, and a Chromium (BYTEWELD_CHROMIUM, or one on the PATH).
"""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers.pages import ROOT

pytestmark = pytest.mark.browser

SITE = ROOT / "site"
PAGES = ("index", "quickstart", "guides/train", "reference/cli", "reference/api/tokenizer")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A loopback server of the built site."""
    if not (SITE / "index.html").is_file():
        pytest.skip("the docs are not built; run `make docs`")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def opened(browser: Any, address: str, name: str, **settings: Any) -> tuple[Any, list[str]]:
    """A page of the site, with the errors it logged and what it requested elsewhere."""
    from tests.helpers.browser import Watch

    page = browser.new_context(**settings).new_page()
    watch = Watch(page, address)
    page.goto(f"{address}{name}.html", wait_until="networkidle")
    return page, watch.faults


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_nothing_from_elsewhere(
    browser: Any, address: str, name: str, scheme: str
) -> None:
    page, faults = opened(browser, address, name, color_scheme=scheme)
    assert page.locator("h1").first.is_visible()
    assert faults == []
    assert page.locator("img").evaluate_all("all => all.every(image => image.naturalWidth > 0)")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(browser: Any, address: str, name: str) -> None:
    page, _ = opened(browser, address, name, viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_search_finds_a_page(browser: Any, address: str) -> None:
    page, faults = opened(browser, address, "index")
    page.keyboard.press("Control+k")
    page.keyboard.type("untrusted", delay=20)
    page.get_by_text("Encode safely").last.wait_for(timeout=20_000)
    assert faults == []
