"""The pages of the docs: in the navigation, and a directive for each public name of the API."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

import byteweld

ROOT = Path(__file__).parent.parent.parent
PAGES = ROOT / "docs" / "reference" / "api"
PUBLIC = [f"byteweld.{name}" for name in byteweld.__all__]
# Tables: a string below the assignment documents them, which mkdocstrings reads.
TABLES = {
    "RECIPES": ("byteweld.recipes", byteweld.RECIPES),
    "PATTERNS": ("byteweld.patterns", byteweld.PATTERNS),
    "FORMATS": ("byteweld.formats", byteweld.FORMATS),
    "DATASET_FORMATS": ("byteweld.dataset.formats", byteweld.DATASET_FORMATS),
}


def directives() -> dict[str, list[str]]:
    """Return the names that each page shows."""
    return {
        page.name: re.findall(r"^::: (.+)$", page.read_text("utf-8"), re.MULTILINE)
        for page in sorted(PAGES.glob("*.md"))
    }


def resolve(path: str) -> object:
    """Return what a dotted path means: a module, a name in one, or a member of a class."""
    module, _, name = path.rpartition(".")
    is_class = module.rpartition(".")[2][:1].isupper()
    holder = resolve(module) if is_class else importlib.import_module(module)
    return getattr(holder, name)


def test_every_public_name_has_exactly_one_directive() -> None:
    counts = Counter(name for names in directives().values() for name in names)
    assert {name: counts[name] for name in PUBLIC} == dict.fromkeys(PUBLIC, 1)
    assert not [name for name, times in counts.items() if times > 1]


@pytest.mark.parametrize("path", [name for names in directives().values() for name in names])
def test_a_directive_names_something_with_a_docstring(path: str) -> None:
    assert not any(part.startswith("_") for part in path.split("."))
    value = resolve(path)
    if path.rpartition(".")[2] not in TABLES:
        assert inspect.getdoc(value)


def test_the_index_links_every_public_name_to_its_directive() -> None:
    shown = directives()
    index = (PAGES / "index.md").read_text("utf-8")
    rows = re.findall(r"\[`(\w+)`\]\(([\w-]+\.md)#([\w.]+)\)", index)
    assert sorted(f"byteweld.{name}" for name, _, _ in rows) == sorted(PUBLIC)
    for name, page, anchor in rows:
        assert anchor == f"byteweld.{name}"
        assert anchor in shown[page], f"{page} does not show {anchor}"


def test_links_to_other_names_lead_to_their_directives() -> None:
    shown = directives()
    for page in PAGES.glob("*.md"):
        links = re.findall(r"\]\(([\w-]*\.md)?#([\w.]+)\)", page.read_text("utf-8"))
        for target, anchor in links:
            names = shown[target or page.name]
            assert any(anchor == name or anchor.startswith(f"{name}.") for name in names), anchor
            resolve(anchor)


@pytest.mark.parametrize("name", TABLES)
def test_the_documentation_of_a_table_has_a_row_for_each_entry(name: str) -> None:
    module, entries = TABLES[name]
    doc = attribute_doc(module, name)
    rows = re.findall(r"^\| `([\w-]+)`", doc, re.MULTILINE)
    assert rows == list(entries)


def attribute_doc(module: str, name: str) -> str:
    """Return the string literal below the assignment of a name."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(after, ast.Expr), f"{name} has no string below it"
            doc = ast.literal_eval(after.value)
            assert isinstance(doc, str)
            return doc
    raise AssertionError(f"{module} does not assign {name}")


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"^\s+- (?:[^:\n]+: )?(\S+\.md)$", navigation, re.MULTILINE)
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(named) == sorted(pages)
