"""A page in a real browser: what it must never do, and how it is used. Skips without playwright."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright; `pip install --group browser`"
)
expect = playwright.expect
expect.set_options(timeout=20_000)  # generous, for a busy machine

HOSTILE = (
    "<script>window.hit=1</script><img src=x onerror=window.hit=1>\"'&amp; \u202eabc\u202c\x00"
)


class Watch:
    """Records what a page must never do: log errors, or request anything but its own."""

    def __init__(self, page: Any, *own: str) -> None:
        self.faults: list[str] = []
        self._own = (*own, "data:", "blob:")
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._heard)
        page.on("request", self._requested)

    def _heard(self, message: Any) -> None:
        # A refusal is shown on the page; the browser also logs its status.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.faults.append(message.text)

    def _requested(self, request: Any) -> None:
        if not request.url.startswith(self._own):
            self.faults.append(request.url)


def check_accessibility(page: Any) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe; `pip install --group browser`"
    )
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def check_width(page: Any, width: int, what: object = "") -> None:
    """Nothing is wider than the screen."""
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width, what


def check_paper(page: Any, scheme: str) -> None:
    """The page is light or dark."""
    paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    channels = [int(n) for n in paper.removesuffix(")").partition("(")[2].split(",")[:3]]
    assert (sum(channels) > 600) == (scheme == "light")


def type_long(page: Any, text: str) -> None:
    """Type a text that is long for an editor."""
    page.evaluate(
        """(text) => {
          const editor = document.querySelector("#text");
          editor.wrap = "off";
          editor.value = text;
          editor.dispatchEvent(new Event("input"));
        }""",
        text,
    )


def drop(page: Any, name: str, content: bytes) -> None:
    """Drop a file on the page."""
    page.evaluate(
        """([name, content]) => {
          const data = new DataTransfer();
          data.items.add(new File([Uint8Array.from(atob(content), c => c.charCodeAt(0))], name));
          document.querySelector("main").dispatchEvent(
            new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        [name, base64.b64encode(content).decode()],
    )


@contextmanager
def saved(page: Any, browser: Any, path: Path) -> Iterator[Any]:
    """The page that `Save` writes, opened offline."""
    with page.expect_download() as waiting:
        page.click("#save")
    waiting.value.save_as(path)
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    alone = context.new_page()
    watch = Watch(alone, path.as_uri())
    alone.goto(path.as_uri())
    yield alone
    assert alone.locator("#error").count() == 0
    context.close()
    assert watch.faults == []
