"""What the package promises: public names, a light import, examples that run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import byteweld

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(byteweld.__path__, "byteweld.")
    if not module.name.endswith(("_native", "__main__"))
)


def test_dunder_all_is_sorted_and_complete() -> None:
    names = byteweld.__all__
    key = lambda name: (not name.isupper(), not name[0].isupper(), name)  # noqa: E731
    assert names == sorted(names, key=key)
    assert all(hasattr(byteweld, name) for name in names)
    public = {n for n, value in vars(byteweld).items() if not n.startswith("_")}
    modules = {name.split(".")[1] for name in MODULES}
    assert public - modules == set(names) - modules


def test_import_is_light_and_starts_nothing() -> None:
    code = (
        "import sys, threading, byteweld\n"
        "heavy = {'numpy', 'typer', 'rich', 'regex', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert threading.active_count() == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    assert doctest.testmod(module).failed == 0


def test_every_relative_link_in_the_documents_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


@pytest.mark.parametrize("name", byteweld.__all__)
def test_every_public_name_and_its_members_have_a_docstring(name: str) -> None:
    value = getattr(byteweld, name)
    if inspect.isclass(value):
        own = vars(value).get("__doc__") or ""
        assert own and not own.startswith(f"{name}("), f"{name} has no docstring of its own"
        for member, found in inspect.getmembers(value, is_documented):
            if not member.startswith("_"):
                assert inspect.getdoc(found), f"{name}.{member} has no docstring"
    elif inspect.isroutine(value):
        assert inspect.getdoc(value), f"{name} has no docstring"


def is_documented(member: object) -> bool:
    return inspect.isroutine(member) or isinstance(member, property)


@pytest.mark.parametrize("name", byteweld._MOVED)
def test_a_deprecated_name_warns_and_still_works(name: str) -> None:
    module, _, attribute = byteweld._MOVED[name].rpartition(".")
    with pytest.warns(DeprecationWarning, match=rf"use {re.escape(byteweld._MOVED[name])}$"):
        found = getattr(byteweld, name)
    assert found is getattr(importlib.import_module(module), attribute)
    assert name not in byteweld.__all__
