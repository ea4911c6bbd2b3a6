"""The pictures of docs/: the studio and the reports, taken here in a real browser.

`make pictures` runs this with BYTEWELD_PICTURES=docs/pictures, which replaces them. Otherwise they
are written to a temporary folder, and only their names and sizes are compared:
the pixels depend on fonts and on the text of this Python version.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

import byteweld
from byteweld.cli import main as command_line
from byteweld.cli.quickstart import SPECIAL, find_sources
from byteweld.samples import SENTENCES
from tests.helpers.pages import ROOT
from tests.helpers.studio import serving, wait

pytestmark = pytest.mark.browser

COMMITTED = ROOT / "docs" / "pictures"


class View(NamedTuple):
    """A view of the studio: the state in the address, and the element to scroll to."""

    name: str
    state: dict[str, str]
    scheme: str = "light"
    size: tuple[int, int] = (1180, 760)
    top: str = ""


VIEWS = (
    View("how", {"view": "how", "how_step": "18"}, size=(1180, 880), top="#stage-3"),
    View("tokens", {"view": "tokens", "sel": "3"}),
    View("why", {"view": "why", "word": " tokenizer", "why_step": "5"}, "dark", (1180, 980)),
    View("training", {"view": "training", "step": "6"}),
    View("compare", {"view": "compare"}, "light", (1180, 900)),
)
REPORTS = {
    "comparison": ("light", "compare quickstart.json smaller.json texts --differences 5"),
    "evaluation": ("dark", "inspect quickstart.json --corpus texts"),
    "why": ("light", "explain -t quickstart.json unbelievable"),
}
REPORT_SIZE = (1180, 900)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the pictures go."""
    given = os.environ.get("BYTEWELD_PICTURES")
    return Path(given).resolve() if given else tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def quickstart() -> byteweld.Tokenizer:
    """The tokenizer of `byteweld quickstart`."""
    recipe = byteweld.RECIPES["modern"].replace(special_tokens=[SPECIAL])
    sources = find_sources(Path(sysconfig.get_path("stdlib")))
    return byteweld.train(list(sources), vocab_size=8192, recipe=recipe)


@pytest.fixture(scope="module")
def address(quickstart: byteweld.Tokenizer) -> Iterator[str]:
    """A running studio."""
    with serving(quickstart=quickstart) as url:
        yield url


def open_page(browser: Any, size: tuple[int, int], scheme: str) -> Any:
    return browser.new_page(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
    )


def check(picture: Path) -> None:
    """The picture is not empty, and docs/ has one of the same name and size."""
    drawn = picture.read_bytes()
    committed = (COMMITTED / picture.parent.name / picture.name).read_bytes()
    assert len(drawn) > 10_000
    assert drawn[:24] == committed[:24]  # the signature, the width and the height of a PNG file


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_picture_of_the_studio(browser: Any, address: str, folder: Path, view: View) -> None:
    page = open_page(browser, view.size, view.scheme)
    page.goto(f"{address}&{urlencode(view.state)}")
    wait(page)
    page.wait_for_timeout(300)  # the tree is drawn in the next frame
    if view.top:
        page.locator(view.top).evaluate("element => element.scrollIntoView()")
    picture = folder / "studio" / f"{view.name}.png"
    page.screenshot(path=picture)
    page.close()
    check(picture)


@pytest.mark.parametrize("name", REPORTS)
def test_a_picture_of_a_report(
    browser: Any,
    quickstart: byteweld.Tokenizer,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)  # so that the report contains no local paths
    quickstart.save("quickstart.json")
    quickstart.cut(2048).save("smaller.json")
    Path("texts").mkdir()
    for source in ("bisect.py", "fractions.py"):
        shutil.copy(Path(sysconfig.get_path("stdlib"), source), f"texts/{source}.txt")
    sentences = "\n".join(SENTENCES.values()) + "\n"
    Path("texts", "sentences.txt").write_text(sentences, encoding="utf-8")
    scheme, line = REPORTS[name]
    assert command_line([*line.split(), "--html", "report.html"]) != 2
    page = open_page(browser, REPORT_SIZE, scheme)
    page.goto(Path("report.html").absolute().as_uri())
    picture = folder / "reports" / f"{name}.png"
    page.screenshot(path=picture)
    page.close()
    check(picture)


def test_every_committed_picture_is_one_of_these() -> None:
    names = {view.name for view in VIEWS}
    assert {file.stem for file in (COMMITTED / "studio").glob("*.png")} == names
    assert {file.stem for file in (COMMITTED / "reports").glob("*.png")} == set(REPORTS)
