"""Write docs/pictures/reports/*.png: reports of --html in a real browser.

`python scripts/make_report_pictures.py` needs playwright (`pip install --group browser`) and a
Chromium on the PATH or in BYTEWELD_CHROMIUM. The tokenizers are the quickstart's in two sizes.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import byteweld
from byteweld.cli import main as command_line
from byteweld.cli.quickstart import SPECIAL, find_sources
from byteweld.samples import SENTENCES

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "reports"
_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
_SIZE = {"width": 1180, "height": 900}


def main() -> int:
    """Take all screenshots."""
    chromium = os.environ.get("BYTEWELD_CHROMIUM") or next(
        filter(None, map(shutil.which, _CHROMIUMS)), None
    )
    if chromium is None:
        sys.stderr.write("no Chromium found; install one, or set BYTEWELD_CHROMIUM\n")
        return 2
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        os.chdir(folder)  # so that the reports contain no local paths
        write_reports()
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, scheme in (("comparison", "light"), ("evaluation", "dark"), ("why", "light")):
            page = browser.new_page(
                viewport=_SIZE, color_scheme="dark" if scheme == "dark" else "light"
            )
            page.goto(Path(f"{name}.html").absolute().as_uri())
            page.screenshot(path=FOLDER / f"{name}.png")
            sys.stderr.write(f"wrote {FOLDER / name}.png\n")
        browser.close()
    return 0


def write_reports() -> None:
    """Train two tokenizers and write the reports into the current folder."""
    recipe = byteweld.RECIPES["modern"].replace(special_tokens=[SPECIAL])
    sources = find_sources(Path(sysconfig.get_path("stdlib")))
    tok = byteweld.train(list(sources), vocab_size=8192, recipe=recipe)
    tok.save("quickstart.json")
    tok.cut(2048).save("smaller.json")
    texts = Path("texts")
    texts.mkdir()
    for source in ("bisect.py", "fractions.py"):
        shutil.copy(Path(sysconfig.get_path("stdlib"), source), texts / f"{source}.txt")
    (texts / "sentences.txt").write_text("\n".join(SENTENCES.values()) + "\n")
    compared = ["compare", "quickstart.json", "smaller.json", "texts", "--html", "comparison.html"]
    inspected = ["inspect", "quickstart.json", "--corpus", "texts", "--html", "evaluation.html"]
    explained = [
        "explain",
        "-t",
        "quickstart.json",
        "unbelievable tokenizers",
        "--html",
        "why.html",
    ]
    for line in ([*compared, "--differences", "5"], inspected, explained):
        if command_line(line) == 2:
            raise RuntimeError(f"byteweld {' '.join(line)} failed")


if __name__ == "__main__":
    sys.exit(main())
