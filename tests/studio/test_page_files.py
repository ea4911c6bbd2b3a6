"""The page's own files: nothing reads HTML, nothing comes from elsewhere, every import is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "src" / "byteweld" / "studio" / "page"
MODULES = sorted(PAGE.glob("*.js"))
FORBIDDEN = (
    *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment"),
    *("DOMParser", "setHTML", "srcdoc", "eval(", "new Function", "javascript:", 'setTimeout("'),
    *(
        "importScripts",
        "WebSocket",
        "EventSource",
        "XMLHttpRequest",
        "sendBeacon",
        'setAttribute("on',
    ),
)


@pytest.mark.parametrize("word", FORBIDDEN)
def test_no_module_reads_html_or_runs_text(word: str):
    assert len(MODULES) > 10
    for module in MODULES:
        assert word not in module.read_text(), f"{module.name} uses {word}"


def test_nothing_comes_from_another_place():
    known = {"http://www.w3.org/2000/svg"}
    for file in PAGE.iterdir():
        found = set(
            re.findall(r"""(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s"'`)]*""", file.read_text())
        )
        assert found <= known, f"{file.name} names {found - known}"
        assert "@import" not in file.read_text()
        assert "url(" not in file.read_text()


def test_styles_are_never_attributes():
    # The page's policy forbids them; a drawing would silently lose its looks.
    for file in [*MODULES, PAGE / "index.html"]:
        text = file.read_text()
        assert " style=" not in text
        assert "style:" not in text, f"{file.name} sets a style attribute"


def test_every_import_is_a_file_of_the_page_in_the_form_that_saving_knows():
    names = {module.name for module in MODULES}
    for module in MODULES:
        text = module.read_text()
        found = re.findall(r'^import \{[^}]*\} from "\./([a-z]+\.js)";$', text, re.MULTILINE)
        assert len(found) == len(re.findall(r"\bimport\b(?! \w)", text)), module.name
        assert set(found) <= names


def test_every_module_is_used():
    text = "".join(module.read_text() for module in MODULES) + '"./app.js"'
    for module in MODULES:
        assert f'"./{module.name}"' in text, f"nobody imports {module.name}"


def test_every_file_says_what_it_is():
    for module in MODULES:
        assert module.read_text().startswith("// "), module.name
    assert (PAGE / "style.css").read_text().startswith("/* ")
