"""The page's own files: none parses HTML or loads from elsewhere, and every import exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from byteweld.studio.views import HANDLERS, VIEWS

PAGE = Path(__file__).parents[2] / "src" / "byteweld" / "studio" / "page"
MODULES = sorted(PAGE.glob("*.js"))
FORBIDDEN = (
    *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment"),
    *("DOMParser", "setHTML", "srcdoc", "eval(", "new Function", "javascript:", 'setTimeout("'),
    *(
        *("importScripts", "WebSocket", "EventSource", "XMLHttpRequest", "sendBeacon"),
        'setAttribute("on',
    ),
)


@pytest.mark.parametrize("word", FORBIDDEN)
def test_no_module_parses_html_or_evaluates_strings(word: str):
    assert len(MODULES) > 10
    for module in MODULES:
        assert word not in module.read_text(), f"{module.name} uses {word}"


def test_nothing_is_loaded_from_elsewhere():
    known = {"http://www.w3.org/2000/svg"}
    for file in PAGE.iterdir():
        found = set(
            re.findall(r"""(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s"'`)]*""", file.read_text())
        )
        assert found <= known, f"{file.name} names {found - known}"
        assert "@import" not in file.read_text()
        assert "url(" not in file.read_text()


def test_styles_are_never_attributes():
    # The page's policy forbids them, so they would silently have no effect.
    for file in [*MODULES, PAGE / "index.html"]:
        text = file.read_text()
        assert " style=" not in text
        assert "style:" not in text, f"{file.name} sets a style attribute"


def test_every_import_is_a_file_of_the_page_in_the_form_that_saving_rewrites():
    names = {module.name for module in MODULES}
    for module in MODULES:
        text = module.read_text()
        found = re.findall(r'^import \{[^}]*\} from "\./([a-z]+\.js)";$', text, re.MULTILINE)
        assert len(found) == len(re.findall(r"\bimport\b(?! \w)", text)), module.name
        assert set(found) <= names


def test_every_module_is_imported():
    text = "".join(module.read_text() for module in MODULES) + '"./app.js"'
    for module in MODULES:
        assert f'"./{module.name}"' in text, f"{module.name} is not imported"


def test_every_file_starts_with_a_comment():
    for module in MODULES:
        assert module.read_text().startswith("// "), module.name
    assert (PAGE / "style.css").read_text().startswith("/* ")


def test_python_and_javascript_have_the_same_views():
    app = (PAGE / "app.js").read_text()
    [names] = re.findall(r"^const VIEWS = \{ (.*) \};$", app, re.MULTILINE)
    assert tuple(names.split(", ")) == VIEWS
    folder = PAGE.parent / "views"
    assert {file.stem for file in folder.glob("*.py")} == {*VIEWS, "__init__"}
    for view in VIEWS:
        assert f'import {{ view as {view} }} from "./{view}.js";' in app
        assert view in HANDLERS
