"""Write docs/pictures/studio/*.png: the studio's views in a real browser.

`python scripts/make_studio_pictures.py` needs playwright (`pip install --group browser`) and a
Chromium on the PATH or in BYTEWELD_CHROMIUM. The tokenizer is the quickstart's.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import threading
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Browser, sync_playwright

import byteweld
from byteweld.cli.quickstart import SPECIAL, find_sources
from byteweld.studio.server import StudioServer
from byteweld.studio.session import Session

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "studio"
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


class Picture(NamedTuple):
    """One screenshot: its file, the state in the address, the color scheme, the screen size.

    `top` is the element to scroll to.
    """

    name: str
    state: dict[str, str]
    scheme: str = "light"
    size: tuple[int, int] = (1180, 760)
    top: str = ""


PICTURES = (
    Picture("how", {"view": "how", "how_step": "18"}, size=(1180, 880), top="#stage-3"),
    Picture("tokens", {"view": "tokens", "sel": "3"}),
    Picture("why", {"view": "why", "word": " tokenizer", "why_step": "5"}, "dark", (1180, 980)),
    Picture("training", {"view": "training", "step": "6"}),
    Picture("compare", {"view": "compare"}, "light", (1180, 900)),
)


def main() -> int:
    """Take all screenshots."""
    chromium = os.environ.get("BYTEWELD_CHROMIUM") or next(
        filter(None, map(shutil.which, _CHROMIUMS)), None
    )
    if chromium is None:
        sys.stderr.write("no Chromium found; install one, or set BYTEWELD_CHROMIUM\n")
        return 2
    FOLDER.mkdir(exist_ok=True)
    recipe = byteweld.RECIPES["modern"].replace(special_tokens=[SPECIAL])
    sources = list(find_sources(Path(sysconfig.get_path("stdlib"))))
    tok = byteweld.train(sources, vocab_size=8192, recipe=recipe)
    with StudioServer(Session([("quickstart", tok)])) as server, sync_playwright() as running:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for picture in PICTURES:
            take(browser, server, picture)
            sys.stderr.write(f"wrote {FOLDER / picture.name}.png\n")
        browser.close()
        server.shutdown()
    return 0


def take(browser: Browser, server: StudioServer, picture: Picture) -> None:
    """Open the studio in a state, wait until it is idle, and take a screenshot."""
    width, height = picture.size
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if picture.scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.goto(f"{server.url}&{urlencode(picture.state)}")
    page.locator(f"main.view-{picture.state['view']}").wait_for()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)  # the tree is drawn in the next frame
    if picture.top:
        page.locator(picture.top).evaluate("element => element.scrollIntoView()")
    page.screenshot(path=FOLDER / f"{picture.name}.png")
    page.close()


if __name__ == "__main__":
    sys.exit(main())
